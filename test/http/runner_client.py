# SPDX-License-Identifier: Apache-2.0
"""A client of doc/runner-protocol.md, from that page and the standard library alone: it shares no code with Atoll.

    with Runner("/run/atoll/atoll.sock") as run:
        run.open({"language": "python", "code": "print(1)"})
        run.start()
        print(run.until("Z"))
"""
import json
import socket
import struct

TEXTS = set("ARsturhi")


class Runner:
    def __init__(self, where, token=None, timeout=60):
        """where: the path of a unix socket, or (host, port)."""
        if isinstance(where, tuple):
            self.socket = socket.create_connection(where, timeout)
        else:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(timeout)
            self.socket.connect(str(where))
        name = "%s:%d" % where if isinstance(where, tuple) else "localhost"
        head = f"GET /v1/runner HTTP/1.1\r\nHost: {name}\r\nConnection: Upgrade\r\nUpgrade: atoll-runner/1\r\n"
        self.socket.sendall((head + (f"Authorization: Bearer {token}\r\n" if token else "") + "\r\n").encode())
        self.bytes = b""
        self.seen = []
        self.answer = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    # --- out ---

    def send(self, kind, payload=b""):
        data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        self.socket.sendall(struct.pack(">I", 1 + len(data)) + kind.encode() + data)

    def open(self, request):
        self.send("O", request)

    def start(self, **how):
        self.send("S", how)

    # --- in ---

    def more(self):
        piece = self.socket.recv(65536)
        if not piece:
            raise EOFError(self.seen)
        self.bytes += piece

    def take(self, n):
        while len(self.bytes) < n:
            self.more()
        taken, self.bytes = self.bytes[:n], self.bytes[n:]
        return taken

    def upgrade(self):
        """The status line of the answer, which comes once."""
        while b"\r\n\r\n" not in self.bytes:
            self.more()
        head, _, self.bytes = self.bytes.partition(b"\r\n\r\n")
        self.answer = head.decode()
        return int(self.answer.split()[1])

    def receive(self):
        """One packet: its kind, and its payload as bytes, a tree, or for END two trees."""
        if self.answer is None and self.upgrade() != 101:
            raise ConnectionError(self.answer)
        n = struct.unpack(">I", self.take(4))[0]
        kind, payload = self.take(1).decode(), self.take(n - 1)
        if kind in TEXTS:
            payload = json.loads(payload)
        elif kind == "Z":
            payload = tuple(json.loads(text) for text in payload.split(b"\n", 1))
        self.seen.append((kind, payload))
        return kind, payload

    def until(self, kinds):
        while True:
            kind, payload = self.receive()
            if kind in kinds:
                return payload

    def output(self, kind="o"):
        return b"".join(payload for have, payload in self.seen if have == kind)
