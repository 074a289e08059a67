# SPDX-License-Identifier: Apache-2.0
"""Sessions for threads: ``Sandbox``, one live interpreter that keeps its state between executions.

While code runs, its events come over one connection. A call of a host function is such an event; its answer goes over another one. Host
functions run in the thread that called ``run``, one after the other; with ``host_threads`` several may run at once.
"""
from __future__ import annotations

import os
import weakref
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Callable, Dict, List, Mapping, Optional, Set, Type, Union

from . import _calls, _session_calls
from ._address import Address
from ._calls import Files
from ._client import Client, OnText, _object
from ._errors import APIError, AtollError
from ._output import Output
from ._result import Result
from ._session_calls import FileData, FileInfo, Function, HostFunction, HostFunctions, Logs
from ._sync import Transport, answer_cut
from ._wire import events_in

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

OnOutput = Callable[[Output], Any]


def end_quietly(address: Address, token: Optional[str], session_id: str, pid: int) -> None:
    """Ends a session whose object is gone. A forked child holds a copy of the object, not the session."""
    if pid != os.getpid():
        return
    transport = Transport(address, token)
    try:
        transport.call(_session_calls.delete(session_id))
    except (AtollError, OSError):
        pass  # the session has ended, or its daemon has
    finally:
        transport.close()


class SessionFiles:
    """The files of a session's work directory; paths are relative to it.

    >>> with Sandbox() as sandbox:
    ...     sandbox.files.write("data/in.txt", "reef")
    ...     sandbox.run("open('out.txt', 'w').write(open('data/in.txt').read().upper())").ok
    ...     sandbox.files.read("out.txt"), [file.path for file in sandbox.files.list("data")]
    True
    (b'REEF', ['data/in.txt'])
    """

    def __init__(self, transport: Transport, session_id: str) -> None:
        self._transport = transport
        self._id = session_id

    def write(self, path: str, data: FileData) -> None:
        """Writes a file, and makes the directories above it. A file object, opened with mode 'rb', is read in pieces."""
        for call in _session_calls.write_file(self._id, path, data):
            self._transport.call(call)

    def read(self, path: str, offset: int = 0, size: Optional[int] = None) -> bytes:
        """The bytes of a file, or ``size`` of them from ``offset`` on."""
        return self._transport.call(_session_calls.read_file(self._id, path, offset, size)).body

    def download(self, path: str, to: BinaryIO) -> int:
        """Copies a file of any size to a file object, in pieces; its bytes."""
        done, size = 0, 1
        while done < size:
            try:
                answer = self._transport.call(_session_calls.read_file(self._id, path, done, _session_calls.PIECE_BYTES))
            except APIError as error:
                if error.status == 416:  # the file is empty, or has become shorter
                    break
                raise
            to.write(answer.body)
            done += len(answer.body)
            size = _session_calls.size_after(answer.headers, answer.body)
        return done

    def read_text(self, path: str, encoding: str = "utf-8") -> str:
        """The text of a file."""
        return self.read(path).decode(encoding)

    def list(self, path: str = ".") -> List[FileInfo]:
        """The files below a directory."""
        base = _session_calls.work_path(path, True)
        answer = self._transport.call(_calls.get(_session_calls.path_of(self._id, "files"))).json()
        return _session_calls.files_in(_object(answer), base)

    def remove(self, path: str) -> None:
        """Removes a file."""
        self._transport.call(_session_calls.remove_file(self._id, path))


class Sandbox:
    """A live interpreter in a sandbox: python, javascript, ruby or bash. Variables and files persist until ``reset`` or ``close``.

    >>> with Sandbox() as sandbox:
    ...     _ = sandbox.run("x = 20")
    ...     sandbox.run("x + 1").value
    21

    Functions of this process can be called from inside:

    >>> with Sandbox(host_functions={"price": lambda name: {"tea": 3}[name]}) as sandbox:
    ...     sandbox.run("price('tea') * 2").value
    6
    """

    def __init__(self, language: str = "python", *, timeout: Union[float, str, None] = None, memory: Union[int, str, None] = None,
                 files: Optional[Files] = None, env: Optional[Mapping[str, str]] = None, network: Optional[str] = None,
                 policy: Optional[str] = None, labels: Optional[Mapping[str, str]] = None,
                 host_functions: Optional[Mapping[str, HostFunction]] = None, host_threads: int = 1,
                 idle_timeout: Optional[float] = None, forkable: Optional[bool] = None, client: Optional[Client] = None, **more: Any) -> None:
        """Starts a session. ``timeout`` holds for each execution, ``idle_timeout`` for the time between two of them.

        ``forkable=False`` (Python) gives the session narrower Landlock rules, and ``fork`` cannot copy it; see SECURITY.md.
        """
        options = dict(more, timeout=timeout, memory=memory, files=files, env=env, network=network, policy=policy, labels=labels,
                       idle_timeout=idle_timeout, forkable=forkable)
        self._functions = HostFunctions(host_functions)
        self._host_threads = host_threads
        self._client = client or _default_client()
        answer = self._transport.call(_session_calls.create(_session_calls.session_body(language, options, self._functions)))
        self._attach(_object(answer.json()))

    def _attach(self, session: Mapping[str, Any]) -> None:
        self.id = str(session["id"])
        self.language = str(session.get("language") or "")
        self.files = SessionFiles(self._transport, self.id)
        transport = self._transport
        self._ending = weakref.finalize(self, end_quietly, transport.address, transport._token, self.id, os.getpid())

    @classmethod
    def _from_json(cls, session: Mapping[str, Any], client: Client, functions: HostFunctions, host_threads: int) -> "Sandbox":
        self = cls.__new__(cls)
        self._client, self._functions, self._host_threads = client, functions, host_threads
        self._attach(session)
        return self

    @classmethod
    def connect(cls, session_id: str, *, host_functions: Optional[Mapping[str, HostFunction]] = None, host_threads: int = 1,
                client: Optional[Client] = None) -> "Sandbox":
        """An object for a session that exists. The session goes on when the object is gone, until ``close``."""
        owner = client or _default_client()
        session = _object(owner._transport.call(_calls.get(_session_calls.path_of(session_id))).json())
        self = cls._from_json(session, owner, HostFunctions(host_functions), host_threads)
        self._ending.detach()
        return self

    @property
    def _transport(self) -> Transport:
        return self._client._transport

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.close()

    def __repr__(self) -> str:
        return "<Sandbox %s %s>" % (self.id, self.language)

    def detach(self) -> str:
        """Lets the session go on when this object is gone; its id, for ``connect``."""
        self._ending.detach()
        return self.id

    def close(self) -> None:
        """Ends the session; what it held is gone."""
        self._ending.detach()
        try:
            self._transport.call(_session_calls.delete(self.id))
        except (AtollError, OSError):
            pass  # the session has ended, or its daemon has

    # --- running -----------------------------------------------------------------------------------------------------

    def register(self, function: Function, name: Optional[str] = None) -> Function:
        """Lets code that runs from now on call a function of this process; also a decorator."""
        self._functions.add(function, name)
        return function

    def run(self, code: str, *, timeout: Union[float, str, None] = None, variables: Optional[Mapping[str, Any]] = None,
            host_functions: Optional[Mapping[str, HostFunction]] = None, on_stdout: Optional[OnText] = None,
            on_stderr: Optional[OnText] = None, on_output: Optional[OnOutput] = None, check: bool = False, **more: Any) -> Result:
        """Executes code in the session; ``variables`` are set before.

        An exception of the code is in ``error`` of the result; with ``check`` an ``ExecutionError`` is raised. An interrupt
        (Ctrl-C) interrupts the code and keeps the state.

        >>> with Sandbox() as sandbox:
        ...     sandbox.run("total = sum(data)\\nreturn total", variables={"data": [1, 2, 3]}).value
        ...     sandbox.run("total / 0").error["type"]
        6
        'ZeroDivisionError'
        """
        functions = self._functions.joined(host_functions)
        body = _session_calls.execute_body(code, dict(more, timeout=timeout), functions, variables)
        try:
            if functions.names() or on_stdout or on_stderr or on_output:
                result = self._run_streamed(body, functions, {"stdout": on_stdout, "stderr": on_stderr, "output": on_output})
            else:
                result = self._client._result(self._transport.call(_session_calls.execute(self.id, body, False)).json())
        except KeyboardInterrupt:
            self.interrupt()
            raise
        return result.check() if check else result

    def _run_streamed(self, body: Mapping[str, Any], functions: HostFunctions, listeners: Mapping[str, Any]) -> Result:
        helpers = self._threads()
        result: Optional[Result] = None  # the stream is read to its end, so that its connection can be used again
        answers: "Set[Future[None]]" = set()
        try:
            for event in events_in(self._transport.lines(_session_calls.execute(self.id, body, True))):
                kind: str = event["event"]
                data: Any = event.get("data")
                listener = listeners.get(kind)
                if kind == "result":
                    result = self._client._result(data)
                elif kind == "host_call" and helpers:
                    answers.add(helpers.submit(self._answer, functions, data))
                    answers = {answer for answer in answers if not _is_done(answer)}
                elif kind == "host_call":
                    self._answer(functions, data)
                elif listener:
                    listener(Output.from_json(data) if kind == "output" else data)
        finally:
            if helpers:
                helpers.shutdown(wait=False)
        if result is None:
            raise answer_cut()
        return result

    def _threads(self) -> "Optional[ThreadPoolExecutor]":
        """Threads for host functions, where they do not run in the caller's."""
        if self._host_threads <= 1:
            return None
        from concurrent.futures import ThreadPoolExecutor

        return ThreadPoolExecutor(self._host_threads)

    def _answer(self, functions: HostFunctions, call: Mapping[str, Any]) -> None:
        body = functions.answer(call)
        try:
            self._transport.call(_session_calls.answer(self.id, call["call_id"], body))
        except AtollError as error:
            if getattr(error, "status", 0) != 404:  # the execution has ended while the function ran
                raise

    # --- the session -------------------------------------------------------------------------------------------------

    def info(self) -> Dict[str, Any]:
        """The session as the API describes it: state, limits, isolation, when it expires."""
        return _object(self._transport.call(_calls.get(_session_calls.path_of(self.id))).json())

    def interrupt(self) -> bool:
        """Stops the code that runs, as ^C at a terminal; whether the state was kept."""
        answer = _object(self._transport.call(_session_calls.post(self.id, "interrupt")).json())
        return answer.get("state") != "lost"

    def reset(self) -> None:
        """Starts again with a fresh interpreter and an empty work directory."""
        self._transport.call(_session_calls.post(self.id, "reset"))

    def fork(self, count: int = 1) -> "List[Sandbox]":
        """Copies of this Python session with its variables and files, each a session of its own.

        >>> with Sandbox() as sandbox:
        ...     _ = sandbox.run("x = 1")
        ...     [child.run("x += %d; x" % n).value for n, child in enumerate(sandbox.fork(3))]
        [1, 2, 3]
        """
        answer = _object(self._transport.call(_session_calls.post(self.id, "fork", count=count)).json())
        return [Sandbox._from_json(session, self._client, self._functions, self._host_threads) for session in answer["sessions"]]

    def logs(self) -> Logs:
        """Everything that the session printed so far.

        >>> with Sandbox() as sandbox:
        ...     _ = sandbox.run("print(1)"), sandbox.run("print(2)")
        ...     sandbox.logs().stdout
        '1\\n2\\n'
        """
        return Logs.from_json(_object(self._transport.call(_calls.get(_session_calls.path_of(self.id, "logs"))).json()))


def _is_done(answer: "Future[None]") -> bool:
    """Whether an answer was sent; raises what went wrong with it."""
    if answer.done():
        answer.result()
        return True
    return False


def _default_client() -> Client:
    from . import default_client

    return default_client()
