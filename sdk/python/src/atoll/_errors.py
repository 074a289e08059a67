# SPDX-License-Identifier: Apache-2.0
"""The exceptions of this package.

Two kinds: the API refused or could not be reached (``APIError``, ``ConnectionFailed``), and a program failed
(``ExecutionError``, raised only where the caller asked for it). Each carries what is known, so that a handler need
not parse its text.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Mapping, Optional, Tuple

if TYPE_CHECKING:
    from ._result import Result


class AtollError(Exception):
    """The base of all exceptions of this package."""


class ConnectionFailed(AtollError, ConnectionError):
    """No daemon answered. The text says how to start one."""


class APIError(AtollError):
    """The daemon refused a request.

    ``status`` is the HTTP status, ``code`` the stable word of the API's error, ``detail`` its sentence, ``field`` the
    request's key that is at fault (or None), ``retry_after`` the seconds after which a repeated request may succeed
    (or None).
    """

    def __init__(self, status: int, problem: Mapping[str, Any], retry_after: Optional[float] = None) -> None:
        self.status = status
        self.code = str(problem.get("code", ""))
        self.detail = str(problem.get("detail") or problem.get("title") or "HTTP status %d" % status)
        field = problem.get("field")
        self.field: Optional[str] = None if field is None else str(field)
        self.retry_after = retry_after
        self.problem: Dict[str, Any] = dict(problem)
        super().__init__(self.detail)

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (self.status, self.problem, self.retry_after)  # for other processes


class InvalidRequest(APIError):
    """400, 413, 415, 422: the request itself is wrong."""


class AuthenticationFailed(APIError):
    """401: the daemon wants a token. Set ATOLL_TOKEN or pass ``token=``."""


class PolicyRefusal(APIError):
    """403: the policy refuses the request."""


class NotFound(APIError):
    """404: the object does not exist, or belongs to another caller."""


class Conflict(APIError):
    """409: the object is in a state that does not allow this."""


class Busy(APIError):
    """429, 503: there is no room at present; ``retry_after`` says when to ask again."""


class ExecutionError(AtollError):
    """A program did not succeed; ``result`` has the whole account of it."""

    def __init__(self, result: "Result") -> None:
        self.result = result
        super().__init__(result.explain())

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (self.result,)


_BY_STATUS = {
    400: InvalidRequest,
    401: AuthenticationFailed,
    403: PolicyRefusal,
    404: NotFound,
    409: Conflict,
    413: InvalidRequest,
    415: InvalidRequest,
    422: InvalidRequest,
    429: Busy,
    503: Busy,
}


def api_error(status: int, problem: Mapping[str, Any], retry_after: Optional[float] = None) -> APIError:
    """The exception for an answer that is no success."""
    return _BY_STATUS.get(status, APIError)(status, problem, retry_after)
