# SPDX-License-Identifier: Apache-2.0
"""What a result and its row say of the same execution, cancelling without losing anything, and callers beside each other."""
import os
import secrets
import threading
import time

import pytest

import oracle
from live import Asking
from program import Atoll
from web import Served, Web, WebSocket, problem, sse

TOKENS = ["greedy-greedy-greedy", "modest-modest-modest"]


def row_of(web, id):
    return next(row for row in web.get("/v1/executions?limit=100").json()["executions"] if row["id"] == id)


def test_one_time_of_creation(web):
    """The event of the start, the result and the row tell the same instant of creation."""
    for body in ({"language": "bash", "code": "echo 1"}, {"language": "c", "code": "int main(void) { return 0; }"},
                 {"language": "bash", "code": "x", "limits": {"timeout": "adaptive"}}):
        result = web.post("/v1/execute", body).json()
        assert row_of(web, result["id"])["created_at"] == result["created_at"], result
        id = web.post("/v1/executions", body).json()["id"]
        assert web.wait(id)["created_at"] == row_of(web, id)["created_at"]
    with web.stream("POST", "/v1/execute", {"language": "bash", "code": "sleep 0.2"}) as response:
        events = {name: data for _, name, data in sse(response)}
    start, result = events["start"]["data"], events["result"]["data"]
    assert start["created_at"] == result["created_at"] == row_of(web, result["id"])["created_at"]


@pytest.mark.parametrize("body", [
    {"language": "c", "code": "int main(void) { retur 0; }"},
    {"language": "bash", "code": "read x; echo $x", "tests": [{"stdin": "1\n", "expected": "1\n"}]},
])
def test_rows_have_usage(web, body):
    """Also where it was not the program itself that ran, or not once."""
    result = web.post("/v1/execute", body).json()
    row = row_of(web, result["id"])
    assert row["duration"] == pytest.approx(result["duration"], abs=1e-6) and row["duration"] > 0, (row, result)
    assert row["cpu_time"] == pytest.approx(result["cpu_time"], abs=1e-6), (row, result)
    assert row["memory_peak"] == result["memory_peak"], (row, result)


def test_live_usage(web):
    """What is not measured is null, never a negative number."""
    with web.stream("POST", "/v1/execute?disconnect=cancel", {"language": "bash", "code": "sleep 25"}) as response:
        usage = [next(data["data"] for _, name, data in sse(response) if name in ("usage", "result"))]
    assert "status" not in usage[0], "none while it runs"
    for key in ("cpu_time", "user", "system", "memory_peak", "pids_peak", "io_read", "io_write"):
        assert usage[0][key] is None or usage[0][key] >= 0, usage


def test_waiting_for_a_result(web):
    """?wait answers when the result is there, or at its end with the state; a client that goes stops waiting."""
    job = web.submit("bash", "read x; echo got $x", "?interactive=1")
    begun = time.monotonic()
    state = web.get(f"/v1/executions/{job}?wait=0.3").json()
    assert state["status"] in ("queued", "running") and 0.29 < time.monotonic() - begun < 20, state
    connection = web.connect()
    connection.request("GET", f"/v1/executions/{job}?wait=60")
    asked = Asking(lambda: web.get(f"/v1/executions/{job}?wait=60"))
    connection.close()
    assert web.delete(f"/v1/executions/{job}").status == 200
    result = asked.json()
    assert result["status"] == "cancelled" and result == web.get(f"/v1/executions/{job}?wait=60").json() == web.state(job)
    for wrong in ("61", "x", "-1", ""):
        problem(web.get(f"/v1/executions/{job}?wait={wrong}"), 400, field="wait")
    problem(web.get("/v1/executions/ex_aaaaaaaaaaaaaaaaaaaaaaaaaa?wait=1"), 404)


def test_only_cancel(web):
    done = web.execute("bash", "echo 1")["id"]
    answer = web.delete(f"/v1/executions/{done}?only=cancel")
    assert answer.status == 409 and answer.json()["code"] == "already_ended", answer
    assert web.state(done)["stdout"] == "1\n"
    runs = web.submit("bash", "sleep 20")
    web.wait(runs, "running")
    answer = web.delete(f"/v1/executions/{runs}?only=delete")
    assert answer.status == 409 and answer.json()["code"] == "not_ended", answer
    assert web.delete(f"/v1/executions/{runs}?only=all").json()["field"] == "only"
    assert web.delete(f"/v1/executions/{runs}?only=cancel").json() == {"id": runs, "cancelled": True, "deleted": False}
    assert web.wait(runs)["status"] == "cancelled"
    assert web.delete(f"/v1/executions/{runs}?only=delete").json() == {"id": runs, "cancelled": False, "deleted": True}
    for only in ("cancel", "delete"):
        assert web.delete(f"/v1/executions/{runs}?only={only}").status == 404
    paths = web.get("/openapi.json").json()["paths"]["/v1/executions/{id}"]
    assert [p["name"] for p in paths["delete"]["parameters"]] == ["id", "only"]
    assert [p["name"] for p in paths["get"]["parameters"]] == ["id", "wait"]


def test_cancelling_what_ends_loses_nothing(web):
    """However the two meet: a result, cancelled or not."""
    for n in range(12):
        id = web.submit("bash", f"sleep 0.0{n % 4}; echo on")
        time.sleep(n * 0.004)
        assert web.delete(f"/v1/executions/{id}?only=cancel").status in (200, 409)
        assert web.wait(id)["status"] in ("success", "cancelled")


def wait_output(web, id, stream, size):
    end = time.monotonic() + 60
    while len(web.get(f"/v1/executions/{id}/{stream}").body) < size:
        assert time.monotonic() < end
        time.sleep(0.01)


def outputs(served):
    return {f.name for f in served.daemon.state.rglob("outputs/*/*")}


def test_partial_output_after_a_crash(mode, stage):
    """doc/result.md: what it had printed is in the result of one that the front died under, too."""
    served = Served(Atoll(mode, stage), stage.scratch(mode, "partial"))
    try:
        web = served.web
        few = web.submit("bash", "echo first; echo trouble >&2; sleep 60")
        many = web.submit("python", "for i in range(30000): print('é%06d' % i, flush=i == 29999)\nimport time; time.sleep(60)")
        unseen = web.submit("bash", "echo nobody looks; sleep 60")
        early = web.submit("bash", "sleep 60")
        wait_output(web, few, "stdout", 6)
        wait_output(web, few, "stderr", 8)
        wait_output(web, many, "stdout", 270000)
        for id in (unseen, early):
            web.wait(id, "running")
        # A moment later it is in its file, also when no client has asked for it.
        end = time.monotonic() + 60
        while not any(name.startswith(unseen) for name in outputs(served)):
            assert time.monotonic() < end
            time.sleep(0.01)
        served.kill_front()
        result = web.wait(few)
        assert (result["status"], result["stdout"], result["stderr"]) == ("interrupted", "first\n", "trouble\n"), result
        assert (result["stdout_bytes"], result["stderr_bytes"], result["stdout_truncated"]) == (6, 8, False), result
        assert web.get(f"/v1/executions/{few}/stdout").body == b"first\n"
        result, whole = web.wait(many), "".join("é%06d\n" % i for i in range(30000)).encode()
        head, _, tail = result["stdout"].partition("\n... [")
        number, _, tail = tail.partition(" bytes omitted] ...\n")
        assert result["stdout_truncated"] and result["stdout_bytes"] == len(whole) and "\ufffd" not in result["stdout"]
        assert whole.startswith(head.encode()) and whole.endswith(tail.encode()) and len(head) > 20000 and len(tail) > 20000
        assert len(head.encode()) + len(tail.encode()) + int(number) == len(whole)
        assert web.get(f"/v1/executions/{many}/stdout").body == whole
        assert web.wait(unseen)["stdout"] == "nobody looks\n"
        assert web.wait(early)["status"] == "interrupted" and web.wait(early)["stdout"] == ""
    finally:
        served.end()


def test_no_files_of_short_output(web, served):
    """What was kept in case of a crash goes when the result has it; it is read as before."""
    before = outputs(served)
    nap = f"25.{secrets.randbelow(10**9):09d}"
    id = web.submit("bash", f"echo on; sleep {nap}; echo off")
    wait_output(web, id, "stdout", 3)
    while web.state(id)["status"] == "running" and not outputs(served) - before:
        time.sleep(0.01)
    assert outputs(served) - before == {f"{id}.stdout"}
    oracle.wake(nap)
    assert web.wait(id)["stdout"] == "on\noff\n"
    assert web.get(f"/v1/executions/{id}/stdout").body == b"on\noff\n"
    assert outputs(served) == before


def test_interactive_after_a_crash(mode, stage):
    """A job that waited for its input when the front died waits for it again."""
    served = Served(Atoll(mode, stage), stage.scratch(mode, "again"), "--running", "1")
    try:
        web = served.web
        blocks = web.submit("bash", "sleep 60")
        web.wait(blocks, "running")
        id = web.submit("bash", "read line; echo got $line", "?interactive=true")
        plain = web.submit("bash", "read line; echo got $line")
        served.kill_front()
        web.wait(id, "running")
        socket = WebSocket(web, f"/v1/executions/{id}/attach")
        socket.send({"type": "stdin", "data": "here\n"})
        assert socket.until("result")["data"]["stdout"] == "got here\n"
        socket.close()
        assert web.wait(plain)["stdout"] == "got\n"
    finally:
        served.end()


def test_executions_with_tests_have_few_places(mode, stage):
    """An execution that waits for a judging place does not hold up those without tests, and runs when one is free."""
    work = stage.scratch(mode, "judging")
    served = Served(Atoll(mode, stage), work, "--running", "8", "--set", "queue.judging=1")
    web = Web(served.daemon.host, served.daemon.port)
    tests = [{"expected": "1"}]
    try:
        first, second = (web.submit("bash", "sleep 60", tests=tests, limits={"timeout": 90}) for _ in range(2))
        third = web.submit("bash", "echo 1", tests=tests)
        web.wait(first, "running")
        assert web.execute("bash", "echo on")["stdout"] == "on\n"
        assert web.wait(web.submit("bash", "echo on"))["stdout"] == "on\n"
        assert [web.get(f"/v1/executions/{id}").json()["status"] for id in (first, second, third)] == ["running", "queued", "queued"]
        for id in (first, second):
            web.delete(f"/v1/executions/{id}")
        assert web.wait(third)["tests"][0]["verdict"] == "passed"
    finally:
        served.end()


def test_nobody_has_all_places(mode, stage):
    """A caller who fills what he may leaves a place to run, and one to wait, to the next."""
    work = stage.scratch(mode, "share")
    atoll = Atoll(mode, stage)
    path = work / "tokens"
    path.write_text("".join(token + "\n" for token in TOKENS))
    path.chmod(0o600)
    os.chown(path, work.stat().st_uid, -1)
    served = Served(atoll, work, "--running", "4", "--set", "queue.per_caller=5", "--token-file", path)
    greedy, modest = (Web(served.daemon.host, served.daemon.port, token) for token in TOKENS)
    answers = []

    def take():
        answers.append(greedy.post("/v1/execute?disconnect=cancel", {"language": "bash", "code": "sleep 60", "limits": {"timeout": 90}},
                                   timeout=120))

    try:
        threads = [threading.Thread(target=take) for _ in range(10)]
        for thread in threads:
            thread.start()
        end = time.monotonic() + 40
        while len(answers) < 2 and time.monotonic() < end:
            time.sleep(0.02)
        # 3 run, 5 wait.
        assert [answer.status for answer in answers] == [429, 429], answers
        assert all(int(answer.headers["retry-after"]) >= 1 for answer in answers)
        for _ in range(3):
            assert modest.execute("bash", "echo on")["stdout"] == "on\n"
        assert len(answers) == 2, "behind the greedy one's"
        greedy.post("/v1/cleanup")
        for thread in threads:
            thread.join(60)
        assert len(answers) == 10
    finally:
        served.end()
