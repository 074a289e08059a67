# SPDX-License-Identifier: Apache-2.0
"""The daemon's HTTP interface: running things, jobs, and what there is to know about the host."""
import base64
import http.server
import io
import json
import re
import secrets
import tarfile
import threading
import time
import zlib

import pytest

import oracle
from program import ROOT, Atoll
from resident import wait_until
from web import Served, Web, output, problem, sse

quick = pytest.mark.quick
ID = re.compile(r"ex_[0-9a-z]{26}")


@quick
def test_run_to_the_end(web):
    answer = web.post("/v1/execute", {"language": "python", "code": "print(6 * 7)", "labels": {"a": "b"}})
    assert answer.status == 200 and answer.headers["content-type"] == "application/json", answer
    result = answer.json()
    assert ID.fullmatch(result["id"]) and result["status"] == "success" and result["stdout"] == "42\n", result
    assert result["labels"] == {"a": "b"} and result["usage"]["start"] > 0
    # What was answered is in the history, word for word.
    assert web.state(result["id"]) == result


@quick
@pytest.mark.undisturbed
@pytest.mark.brief
def test_a_programs_failure_is_a_result(web):
    result = web.execute("python", "import sys; print('x'); sys.exit(3)")
    assert (result["status"], result["exit_code"], result["stdout"]) == ("error", 3, "x\n"), result
    result = web.execute("bash", "echo begun; sleep 20", limits={"timeout": 2})
    assert (result["status"], result["exit_code"], result["stdout"]) == ("timeout", 124, "begun\n"), result


@pytest.mark.parametrize("body, field", [
    ({"language": "python"}, "code"),
    ({"language": "python", "code": 7}, "code"),
    ({"language": "python", "code": "1", "limits": {"memory": "9000g"}}, "limits.memory"),
    ({"language": "python", "code": "1", "limits": {"memory": "100g"}}, "limits.memory"),
    ({"language": "python", "code": "1", "limits": {"timeout": -1}}, "limits.timeout"),
    ({"language": "python", "code": "1", "limits": {"memroy": 1}}, "limits.memroy"),
    # Keys that read like the place of a limit.
    ({"language": "python", "code": "1", "limits.timeout": 5}, "limits.timeout"),
    ({"language": "python", "code": "1", "limits": {"cpu.timeout": 5}}, "limits.cpu.timeout"),
    ({"stages": [{"argv": ["true"], "limits.memory": 5}]}, "stages[0].limits.memory"),
    ({"language": "python", "code": "1", "limits": {"cpu_time": 0}}, "limits.cpu_time"),
    ({"language": "python", "code": "1", "limits": {"idle_timeout": "0s"}}, "limits.idle_timeout"),
    ({"language": "python", "code": "1", "collect": ["*.csv", "/etc/*"]}, "collect[1]"),
    ({"language": "python", "code": "1", "collect": ["../*"]}, "collect[0]"),
    ({"language": "python", "code": "1", "labels": {"a=b": "c"}}, "labels.a=b"),
    ({"language": "python", "code": "1", "colour": "red"}, "colour"),
    ({"language": "python", "code": "1", "files": {"../x": "y"}}, None),
    ({"language": "klingon", "code": "1"}, None),
    ([], None),
])
def test_bad_requests(web, body, field):
    """A10"""
    answer = web.post("/v1/execute", body)
    detail = problem(answer, 400, field=field)
    assert not re.search(r"/(var|home|root|proc|work)/", detail), detail


@quick
def test_refusals_by_policy(web):
    problem(web.post("/v1/execute", {"language": "python", "code": "1", "network": "host"}), 403)
    problem(web.post("/v1/execute", {"language": "python", "code": "1", "preload": ["this"]}), 403)
    problem(web.post("/v1/execute", {"language": "python", "code": "1", "policy": "nobody-wrote-it"}), 400)
    near = problem(web.post("/v1/execute", {"language": "python", "code": "1", "policy": "defualt"}), 400, field="policy")
    assert near == "policy: there is none named 'defualt'; did you mean 'default'?"


@quick
def test_bodies_that_are_no_json(web):
    """A03: what a page may send without asking first is refused."""
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        problem(web.ask("POST", "/v1/execute", b'{"language": "python", "code": "1"}', {"Content-Type": kind}), 415)
    json_type = {"Content-Type": "application/json"}
    problem(web.ask("POST", "/v1/execute", b"{", json_type), 400, "invalid_json")
    problem(web.ask("POST", "/v1/execute", b'{"code": "1", "code": "2"}', json_type), 400)
    problem(web.ask("POST", "/v1/execute", b"[" * 100000, json_type), 400)
    problem(web.ask("POST", "/v1/execute", b'{"x": 1' + b"0" * 5000 + b"}", json_type), 400)
    problem(web.ask("POST", "/v1/execute", None, json_type), 400, "missing_body")


@quick
def test_bodies_that_are_encoded(web):
    body = b'{"language": "python", "code": "print(1)"}'
    plain = {"Content-Type": "application/json"}
    for encoding in ("gzip", "br", "deflate, gzip", "x-nothing"):
        for path in ("/v1/execute", "/v1/executions"):
            answer = web.ask("POST", path, body, {**plain, "Content-Encoding": encoding})
            problem(answer, 415, "unsupported_encoding")
            assert answer.headers["accept-encoding"] == "identity"
    assert web.ask("POST", "/v1/execute", body, {**plain, "Content-Encoding": "Identity"}).json()["stdout"] == "1\n"


def test_tests_that_print_much(web):
    """Their texts make a result large, which is kept all the same and is the same whenever it is read."""
    result = web.execute("python", "print('x' * 900000); import sys; sys.stderr.write('y' * 900000)",
                         tests=[{"stdin": "", "expected": "x" * 900000}] * 5)
    assert result["status"] == "success" and [t["verdict"] for t in result["tests"]] == ["passed"] * 5, result["cause"]
    assert 1800000 < len(json.dumps(result)) < 3 << 20
    assert web.get(f"/v1/executions/{result['id']}").json() == result


def test_tests_have_verdicts(web):
    tests = [{"stdin": "1", "expected": "1"}, {"stdin": "2", "expected": "3"}]
    result = web.execute("c", "int main(", tests=tests)
    assert [(t["verdict"], t["passed"]) for t in result["tests"]] == [("compile_error", False)] * 2, result
    nap = f"29.{secrets.randbelow(10**9):09d}"
    id = web.submit("bash", "read n; sleep $n; echo $n", tests=[{"stdin": n, "expected": n} for n in ("0", nap, nap)])
    wait_until(lambda: oracle.who_runs(nap), why="the second does not begin")
    web.delete(f"/v1/executions/{id}")
    result = web.wait(id)
    assert result["status"] == "cancelled" and len(result["tests"]) == 3, result
    assert [t["verdict"] for t in result["tests"]][-2:] == ["cancelled"] * 2, result
    # Also when one before it was wrong.
    nap = f"29.{secrets.randbelow(10**9):09d}"
    id = web.submit("bash", "read n; sleep $n; echo $n", tests=[{"stdin": n, "expected": "x"} for n in ("0", nap, nap)])
    wait_until(lambda: oracle.who_runs(nap), why="the second does not begin")
    web.delete(f"/v1/executions/{id}")
    result = web.wait(id)
    assert [t["verdict"] for t in result["tests"]] == ["wrong_answer", "cancelled", "cancelled"], result
    assert result["status"] == "cancelled" and result["duration"] > 0, result


@quick
@pytest.mark.undisturbed
@pytest.mark.brief
def test_jobs(web):
    answer = web.post("/v1/executions", {"language": "bash", "code": "sleep 2; echo done"})
    assert answer.status == 202, answer
    id = answer.json()["id"]
    assert answer.headers["location"] == f"/v1/executions/{id}" and ID.fullmatch(id)
    state = web.state(id)
    assert state["status"] in ("queued", "running"), state
    result = web.wait(id)
    assert result["status"] == "success" and result["stdout"] == "done\n" and result["id"] == id


def refused(web, body):
    """Jobs have results for everything that is refused, too; its status."""
    answer = web.post("/v1/executions", body)
    assert answer.status == 202, answer
    result = web.wait(answer.json()["id"])
    assert result["exit_code"] is None and result["cause"]["detail"], result
    return result["status"]


@quick
def test_jobs_that_are_refused(web):
    assert refused(web, {"language": "python"}) == "setup_error"
    assert refused(web, {"language": "klingon", "code": "1"}) == "setup_error"
    assert refused(web, {"language": "python", "code": "1", "network": "host"}) == "denied"


@quick
def test_idempotency(web):
    key = {"Idempotency-Key": f"order-{time.monotonic_ns()}"}
    body = {"language": "bash", "code": "echo once"}
    first = web.post("/v1/executions", body, headers=key)
    again = web.post("/v1/executions", body, headers=key)
    assert first.status == again.status == 202 and first.json()["id"] == again.json()["id"], (first, again)
    problem(web.post("/v1/executions", {**body, "code": "echo twice"}, headers=key), 422)
    web.wait(first.json()["id"])
    ended = web.post("/v1/executions", body, headers=key)
    assert ended.json()["id"] == first.json()["id"]
    other = web.post("/v1/executions", body, headers={"Idempotency-Key": "another"})
    assert other.json()["id"] != first.json()["id"]
    problem(web.post("/v1/executions", body, headers={"Idempotency-Key": "a b"}), 400, field="Idempotency-Key")
    problem(web.post("/v1/executions", body, headers={"Idempotency-Key": "k" * 300}), 400, field="Idempotency-Key")
    twice = web.connect()
    twice.putrequest("POST", "/v1/executions")
    for name, value in (("Content-Type", "application/json"), ("Content-Length", "2"), ("Idempotency-Key", "a"), ("Idempotency-Key", "b")):
        twice.putheader(name, value)
    twice.endheaders(b"{}")
    answer = twice.getresponse()
    assert answer.status == 400 and json.loads(answer.read())["field"] == "Idempotency-Key"
    twice.close()


def test_idempotency_of_waited_ones(web):
    """The first one's result, also for who asks while it runs; streams too."""
    body = {"language": "bash", "code": "echo $RANDOM$RANDOM; sleep 0.5; echo done"}
    key = {"Idempotency-Key": f"waited-{secrets.token_hex(8)}", "Content-Type": "application/json"}

    def send(path="/v1/execute", **more):
        return web.ask("POST", path, json.dumps({**body, **more}).encode(), key)

    answers = []

    def ask():
        answer = send()
        while answer.status == 409:  # it is being accepted
            assert answer.json()["code"] == "idempotency_pending"
            answer = send()
        answers.append(answer)
    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [a.status for a in answers] == [200] * 3 and len({a.body for a in answers}) == 1, answers
    result = answers[0].json()
    assert result["status"] == "success" and result["stdout"].endswith("done\n"), result
    assert send().json() == result
    assert send("/v1/executions").json()["id"] == result["id"]
    problem(send(code="echo other"), 422, "idempotency_mismatch")
    for accept in ("text/event-stream", "application/x-ndjson"):
        again = web.ask("POST", "/v1/execute", json.dumps(body).encode(), {**key, "Accept": accept})
        assert again.status == 200 and again.headers["content-location"].endswith(result["id"])
        assert json.dumps(result["stdout"].split()[0])[1:-1].encode() in again.body
    # A stream's key is known to the next as well.
    key["Idempotency-Key"] += "-2"
    stream = web.ask("POST", "/v1/execute", json.dumps(body).encode(), {**key, "Accept": "application/x-ndjson"})
    last = json.loads(stream.body.splitlines()[-1])["data"]
    assert send().json() == last
    problem(web.ask("POST", "/v1/execute", json.dumps(body).encode(), {"Content-Type": "application/json", "Idempotency-Key": "a b"}), 400,
            field="Idempotency-Key")


@quick
def test_a_refused_one_leaves_its_key(web):
    key = {"Idempotency-Key": f"refused-{secrets.token_hex(8)}"}
    problem(web.ask("POST", "/v1/execute", {"language": "klingon", "code": "1"}, key), 400)
    assert web.ask("POST", "/v1/execute", {"language": "bash", "code": "echo 1"}, key).json()["stdout"] == "1\n"


@quick
def test_limits_name_key_value_and_own_bounds(web, mode, stage):
    """The same words from the command line and the server, of the ceilings that hold for the caller."""
    atoll = Atoll(mode, stage)
    cases = [("timeout", "100000", 100000, "(allowed: 1 ms to 300 s)"), ("timeout", "NaN", float("nan"), "(allowed: 1 ms to 300 s)"),
             ("timeout", "Infinity", float("inf"), "(allowed: 1 ms to 300 s)"), ("pids", "-1", "-1", "(allowed: 1 to 4096)"),
             ("memory", "9000g", "9000g", "(allowed: 4 MiB to ")]
    for name, word, value, bounds in cases:
        body = json.dumps({"language": "bash", "code": "1", "limits": {name: value}}).encode()
        answer = web.ask("POST", "/v1/execute", body, {"Content-Type": "application/json"})
        problem(answer, 400, field=f"limits.{name}")
        detail = answer.json()["detail"]
        given = word if isinstance(value, int) else f"'{word}'"
        assert detail.startswith(f"limits.{name}: {given} ") and bounds in detail, detail
        said = atoll.run(["run", f"--{name}={word}", "-l", "bash", "-c", "1"]).err
        assert said == f"atoll: {detail.replace(f': {word} ', f': {chr(39)}{word}{chr(39)} ')}\n"
    answer = web.ask("POST", "/v1/execute", b'{"language": "bash", "code": NaN}', {"Content-Type": "application/json"})
    assert answer.status == 400 and answer.json()["detail"].startswith("code: NaN "), answer


def test_idempotency_of_many_at_once(web):
    """Twenty clients with the same key: one execution, and never two answers that differ."""
    key, answers = {"Idempotency-Key": f"storm-{time.monotonic_ns()}"}, []

    def one():
        answers.append(web.post("/v1/executions", {"language": "bash", "code": "true"}, headers=key))

    threads = [threading.Thread(target=one) for _ in range(20)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert {a.status for a in answers} <= {202, 409} and any(a.status == 202 for a in answers), answers
    assert len({a.json()["id"] for a in answers if a.status == 202}) == 1


@quick
def test_cancel_and_delete(web):
    id = web.submit("bash", "echo begun; sleep 30")
    web.wait(id, "running")
    answer = web.delete(f"/v1/executions/{id}")
    assert answer.status == 200 and answer.json() == {"id": id, "cancelled": True, "deleted": False}, answer
    assert web.wait(id)["status"] == "cancelled"
    answer = web.delete(f"/v1/executions/{id}")
    assert answer.json() == {"id": id, "cancelled": False, "deleted": True}, answer
    problem(web.get(f"/v1/executions/{id}"), 404, "not_found")
    problem(web.delete(f"/v1/executions/{id}"), 404)


@quick
def test_unknown_ids(web):
    """A09"""
    for id in ("ex_" + "0" * 26, "ex_", "1", "ex_" + "a" * 500, "%00", "ex_%c0%ae", "․․"):
        for tail in ("", "/events", "/stdout", "/stderr", "/files", "/files/x", "/analysis", "/debug-report"):
            answer = web.get(f"/v1/executions/{id.encode('utf-8').decode('latin-1') if id.isascii() else 'ex_%e2%80%a4'}{tail}")
            assert answer.status in (400, 404), (id, tail, answer)
    problem(web.post("/v1/executions/ex_nothing/replay"), 404)
    for path in ("/v1/executions/../../etc/passwd", "/v1/executions/..%2f..%2fetc", "/v1/executions/%2e%2e/x"):
        assert web.get(path).status in (400, 404)


def test_disconnect(web):
    """O10: a client that goes does not end its run, unless it asked for that."""
    for query, seconds, status in (("", 1, "success"), ("?disconnect=cancel", 20, "cancelled")):
        label = f"gone-{time.monotonic_ns()}"
        connection = web.connect()
        connection.request("POST", "/v1/execute" + query, json.dumps(
            {"language": "bash", "code": f"sleep {seconds}; echo end", "labels": {"who": label}}), {"Content-Type": "application/json"})
        # What it has not read of one who is gone a server need not run.
        wait_until(lambda: web.get(f"/v1/executions?label=who={label}").json()["executions"], why="it is not listed")
        connection.close()
        end = time.monotonic() + 60
        found = []
        while not found or found[0]["status"] in ("queued", "running"):
            assert time.monotonic() < end, found
            time.sleep(0.05)
            found = web.get(f"/v1/executions?label=who={label}").json()["executions"]
        assert [row["status"] for row in found] == [status]


def test_archive(web):
    """F19: an archive in, a tar out."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, text in (("main.py", "import pkg.m; open('out.txt', 'w').write(pkg.m.x)"), ("pkg/m.py", "x = 'packed'")):
            info = tarfile.TarInfo(name)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
    body = {"language": "python", "archive": base64.b64encode(packed.getvalue()).decode(), "entry": "main.py"}
    answer = web.post("/v1/execute", body)
    assert answer.status == 200, answer
    result = answer.json()
    assert result["status"] == "success", result
    got = web.get(f"/v1/executions/{result['id']}/files?format=tar")
    assert got.headers["content-type"] == "application/x-tar"
    with tarfile.open(fileobj=io.BytesIO(got.body)) as tar:
        assert tar.extractfile("out.txt").read() == b"packed"


def pack(*members):
    """A tar in base64; members are (name, text), or (name, type, target) for what is no file."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, *rest in members:
            info = tarfile.TarInfo(name)
            if len(rest) == 2:
                info.type, info.linkname = rest
                tar.addfile(info)
            else:
                info.size = len(rest[0])
                tar.addfile(info, io.BytesIO(rest[0].encode()))
    return base64.b64encode(packed.getvalue()).decode()


@pytest.mark.undisturbed
def test_archives_that_grow_are_unpacked_aside(web, served):
    """Few bytes may be many when they are unpacked: others are served meanwhile. Also of jobs that wait for their turn."""
    packed = io.BytesIO()
    size = 10 << 20
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, data in [("main.py", b"import os; print(os.path.getsize('0'))")] + [(str(i), b"x" * size) for i in range(4)]:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    body = {"language": "python", "archive": base64.b64encode(packed.getvalue()).decode(), "entry": "main.py",
            "limits": {"disk": "128m"}}
    assert len(body["archive"]) < 128 << 10
    answers, waits = [], []

    def post():
        answers.append(Web(web.host, web.port).post("/v1/execute", body, timeout=60))
    threads = [threading.Thread(target=post) for _ in range(3)]
    begun = time.monotonic()
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        asked = time.monotonic()
        assert web.get("/healthz").status == 200
        waits.append(time.monotonic() - asked)
        time.sleep(0.005)
    took = time.monotonic() - begun
    assert [a.json()["stdout"] for a in answers] == [f"{size}\n"] * 3, answers
    assert max(waits) < took / 4, (took, sorted(waits)[-5:])
    assert web.wait(web.post("/v1/executions", body).json()["id"])["stdout"] == f"{size}\n"


@quick
@pytest.mark.parametrize("members", [
    [("../x.py", "1")], [("/etc/x.py", "1")], [("a/../../x.py", "1")], [("x.py", tarfile.SYMTYPE, "/etc/passwd")],
    [("x.py", tarfile.LNKTYPE, "/etc/passwd")], [("x.py", tarfile.CHRTYPE, "")], [("x.py", tarfile.FIFOTYPE, "")]], ids=str)
def test_archives_that_are_refused(web, members):
    """F19"""
    body = {"language": "python", "archive": pack(("main.py", "print(1)"), *members), "entry": "main.py"}
    problem(web.post("/v1/execute", body), 400)


def test_archive_bombs(web, served):
    """A gzip file of 1 GiB: the same block 1024 times, which stands by itself behind a full flush."""
    block = zlib.compressobj(9, zlib.DEFLATED, -15)
    data = b"\x1f\x8b\x08" + bytes(6) + b"\x03" + (block.compress(bytes(1 << 20)) + block.flush(zlib.Z_FULL_FLUSH)) * 1024 + block.flush()
    body = {"language": "python", "archive": base64.b64encode(data).decode(), "entry": "x"}
    assert web.post("/v1/execute", body).status in (400, 413)
    problem(web.post("/v1/execute", {"language": "python", "archive": "!!!", "entry": "x"}), 400)
    problem(web.post("/v1/execute", {"language": "python", "archive": "", "entry": "x"}), 400)


class Listener(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.server.got.append((dict(self.headers), self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *args):
        pass


def verify_of_the_page():
    """The function that doc/http.md gives to receivers."""
    page = (ROOT / "doc" / "http.md").read_text()
    names = {}
    exec(re.search(r"```python\n(import base64, hashlib.*?)```", page, re.S)[1], names)
    return names["verify"]


def test_callbacks(web, mode, stage):
    """Only where it is allowed, and then the result as it is, signed with each secret. Where it is not, no job is accepted either: its
    client would wait for a message that never comes."""
    body = {"language": "bash", "code": "echo called", "callback_url": "http://127.0.0.1:9/x"}
    known = len(web.get("/v1/executions").json()["executions"])
    for path in ("/v1/executions", "/v1/execute"):
        answer = web.post(path, body)
        assert "callbacks.allow" in problem(answer, 403, "callbacks_off") and answer.json()["field"] == "callback_url", answer
    assert len(web.get("/v1/executions").json()["executions"]) == known
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Listener)
    server.got = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    port = server.server_port
    work = stage.scratch(mode, "callbacks")
    secrets_of_it = ["whsec_" + base64.b64encode(bytes([i]) * 32).decode() for i in range(3)]
    (work / "secrets").write_text("\n".join(secrets_of_it[:2]))
    (work / "secrets").chmod(0o600)
    served = Served(Atoll(mode, stage), work, env={"ATOLL_CALLBACKS_ALLOW": "true", "ATOLL_CALLBACKS_HOSTS": f"127.0.0.1:{port}",
                                                   "ATOLL_CALLBACKS_SECRET_FILE": str(work / "secrets")})
    try:
        answer = served.web.post("/v1/executions", {**body, "callback_url": f"http://127.0.0.1:{port}/done"})
        assert answer.status == 202, answer
        result = served.web.wait(answer.json()["id"])
        end = time.monotonic() + 60
        while not server.got:
            assert time.monotonic() < end, "no callback came"
            time.sleep(0.02)
        headers, text = server.got[0]
        assert json.loads(text) == result and headers["Content-Type"] == "application/json"
        assert headers["webhook-id"] == result["id"]
        verify = verify_of_the_page()
        assert [verify(secret, headers, text) for secret in secrets_of_it] == [True, True, False]
        assert not verify(secrets_of_it[0], headers, text + b" ")
        assert not verify(secrets_of_it[0], {**headers, "webhook-timestamp": str(int(headers["webhook-timestamp"]) - 1)}, text)
        # When anything is wrong with a job, the result that says so is sent, too.
        wrong = served.web.post("/v1/executions", {**body, "callback_url": f"http://127.0.0.1:{port}/wrong", "priority": 99}).json()["id"]
        wait_until(lambda: len(server.got) == 2, 60, "no callback of a job that was refused came")
        assert json.loads(server.got[1][1]) == served.web.wait(wrong) and server.got[1][0]["webhook-id"] == wrong
        for url in ("http://127.0.0.1:1/x", "file:///etc/passwd", "http://169.254.169.254/x", "gopher://127.0.0.1/"):
            assert refused(served.web, {**body, "callback_url": url}) in ("denied", "setup_error"), url
    finally:
        served.end()
        server.shutdown()
        server.server_close()


def test_priorities(mode, stage):
    """What is urgent does not wait for what is not."""
    served = Served(Atoll(mode, stage), stage.scratch(mode, "priority"), "--running", "1")
    web = served.web
    try:
        first = web.submit("bash", "sleep 60", limits={"timeout": 90})
        web.wait(first, "running")
        ids = {priority: web.submit("bash", "sleep 0.05", priority=priority) for priority in (-1, 0, 1)}
        assert web.delete(f"/v1/executions/{first}").json()["cancelled"]
        for id in ids.values():
            assert web.wait(id)["status"] == "success"
        rows = {row["id"]: row["started_at"] for row in web.get("/v1/executions").json()["executions"]}
        assert rows[ids[1]] < rows[ids[0]] < rows[ids[-1]], rows
        problem(web.post("/v1/execute", {"language": "bash", "code": "1", "priority": "urgent"}), 400, field="priority")
    finally:
        served.end()


@quick
def test_usage_while_it_runs(web):
    id = web.submit("bash", "echo so far; sleep 25")
    web.wait(id, "running")
    end = time.monotonic() + 25
    while (state := web.state(id))["status"] == "running" and not state["stdout_bytes"]:
        assert time.monotonic() < end, state
        time.sleep(0.01)
    assert state["stdout_bytes"] == 7 and state["started_at"] >= state["created_at"], state
    web.delete(f"/v1/executions/{id}")
    web.wait(id)


@quick
def test_what_there_is(web):
    names = {row["name"]: row for row in web.get("/v1/languages").json()["languages"]}
    assert len(names) == 14 and names["python"]["available"] and "py" in names["python"]["aliases"]
    policies = {row["name"]: row for row in web.get("/v1/policies").json()["policies"]}
    assert policies["default"]["limits"]["defaults"]["timeout"] == 30
    limits = {row["key"]: row for row in web.get("/v1/limits").json()["limits"]}
    assert limits["timeout"]["default"] == 30 and limits["timeout"]["ceiling"] == 300 and limits["memory"]["unit"] == "bytes"
    doctor = web.get("/v1/doctor", timeout=60)
    assert doctor.status == 200 and doctor.json(), doctor


@pytest.mark.parametrize("name, timeout, memory, cpus, shares, pids", [
    ("lightweight", 5, 128, 0.5, 512, 25), ("standard", 15, 512, 1.0, 1024, 100), ("heavy", 30, 1024, 2.0, 2048, 200),
    ("safe", 10, 256, 0.5, 1024, 25)])
def test_profiles_of_document_001(web, name, timeout, memory, cpus, shares, pids):
    [policy] = [row for row in web.get("/v1/policies").json()["policies"] if row["name"] == name]
    numbers = {"timeout": timeout, "memory": memory << 20, "cpu_shares": shares, "pids": pids}
    for group in ("defaults", "ceilings"):
        assert {key: policy["limits"][group][key] for key in numbers} == numbers and policy["policy"]["limits"][group]["cpus"] == cpus
    code = "try: open('/sandbox/x', 'w')\nexcept OSError: open('/tmp/x', 'w').write('x'); print('read-only')"
    result = web.execute("python", code, policy=name)
    assert (result["stdout"], result["policy"]) == ("read-only\n", name), result
    problem(web.post("/v1/execute", {"language": "python", "code": "1", "policy": name, "limits": {"timeout": timeout + 1}}), 400, "invalid_field")


@quick
def test_health(web):
    assert web.get("/healthz").json() == {"status": "ok"}
    assert web.get("/readyz").json()["status"] == "ready"
    assert web.get("/").json() == {"status": "ok"}
    head = web.ask("HEAD", "/healthz")
    assert head.status == 200 and head.body == b""


@quick
def test_metrics(web):
    web.execute("python", "1/0")
    problem(web.get("/metrics"), 403, "operator_only")
    answer = web.operator.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    types, samples = {}, {}
    for line in answer.body.decode().splitlines():
        if line.startswith("# TYPE"):
            name = line.split()[2]
            assert name not in types, f"{name} twice"
            types[name] = line.split()[3]
        elif not line.startswith("#"):
            found = re.fullmatch(r'([a-z_]+)(\{(?:[a-z_]+="(?:[^"\\]|\\.)*",?)+\})? (\S+)', line)
            assert found, line
            base = re.sub(r"_(bucket|sum|count)$", "", found[1])
            assert found[1] in types or types.get(base) == "histogram", line
            assert found[1] + (found[2] or "") not in samples, line
            samples[found[1] + (found[2] or "")] = float(found[3])
    errors = [v for k, v in samples.items() if 'status="error"' in k and 'language="python"' in k]
    assert errors and errors[0] >= 1, answer.body
    assert samples["process_open_fds"] > 3 and samples["process_resident_memory_bytes"] > 1 << 20


@quick
def test_openapi_lists_every_route(web):
    root = web.get("/openapi.json").json()
    assert root["openapi"].startswith("3.1")
    listed = {(method.upper(), path) for path, item in root["paths"].items() for method in item}
    spec = {("POST", "/v1/execute"), ("POST", "/v1/executions"), ("GET", "/v1/executions"),
            ("GET", "/v1/cleanup"), ("POST", "/v1/cleanup"), ("POST", "/execute"), ("GET", "/")}
    spec |= {(method, "/v1/executions/{id}") for method in ("GET", "DELETE")}
    spec |= {("GET", f"/v1/executions/{{id}}/{tail}") for tail in (
        "events", "stdout", "stderr", "files", "files/{path}", "analysis", "debug-report", "diff/{other}", "attach")}
    spec |= {("POST", "/v1/executions/{id}/replay")}
    spec |= {("GET", path) for path in ("/v1/languages", "/v1/policies", "/v1/limits", "/v1/stats", "/v1/doctor",
                                        "/healthz", "/readyz", "/metrics", "/openapi.json")}
    assert spec <= listed, spec - listed
    # And what is listed is there: every path knows its method.
    for method, path in listed:
        allow = web.ask("OPTIONS", re.sub(r"{\w+}", "x", path)).headers["allow"]
        assert method in allow.split(", "), (method, path, allow)
    shapes = root["components"]["schemas"]
    for ref in re.findall(r'"\$ref": ?"#/components/schemas/([^"]+)"', json.dumps(root)):
        assert ref in shapes, ref
    result = web.execute("python", "print(1)")
    assert set(result) <= set(shapes["Result"]["properties"]), set(result) - set(shapes["Result"]["properties"])
    assert set(shapes["Result"]["required"]) <= set(result)


@quick
def test_events_of_a_run(web):
    body = {"language": "bash", "code": "echo one; echo two >&2; sleep 0.2; echo three"}
    with web.stream("POST", "/v1/execute", body) as response:
        events = [data for _, _, data in sse(response)]
    names = [event["event"] for event in events]
    assert names[0] == "start" and names[-1] == "result" and names.count("result") == 1, names
    assert output(events) == "one\nthree\n" and output(events, "stderr") == "two\n"
    numbers = [event["seq"] for event in events]
    assert numbers == sorted(set(numbers))
    result = events[-1]["data"]
    assert result["status"] == "success" and result["stdout"] == "one\nthree\n"
    assert web.state(result["id"]) == result


def test_busy(mode, stage):
    """More than may wait gets 429 at once, and what was accepted ends well."""
    served = Served(Atoll(mode, stage), stage.scratch(mode, "busy"), "--running", "1",
                    env={"ATOLL_QUEUE_MAX": "2"})
    web = served.web
    try:
        first = web.submit("bash", "sleep 60", limits={"timeout": 90})
        web.wait(first, "running")
        slow = [web.post("/v1/executions", {"language": "bash", "code": "true"}) for _ in range(2)]
        more = web.post("/v1/executions", {"language": "bash", "code": "true"})
        assert [a.status for a in slow] == [202] * 2, slow
        problem(more, 429)
        assert int(more.headers["retry-after"]) >= 1 and web.state(first)["status"] == "running", more
        assert web.delete(f"/v1/executions/{first}").json()["cancelled"]
        for answer in slow:
            assert web.wait(answer.json()["id"])["status"] == "success"
        assert web.post("/v1/executions", {"language": "bash", "code": "true"}).status == 202
    finally:
        served.end()
