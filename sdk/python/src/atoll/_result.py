# SPDX-License-Identifier: Apache-2.0
"""What became of a program: the result object of the API, typed.

Every key of the daemon's answer stays reachable under ``raw``; the attributes are those that callers use.
"""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Mapping, Optional

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


def _explain_error(error: Mapping[str, Any]) -> str:
    where = " (line %s)" % error["line"] if error.get("line") else ""
    text = ": %s" % error["message"] if error.get("message") else ""
    return "%s%s%s" % (error["type"], text, where)


def _explain_test(number: int, test: Mapping[str, Any]) -> str:
    """Why a test failed.

    >>> _explain_test(2, {"verdict": "wrong_answer", "difference": {"line": 1, "column": 3, "expected": "42", "got": None}})
    'test 2: wrong_answer: line 1, column 3: expected "42", got nothing more'
    """
    difference, error = test.get("difference"), test.get("error") or {}
    if test.get("message"):
        why = test["message"].split("\n")[0]
    elif difference:
        sides = ['"%s"' % difference[key] if difference.get(key) is not None else "nothing more" for key in ("expected", "got")]
        why = "line %s, column %s: expected %s, got %s" % (difference["line"], difference["column"], *sides)
    elif error.get("type"):
        why = _explain_error(error)
    else:
        why = (test.get("cause") or {}).get("detail")
    name = " (%s)" % test["name"] if test.get("name") else ""
    return "test %d%s: %s%s" % (number, name, test.get("verdict"), ": %s" % why if why else "")


def _explain_denial(row: Dict[str, Any]) -> str:
    """'; connect HOST:PORT was refused (rule), … permits it', in the words of this package."""
    hint = str(row.get("hint") or "")
    if hint.startswith("--network "):
        hint = "network=%r permits it" % hint[len("--network "):]
    return "; %s was refused (%s)%s" % (row.get("what"), row.get("rule"), ", " + hint if hint else "")


@dataclass(frozen=True)
class Result:
    """The account of one execution.

    ``value`` is the value of the last expression or of a top-level ``return``, ``value_type`` its type's name and
    ``value_repr`` its text as the language prints it. Of a value that cannot cross the boundary, ``value`` is that text. A value that is too large
    for a result is None, ``value_truncated`` says so, and ``fetch_value`` gets it.
    ``session_state`` is "kept" or "lost" for an execution in a session, and ``session_lost`` says what was lost and why: in the result of
    the execution that lost it, and in the next one.

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
    value_truncated: bool
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
    groups: List[Dict[str, Any]]
    points: Optional[Dict[str, float]]
    isolation: Dict[str, Any]
    usage: Dict[str, Any]
    denials: List[Dict[str, Any]]
    network: List[Dict[str, Any]]
    labels: Dict[str, str]
    runtime: Optional[str]
    policy: Optional[str]
    created_at: Optional[str]
    session_state: Optional[str]
    session_lost: Optional[str]
    raw: Dict[str, Any] = field(repr=False)
    _fetch: Optional[Callable[[], Any]] = field(default=None, repr=False, compare=False)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any], fetch: Optional[Callable[[], Any]] = None) -> "Result":
        """A result from the daemon's JSON object; ``fetch`` gets its whole value."""
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
            value_truncated=bool(raw.get("value_truncated")),
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
            groups=list(raw.get("groups") or []),
            points=raw.get("points"),
            isolation=dict(raw.get("isolation") or {}),
            usage=dict(raw.get("usage") or {}),
            denials=list(raw.get("denials") or []),
            network=list(raw.get("network") or []),
            labels=dict(raw.get("labels") or {}),
            runtime=raw.get("runtime"),
            policy=raw.get("policy"),
            created_at=raw.get("created_at"),
            session_state=(raw.get("session") or {}).get("state"),
            session_lost=(raw.get("session") or {}).get("lost"),
            raw=dict(raw),
            _fetch=fetch,
        )

    @property
    def success(self) -> bool:
        """``ok`` by its name in the API."""
        return self.ok

    def __getstate__(self) -> Dict[str, Any]:
        return {**self.__dict__, "_fetch": None}  # a connection does not cross processes

    def fetch_value(self) -> Any:
        """The value, from the daemon when it is too large for a result (of an asynchronous client: ``await client.value(result.id)``)."""
        if not self.value_truncated:
            return self.value
        if self._fetch is None:
            raise RuntimeError("this result has no connection; get its value by the client's value(%r)" % self.id)
        return self._fetch()

    def explain(self) -> str:
        """How the program ended and, where it is known, what to do about it.

        >>> Result.from_json({"status": "error", "error": {"type": "NameError", "message": "name 'totl' is not defined", "line": 2},
        ...                   "suggestion": "`totl` is not defined: did you mean `total`?"}).explain()
        "NameError: name 'totl' is not defined (line 2). `totl` is not defined: did you mean `total`?"
        >>> Result.from_json({"status": "error", "cause": {"detail": "exited with 1"}, "denials": [
        ...     {"what": "connect 1.1.1.1:53", "rule": "network: none", "count": 1, "hint": "--network allow:1.1.1.1:53"}]}).explain()
        "exited with 1; connect 1.1.1.1:53 was refused (network: none), network='allow:1.1.1.1:53' permits it"
        """
        text = self._explain_end() + "".join(map(_explain_denial, self.denials[:1]))
        suggestion = self.raw.get("suggestion")
        if not suggestion and self.cause.suggest is not None and self.cause.limit_key:
            suggestion = "Try again with %s=%r." % (self.cause.limit_key, self.cause.suggest)
        if not suggestion or self.tests or self.denials:
            return text
        return "%s%s %s" % (text, "" if text.endswith((".", "!", "?")) else ".", suggestion)

    def _explain_end(self) -> str:
        failed = [(number, test) for number, test in enumerate(self.tests, 1) if test.get("verdict") not in ("passed", "skipped")]
        if failed and self.status != "cancelled":
            passed = sum(bool(test.get("passed")) for test in self.tests)
            return "%d of %d tests passed; %s" % (passed, len(self.tests), _explain_test(*failed[0]))
        error = self.error or {}
        if self.status == "error" and error.get("type"):
            return _explain_error(error)
        return self.cause.detail or str(error.get("message") or self.status)

    def check(self) -> "Result":
        """This result, or ``ExecutionError`` when the program did not succeed."""
        if not self.ok:
            from ._errors import ExecutionError

            raise ExecutionError(self)
        return self
