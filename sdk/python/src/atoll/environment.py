# SPDX-License-Identifier: Apache-2.0
"""The interface of ToolWeaver's sandbox: ``SandboxEnvironment``, ``ResourceLimits`` and ``ProgrammaticToolExecutor``.

An environment is a Python session. Its state persists between calls until ``reset``; the session ends with the object. Callables in
``globals_dict`` stay in this process: the code calls them over the boundary. Exceptions of the code are raised here, the built-in ones as their
own type.

>>> import asyncio
>>> sandbox = SandboxEnvironment(limits=ResourceLimits(max_memory_mb=256, timeout_seconds=10))
>>> asyncio.run(sandbox.execute_code("result = sum([i**2 for i in range(100)])\\nreturn result"))
328350
"""
from __future__ import annotations

import asyncio
import inspect
import threading
import time
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterable, Mapping, Optional, Sequence

from . import default_client
from ._async_client import AsyncClient
from ._async_session import AsyncSandbox
from ._client import Client
from ._code_rules import SandboxSecurityError, check_code
from ._environment_limits import DEFAULT_ALLOWED_IMPORTS, TOO_MANY_CALLS, ResourceLimits, SandboxError, exception_of, failure_of
from ._errors import NotFound
from ._result import Result
from ._session import Sandbox
from ._tool_executor import ProgrammaticToolExecutor, execute_programmatic_code

__all__ = ["DEFAULT_ALLOWED_IMPORTS", "ExecutionResult", "ProgrammaticToolExecutor", "ResourceLimits", "SandboxEnvironment", "SandboxError",
           "SandboxSecurityError", "SecurityError", "create_sandbox", "execute_programmatic_code"]

#: The name that ToolWeaver's executor has for it.
SecurityError = SandboxSecurityError

#: Behind the code of ``execute``: its outcome is the value of ``__main__()``, or the variable ``result``.
_OUTCOME = '\n(await globals()["__main__"]()) if callable(globals().get("__main__")) else globals().get("result")'
_FORGET = 'globals().pop("__main__", None); globals().pop("result", None); None'


@dataclass
class ExecutionResult:
    """What ``execute`` gives."""

    success: bool
    output: Any
    stdout: str
    stderr: str
    duration: float
    error: Optional[str] = None
    error_type: Optional[str] = None


class _Guard:
    """Counts the calls of one execution and bounds how many run at once."""

    def __init__(self, limits: ResourceLimits) -> None:
        self._limits = limits
        self._calls = 0
        self._turns = asyncio.Semaphore(max(limits.max_concurrent, 1))

    def wrap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function with its calls counted."""

        async def call(*args: Any, **kwargs: Any) -> Any:
            self._calls += 1
            if self._calls > self._limits.max_tool_calls:
                raise RuntimeError(TOO_MANY_CALLS % self._limits.max_tool_calls)
            async with self._turns:
                returned = function(*args, **kwargs)
                return await returned if inspect.isawaitable(returned) else returned

        return call


class SandboxEnvironment:
    """A Python that keeps its state, may import what is allowed, and reaches neither files nor the network."""

    def __init__(self, limits: Optional[ResourceLimits] = None, allowed_imports: Optional[Sequence[str]] = None,
                 filesystem_access: bool = False, *, allowed_modules: Iterable[str] = (), client: Optional[Client] = None) -> None:
        """``allowed_imports=None`` allows json, math, datetime, asyncio and typing; ``allowed_modules`` are allowed beside them.

        ``filesystem_access=True`` gives the code /sandbox and /tmp of its own. In both cases it is one process with one thread.
        """
        self.limits = limits or ResourceLimits()
        self.allowed_modules = frozenset(allowed_modules)
        self.allowed_imports = sorted(self.allowed_modules.union(DEFAULT_ALLOWED_IMPORTS if allowed_imports is None else allowed_imports))
        self.filesystem_access = filesystem_access or self.limits.allow_file_io
        self._client = client
        self._session: Optional[Sandbox] = None
        self._starting = threading.Lock()  # executions may begin at once
        self._functions: Dict[str, Callable[..., Any]] = {}

    def _start(self) -> Sandbox:
        with self._starting:
            session = self._session or self._make()
            self._session = session
            return session

    def _make(self) -> Sandbox:
        rules = {"imports": {"allow": self.allowed_imports}, "filesystem": self.filesystem_access, "subprocess": False}
        network = "allow:*" if self.limits.allow_network else None
        # The rules are a convenience; the kernel holds what they say. Without files, the policy's code reads libraries only and is one process.
        policy = "trusted" if self.limits.allow_network else None if self.filesystem_access else "pure"
        limits = self.limits.to_limits() if policy else dict(self.limits.to_limits(), pids=1)
        return Sandbox(rules=rules, policy=policy, network=network, limits=limits, client=self._client or default_client())

    async def _started(self) -> Sandbox:
        session = self._session
        return await asyncio.get_running_loop().run_in_executor(None, self._start) if session is None else session

    async def execute_code(self, code: str, globals_dict: Optional[Mapping[str, Any]] = None) -> Any:
        """The value of a top-level ``return``, or of the last expression. ``await`` is allowed.

        Raises ImportError, PermissionError, TimeoutError, MemoryError and what else the code raises.
        """
        result = await self._run(code, globals_dict)
        failure = failure_of(result, self.limits.timeout_seconds)
        if failure is None:
            return result.value
        error = exception_of(*failure)
        setattr(error, "result", result)
        raise error

    async def _run(self, code: str, globals_dict: Optional[Mapping[str, Any]]) -> Result:
        variables = {name: value for name, value in (globals_dict or {}).items() if not callable(value)}
        self._functions.update({name: value for name, value in (globals_dict or {}).items() if callable(value)})
        for again in (True, False):
            session = await self._started()
            guard = _Guard(self.limits)
            functions = {name: guard.wrap(function) for name, function in self._functions.items()}
            try:
                async with AsyncClient(session._client.url) as client:
                    return await AsyncSandbox._at(session.id, client).run(code, variables=variables, host_functions=functions)
            except NotFound:
                self._session = None  # it was idle for too long; its state is gone
                if not again:
                    raise
        raise AssertionError("the loop returns or raises")

    def reset(self) -> None:
        """Forgets all variables."""
        self._functions.clear()
        if self._session is not None:
            try:
                self._session.reset()
            except NotFound:
                self._session = None

    def get_logs(self) -> Dict[str, str]:
        """What the code printed since the environment was made: ``stdout`` and ``stderr``."""
        if self._session is None:
            return {"stdout": "", "stderr": ""}
        logs = self._session.logs()
        return {"stdout": logs.stdout, "stderr": logs.stderr}

    def close(self) -> None:
        """Ends the session now instead of with this object."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def validate_code(self, code: str) -> None:
        """Raises ``SandboxSecurityError`` for code that imports or calls what it may not."""
        check_code(code, self.allowed_modules.union(self.allowed_imports))

    async def execute(self, code: str, context: Optional[Mapping[str, Any]] = None) -> ExecutionResult:
        """Runs code that passes ``validate_code``; never raises what the code raised.

        ``output`` is what ``async def __main__()`` returns, else the variable ``result``.

        >>> asyncio.run(SandboxEnvironment().execute("result = x + 2", {"x": 1})).output
        3
        """
        begin = time.monotonic()
        try:
            self.validate_code(code)
        except SandboxSecurityError as error:
            return ExecutionResult(False, None, "", "", 0.0, str(error), "SecurityError")
        if self._session is not None:
            await self._run(_FORGET, None)
        result = await self._run(code + _OUTCOME, context)
        failure = failure_of(result, self.limits.timeout_seconds)
        kind, text = failure or (None, None)
        return ExecutionResult(failure is None, result.value, result.stdout, result.stderr, time.monotonic() - begin, text, kind)


def create_sandbox(use_docker: bool = False, limits: Optional[ResourceLimits] = None) -> SandboxEnvironment:
    """An environment. Every environment is isolated by the kernel; there is no Docker to ask for.

    >>> create_sandbox(limits=ResourceLimits(max_memory_mb=128)).limits.max_memory_mb
    128
    """
    if use_docker:
        raise NotImplementedError("Docker is not used: every environment runs in Atoll's sandbox")
    return SandboxEnvironment(limits)
