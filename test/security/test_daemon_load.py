# SPDX-License-Identifier: Apache-2.0
"""A07, A08, R16 and the abuse of streams, WebSockets and callbacks against `atoll serve`: what many, slow or greedy clients do
to all other clients. Memory is the front's; health is asked for all the while."""
import contextlib
import base64
import json
import os
import resource
import socket
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from program import Atoll
from siege import Pulse, Siege, discreet, frame, read_all, status_of
from web import SANITIZED, WebSocket

pytestmark = [pytest.mark.modes("root"), pytest.mark.cold("the daemon keeps its own cells warm")]
# What is promised; of a sanitized daemon a multiple of it.
HEALTH_S = 0.05 * (4 if SANITIZED else 1)


def make_siege(mode, stage):
    return Siege(Atoll(mode, stage), stage.scratch(mode, "siege"), "http.header_timeout=1s", "http.write_timeout=1s", "queue.running=4",
                 "queue.max=20", "queue.per_caller=10")


@pytest.fixture(scope="module")
def siege(mode, stage):
    made = make_siege(mode, stage)
    yield made
    made.end()


@pytest.fixture
def fresh_siege(mode, stage):
    """For tests that leave a large heap behind, so that others can tell what is kept of theirs."""
    made = make_siege(mode, stage)
    yield made
    made.end()


def hold(siege, before, most=24):
    """The front kept less than that many MiB of what it was sent."""
    if not SANITIZED:
        assert siege.rss() < before + most, (before, siege.rss())


# ----------------------------------------------------------------------------------------------------------- A07


@pytest.mark.undisturbed
@pytest.mark.alone
def test_A07_slow_and_idle(siege):
    """5,000 idle connections and 100 that send a byte now and then: others notice nothing."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, 8192), hard), hard))
    if min(max(soft, 8192), hard) < 6000:
        pytest.skip("this session may not have 6,000 descriptors")
    siege.well()  # what the front opens for its first run stays open
    before, fds = siege.rss(), siege.fds()
    with contextlib.ExitStack() as all_, Pulse(siege) as pulse:
        for _ in range(5000):
            all_.enter_context(siege.connect())
        slow = [all_.enter_context(siege.connect()) for _ in range(100)]
        begin, head = time.monotonic(), f"GET /healthz HTTP/1.1\r\n{siege.headers}".encode()
        for byte in head[:8]:
            for s in slow:
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    s.send(bytes([byte]))
            time.sleep(0.15)
        got = [read_all(s) for s in slow]
        took = time.monotonic() - begin
        assert all(status_of(answer) in (0, 408) for answer in got) and took < 25, (took, got[:3])
        assert siege.alice.execute("bash", "echo well")["stdout"] == "well\n"
        hold(siege, before, 48)
    assert pulse.median() < HEALTH_S, pulse.median()
    siege.settle(fds + 4)


@pytest.mark.undisturbed
def test_A07_slow_body(siege):
    """A body that trickles is waited for, but not for ever, and holds no other request up; one that stops costs nothing."""
    head = f"POST /v1/execute HTTP/1.1\r\n{siege.headers}Content-Type: application/json\r\nContent-Length: 60000000\r\n\r\n"
    before = siege.rss()
    with contextlib.ExitStack() as all_, Pulse(siege) as pulse:
        slow = [all_.enter_context(siege.connect()) for _ in range(200)]
        for s in slow:
            s.sendall((head + "{").encode())
        for _ in range(5):
            for s in slow:
                s.send(b" ")
            time.sleep(0.05)
        hold(siege, before)  # what was announced is not what is set aside
        assert siege.bob.execute("bash", "echo well")["stdout"] == "well\n"
    assert pulse.median() < HEALTH_S, pulse.median()


@pytest.mark.undisturbed
def test_A07_slow_readers(siege):
    """Of a large answer, of events, of a tar, of a WebSocket: bounded, cut off, and the program is not held up."""
    id = siege.alice.execute("bash", "head -c 20000000 /dev/zero > big; cat big")["id"]
    before, fds = siege.rss(), siege.fds()
    paths = [f"/v1/executions/{id}/stdout", f"/v1/executions/{id}/files/big", f"/v1/executions/{id}/files?format=tar", f"/v1/executions/{id}/events"]
    with contextlib.ExitStack() as all_, Pulse(siege) as pulse:
        slow = []
        for n in range(40):
            s = all_.enter_context(siege.connect(rcvbuf=4096))
            s.sendall(f"GET {paths[n % 4]} HTTP/1.1\r\n{siege.headers}\r\n".encode())
            slow.append(s)
        time.sleep(0.5)
        hold(siege, before, 32)  # those who read its events share the result, of 7 MB as text
        siege.settle(fds + 2)  # all were let go: none has read anything for longer than a second
    assert pulse.median() < HEALTH_S, pulse.median()
    siege.well()


# ------------------------------------------------------------------------------------------------- what is large


def large_bodies():
    """One of 60 MB, then some of 12 MB, each heavy in another way."""
    text = base64.b64encode(os.urandom(3 << 18)) * 57
    yield b'{"language": "bash", "code": "true", "limits": {"disk": "200m", "file_size": "100m"}, "files": {"f": {"base64": "' + text + b'"}}}'
    yield json.dumps({"language": "bash", "code": "true", "limits": {"disk": "200m", "file_size": "100m"}, "files": {"f": "w\u00f6rter und zeilen\n" * 600000}}, ensure_ascii=False).encode()
    yield b'{"language": "bash", "code": "true", "stdin": "' + b"\\u00e9" * 2000000 + b'"}'
    yield b'{"language": "bash", "code": "true"' + b" " * (12 << 20) + b"}"
    yield b'{"language": "bash", "code": "true", "args": [' + b",".join([b'"' + b"x" * 220 + b'"'] * 55000) + b"]}"
    yield b'{"language": "bash", "code": "true", "stdin": "' + b"x" * (12 << 20)  # no end


@pytest.mark.undisturbed
@pytest.mark.alone
def test_A08_large_bodies(fresh_siege):
    """12 to 60 MB of JSON, two at a time: neither health nor a small run waits for them; the memory goes back."""
    siege = fresh_siege

    def post(body):
        return siege.alice.ask("POST", "/v1/execute", body, {"Content-Type": "application/json"}, timeout=120)

    bodies = list(large_bodies())
    for body in bodies:
        with Pulse(siege) as pulse, ThreadPoolExecutor(2) as pool:
            answers = [pool.submit(post, body) for _ in range(2)]
            slow = []
            while not all(answer.done() for answer in answers) or not slow:
                begin = time.monotonic()
                assert siege.bob.execute("bash", "echo well")["stdout"] == "well\n"
                slow.append(time.monotonic() - begin)
            answers = [answer.result() for answer in answers]
        assert pulse.most() < HEALTH_S, (body[:80], pulse.took[-10:])
        assert sorted(slow)[len(slow) // 2] < 10 * (HEALTH_S + pulse.usual), slow
        good = body not in bodies[-2:]
        assert {answer.status for answer in answers} == {200 if good else 400}, answers
        assert not good or all(answer.json()["status"] == "success" for answer in answers)
    # The same with a key, which hashes it all, and from clients that do not wait for the answer.
    body, fds = bodies[1], siege.fds()
    with Pulse(siege) as pulse:
        answer = siege.alice.ask("POST", "/v1/executions", body, {"Content-Type": "application/json", "Idempotency-Key": "large"}, timeout=120)
        assert answer.status == 202, answer
        again = siege.alice.ask("POST", "/v1/executions", body, {"Content-Type": "application/json", "Idempotency-Key": "large"}, timeout=120)
        assert again.status == 202 and again.json()["id"] == answer.json()["id"], again
        assert siege.alice.wait(answer.json()["id"])["status"] == "success"
        for _ in range(3):
            with siege.connect(timeout=60) as s:
                s.sendall(f"POST /v1/execute HTTP/1.1\r\n{siege.headers}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
    assert pulse.most() < HEALTH_S, pulse.took[-10:]
    siege.settle(fds + 4)
    siege.well()
    end = time.monotonic() + 60
    while not SANITIZED and siege.rss() > 128:
        assert time.monotonic() < end, siege.rss()
        time.sleep(0.2)


@pytest.mark.undisturbed
@pytest.mark.alone
def test_A08_large_results(fresh_siege):
    """Outputs of 16 MB: made, compared, explained, replayed and read in every way while others are served."""
    siege = fresh_siege
    run = {"language": "bash", "code": "seq -f 'line %.0f' 1200000", "limits": {"output": "16m", "output_total": "64m"}}
    with Pulse(siege) as pulse:
        ids = [siege.alice.post("/v1/execute", {**run, "code": run["code"] + "; echo " + word}, timeout=60).json()["id"] for word in "ab"]
    assert pulse.most() < HEALTH_S, pulse.took[-10:]
    paths = [f"/v1/executions/{ids[0]}/{rest}" for rest in (f"diff/{ids[1]}", "analysis", "debug-report", "events", "stdout", "files")] + [f"/v1/executions/{ids[0]}"]
    for path in paths:
        with Pulse(siege) as pulse, ThreadPoolExecutor(3) as pool:
            answers = list(pool.map(lambda _: siege.alice.get(path, timeout=60), range(3)))
        assert {answer.status for answer in answers} == {200}, answers[0]
        assert pulse.most() < HEALTH_S, (path, pulse.took[-10:])
    assert siege.alice.get(paths[0]).json()["same"] is False
    siege.well()


def test_A08_stopped_in_the_middle(mode, stage):
    """A large body is being read when the daemon is told to stop: it ends, in time, and the client knows what became of it."""
    siege = Siege(Atoll(mode, stage), stage.scratch(mode, "stopped"), tokens=False)
    body = next(large_bodies())
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(siege.alice.ask, "POST", "/v1/execute", body, {"Content-Type": "application/json"}, timeout=120)
        time.sleep(0.5)
        siege.end()
        with contextlib.suppress(ConnectionError):
            assert answer.result().status in (200, 503), answer.result()


def test_A08_stopped_before_clients_that_stand_still(mode, stage):
    """A request that is half here, and an answer that its client does not take, do not use up the time that running programs have to end."""
    siege = Siege(Atoll(mode, stage), stage.scratch(mode, "stands"), tokens=False)
    run = {"language": "bash", "code": "head -c 15000000 /dev/zero | tr '\\0' x", "limits": {"output": "16m", "output_total": "64m"}}
    id = siege.alice.post("/v1/execute", run, timeout=60).json()["id"]
    with siege.connect() as half, siege.connect() as head, siege.connect(rcvbuf=4096) as reader:
        half.sendall(f"POST /v1/execute HTTP/1.1\r\n{siege.headers}Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{{".encode())
        head.sendall(b"POST /v1/exec")
        reader.sendall(f"GET /v1/executions/{id} HTTP/1.1\r\n{siege.headers}\r\n".encode())
        reader.recv(1)  # the answer is on its way
        begun = time.monotonic()
        siege.end()
        assert time.monotonic() - begun < 20


# ----------------------------------------------------------------------------------------------------------- R16


@pytest.mark.undisturbed
def test_R16_ten_times_too_much(siege):
    """200 at once where 4 run and 20 wait: the rest is refused at once, with Retry-After; then all is as before."""
    quick = {"language": "bash", "code": "sleep 0.05"}

    def one(n):
        web, path = (siege.alice, siege.bob)[n % 2], ("/v1/execute", "/v1/executions")[n // 2 % 2]
        begin = time.monotonic()
        answer = web.post(path, quick, timeout=60)
        return answer, time.monotonic() - begin

    def healthy():
        begin = time.monotonic()
        assert siege.alice.get("/healthz").status == 200
        return time.monotonic() - begin

    with Pulse(siege) as pulse, ThreadPoolExecutor(40) as pool:
        answers = list(pool.map(one, range(240)))
    assert {answer.status for answer, _ in answers} <= {200, 202, 429}, {a.status for a, _ in answers}
    refused = [(answer, took) for answer, took in answers if answer.status == 429]
    assert len(refused) > 20
    for answer, _ in refused:
        assert 1 <= int(answer.headers["retry-after"]) <= 60 and discreet(answer)["code"] == "queue_full", answer
    with ThreadPoolExecutor(40) as pool:  # the same crowd, with a question that is always answered at once
        usual = sorted(pool.map(lambda _: healthy(), range(240)))
    assert sorted(took for _, took in refused)[len(refused) // 2] < HEALTH_S + 2 * usual[120]
    assert pulse.median() < HEALTH_S, pulse.median()
    for answer, _ in answers:
        assert answer.status != 200 or answer.json()["status"] == "success", answer
    begin = time.monotonic()
    for answer, n in zip((a for a, _ in answers), range(240)):
        if answer.status == 202:
            assert (siege.alice, siege.bob)[n % 2].wait(answer.json()["id"])["status"] == "success"
    assert siege.alice.execute("bash", "echo back")["stdout"] == "back\n" and time.monotonic() - begin < 25
    siege.well()


def test_R16_one_account_does_not_fill_the_queue(siege):
    """Alice may have 10 jobs waiting and no more; Bob's still get in, and his turn comes before her tenth."""
    mine = [siege.alice.post("/v1/executions", {"language": "bash", "code": "sleep 25", "labels": {"n": str(n)}}) for n in range(30)]
    assert [a.status for a in mine].count(429) >= 30 - 10 - 4 - 2, [a.status for a in mine]
    his = siege.bob.post("/v1/executions", {"language": "bash", "code": "true"})
    assert his.status == 202, his
    result = siege.bob.wait(his.json()["id"])
    left = [siege.alice.state(a.json()["id"])["status"] for a in mine if a.status == 202]
    assert result["status"] == "success" and "queued" in left, left
    assert siege.alice.post("/v1/cleanup").status == 200


# ----------------------------------------------------------------------------------------------------- WebSockets


@contextlib.contextmanager
def attached(siege, code="cat", rcvbuf=None):
    id = siege.alice.submit("bash", code, query="?interactive=1")
    siege.alice.wait(id, "running")
    ws = WebSocket(siege.alice, f"/v1/executions/{id}/attach")
    assert ws.status == 101
    if rcvbuf:
        ws.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
    try:
        yield ws, id
    finally:
        ws.close()
        if siege.alice.delete(f"/v1/executions/{id}").json()["cancelled"]:
            siege.alice.wait(id)


BROKEN = {
    "unmasked": frame(1, b'{"type": "eof"}', mask=False), "reserved bit": frame(1, b"{}", rsv=4), "opcode 3": frame(3, b"x"), "opcode 11": frame(11), "continued from nothing": frame(0, b"x"),
    "two begun": frame(1, b"a", fin=False) + frame(1, b"b"), "half a ping": frame(9, b"x", fin=False), "long ping": b"\x89\xfe" + struct.pack("!H", 200) + b"\0" * 204,
    "not the shortest": b"\x81\xfe\0\x02\0\0\0\0{}", "top bit": b"\x82\xff" + b"\xff" * 8 + b"\0\0\0\0x", "a terabyte": b"\x82\xff" + struct.pack("!Q", 1 << 40) + b"\0\0\0\0x",
    "bad text": frame(1, b"\xff\xfe"), "overlong text": frame(1, b"\xc0\xaf"), "surrogate": frame(1, b"\xed\xa0\x80"), "cut text": frame(1, b"\xe2\x82"), "close of one byte": frame(8, b"x"),
    "close with 1005": frame(8, struct.pack("!H", 1005)), "close with bad text": frame(8, struct.pack("!H", 1000) + b"\xff"), "close with 0": frame(8, b"\0\0"), "HTTP": b"GET / HTTP/1.1\r\n\r\n",
    "a large message": frame(2, b"x" * ((1 << 20) + 1)),
}


def test_A02_broken_frames(siege):
    """Each ends its own connection soon, with a close frame or without; the program goes on."""
    with attached(siege) as (keeper, id):
        keeper.until("start")
        for name, data in BROKEN.items():
            ws = WebSocket(siege.alice, f"/v1/executions/{id}/attach")
            ws.sock.settimeout(20)
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                ws.sock.sendall(data)
            try:
                read_all(ws.sock)  # up to its end
            except TimeoutError:
                pytest.fail(f"{name}: the connection stays")
            ws.close()
        keeper.send(b"still there\n")
        assert keeper.until("stdout")["data"] == "still there\n"
    siege.well()


@pytest.mark.undisturbed
@pytest.mark.alone  # beside others their work is in the way of the pulse, every time
def test_A08_floods_of_frames(siege):
    """Frames that make us answer, from a client that does not read: it is not read either, nothing piles up."""
    before = siege.rss()
    floods = {"pings": frame(9, b"x" * 125), "empty pings": frame(9), "complaints": frame(1, b"{}"), "signals": frame(1, b'{"type":"signal","signal":"x"}'),
              "windows": frame(1, b'{"type":"resize","rows":0}'), "fragments": frame(2, b"x", fin=False) + frame(0, b"x", fin=False) * 50000, "empty": frame(2)}
    for name, data in floods.items():
        with attached(siege, "sleep 20", rcvbuf=4096) as (ws, _), Pulse(siege) as pulse:
            ws.sock.settimeout(0.3)
            blob, sent, end = data * (1 + (1 << 18) // len(data)), 0, time.monotonic() + 1
            with contextlib.suppress(TimeoutError, BrokenPipeError, ConnectionResetError):
                while sent < 12 << 20 and time.monotonic() < end:
                    sent += ws.sock.send(blob[sent % len(data):])
            hold(siege, before)
        assert pulse.median() < HEALTH_S, (name, pulse.median())
    siege.well()


def test_A08_input_that_nobody_takes(siege):
    before = siege.rss()
    with attached(siege, "sleep 20") as (ws, _):
        ws.sock.settimeout(0.3)
        sent = 0
        with contextlib.suppress(TimeoutError):
            while sent < 64 << 20:
                sent += ws.sock.send(frame(2, b"x" * 60000))
        assert sent < 32 << 20, "it takes what no program reads"
        hold(siege, before)


def half(size):
    """A frame that lacks its last byte."""
    return frame(2, b"x" * size)[:-1]


def is_refused(ws, wait=0.02):
    """The number and the reason of the close frame that comes next; None: the server waits for more."""
    ws.sock.settimeout(wait)
    with contextlib.suppress(TimeoutError):
        while True:
            first, size = ws.take(2)
            data = ws.take(size if size < 126 else struct.unpack("!H", ws.take(2))[0])
            if first & 0xF == 8:
                return struct.unpack("!H", data[:2])[0], data[2:].decode()
    return None


@pytest.mark.alone
def test_A08_half_messages(fresh_siege):
    """Messages whose end never comes hold as much as bodies of one caller may, and no more; other callers' large bodies have room."""
    siege, before, sent = fresh_siege, fresh_siege.rss(), []
    large = {"language": "bash", "code": "true", "stdin": "x" * (8 << 20)}
    with contextlib.ExitStack() as all_:
        def begin(message):
            sent.append(all_.enter_context(contextlib.closing(WebSocket(siege.alice, "/mcp"))))
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                sent[-1].sock.sendall(message)

        large_half, small_half = half(15 << 20), half(1 << 20)
        for _ in range(40):
            begin(large_half)
        while not (full := is_refused(sent[-1])):
            pass
        assert full == (1013, "Too many of your large requests or answers are under way; try again later."), full
        assert not any(is_refused(ws) for ws in sent[:25])
        if not SANITIZED:
            assert siege.rss() < before + 700, siege.rss()
        # What is small is taken; large input and large bodies are not, which count for the same.
        begin(small_half)
        while not is_refused(sent[-1], wait=0.2):
            begin(small_half)
        with attached(siege, "sleep 20") as (ws, _):
            ws.send(b"x" * (1 << 20))
            while not (full := is_refused(ws)):
                pass
            assert full[0] == 1013, full
        assert siege.alice.execute("bash", "echo well")["stdout"] == "well\n"
        assert siege.alice.post("/v1/execute", large).status == 503
        assert siege.bob.post("/v1/execute", large, timeout=60).json()["status"] == "success"
    siege.settle(40)
    assert siege.alice.post("/v1/execute", large, timeout=60).json()["status"] == "success"
    siege.well()


def test_A08_messages_that_stop(mode, stage):
    """A message that stands still is given up, on each kind of WebSocket; silence between messages is none."""
    siege = Siege(Atoll(mode, stage), stage.scratch(mode, "stops"), "http.body_timeout=500ms", tokens=False)
    try:
        session = siege.alice.post("/v1/sessions", {"language": "bash"}).json()["id"]
        with attached(siege, "sleep 30") as (_, id):
            silent = WebSocket(siege.alice, "/mcp")
            for path in ("/mcp", f"/v1/executions/{id}/attach", f"/v1/sessions/{session}/attach"):
                ws = WebSocket(siege.alice, path)
                ws.sock.sendall(half(100))
                while not (refused := is_refused(ws)):
                    pass
                assert refused == (1008, "the message did not arrive in time"), (path, refused)
                ws.close()
            # In many parts, which alone are no message.
            silent.sock.sendall(frame(1, b'{"jsonrpc": "2.0", ', fin=False) + frame(0, fin=False) * 5000 + frame(9, b"?") + frame(0, b'"id": 1, "method": "ping"}'))
            assert json.loads(silent.receive())["id"] == 1
            silent.close()
        siege.well()
    finally:
        siege.end()


def test_A10_signals_and_windows(siege):
    """Only real signals to one's own program; anything else is answered with an error and changes nothing."""
    with attached(siege) as (ws, id):
        ws.until("start")
        wrong = [0, -1, 65, 1000, 2**32 + 9, -2**63, 9.0, True, None, "", "SIG", "SIGSIG", "KILL ", "9", [9], {"n": 9}, "x" * 1000]
        for value in wrong:
            ws.send({"type": "signal", "signal": value})
            assert ws.until("error"), value
        for rows, columns in ((0, 1), (1, 65536), (-1, 5), ("5", 5), (2**32 + 5, 5), (None, None)):
            ws.send({"type": "resize", "rows": rows, "columns": columns})
            assert ws.until("error"), (rows, columns)
        for text in ("[]", "7", '"x"', "{", '{"type": "stdin"}', '{"type": "stdin", "data": 5}', '{"type": "exec"}', "[" * 50000, '{"type": "eof", "type": "stdin"}'):
            ws.send(text)
            assert ws.until("error"), text[:50]
        ws.send({"type": "stdin", "data": "alive\n"})
        assert ws.until("stdout")["data"] == "alive\n"
        ws.send({"type": "signal", "signal": "SIGKILL"})
        assert ws.until("result")["data"]["signal"] in ("SIGKILL", 9, "KILL")
    siege.well()


# ------------------------------------------------------------------------------------------------------ callbacks


class Trap:
    """A server on 127.0.0.1 that redirects to another path of itself; the paths that were asked for."""

    def __init__(self):
        self.sock = socket.create_server(("127.0.0.1", 0))
        self.port, self.paths = self.sock.getsockname()[1], []
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                peer, _ = self.sock.accept()
                with peer:
                    peer.settimeout(20)
                    self.paths.append(peer.recv(65536).split()[1].decode())
                    peer.sendall(f"HTTP/1.1 307 X\r\nLocation: http://127.0.0.1:{self.port}/redirected\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())

    def close(self):
        self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()


def urls(port):
    hosts = ("127.0.0.1", "localhost", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "0", "0.0.0.0", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::7f00:1]", "[::127.0.0.1]",
             "localhost.", "127.0.0.1.", "127.0.0.2", "[fe80::1]", "169.254.169.254", "10.0.0.1", "192.168.0.1", "172.16.0.1", "100.64.0.1", "①②⑦.⓪.⓪.①")
    return [f"http://{host}:{port}/from-{n}" for n, host in enumerate(hosts)]


def test_N11_callbacks(mode, stage, siege):
    """Refused unless the settings allow them; where they do, no address of this machine or its network is ever dialled."""
    body, trap = {"language": "bash", "code": "true"}, Trap()
    try:
        for url in urls(trap.port)[:3]:
            answer = siege.alice.post("/v1/execute", {**body, "callback_url": url})
            assert answer.status == 403 and discreet(answer)["field"] == "callback_url", answer
        open_ = Siege(Atoll(mode, stage), stage.scratch(mode, "open"), "callbacks.allow=true", "callbacks.attempts=1", "callbacks.timeout=1s", tokens=False)
        try:
            for url in ("file:///etc/passwd", "gopher://127.0.0.1/", "dict://x/", "ftp://x/", "http://", "//127.0.0.1/", "x", "", "http://a:b@example.org/", "http://a@example.org/", "http://[::1",
                        "http://x:99999/", "http://x:0x50/", "http://x y/", "http://x/\r\nX: y", "http://" + "a" * 3000, 5, ["http://x/"], "http://x/\0", "unix:/run/x", "http+unix://x/"):
                answer = open_.alice.post("/v1/executions", {**body, "callback_url": url})
                assert answer.status in (400, 403) or open_.alice.wait(answer.json()["id"])["status"] in ("setup_error", "denied"), (url, answer)
            for url in urls(trap.port):
                answer = open_.alice.post("/v1/execute", {**body, "callback_url": url})
                assert answer.status in (200, 400, 403), answer
            end = time.monotonic() + 4
            while open_.daemon.popen.poll() is None and time.monotonic() < end and len([r for r in open_.daemon.records if "callback" in r["msg"]]) < 15:
                time.sleep(0.05)
            assert trap.paths == [], trap.paths
            open_.well()
        finally:
            open_.end()
        named = Siege(Atoll(mode, stage), stage.scratch(mode, "named"), "callbacks.allow=true", f"callbacks.hosts=127.0.0.1:{trap.port}", "callbacks.attempts=1", tokens=False)
        try:
            assert named.alice.post("/v1/execute", {**body, "callback_url": f"http://127.0.0.1:{trap.port + 1}/"}).status == 403
            assert named.alice.post("/v1/execute", {**body, "callback_url": "http://example.org/"}).status == 403
            assert named.alice.post("/v1/execute", {**body, "callback_url": f"http://127.0.0.1:{trap.port}/allowed"}).status == 200
            end = time.monotonic() + 30
            while not [r for r in named.daemon.records if r["msg"] == "a callback was not taken"]:
                assert time.monotonic() < end, (trap.paths, named.daemon.records)
                time.sleep(0.02)
            assert trap.paths == ["/allowed"], "a redirect was followed"
        finally:
            named.end()
    finally:
        trap.close()


@pytest.mark.undisturbed
@pytest.mark.alone
def test_A08_many_accepts_of_nothing(siege):
    """Connections that come and go as fast as they can, half of them with a request that is never read. A new one waits its turn."""
    fds, text = siege.fds(), f"GET /v1/executions HTTP/1.1\r\n{siege.headers}\r\n".encode()
    with Pulse(siege) as pulse:
        for n in range(1500):
            s = siege.connect()
            if n % 2:
                s.send(text)
            s.close()
    assert pulse.median() < 4 * HEALTH_S, pulse.median()
    siege.settle(fds + 4)
    assert json.loads(siege.alice.get("/healthz").body)["status"] == "ok"
    siege.well()
