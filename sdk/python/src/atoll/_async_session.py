# SPDX-License-Identifier: Apache-2.0
"""Sessions for asyncio: ``AsyncSandbox``, the methods of ``Sandbox``, awaited.

Each call of a host function is a task of its own, so calls that the code makes at once (``asyncio.gather``) overlap here, too.
"""
from __future__ import annotations

import asyncio
import inspect
import os
import weakref
from types import TracebackType
from typing import Any, AsyncIterator, BinaryIO, Dict, List, Mapping, Optional, Set, Type, Union

from . import _calls, _session_calls
from ._aio import AsyncTransport
from ._async_client import AsyncClient, OnText
from ._calls import Files
from ._client import _object
from ._errors import APIError, AtollError
from ._output import Output
from ._result import Result
from ._session import OnOutput, end_quietly
from ._session_calls import FileData, FileInfo, Function, HostFunction, HostFunctions, Logs
from ._sync import answer_cut
from ._wire import Call, event_of


class AsyncSessionFiles:
    """The files of a session's work directory, as ``SessionFiles``."""

    def __init__(self, transport: AsyncTransport, session_id: str) -> None:
        self._transport = transport
        self._id = session_id

    async def write(self, path: str, data: FileData) -> None:
        """Writes a file, and makes the directories above it. A file object, opened with mode 'rb', is read in pieces."""
        for call in _session_calls.write_file(self._id, path, data):
            await self._transport.call(call)

    async def read(self, path: str, offset: int = 0, size: Optional[int] = None) -> bytes:
        """The bytes of a file, or ``size`` of them from ``offset`` on."""
        return (await self._transport.call(_session_calls.read_file(self._id, path, offset, size))).body

    async def download(self, path: str, to: BinaryIO) -> int:
        """Copies a file of any size to a file object, in pieces; its bytes."""
        done, size = 0, 1
        while done < size:
            try:
                answer = await self._transport.call(_session_calls.read_file(self._id, path, done, _session_calls.PIECE_BYTES))
            except APIError as error:
                if error.status == 416:  # the file is empty, or has become shorter
                    break
                raise
            to.write(answer.body)
            done += len(answer.body)
            size = _session_calls.size_after(answer.headers, answer.body)
        return done

    async def read_text(self, path: str, encoding: str = "utf-8") -> str:
        """The text of a file."""
        return (await self.read(path)).decode(encoding)

    async def list(self, path: str = ".") -> List[FileInfo]:
        """The files below a directory."""
        base = _session_calls.work_path(path, True)
        answer = await self._transport.call(_calls.get(_session_calls.path_of(self._id, "files")))
        return _session_calls.files_in(_object(answer.json()), base)

    async def remove(self, path: str) -> None:
        """Removes a file."""
        await self._transport.call(_session_calls.remove_file(self._id, path))


class AsyncSandbox:
    """A live interpreter in a sandbox, as ``Sandbox``; ``async with`` starts and ends it.

    >>> import asyncio
    >>> async def main():
    ...     async def fetch(name):
    ...         await asyncio.sleep(0.01)
    ...         return name.upper()
    ...     async with AsyncSandbox(host_functions={"fetch": fetch}) as sandbox:
    ...         result = await sandbox.run("import asyncio\\nawait asyncio.gather(fetch('a'), fetch('b'))")
    ...         return result.value
    >>> asyncio.run(main())
    ['A', 'B']
    """

    def __init__(self, language: str = "python", *, timeout: Union[float, str, None] = None, memory: Union[int, str, None] = None,
                 files: Optional[Files] = None, env: Optional[Mapping[str, str]] = None, network: Optional[str] = None,
                 policy: Optional[str] = None, labels: Optional[Mapping[str, str]] = None,
                 host_functions: Optional[Mapping[str, HostFunction]] = None,
                 idle_timeout: Optional[float] = None, forkable: Optional[bool] = None, client: Optional[AsyncClient] = None, **more: Any) -> None:
        """Describes a session; ``start`` or ``async with`` makes it."""
        self.language = language
        self._options = dict(more, timeout=timeout, memory=memory, files=files, env=env, network=network, policy=policy, labels=labels,
                             idle_timeout=idle_timeout, forkable=forkable)
        self._functions = HostFunctions(host_functions)
        self._own = client is None
        self._client = client or AsyncClient()
        self._id: Optional[str] = None
        self._ending: Any = None

    @classmethod
    async def connect(cls, session_id: str, *, host_functions: Optional[Mapping[str, HostFunction]] = None,
                      client: Optional[AsyncClient] = None) -> "AsyncSandbox":
        """An object for a session that exists. The session goes on when the object is gone, until ``close``."""
        self = cls._at(session_id, client or AsyncClient())
        self._own = client is None
        self._functions = HostFunctions(host_functions)
        self.language = str((await self.info()).get("language") or "")
        return self

    @classmethod
    def _at(cls, session_id: str, client: AsyncClient) -> "AsyncSandbox":
        """An object for a session that another object ends."""
        self = cls(client=client)
        self._id = session_id
        return self

    def _attach(self, session: Mapping[str, Any]) -> None:
        self._id = str(session["id"])
        self.language = str(session.get("language") or self.language)
        transport = self._transport
        self._ending = weakref.finalize(self, end_quietly, transport.address, transport._token, self._id, os.getpid())

    @property
    def _transport(self) -> AsyncTransport:
        return self._client._transport

    @property
    def id(self) -> str:
        """The session's id."""
        if self._id is None:
            raise AtollError("the session has not started; use `async with` or `await sandbox.start()`")
        return self._id

    @property
    def files(self) -> AsyncSessionFiles:
        """The files of the work directory."""
        return AsyncSessionFiles(self._transport, self.id)

    async def start(self) -> "AsyncSandbox":
        """Starts the session."""
        if self._id is None:
            body = _session_calls.session_body(self.language, self._options, self._functions)
            self._attach(_object((await self._transport.call(_session_calls.create(body))).json()))
        return self

    async def __aenter__(self) -> "AsyncSandbox":
        return await self.start()

    async def __aexit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        await self.close()

    def __repr__(self) -> str:
        return "<AsyncSandbox %s %s>" % (self._id, self.language)

    def detach(self) -> str:
        """Lets the session go on when this object is gone; its id, for ``connect``."""
        if self._ending is not None:
            self._ending.detach()
        return self.id

    async def close(self) -> None:
        """Ends the session; what it held is gone."""
        if self._ending is not None:
            self._ending.detach()
        try:
            if self._id is not None:
                await self._transport.call(_session_calls.delete(self._id))
        except (AtollError, OSError):
            pass  # the session has ended, or its daemon has
        if self._own:
            await self._client.close()

    # --- running -----------------------------------------------------------------------------------------------------

    def register(self, function: Function, name: Optional[str] = None) -> Function:
        """Lets code that runs from now on call a function of this process; also a decorator."""
        self._functions.add(function, name)
        return function

    async def run(self, code: str, *, timeout: Union[float, str, None] = None, variables: Optional[Mapping[str, Any]] = None,
                  host_functions: Optional[Mapping[str, HostFunction]] = None, on_stdout: Optional[OnText] = None,
                  on_stderr: Optional[OnText] = None, on_output: Optional[OnOutput] = None, check: bool = False, **more: Any) -> Result:
        """Executes code in the session, as ``Sandbox.run``. Cancelling the task interrupts the code and keeps the state."""
        functions = self._functions.joined(host_functions)
        body = _session_calls.execute_body(code, dict(more, timeout=timeout), functions, variables)
        try:
            if functions.names() or on_stdout or on_stderr or on_output:
                result = await self._run_streamed(body, functions, {"stdout": on_stdout, "stderr": on_stderr, "output": on_output})
            else:
                result = Result.from_json((await self._transport.call(_session_calls.execute(self.id, body, False))).json())
        except asyncio.CancelledError:
            await asyncio.shield(self.interrupt())
            raise
        return result.check() if check else result

    async def _events(self, call: Call) -> AsyncIterator[Dict[str, Any]]:
        async for line in self._transport.lines(call):
            event = event_of(line)
            if event is not None:
                yield event

    async def _run_streamed(self, body: Mapping[str, Any], functions: HostFunctions, listeners: Mapping[str, Any]) -> Result:
        result: Optional[Result] = None  # the stream is read to its end, so that its connection can be used again
        answers: "Set[asyncio.Task[None]]" = set()
        events = self._events(_session_calls.execute(self.id, body, True))
        try:
            async for event in events:
                kind: str = event["event"]
                data: Any = event.get("data")
                listener = listeners.get(kind)
                if kind == "result":
                    result = Result.from_json(data)
                elif kind == "host_call":
                    answers.add(asyncio.ensure_future(self._answer(functions, data)))
                    answers = {answer for answer in answers if not answer.done() or answer.result()}
                elif listener:
                    returned = listener(Output.from_json(data) if kind == "output" else data)
                    if inspect.isawaitable(returned):
                        await returned
        finally:
            for answer in answers:
                answer.cancel()
            await events.aclose()  # type: ignore[attr-defined]
        if result is None:
            raise answer_cut()
        return result

    async def _answer(self, functions: HostFunctions, call: Mapping[str, Any]) -> None:
        body = await functions.answer_async(call)
        try:
            await self._transport.call(_session_calls.answer(self.id, call["call_id"], body))
        except AtollError as error:
            if getattr(error, "status", 0) != 404:  # the execution has ended while the function ran
                raise

    # --- the session -------------------------------------------------------------------------------------------------

    async def info(self) -> Dict[str, Any]:
        """The session as the API describes it: state, limits, isolation, when it expires."""
        return _object((await self._transport.call(_calls.get(_session_calls.path_of(self.id)))).json())

    async def interrupt(self) -> bool:
        """Stops the code that runs, as ^C at a terminal; whether the state was kept."""
        answer = _object((await self._transport.call(_session_calls.post(self.id, "interrupt"))).json())
        return answer.get("state") != "lost"

    async def reset(self) -> None:
        """Starts again with a fresh interpreter and an empty work directory."""
        await self._transport.call(_session_calls.post(self.id, "reset"))

    async def fork(self, count: int = 1) -> "List[AsyncSandbox]":
        """Copies of this Python session with its variables and files, each a session of its own."""
        answer = _object((await self._transport.call(_session_calls.post(self.id, "fork", count=count))).json())
        children = []
        for session in answer["sessions"]:
            child = AsyncSandbox(client=self._client)
            child._functions = self._functions
            child._attach(session)
            children.append(child)
        return children

    async def logs(self) -> Logs:
        """Everything that the session printed so far."""
        return Logs.from_json(_object((await self._transport.call(_calls.get(_session_calls.path_of(self.id, "logs")))).json()))
