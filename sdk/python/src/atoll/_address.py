# SPDX-License-Identifier: Apache-2.0
"""Where the daemon listens, and the token it wants.

Order: an explicit URL, ``ATOLL_URL``, ``ATOLL_SOCKET``, the socket of the user's own daemon, the socket of the machine's daemon. One that
is set is the address, also when no daemon answers there: nothing takes the place of a daemon that was named. Of the last two, the first
that exists is. None means that no daemon is known, or, with ``off``, that none is to be looked for.
"""
from __future__ import annotations

import os
from typing import List, NamedTuple, Optional
from urllib.parse import urlsplit

from ._errors import AtollError

SYSTEM_SOCKET = "/run/atoll/atoll.sock"


class Address(NamedTuple):
    """A daemon's address: a unix socket's path, or host and port."""

    path: Optional[str]
    host: str
    port: int

    def __str__(self) -> str:
        return "unix:%s" % self.path if self.path else "http://%s:%d" % (self.host, self.port)

    @property
    def host_header(self) -> str:
        """The value of the Host header."""
        if self.path:
            return "localhost"
        host = "[%s]" % self.host if ":" in self.host else self.host
        return "%s:%d" % (host, self.port)


def parse_address(text: str) -> Address:
    """An address from ``/path``, ``unix:/path`` or ``http://host:port``.

    >>> str(parse_address("unix:/run/atoll/atoll.sock")), str(parse_address("http://127.0.0.1:8700"))
    ('unix:/run/atoll/atoll.sock', 'http://127.0.0.1:8700')
    """
    if text.startswith("unix:"):
        text = text[len("unix:"):]
    if text.startswith("/"):
        return Address(text, "", 0)
    parts = urlsplit(text if "//" in text else "http://" + text)
    if parts.scheme != "http" or not parts.hostname or parts.path not in ("", "/"):
        raise AtollError("%r is no address of a daemon; use http://HOST:PORT or unix:/PATH" % text)
    return Address(None, parts.hostname, parts.port or 8700)


def default_sockets() -> List[str]:
    """The sockets of daemons that were started without ``--socket``, the user's own first: where the daemon and the command line look."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    place = os.environ.get("XDG_RUNTIME_DIR") or state
    return [os.path.join(place, "atoll", "atoll.sock"), SYSTEM_SOCKET]


def find_address(url: Optional[str] = None) -> Optional[Address]:
    """The address to ask, or None when no daemon is known."""
    text = url or os.environ.get("ATOLL_URL")
    if text:
        return None if text == "off" else parse_address(text)
    named = os.environ.get("ATOLL_SOCKET")
    if named:
        return None if named == "off" else Address(named, "", 0)
    for path in default_sockets():
        if os.access(path, os.W_OK):
            return Address(path, "", 0)
    return None


def find_token(token: Optional[str] = None) -> Optional[str]:
    """The token to send: the given one, ``ATOLL_TOKEN``, or the first of ``ATOLL_TOKEN_FILE``."""
    if token or os.environ.get("ATOLL_TOKEN"):
        return token or os.environ["ATOLL_TOKEN"]
    path = os.environ.get("ATOLL_TOKEN_FILE")
    if not path:
        return None
    with open(path, encoding="utf-8") as file:
        for line in file:
            words = line.split()
            if words and not words[0].startswith("#"):
                return words[0]
    return None
