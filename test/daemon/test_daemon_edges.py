# SPDX-License-Identifier: Apache-2.0
"""What a client meets at the edges of the daemon: its end, parts of files, what is asked for twice or in another's words."""
import base64
import contextlib
import io
import json
import os
import secrets
import shutil
import signal
import subprocess
import tarfile
import threading
import time
import zipfile

import pytest

import oracle
from program import Atoll
from resident import wait_until
from web import Served, WebSocket, problem

quick = pytest.mark.quick


def test_new_connections_hear_of_the_end(mode, stage):
    """While the daemon drains, new connections are told so, over TCP and the unix socket. Running requests are answered, then the daemon ends."""
    served = Served(Atoll(mode, stage), stage.scratch(mode, "end"))
    web, got = served.web, []
    done = web.execute("bash", "echo before")["id"]
    nap = f"25.{secrets.randbelow(10**9):09d}"
    thread = threading.Thread(target=lambda: got.append(web.execute("bash", f"sleep {nap}; echo ended")))
    thread.start()
    wait_until(lambda: oracle.who_runs(nap), 25)
    os.kill(served.daemon.pid, signal.SIGTERM)
    end = time.monotonic() + 60
    while web.get("/readyz").status != 503:
        assert time.monotonic() < end
    assert web.get("/readyz").json()["draining"] is True and web.get("/healthz").status == 200
    assert web.get(f"/v1/executions/{done}").json()["stdout"] == "before\n"
    for path in ("/v1/execute", "/v1/executions"):
        answer = web.post(path, {"language": "bash", "code": "true"})
        assert answer.status == 503 and answer.json()["code"] == "draining" and int(answer.headers["retry-after"]) > 0
    answer = web.post("/execute", {"generated_code": "1", "timeout": 1})
    assert answer.status == 503 and list(answer.json()) == ["process_status", "stdout", "stderr"]
    assert os.path.exists(served.daemon.socket)
    oracle.wake(nap)
    thread.join(60)
    assert got and got[0]["stdout"] == "ended\n"
    served.end()
    assert not os.path.exists(served.daemon.socket)


def test_an_upload_is_answered_at_the_end(mode, stage):
    """A request that is on its way when the daemon is told to end is read to its end and answered."""
    served = Served(Atoll(mode, stage), stage.scratch(mode, "upload"))
    body = b'{"language": "bash", "code": "true"}'
    connection = served.web.connect()
    connection.putrequest("POST", "/v1/execute")
    connection.putheader("Content-Type", "application/json")
    connection.putheader("Content-Length", str(len(body)))
    connection.endheaders(body[:9])
    assert served.web.get("/healthz").status == 200
    os.kill(served.daemon.pid, signal.SIGTERM)
    wait_until(lambda: served.web.get("/readyz").status == 503, 25, "the front is not told")
    connection.send(body[9:])
    answer = connection.getresponse()
    assert answer.status == 503 and b"draining" in answer.read()
    connection.close()
    served.end()


@pytest.mark.undisturbed
def test_the_time_of_a_compiler_counts(mode, stage):
    """POST /execute is answered at the deadline, in a compiler as in a program."""
    served = Served(Atoll(mode, stage), stage.scratch(mode, "compiler"), "--execute-languages", "all")
    try:
        code = ("template<int N, int M> struct F { enum { v = (F<N - 1, M>::v + F<N, M - 1>::v) % 1000 }; };\n"
                "template<int M> struct F<0, M> { enum { v = 1 }; };\ntemplate<int N> struct F<N, 0> { enum { v = 1 }; };\n"
                "template<> struct F<0, 0> { enum { v = 1 }; };\nint main() { return F<400, 400>::v > 9999; }\n")
        served.web.post("/execute", {"generated_code": "int main(void) { return 0; }", "timeout": 30, "language": "c"})
        begin = time.monotonic()
        answer = served.web.post("/execute", {"generated_code": code, "timeout": 1, "language": "cpp"})
        took = time.monotonic() - begin
        assert answer.json() == {"process_status": "timeout", "stdout": "", "stderr": "Timed out\n"}
        assert took < 2, took
    finally:
        served.end()


@quick
def test_parts_of_a_stream(web):
    path = f"/v1/executions/{web.execute('bash', 'echo hello')['id']}/stdout"
    part = web.get(path, headers={"Range": "bytes=0-1"})
    assert (part.status, part.body) == (206, b"he")
    # A client that has a part of another version gets all of this one.
    whole = web.get(path, headers={"Range": "bytes=0-1", "If-Range": '"other"'})
    assert (whole.status, whole.body) == (200, b"hello\n") and "content-range" not in whole.headers


@quick
def test_a_report_by_its_format(web):
    path = f"/v1/executions/{web.execute('python', '1/0')['id']}/debug-report"
    text = web.get(path + "?format=markdown")
    assert text.headers["content-type"].startswith("text/markdown") and b"ZeroDivisionError" in text.body
    assert web.get(path + "?format=json", headers={"Accept": "text/markdown"}).json()["status"] == "failure"
    assert "markdown or json" in problem(web.get(path + "?format=pdf"), 400, field="format")


@quick
def test_replay_takes_nothing_else(web):
    id = web.execute("bash", "echo again")["id"]
    path = f"/v1/executions/{id}/replay"
    assert "POST /v1/executions" in problem(web.post(path, {"limits": {"timeout": 1}}), 400, field="limits")
    problem(web.post(path, {}, headers={"Idempotency-Key": ""}), 400, field="Idempotency-Key")
    for body, words in ((b"[1]", "send no body"), (b"[]", "send no body"), (b"5", "it is not JSON")):
        assert words in problem(web.post(path, body, headers={"Content-Type": "application/json"}), 400)
    first = web.post(path, {}, headers={"Idempotency-Key": "replay-1"})
    second = web.post(path, {}, headers={"Idempotency-Key": "replay-1"})
    assert first.status == second.status == 202 and first.json()["id"] == second.json()["id"] != id
    assert web.post(path, {}).json()["id"] != first.json()["id"]
    assert web.wait(first.json()["id"])["stdout"] == "again\n"


def test_a_bomb_has_a_field(web):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as z:
        z.writestr("big", bytes(300 << 20))
    body = {"language": "python", "entry": "big", "archive": base64.b64encode(packed.getvalue()).decode()}
    assert "too large when unpacked" in problem(web.post("/v1/execute", body), 413, field="archive")


@quick
def test_a_workspace_is_called_as_the_caller_calls_it(web):
    body = {"language": "bash", "code": "true", "workspace": "a/b"}
    assert problem(web.post("/v1/execute", body), 400, field="workspace").startswith("workspace: 'a/b' is not a name")


@pytest.mark.undisturbed
@quick
def test_document_001_with_a_timeout(web):
    begin = time.monotonic()
    answer = web.post("/execute", {"code": "import time; time.sleep(20)", "timeout": 1}).json()
    assert time.monotonic() - begin < 10
    assert answer["success"] is False and answer["exit_code"] == 124 and "timed out after 1s" in answer["error"]
    known = web.post("/execute", {"code": "1", "language": "cobol"}).json()["error"]
    assert known.startswith("Unsupported language: cobol. Supported: bash, sh, c, cpp, c++, go,"), known


def test_a_window_in_columns_or_cols(web):
    """Terminals in browsers call them cols."""
    id = web.submit("bash", "trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.05; done", tty=True)
    ws = WebSocket(web, f"/v1/executions/{id}/attach")
    ws.until("stdout")
    ws.send({"type": "resize", "rows": 33, "cols": 111})
    assert "33 111" in ws.until("result")["data"]["stdout"]
    ws.close()


@quick
def test_a_terminal_for_nobody(atoll):
    """A program that asks for the size of its terminal gets one, also when the caller has no terminal."""
    assert atoll.bash("stty size", options=("--tty",))["stdout"].split() == ["24", "80"]


@quick
def test_images_that_are_none(atoll):
    done = atoll.run(["run", "-l", "bash", "-c", "true", "--image", "/"])
    assert done.returncode == 125 and "is the host's own root; leave it out" in done.err, done.err


@pytest.mark.undisturbed
def test_who_waits_for_a_turn_is_answered_in_time(mode, stage):
    """The deadline is the client's: it counts in the line, too, and what has waited for too long does not run any more."""
    served = Served(Atoll(mode, stage), stage.scratch(mode, "line"), "--running", "2")
    web, got = served.web, []

    def call(i):
        begin = time.monotonic()
        body = web.post("/execute", {"generated_code": f"open('{i}', 'w')", "timeout": 1}).json()
        got.append((body, time.monotonic() - begin))

    try:
        web.post("/execute", {"generated_code": "1", "timeout": 20})
        jobs = [web.submit("bash", "sleep 60") for _ in range(2)]
        for job in jobs:
            web.wait(job, "running")
        threads = [threading.Thread(target=call, args=(i,)) for i in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert [body for body, _ in got] == [{"process_status": "timeout", "stdout": "", "stderr": "Timed out\n"}] * 4, got
        assert max(took for _, took in got) < 2, got
        for job in jobs:
            assert web.delete(f"/v1/executions/{job}").json()["cancelled"]
        body = web.post("/execute", {"generated_code": "import os; print(os.listdir('.'))", "timeout": 20}).json()
        assert (body["process_status"], body["stdout"]) == ("completed", "[]\n"), body
        wait = time.monotonic() + 60
        while len(rows := web.get("/v1/executions?status=timeout").json()["executions"]) < 4:
            assert time.monotonic() < wait, rows
        assert [row["exit_code"] for row in rows] == [None] * 4, rows
    finally:
        served.end()


@quick
def test_archives_with_names_in_any_script(web):
    """As GNU tar, Python's tarfile and zip tools write them."""
    code, names = b"import glob; print(*sorted(glob.glob('*/*')))", ("dïr/漢字.txt", "dïr/🐙.txt")
    for form in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT, None):
        packed = io.BytesIO()
        if form is None:
            with zipfile.ZipFile(packed, "w") as z:
                for name in ("main.py", *names):
                    z.writestr(name, code)
        else:
            with tarfile.open(fileobj=packed, mode="w:gz", format=form) as tar:
                for name in ("main.py", *names):
                    info = tarfile.TarInfo(name)
                    info.size = len(code)
                    tar.addfile(info, io.BytesIO(code))
        result = web.post("/v1/execute", {"language": "python", "entry": "main.py",
                                          "archive": base64.b64encode(packed.getvalue()).decode()}).json()
        assert result.get("stdout") == " ".join(names) + "\n", (form, result)


def test_another_protocol_is_named_as_rfc_9110_has_it(web):
    id = web.execute("bash", "true")["id"]
    headers = web.get(f"/v1/executions/{id}/attach").headers
    assert (headers["upgrade"], headers["connection"]) == ("websocket", "Upgrade"), headers


@contextlib.contextmanager
def slow_sends(pid, delay_s):
    """Every message of this process has arrived long before it goes on itself."""
    tracer = subprocess.Popen(["strace", "-qq", "-o", "/dev/null", "-p", str(pid), "-e", "trace=sendmsg",
                               "-e", f"inject=sendmsg:delay_exit={round(delay_s * 1e6)}"])
    try:
        wait_until(lambda: f"TracerPid:\t{tracer.pid}\n" in open(f"/proc/{pid}/status").read(), 25)
        yield
    finally:
        tracer.send_signal(signal.SIGINT)
        tracer.wait(25)


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
def test_a_program_that_begins_before_the_broker_looks(served):
    """What it took is counted from when it was let go, not from when the broker found the time to look at its clock."""
    code = "import time\nbegin = time.monotonic()\ntime.sleep(1)\nprint(time.monotonic() - begin)"
    served.web.execute("python", code)
    # By the end of the program it has long made another sandbox ready and listens again.
    with slow_sends(served.daemon.child("broker"), 0.05):
        results = [served.web.execute("python", code) for _ in range(3)]
    times = [(result["duration"], float(result["stdout"])) for result in results]
    assert all(duration >= inside for duration, inside in times), times


@quick
def test_numbers_of_a_comparison_are_short(web):
    ids = [web.execute("bash", f"exit {n}")["id"] for n in (1, 2)]
    answer = web.get(f"/v1/executions/{ids[0]}/diff/{ids[1]}")
    assert answer.json()["value"] == {"a": None, "b": None}
    usage = json.loads(answer.body, parse_float=str)["usage"]
    assert all(len(str(usage[key][side])) < 14 for key in ("duration", "cpu_time") for side in "ab"), usage


@quick
def test_words_that_mean_nothing(web):
    body = {"language": "bash", "code": "true"}
    assert "cancel or keep" in problem(web.post("/v1/execute?disconnect=maybe", body), 400, field="disconnect")
    assert web.post("/v1/execute?disconnect=keep", body).status == 200
    path = f"/v1/executions/{web.execute('bash', 'true')['id']}"
    assert "bytes or json" in problem(web.get(path + "/attach?output=hex"), 400, field="output")
    assert problem(web.get(path + "/events?after=what"), 400, field="after").startswith("after:")
    problem(web.get(path + "/events?after=1", headers={"Last-Event-ID": "what"}), 400, field="Last-Event-ID")
    problem(web.get("/v1/executions?since=2026-02-30"), 400, field="since")
    for query in ("status=bogus", "status=error&status=bogus"):
        said = problem(web.get("/v1/executions?" + query), 400, field="status")
        assert "'bogus'" in said and "setup_error" in said


@quick
def test_proxies_do_not_collect_events(web):
    for accept in ("text/event-stream", "application/x-ndjson"):
        with web.stream("POST", "/v1/execute", {"language": "bash", "code": "true"}, accept=accept) as response:
            assert response.headers["X-Accel-Buffering"] == "no"


@quick
def test_made_up_languages_leave_room_in_the_metrics(web):
    for id in [web.submit(f"babel{i}", "1") for i in range(40)]:
        assert web.wait(id)["status"] == "setup_error"
    assert web.execute("perl", "print 1")["success"]
    text = web.operator.get("/metrics").body.decode()
    assert 'atoll_executions_total{language="perl",status="success"} 1' in text
    assert text.count('{language="babel') < 20
