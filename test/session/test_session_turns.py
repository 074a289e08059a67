# SPDX-License-Identifier: Apache-2.0
"""Executions of a session as executions of the daemon: waiting, cancelling, events, history, other callers (doc/http.md)."""
import contextlib
import hashlib
import json
import os
import signal
import time

import pytest

from live import Asking, Session
from program import MODES, Atoll
from resident import wait_until
from web import SANITIZED, Served, Web, output, problem, sse

# The front is the same program in both modes; what a sandbox is made of is tested in test_session_attacks.py.
pytestmark = pytest.mark.modes(MODES[0])
quick = pytest.mark.quick
NAP = "import time; time.sleep(60)"


@pytest.fixture
def session(web):
    with Session(web) as session:
        yield session


# ------------------------------------------------------------------------------------------ one at a time


@quick
def test_one_at_a_time_in_order(session):
    asked = [session.begin("import time; seen = [1]; print('on'); time.sleep(60)")]
    wait_until(lambda: "on" in session.logs()["stdout"], why="it does not begin")
    for number in range(2, 6):
        asked.append(session.begin(f"seen.append({number}); seen"))
        wait_until(lambda: session.show()["waiting"] == number, why="it does not wait")
    session.interrupt()
    assert [one.json()["value"] for one in asked] == [None, [1, 2], [1, 2, 3], [1, 2, 3, 4], [1, 2, 3, 4, 5]]
    assert session.show()["executions"] == 5


def test_the_line_is_bounded(session):
    asked = [session.begin(NAP)]
    session.busy()
    asked += [session.begin("1") for _ in range(31)]
    wait_until(lambda: session.show()["waiting"] == 32, why="they do not wait")
    answer = session.ask("1")
    problem(answer, 429, "queue_full")
    assert int(answer.headers["retry-after"]) >= 1
    problem(session.web.get(f"{session.path}/files"), 429)
    session.interrupt()
    assert [one.json()["value"] for one in asked] == [None] + [1] * 31


def test_the_result_is_complete(session):
    session.run("1")
    wait_until(lambda: session.run("2")["runtime"], why="the version is never known")
    result = session.run("3")
    assert (result["via"], result["node"]) == ("daemon", os.uname().nodename) and result["runtime"].startswith("Python 3.")
    assert result["outputs"] == [] and not {"network", "changes", "host_calls"} & result.keys()
    row = session.web.get("/v1/executions?limit=1").json()["executions"][0]
    assert (row["id"], row["code_sha256"]) == (result["id"], hashlib.sha256(b"3").hexdigest())


@quick
def test_cancel(session):
    session.run("mark = 3")
    with session.events(NAP) as first:
        session.busy()
        with session.events("mark = 4") as second:
            wait_until(lambda: session.show()["waiting"] == 2, why="the second does not wait")
            assert session.web.delete(f"/v1/executions/{second.id}").json()["cancelled"] is True
            result = second.until("result")
            assert result["status"] == "cancelled" and result["exit_code"] is None, result
        assert session.web.delete(f"/v1/executions/{first.id}").json()["cancelled"] is True
        result = first.until("result")
    assert (result["status"], result["session"]["state"]) == ("cancelled", "kept"), result
    assert session.value("mark") == 3


def test_delete_under_execution(web):
    session = Session(web)
    first = session.begin(NAP)
    session.busy()
    second = session.begin("1")
    wait_until(lambda: session.show()["waiting"] == 2, why="they do not wait")
    assert web.delete(session.path).status == 204
    result = first.json()
    assert (result["status"], result["session"]["state"]) == ("cancelled", "lost"), result
    answer = second.result()
    assert answer.status == 404 or answer.json()["status"] in ("cancelled", "internal_error"), answer
    problem(web.get(session.path), 404)


def test_two_clients_at_once(web):
    """A16: deleting, resetting, executing, interrupting at the same time: each request gets an answer, and the daemon goes on."""
    sessions = [Session(web) for _ in range(4)]
    asked = []
    for session in sessions:
        asked += [(session, session.begin("import time; time.sleep(.05); 7")) for _ in range(3)]
    for number, session in enumerate(sessions):
        path = session.path
        asks = [lambda path=path: web.post(f"{path}/reset"), lambda path=path: web.post(f"{path}/interrupt"),
                lambda path=path: web.get(f"{path}/files"), lambda path=path: web.delete(path), lambda path=path: web.post(f"{path}/reset"),
                lambda path=path: web.delete(path)]
        asked += [(session, Asking(ask)) for ask in asks[number:] + asks[:number]]
    for _, one in asked:
        answer = one.result()
        assert answer.status in (200, 204, 404, 500), answer
        assert answer.status != 500 or answer.json()["code"] != "internal", answer
    for session in sessions:
        problem(web.get(session.path), 404)
    with Session(web) as session:
        assert session.value("6 * 7") == 42


def ended_between(session, end):
    """The first result after the interpreter ended while no execution ran: one that it ended under is no such result."""
    while True:
        session.run(f"import os, threading\nx = 1\nthreading.Timer(0.2, lambda: {end}).start()")
        while (result := session.run("globals().get('x')"))["value"] == 1:
            time.sleep(0.02)
        if result["status"] == "success":
            return result


@quick
@pytest.mark.parametrize("end, reason", [("os._exit(3)", "exited with 3"), ("os.kill(os.getpid(), 9)", "SIGKILL")])
def test_state_lost_between_executions_is_told(session, end, reason):
    """An interpreter that ends by itself while nothing runs takes the variables with it: the next result says so, and only that one."""
    result = ended_between(session, end)
    (warning,) = result["warnings"]
    assert result["value"] is None and reason in warning and "variables are lost, the files of its work directory are kept" in warning, result
    assert "warnings" not in session.run("1")


# ------------------------------------------------------------------------------------------- history


@quick
def test_an_execution_is_in_the_history(session):
    result = session.run("x = [1, 2]\nprint('words')\nx", labels={"of": "turns"})
    assert result["labels"] == {"of": "turns"} and result["outputs"] == [] and "host_calls" not in result, result
    assert session.web.state(result["id"]) == result
    row = session.web.get("/v1/executions?label=of=turns").json()["executions"][0]
    assert row["id"] == result["id"] and row["language"] == "python", row
    assert session.web.get(f"/v1/executions/{result['id']}/stdout").body == b"words\n"
    problem(session.web.get(f"/v1/executions/{result['id']}/files/x"), 404)
    failed = session.run("\n\nx[7]")
    analysis = session.web.get(f"/v1/executions/{failed['id']}/analysis").json()
    assert (analysis["is_error"], analysis["exception"], analysis["line"]) == (True, "IndexError", 3), analysis
    assert session.web.get(f"/v1/executions/{failed['id']}/debug-report").status == 200
    diff = session.web.get(f"/v1/executions/{result['id']}/diff/{failed['id']}")
    assert diff.status == 200 and "stdout" in diff.json(), diff
    replayed = session.web.post(f"/v1/executions/{result['id']}/replay")
    assert replayed.status == 202, replayed
    again = session.web.wait(replayed.json()["id"])
    assert (again["status"], again["stdout"], again["value"]) == ("success", "words\n", [1, 2]), again
    assert session.web.delete(f"/v1/executions/{result['id']}").status in (200, 204)
    problem(session.web.get(f"/v1/executions/{result['id']}"), 404)


def test_replay_with_the_sessions_limits(web):
    with Session(web, limits={"memory": "64m", "timeout": 30}) as session:
        for code, timeout_s in (("x = bytearray(100 << 20)", 20), (NAP, 0.9)):
            result = session.run(code, limits={"timeout": timeout_s})
            again = web.wait(web.post(f"/v1/executions/{result['id']}/replay").json()["id"])
            assert result["status"] == again["status"] != "success" and result["cause"]["kind"] == again["cause"]["kind"], (result, again)


@pytest.mark.parametrize("accept", ["text/event-stream", "application/x-ndjson"])
def test_events(session, accept):
    code = "import sys\nprint('a'); display({'text/html': '<b>'}, raw=True); sys.stderr.write('b'); print('c')\n[1]"
    with session.web.stream("POST", f"{session.path}/execute", {"code": code}, accept=accept) as response:
        events = [data for _, _, data in sse(response)] if "event" in accept else [json.loads(line) for line in response]
    names = [event["event"] for event in events]
    assert names[0] == "start" and names[-1] == "result" and "output" in names, names
    assert output(events) == "a\nc\n" and output(events, "stderr") == "b"
    rich = next(event for event in events if event["event"] == "output")
    assert rich["data"] == {"data": {"text/html": "<b>"}, "metadata": {}}, rich
    assert [event["seq"] for event in events] == sorted(event["seq"] for event in events)
    result = events[-1]["data"]
    assert result["value"] == [1] and result["outputs"] == [{"data": {"text/html": "<b>"}, "metadata": {}}], result
    # Later readers get the same, from any place on.
    with session.web.stream("GET", f"/v1/executions/{result['id']}/events") as response:
        again = [(number, name) for number, name, _ in sse(response)]
    assert [name for _, name in again] == names, again
    with session.web.stream("GET", f"/v1/executions/{result['id']}/events", headers={"Last-Event-ID": again[1][0]}) as response:
        assert [(number, name) for number, name, _ in sse(response)] == again[2:]


def test_events_of_a_waiting_execution(session):
    first = session.begin(NAP)
    session.busy()
    with session.events("print('mine')") as events:
        wait_until(lambda: session.show()["waiting"] == 2, why="it does not wait")
        session.interrupt()
        seen = [*events]
    assert seen[0][0] == "start" and ("stdout", "mine\n") in seen, seen
    assert first.json()["stdout"] == ""


def test_a_client_that_goes_lets_the_code_run_on(session):
    connection = session.web.connect()
    connection.request("POST", f"{session.path}/execute", json.dumps({"code": "import time; time.sleep(.4); mark = 9"}),
                       {"Content-Type": "application/json"})
    session.busy()
    connection.close()
    assert session.value("mark") == 9
    assert session.show()["executions"] == 2


# ------------------------------------------------------------------------------- X-Session-ID, callers


def test_execute_with_a_session_id(web):
    def execute(code, id, **more):
        return web.ask("POST", "/execute", {"generated_code": code, "timeout": 5, **more}, {"X-Session-ID": id} if id else {}).json()
    assert execute("x = 5; print(x)", "a") == {"process_status": "completed", "stdout": "5\n", "stderr": ""}
    assert execute("print(x)", "a")["stdout"] == "5\n"
    assert execute("print(x)", "b")["process_status"] == "error"
    assert execute("print(x)", None)["process_status"] == "error"
    assert execute("import time; time.sleep(9)", "a", timeout=0.3) == {"process_status": "timeout", "stdout": "", "stderr": "Timed out\n"}
    assert execute("print(x)", "a")["stdout"] == "5\n"
    assert execute("import os; os._exit(1)", "a")["process_status"] == "error"
    assert "NameError" in execute("print(x)", "a")["stderr"]
    refused = execute("def f(:", "a")
    assert refused["stderr"].startswith("Traceback (most recent call last):\n  File \"/sandbox/cell-") and "SyntaxError" in refused["stderr"], refused
    for id in ("", "x" * 65, "a b"):
        answer = web.ask("POST", "/execute", {"generated_code": "1", "timeout": 5}, {"X-Session-ID": id})
        assert answer.status == 400 and set(answer.json()) == {"process_status", "stdout", "stderr"}, answer
    for session in web.get("/v1/sessions").json()["sessions"]:
        web.delete(f"/v1/sessions/{session['id']}")


@contextlib.contextmanager
def tokens_served(mode, stage, settings="{}\n"):
    work = stage.scratch(mode, "session-tokens")
    (work / "settings.yaml").write_text(settings)
    os.chown(work / "settings.yaml", work.stat().st_uid, -1)
    words = [f"hidden-word-of-32-characters-000{n}" for n in (1, 2)]
    (work / "tokens").write_text("".join(f"{word}\n" for word in words))
    (work / "tokens").chmod(0o600)
    os.chown(work / "tokens", work.stat().st_uid, -1)
    served = Served(Atoll(mode, stage), work, "--token-file", str(work / "tokens"), "--config", str(work / "settings.yaml"))
    try:
        yield served, [Web(served.daemon.host, served.daemon.port, token) for token in words]
    finally:
        served.end()


@quick
def test_sessions_of_other_callers(mode, stage):
    """M07, A09: a session of another token does not exist; its files, outputs and history neither."""
    with tokens_served(mode, stage) as (served, (one, two)):
        with Session(one, name="n", host_functions=["f"]) as mine, Session(two, name="n") as other:
            result = mine.run("secret = 1; open('s', 'w').write('s'); print('mine')")
            asked = mine.begin("f()")
            mine.busy()
            theirs = [("GET", ""), ("DELETE", ""), ("POST", "/execute"), ("POST", "/interrupt"), ("POST", "/reset"), ("GET", "/logs"),
                      ("GET", "/files"), ("GET", "/files/s"), ("PUT", "/files/s"), ("DELETE", "/files/s"), ("POST", "/calls/1")]
            for method, path in theirs:
                body = {"code": "1", "result": 1} if method == "POST" else b"x" if method == "PUT" else None
                headers = {"Content-Type": "application/octet-stream"} if method == "PUT" else {}
                detail = problem(two.ask(method, mine.path + path, body, headers), 404, "not_found")
                assert detail == problem(two.ask(method, "/v1/sessions/se_aaaaaaaaaaaaaaaaaaaaaaaaaa" + path, body, headers), 404).replace(
                    "se_aaaaaaaaaaaaaaaaaaaaaaaaaa", mine.id), detail
            assert [s["id"] for s in two.get("/v1/sessions").json()["sessions"]] == [other.id]
            problem(two.get(f"/v1/executions/{result['id']}"), 404)
            problem(two.get(f"/v1/executions/{result['id']}/events"), 404)
            assert other.run("secret")["error"]["type"] == "NameError" and other.files() == {}
            assert other.logs()["stdout"] == ""
            wait_until(lambda: mine.answer(1, {"result": 8}).status == 204, why="the code does not call its host")
            assert asked.json()["value"] == 8
            assert {s["id"] for s in served.web.operator.get("/v1/sessions").json()["sessions"]} == {mine.id, other.id}
            assert two.post("/v1/cleanup").json()["sessions"] == 1
            problem(two.get(other.path), 404)
            assert mine.value("secret") == 1


def test_bounds_and_drain(mode, stage):
    """The number of sessions is bounded. At SIGTERM code that runs may end and is answered; idle sessions end; new work is refused."""
    work = stage.scratch(mode, "few")
    (work / "few.yaml").write_text("sessions: {max: 3, per_caller: 3}\n")
    os.chown(work / "few.yaml", work.stat().st_uid, -1)
    served = Served(Atoll(mode, stage), work, "--config", str(work / "few.yaml"))
    try:
        web, kept = served.web, served.web.connect()
        gone, idle, busy = (Session(web) for _ in range(3))
        answer = web.post("/v1/sessions", {"language": "python"})
        problem(answer, 429)
        assert int(answer.headers["retry-after"]) >= 1
        assert web.delete(gone.path).status == 204
        Session(web).value("1")
        asked = busy.begin("import time; time.sleep(1); 'ended'")
        busy.busy()
        os.kill(served.daemon.pid, signal.SIGTERM)
        wait_until(lambda: web.get("/readyz", keep=kept).status == 503, why="it does not drain")
        problem(web.post("/v1/sessions", {"language": "python"}, keep=kept), 503, "draining")
        answer = idle.ask("1", keep=kept)
        assert answer.status in (404, 503), answer
        assert asked.json()["value"] == "ended"
        kept.close()
    finally:
        begun = time.monotonic()
        served.end()
        assert time.monotonic() - begun < 20


def test_no_interpreter_without_a_session(mode, stage):
    """Resets whose bodies take the slow way, while their session is reset again and closed: no sandbox stays, so the daemon ends at once."""
    served = Served(Atoll(mode, stage), stage.scratch(mode, "orphans"))
    try:
        web, body = served.web, b"{" + b" " * (300 << 10) + b"}"
        for _ in range(8):
            session = Session(web)
            asked = [Asking(lambda: web.ask("POST", f"{session.path}/reset", body, {"Content-Type": "application/json"})) for _ in range(3)]
            assert web.delete(session.path).status in (204, 404)
            for one in asked:
                answer = one.result()
                assert answer.status in (200, 404), answer
    finally:
        begun = time.monotonic()
        served.end()
        assert time.monotonic() - begun < 20


def test_sessions_are_shared_among_callers(mode, stage):
    """Seven eighths are one caller's bound; callers that have sessions divide them; what exists is kept."""
    with tokens_served(mode, stage, "sessions: {max: 8}\n") as (_, (one, two)):
        def ask(web):
            answer = web.post("/v1/sessions", {"language": "bash"})
            if answer.status != 201:
                assert "as one caller may have" in problem(answer, 429), answer
                assert int(answer.headers["retry-after"]) >= 1
            return answer

        taken = [ask(one) for _ in range(8)]
        assert [a.status for a in taken] == [201] * 7 + [429]
        assert ask(two).status == 201
        # One half of seven is each one's part now: the first caller keeps what it has, and gets no more before it is below its part.
        for answer in taken[:4]:
            assert ask(one).status == 429
            assert one.delete(f"/v1/sessions/{answer.json()['id']}").status == 204
        assert [ask(two).status for _ in range(3)] == [201, 201, 429]
        assert ask(one).status == 429
        assert two.post("/v1/cleanup").json()["sessions"] == 3
        assert [ask(one).status for _ in range(5)] == [201] * 4 + [429]


def test_a_session_that_cannot_start_is_none(web):
    before = len(web.get("/v1/sessions").json()["sessions"])
    answer = web.post("/v1/sessions", {"language": "python", "limits": {"disk": "64k"}, "files": {"a": "x" * 200000}})
    assert answer.status >= 400, answer
    starved = {"limits": {"memory": "4m"}, "env": {"PYTHONHASHSEED": "1"}}  # which no interpreter that is ready has
    for request, detail in ((starved, "used more than 4 MiB of memory"), ({"env": {"PYTHONHOME": "/x"}}, "exited with 1; ")):
        answer = web.post("/v1/sessions", {"language": "python", **request})
        assert answer.status == 400 and answer.json()["detail"].startswith("the session's interpreter did not start: " + detail), answer.json()
    assert len(web.get("/v1/sessions").json()["sessions"]) == before


# ------------------------------------------------------------------------------------------ many


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def test_a_thousand_sessions_leave_nothing(served):
    """Made, used and ended, by four clients. The oracle of the test looks for processes, cgroups, mounts, files and sockets."""
    daemon = served.daemon
    front = daemon.child("front")

    def make(count):
        with contextlib.closing(served.web.connect()) as keep:
            for _ in range(count):
                path = served.web.post("/v1/sessions", {"language": "python"}, keep=keep).headers["location"]
                assert served.web.post(f"{path}/execute", {"code": "1"}, keep=keep).json()["value"] == 1
                assert served.web.delete(path, keep=keep).status == 204

    def make_many(count):
        clients = [Asking(lambda: make(count // 4) or True) for _ in range(4)]
        assert all(client.result() for client in clients)

    make_many(40)
    before = descriptors(front)
    listed = len(served.web.get("/v1/sessions").json()["sessions"])
    # What sessions leave, they leave each time; a heap that did other work before may grow once, and the broker's cells are more or fewer. The
    # front caches 2 KB of each row, up to 18 MB.
    grown = {"front": [], "broker": []}
    for _ in range(4):
        memory = {name: daemon.memory(name) for name in grown}
        make_many(240)
        for name, rounds in grown.items():
            rounds.append(daemon.memory(name) - memory[name])
    assert SANITIZED or all(min(rounds) < 1 << 20 for rounds in grown.values()), grown
    wait_until(lambda: descriptors(front) <= before + 2, why="the front keeps descriptors")
    assert len(served.web.get("/v1/sessions").json()["sessions"]) == listed


def test_sessions_end_when_their_creator_goes(served):
    """A client that disconnects before its session is ready leaves a session, which its caller can list and end."""
    for _ in range(10):
        connection = served.web.connect()
        connection.request("POST", "/v1/sessions", b'{"language": "python"}', {"Content-Type": "application/json"})
        connection.close()
    for session in served.web.get("/v1/sessions").json()["sessions"]:
        assert served.web.delete(f"/v1/sessions/{session['id']}").status == 204
    with Session(served.web) as session:
        assert session.value("1") == 1
