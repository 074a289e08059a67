# SPDX-License-Identifier: Apache-2.0
"""What the two classes of ToolWeaver share: limits, and how a result becomes an exception."""
from __future__ import annotations

import builtins
import inspect
import re
from dataclasses import dataclass
from typing import Any, Dict, Optional, Tuple, Type

from ._result import Result

DEFAULT_ALLOWED_IMPORTS = ("json", "math", "datetime", "asyncio", "typing")

DAEMON_CALLS_TEXT = re.compile("an execution makes at most ([0-9]+) host calls.*")  # the daemon's own bound
TOO_MANY_CALLS = "Exceeded max tool calls (%d). Consider optimizing your code or increasing the limit."


@dataclass
class ResourceLimits:
    """Limits of an environment.

    ``timeout_seconds`` and ``max_tool_calls`` hold for each execution, ``max_concurrent`` for calls of tools at one time,
    ``max_total_cost_usd`` for the sum of what tools cost. ``max_duration`` is another name of ``timeout_seconds``. A running daemon
    allows 100 calls, or what its ``sessions.host_calls`` says; a private one 10000.

    >>> ResourceLimits().max_memory_mb
    512
    """

    max_memory_mb: int = 512
    max_cpu_percent: float = 50.0
    timeout_seconds: float = 30
    max_tool_calls: int = 100
    max_concurrent: int = 5
    max_total_cost_usd: float = 10.0
    max_duration: Optional[float] = None
    allow_network: bool = False
    allow_file_io: bool = False

    def __post_init__(self) -> None:
        if self.max_duration is None:
            self.max_duration = self.timeout_seconds
        else:
            self.timeout_seconds = self.max_duration

    def to_limits(self) -> Dict[str, Any]:
        """The limits of a session."""
        return {"memory": int(self.max_memory_mb) << 20, "cpus": self.max_cpu_percent / 100.0, "timeout": self.timeout_seconds}


class SandboxError(RuntimeError):
    """The code raised an exception whose type is not built in; ``type`` is its name."""

    def __init__(self, kind: str, message: str) -> None:
        self.type, self.message = kind, message
        super().__init__("%s: %s" % (kind, message) if message else kind)

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (self.type, self.message)


def failure_of(result: Result, timeout: float) -> Optional[Tuple[str, str]]:
    """Type and text of the exception that a result stands for; None for success.

    >>> failure_of(Result.from_json({"status": "timeout"}), 5)
    ('TimeoutError', 'Execution timeout after 5s')
    """
    error = result.error or {}
    if result.status == "timeout":
        return "TimeoutError", "Execution timeout after %ss" % timeout
    if result.cause.kind == "memory":
        return "MemoryError", result.cause.detail or "the memory limit was reached"
    if error.get("type"):
        outer = "%s." % error["module"] if error.get("module") else ""  # only built-in exceptions have none
        text = str(error.get("message") or "")
        bound = DAEMON_CALLS_TEXT.fullmatch(text)
        return outer + str(error["type"]), TOO_MANY_CALLS % int(bound.group(1)) if bound else text
    return None if result.ok else ("SystemExit" if result.cause.kind == "exit" else "RuntimeError", result._explain_end())


def _told(found: Type[Exception], message: str) -> Exception:
    """An exception of a type that takes other arguments than its text, such as UnicodeDecodeError."""

    def text(self: Exception) -> str:
        return str(self.args[0])

    heir = type(found.__name__, (found,), {"__init__": lambda self, *args: None, "__str__": text, "__module__": "builtins"})
    error = heir.__new__(heir, message)
    assert isinstance(error, Exception)
    return error


def exception_of(kind: str, message: str) -> Exception:
    """The built-in exception of that name, or ``SandboxError``. Only subclasses of Exception: code cannot end its host by SystemExit."""
    found = getattr(builtins, kind, None)
    if found is KeyError and len(message) > 1 and message[0] == message[-1] and message[0] in "'\"":
        message = message[1:-1]  # the text of a KeyError is the repr of its key
    if inspect.isclass(found) and issubclass(found, Exception):
        try:
            return _told(found, message) if issubclass(found, UnicodeError) else found(message) if message else found()
        except TypeError:
            pass  # such as ExceptionGroup, which takes two arguments
    return SandboxError(kind, message)
