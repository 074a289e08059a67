# SPDX-License-Identifier: Apache-2.0
"""What became of a program: the result object of the API, typed.

Every key of the daemon's answer stays reachable under ``raw``; the attributes are those that callers use.
"""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional

from ._output import Output
from ._values import decode


@dataclass(frozen=True)
class Cause:
    """Why a program ended: the kind, one sentence, and the limit worth retrying with."""

    kind: str = ""
    detail: str = ""
    limit_key: Optional[str] = None
    limit: Any = None
    peak: Any = None
    retryable: bool = False
    suggest: Any = None


@dataclass(frozen=True)
class Result:
    """The account of one execution.

    ``value`` is the value of the last expression or of a top-level ``return``, ``value_type`` its type's name and
    ``value_repr`` its text as the language prints it. Of a value that cannot cross the boundary, ``value`` is that text.
    ``session_state`` is "kept" or "lost" for an execution in a session.

    >>> result = Result.from_json({"id": "ex_1", "status": "success", "success": True, "exit_code": 0, "stdout": "42\\n"})
    >>> result.ok, result.stdout
    (True, '42\\n')
    """

    id: str
    status: str
    ok: bool
    exit_code: Optional[int]
    signal: Optional[int]
    stdout: str
    stderr: str
    stdout_truncated: bool
    stderr_truncated: bool
    value: Any
    value_type: Optional[str]
    value_repr: Optional[str]
    duration: float
    cpu_time: float
    memory_peak: int
    language: str
    cause: Cause
    error: Optional[Dict[str, Any]]
    files: List[Dict[str, Any]]
    outputs: List[Output]
    changes: List[Dict[str, Any]]
    host_calls: List[Dict[str, Any]]
    stages: List[Dict[str, Any]]
    tests: List[Dict[str, Any]]
    isolation: Dict[str, Any]
    usage: Dict[str, Any]
    denials: List[Dict[str, Any]]
    network: List[Dict[str, Any]]
    labels: Dict[str, str]
    runtime: Optional[str]
    policy: Optional[str]
    created_at: Optional[str]
    session_state: Optional[str]
    raw: Dict[str, Any] = field(repr=False)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> "Result":
        """A result from the daemon's JSON object."""
        cause = raw.get("cause") or {}
        known = Cause.__dataclass_fields__
        return cls(
            id=str(raw.get("id", "")),
            status=str(raw.get("status", "")),
            ok=raw.get("status") == "success",
            exit_code=raw.get("exit_code"),
            signal=raw.get("signal"),
            stdout=str(raw.get("stdout") or ""),
            stderr=str(raw.get("stderr") or ""),
            stdout_truncated=bool(raw.get("stdout_truncated")),
            stderr_truncated=bool(raw.get("stderr_truncated")),
            value=decode(raw.get("value")),
            value_type=raw.get("value_type"),
            value_repr=raw.get("value_repr"),
            duration=float(raw.get("duration") or 0.0),
            cpu_time=float(raw.get("cpu_time") or 0.0),
            memory_peak=int(raw.get("memory_peak") or 0),
            language=str(raw.get("language") or ""),
            cause=Cause(**{key: value for key, value in cause.items() if key in known}),
            error=raw.get("error"),
            files=list(raw.get("files") or []),
            outputs=[Output.from_json(output) for output in raw.get("outputs") or []],
            changes=list(raw.get("changes") or []),
            host_calls=list(raw.get("host_calls") or []),
            stages=list(raw.get("stages") or []),
            tests=list(raw.get("tests") or []),
            isolation=dict(raw.get("isolation") or {}),
            usage=dict(raw.get("usage") or {}),
            denials=list(raw.get("denials") or []),
            network=list(raw.get("network") or []),
            labels=dict(raw.get("labels") or {}),
            runtime=raw.get("runtime"),
            policy=raw.get("policy"),
            created_at=raw.get("created_at"),
            session_state=(raw.get("session") or {}).get("state"),
            raw=dict(raw),
        )

    @property
    def success(self) -> bool:
        """``ok`` by its name in the API."""
        return self.ok

    def explain(self) -> str:
        """One sentence that says how the program ended.

        >>> Result.from_json({"status": "error", "error": {"type": "KeyError", "message": "'tea'", "line": 2}}).explain()
        "KeyError: 'tea' (line 2)"
        """
        error = self.error or {}
        if self.status == "error" and error.get("type"):
            where = " (line %s)" % error["line"] if error.get("line") else ""
            text = ": %s" % error["message"] if error.get("message") else ""
            return "%s%s%s" % (error["type"], text, where)
        return self.cause.detail or str(error.get("message") or self.status)

    def check(self) -> "Result":
        """This result, or ``ExecutionError`` when the program did not succeed."""
        if not self.ok:
            from ._errors import ExecutionError

            raise ExecutionError(self)
        return self
