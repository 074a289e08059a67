# SPDX-License-Identifier: Apache-2.0
"""Files and sockets of the host that no program in a sandbox may read or reach."""
import os
import secrets
import shutil
import socket
import tempfile
import threading
from pathlib import Path


class Canary:
    """Things outside that a program inside must neither read nor reach."""

    def __init__(self):
        self.text = "canary-" + secrets.token_hex(16)
        self.dir = Path(tempfile.mkdtemp(prefix="tests-canary-", dir="/var/tmp"))
        self.dir.chmod(0o755)
        self.public, self.secret = self.dir / "public", self.dir / "secret"
        for path, bits in ((self.public, 0o644), (self.secret, 0o600)):
            path.write_text(self.text)
            path.chmod(bits)
        self.reached = []
        self.sockets = []
        tcp = self.listen("tcp", socket.AF_INET, ("127.0.0.1", 0))
        self.port = tcp.getsockname()[1]
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", self.port))
        self.sockets.append(self.udp)
        threading.Thread(target=self.receive, daemon=True).start()
        self.abstract = "canary-" + secrets.token_hex(8)
        self.listen("abstract", socket.AF_UNIX, "\0" + self.abstract)
        self.path = str(self.dir / "socket")
        self.listen("path", socket.AF_UNIX, self.path)
        os.chmod(self.path, 0o777)

    def listen(self, name, family, address):
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.bind(address)
        sock.listen(16)
        self.sockets.append(sock)
        threading.Thread(target=self.accept, args=(name, sock), daemon=True).start()
        return sock

    def accept(self, name, sock):
        while True:
            try:
                peer, _ = sock.accept()
            except OSError:
                return
            self.reached.append(name)
            peer.close()

    def receive(self):
        while True:
            try:
                self.udp.recvfrom(1)
            except OSError:
                return
            self.reached.append("udp")

    def untouched(self):
        return self.public.read_text() == self.text == self.secret.read_text() and not self.reached

    def close(self):
        for sock in self.sockets:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            sock.close()
        shutil.rmtree(self.dir, ignore_errors=True)
