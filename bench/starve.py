#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What one caller's `print(1)` takes while other callers do their worst.

  bench/starve.py [--quick] [--loads waits,halves,questions,health,readers,sessions] [--atoll PROGRAM] [--out DIR]

Each load by itself, then all at once. Prints a table and the bar, writes build-results/starve.json; exit status 1 when a bar is
missed or something stopped it. README.md says how it measures.
"""

import argparse
import contextlib
import json
import os
import pathlib
import random
import resource
import selectors
import signal
import socket
import struct
import subprocess
import sys
import time

import peers
import stats
from bench import Wrong, machine
from dockerd import reap
from serve import Daemon

ROOT = peers.ROOT
VICTIM = "the-token-of-the-victim"
SESSIONS = 48
P99_MS, MIB = 100, 1 << 20
FLOOD = """import os, time
block = b"x" * 79 + b"\\n"
while True:
    os.write(1, block * 50)
    time.sleep(0.002)
"""


class Front:
    """The daemon as one caller sees it; token None: without one."""

    def __init__(self, port, token):
        self.port, self.token = port, token

    def connect(self, seconds=60):
        sock = socket.create_connection(("127.0.0.1", self.port), timeout=seconds)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock

    def text(self, method, path, body=None, **headers):
        lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{self.port}"]
        if self.token:
            lines.append(f"Authorization: Bearer {self.token}")
        data = b"" if body is None else json.dumps(body).encode()
        if body is not None:
            lines += ["Content-Type: application/json", f"Content-Length: {len(data)}"]
        lines += [f"{key.replace('_', '-')}: {value}" for key, value in headers.items()]
        return ("\r\n".join(lines) + "\r\n\r\n").encode() + data

    def exchange(self, sock, request):
        """(status, body) of an answer with a length."""
        sock.sendall(request)
        data = b""
        while b"\r\n\r\n" not in data:
            got = sock.recv(65536)
            if not got:
                raise ConnectionError("closed before an answer")
            data += got
        head, _, body = data.partition(b"\r\n\r\n")
        length = int(next((line.split(b":")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")), 0))
        while len(body) < length:
            got = sock.recv(65536)
            if not got:
                raise ConnectionError("closed inside an answer")
            body += got
        return int(head.split()[1]), body

    def ask(self, method, path, body=None):
        with self.connect() as sock:
            return self.exchange(sock, self.text(method, path, body, Connection="close"))


# --- loads: each in a process of its own, until its standard input ends --------------------------------------------------------


class Crowd:
    """Many connections in one thread. What they send is repeated as it is answered; what comes back is thrown away."""

    def __init__(self, front, size, request, repeat=False):
        """request(n): the bytes that connection n sends."""
        self.front, self.size, self.request, self.repeat = front, size, request, repeat
        self.selector, self.left, self.began, self.opened = selectors.DefaultSelector(), {}, 0, 0

    def begin(self, n):
        sock = socket.socket()
        sock.setblocking(False)
        sock.connect_ex(("127.0.0.1", self.front.port))
        self.left[sock] = self.request(n)
        self.opened += 1
        self.selector.register(sock, selectors.EVENT_READ | selectors.EVENT_WRITE, n)

    def end(self, sock):
        self.selector.unregister(sock)
        del self.left[sock]
        sock.close()

    def serve(self, seconds):
        """Fills the crowd at once, then keeps it complete with at most 500 new connections a second."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if len(self.left) < self.size and time.monotonic() - self.began > 0.02:
                self.began = time.monotonic()
                for _ in range(min(10 if self.opened >= self.size else 100, self.size - len(self.left))):
                    self.begin(random.randrange(1 << 30))
            for key, events in self.selector.select(0.02):
                self.move(key, events)

    def move(self, key, events):
        sock = key.fileobj
        try:
            if events & selectors.EVENT_WRITE:
                self.left[sock] = self.left[sock][sock.send(self.left[sock][:MIB]):]
                if not self.left[sock] and self.repeat:
                    self.left[sock] = self.request(key.data)
                elif not self.left[sock]:
                    self.selector.modify(sock, selectors.EVENT_READ, key.data)
            if events & selectors.EVENT_READ and not sock.recv(MIB):
                self.end(sock)
        except BlockingIOError:
            pass
        except OSError:
            self.end(sock)

    def swap(self, count):
        """So many close at once, without reading what they asked for."""
        for sock in random.sample(list(self.left), min(count, len(self.left))):
            self.end(sock)


def accepted(front, body):
    """The id of a job, once the daemon takes it."""
    while True:
        status, answer = front.ask("POST", "/v1/executions", body)
        if status == 202:
            return json.loads(answer)["id"]
        time.sleep(0.2)


def upgrade(front, path):
    return front.text("GET", path, Connection="Upgrade", Upgrade="websocket", Sec_WebSocket_Version=13, Sec_WebSocket_Key="dGhlIHNhbXBsZSBub25jZQ==")


def load_waits(front, sizes):
    """All connections there are: long polls, event streams and WebSockets of one job, of which some close and others come."""
    job = accepted(front, {"language": "bash", "code": "sleep 300", "limits": {"timeout": 300}})
    path = f"/v1/executions/{job}"
    kinds = [front.text("GET", path + "?wait=60"), front.text("GET", path + "/events"), upgrade(front, path + "/attach")]
    crowd = Crowd(front, sizes["connections"], lambda n: kinds[n % 3])
    yield from crowd_of(crowd, swap=50)


def load_halves(front, sizes):
    """MCP messages of 15 MiB over WebSockets, of which the last bytes do not come."""
    size = sizes["half_bytes"]
    frame = struct.pack("!BBQ", 0x81, 0xFF, size) + bytes(4) + b'{"' + b"x" * (size - 4096)
    yield from crowd_of(Crowd(front, sizes["halves"], lambda n: upgrade(front, "/mcp") + frame))


def load_questions(front, sizes):
    """64 connections that ask for what is expensive, one question behind the other."""
    paths = ("/openapi.json", "/v1/stats", "/v1/executions?limit=1000")
    for _ in range(sizes["rows"]):
        front.ask("POST", "/v1/executions", {"language": "bash", "code": "true"})
    yield from crowd_of(Crowd(front, 64, lambda n: front.text("GET", paths[n % 3]) * 16, repeat=True))


def load_health(front, sizes):
    """The same without a token: 64 connections, 512 questions each."""
    yield from crowd_of(Crowd(Front(front.port, None), 64, lambda n: Front(front.port, None).text("GET", "/healthz") * 512, repeat=True))


def load_readers(front, sizes):
    """Event streams of one program that prints without end."""
    job = accepted(front, {"language": "python", "code": FLOOD, "limits": {"timeout": 300, "cpu_time": 300, "output_total": 1 << 30}})
    yield from crowd_of(Crowd(front, sizes["readers"], lambda n: front.text("GET", f"/v1/executions/{job}/events")))


def load_sessions(front, sizes):
    """As many sessions as the daemon gives."""
    for _ in range(SESSIONS * 2):
        status, _ = front.ask("POST", "/v1/sessions", {"language": "python"})
        if status != 201:
            break
    while True:
        yield
        time.sleep(0.2)
        with contextlib.suppress(OSError):
            front.ask("POST", "/v1/sessions", {"language": "python"})


def crowd_of(crowd, swap=0):
    end = time.monotonic() + 30
    while crowd.opened < crowd.size and time.monotonic() < end:
        crowd.serve(0.2)
    while True:
        yield
        crowd.serve(0.3)
        crowd.swap(swap)


LOADS = {name[5:]: fn for name, fn in list(globals().items()) if name.startswith("load_")}


def generate(options):
    """Says "ready" when the load is there. Nice: a caller's own computer is none of the daemon's."""
    os.nice(19)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 16384), min(hard, 16384)))
    os.set_blocking(0, False)
    work = LOADS[options.generate](Front(options.port, options.token), json.loads(options.sizes))
    next(work)
    print("ready", flush=True)
    while os.read(0, 1) if readable(0) else True:
        next(work)


def readable(fd):
    with selectors.DefaultSelector() as selector:
        selector.register(fd, selectors.EVENT_READ)
        return bool(selector.select(0))


# --- the measurement -----------------------------------------------------------------------------------------------------------


class Run:
    def __init__(self, options):
        self.options = options
        self.bench = peers.Bench(options.atoll)
        self.report = {"machine": machine(), "rows": {}}
        self.daemon, self.loads = None, []
        tokens = self.bench.folder / "tokens"
        tokens.write_text("".join(f"{token}\n" for token in (VICTIM, *(f"token-of-{name}" for name in LOADS))))
        tokens.chmod(0o600)
        self.tokens = tokens

    def start(self):
        self.daemon = Daemon(self.bench, "--token-file", str(self.tokens), "--set", f"sessions.max={SESSIONS}",
                             "--set", f"sessions.per_caller={SESSIONS}")
        self.victim = Front(self.daemon.port, VICTIM)
        self.front = self.daemon.pids()["front"]
        for _ in range(20):
            self.sample(None)

    def sample(self, sock):
        """(seconds, what went wrong or None) of one run, over this connection or over its own."""
        body, begin = {"language": "python", "code": "print(1)"}, time.monotonic()
        try:
            if sock:
                status, answer = self.victim.exchange(sock, self.victim.text("POST", "/v1/execute", body))
            else:
                status, answer = self.victim.ask("POST", "/v1/execute", body)
            wrong = None if status == 200 and json.loads(answer)["stdout"] == "1\n" else f"{status} {answer[:200].decode(errors='replace')}"
        except OSError as problem:
            wrong = repr(problem)
        return time.monotonic() - begin, wrong

    def measure(self, name):
        """Runs in turn over a connection that is kept and over new ones."""
        took, wrong, kept = [], [], self.victim.connect()
        for i in range(self.options.samples):
            seconds, problem = self.sample(kept if i % 2 else None)
            took.append(int(seconds * 1e9))
            if problem:
                wrong.append(("a kept connection: " if i % 2 else "a new connection: ") + problem)
                kept.close()
                kept = self.victim.connect()
            time.sleep(0.02)
        kept.close()
        status, _ = self.victim.ask("POST", "/v1/sessions", {"language": "python"})
        row = {"n": len(took), "refused": len(wrong), "why": sorted(set(wrong))[:3], "session": status,
               **{key: value for key, value in stats.describe(took).items() if key in ("p50", "p99")},
               "max": max(took) / 1e6, "front_mib": self.resident()}
        self.report["rows"][name] = row
        print(f"starve: {name:10} p50 {row['p50']:8.1f} ms   p99 {row['p99']:8.1f} ms   max {row['max']:8.1f} ms   refused "
              f"{row['refused']}/{row['n']}   session {row['session']}   front {row['front_mib']:.0f} MiB", flush=True)
        for why in row["why"]:
            print(f"        {why}", flush=True)
        self.end_sessions()

    def resident(self):
        with open(f"/proc/{self.front}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024

    def end_sessions(self):
        self.victim.ask("POST", "/v1/cleanup", {})

    def begin_load(self, name):
        process = subprocess.Popen([sys.executable, __file__, "--generate", name, "--port", str(self.daemon.port), "--token", f"token-of-{name}",
                                    "--sizes", json.dumps(self.options.sizes)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.loads.append(process)
        if process.stdout.readline() != "ready\n":
            raise Wrong(f"the load {name} did not begin")

    def end_loads(self):
        for process in self.loads:
            process.kill()
            process.wait()
        for name in LOADS:
            Front(self.daemon.port, f"token-of-{name}").ask("POST", "/v1/cleanup", {})
        self.loads = []

    def conduct(self):
        self.start()
        self.measure("alone")
        for name in self.options.loads:
            self.begin_load(name)
            self.measure(name)
            self.end_loads()
        if len(self.options.loads) > 1:
            for name in reversed(self.options.loads):  # the load of connections last: the others have something to prepare
                self.begin_load(name)
            self.measure("all")
            self.end_loads()

    def judge(self):
        rows = self.report["rows"].values()
        return all(row["p99"] <= P99_MS and not row["refused"] and row["session"] == 201 for row in rows)

    def stop(self):
        for process in self.loads:
            process.kill()
            process.wait()
        if self.daemon and self.daemon.process.poll() is None:
            self.daemon.process.send_signal(signal.SIGTERM)
            reap(self.daemon.process, 60)
        self.bench.close()


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small loads, to see that everything runs")
    parser.add_argument("--loads", type=lambda text: text.split(","), default=list(LOADS))
    parser.add_argument("--samples", type=int, default=300)
    parser.add_argument("--atoll", type=pathlib.Path, default=ROOT / "build" / "atoll")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build-results")
    for word in ("--generate", "--token", "--sizes"):
        parser.add_argument(word, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    vars(options)["sizes"] = options.sizes or {"connections": 4096, "halves": 200, "half_bytes": 15 * MIB, "rows": 1000, "readers": 1500}
    if options.quick:
        options.samples = 30
        vars(options)["sizes"] = {"connections": 300, "halves": 20, "half_bytes": MIB, "rows": 50, "readers": 50}
    return options


def main():
    options = parse_arguments()
    if options.generate:
        generate(options)
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    run = Run(options)
    try:
        run.conduct()
    except (Wrong, OSError) as problem:
        run.report["stopped"] = str(problem)
        print(f"starve: stopped: {problem}", file=sys.stderr)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        run.stop()
    passed = "stopped" not in run.report and run.judge()
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "starve.json").write_text(json.dumps(run.report, indent=2) + "\n")
    print(f"starve: p99 ≤ {P99_MS} ms, no refusal, a session: {'held' if passed else 'MISSED'}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
