#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""An internet of two machines, without the internet: network namespaces, joined by a cable, whose addresses count as public.

`Internet` makes them, as root. Programs with its `wrap` before them run on the near machine, whose resolver knows the names of NAMES. On
the far machine servers listen at PORTS. As a program, this file is the far machine's server or the near machine's resolver.
"""
import contextlib
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

NEAR, FAR, FAR_IPV6 = "93.184.216.1", "93.184.216.34", "2606:2800::34"
PRIVATE = "10.77.0.2"  # the far machine's, too
PORTS = (80, 443)
NAMES = {"pub.test": [FAR], "a.wild.test": [FAR], "six.test": [FAR_IPV6], "private.test": [PRIVATE], "meta.test": ["169.254.169.254"],
         "mixed.test": [PRIVATE, FAR], "loop.test": ["127.0.0.1"], "near.test": [NEAR], "dead.test": ["93.184.216.99"]}
FLIPPING = "flip-"  # names that are public when they are asked for first, and private from then on


class Internet:
    def __init__(self):
        self.dir = tempfile.TemporaryDirectory(prefix="tests-internet-")
        Path(self.dir.name, "resolv.conf").write_text("nameserver 127.0.0.1\noptions timeout:1 attempts:2\n")
        Path(self.dir.name, "hosts").write_text("127.0.0.1 localhost\n")
        os.chmod(self.dir.name, 0o755)
        binds = " && ".join(f"mount --bind {self.dir.name}/{name} /etc/{name}" for name in ("resolv.conf", "hosts"))
        self.far = self.start("far", ["unshare", "-n"])
        self.near = self.start("near", ["unshare", "-nm", "sh", "-c", f'mount --make-rprivate / && {binds} && exec "$@"', "sh"])
        cable = ["ip", "link", "add", "cable", "netns", str(self.near.pid), "type", "veth", "peer", "name", "cable", "netns", str(self.far.pid)]
        subprocess.run(cable, check=True)
        for process in (self.far, self.near):
            process.stdin.write(b"go\n")
            process.stdin.flush()
            assert process.stdout.readline() == b"up\n"

    def start(self, role, prefix):
        process = subprocess.Popen([*prefix, sys.executable, __file__, role], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdout.readline() == b"ready\n"
        return process

    def wrap(self, directory):
        """Before a command: it runs on the near machine, in this directory."""
        return ["nsenter", "-t", str(self.near.pid), "-n", "-m", f"--wd={directory}", "--"]

    def ask(self, process, command):
        process.stdin.write(command.encode() + b"\n")
        process.stdin.flush()
        return process.stdout.readline().decode().strip()

    def names_asked(self):
        """The names that the near machine's resolver was asked for, each once a query."""
        return self.ask(self.near, "asked").split()

    def broken(self):
        """How many connections the far machine's servers have seen break."""
        return int(self.ask(self.far, "broken"))

    def close(self):
        for process in (self.near, self.far):
            process.stdin.close()
            process.wait()
            process.stdout.close()
        self.dir.cleanup()


# --- the two machines ---

COUNTS = {"broken": 0, "asked": []}


def configure(*addresses):
    print("ready", flush=True)
    sys.stdin.readline()
    commands = ["link set lo up", *(f"addr add {a} dev cable" + (" nodad" if ":" in a else "") for a in addresses), "link set cable up"]
    for command in commands:
        subprocess.run(["ip", *command.split()], check=True)


def serve(connection):
    """`get N`: N bytes; `sink`: counts bytes until the end; `hold`: nothing, until the end; anything else: an echo, or HTTP."""
    try:
        with connection, connection.makefile("rb") as stream:
            word, _, rest = stream.readline().decode("latin-1").strip().partition(" ")
            if word == "get":
                connection.sendall(bytes(i % 251 for i in range(251)) * (int(rest) // 251 + 1))
            elif word == "sink":
                connection.sendall(b"%d\n" % sum(len(chunk) for chunk in iter(lambda: stream.read(1 << 16), b"")))
            elif word == "hold":
                stream.read()
            elif word == "GET":
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nhi\n")
            else:
                connection.sendall(f"echo {word} {rest}".encode("latin-1"))
    except OSError:
        COUNTS["broken"] += 1


def listen(family, port):
    listener = socket.create_server(("", port), family=family, backlog=1024)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=serve, args=(connection,), daemon=True).start()


def addresses_of(name):
    if name.startswith(FLIPPING):
        return [PRIVATE if COUNTS["asked"].count(name) > 2 else FAR]  # A and AAAA are one resolution
    return NAMES.get(name)


def answer_names():
    resolver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    resolver.bind(("127.0.0.1", 53))
    while True:
        query, client = resolver.recvfrom(512)
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1:at + 1 + query[at]].decode("latin-1"))
            at += query[at] + 1
        kind, name = struct.unpack_from(">H", query, at + 1)[0], ".".join(labels).lower()
        COUNTS["asked"].append(name)
        known = addresses_of(name)
        family = {1: socket.AF_INET, 28: socket.AF_INET6}.get(kind)
        found = [socket.inet_pton(family, a) for a in known or () if family and (":" in a) == (kind == 28)]
        head = query[:2] + struct.pack(">HHHHH", 0x8180 if known else 0x8183, 1, len(found), 0, 0)
        records = b"".join(struct.pack(">HHHIH", 0xc00c, kind, 1, 0, len(data)) + data for data in found)
        resolver.sendto(head + query[12:at + 5] + records, client)


def main(role):
    if role == "far":
        configure(f"{FAR}/24", f"{PRIVATE}/24", f"{FAR_IPV6}/64")
        work = [(listen, (family, port)) for family in (socket.AF_INET, socket.AF_INET6) for port in PORTS]
    else:
        configure(f"{NEAR}/24", "10.77.0.1/24", "2606:2800::1/64")
        work = [(answer_names, ()), (listen, (socket.AF_INET, 80))]  # a server of this machine's own
    for target, arguments in work:
        threading.Thread(target=target, args=arguments, daemon=True).start()
    print("up", flush=True)
    for line in sys.stdin:
        counted = COUNTS[line.strip()]
        print(" ".join(counted) if isinstance(counted, list) else counted, flush=True)
    os._exit(0)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main(sys.argv[1])
