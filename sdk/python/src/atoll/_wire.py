# SPDX-License-Identifier: Apache-2.0
"""Requests and answers of the API, without any connection.

A ``Call`` is one request; ``Answer`` is what came back. Both kinds of client (threads, asyncio) send the same calls and
decode answers with the same functions, so a route is described once, in ``_calls``.
"""
from __future__ import annotations

import json
import random
import time
from typing import Any, Dict, Iterator, Mapping, NamedTuple, Optional

from ._address import Address
from ._errors import APIError, Busy, api_error

VERSION = "0.1.0"


class Call(NamedTuple):
    """One request to the daemon."""

    method: str
    target: str
    body: Optional[bytes] = None
    accept: str = "application/json"
    content_type: str = "application/json"
    headers: Mapping[str, str] = {}
    idempotent: bool = False  # may be sent again when an idle connection turns out to be closed

    def header_lines(self, address: Address, token: Optional[str]) -> Dict[str, str]:
        """The headers to send, without those of the connection."""
        lines = {"Host": address.host_header, "Accept": self.accept, "User-Agent": "atoll-python/" + VERSION}
        if self.body is not None:
            lines["Content-Type"] = self.content_type
            lines["Content-Length"] = str(len(self.body))
        if token:
            lines["Authorization"] = "Bearer " + token
        lines.update(self.headers)
        return lines

    def head_bytes(self, address: Address, token: Optional[str]) -> bytes:
        """The request's head as it travels."""
        lines = ["%s %s HTTP/1.1" % (self.method, self.target)]
        lines += ["%s: %s" % item for item in self.header_lines(address, token).items()]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


class Answer(NamedTuple):
    """A whole answer."""

    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes

    def check(self) -> "Answer":
        """This answer, or the exception that it stands for."""
        if self.status >= 400:
            raise refusal(self.status, self.headers, self.body)
        return self

    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body.decode("utf-8"))


def refusal(status: int, headers: Mapping[str, str], body: bytes) -> APIError:
    """The exception for an answer of 400 and more."""
    try:
        problem = json.loads(body.decode("utf-8"))
    except ValueError:
        problem = {}
    after = headers.get("retry-after", "")
    return api_error(status, problem if isinstance(problem, dict) else {}, float(after) if after.isdigit() else None)


class Patience:
    """How long a client asks again when the daemon has no room. A refused request has not begun, so it may be repeated."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def pause(self, error: Busy) -> float:
        """The seconds to wait before the next try; raises the error when the time is over."""
        if time.monotonic() >= self._end:
            raise error
        return (error.retry_after or 0.5) * random.uniform(0.5, 1.5)


def event_of(line: bytes) -> Optional[Dict[str, Any]]:
    """The event in a line of NDJSON; None for an empty line."""
    event = json.loads(line.decode("utf-8")) if line.strip() else None
    return event if isinstance(event, dict) else None


def events_in(lines: Iterator[bytes]) -> Iterator[Dict[str, Any]]:
    """The events of an NDJSON stream."""
    for line in lines:
        event = event_of(line)
        if event is not None:
            yield event
