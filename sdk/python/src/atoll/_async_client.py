# SPDX-License-Identifier: Apache-2.0
"""The client for asyncio: the methods of ``Client``, awaited."""
from __future__ import annotations

import inspect
from types import TracebackType
from typing import Any, AsyncIterator, Callable, Dict, List, Mapping, Optional, Sequence, Type, Union

from . import _calls
from ._address import find_address, find_token
from ._aio import AsyncTransport
from ._calls import Files
from ._client import _object
from ._daemon import private_address
from ._result import Result
from ._sync import answer_cut
from ._values import decode
from ._wire import Call, event_of

OnText = Callable[[str], Any]  # may return an awaitable


class AsyncClient:
    """A connection to a daemon, for one event loop; finds its daemon as ``Client`` does.

    >>> import asyncio
    >>> async def main():
    ...     async with AsyncClient() as client:
    ...         results = await asyncio.gather(*[client.run("print(%d)" % n) for n in range(3)])
    ...         return [result.stdout for result in results]
    >>> asyncio.run(main())
    ['0\\n', '1\\n', '2\\n']
    """

    def __init__(self, url: Optional[str] = None, token: Optional[str] = None, patience: float = 60.0) -> None:
        """``patience``: seconds for which a request that finds the daemon full is sent again."""
        self._transport = AsyncTransport(find_address(url) or private_address(), find_token(token), patience)

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                        trace: Optional[TracebackType]) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the idle connections. Jobs go on."""
        await self._transport.close()

    @property
    def url(self) -> str:
        """The daemon's address."""
        return str(self._transport.address)

    # --- running -----------------------------------------------------------------------------------------------------

    async def run(self, code: Optional[str] = None, language: Optional[str] = "python", *,
                  stdin: Union[str, bytes, None] = None, args: Optional[Sequence[str]] = None,
                  env: Optional[Mapping[str, str]] = None, files: Optional[Files] = None,
                  timeout: Union[float, str, None] = None, memory: Union[int, str, None] = None,
                  network: Optional[str] = None, workspace: Optional[str] = None, policy: Optional[str] = None,
                  on_stdout: Optional[OnText] = None, on_stderr: Optional[OnText] = None,
                  check: bool = False, **more: Any) -> Result:
        """Runs a program to its end, as ``Client.run``. Cancelling the task cancels the program."""
        options = dict(more, stdin=stdin, args=args, env=env, files=files, timeout=timeout, memory=memory,
                       network=network, workspace=workspace, policy=policy)
        body = _calls.request_body(code, language, options)
        if on_stdout or on_stderr:
            result = await self._run_streamed(body, {"stdout": on_stdout, "stderr": on_stderr})
        else:
            result = Result.from_json((await self._transport.call(_calls.execute(body, False))).json())
        return result.check() if check else result

    async def _run_streamed(self, body: Mapping[str, Any], listeners: Mapping[str, Optional[OnText]]) -> Result:
        result: Optional[Result] = None  # the stream is read to its end, so that its connection can be used again
        async for event in self._events(_calls.execute(body, True)):
            listener = listeners.get(event["event"])
            if listener:
                returned = listener(event["data"])
                if inspect.isawaitable(returned):
                    await returned
            if event["event"] == "result":
                result = Result.from_json(event["data"])
        if result is None:
            raise answer_cut()
        return result

    async def _events(self, call: Call) -> AsyncIterator[Dict[str, Any]]:
        async for line in self._transport.lines(call):
            event = event_of(line)
            if event is not None:
                yield event

    def stream(self, code: Optional[str] = None, language: Optional[str] = "python",
               **options: Any) -> AsyncIterator[Dict[str, Any]]:
        """Runs a program and gives its events, as ``Client.stream``."""
        return self._events(_calls.execute(_calls.request_body(code, language, options), True))

    # --- jobs --------------------------------------------------------------------------------------------------------

    async def submit(self, code: Optional[str] = None, language: Optional[str] = "python", *,
                     idempotency_key: Optional[str] = None, **options: Any) -> str:
        """Accepts a program that runs on its own; the id of the execution."""
        body = _calls.request_body(code, language, options)
        return str((await self._transport.call(_calls.submit(body, idempotency_key))).json()["id"])

    async def submit_many(self, programs: Sequence[Mapping[str, Any]], *,
                          idempotency_key: Optional[str] = None) -> List[Dict[str, Any]]:
        """Accepts up to 100 programs, as ``Client.submit_many``."""
        return list((await self._transport.call(_calls.submit_many(programs, idempotency_key))).json()["executions"])

    async def get_many(self, execution_ids: Sequence[str]) -> List[Dict[str, Any]]:
        """The results or states of up to 100 executions, in this order."""
        return await self.history(ids=",".join(execution_ids))

    async def get(self, execution_id: str) -> Dict[str, Any]:
        """The result, or the state of an execution that has not ended."""
        return await self._read(_calls.execution_path(execution_id))

    async def wait(self, execution_id: str) -> Result:
        """Waits for the end of an execution."""
        async for event in self._events(_calls.get(_calls.execution_path(execution_id, "events"), "application/x-ndjson")):
            if event["event"] == "result":
                return Result.from_json(event["data"])
        return Result.from_json(await self.get(execution_id))

    async def cancel(self, execution_id: str) -> None:
        """Ends an execution that has not ended."""
        await self._transport.call(_calls.cancel(execution_id))

    async def delete(self, execution_id: str) -> None:
        """Removes an execution that has ended."""
        await self._transport.call(_calls.delete(execution_id))

    async def replay(self, execution_id: str) -> str:
        """Runs the same request again; the id of the new execution."""
        return str((await self._transport.call(_calls.replay(execution_id))).json()["id"])

    # --- reading -----------------------------------------------------------------------------------------------------

    async def output(self, execution_id: str, stream: str = "stdout") -> bytes:
        """All kept bytes of ``stdout`` or ``stderr``."""
        return (await self._transport.call(_calls.get(_calls.execution_path(execution_id, stream), "*/*"))).body

    async def value(self, execution_id: str) -> Any:
        """The whole value of an execution, also one that is too large for its result."""
        return decode((await self._transport.call(_calls.get(_calls.execution_path(execution_id, "value")))).json())

    async def file(self, execution_id: str, path: str) -> bytes:
        """A file that the program wrote."""
        return (await self._transport.call(_calls.get(_calls.execution_path(execution_id, "files", path), "*/*"))).body

    async def history(self, **query: Any) -> List[Dict[str, Any]]:
        """One page of past executions, as ``Client.history``."""
        return list((await self._read("/v1/executions", **query))["executions"])

    async def analysis(self, execution_id: str) -> Dict[str, Any]:
        """What went wrong, in which line, and a suggestion."""
        return await self._read(_calls.execution_path(execution_id, "analysis"))

    async def debug_report(self, execution_id: str) -> Dict[str, Any]:
        """The debug report of an execution."""
        return await self._read(_calls.execution_path(execution_id, "debug-report"))

    async def sessions(self) -> List[Dict[str, Any]]:
        """The sessions of this caller."""
        return list((await self._read("/v1/sessions"))["sessions"])

    async def languages(self) -> List[Dict[str, Any]]:
        """The languages, their versions and whether their runtime is installed."""
        return list((await self._read("/v1/languages"))["languages"])

    async def limits(self) -> Dict[str, Any]:
        """The limits with their defaults and ceilings."""
        return await self._read("/v1/limits")

    async def stats(self, **query: Any) -> Dict[str, Any]:
        """Counts by status and latency percentiles."""
        return await self._read("/v1/stats", **query)

    async def doctor(self) -> Dict[str, Any]:
        """Which isolation the daemon's host can enforce."""
        return await self._read("/v1/doctor")

    async def cleanup(self) -> Dict[str, Any]:
        """Ends and removes all executions of this caller."""
        return _object((await self._transport.call(_calls.cleanup())).json())

    async def _read(self, path: str, **query: Any) -> Dict[str, Any]:
        return _object((await self._transport.call(_calls.get(path, **query))).json())
