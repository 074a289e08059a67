# SPDX-License-Identifier: Apache-2.0
"""The daemon's HTTP interface: events as they happen, taking up a stream again, slow readers, WebSocket."""
import json
import socket
import statistics
import threading
import time

import pytest

from program import Atoll
from web import GROWTH, Served, WebSocket, output, problem, sse

quick = pytest.mark.quick
MiB = 1 << 20


# ---------------------------------------------------------------------------------------- events


@quick
def test_lines_of_json(web):
    body = {"language": "bash", "code": "echo one; sleep 0.1; echo two >&2"}
    with web.stream("POST", "/v1/execute", body, accept="application/x-ndjson") as response:
        assert response.headers["Content-Type"] == "application/x-ndjson"
        events = [json.loads(line) for line in response]
    assert [e["event"] for e in events][0] == "start" and events[-1]["event"] == "result"
    assert output(events) == "one\n" and output(events, "stderr") == "two\n"
    assert all(e["id"] and e["time"] for e in events)


@quick
def test_stages_are_events(web):
    body = {"stages": [{"name": "first", "code": "echo a"}, {"name": "second", "code": "echo b"}], "language": "bash"}
    with web.stream("POST", "/v1/execute", body) as response:
        stages = [data["data"]["name"] for _, name, data in sse(response) if name == "stage"]
    assert stages == ["first", "second"]


@pytest.mark.undisturbed
def test_usage_once_a_second(web):
    with web.stream("POST", "/v1/execute", {"language": "bash", "code": "sleep 2.3"}) as response:
        events = [data for _, _, data in sse(response)]
    assert 1 <= sum(e["event"] == "usage" for e in events) <= events[-1]["data"]["duration"] + 1, events


@pytest.mark.undisturbed
def test_latency_of_output(web):
    """From the program's write to the client, not with the next one."""
    code = "import time\nfor i in range(60):\n print(time.monotonic_ns(), flush=True)\n time.sleep(0.015)"
    late = []
    with web.stream("POST", "/v1/execute", {"language": "python", "code": code}) as response:
        for _, name, data in sse(response):
            now = time.monotonic_ns()
            if name == "stdout":
                late += [(now - int(word)) / 1e6 for word in data["data"].split()]
    assert len(late) == 60
    # This client and the program share the cores with us; the bar itself is measured by bench/.
    assert statistics.median(late) < 10, late


@quick
@pytest.mark.undisturbed
def test_events_of_a_job_and_taking_up_again(web):
    id = web.submit("bash", "for i in $(seq 60); do echo line $i; sleep 0.03; done; echo end >&2")
    path = f"/v1/executions/{id}/events"
    seen, last, rounds = [], None, 0
    while not seen or seen[-1]["event"] != "result":
        rounds += 1
        assert rounds < 100, seen
        with web.stream("GET", path, headers={"Last-Event-ID": last} if last else {}) as response:
            for n, (event_id, _, data) in enumerate(sse(response)):
                last = event_id
                seen.append(data)
                if n == 7:
                    break  # the connection is lost here
    assert rounds > 2
    assert output(seen) == "".join(f"line {i}\n" for i in range(1, 61)) and output(seen, "stderr") == "end\n"
    assert [e["event"] for e in seen].count("start") == 1 and [e["event"] for e in seen].count("result") == 1
    # The same from the history, whole and from the middle.
    with web.stream("GET", path) as response:
        assert output([data for _, _, data in sse(response)]) == output(seen)
    with web.stream("GET", path, headers={"Last-Event-ID": last}, accept="application/x-ndjson") as response:
        assert response.read() == b""
    problem(web.get(path, headers={"Last-Event-ID": "what"}), 400, field="Last-Event-ID")
    problem(web.get(path, headers={"Last-Event-ID": "9" * 300}), 400, field="Last-Event-ID")


@quick
def test_numbers_without_gaps(web):
    """Characters in pieces take no number of their own; a number is enough to go on from."""
    code = ("import os, time\nfor i in range(12):\n"
            " for b in 'ä€😀'.encode(): os.write(1, bytes([b])); time.sleep(0.005)\n os.write(2, b'.')")
    id = web.submit("python", code)
    path = f"/v1/executions/{id}/events"
    with web.stream("GET", path) as response:
        seen = [data for _, _, data in sse(response)]
    assert [e["seq"] for e in seen] == list(range(1, len(seen) + 1)), seen
    assert output(seen) == "ä€😀" * 12
    for n in range(len(seen)):
        with web.stream("GET", path, headers={"Last-Event-ID": str(n)}) as response:
            assert [data for _, _, data in sse(response)] == seen[n:]
    with web.stream("GET", path, headers={"Last-Event-ID": "999"}) as response:
        assert [name for _, name, _ in sse(response)] == ["result"]


def test_numbers_in_the_next_process(mode, stage):
    """A client that has seen an event goes on behind it by its number: after the end, and after a process of the server died."""
    served = Served(Atoll(mode, stage), stage.scratch(mode, "numbers"))
    try:
        web, code = served.web, "for i in 1 2 3 4 5; do echo out $i; echo err $i >&2; sleep 0.03; done"
        ended, dies = web.submit("bash", code), web.submit("bash", f"{code}; sleep 60")
        with web.stream("GET", f"/v1/executions/{ended}/events") as response:
            seen = {ended: [data for _, _, data in sse(response)], dies: []}
        with web.stream("GET", f"/v1/executions/{dies}/events") as response:
            for _, _, data in sse(response):
                seen[dies].append(data)
                if output(seen[dies]).endswith("5\n") and output(seen[dies], "stderr").endswith("5\n"):
                    break
        served.kill_front()
        assert web.wait(dies)["status"] == "interrupted"
        for id, events in seen.items():
            assert len(events) > 2, events
            with web.stream("GET", f"/v1/executions/{id}/events") as response:
                again = [data for _, _, data in sse(response)]
            assert again[:len(events)] == events and again[-1]["event"] == "result", (events, again)
            for n in range(min(len(events) + 1, len(again))):
                with web.stream("GET", f"/v1/executions/{id}/events", headers={"Last-Event-ID": str(n)}) as response:
                    assert [data for _, _, data in sse(response)] == again[n:]
        assert {event["event"] for event in again[len(seen[dies]):]} <= {"usage", "result"}, again
    finally:
        served.end()


@quick
def test_a_number_beyond_what_happened(web):
    id = web.submit("bash", "echo one; read; echo two", query="?interactive=true")
    ws = WebSocket(web, f"/v1/executions/{id}/attach")
    ws.until("stdout")
    with web.stream("GET", f"/v1/executions/{id}/events", headers={"Last-Event-ID": "999"}) as response:
        ws.send({"type": "eof"})
        events = [data for _, _, data in sse(response)]
    assert output(events) == "two\n" and events[-1]["event"] == "result" and events[0]["event"] != "start", events
    ws.close()


def test_many_watch_one(web):
    id = web.submit("python", "import time\nfor i in range(30): print(i, flush=True); time.sleep(0.02)")
    got = []

    def watch():
        with web.stream("GET", f"/v1/executions/{id}/events") as response:
            got.append(output([data for _, _, data in sse(response)]))

    threads = [threading.Thread(target=watch) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert got == ["".join(f"{i}\n" for i in range(30))] * 8


@pytest.mark.undisturbed
def test_a_slow_reader(web, served):
    """Neither the program nor other readers wait for a reader that takes nothing; and memory stays."""
    before = served.daemon.memory("front")
    body = {"language": "python", "code": "import sys\nfor i in range(30): sys.stdout.write('x' * (1 << 20))",
            "labels": {"slow": "reader"}, "limits": {"output_total": "64m", "output": "64k"}}
    sock = socket.create_connection((web.host, web.port))
    text = json.dumps(body).encode()
    sock.sendall(b"POST /v1/execute HTTP/1.1\r\nHost: %s:%d\r\nAccept: text/event-stream\r\nContent-Type: application/json\r\n"
                 b"Content-Length: %d\r\n\r\n" % (web.host.encode(), web.port, len(text)) + text)
    end = time.monotonic() + 90
    while True:
        begin = time.monotonic()
        assert web.get("/healthz").status == 200 and time.monotonic() - begin < 10
        assert web.execute("bash", "echo others")["stdout"] == "others\n"
        rows = web.get("/v1/executions?label=slow=reader").json()["executions"]
        if rows and rows[0]["status"] not in ("queued", "running"):
            break
        assert time.monotonic() < end, rows
    assert rows[0]["status"] == "success"
    assert served.daemon.memory("front") - before < GROWTH
    # And what it did not take is still all there for it.
    sock.settimeout(30)
    n, tail = 0, b""
    while b"event: result" not in tail:
        piece = sock.recv(1 << 20)
        assert piece, "the stream was cut"
        n += piece.count(b"x")
        tail = (tail + piece)[-(256 << 10):]
    assert n >= 30 * MiB
    sock.close()


def test_memory_under_a_flood(web, served):
    """64 MiB through one stream that is read: the daemon keeps none of it."""
    web.execute("bash", "true")
    before, most, total = served.daemon.memory("front"), 0, 0
    body = {"language": "bash", "code": "head -c 67108864 /dev/zero | tr '\\0' x", "limits": {
        "output_total": "512m", "output": "64k", "timeout": 120}}
    connection = web.connect(timeout=60)
    response = web.begin(connection, "POST", "/v1/execute", body, {"Accept": "application/x-ndjson"})
    while piece := response.read1(1 << 20):
        total += piece.count(b"x")
        most = max(most, served.daemon.memory("front"))
    connection.close()
    assert total >= 64 * MiB and most - before < GROWTH, (total, most - before)


# ------------------------------------------------------------------------------------- WebSocket


@quick
def test_attach(web):
    id = web.submit("python", "import sys\nprint('ready', flush=True)\nfor line in sys.stdin: print('got', line, end='', flush=True)",
                    query="?interactive=true")
    ws = WebSocket(web, f"/v1/executions/{id}/attach")
    assert ws.status == 101
    assert ws.until("stdout")["data"] == "ready\n"
    ws.send({"type": "stdin", "data": "text\n"})
    assert ws.until("stdout")["data"] == "got text\n"
    ws.send(b"bytes\n")
    assert ws.until("stdout")["data"] == "got bytes\n"
    ws.send({"type": "eof"})
    result = ws.until("result")["data"]
    assert result["status"] == "success" and result["stdout"] == "ready\ngot text\ngot bytes\n", result
    assert ws.receive() is None and ws.code == 1000
    ws.close()


@quick
def test_attach_signals(web):
    code = "trap 'echo caught; exit 7' INT\necho ready\nwhile :; do sleep 0.05; done"
    id = web.submit("bash", code, query="?interactive=true")
    ws = WebSocket(web, f"/v1/executions/{id}/attach")
    ws.until("stdout")
    ws.send({"type": "signal", "signal": "NOPE"})
    assert "signal" in ws.until("error")["detail"]
    ws.send({"type": "signal", "signal": "SIGINT"})
    result = ws.until("result")["data"]
    assert result["exit_code"] == 7 and result["stdout"] == "ready\ncaught\n", result
    ws.close()


@quick
def test_attach_window(web):
    id = web.submit("bash", "trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.05; done", tty=True)
    ws = WebSocket(web, f"/v1/executions/{id}/attach")
    assert "ready" in ws.until("stdout")["data"]
    ws.send({"type": "resize", "rows": 33, "columns": 111})
    result = ws.until("result")["data"]
    assert "33 111" in result["stdout"], result
    ws.close()


@quick
def test_attach_bytes(web):
    id = web.submit("bash", "printf '\\001\\377out'; sleep 0.1; printf 'err' >&2")
    ws = WebSocket(web, f"/v1/executions/{id}/attach?output=bytes")
    frames = list(ws.events())
    assert b"".join(f[1:] for f in frames if isinstance(f, bytes) and f[0] == 1) == b"\x01\xffout"
    assert b"".join(f[1:] for f in frames if isinstance(f, bytes) and f[0] == 2) == b"err"
    assert frames[-1]["event"] == "result"
    ws.close()


def test_attach_has_a_large_result(web):
    """A frame that is larger than what a connection may have waiting comes in pieces."""
    id = web.submit("bash", "head -c 15m /dev/zero | tr '\\0' x", limits={"output": "16m", "output_total": "16m"})
    ws = WebSocket(web, f"/v1/executions/{id}/attach")
    assert len(ws.until("result")["data"]["stdout"]) == 15 << 20
    ws.close()
    # A mistake of the client's is told behind the frame that is on its way.
    ws = WebSocket(web, f"/v1/executions/{id}/attach")
    ws.until("start")
    ws.frame(9, bytes(126))
    assert all(event["event"] in ("stdout", "stage", "result") for event in ws.events()) and ws.code == 1002
    ws.close()


def test_attach_copies_no_result(web, served):
    """However many read a large one and however slowly: it is there once."""
    code = "import sys\nsys.stdout.write('\\x01' * (4 << 20))"  # 24 MiB as JSON
    id = web.submit("python", code, limits={"output": "16m", "output_total": "32m"})
    web.wait(id)
    readers = []
    for n in range(8):
        readers.append(WebSocket(web, f"/v1/executions/{id}/attach?after=999999"))
        readers[-1].take(4096)
        if n == 0:
            before = served.daemon.memory("front")
    assert served.daemon.memory("front") - before < GROWTH
    for ws in readers:
        ws.close()
    ws = WebSocket(web, f"/v1/executions/{id}/attach?after=999999")
    assert ws.until("result")["data"]["stdout"] == "\x01" * (4 << 20)
    assert ws.receive() is None and ws.code == 1000
    ws.close()


@quick
def test_attach_sends_nothing_behind_its_close(web):
    """Who closes while a large result is all that is left gets a close frame, and that is the end."""
    id = web.submit("bash", "head -c 300000 /dev/zero | tr '\\0' x")
    web.wait(id)
    # With the handshake: it is there before the second round of events is.
    ws = WebSocket(web, f"/v1/executions/{id}/attach", behind=b"\x88\x82" + bytes(4) + b"\x03\xe8")
    seen = [json.loads(data)["event"] for data in iter(ws.receive, None)]
    assert ws.code == 1000 and seen[0] == "start" and "result" not in seen, seen
    assert ws.rest == b"" and ws.sock.recv(1 << 16) == b""
    ws.close()


@quick
def test_attach_mistakes(web):
    id = web.submit("bash", "sleep 25")
    web.wait(id, "running")
    ws = WebSocket(web, f"/v1/executions/{id}/attach")
    for message in ("{", "[]", '{"type": "dance"}', {"type": "stdin"}, {"type": "resize", "rows": 0, "columns": 1},
                    {"type": "signal"}):
        ws.send(message)
        assert ws.until("error")["detail"], message
    ws.frame(1, b"\xff\xfe")  # text that is no UTF-8
    assert ws.receive() is None and ws.code == 1007
    ws.close()
    # A ping of 126 bytes, one in pieces, a frame without a mask, one of an unknown kind, an extension's bit.
    for raw in (b"\x89\xfe\x00\x7e" + bytes(130), b"\x09\x80" + bytes(4), b"\x82\x01x", b"\x83\x80" + bytes(4), b"\xc2\x80" + bytes(4)):
        ws = WebSocket(web, f"/v1/executions/{id}/attach")
        ws.sock.sendall(raw)
        assert not [event for event in ws.events() if event["event"] == "error"] and ws.code == 1002, raw
        ws.close()
    ws = WebSocket(web, f"/v1/executions/{id}/attach")
    try:
        ws.frame(2, bytes(2 * MiB))
        while ws.receive() is not None:
            pass
        assert ws.code == 1009
    except OSError:
        pass  # it did not even read it
    ws.close()
    assert web.state(id)["status"] == "running", "a client's mistake is not the program's"
    web.delete(f"/v1/executions/{id}")
    web.wait(id)


def test_attach_again(web):
    """Who comes late gets all from the beginning; who says where it was, the rest."""
    id = web.submit("bash", "for i in 1 2 3 4 5 6; do echo $i; sleep 0.1; done")
    ws = WebSocket(web, f"/v1/executions/{id}/attach")
    first = ws.until("stdout")
    ws.close()
    ws = WebSocket(web, f"/v1/executions/{id}/attach?after={first['id']}")
    rest = [e for e in ws.events()]
    assert first["data"] + output(rest) == "1\n2\n3\n4\n5\n6\n"
    ws.close()
    ws = WebSocket(web, f"/v1/executions/{id}/attach")
    assert output(list(ws.events())) == "1\n2\n3\n4\n5\n6\n"
    ws.close()


READER = "import sys\nprint('ready', flush=True)\nfor line in sys.stdin: print('got', line, end='', flush=True)\nprint('end')"


@pytest.mark.undisturbed
@pytest.mark.brief
def test_attach_to_any_job(web):
    """A program that came without input waits a second for a client to attach, and then for as long as that client stays."""
    id = web.submit("python", READER)
    ws = WebSocket(web, f"/v1/executions/{id}/attach")
    assert ws.until("stdout")["data"] == "ready\n"
    time.sleep(1.5)
    ws.send({"type": "stdin", "data": "text\n"})
    assert ws.until("stdout")["data"] == "got text\n"
    ws.send({"type": "eof"})
    assert ws.until("result")["data"]["stdout"] == "ready\ngot text\nend\n"
    ws.close()


@pytest.mark.undisturbed
@pytest.mark.brief
def test_who_attached_goes(web):
    id = web.submit("python", READER)
    ws = WebSocket(web, f"/v1/executions/{id}/attach")
    ws.until("stdout")
    time.sleep(1.2)
    assert web.state(id)["status"] == "running"
    ws.close()
    assert web.wait(id)["stdout"] == "ready\nend\n"


@pytest.mark.undisturbed
def test_attach_too_late(web):
    """When no client attached in time, the input has ended. A later client is told so, and so is one that sends to a program with input of its own."""
    id = web.submit("python", READER)
    result = web.wait(id)
    assert result["stdout"] == "ready\nend\n" and 0.9 < result["duration"] < 10, result
    late = web.submit("python", "import time; time.sleep(30)")
    own = web.submit("python", "import time; time.sleep(30)", stdin="mine")
    web.wait(late, "running"), web.wait(own, "running")
    time.sleep(2)
    for id in (late, own):
        ws = WebSocket(web, f"/v1/executions/{id}/attach")
        ws.until("start")
        for message in ({"type": "stdin", "data": "text"}, b"bytes"):
            ws.send(message)
            assert "standard input is closed" in ws.until("error")["detail"]
        ws.send({"type": "eof"})
        ws.send(b"more")
        assert "stdin" in ws.until("error")["detail"]
        ws.close()
        assert web.state(id)["status"] == "running"
        web.delete(f"/v1/executions/{id}")
        web.wait(id)


def test_input_that_nobody_reads(web):
    """A program that reads late: what the client sends waits on its side, and arrives whole."""
    code = "import sys, time\nprint('ready', flush=True)\ntime.sleep(1)\nprint(len(sys.stdin.buffer.read()))"
    id = web.submit("python", code, query="?interactive=true")
    ws = WebSocket(web, f"/v1/executions/{id}/attach")
    ws.until("stdout")
    sender = threading.Thread(target=lambda: [ws.send(b"x" * 500000) for _ in range(16)] + [ws.send({"type": "eof"})])
    sender.start()
    assert ws.until("stdout")["data"] == "8000000\n"
    sender.join()
    ws.close()


@quick
def test_handshakes(web):
    """A02: a page of another origin gets no WebSocket."""
    id = web.execute("bash", "true")["id"]
    assert web.get(f"/v1/executions/{id}/attach").status in (400, 426)
    assert WebSocket(web, f"/v1/executions/{id}/attach", {"Origin": "http://evil.example"}).status == 403
    assert WebSocket(web, f"/v1/executions/{id}/attach", {"Origin": f"http://{web.host}:{web.port}"}).status == 101
    assert WebSocket(web, "/v1/executions/ex_none/attach").status == 404
