# SPDX-License-Identifier: Apache-2.0
"""A daemon under attack: two accounts, raw sockets, and what the front holds while it is attacked."""
import contextlib
import json
import os
import re
import socket
import statistics
import struct
import subprocess
import sys
import time
from pathlib import Path

import oracle
from daemon import Daemon
from web import Web

ALICE, BOB = "alice-of-the-first-account", "bob-of-the-second-account"
# What no answer may tell: where anything of ours lies on this machine.
INNARDS = re.compile(rb"/(var|home|root|proc|work|run|usr/lib|sys)/|tests-|history\.db|broker\.sock|atolld")


class Siege:
    """`atoll serve` with the two accounts (or, with tokens=False, with none) and a few ways to mistreat it."""

    def __init__(self, atoll, work, *options, tokens=True, kind=Daemon, **more):
        self.atoll, self.work = atoll, work
        words = [word for setting in options for word in ("--set", setting)]
        if tokens:
            path = work / "tokens"
            path.write_text(f"{ALICE}\n{BOB}\n")
            path.chmod(0o600)
            if atoll.rootless and oracle.IS_ROOT:
                os.chown(path, oracle.NOBODY, oracle.NOBODY)
            words += ["--token-file", path]
        self.daemon = kind(atoll, work, *words, **more)
        oracle.KEPT.add(self.daemon.pid)
        self.host, self.port = self.daemon.host, self.daemon.port
        self.alice, self.bob = (Web(self.host, self.port, token if tokens else None) for token in (ALICE, BOB))
        self.nobody = Web(self.host, self.port)
        end = time.monotonic() + 60
        while self.nobody.get("/readyz").status != 200:
            assert time.monotonic() < end
            time.sleep(0.02)
        self.fronts = self.front

    @property
    def front(self):
        return self.daemon.child("front")

    @property
    def headers(self):
        """Of a raw request of the first account."""
        return f"Host: {self.host}:{self.port}\r\n" + (f"Authorization: Bearer {ALICE}\r\n" if self.alice.token else "")

    def connect(self, rcvbuf=None, timeout=30):
        s = socket.socket()
        if rcvbuf:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        s.settimeout(timeout)
        s.connect((self.host, self.port))
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return s

    def raw(self, data, timeout=30):
        """What comes back until the server ends the connection; fails when it does not."""
        with self.connect(timeout=timeout) as s:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                s.sendall(data if isinstance(data, bytes) else data.encode("latin1"))
            return read_all(s)

    def rss(self, key="VmRSS"):
        """MiB of the front."""
        return int(re.search(rf"{key}:\s+(\d+)", Path(f"/proc/{self.front}/status").read_text())[1]) / 1024

    def links(self):
        """What the front has open."""
        kinds = []
        for fd in os.listdir(f"/proc/{self.front}/fd"):
            with contextlib.suppress(FileNotFoundError):
                kinds.append(os.readlink(f"/proc/{self.front}/fd/{fd}"))
        return sorted(kinds)

    def fds(self):
        """Descriptors of the front."""
        return len(self.links())

    def executions(self, web=None):
        return len((web or self.alice).get("/v1/executions?limit=1000").json()["executions"])

    def settle(self, fds, timeout=30):
        """Until the front holds no more descriptors than it did."""
        end = time.monotonic() + timeout
        while self.fds() > fds:
            assert time.monotonic() < end, f"{self.fds()} descriptors, {fds} before: {self.links()}"
            time.sleep(0.02)

    def well(self):
        """The same front as ever answers, runs programs, and has nothing to complain of."""
        assert self.front == self.fronts, "the front died"
        assert self.alice.execute("bash", "echo well")["stdout"] == "well\n"
        bad = [r for r in self.daemon.records if r["level"] == "error"]
        assert not bad and not self.daemon.other, (bad, self.daemon.other)

    def end(self):
        code = self.daemon.end()
        oracle.KEPT.discard(self.daemon.pid)
        assert code == 0, (self.daemon.records[-20:], self.daemon.other[-20:])


def read_all(s):
    pieces = []
    with contextlib.suppress(ConnectionResetError):
        while piece := s.recv(65536):
            pieces.append(piece)
    return b"".join(pieces)


def status_of(answer):
    """Of raw bytes; 0: nothing came."""
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else 0


def reset(s):
    """Ends a connection the way a pulled cable does."""
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()


def discreet(answer):
    """An error that tells nothing of the host; its problem."""
    assert answer.status >= 400, answer
    assert not INNARDS.search(answer.body), answer
    assert answer.headers["content-type"] == "application/problem+json", answer
    return answer.json()


class Pulse:
    """Asks for the health all the time, from a process of its own; what it took. A connection each, as a health check has.
    And asks an idle process, as often: the time that takes is the machine's, not the daemon's."""

    CODE = """
import http.client, json, select, socket, sys, threading, time
idle = socket.create_server(("127.0.0.1", 0))
def serve():
    while True:
        with idle.accept()[0] as peer:
            peer.recv(65536)
            peer.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok")
def ask(host, port):
    connection, begin = http.client.HTTPConnection(host, port, timeout=60), time.monotonic()
    connection.request("GET", "/healthz")
    response = connection.getresponse()
    assert response.status == 200 and response.read(), response.status
    connection.close()
    return time.monotonic() - begin
threading.Thread(target=serve, daemon=True).start()
took, usual = [], []
while not took or not select.select([0], [], [], 0.01)[0]:
    took.append(ask(sys.argv[1], int(sys.argv[2])))
    usual.append(ask(*idle.getsockname()))
print(json.dumps([took, usual]))
"""

    def __init__(self, siege):
        self.process = subprocess.Popen([sys.executable, "-c", self.CODE, siege.host, str(siege.port)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        oracle.KEPT.add(self.process.pid)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        text = self.process.communicate(b"\n")[0]
        oracle.KEPT.discard(self.process.pid)
        assert self.process.returncode == 0, "the health could not be had"
        self.took, self.others = map(sorted, json.loads(text))
        self.usual = statistics.median(self.others)

    def median(self):
        """What half of them took more than twice what the machine would let any process have."""
        return statistics.median(self.took) - 2 * self.usual

    def most(self):
        """The same of all but one in fifty."""
        at = -1 - len(self.took) // 50
        return self.took[at] - 2 * self.others[at]


def frame(opcode, data=b"", fin=True, mask=True, rsv=0):
    """A WebSocket frame; the mask is zero so that what is sent can be read."""
    n = len(data)
    size = bytes([n]) if n < 126 else b"\x7e" + struct.pack("!H", n) if n < 65536 else b"\x7f" + struct.pack("!Q", n)
    return bytes([(0x80 if fin else 0) | rsv << 4 | opcode, size[0] | (0x80 if mask else 0)]) + size[1:] + \
        (b"\0\0\0\0" if mask else b"") + data


def records(path):
    """Lines of JSON of a log; fails on a line that is none."""
    return [json.loads(line) for line in path.read_text().splitlines()]
