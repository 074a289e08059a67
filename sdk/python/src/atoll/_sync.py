# SPDX-License-Identifier: Apache-2.0
"""Connections for threads: a pool of keep-alive connections over http.client.

A connection belongs to one call at a time. An idle one that has become readable was closed by the daemon and is dropped
before it is used, so that a request that must not run twice is never sent twice.
"""
from __future__ import annotations

import errno
import http.client
import os
import select
import socket
import threading
import time
from typing import Iterator, List, Optional

from ._address import Address
from ._errors import AtollError, Busy, ConnectionFailed
from ._wire import Answer, Call, Patience, refusal

IDLE_MAX = 64
NO_DESCRIPTOR_SECONDS = 0.1  # until another call may have ended
CONNECT_SECONDS = 10.0


class _Connection(http.client.HTTPConnection):
    """A connection to a unix socket or a port."""

    def __init__(self, address: Address) -> None:
        super().__init__(address.host or "localhost", address.port or 80)
        self._address = address

    def connect(self) -> None:
        """Connects; later reads have no time-out, because programs may be silent for long."""
        if self._address.path:
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            sock.settimeout(CONNECT_SECONDS)
            try:
                sock.connect(self._address.path)
            except BaseException:
                sock.close()
                raise
        else:
            sock = socket.create_connection((self._address.host, self._address.port), CONNECT_SECONDS)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.settimeout(None)
        self.sock = sock

    def is_fresh(self) -> bool:
        """Whether the daemon has kept this idle connection open."""
        if self.sock is None:
            return False
        poll = select.poll()
        poll.register(self.sock, select.POLLIN)
        return not poll.poll(0)


class Transport:
    """Sends calls to one daemon; safe to use from several threads."""

    def __init__(self, address: Address, token: Optional[str], patience: float = 0.0) -> None:
        self.address = address
        self._token = token
        self._patience = patience
        self._idle: List[_Connection] = []
        self._lock = threading.Lock()
        self._pid = os.getpid()

    def close(self) -> None:
        """Closes the idle connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _take(self) -> _Connection:
        with self._lock:
            while self._idle:
                connection = self._idle.pop()
                # A connection from before a fork is the parent's, too.
                if self._pid == os.getpid() and connection.is_fresh():
                    return connection
                connection.close()
            self._pid = os.getpid()
        return _Connection(self.address)

    def _give_back(self, connection: _Connection) -> None:
        with self._lock:
            if len(self._idle) < IDLE_MAX and connection.sock is not None:
                self._idle.append(connection)
                return
        connection.close()

    def _open(self, connection: _Connection, call: Call) -> http.client.HTTPResponse:
        try:
            connection.request(call.method, call.target, call.body, call.header_lines(self.address, self._token))
            return connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            raise connection_failed(self.address, error) from error

    def call(self, call: Call) -> Answer:
        """Sends a call and reads its whole answer, again where the daemon has no room. An interrupt closes the connection."""
        patience = Patience(self._patience)
        while True:
            try:
                return self._call_once(call)
            except Busy as error:
                time.sleep(patience.pause(error))

    def _call_once(self, call: Call) -> Answer:
        connection = self._take()
        try:
            response = self._open(connection, call)
            body = response.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise error if isinstance(error, ConnectionFailed) else answer_cut() from error
        except BaseException:
            connection.close()
            raise
        headers = {name.lower(): value for name, value in response.getheaders()}
        self._give_back(connection)
        return Answer(response.status, headers, body).check()

    def lines(self, call: Call) -> Iterator[bytes]:
        """Sends a call and gives its answer line by line. Leaving the loop early closes the connection."""
        patience = Patience(self._patience)
        while True:
            try:
                return (yield from self._lines_once(call))
            except Busy as error:
                time.sleep(patience.pause(error))

    def _lines_once(self, call: Call) -> Iterator[bytes]:
        connection = self._take()
        whole = False
        try:
            response = self._open(connection, call)
            if response.status >= 400:
                headers = {name.lower(): value for name, value in response.getheaders()}
                raise refusal(response.status, headers, response.read())
            for line in iter(lambda: _next_line(response), b""):
                yield line
            whole = True
        finally:
            if whole:
                self._give_back(connection)
            else:
                connection.close()


def _next_line(response: http.client.HTTPResponse) -> bytes:
    """A line, b"" at the end."""
    try:
        return response.readline()
    except (OSError, http.client.HTTPException) as error:
        raise answer_cut() from error


def answer_cut() -> ConnectionFailed:
    """The exception for a daemon that went away while it answered."""
    return ConnectionFailed("the daemon closed the connection in the middle of an answer")


def connection_failed(address: Address, error: BaseException) -> AtollError:
    """The exception for a daemon that does not answer, with the way to start one. Where this process has no descriptor left, there is no
    room at present: another call will give one back."""
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        detail = "this process has too many open files for another connection; raise `ulimit -n`, or run less at once"
        return Busy(503, {"code": "busy", "detail": detail}, NO_DESCRIPTOR_SECONDS)
    return ConnectionFailed("no daemon answers at %s (%s); start one with `atoll serve`, or set ATOLL_URL to the address of one"
                            % (address, getattr(error, "strerror", None) or error or type(error).__name__))
