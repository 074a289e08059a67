# SPDX-License-Identifier: Apache-2.0
"""A client of the daemon for tests: plain requests, streams of events, and WebSocket, without any library."""
import base64
import contextlib
import http.client
import json
import os
import signal
import socket
import struct
import time

import contract
import oracle
from daemon import Daemon
from program import FRONT

# A sanitizer keeps what was freed for a while and says a word of its own.
SANITIZED = FRONT.exists() and b"__asan_init" in FRONT.read_bytes()
# How much memory the front may keep of what goes through it. The sanitizers keep what is freed for a while.
GROWTH = (512 if SANITIZED else 32) << 20


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.body = status, body
        self.headers = {key.lower(): value for key, value in headers}

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"{self.status} {self.headers} {self.body[:2000]!r}"


def problem(answer, status, code=None, field=None):
    """Asserts that the answer is an API error (RFC 9457) of that status, code and field; its detail."""
    assert answer.status == status, answer
    assert answer.headers["content-type"] == "application/problem+json", answer
    found = answer.json()
    assert found["status"] == status and found["type"] == "about:blank" and found["title"], answer
    assert code is None or found["code"] == code, answer
    assert field is None or found.get("field") == field, answer
    assert found["detail"], answer
    return found["detail"]


class Web:
    """HTTP to one address; a connection for each request unless `keep` is given."""

    def __init__(self, host, port, token=None):
        self.host, self.port, self.token = host, port, token

    def connect(self, timeout=60):
        connection = http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def begin(self, connection, method, path, body=None, headers=()):
        """Sends a request; the response with its body still to be read."""
        headers = dict(headers)
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            headers.setdefault("Content-Type", "application/json")
        if self.token:
            headers.setdefault("Authorization", f"Bearer {self.token}")
        connection.request(method, path, body, headers)
        return connection.getresponse()

    def ask(self, method, path, body=None, headers=(), keep=None, timeout=60):
        connection = keep or self.connect(timeout)
        try:
            response = self.begin(connection, method, path, body, headers)
            answer = Answer(response.status, response.getheaders(), response.read())
            if contract.learned:
                contract.learned.answer(method, path, answer.status, answer.headers.get("content-type", ""), answer.body)
                # Jobs may be wrong, and other products' clients may send more than is read.
                if answer.status in (200, 201) and not path.startswith(("/execute", "/v1/tools", "/mcp")):
                    contract.learned.request(method, path, body)
            return answer
        finally:
            if not keep:
                connection.close()

    def get(self, path, **more):
        return self.ask("GET", path, **more)

    def post(self, path, body=None, **more):
        return self.ask("POST", path, {} if body is None else body, **more)

    def delete(self, path, **more):
        return self.ask("DELETE", path, **more)

    def execute(self, language, code, **more):
        """The result of a run that must have been answered with 200."""
        answer = self.post("/v1/execute", {"language": language, "code": code, **more}, timeout=60)
        assert answer.status == 200, answer
        return answer.json()

    def submit(self, language, code, query="", headers=(), **more):
        """The id of a job."""
        answer = self.post("/v1/executions" + query, {"language": language, "code": code, **more}, headers=headers)
        assert answer.status == 202, answer
        return answer.json()["id"]

    def state(self, id):
        answer = self.get(f"/v1/executions/{id}")
        assert answer.status == 200, answer
        return answer.json()

    def wait(self, id, *states, timeout=60):
        """Until it has one of these states; without any: until it has ended."""
        end = time.monotonic() + timeout
        while True:
            state = self.state(id)
            if state["status"] in states or (not states and state["status"] not in ("queued", "running")):
                return state
            assert time.monotonic() < end, state
            time.sleep(0.01)

    @contextlib.contextmanager
    def stream(self, method, path, body=None, accept="text/event-stream", headers=()):
        """The open response, to be read line by line."""
        connection = self.connect()
        try:
            response = self.begin(connection, method, path, body, {"Accept": accept, **dict(headers)})
            assert response.status == 200, (response.status, response.read())
            yield response
        finally:
            connection.close()


def sse(response):
    """(id, event, data) as they come; comments are passed over."""
    fields = {}
    for raw in response:
        line = raw.decode().rstrip("\n")
        if line == "":
            if fields:
                data = json.loads(fields["data"])
                if contract.learned:
                    contract.learned.event(data)
                yield fields.get("id"), fields.get("event"), data
            fields = {}
        elif not line.startswith(":"):
            key, _, value = line.partition(":")
            fields[key] = value.removeprefix(" ")


def output(events, name="stdout"):
    """What the program wrote, put together from events (data of SSE, lines of NDJSON)."""
    return "".join(event["data"] for event in events if event["event"] == name)


class LocalWeb(Web):
    """HTTP over a unix socket."""

    def __init__(self, path):
        super().__init__("localhost", 0)
        self.path = str(path)

    def connect(self, timeout=60):
        connection = http.client.HTTPConnection(self.host, timeout=timeout)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(timeout)
        connection.sock.connect(self.path)
        return connection


class WebSocket:
    """RFC 6455 by hand: text as str, binary as bytes, the end as None."""

    def __init__(self, web, path, headers=(), behind=b""):
        """behind: sent together with the handshake."""
        self.sock = socket.create_connection((web.host, web.port), timeout=60)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [f"GET {path} HTTP/1.1", f"Host: {web.host}:{web.port}", "Upgrade: websocket", "Connection: Upgrade",
                 f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13", *(f"{k}: {v}" for k, v in dict(headers).items())]
        if web.token:
            lines.append(f"Authorization: Bearer {web.token}")
        self.sock.sendall(("\r\n".join(lines) + "\r\n\r\n").encode() + behind)
        head = b""
        while b"\r\n\r\n" not in head:
            got = self.sock.recv(4096)
            assert got, head
            head += got
        head, rest = head.split(b"\r\n\r\n", 1)
        self.rest = bytearray(rest)  # a frame may have 200 MB: it grows in place
        self.status = int(head.split()[1])
        self.code = None

    def take(self, n):
        while len(self.rest) < n:
            got = self.sock.recv(1 << 20)
            assert got, "the connection ended inside a frame"
            self.rest += got
        data = bytes(self.rest[:n])
        del self.rest[:n]
        return data

    def frame(self, opcode, data):
        mask = os.urandom(4)
        n = len(data)
        size = struct.pack("!B", 0x80 | n) if n < 126 else struct.pack("!BH", 0xFE, n) if n < 65536 else \
            struct.pack("!BQ", 0xFF, n)
        masked = bytes(b ^ mask[i % 4] for i, b in enumerate(data)) if n < 4096 else \
            (int.from_bytes(data, "big") ^ int.from_bytes((mask * (n // 4 + 1))[:n], "big")).to_bytes(n, "big")
        self.sock.sendall(bytes([0x80 | opcode]) + size + mask + masked)

    def send(self, data):
        if isinstance(data, dict):
            data = json.dumps(data)
        self.frame(1 if isinstance(data, str) else 2, data.encode() if isinstance(data, str) else data)

    def receive(self):
        while True:
            first, second = self.take(2)
            n = second & 0x7F
            if n == 126:
                n, = struct.unpack("!H", self.take(2))
            elif n == 127:
                n, = struct.unpack("!Q", self.take(8))
            data, opcode = self.take(n), first & 0xF
            if opcode == 8:
                self.code = struct.unpack("!H", data[:2])[0] if data else None
                self.frame(8, data[:2])
                return None
            if opcode == 9:
                self.frame(10, data)
            elif opcode in (1, 2):
                return data.decode() if opcode == 1 else data

    def events(self):
        """Text frames as JSON until the end."""
        while (data := self.receive()) is not None:
            frame = data if isinstance(data, bytes) else json.loads(data)
            if contract.learned and isinstance(frame, dict) and frame.get("event", "error") != "error":
                contract.learned.event(frame)
            yield frame

    def until(self, event):
        for found in self.events():
            if isinstance(found, dict) and found["event"] == event:
                return found
        raise AssertionError(f"no {event}")

    def close(self):
        self.sock.close()


class Served:
    """A daemon and a client for it."""

    def __init__(self, atoll, work, *options, **more):
        self.daemon = Daemon(atoll, work, *options, **more)
        oracle.KEPT.add(self.daemon.pid)  # what it keeps warm is no leak of the test that runs
        self.web = Web(self.daemon.host, self.daemon.port)
        self.web.operator = LocalWeb(self.daemon.socket)
        self.wait_ready()

    def wait_ready(self):
        end, answer = time.monotonic() + 60, None
        while answer is None or answer.status != 200:
            assert time.monotonic() < end, answer
            time.sleep(0.02)
            with contextlib.suppress(OSError):
                answer = self.web.get("/readyz")
        contract.learn(self.web)

    def kill_front(self):
        """Kills the front with SIGKILL and waits until the monitor's new one is ready."""
        seen = len(self.daemon.records)
        os.kill(self.daemon.child("front"), signal.SIGKILL)
        self.daemon.wait_record("started", seen, process="front")
        self.wait_ready()

    def end(self):
        """In order, with nothing left."""
        code = self.daemon.end()
        oracle.KEPT.discard(self.daemon.pid)
        assert code == 0, (self.daemon.records[-20:], self.daemon.other[-20:])
