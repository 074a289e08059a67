# SPDX-License-Identifier: Apache-2.0
"""The client for threads. ``_async_client`` has the same methods for asyncio; both send the calls of ``_calls``."""
from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Type, Union
from types import TracebackType

from . import _calls
from ._address import find_address, find_token
from ._calls import Files
from ._daemon import private_address
from ._result import Result
from ._sync import Transport, answer_cut
from ._values import decode
from ._wire import events_in

OnText = Callable[[str], Any]


class Client:
    """A connection to a daemon: the one at ``url``, at ``ATOLL_URL``, at the default socket, or a private one.

    >>> with Client() as client:
    ...     client.run("print(6 * 7)").stdout
    '42\\n'
    """

    def __init__(self, url: Optional[str] = None, token: Optional[str] = None, patience: float = 60.0) -> None:
        """``patience``: seconds for which a request that finds the daemon full is sent again."""
        self._transport = Transport(find_address(url) or private_address(), find_token(token), patience)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    def close(self) -> None:
        """Closes the idle connections. Jobs go on."""
        self._transport.close()

    @property
    def url(self) -> str:
        """The daemon's address."""
        return str(self._transport.address)

    # --- running -----------------------------------------------------------------------------------------------------

    def run(self, code: Optional[str] = None, language: Optional[str] = "python", *,
            stdin: Union[str, bytes, None] = None, args: Optional[Sequence[str]] = None,
            env: Optional[Mapping[str, str]] = None, files: Optional[Files] = None,
            timeout: Union[float, str, None] = None, memory: Union[int, str, None] = None,
            network: Optional[str] = None, workspace: Optional[str] = None, policy: Optional[str] = None,
            on_stdout: Optional[OnText] = None, on_stderr: Optional[OnText] = None,
            check: bool = False, **more: Any) -> Result:
        """Runs a program to its end.

        A program's failure is a result; with ``check`` it is an ``ExecutionError``. ``on_stdout`` and ``on_stderr`` get
        the output while the program runs. ``more`` takes every other limit and key of a request. An interrupt (Ctrl-C)
        cancels the program.

        >>> Client().run("import sys; print(sys.stdin.read().upper())", stdin="reef", timeout=5).stdout
        'REEF\\n'
        """
        options = dict(more, stdin=stdin, args=args, env=env, files=files, timeout=timeout, memory=memory,
                       network=network, workspace=workspace, policy=policy)
        body = _calls.request_body(code, language, options)
        if on_stdout or on_stderr:
            result = self._run_streamed(body, {"stdout": on_stdout, "stderr": on_stderr})
        else:
            result = self._result(self._transport.call(_calls.execute(body, False)).json())
        return result.check() if check else result

    def _run_streamed(self, body: Mapping[str, Any], listeners: Mapping[str, Optional[OnText]]) -> Result:
        result: Optional[Result] = None  # the stream is read to its end, so that its connection can be used again
        for event in self._events(body):
            listener = listeners.get(event["event"])
            if listener:
                listener(event["data"])
            if event["event"] == "result":
                result = self._result(event["data"])
        if result is None:
            raise answer_cut()
        return result

    def _events(self, body: Mapping[str, Any]) -> Iterator[Dict[str, Any]]:
        return events_in(self._transport.lines(_calls.execute(body, True)))

    def stream(self, code: Optional[str] = None, language: Optional[str] = "python", **options: Any) -> Iterator[Dict[str, Any]]:
        """Runs a program and gives its events: start, stdout, stderr, stage, usage, and last the result.

        >>> [event["data"] for event in Client().stream("print(1)") if event["event"] == "stdout"]
        ['1\\n']
        """
        return self._events(_calls.request_body(code, language, options))

    # --- jobs --------------------------------------------------------------------------------------------------------

    def submit(self, code: Optional[str] = None, language: Optional[str] = "python", *,
               idempotency_key: Optional[str] = None, **options: Any) -> str:
        """Accepts a program that runs on its own; the id of the execution."""
        body = _calls.request_body(code, language, options)
        return str(self._transport.call(_calls.submit(body, idempotency_key)).json()["id"])

    def submit_many(self, programs: Sequence[Mapping[str, Any]], *, idempotency_key: Optional[str] = None) -> List[Dict[str, Any]]:
        """Accepts up to 100 programs, each a mapping of ``submit``'s arguments: for each its ``id`` and ``status``, or the ``problem``
        why it was refused."""
        return list(self._transport.call(_calls.submit_many(programs, idempotency_key)).json()["executions"])

    def get_many(self, execution_ids: Sequence[str]) -> List[Dict[str, Any]]:
        """The results or states of up to 100 executions, in this order."""
        return self.history(ids=",".join(execution_ids))

    def get(self, execution_id: str) -> Dict[str, Any]:
        """The result, or the state of an execution that has not ended."""
        return _object(self._transport.call(_calls.get(_calls.execution_path(execution_id))).json())

    def wait(self, execution_id: str) -> Result:
        """Waits for the end of an execution."""
        call = _calls.get(_calls.execution_path(execution_id, "events"), "application/x-ndjson")
        for event in events_in(self._transport.lines(call)):
            if event["event"] == "result":
                return self._result(event["data"])
        return self._result(self.get(execution_id))

    def cancel(self, execution_id: str) -> None:
        """Ends an execution that has not ended."""
        self._transport.call(_calls.cancel(execution_id))

    def delete(self, execution_id: str) -> None:
        """Removes an execution that has ended."""
        self._transport.call(_calls.delete(execution_id))

    def replay(self, execution_id: str) -> str:
        """Runs the same request again; the id of the new execution."""
        return str(self._transport.call(_calls.replay(execution_id)).json()["id"])

    # --- reading -----------------------------------------------------------------------------------------------------

    def output(self, execution_id: str, stream: str = "stdout") -> bytes:
        """All kept bytes of ``stdout`` or ``stderr``."""
        return self._transport.call(_calls.get(_calls.execution_path(execution_id, stream), "*/*")).body

    def value(self, execution_id: str) -> Any:
        """The whole value of an execution, also one that is too large for its result."""
        return decode(self._transport.call(_calls.get(_calls.execution_path(execution_id, "value"))).json())

    def file(self, execution_id: str, path: str) -> bytes:
        """A file that the program wrote."""
        return self._transport.call(_calls.get(_calls.execution_path(execution_id, "files", path), "*/*")).body

    def history(self, **query: Any) -> List[Dict[str, Any]]:
        """One page of past executions, newest first: ``status``, ``language``, ``label``, ``text``, ``since``, ``limit`` …"""
        page = _object(self._transport.call(_calls.get("/v1/executions", **query)).json())
        return list(page["executions"])

    def analysis(self, execution_id: str) -> Dict[str, Any]:
        """What went wrong, in which line, and a suggestion."""
        return self._read(_calls.execution_path(execution_id, "analysis"))

    def debug_report(self, execution_id: str) -> Dict[str, Any]:
        """The debug report of an execution."""
        return self._read(_calls.execution_path(execution_id, "debug-report"))

    def sessions(self) -> List[Dict[str, Any]]:
        """The sessions of this caller."""
        return list(self._read("/v1/sessions")["sessions"])

    def languages(self) -> List[Dict[str, Any]]:
        """The languages, their versions and whether their runtime is installed."""
        return list(self._read("/v1/languages")["languages"])

    def limits(self) -> Dict[str, Any]:
        """The limits with their defaults and ceilings."""
        return self._read("/v1/limits")

    def stats(self, **query: Any) -> Dict[str, Any]:
        """Counts by status and latency percentiles."""
        return self._read("/v1/stats", **query)

    def doctor(self) -> Dict[str, Any]:
        """Which isolation the daemon's host can enforce."""
        return self._read("/v1/doctor")

    def cleanup(self) -> Dict[str, Any]:
        """Ends and removes all executions of this caller."""
        return _object(self._transport.call(_calls.cleanup()).json())

    def _result(self, raw: Mapping[str, Any]) -> Result:
        return Result.from_json(raw, lambda: self.value(str(raw["id"])))

    def _read(self, path: str, **query: Any) -> Dict[str, Any]:
        return _object(self._transport.call(_calls.get(path, **query)).json())


def _object(value: Any) -> Dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError("the daemon answered %s instead of an object" % type(value).__name__)
    return value
