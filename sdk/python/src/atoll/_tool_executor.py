# SPDX-License-Identifier: Apache-2.0
"""``ProgrammaticToolExecutor`` of ToolWeaver: code that a model wrote calls tools of this process.

Each execution has a session of its own. The tools are asynchronous functions inside it; every call is recorded with its parameters,
duration, size of its result and error.
"""
from __future__ import annotations

import asyncio
import inspect
import logging
import secrets
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from ._async_client import AsyncClient
from ._async_session import AsyncSandbox
from ._client import Client
from ._code_rules import SandboxSecurityError, check_code
from ._environment_limits import DEFAULT_ALLOWED_IMPORTS, TOO_MANY_CALLS, ResourceLimits, failure_of
from ._result import Result

_PRELUDE = "import asyncio, json"
_PRELUDE_SECONDS = 30  # the executor's own timeout is for the code
NESTED = "Nested code execution is not allowed"


@dataclass
class Tool:
    """A tool as the executor uses it. ``names`` are its parameters, ``stub`` is what it gives when stubs are enabled."""

    name: str
    type: str = "function"
    function: Optional[Callable[..., Any]] = None
    names: List[str] = field(default_factory=list)
    required: List[str] = field(default_factory=list)
    description: str = ""
    cost: float = 0.0
    stub: Any = None


def _get(entry: Any, name: str) -> Any:
    return entry.get(name) if isinstance(entry, Mapping) else getattr(entry, name, None)


def _parameters(entry: Any, function: Optional[Callable[..., Any]]) -> Tuple[List[str], List[str]]:
    """All parameters and the required ones: from a JSON schema, a list of descriptions, or the function's signature."""
    given = _get(entry, "parameters")
    if isinstance(given, Mapping) and "properties" in given:
        return list(given["properties"]), list(given.get("required") or [])
    if isinstance(given, Mapping):
        given = [dict(value, name=name) if isinstance(value, Mapping) else {"name": name} for name, value in given.items()]
    if given is not None:
        names = [str(_get(row, "name")) for row in given]
        return names, [name for name, row in zip(names, given) if _get(row, "required") is True]
    if function is None:
        return [], []
    known = [row for row in inspect.signature(function).parameters.values() if row.kind in (row.POSITIONAL_OR_KEYWORD, row.KEYWORD_ONLY)]
    return [row.name for row in known], [row.name for row in known if row.default is row.empty]


def _tool(name: str, entry: Any) -> Tool:
    if inspect.isroutine(entry):
        entry = {"function": entry}
    candidates = [_get(entry, word) for word in ("function", "func", "handler")]
    function: Optional[Callable[..., Any]] = next((found for found in candidates if callable(found)), None)
    names, required = _parameters(entry, function)
    description = _get(entry, "description") or (inspect.getdoc(function) if function else "")
    return Tool(name, str(_get(entry, "type") or "function"), function, names, required, str(description or ""),
                float(_get(entry, "cost") or 0.0), _get(entry, "stub"))


def tools_of(catalog: Any) -> Dict[str, Tool]:
    """The tools of a catalog: a map or list of functions or descriptions, or an object with such a thing in ``tools``.

    >>> sorted(tools_of([len, {"name": "price", "function": lambda name: 3, "type": "shop"}]))
    ['len', 'price']
    """
    entries = getattr(catalog, "tools", catalog)
    if isinstance(entries, Mapping):
        return {str(name): _tool(str(name), entry) for name, entry in entries.items()}
    found: Dict[str, Tool] = {}
    for entry in entries or ():
        name = str(_get(entry, "name") or getattr(entry, "__name__", ""))
        found[name] = _tool(name, entry)
    return found


def _new_id() -> str:
    return "ptc_" + secrets.token_hex(4)


class _Calls:
    """The calls of one execution: their records, and the limits on them."""

    def __init__(self, executor: "ProgrammaticToolExecutor", execution_id: str) -> None:
        self._executor = executor
        self._id = execution_id
        self._turns = asyncio.Semaphore(max(executor.limits.max_concurrent, 1))
        self._cost = 0.0
        self.records: List[Dict[str, Any]] = []

    def function_of(self, tool: Tool) -> Callable[..., Any]:
        """What code in the sandbox calls."""

        async def call(*args: Any, **kwargs: Any) -> Any:
            return await self._call(tool, dict(zip(tool.names, args), **kwargs))

        return call

    async def _call(self, tool: Tool, parameters: Dict[str, Any]) -> Any:
        limits = self._executor.limits
        if len(self.records) >= limits.max_tool_calls:
            raise RuntimeError(TOO_MANY_CALLS % limits.max_tool_calls)
        if tool.type == "code_exec":
            raise RuntimeError(NESTED)
        missing = sorted(set(tool.required) - set(parameters))
        if missing:
            raise ValueError("%s: Missing required parameters: {%s}" % (tool.name, ", ".join(repr(name) for name in missing)))
        if self._cost + tool.cost > limits.max_total_cost_usd:
            raise RuntimeError("Exceeded max total cost (%s USD)" % limits.max_total_cost_usd)
        self._cost += tool.cost
        return await self._record(tool, parameters)

    async def _record(self, tool: Tool, parameters: Dict[str, Any]) -> Any:
        kind = "stub_import" if self._executor.enable_stubs else "code_execution"
        caller = {"type": kind, "execution_id": self._id, "tool_id": "tool_call_%d" % (len(self.records) + 1)}
        record: Dict[str, Any] = {"tool": tool.name, "type": tool.type, "parameters": parameters, "timestamp": time.time(), "caller": caller,
                                  "result_size": 0, "completed_at": None, "duration": 0.0, "error": None}
        self.records.append(record)
        begin = time.monotonic()
        try:
            async with self._turns:
                value = await self._executor._execute_tool(tool, parameters)
            record["result_size"] = len(str(value))
            return value
        except Exception as error:
            record["error"] = str(error)
            raise
        finally:
            record["duration"] = time.monotonic() - begin
            record["completed_at"] = record["timestamp"] + record["duration"]


class ProgrammaticToolExecutor:
    """Runs code with access to the tools of a catalog.

    >>> executor = ProgrammaticToolExecutor({"double": lambda n: 2 * n})
    >>> outcome = asyncio.run(executor.execute("return sum([await double(n=n) for n in numbers])", {"numbers": [1, 2, 3]}))
    >>> outcome["result"], [call["tool"] for call in outcome["tool_calls"]], outcome["error"]
    (12, ['double', 'double', 'double'], None)
    """

    def __init__(self, catalog: Any = None, limits: Optional[ResourceLimits] = None, enable_stubs: bool = False, mcp_client: Any = None, *,
                 tool_catalog: Any = None, timeout: Optional[float] = None, max_tool_calls: Optional[int] = None,
                 logger: Optional[logging.Logger] = None, sandbox_limits: Optional[ResourceLimits] = None,
                 allowed_imports: Optional[Sequence[str]] = None, client: Optional[Client] = None) -> None:
        """``catalog``: see ``tools_of``. A tool without a function is called by ``mcp_client.call_tool(name, parameters)``.

        With ``enable_stubs`` no tool is called: each gives its ``stub``, or its own name and parameters.
        """
        given = limits or sandbox_limits or ResourceLimits()
        seconds = given.timeout_seconds if timeout is None else timeout
        self.limits = ResourceLimits(given.max_memory_mb, given.max_cpu_percent, seconds,
                                     given.max_tool_calls if max_tool_calls is None else max_tool_calls, given.max_concurrent,
                                     given.max_total_cost_usd)
        self.enable_stubs = enable_stubs
        self.allowed_imports = list(DEFAULT_ALLOWED_IMPORTS if allowed_imports is None else allowed_imports)
        self.logger = logger or logging.getLogger("atoll.environment")
        self._tools = tools_of(catalog if catalog is not None else tool_catalog)
        self._mcp_client = mcp_client
        self._client = client
        self.execution_id = _new_id()  # of the last execution, or of the one to come

    @property
    def timeout(self) -> float:
        """Seconds for each execution."""
        return self.limits.timeout_seconds

    @timeout.setter
    def timeout(self, seconds: float) -> None:
        self.limits.timeout_seconds = seconds

    @property
    def max_tool_calls(self) -> int:
        """Calls of tools in each execution."""
        return self.limits.max_tool_calls

    @max_tool_calls.setter
    def max_tool_calls(self, count: int) -> None:
        self.limits.max_tool_calls = count

    def get_available_tools(self) -> List[str]:
        """The names of the tools that code may call."""
        return sorted(name for name, tool in self._tools.items() if tool.type != "code_exec")

    def validate_code(self, code: str) -> None:
        """Raises ``SandboxSecurityError`` for code that imports or calls what it may not."""
        check_code(code, frozenset(self.allowed_imports))

    async def _execute_tool(self, tool: Tool, parameters: Dict[str, Any]) -> Any:
        if self.enable_stubs:
            return tool.stub if tool.stub is not None else {"tool": tool.name, "parameters": parameters, "stub": True}
        if tool.function is not None:
            returned = tool.function(**parameters)
        elif self._mcp_client is not None:
            returned = self._mcp_client.call_tool(tool.name, parameters)
        else:
            raise RuntimeError("%s: the catalog has no function for it, and there is no mcp_client" % tool.name)
        return await returned if inspect.isawaitable(returned) else returned

    async def execute(self, code: str, context: Optional[Mapping[str, Any]] = None) -> Dict[str, Any]:
        """Runs code: ``output`` (what it printed), ``result``, ``tool_calls``, ``execution_time``, ``error``, ``execution_id``."""
        begin = time.monotonic()
        execution_id = self.execution_id = _new_id()
        outcome: Dict[str, Any] = {"output": "", "result": None, "tool_calls": [], "execution_time": 0.0, "error": None,
                                   "execution_id": execution_id}
        calls = _Calls(self, execution_id)
        try:
            self.validate_code(code)
            result = await self._run(code, context or {}, calls)
            failure = failure_of(result, self.limits.timeout_seconds)
            outcome.update(output=result.stdout, result=result.value, error=": ".join(filter(None, failure)) if failure else None)
        except SandboxSecurityError as error:
            outcome["error"] = "Security violation: %s" % str(error).replace("Syntax error:", "SyntaxError:", 1)
        self.logger.debug("%s made %d calls: %s", execution_id, len(calls.records), outcome["error"] or "no error")
        outcome.update(tool_calls=calls.records, execution_time=time.monotonic() - begin)
        return outcome

    async def _run(self, code: str, context: Mapping[str, Any], calls: _Calls) -> Result:
        rules = {"imports": {"allow": self.allowed_imports}, "filesystem": False, "subprocess": False}
        functions = {name: calls.function_of(tool) for name, tool in self._tools.items()}
        async with AsyncClient(self._client.url if self._client else None) as client:
            async with AsyncSandbox(rules=rules, policy="pure", limits=self.limits.to_limits(), client=client) as session:
                await session.run(_PRELUDE, timeout=_PRELUDE_SECONDS)
                return await session.run(code, variables=context, host_functions=functions)


async def execute_programmatic_code(code: str, tool_catalog: Any, context: Optional[Mapping[str, Any]] = None,
                                    timeout: float = 30) -> Dict[str, Any]:
    """Runs code with the tools of a catalog, as ``ProgrammaticToolExecutor.execute``."""
    return await ProgrammaticToolExecutor(tool_catalog, timeout=timeout).execute(code, context)
