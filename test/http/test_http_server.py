# SPDX-License-Identifier: Apache-2.0
"""The core of the HTTP server over real sockets: http-test-server has one route of each kind and nothing else."""
import contextlib
import http.client
import json
import os
import re
import resource
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from program import BINARY

PROGRAM = Path(os.environ.get("ATOLL_HTTP_TEST_SERVER", BINARY.parent / "src" / "web" / "http" / "http-test-server"))
SANITIZED = b"__asan_init" in PROGRAM.read_bytes() if PROGRAM.exists() else False
# A sanitizer keeps freed memory for a while: little of it, because memory is measured here.
QUIET = {**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1"}
HEALTH_MAX_S = 20  # who is held up by another waits for that one, which has half a minute; a machine may stall for some seconds
SECURITY = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "SAMEORIGIN",
}


class Server:
    def __init__(self, folder, nofile=None, **options):
        self.path = f"{folder}/s"

        def limit():
            resource.setrlimit(resource.RLIMIT_NOFILE, (nofile, nofile))

        self.process = subprocess.Popen(
            [PROGRAM, self.path, *(f"{k}={v}" for k, v in options.items())], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, preexec_fn=limit if nofile else None, env=QUIET)
        self.port = int(self.process.stdout.readline())
        self.host = f"Host: 127.0.0.1:{self.port}\r\n"

    def connect(self, source="127.0.0.1"):
        s = socket.create_connection(("127.0.0.1", self.port), timeout=30, source_address=(source, 0))
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return s

    def client(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)

    def ask(self, method, path, body=None, headers=None):
        """Status, headers and body over a connection of its own."""
        c = self.client()
        try:
            c.request(method, path, body, headers or {})
            r = c.getresponse()
            return r.status, {k.lower(): v for k, v in r.getheaders()}, r.read()
        finally:
            c.close()

    def health_seconds(self):
        start = time.monotonic()
        assert self.ask("GET", "/healthz")[0] == 200
        return time.monotonic() - start

    def status(self, key):
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"^{key}:\s+(\d+)", text, re.M).group(1))

    def fds(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def close(self):
        """Ends it in order: a sanitized one also says whether anything leaked."""
        self.process.stdin.close()
        assert self.process.wait(25) == 0
        self.process.stdout.close()


@pytest.fixture
def serve():
    servers = []
    folder = tempfile.mkdtemp(prefix="tests-http-")

    def start(**options):
        servers.append(Server(tempfile.mkdtemp(dir=folder), **options))
        return servers[-1]

    yield start
    for server in servers:
        if server.process.poll() is None:
            server.close()
        else:
            assert server.process.returncode == 0
    shutil.rmtree(folder)


def read_all(s):
    data = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := s.recv(65536):
            data += piece
    return data


def raw(server, data):
    """What comes back on a connection until the server ends it; fails when it does not."""
    with server.connect() as s:
        s.sendall(data)
        return read_all(s)


def many_files():
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 16384), hard))
    return min(hard, 16384)


# ---------------------------------------------------------------------------------------- answers


@pytest.mark.quick
def test_every_kind_of_answer_has_the_security_headers(serve):
    server = serve()
    asked = [
        ("GET", "/healthz", None, {}, 200), ("GET", "/nothing", None, {}, 404), ("POST", "/healthz", None, {}, 405),
        ("OPTIONS", "/echo", None, {}, 200), ("POST", "/json", "{}", {"Content-Type": "text/plain"}, 415),
        ("POST", "/json", "{", {"Content-Type": "application/json"}, 400), ("GET", "/fail", None, {}, 500),
        ("GET", "/healthz", None, {"Host": "evil.com"}, 421), ("GET", "/flood/100", None, {}, 200),
        ("GET", "/healthz", None, {"Origin": "null"}, 403), ("GET", "/file/10", None, {"Range": "bytes=20-"}, 416),
        ("GET", "/tunnel", None, {}, 426), ("GET", "/a%zz", None, {}, 400), ("GET", "/healthz?token=x", None, {}, 400),
    ]
    for method, path, body, headers, status in asked:
        got, fields, text = server.ask(method, path, body, headers)
        assert got == status, (method, path, text)
        assert {k: fields.get(k) for k in SECURITY} == SECURITY, path
        assert "access-control-allow-origin" not in fields
        if status >= 400:
            problem = json.loads(text)
            assert fields["content-type"] == "application/problem+json"
            assert problem["status"] == status and problem["code"] and problem["title"] and problem["detail"]
    assert server.ask("DELETE", "/echo")[1]["allow"] == "POST, OPTIONS"
    assert server.ask("OPTIONS", "/things/a")[1]["allow"] == "GET, HEAD, DELETE, OPTIONS"


def test_keep_alive_clients(serve):
    server = serve()
    c = server.client()
    for n in range(200):
        body = bytes([n % 256]) * (n * 37)
        c.request("POST", "/echo", body)
        assert c.getresponse().read() == body
    c.request("HEAD", "/things/abc")
    r = c.getresponse()
    assert (r.read(), r.getheader("content-length")) == (b"", "21")
    c.request("GET", "/things/a%20b/files/%C3%A9/x?q=1+2")
    assert json.loads(c.getresponse().read()) == {"id": "a b", "q": "1 2"}
    c.request("PUT", "/count", iter([b"abc"] * 1000), {"Transfer-Encoding": "chunked"}, encode_chunked=True)
    assert json.loads(c.getresponse().read()) == {"bytes": 3000, "caller": "tcp:127.0.0.1"}
    c.close()
    assert server.fds() < 20


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
def test_curl(serve, tmp_path):
    server = serve()
    url = f"http://localhost:{server.port}"
    big = tmp_path / "big"
    big.write_bytes(os.urandom(5 << 20))
    done = subprocess.run(["curl", "-sS", "-T", big, f"{url}/count"], capture_output=True, timeout=30)
    assert json.loads(done.stdout)["bytes"] == 5 << 20, done.stderr
    done = subprocess.run(["curl", "-sS", "-H", "Expect: 100-continue", "--data-binary", f"@{big}", f"{url}/echo"],
                          capture_output=True, timeout=30)
    assert done.stdout == big.read_bytes()
    done = subprocess.run(["curl", "-sS", "-r", "5-14", "-OJ", f"{url}/file/100"], capture_output=True, cwd=tmp_path,
                          timeout=30)
    assert (tmp_path / "a__b_.bin").read_bytes() == b"5678901234", done.stderr
    done = subprocess.run(["curl", "-sS", "--unix-socket", server.path, "http://localhost/maybe", "-X", "POST"],
                          capture_output=True, timeout=30)
    assert json.loads(done.stdout)["caller"] == f"uid:{os.getuid()}"
    # Refused by the head alone: the client reads the answer although it had a body to send.
    done = subprocess.run(["curl", "-sS", "-w", "%{http_code}", "-T", big, f"{url}/nothing"], capture_output=True,
                          text=True, timeout=30)
    assert done.stdout.endswith("404"), done.stderr


@pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")
def test_node_fetch(serve):
    server = serve()
    script = """
    const url = `http://localhost:${process.argv[1]}`;
    const asJson = { "Content-Type": "application/json" };
    const all = await Promise.all([...Array(50).keys()].map(async n =>
        (await fetch(`${url}/json`, { method: "POST", headers: asJson, body: JSON.stringify({ n }) })).json()));
    const events = await (await fetch(`${url}/events/5`)).text();
    console.log(JSON.stringify({ all: all.map(x => x.n), events: events.split("\\n\\n").length }));
    process.exit(0);
    """
    done = subprocess.run(["node", "--input-type=module", "-e", script, str(server.port)], capture_output=True, timeout=30)
    assert json.loads(done.stdout) == {"all": list(range(50)), "events": 6}, done.stderr


# ---------------------------------------------------------------------------------------- A06, A12, A17


def malformed(host):
    post = f"POST /echo HTTP/1.1\r\n{host}"
    chunked = post + "Transfer-Encoding: chunked\r\n\r\n"
    return {
        "CL and TE": post + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "two CL": post + "Content-Length: 4\r\nContent-Length: 5\r\n\r\n12345",
        "same CL twice": post + "Content-Length: 4\r\nContent-Length: 4\r\n\r\n1234",
        "CL +5": post + "Content-Length: +5\r\n\r\n12345", "CL 0x5": post + "Content-Length: 0x5\r\n\r\n12345",
        "CL 5, 6": post + "Content-Length: 5, 6\r\n\r\n12345", "CL 05": post + "Content-Length: 05\r\n\r\n12345",
        "CL -1": post + "Content-Length: -1\r\n\r\n", "CL empty": post + "Content-Length:\r\n\r\n",
        "CL huge": post + "Content-Length: 99999999999999999999\r\n\r\n",
        "TE xchunked": post + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        "TE chunked, identity": post + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        "TE twice": post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "TE folded": post + "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
        "TE tab": post + "Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
        "TE in 1.0": chunked.replace("1.1", "1.0") + "0\r\n\r\n",
        "space before colon": post + "Content-Length : 5\r\n\r\n12345",
        "folded line": f"GET / HTTP/1.1\r\n{host}X: a\r\n b\r\n\r\n",
        "bare LF": f"GET / HTTP/1.1\n{host}\n", "bare CR": f"GET / HTTP/1.1\r\n{host}X: a\rb\r\n\r\n",
        "NUL": f"GET / HTTP/1.1\r\n{host}X: a\0b\r\n\r\n", "NUL in target": f"GET /\0 HTTP/1.1\r\n{host}\r\n",
        "absolute form": f"GET http://127.0.0.1/ HTTP/1.1\r\n{host}\r\n",
        "authority form": f"CONNECT 127.0.0.1:22 HTTP/1.1\r\n{host}\r\n",
        "no Host": "GET / HTTP/1.1\r\n\r\n", "two Hosts": f"GET / HTTP/1.1\r\n{host}{host}\r\n",
        "no version": "GET /\r\n\r\n", "two spaces": f"GET  / HTTP/1.1\r\n{host}\r\n",
        "chunk extension": chunked + "5;" + "x" * 1000 + "\r\nhello\r\n0\r\n\r\n",
        "trailer": chunked + "5\r\nhello\r\n0\r\nX: y\r\n\r\n", "chunk 0x": chunked + "0x5\r\nhello\r\n0\r\n\r\n",
        "chunk wraps": chunked + "10000000000000005\r\nhello\r\n0\r\n\r\n",
        "chunk LF": chunked + "5\nhello\r\n0\r\n\r\n", "chunk long": chunked + "5\r\nhello!\r\n0\r\n\r\n",
        "TLS": "\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03", "HTTP/2": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    }


@pytest.mark.quick
def test_malformed_requests_are_refused_and_the_connection_ends(serve):
    server = serve()
    smuggled = f"GET /healthz HTTP/1.1\r\n{server.host}\r\n".encode()
    for name, text in malformed(server.host).items():
        with server.connect() as s:
            s.sendall(text.encode("latin1") + smuggled)
            got = read_all(s)
        assert got.startswith(b"HTTP/1.1 400 "), (name, got)
        assert got.count(b"HTTP/1.1 ") == 1, f"{name}: what came behind it was read as a request"
        assert b"Connection: close\r\n" in got, name
    assert raw(server, b"GET / HTTP/1.2\r\n\r\n").startswith(b"HTTP/1.1 505 ")
    assert raw(server, b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n").startswith(b"HTTP/1.1 414 ")
    assert raw(server, b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 101).startswith(b"HTTP/1.1 431 ")
    assert raw(server, b"GET / HTTP/1.1\r\nX: " + b"y" * 70000).startswith(b"HTTP/1.1 431 ")
    assert server.health_seconds() < HEALTH_MAX_S


def test_pipelining(serve):
    server = serve()
    count = 500
    request = "".join(f"GET /things/{n} HTTP/1.1\r\n{server.host}\r\nPOST /echo HTTP/1.1\r\n{server.host}"
                      f"Content-Length: 3\r\n\r\n{n:03}" for n in range(count))
    last = f"GET /later HTTP/1.1\r\n{server.host}Connection: close\r\n\r\n"
    with server.connect() as s:
        sender = threading.Thread(target=s.sendall, args=[(request + last).encode()])
        sender.start()
        got = read_all(s)
        sender.join()
    assert re.findall(rb'"id":"(\d+)"', got) == [str(n).encode() for n in range(count)]
    assert re.findall(rb"\r\n\r\n(\d{3})HTTP", got) == [f"{n:03}".encode() for n in range(count)]
    assert got.endswith(b'{"late":true}')


def test_half_closed_and_vanishing_clients(serve):
    server = serve()
    with server.connect() as s:
        s.sendall(f"GET /later?ms=100 HTTP/1.1\r\n{server.host}\r\n".encode())
        s.shutdown(socket.SHUT_WR)
        assert read_all(s).endswith(b'{"late":true}')
    text = (f"POST /echo HTTP/1.1\r\n{server.host}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
            f"GET /later?ms=20 HTTP/1.1\r\n{server.host}\r\nGET /flood/9999999 HTTP/1.1\r\n{server.host}\r\n").encode()
    before = server.fds()
    for n in range(0, len(text) + 1, 3):
        for reset in (False, True):
            with server.connect() as s:
                s.sendall(text[:n])
                if n % 2:
                    time.sleep(0.002)
                if reset:
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    deadline = time.monotonic() + 30
    while server.fds() > before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert server.fds() <= before
    counts = json.loads(server.ask("GET", "/gone")[2])
    assert counts["half"] >= 1 and counts["full"] >= 1
    assert server.health_seconds() < HEALTH_MAX_S


# ---------------------------------------------------------------------------------------- A01 to A05


def test_tokens(serve):
    server = serve(token="s3cret")
    assert server.ask("GET", "/healthz")[0] == 200
    status, fields, _ = server.ask("GET", "/things/a")
    assert (status, fields["www-authenticate"]) == (401, "Bearer")
    for wrong in ("s3cre", "s3cret2", "", "x" * 60000):
        assert server.ask("GET", "/things/a", headers={"Authorization": f"Bearer {wrong}"})[0] == 401
    assert server.ask("GET", "/nothing")[0] == 401
    assert server.ask("GET", "/things/a", headers={"Authorization": "Bearer s3cret"})[0] == 200
    assert server.ask("GET", "/things/a?access_token=s3cret")[0] == 400
    assert b"token:test" in server.ask("PUT", "/count", b"", {"Authorization": "Bearer s3cret"})[2]


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to become another user")
def test_unix_socket_of_another_user(serve):
    server = serve()
    script = """
import os, socket, sys
os.setgroups([]); os.setgid(65534); os.setuid(65534)
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])
s.sendall(b"GET /things/a HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n")
sys.stdout.write(s.recv(65536).decode())
"""
    os.chmod(server.path, 0o777)
    for folder in (Path(server.path).parent, Path(server.path).parent.parent):
        os.chmod(folder, 0o755)
    done = subprocess.run([sys.executable, "-c", script, server.path], capture_output=True, text=True, timeout=30)
    assert done.stdout.startswith("HTTP/1.1 403 "), done


# ---------------------------------------------------------------------------------------- A07, A08


@pytest.mark.undisturbed
def test_slowloris(serve):
    server = serve(head_ms=600, body_idle_ms=600, idle_ms=600, linger_ms=200)
    slow = [server.connect() for _ in range(100)]
    text = f"GET /healthz HTTP/1.1\r\n{server.host}X-{'a' * 80}"
    start = time.monotonic()
    for n in range(20):
        for s in slow:
            with contextlib.suppress(OSError):
                s.send(text[n * 4:][:4].encode())
        assert server.health_seconds() < HEALTH_MAX_S
        time.sleep(0.05)
    for s in slow:
        assert read_all(s)[:12] in (b"HTTP/1.1 408", b"")  # empty: reset by what was still sent
        s.close()
    assert time.monotonic() - start < 25
    with server.connect() as s:
        s.sendall(f"POST /echo HTTP/1.1\r\n{server.host}Content-Length: 100\r\n\r\nabc".encode())
        assert read_all(s).startswith(b"HTTP/1.1 408 ")
    with server.connect() as s:
        assert read_all(s) == b""


@pytest.mark.undisturbed
def test_slow_reader_is_cut_and_costs_little(serve):
    server = serve(write_stall_ms=1500)
    before, fds = server.status("VmRSS"), server.fds()
    with server.connect() as s:
        s.sendall(f"GET /flood/1000000000 HTTP/1.1\r\n{server.host}\r\n".encode())
        start = time.monotonic()
        while server.fds() <= fds:
            assert time.monotonic() - start < 25, "it is not taken"
        while server.fds() > fds and time.monotonic() - start < 25:
            assert server.status("VmRSS") - before < 8192
            time.sleep(0.05)
        assert time.monotonic() - start < 25
        with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
            r = http.client.HTTPResponse(s)
            r.begin()
            r.read()


@pytest.mark.undisturbed
def test_two_thousand_idle_connections(serve):
    if many_files() < 5000:
        pytest.skip("too few descriptors allowed")
    server = serve()
    idle = [server.connect() for _ in range(2000)]
    assert sorted(server.health_seconds() for _ in range(20))[10] < 0.25
    assert server.status("VmRSS") < (200 << 10 if SANITIZED else 32 << 10)
    for s in idle[::100]:
        s.sendall(f"GET /healthz HTTP/1.1\r\n{server.host}\r\n".encode())
        assert s.recv(4096).startswith(b"HTTP/1.1 200 ")
    for s in idle:
        s.close()


def later(server, address):
    """A connection from that address of the loopback network, whose request is answered after a while; with its status if it is refused."""
    s = server.connect(source=address)
    s.sendall(f"GET /later?ms=20000 HTTP/1.1\r\n{server.host}\r\n".encode())
    s.settimeout(0.05)
    try:
        return s, int(s.recv(65536).split()[1])
    except TimeoutError:
        return s, None


@pytest.mark.undisturbed
def test_idle_connections_make_room(serve):
    many_files()
    server = serve(connections=100, reserve=10)
    idle = [server.connect() for _ in range(100)]
    time.sleep(0.3)
    # The longest idle first.
    more = [server.connect() for _ in range(50)]
    assert server.health_seconds() < HEALTH_MAX_S
    assert idle[0].recv(1) == b""
    assert server.fds() < 130
    for s in idle + more:
        s.close()


@pytest.mark.undisturbed
def test_more_connections_than_allowed(serve):
    """One caller leaves an eighth to others, each of which gets a quarter of that, and health is answered as long as any is accepted."""
    many_files()
    server = serve(connections=100, reserve=10)
    first = [later(server, "127.0.0.1") for _ in range(90)]
    assert [status for _, status in first] == [None] * 88 + [503] * 2
    second = [later(server, "127.0.0.2") for _ in range(5)]
    assert [status for _, status in second] == [None] * 3 + [503] * 2
    status, fields, text = server.ask("GET", "/things/a")
    assert (status, fields["retry-after"], json.loads(text)["code"]) == (503, "1", "busy")
    assert "as many connections as one caller may have" in json.loads(text)["detail"]
    assert server.health_seconds() < HEALTH_MAX_S
    others = [later(server, f"127.0.1.{i + 1}") for i in range(19)]
    assert [status for _, status in others] == [None] * 19
    # A connection without a request gives way, and beyond all that none is accepted.
    assert raw(server, b"").startswith(b"HTTP/1.1 503 ")
    for s, _ in first + second + others:
        s.close()
    end = time.monotonic() + 10
    while server.ask("GET", "/things/a")[0] != 200:
        assert time.monotonic() < end, "closed connections are not noticed before their answer is due"


@pytest.mark.undisturbed
def test_out_of_descriptors(serve):
    server = serve(nofile=40)
    held = [server.connect() for _ in range(80)]
    time.sleep(0.3)
    assert server.health_seconds() < HEALTH_MAX_S
    for s in held:
        s.close()
    time.sleep(0.1)
    assert server.ask("GET", "/things/a")[0] == 200


def test_large_bodies_leave_memory_alone(serve):
    server = serve(body_max=8 << 20)
    assert server.ask("PUT", "/count", b"x" * (8 << 20))[0] == 200
    before = server.status("VmHWM")
    assert raw(server, f"PUT /count HTTP/1.1\r\n{server.host}Content-Length: 1073741824\r\n\r\n".encode()).startswith(
        b"HTTP/1.1 413 ")
    # A client that sends all the same, by length and by chunks.
    piece = b"x" * (1 << 20)
    for head, framed in ((b"Content-Length: 209715200\r\n", piece),
                         (b"Transfer-Encoding: chunked\r\n", b"100000\r\n" + piece + b"\r\n")):
        with server.connect() as s:
            s.sendall(f"PUT /count HTTP/1.1\r\n{server.host}".encode() + head + b"\r\n")
            with contextlib.suppress(OSError):
                for _ in range(200):
                    s.sendall(framed)
            assert read_all(s).startswith(b"HTTP/1.1 413 ")
    assert server.status("VmHWM") - before < 16 << 10
    # A length alone costs nothing until bytes come.
    waiting = [server.connect() for _ in range(100)]
    for s in waiting:
        s.sendall(f"PUT /count HTTP/1.1\r\n{server.host}Content-Length: 8388608\r\n\r\n".encode())
    assert server.health_seconds() < HEALTH_MAX_S
    assert server.status("VmHWM") - before < 16 << 10
    for s in waiting:
        s.close()
    deep = b"[" * 100000
    status, _, text = server.ask("POST", "/json", deep, {"Content-Type": "application/json"})
    assert status == 400 and json.loads(text)["code"] == "invalid_json"
    many = b"[" + b"0," * 2000000 + b"0]"
    assert server.ask("POST", "/json", many, {"Content-Type": "application/json"})[0] == 400
    assert server.status("VmHWM") - before < 32 << 10


@pytest.mark.undisturbed
@pytest.mark.brief
def test_bodies_together_are_bounded(serve):
    server = serve(body_max=4 << 20, body_total=16 << 20)  # half of it for one caller
    held = []
    for _ in range(4):
        s = server.connect()
        s.settimeout(3)
        with contextlib.suppress(OSError):
            s.sendall(f"PUT /count HTTP/1.1\r\n{server.host}Content-Length: 4000000\r\n\r\n".encode() + b"x" * 3900000)
        held.append(s)
    got = []
    for s in held:
        with contextlib.suppress(TimeoutError):
            got.append(s.recv(12))
    assert got == [b"HTTP/1.1 503"] * 2
    for s in held:
        s.close()
    time.sleep(0.1)
    assert server.ask("PUT", "/count", b"x" * 4000000)[0] == 200


def test_large_answers_leave_memory_alone(serve):
    server = serve()
    for path in ("/flood/268435456", "/file/20000000"):
        c = server.client()
        c.request("GET", path)
        r = c.getresponse()
        before, got = server.status("VmRSS"), 0
        while piece := r.read(1 << 16):
            got += len(piece)
        assert got == int(path.split("/")[2])
        assert server.status("VmRSS") - before < 8192
        c.close()


# ---------------------------------------------------------------------------------------- tunnels


def test_tunnel(serve):
    server = serve()
    with server.connect() as s:
        s.sendall(f"GET /tunnel HTTP/1.1\r\n{server.host}Connection: Upgrade\r\nUpgrade: websocket\r\n"
                  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\nearly".encode())
        got = b""
        while not got.endswith(b"early"):
            got += s.recv(4096)
        assert b"101 Switching Protocols" in got and b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in got
        # More than the queue holds: the server stops reading until the client reads.
        blob = os.urandom(4 << 20).replace(b"q", b"r")
        sender = threading.Thread(target=s.sendall, args=[blob])
        sender.start()
        time.sleep(0.1)
        back = b""
        while len(back) < len(blob):
            back += s.recv(1 << 20)
        sender.join()
        assert back == blob
        s.sendall(b"q")
        assert s.recv(16) == b""
    assert server.ask("GET", "/tunnel", headers={"Origin": "http://evil.com", "Upgrade": "websocket"})[0] == 403
