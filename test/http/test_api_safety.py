# SPDX-License-Identifier: Apache-2.0
"""The daemon's doors: security.md A01 to A10 against `atoll serve` itself. test_http_server.py has the finer cases."""
import json
import os
import socket
import threading
import time

import pytest

from oracle import IS_ROOT, NOBODY
from program import Atoll
from web import GROWTH, SANITIZED, Served

quick = pytest.mark.quick
BODY = b'{"language": "bash", "code": "echo zebra"}'


@pytest.fixture(scope="module")
def served(mode, stage):
    served = Served(Atoll(mode, stage), stage.scratch(mode, "served"), env={"ATOLL_HTTP_HEADER_TIMEOUT": "6s"})
    yield served
    served.end()


def raw(web, data, timeout=30):
    """Everything that is answered until the connection ends."""
    with socket.create_connection((web.host, web.port), timeout=timeout) as sock:
        sock.sendall(data)
        got = b""
        try:
            while piece := sock.recv(1 << 16):
                got += piece
        except ConnectionResetError:
            pass
        return got


def status(answer):
    return int(answer.split(b" ", 2)[1])


def head(web, *lines, host=True):
    own = [f"Host: {web.host}:{web.port}"] if host else []
    return ("\r\n".join([lines[0], *own, *lines[1:]]) + "\r\n\r\n").encode()


@quick
def test_a01_hosts(web):
    for value in ("evil.com", "127.0.0.1.nip.io", f"127.0.0.1:{web.port + 1}", f"localhost.evil:{web.port}", "", "a b"):
        answer = raw(web, head(web, "POST /v1/execute HTTP/1.1", f"Host: {value}", "Content-Type: application/json",
                               f"Content-Length: {len(BODY)}", "Connection: close", host=False) + BODY)
        assert status(answer) in (400, 403, 421) and b"zebra" not in answer, (value, answer)
    assert status(raw(web, head(web, "GET / HTTP/1.1", "Connection: close", host=False))) == 400
    assert status(raw(web, head(web, "GET / HTTP/1.1", f"Host: {web.host}:{web.port}", "Connection: close"))) == 400
    assert web.get("/healthz", headers={"Host": f"localhost:{web.port}"}).status == 200


@quick
def test_a02_origins(web):
    for origin in ("http://evil.example", "null", f"http://{web.host}:{web.port + 1}", "file://"):
        for method, path in (("GET", "/v1/languages"), ("POST", "/execute"), ("GET", "/healthz"), ("OPTIONS", "/v1/execute")):
            answer = web.ask(method, path, headers={"Origin": origin})
            assert answer.status == 403, (origin, method, path, answer)
    assert web.get("/healthz", headers={"Origin": f"http://{web.host}:{web.port}"}).status == 200


@quick
def test_a03_simple_requests_and_preflight(web):
    for kind in ("text/plain", "application/x-www-form-urlencoded"):
        assert web.ask("POST", "/v1/execute", BODY, {"Content-Type": kind}).status == 415
        assert web.ask("POST", "/v1/executions", BODY, {"Content-Type": kind}).status == 415
    options = web.ask("OPTIONS", "/v1/execute", headers={"Access-Control-Request-Method": "POST"})
    assert not [name for name in options.headers if name.startswith("access-control")]


def test_a05_the_unix_socket(served, mode):
    path = str(served.daemon.socket)
    assert os.stat(path).st_mode & 0o777 == 0o600
    request = b"GET /v1/languages HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

    def ask():
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(30)
            sock.connect(path)
            sock.sendall(request)
            got = b""
            while piece := sock.recv(1 << 16):
                got += piece
            return got

    assert status(ask()) == 200
    if not IS_ROOT:
        return
    # A peer that the file's mode lets in is checked as well.
    os.chmod(path, 0o666)
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setresgid(NOBODY - 7, NOBODY - 7, NOBODY - 7)
            os.setresuid(NOBODY - 7, NOBODY - 7, NOBODY - 7)
            os.write(write, str(status(ask())).encode())
        except OSError as error:
            os.write(write, type(error).__name__.encode())
        os._exit(0)
    os.waitpid(pid, 0)
    os.close(write)
    said = os.read(read, 100)
    os.close(read)
    os.chmod(path, 0o600)
    assert said in (b"403", b"PermissionError"), said


SMUGGLED = [
    ("Content-Length: 5", "Transfer-Encoding: chunked"), ("Content-Length: 5", "Content-Length: 6"),
    ("Content-Length: 5", "Content-Length: 5"), ("Content-Length: +5",), ("Content-Length: 0x5",), ("Content-Length: 5, 5",),
    ("Content-Length: 05",), ("Content-Length: -1",), ("Content-Length: 99999999999999999999",), ("Content-Length:",),
    ("Transfer-Encoding: xchunked",), ("Transfer-Encoding: chunked, identity",), ("Transfer-Encoding: identity",),
    ("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"), ("Transfer-Encoding : chunked",), (" folded: x",),
    ("Content-Length : 5",), ("X: a\x00b",), ("X: a\rb",), ("X\x7f: a",), ("no colon",), (": empty",),
]


@quick
@pytest.mark.parametrize("lines", SMUGGLED, ids=lambda lines: ascii("+".join(lines))[:50])
def test_a06_smuggling(web, lines):
    data = head(web, "POST /v1/execute HTTP/1.1", "Content-Type: application/json", *lines)
    answer = raw(web, data + b"hello" + head(web, "GET /healthz HTTP/1.1", "X-Second: yes"))
    assert status(answer) in (400, 501) and answer.count(b"HTTP/1.1 ") == 1, answer
    assert b"connection: close" in answer.lower(), answer


@quick
@pytest.mark.parametrize("first, second", [("application/json", "text/plain"), ("text/plain", "application/json")])
def test_two_types(web, first, second):
    """Two readers might take another one each."""
    text = b'{"language": "bash", "code": "true"}'
    sent = head(web, "POST /v1/execute HTTP/1.1", f"Content-Type: {first}", f"Content-Type: {second}", f"Content-Length: {len(text)}")
    assert status(raw(web, sent + text)) == 415


@quick
@pytest.mark.parametrize("data", [
    b"GET /healthz HTTP/1.1\nHost: x\n\n", b"GET  /healthz HTTP/1.1\r\n\r\n", b"GET /healthz HTTP/2.0\r\n\r\n",
    b"GET http://127.0.0.1/healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00", b"GET /\x00 HTTP/1.1\r\n\r\n",
    b"GET /healthz\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"], ids=ascii)
def test_a06_lines(web, data):
    assert status(raw(web, data + b"\r\n\r\n")) in (400, 421, 501, 505)


@pytest.mark.undisturbed
def test_a07_slowly(web):
    """A head that never ends is let go; meanwhile others are served, and thousands of idle connections change nothing."""
    began = time.monotonic()
    slow = socket.create_connection((web.host, web.port), timeout=30)
    slow.sendall(b"GET /healthz HTTP/1.1\r\nX: ")
    idle = []
    try:
        for _ in range(2000):
            idle.append(socket.create_connection((web.host, web.port), timeout=30))
    except OSError:
        pass
    assert len(idle) > 500
    times = []
    for _ in range(20):
        begin = time.monotonic()
        assert web.get("/healthz").status == 200
        times.append(time.monotonic() - begin)
    assert sorted(times)[10] < 0.25, times
    for sock in idle:
        sock.close()
    got = slow.recv(4096)
    assert got == b"" or status(got) == 408
    assert time.monotonic() - began < 60
    slow.close()


def test_a08_sizes(web, served):
    before = served.daemon.memory("front")
    json_type = {"Content-Type": "application/json"}
    declared = head(web, "POST /v1/execute HTTP/1.1", "Content-Type: application/json", f"Content-Length: {1 << 30}")
    answer = raw(web, declared)
    assert status(answer) == 413 and b"larger than 67108864 bytes, the most that this request takes" in answer
    assert status(raw(web, head(web, "GET /healthz HTTP/1.1", *(f"X{i}: y" for i in range(100000))))) == 431
    assert status(raw(web, head(web, f"GET /{'x' * (1 << 20)} HTTP/1.1"))) in (414, 431)
    for body in (b'{"a":' * 50000, b"[" + b"0," * 500000 + b"0]", b'{"x": 1e999}', b'{"x": ' + b"9" * 100000 + b"}",
                 b'{"code": "\xff"}', b'{"a": 1, "a": 2}', b'"text"', b"7"):
        assert web.ask("POST", "/v1/execute", body, json_type).status == 400, body[:50]
    assert served.daemon.memory("front") - before < GROWTH


@quick
def test_a09_paths(web):
    id = web.execute("python", "open('f', 'w').write('x')")["id"]
    for path in (f"/v1/executions/{id}/files/..%2f..%2fetc%2fpasswd", f"/v1/executions/{id}/files/%2e%2e/%2e%2e/x",
                 f"/v1/executions/{id}/files//etc/passwd", f"/v1/executions/{id}/files/f%00", f"/v1/executions/{id}/files/%c0%ae",
                 f"/v1/executions/{id.upper()}", f"/v1/executions/{id[:-1]}", f"/v1/executions/{id}x"):
        answer = web.get(path)
        assert answer.status in (400, 404), (path, answer)
        assert b"root:" not in answer.body


def test_a09_ids_say_nothing(web):
    ids = [web.submit("bash", "true") for _ in range(50)]
    assert len(set(ids)) == 50
    for place in range(3, 29 - 1):  # the last character holds only 3 bits
        assert len({id[place] for id in ids}) > 8, (place, ids)
    for id in ids:
        web.wait(id)


def test_a12_pipelined_and_cut(web):
    """Pipelined requests are answered in order; connections cut anywhere harm no other request."""
    one = head(web, "POST /v1/execute HTTP/1.1", "Content-Type: application/json", f"Content-Length: {len(BODY)}") + BODY
    last = head(web, "GET /healthz HTTP/1.1", "Connection: close")
    answer = raw(web, one + one + last)
    assert answer.count(b"HTTP/1.1 200 OK") == 3 and answer.count(b'"stdout":"zebra\\n"') == 2 and answer.endswith(b'{"status":"ok"}')
    for cut in range(1, len(one), 7):
        sock = socket.create_connection((web.host, web.port))
        sock.sendall(one[:cut])
        if cut % 2:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        sock.close()
    assert web.execute("bash", "echo well")["stdout"] == "well\n"


@quick
def test_a14_no_host_paths(web, served):
    """What we say in errors names nothing of the host."""
    answers = [web.post("/v1/execute", body) for body in (
        {"language": "python", "code": "1", "policy": "../../etc/passwd"}, {"language": "python", "code": "1", "image": "/etc"},
        {"language": "python", "code": "1", "workspace": "../x"}, {"language": "../../x", "code": "1"})]
    answers += [web.get("/v1/executions/ex_x/files/y"), web.get("/v1/executions?cursor=/etc")]
    for answer in answers:
        assert 400 <= answer.status < 500, answer
        text = answer.body.decode()
        assert str(served.daemon.state) not in text and "tests-" not in text and "/var/lib" not in text, text


def test_a16_everybody_at_once(web):
    """One execution that eight cancel, watch and read: one result, and sane answers for all."""
    id = web.submit("bash", "for i in $(seq 2500); do echo $i; sleep 0.01; done")
    web.wait(id, "running")
    seen = []

    def one(n):
        paths = ["", "/events", "/stdout", "/files", "/analysis"]
        seen.append((web.delete if n % 3 == 0 else web.get)(f"/v1/executions/{id}" + ("" if n % 3 == 0 else paths[n % 5])).status)

    threads = [threading.Thread(target=one, args=(n,)) for n in range(16)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert set(seen) <= {200, 404, 409}, seen
    assert web.get("/healthz").status == 200


def test_exposed_without_a_token(mode, stage):
    """Anything but loopback needs a token, or that it was said."""
    atoll, work = Atoll(mode, stage), stage.scratch(mode, "exposed")
    done = atoll.run(["serve", "--listen", "0.0.0.0:0", "--socket", work / "s", "--state-dir", work / "state"])
    assert done.returncode == 125 and "token" in done.err, done


def test_log_injection(web, served):
    """A13: a request is one record, also with line breaks, quotes and escapes in it."""
    web.ask("GET", "/v1/executions/%0a%0dlevel=error%22x", headers={"User-Agent": "a\tb"})
    web.execute("python", "print('\\x1b]0;x\\x07')", labels={"a": "x\ny"})
    assert served.daemon.other == [] or SANITIZED
    assert json.dumps(served.daemon.records)


def test_json_with_a_byte_order_mark(web):
    body = b"\xef\xbb\xbf" + json.dumps({"language": "bash", "code": "\ufeffecho hi"}).encode()
    answer = web.ask("POST", "/v1/execute", body, {"Content-Type": "application/json"})
    assert answer.status == 200 and answer.json()["stdout"] == "hi\n", answer
    answer = web.ask("POST", "/v1/sessions/", b"{}", {"Content-Type": "application/json"})
    assert answer.status == 404 and "without the slash" in answer.json()["detail"], answer
    answer = web.ask("GET", "/v1/nothing/", None, {})
    assert answer.status == 404 and "without the slash" not in answer.json()["detail"], answer
