# SPDX-License-Identifier: Apache-2.0
"""doc/runner-protocol.md against the daemon, with a client that knows that page and nothing else."""
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import pytest

from program import Atoll, ROOT
from resident import wait_until
from runner_client import Runner
from web import LocalWeb, Served, problem

quick = pytest.mark.quick
PRINT = {"language": "python", "code": "print(1)"}
# Says that it runs, then reads.
READER = {"language": "python", "code": "import sys\nprint('ready', flush=True)\nfor line in sys.stdin: print(line.upper(), end='', flush=True)"}


@pytest.fixture
def door(web):
    """Connections to the daemon, each for one run."""
    opened = []

    def connect(**more):
        opened.append(Runner((web.host, web.port), **more))
        return opened[-1]

    yield connect
    for run in opened:
        run.socket.close()


def refused(run, code, field=None):
    found = run.until("RZ")
    assert isinstance(found, dict) and found["code"] == code and found.get("field") == field, run.seen
    with pytest.raises(EOFError):
        run.receive()
    return found["detail"]


@quick
def test_a_run(door, web):
    run = door()
    run.open({**PRINT, "labels": {"a": "b"}})
    admission = run.until("A")
    assert admission["language"] == "python" and admission["policy"] == "default" and admission["labels"] == {"a": "b"}
    assert re.fullmatch("[0-9a-f]{64}", admission["code_sha256"]) and admission["limits"]["memory"] > 0
    # Nothing has happened.
    assert web.get("/v1/executions?label=a%3Db").json()["executions"] == []
    run.start()
    summary, result = run.until("Z")
    assert [kind for kind, _ in run.seen if kind not in "ut"] == ["A", "s", "o", "Z"], run.seen
    assert run.output() == b"1\n" and result["stdout"] == "1\n" and result["labels"] == {"a": "b"}
    assert (summary["id"], summary["status"], summary["exit_code"]) == (result["id"], "success", 0), summary
    assert web.state(result["id"]) == result
    with pytest.raises(EOFError):
        run.receive()


@quick
def test_the_unix_socket_and_one_piece(served):
    """The first packets come with the handshake."""
    with Runner(served.daemon.socket) as run:
        run.open(PRINT)
        run.start()
        assert run.until("Z")[1]["stdout"] == "1\n"


@quick
def test_input_signal_and_cancel(door):
    run = door()
    run.open(READER)
    run.start(interactive=True)
    assert run.until("o") == b"ready\n"
    for word in (b"abc\n", b"def\n"):
        run.send("I", word)
        assert run.until("o") == word.upper()
    run.send("E")
    _, result = run.until("Z")
    assert result["status"] == "success" and result["stdout"] == "ready\nABC\nDEF\n", result
    assert sum(payload["bytes"] for kind, payload in run.seen if kind == "i") == 8

    run = door()
    run.open({"language": "python", "code": "import signal, sys, time\nsignal.signal(signal.SIGUSR1, lambda *_: sys.exit(7))\n"
                                            "print('ready', flush=True)\ntime.sleep(60)"})
    run.start()
    run.until("o")
    run.send("G", {"signal": "USR1"})
    assert run.until("Z")[0]["exit_code"] == 7

    run = door()
    run.open({"language": "bash", "code": "echo ready; sleep 60"})
    run.start()
    run.until("o")
    run.send("K")
    assert run.until("Z")[0]["status"] == "cancelled"


def test_bytes_and_terminal(door):
    run = door()
    run.open({"language": "bash", "code": "printf '\\377\\000\\n'; printf '\\376' >&2"})
    run.start()
    run.until("Z")
    assert run.output() == b"\xff\0\n" and run.output("e") == b"\xfe"

    run = door()
    run.open({"language": "bash", "code": 'stty size; until [ "$(stty size)" = "33 44" ]; do sleep 0.01; done; echo resized', "tty": True})
    run.start(interactive=True, rows=11, columns=22)
    run.until("o")
    run.send("W", {"rows": 33, "columns": 44})
    assert run.until("Z")[0]["status"] == "success" and b"11 22" in run.output() and b"resized" in run.output(), run.seen


def test_input_that_is_not_read_holds_up_no_signal(door):
    run = door()
    run.open({"language": "bash", "code": "echo ready; sleep 60"})
    run.start(interactive=True)
    run.until("o")
    sent, room = 0, 64 << 10
    while sent < room:
        run.send("I", b"x" * 4096)
        sent += 4096
        run.socket.settimeout(0.1)
        try:
            while True:
                kind, payload = run.receive()
                room += payload["bytes"] if kind == "i" else 0
        except TimeoutError:
            pass
    run.socket.settimeout(60)
    run.send("G", {"signal": "KILL"})
    assert run.until("Z")[0]["status"] != "success"
    # More than there is room for ends the connection.
    run = door()
    run.open({"language": "bash", "code": "sleep 60"})
    run.start(interactive=True)
    run.until("s")
    with pytest.raises((EOFError, ConnectionError)):
        for _ in range(1000):
            run.send("I", b"x" * 65536)
        run.until("Z")


@quick
@pytest.mark.parametrize("body", [{"language": "python", "code": 7}, {"language": "klingon", "code": "x"}, [],
                                  {"language": "bash", "code": "x", "policy": "a" + "é" * 61},  # cut in the middle of a character
                                  {"language": "python", "code": "1", "limits": {"memory": "9000g"}}], ids=str)
def test_refusals(door, web, body):
    """As POST /v1/execute has them."""
    there = web.post("/v1/execute", body).json()
    run = door()
    run.open(body)
    assert refused(run, there["code"], there.get("field")) == there["detail"]


@quick
def test_packets_that_make_no_sense(door):
    for send in (lambda run: run.send("S"), lambda run: run.socket.sendall(b"\0\0\0\0O"), lambda run: run.send("O", b"{"),
                 lambda run: run.socket.sendall(b"\xff\xff\xff\xffO"), lambda run: (run.open(PRINT), run.send("S", {"disconnect": "stay"})),
                 lambda run: (run.open(PRINT), run.open(PRINT)), lambda run: run.send("K")):
        run = door()
        send(run)
        assert refused(run, "invalid_request"), run.seen
    # Kinds that are not known are ignored.
    run = door()
    run.send("?", b"x" * 4095)
    run.open(PRINT)
    run.send("~")
    run.start(later=True)
    assert run.until("Z")[0]["status"] == "success"
    # A run that is not wanted leaves nothing.
    run = door()
    run.open(PRINT)
    run.until("A")
    run.send("D")
    with pytest.raises(EOFError):
        run.receive()


@quick
def test_other_requests_to_its_path(web):
    answer = web.get("/v1/runner")
    problem(answer, 426, "upgrade_required")
    assert answer.headers["upgrade"] == "atoll-runner/1"
    problem(web.post("/v1/runner", b""), 405)


def is_running(web, id):
    return web.get(f"/v1/executions/{id}").json()["status"] == "running"


def test_a_lost_connection(door, web):
    """It ends the run, unless START says that it does not."""
    for how, status in (({}, "cancelled"), ({"disconnect": "keep"}, "success")):
        run = door()
        run.open({"language": "bash", "code": "echo ready; sleep 1"})
        run.start(**how)
        id = run.until("s")["id"]
        run.until("o")
        run.socket.close()
        assert web.wait(id, status)["status"] == status


def test_a_client_that_is_killed_in_the_middle(web, tmp_path):
    script = (f"import sys; sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})\n"
              f"from runner_client import Runner\nrun = Runner(({web.host!r}, {web.port}))\n"
              "run.open({'language': 'bash', 'code': 'echo ready; sleep 60'})\nrun.start()\n"
              "print(run.until('s')['id'], flush=True)\nrun.until('o')\nprint('ready', flush=True)\nrun.until('Z')\n")
    client = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    id = client.stdout.readline().strip()
    assert client.stdout.readline() == "ready\n"
    os.kill(client.pid, signal.SIGKILL)
    client.wait()
    client.stdout.close()
    assert web.wait(id, "cancelled")["status"] == "cancelled"


def test_a_slow_reader_gets_every_byte(door):
    run = door()
    run.open({"language": "bash", "code": "head -c 3000000 /dev/zero | tr '\\0' x; echo end"})
    run.start()
    run.until("s")
    time.sleep(1)
    run.until("Z")
    assert len(run.output()) == 3000004


def send_open(run, text, until_the_last_byte=0):
    packet = (1 + len(text)).to_bytes(4, "big") + b"O" + text
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it may be refused before it is whole
        run.socket.sendall(packet[:-1])
        time.sleep(until_the_last_byte)
        run.socket.sendall(packet[-1:])


def test_the_time_for_a_packet_ends_with_the_packet(mode, stage):
    """A request that came whole is judged, however long that takes; then the time for the next packet begins."""
    served = Served(Atoll(mode, stage), stage.scratch(mode, "slow"), "--set", "http.body_timeout=1s")
    text = json.dumps({"language": "python", "code": "x", "stdin": "ä" * (10 << 20)}).encode()
    try:
        front = served.daemon.child("front")
        for _ in range(5):  # the machine may be too busy for the last byte to come in time
            run = Runner(served.daemon.socket)
            send_open(run, text, until_the_last_byte=0.9)
            if run.receive()[0] == "A":
                break
        assert run.seen[0][0] == "A", run.seen
        assert refused(run, "invalid_request") == "The packet did not arrive in time."
        assert served.daemon.child("front") == front
    finally:
        served.end()


def test_what_is_opened_counts_for_its_caller(mode, stage):
    """Requests that were judged and not started are bytes of their caller, as bodies that arrive."""
    served = Served(Atoll(mode, stage), stage.scratch(mode, "many"), "--set", "http.body_timeout=10m")
    text = json.dumps({"language": "bash", "code": "wc -c", "stdin": "x" * (60 << 20)}).encode()
    opened = []
    try:
        while len(opened) < 20 and (not opened or opened[-1].seen[-1][0] == "A"):
            opened.append(Runner(served.daemon.socket))
            send_open(opened[-1], text)
            opened[-1].receive()
        assert len(opened) > 4 and opened[-1].seen[-1][1]["code"] == "busy", (len(opened), opened[-1].seen)
        opened[0].start()
        assert opened[0].until("Z")[1]["stdout"].strip() == str(60 << 20)
        opened[0].socket.close()
        with Runner(served.daemon.socket) as again:
            send_open(again, text)
            assert again.receive()[0] == "A"
    finally:
        for run in opened:
            run.socket.close()
        served.end()


def test_a_client_that_reads_nothing_and_sends_on(door, web):
    """The room that its input makes is told in few packets."""
    run = door()
    run.open({"language": "bash", "code": "cat >/dev/null; head -c 9000000 /dev/zero; sleep 1"})
    run.start(interactive=True)
    run.until("s")
    for _ in range(40):
        run.socket.sendall(b"\0\0\0\2Ix" * 1000)
        time.sleep(0.02)
    run.send("E")
    run.until("Z")
    told = [payload["bytes"] for kind, payload in run.seen if kind == "i"]
    assert sum(told) == 40000 and len(told) < 4000, len(told)


@quick
def test_the_time_between_open_and_start_is_the_clients(door):
    run = door()
    run.open(PRINT)
    run.until("A")
    time.sleep(1.5)
    run.start()
    summary, result = run.until("Z")
    assert summary["start"] < 1.2, (summary, result)


@quick
def test_the_page_shows_what_is_sent():
    """The golden packets are those of the unit test; the page's table names each kind."""
    page = (ROOT / "doc" / "runner-protocol.md").read_text()
    data = (ROOT / "test" / "golden" / "runner-packets.bin").read_bytes()
    while data:
        n = int.from_bytes(data[:4], "big")
        assert f"`{chr(data[4])}`" in page, chr(data[4])
        data = data[4 + n:]
