# SPDX-License-Identifier: Apache-2.0
"""A01-A03, A06, A08-A10, A12-A14 and A17 of test/security/cases.md against `atoll serve`: what a page, a proxy or a
broken client may send. No tokens here: they would answer for most of it."""
import contextlib
import json
import re
import socket
import time

import pytest

from daemon import Daemon
from program import Atoll
from siege import INNARDS, Siege, discreet, frame, read_all, records, reset, status_of
from web import LocalWeb, WebSocket, sse

pytestmark = [pytest.mark.modes("rootless"), pytest.mark.cold("the front is the same in front of warm cells")]
quick = pytest.mark.quick
RUN = {"language": "bash", "code": "true"}
BODY = json.dumps(RUN)


@pytest.fixture(scope="module")
def siege(mode, stage):
    made = Siege(Atoll(mode, stage), stage.scratch(mode, "siege"), "log.level=debug", tokens=False)
    yield made
    made.end()


@pytest.fixture
def web(siege):
    return siege.alice


# ------------------------------------------------------------------------------------------------ A01, A02, A03


def post(siege, path="/v1/executions", host=None, more="", kind="application/json", body=BODY):
    """A raw submission whose head is all the test's."""
    host = f"Host: {siege.host}:{siege.port}\r\n" if host is None else host
    return siege.raw(f"POST {path} HTTP/1.1\r\n{host}Connection: close\r\nContent-Type: {kind}\r\n{more}"
                     f"Content-Length: {len(body)}\r\n\r\n{body}")


@quick
def test_A01_host(siege):
    before = siege.executions()
    port = siege.port
    for name in ("evil.com", "127.0.0.1.nip.io", "localhost.evil.com", f"evil.com:{port}", f"127.0.0.1:{port + 1}", "127.1",
                 f"127.0.0.1:{port}:{port}", "2130706433", "0x7f000001", "0", "localhost.", "::1", "[::1", "127.0.0.1@evil.com",
                 f"127.0.0.1:{port}.evil.com", f"127.0.0.1:0{port}", f"127.0.0.1:+{port}", f"127.0.0.1:{port + 65536}",
                 "127.0.0.1, evil.com", "127.0.0.1/x", "127.0.0.1#", "", "*", "\xe9.com", f"127.0.0.1 :{port}", "127.0.0.1:"):
        for path in ("/v1/executions", "/execute"):
            assert status_of(post(siege, path, host=f"Host: {name}\r\n")) in (400, 421), name
        assert status_of(siege.raw(f"GET /healthz HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n")) in (400, 421), name
    own = f"Host: 127.0.0.1:{port}\r\n"
    for host in ("", own + own, own + "Host: evil.com\r\n", "Host: evil.com\r\n" + own):
        assert status_of(post(siege, host=host)) == 400, host
    assert siege.executions() == before
    for name in (f"127.0.0.1:{port}", f"LocalHost:{port}", f"[::1]:{port}", "localhost"):
        assert status_of(siege.raw(f"GET /healthz HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n")) == 200, name


@quick
def test_A02_origin(siege, web):
    before, id = siege.executions(), web.submit("bash", "sleep 20", query="?interactive=1")
    port = siege.port
    for origin in ("http://evil.com", "null", "file://", f"http://127.0.0.1:{port}.evil.com", f"http://127.0.0.1:{port + 1}",
                   f"http://evil.com#127.0.0.1:{port}", f"http://127.0.0.1:{port}/", f"http://a@127.0.0.1:{port}", "http://127.0.0.1",
                   f"ftp://127.0.0.1:{port}", f"127.0.0.1:{port}", "", f"http://127.0.0.1:{port} http://evil.com"):
        from_there = {"Origin": origin}
        for method, path, body in (("POST", "/v1/execute", RUN), ("POST", "/v1/executions", RUN), ("POST", "/v1/cleanup", {}),
                                   ("POST", "/execute", {"generated_code": "1", "timeout": 1}), ("GET", "/v1/executions", None),
                                   ("OPTIONS", "/v1/executions", None), ("DELETE", f"/v1/executions/{id}", None)):
            answer = web.ask(method, path, body, from_there)
            assert answer.status == 403 and not [h for h in answer.headers if h.startswith("access-control")], (origin, answer)
        socket_ = WebSocket(web, f"/v1/executions/{id}/attach", from_there)
        assert socket_.status == 403, origin
        socket_.close()
    own = f"http://127.0.0.1:{port}"
    assert status_of(post(siege, more=f"Origin: {own}\r\nOrigin: http://evil.com\r\n")) == 403
    assert web.state(id)["status"] in ("queued", "running")
    assert web.get("/v1/limits", headers={"Origin": own}).status == 200
    options = web.ask("OPTIONS", "/v1/execute", None, {"Access-Control-Request-Method": "POST"})
    assert options.status == 200 and not [h for h in options.headers if h.startswith("access-control")], options
    assert web.delete(f"/v1/executions/{id}").status == 200 and siege.executions() == before + 1
    web.wait(id)


@quick
def test_A03_simple_requests_of_pages(siege):
    before = siege.executions()
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "", "text/plain;application/json",
                 "application/jsonp", "application/json+evil", "text/plain, application/json", "application/json, text/plain",
                 "text/html; x=application/json", "x/application/json", "application/jso"):
        for path in ("/v1/execute", "/v1/executions"):
            assert status_of(post(siege, path, kind=kind)) == 415, (kind, path)
        answer = post(siege, "/execute", kind=kind, body='{"generated_code": "print(1)", "timeout": 5}')
        assert status_of(answer) == 400 and b"Request must be JSON" in answer, (kind, answer)
    assert status_of(post(siege, kind="text/plain\r\nContent-Type: application/json")) in (400, 415)
    assert siege.executions() == before


# ------------------------------------------------------------------------------------------------------ A06, A12


def smuggling(head):
    post = f"POST /v1/executions HTTP/1.1\r\n{head}Content-Type: application/json\r\n"
    chunked = post + "Transfer-Encoding: chunked\r\n\r\n"
    size, n = f"{len(BODY):x}", len(BODY)
    whole = f"{size}\r\n{BODY}\r\n0\r\n\r\n"
    return {
        "CL.TE": post + f"Content-Length: {n}\r\nTransfer-Encoding: chunked\r\n\r\n{whole}",
        "TE.CL": post + f"Transfer-Encoding: chunked\r\nContent-Length: {n}\r\n\r\n{whole}",
        "two CL": post + f"Content-Length: {n}\r\nContent-Length: 0\r\n\r\n{BODY}", "same CL": post + f"Content-Length: {n}\r\n" * 2 + "\r\n" + BODY,
        "CL list": post + f"Content-Length: {n}, {n}\r\n\r\n{BODY}", "CL sign": post + f"Content-Length: +{n}\r\n\r\n{BODY}",
        "CL hex": post + f"Content-Length: 0x{size}\r\n\r\n{BODY}", "CL zero": post + f"Content-Length: 0{n}\r\n\r\n{BODY}",
        "CL minus": post + "Content-Length: -0\r\n\r\n", "CL words": post + f"Content-Length: {n} {n}\r\n\r\n{BODY}",
        "CL wraps": post + f"Content-Length: {2**64 + n}\r\n\r\n{BODY}", "CL dot": post + f"Content-Length: {n}.0\r\n\r\n{BODY}",
        "CL quoted": post + f'Content-Length: "{n}"\r\n\r\n{BODY}', "CL underscore": post + f"Content-Length: 1_0\r\n\r\n{BODY}",
        "TE unknown": post + f"Transfer-Encoding: xchunked\r\n\r\n{whole}", "TE identity": post + f"Transfer-Encoding: identity\r\n\r\n{whole}",
        "TE not last": post + f"Transfer-Encoding: chunked, identity\r\n\r\n{whole}", "TE gzip": post + f"Transfer-Encoding: gzip, chunked\r\n\r\n{whole}",
        "TE twice": post + "Transfer-Encoding: chunked\r\n" * 2 + "\r\n" + whole, "TE folded": post + f"Transfer-Encoding:\r\n chunked\r\n\r\n{whole}",
        "TE vertical tab": post + f"Transfer-Encoding: \x0bchunked\r\n\r\n{whole}", "TE quoted": post + f'Transfer-Encoding: "chunked"\r\n\r\n{whole}',
        "TE empty": post + f"Transfer-Encoding:\r\nContent-Length: {n}\r\n\r\n{BODY}", "TE 1.0": chunked.replace("1.1", "1.0", 1) + whole,
        "TE list": post + f"Transfer-Encoding: chunked,\r\n\r\n{whole}", "space colon": post + f"Content-Length : {n}\r\n\r\n{BODY}",
        "tab colon": post + f"Transfer-Encoding\t: chunked\r\n\r\n{whole}", "fold": post + f"X: a\r\n b\r\nContent-Length: {n}\r\n\r\n{BODY}",
        "fold first": f"POST /v1/executions HTTP/1.1\r\n X: y\r\n{head}Content-Length: {n}\r\n\r\n{BODY}",
        "bare LF": (post + f"Content-Length: {n}\r\n\r\n").replace("\r\n", "\n") + BODY, "one LF": post + f"X: y\nContent-Length: {n}\r\n\r\n{BODY}",
        "bare CR": post + f"X: a\rContent-Length: {n}\r\n\r\n{BODY}", "NUL": post + f"X: \0\r\nContent-Length: {n}\r\n\r\n{BODY}",
        "no name": post + f": y\r\nContent-Length: {n}\r\n\r\n{BODY}", "no colon": post + f"Xy\r\nContent-Length: {n}\r\n\r\n{BODY}",
        "bad name": post + f"X(y): z\r\nContent-Length: {n}\r\n\r\n{BODY}", "high name": post + f"\xe9: z\r\nContent-Length: {n}\r\n\r\n{BODY}",
        "absolute": f"GET http://evil.com/healthz HTTP/1.1\r\n{head}\r\n", "authority": f"CONNECT 127.0.0.1:22 HTTP/1.1\r\n{head}\r\n",
        "fragment": f"GET /healthz#x HTTP/1.1\r\n{head}\r\n", "no slash": f"GET healthz HTTP/1.1\r\n{head}\r\n", "backslash": f"GET \\healthz HTTP/1.1\r\n{head}\r\n",
        "two spaces": f"GET  /healthz HTTP/1.1\r\n{head}\r\n", "tab": f"GET\t/healthz HTTP/1.1\r\n{head}\r\n", "leading space": f" GET /healthz HTTP/1.1\r\n{head}\r\n",
        "no version": f"GET /healthz\r\n{head}\r\n", "version": f"GET /healthz HTTP/1.10\r\n{head}\r\n", "lower": f"GET /healthz http/1.1\r\n{head}\r\n",
        "method": f"G@T /healthz HTTP/1.1\r\n{head}\r\n", "high target": f"GET /\xe9 HTTP/1.1\r\n{head}\r\n",
        "chunk ext": chunked + f"{size};{'x' * 100000}\r\n{BODY}\r\n0\r\n\r\n", "chunk 0x": chunked + f"0x{size}\r\n{BODY}\r\n0\r\n\r\n",
        "chunk sign": chunked + f"+{size}\r\n{BODY}\r\n0\r\n\r\n", "chunk space": chunked + f" {size}\r\n{BODY}\r\n0\r\n\r\n",
        "chunk wraps": chunked + f"1{'0' * (16 - len(size))}{size}\r\n{BODY}\r\n0\r\n\r\n", "chunk LF": chunked + f"{size}\n{BODY}\n0\n\n",
        "chunk long": chunked + f"{size}\r\n{BODY}!\r\n0\r\n\r\n", "chunk none": chunked + f"\r\n{BODY}\r\n0\r\n\r\n",
        "trailer CL": chunked + f"{size}\r\n{BODY}\r\n0\r\nContent-Length: 0\r\n\r\n", "trailer Host": chunked + f"{size}\r\n{BODY}\r\n0\r\nHost: evil\r\n\r\n",
        "many zeros": chunked + f"{'0' * 100}{size}\r\n{BODY}\r\n0\r\n\r\n", "TLS": "\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03",
        "HTTP/2": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    }


@quick
def test_A06_smuggling(siege):
    """Refused with 400 (or 505), the connection ended, nothing behind it read as a request, and nothing accepted."""
    before = siege.executions()
    behind = f"POST /v1/executions HTTP/1.1\r\n{siege.headers}Content-Type: application/json\r\nContent-Length: {len(BODY)}\r\n\r\n{BODY}"
    for name, text in smuggling(siege.headers).items():
        got = siege.raw(text + behind)
        assert status_of(got) in (400, 505), (name, got[:300])
        assert got.count(b"HTTP/1.1 ") == 1 and b"Connection: close\r\n" in got, (name, got)
    assert siege.executions() == before
    siege.well()


def test_A12_pipelined_and_cut(siege, web):
    """Byte by byte, all at once, half closed, and reset at every length of the same two requests."""
    one = f"POST /v1/execute HTTP/1.1\r\n{siege.headers}Content-Type: application/json\r\nContent-Length: {len(BODY)}\r\n\r\n{BODY}"
    two = (one * 2 + f"GET /healthz HTTP/1.1\r\n{siege.headers}Connection: close\r\n\r\n").encode()
    assert siege.raw(two).count(b"HTTP/1.1 200 OK") == 3
    with siege.connect() as s:
        for byte in two:
            s.send(bytes([byte]))
        assert read_all(s).count(b"HTTP/1.1 200 OK") == 3
    with siege.connect() as s:
        s.sendall(two)
        s.shutdown(socket.SHUT_WR)
        assert read_all(s).count(b"HTTP/1.1 200 OK") == 3
    fds = siege.fds()
    for length in range(0, len(two), 7):
        s = siege.connect()
        s.sendall(two[:length])
        reset(s)
        with siege.connect() as s:
            s.sendall(two[:length])
            s.shutdown(socket.SHUT_WR)
    siege.settle(fds)
    siege.well()


def endless(siege, path, accept):
    """A request whose answer has begun and does not end by itself."""
    body = json.dumps({"language": "bash", "code": "yes", "limits": {"timeout": 5, "output_total": "8m"}})
    s = siege.connect()
    s.sendall(f"POST {path} HTTP/1.1\r\n{siege.headers}Accept: {accept}\r\nContent-Type: application/json\r\n"
              f"Content-Length: {len(body)}\r\n\r\n{body}".encode())
    return s


def test_A17_client_vanishes_at_every_stage(siege, web):
    done = web.execute("bash", "head -c 4000000 /dev/zero | tee a b c")["id"]
    fds = siege.fds()  # the first run of all leaves its cache open
    slow = web.submit("bash", "cat", query="?interactive=1")
    head = f"POST /v1/execute HTTP/1.1\r\n{siege.headers}Content-Type: application/json\r\n"

    def after(text):
        s = siege.connect()
        s.sendall(text.encode())
        return s

    def reading(path):
        s = after(f"GET {path} HTTP/1.1\r\n{siege.headers}\r\n")
        assert s.recv(100)
        return s

    def streaming(accept):
        s = endless(siege, "/v1/execute?disconnect=cancel", accept)
        assert s.recv(100)
        return s

    def attached(data):
        s = WebSocket(web, f"/v1/executions/{slow}/attach").sock
        s.sendall(data)
        return s

    stages = [
        lambda: after(""), lambda: after("POST /v1/ex"), lambda: after(head + "Content-Length: 100\r\n\r\n"), lambda: after(head + "Content-Length: 100\r\n\r\n{\"la"),
        lambda: after(head + "Transfer-Encoding: chunked\r\n\r\n4\r\n{\"la"), lambda: after(head + "Expect: 100-continue\r\nContent-Length: 100\r\n\r\n"),
        lambda: endless(siege, "/v1/execute?disconnect=cancel", "*/*"), lambda: endless(siege, "/v1/executions", "*/*"),
        lambda: streaming("text/event-stream"), lambda: streaming("application/x-ndjson"), lambda: reading(f"/v1/executions/{done}/stdout"),
        lambda: reading(f"/v1/executions/{done}/files?format=tar"), lambda: reading(f"/v1/executions/{done}/files/a"), lambda: reading(f"/v1/executions/{slow}/events"),
        lambda: attached(b""), lambda: attached(frame(2, b"x" * 1000)[:500]), lambda: attached(frame(1, b'{"type": "eof')), lambda: attached(frame(8, b"\x03\xe8")),
        lambda: after(f"POST /execute HTTP/1.1\r\n{siege.headers}Content-Type: application/json\r\nContent-Length: 57\r\n\r\n"
                      '{"generated_code": "import time; time.sleep(1)", "timeout"'),
    ]
    for stage in stages:
        for end in (reset, socket.socket.close):
            end(stage())
    assert web.delete(f"/v1/executions/{slow}").status == 200
    end = time.monotonic() + 60
    while web.get("/v1/stats").json()["now"]["running"] > 0:
        assert time.monotonic() < end, "something runs that no client waits for"
        time.sleep(0.02)
    siege.settle(fds)
    siege.well()


def test_O10_results_outlive_clients(siege, web):
    """What a client that went away had asked for is there under its id; with disconnect=cancel it ended, however early
    the client went."""
    ids = []
    for query in ("",) + ("?disconnect=cancel",) * 30:
        body = json.dumps({"language": "bash", "code": f"echo begun; sleep {20 if query else 0.5}; echo over"})
        s = siege.connect()
        s.sendall(f"POST /v1/execute{query} HTTP/1.1\r\n{siege.headers}Accept: application/x-ndjson\r\nContent-Type: application/json\r\n"
                  f"Content-Length: {len(body)}\r\n\r\n{body}".encode())
        head = s.recv(4096)
        ids.append(re.search(rb"Content-Location: /v1/executions/(\S+)", head)[1].decode())
        time.sleep(len(ids) % 6 * 0.0003)
        reset(s)
    kept, *cancelled = (web.wait(id) for id in ids)
    assert (kept["status"], kept["stdout"]) == ("success", "begun\nover\n"), kept
    assert {result["status"] for result in cancelled} == {"cancelled"}, cancelled


# ------------------------------------------------------------------------------------------------ A08, A09, A10


def test_A08_sizes(siege, web):
    before = siege.rss()
    head = f"POST /v1/execute HTTP/1.1\r\n{siege.headers}Content-Type: application/json\r\n"
    assert status_of(siege.raw(head + f"Content-Length: {1 << 30}\r\n\r\n")) == 413
    assert status_of(siege.raw(f"GET / HTTP/1.1\r\n{siege.headers}" + "X: y\r\n" * 100000)) == 431
    assert status_of(siege.raw(f"GET / HTTP/1.1\r\n{siege.headers}X: " + "y" * (8 << 20))) == 431
    assert status_of(siege.raw("GET /" + "a" * (8 << 20) + " HTTP/1.1\r\n")) == 414
    assert status_of(siege.raw("GET /?" + "a&" * 3000 + " HTTP/1.1\r\n" + siege.headers + "Connection: close\r\n\r\n")) in (200, 400)
    assert status_of(siege.raw("X" * (8 << 20))) in (400, 414, 431, 501)
    assert siege.rss() < before + 16, "heads are kept"
    with contextlib.suppress(BrokenPipeError, ConnectionResetError), siege.connect() as s:  # more than a body may be, in pieces
        s.sendall((head + "Transfer-Encoding: chunked\r\n\r\n").encode())
        piece = b"100000\r\n" + b" " * (1 << 20) + b"\r\n"
        for _ in range(80):
            s.sendall(piece)
        assert status_of(read_all(s)) == 413
    texts = ["[" * 100000, '{"a":' * 100000, "[" + "0," * 400000 + "0]", '{"code": "1", "code": "2", "language": "bash"}', '{"language": "bash", "code": 1' + "0" * 5000 + "}",
             '{"language": "bash", "code": "true", "limits": {"timeout": 1e999}}', '{"language": "bash", "code": "true", "limits": {"timeout": NaN}}',
             '{"language": "bash", "code": "true", "limits": {"memory": 99999999999999999999}}', '{"language": "bash", "code": "true"} {}', "\ufeff\ufeff" + BODY,
             '{"language": "bash", "code": "\\ud800"}', '{"language": "bash", "code": "tr\\u0000ue", "entry": "a\\u0000b"}', "'" * 100, "\0", '{"language": "bash", "code": "true",}']
    for text in texts:
        answer = web.ask("POST", "/v1/execute", text.encode("utf-8", "surrogatepass"), {"Content-Type": "application/json"})
        assert answer.status == 400, (text[:60], answer)
        discreet(answer)
    assert web.ask("POST", "/v1/execute", b'{"language": "bash", "code": "\xff\xfe"}', {"Content-Type": "application/json"}).status == 400
    assert siege.rss() < before + 24 and siege.rss("VmHWM") < 400, (before, siege.rss(), siege.rss("VmHWM"))
    siege.well()


TRAVERSAL = ("..", "%2e%2e", "..%2f", "..%2f..%2fhistory.db", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "....//", "..;/x", "%00", "x%00", "%252e%252e", "%c0%ae%c0%ae",
             "\u2024\u2024", "\uff0e\uff0e", "%e2%80%a4%e2%80%a4", "..%5c..%5c", "/etc/passwd", "//etc/passwd", "%2fetc%2fpasswd", ".", "%20", "ex_", "~", "*", "%", "%zz",
             "ex_" + "a" * 26, "ex_" + "a" * 5000, "EX_AAAAAAAAAAAAAAAAAAAAAAAAAA", "ex_'%20OR%201=1--", "ex_%22;DROP%20TABLE%20x", "\u0130", "\u202e")


@quick
def test_A09_ids_and_paths(siege, web):
    id = web.execute("bash", "echo kept > a; mkdir d; echo deep > d/b; ln -s /etc/passwd link; ln -s . dot; mkfifo pipe")["id"]
    assert web.get(f"/v1/executions/{id}/files/d/b").body == b"deep\n"
    for bad in TRAVERSAL:
        raw = bad.encode().decode("latin1")
        for path in (f"/v1/executions/{raw}", f"/v1/executions/{raw}/stdout", f"/v1/executions/{id}/files/{raw}", f"/v1/executions/{id}/diff/{raw}",
                     f"/v1/executions/{id}/files/d/{raw}", f"/v1/executions/{id}/files/dot/{raw}", f"/v1/{raw}/limits", f"/v1/executions/{raw}/files/a"):
            got = siege.raw(f"GET {path} HTTP/1.1\r\n{siege.headers}Connection: close\r\n\r\n")
            assert status_of(got) in (400, 404, 414), (path, got[:400])
            assert b"root:" not in got and b"kept" not in got
    for name in ("link", "dot/a", "pipe", "d", "d/", "a/", "a/b", "d//b", "./a", "d/./b", "d/../a"):
        assert web.get(f"/v1/executions/{id}/files/{name}").status in (400, 404), name
    ids = {web.submit("bash", "true") for _ in range(40)} | {id}
    # 26 characters of 32: 130 bits, of which no place is always the same.
    assert all(re.fullmatch("ex_[a-z2-7]{26}", i) for i in ids) and len(ids) == 41
    assert min(len({i[at] for i in ids}) for at in range(3, 28)) > 8
    for i in ids:
        web.wait(i)


@quick
def test_A10_limits_above_their_ceilings(siege, web):
    limits = web.get("/v1/limits").json()
    table = limits["limits"] if "limits" in limits else limits
    names = [row["key"] for row in table] if isinstance(table, list) else list(table)
    assert "timeout" in names and "memory" in names, limits
    for name in names:
        for value in ("1000000000g", 1e300, -1, "-1", "NaN", [], {}, True, "", "1" * 400, 2**62, -2**63, "0x10", "١"):
            for body in ({**RUN, "limits": {name: value}}, {"language": "bash", "stages": [{"name": "a", "code": "true", "limits": {name: value}}]}):
                answer = web.post("/v1/execute", body)
                assert answer.status in (400, 403), (name, value, answer)
                assert name in discreet(answer)["detail"] or "limits" in answer.json()["detail"] or "stages" in answer.json()["detail"], answer
    for body in ({**RUN, "policy": "../../etc/passwd"}, {**RUN, "policy": "/etc/passwd"}, {**RUN, "workspace": "../x"}, {**RUN, "workspace": "/"},
                 {**RUN, "image": "/"}, {**RUN, "image": "/etc"}, {**RUN, "network": "host"}, {**RUN, "network": "allow:127.0.0.1:1"}, {**RUN, "host_functions": ["x"]},
                 {**RUN, "language": "../bash"}, {**RUN, "language": "/bin/sh"}, {**RUN, "priority": 11}, {**RUN, "env": {"LD_PRELOAD\0": "x"}}, {**RUN, "files": {"/etc/x": ""}}):
        answer = web.post("/v1/execute", body)
        assert answer.status in (400, 403), (body, answer)
        discreet(answer)


# ------------------------------------------------------------------------------------------------- Range, events


def test_A09_ranges(siege, web):
    id, text = web.execute("bash", "echo -n 0123456789")["id"], b"0123456789"
    for value in ("bytes=0-", "bytes=2-4", "bytes=-3", "bytes=9-", "bytes=10-", "bytes=-0", "bytes=5-2", "bytes=0-9223372036854775807", "bytes=9223372036854775807-",
                  "bytes=-9223372036854775808", "bytes=-99999999999999999999999", "bytes=18446744073709551615-", "bytes=--1", "bytes=1-2-3", "bytes=0-0,2-2",
                  "bytes=" + "0-1," * 10000 + "0-1", "bytes=", "bytes", "=0-1", "BYTES=0-1", "bytes = 0-1", "bytes=0x1-", "bytes=1e1-", "lines=0-1", "bytes=+1-2", "bytes=0-1\t"):
        answer = web.get(f"/v1/executions/{id}/stdout", headers={"Range": value})
        assert answer.status in (200, 206, 416, 431), (value, answer)
        if answer.status == 206:
            begin, end, size = map(int, re.fullmatch(r"bytes (\d+)-(\d+)/(\d+)", answer.headers["content-range"]).groups())
            assert size == 10 and 0 <= begin <= end < 10 and answer.body == text[begin:end + 1], (value, answer)
        elif answer.status == 200:
            assert answer.body == text, value


def test_A09_forged_event_ids(siege, web):
    """A client may claim any number as seen: it gets a part of its own stream, nothing, or 400."""
    id = web.execute("bash", "echo hello; sleep 0.05; echo world >&2; sleep 0.05; echo again")["id"]
    for last in ("-1", "0", "1", "2", "3", "4", "99", "9" * 30, "9223372036854775807", "1-2-3-4", "0-0-0-0", "99-99-99-99", "1--1-0-0", "-1-0-0-0", "0-0-0-end", "9-9-9-end", "1-0-0-end",
                 "9223372036854775807-0-0-0", "0-9223372036854775807-0-0", "2305843009213693951-2305843009213693951-2305843009213693951-2305843009213693951", "a", "0-0-0-a", "1-2-3",
                 "1-2-3-4-5", "-", "----", " 1", "1 ", "+1", "0x1", "1" * 5000, "1.5", "%31", "ex_" + "a" * 26):
        for path, headers in ((f"/v1/executions/{id}/events", {"Last-Event-ID": last}), (f"/v1/executions/{id}/events?after={last.strip().replace('%', '%25').replace('+', '%2b')}", {})):
            if len(last) > 4000 and not headers:
                continue
            answer = web.get(path, headers=headers)
            assert answer.status in (200, 400) or (answer.status, answer.body) == (204, b""), (last, answer)
            if answer.status == 200:
                events = [data for _, _, data in sse(answer.body.splitlines(keepends=True))]
                told = "".join(e["data"] for e in events if e["event"] == "stdout")
                assert "hello\nagain\n".endswith(told), (last, events)
    siege.well()


# ------------------------------------------------------------------------------------------------------ A13, A14


def test_A13_logs_cannot_be_forged(siege, web):
    """Line breaks and quotes in everything that is ever logged: each line stays one record of ours."""
    forged = '\n{"time":"2026-01-01T00:00:00Z","level":"error","who":"monitor","msg":"forged"}\r\n\x1b[31m"=\u2028 msg=forged'
    begin = len(siege.daemon.records)
    id = web.execute("bash", f": '{forged}'; exit 3", labels={"a": forged})["id"]
    web.post("/v1/executions", {**RUN, "labels": {forged: "x"}})
    web.post("/v1/execute", {**RUN, "language": forged})
    web.post("/v1/execute", {**RUN, "callback_url": "http://x/" + forged})
    web.post("/v1/execute", {**RUN, "workspace": forged})
    web.post("/v1/execute", {**RUN, "policy": forged})
    web.post("/execute", {"generated_code": "1", "timeout": 1, "language": forged})
    for text in ("%0a%7b%22msg%22%3a%22forged%22%7d", "%22%20msg=forged", "a%0d%0amsg=forged", "%1b[31m", "%e2%80%a8", "%ff%fe"):
        for target in (text, f"{text}?x={text}"):
            siege.raw(f"GET /v1/executions/{target} HTTP/1.1\r\n{siege.headers}User-Agent: \xff{{\r\nConnection: close\r\n\r\n")
    web.post("/v1/executions", RUN, headers={"Idempotency-Key": '"msg"="forged"'})
    assert web.state(id)["exit_code"] == 3
    siege.daemon.wait_record("request", begin, status=404)
    fresh = siege.daemon.records[begin:]
    assert not siege.daemon.other, siege.daemon.other
    known = ("request", "started", "ready")
    assert {r["msg"] for r in fresh} <= set(known) and {r["who"] for r in fresh} == {"front"}, fresh
    audit = records(siege.daemon.state / "audit.log")
    assert all(r["msg"] != "forged" for r in audit)
    raw = (siege.daemon.state / "audit.log").read_bytes()
    assert b"\x1b" not in raw and b"\r" not in raw and b"sleep" not in raw, "the audit tells codes"


LOGFMT = re.compile(r'(?P<key>[a-z_0-9]+)=(?:"(?P<text>(?:[^"\\\\\x00-\x1f\x7f]|\\\\["\\\\ntr]|\\\\u[0-9a-f]{4})*)"|(?P<word>[^\s"=]*))(?: |$)')


def logfmt(line):
    """A record; fails on a line that is none."""
    record, at = {}, 0
    while at < len(line):
        match = LOGFMT.match(line, at)
        assert match, (line, at)
        assert match["key"] not in record, ("twice", line)
        record[match["key"]] = match["word"] if match["text"] is None else json.loads(f'"{match["text"]}"')
        at = match.end()
    return record


class Plain(Daemon):
    """One that logs as people read it."""

    def __init__(self, atoll, work, *options, **more):
        super().__init__(atoll, work, *options, "--log-format", "logfmt", **more)

    def read(self):
        for line in self.popen.stderr:
            with self.changed:
                try:
                    record = logfmt(line.decode().removesuffix("\n"))
                    if "pid" in record:
                        record["pid"] = int(record["pid"])
                    self.records.append(record)
                except (AssertionError, ValueError):
                    self.other.append(line.decode("utf-8", "replace"))
                self.changed.notify_all()
        with self.changed:
            self.changed.notify_all()


def test_A13_logfmt_cannot_be_forged(mode, stage):
    """Control characters, quotes, equals signs and line breaks in path, query, Host, User-Agent, method, label, id, key, body: a line
    is one record of ours, in the log and in the audit file, and no value becomes a key."""
    siege = Siege(Atoll(mode, stage), stage.scratch(mode, "logfmt"), "log.level=debug", tokens=False, kind=Plain)
    try:
        web = siege.alice
        forged = 'x"\n\r\ttime=2026-01-01T00:00:00Z level=error who=monitor msg=forged forged="1\x1b[2J\x07\x00\x7f\x85\u2028\u202e\\'
        for key, value in (("labels", {"a": forged}), ("labels", {forged: "a"}), ("language", forged), ("policy", forged), ("workspace", forged),
                           ("callback_url", "http://x/" + forged), ("network", forged), ("files", {forged: "x"}), (forged, 1), ("priority", forged),
                           ("archive", forged), ("env", {forged: "x"}), ("limits", {forged: 1})):
            web.post("/v1/execute", {**RUN, key: value})
            web.post("/v1/executions", {**RUN, key: value})
        web.post("/execute", {"generated_code": "1", "timeout": 1, "language": forged})
        for text in ("%0a%0dlevel=error%20msg=forged", "%22%20forged=1%20x=%22", "%1b[31m", "%e2%80%a8", "%ff%fe", "%7f%80", "%5c%22%20forged=1", "a=b%20forged=1"):
            for head in (f"GET /v1/executions/{text}?x={text}", f"DELETE /v1/executions/{text}", f"GET /{text}"):
                siege.raw(f"{head} HTTP/1.1\r\n{siege.headers}User-Agent: \xff\" forged=1 {{\r\nConnection: close\r\n\r\n")
        for raw in ('GET / HTTP/1.1\r\nHost: x" forged=1 y="\r\nConnection: close\r\n\r\n', 'GET /a" forged=1 HTTP/1.1\r\n\r\n', 'FO"O=1 / HTTP/1.1\r\nHost: x\r\n\r\n',
                    'GET /\x1b"forged=1 HTTP/1.1\r\nHost: x\r\n\r\n', 'GET /\x0bforged=1 HTTP/1.1\nHost: \x00\r\n\r\n'):
            siege.raw(raw)
        web.post("/v1/executions", RUN, headers={"Idempotency-Key": '"forged="1"'})
        web.get("/v1/executions/last-of-all")
        siege.daemon.wait_record("request", status="404", target="/v1/executions/last-of-all")
        assert not siege.daemon.other, siege.daemon.other
        assert len(siege.daemon.records) > 60
        audit = [logfmt(line) for line in (siege.daemon.state / "audit.log").read_text().split("\n")[:-1]]
        assert len(audit) > 15
        for record in siege.daemon.records + audit:
            assert "forged" not in record and record["msg"] != "forged", record
            assert record.get("who") in (None, "front", "monitor", "broker") and record["level"] != "error", record
    finally:
        siege.end()


def test_A14_doctor_names_no_path(siege, web):
    """What the host can enforce is for every caller to see (doc/http.md sets no bound); where anything of ours lies is not."""
    for path in ("/v1/doctor", "/v1/languages", "/v1/policies", "/v1/limits", "/v1/stats", "/metrics", "/readyz"):
        answer = (LocalWeb(siege.daemon.socket) if path == "/metrics" else web).get(path, timeout=60)
        assert answer.status == 200 and not INNARDS.search(answer.body.replace(b"/usr/lib/", b"") if path == "/v1/policies" else answer.body), \
            (path, INNARDS.search(answer.body))
        assert str(siege.daemon.state).encode() not in answer.body and str(siege.work).encode() not in answer.body


def test_A14_errors_tell_nothing_of_the_host(siege, web):
    id = web.submit("bash", "sleep 20")
    for method, path, body in (
            ("GET", "/nowhere", None), ("PUT", "/v1/execute", None), ("GET", f"/v1/executions/{id}/analysis", None), ("GET", f"/v1/executions/{id}/files", None),
            ("GET", f"/v1/executions/{id}/files/x", None), ("GET", f"/v1/executions/{id}/attach", None), ("GET", "/v1/executions?cursor=x", None),
            ("GET", "/v1/executions?cursor=" + "A" * 500, None), ("GET", "/v1/executions?label=x", None), ("GET", "/v1/executions?limit=0", None), ("GET", "/v1/executions?since=x", None),
            ("GET", "/v1/executions?%27=1", None), ("POST", "/v1/execute", {**RUN, "files": {"a/../b": "x"}}), ("POST", "/v1/execute", {**RUN, "archive": "AAAA"}),
            ("POST", "/v1/execute", {**RUN, "entry": "../x"}), ("POST", "/v1/execute", {"language": "python", "code": "1", "preload": ["/etc/passwd"]}),
            ("POST", "/v1/execute", {**RUN, "stdin": {"base64": "!"}}), ("POST", "/v1/execute", {**RUN, "callback_url": "http://127.0.0.1/"}),
            ("GET", f"/v1/executions/{id}/events?after=x", None), ("GET", f"/v1/executions/{id}/files?format=zip", None)):
        discreet(web.ask(method, path, body))
    web.delete(f"/v1/executions/{id}")
    web.wait(id)
