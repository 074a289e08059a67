# SPDX-License-Identifier: Apache-2.0
"""Nothing is lost, and nothing that is lost is lost in silence: what a daemon says and does about a trouble that cost something.

`bench/lost.py` runs these tests and others of the kind in one go, and prints a table.
"""
import contextlib
import hashlib
import http.server
import json
import os
import signal
import sqlite3
import threading

import pytest

import chaos
from chaos import start  # noqa: F401, a fixture
from resident import wait_until
from web import LocalWeb, problem

# ---------------------------------------------------------------------------------------------- callbacks


class Receiver(http.server.ThreadingHTTPServer):
    """Takes callbacks, or answers 503 while it is `away`."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answer)
        self.got, self.away = [], False
        self.url = f"http://127.0.0.1:{self.server_port}/"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def results(self):
        return {result["id"]: result for away, result in self.got if not away}

    def refused(self):
        return {result["id"] for away, result in self.got if away}


class Answer(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        result = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        away = self.server.away
        assert self.headers["webhook-id"] == result["id"]
        self.send_response(503 if away else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()
        self.server.got.append((away, result))

    def log_message(self, *args):
        pass


@pytest.fixture
def receiver():
    server = Receiver()
    yield server
    server.shutdown()
    server.server_close()


@pytest.mark.modes("root")
def test_callbacks_after_a_kill(start, receiver):
    """What was running is interrupted, what had ended was not taken, what waited runs: each callback comes from the next process."""
    survivor = start("--running", "1", env={"ATOLL_CALLBACKS_ALLOW": "true", "ATOLL_CALLBACKS_HOSTS": "127.0.0.1"})
    web = survivor.web
    receiver.away = True
    ended = web.submit("bash", "echo ended", callback_url=receiver.url)
    web.wait(ended)
    wait_until(lambda: ended in receiver.refused(), 60, "the first attempt does not come")
    running = web.submit("bash", "echo begun; sleep 60.4711", limits={"timeout": 90}, callback_url=receiver.url)
    wait_until(lambda: web.get(f"/v1/executions/{running}/stdout").body, 60, "it does not begin")
    queued = web.submit("bash", "echo queued", callback_url=receiver.url)
    silent = web.submit("bash", "echo silent")
    os.kill(survivor.daemon.pid, signal.SIGKILL)
    chaos.wait_until(lambda: not survivor.strays(), chaos.ORPHANS_MAX_S, "orphans")
    survivor.end()
    receiver.away = False
    survivor.start()
    chaos.wait_until(lambda: {ended, running, queued} <= set(receiver.results()), 60, lambda: f"missing: {receiver.got}")
    results = receiver.results()
    assert [results[id]["status"] for id in (ended, running, queued)] == ["success", "interrupted", "success"]
    assert results[running]["stdout"] == "begun\n" and results[running]["cause"]["retryable"]
    survivor.web.wait(silent)
    assert all(survivor.web.state(id) == result for id, result in results.items()) and silent not in results
    # Each was taken: no later process sends one again.
    n = len(receiver.got)
    assert survivor.end() == 0
    survivor.start()
    survivor.web.execute("bash", "echo on", callback_url=receiver.url)
    wait_until(lambda: len(receiver.got) > n, 60, "no callback comes any more")
    assert survivor.end() == 0
    assert len(receiver.got) == n + 1


# ------------------------------------------------------------------------------------------------ damage

PAGE = 4096
ROWS = 30


def digests(state):
    """The damaged databases, and what is in them."""
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in (state / "history").glob("history.db.damaged-*") if p.name[-1].isdigit()}


def die(survivor):
    """kill -9: the next start is one after an unclean stop."""
    os.kill(survivor.daemon.pid, signal.SIGKILL)
    chaos.wait_until(lambda: not survivor.strays(), chaos.ORPHANS_MAX_S, "orphans")
    survivor.end()


def make_history(survivor):
    """Results by id, all of them in the database; one has its output in a file beside it."""
    web = survivor.web
    results = [web.execute("bash", f"echo number {i}", labels={"kind": "kept"}) for i in range(ROWS)]
    results.append(web.execute("bash", "seq 100000", limits={"output": "4k"}))
    assert survivor.end() == 0
    survivor.start()
    running = survivor.web.submit("bash", "echo begun; sleep 60.9127", limits={"timeout": 90})
    wait_until(lambda: survivor.web.get(f"/v1/executions/{running}/stdout").body, 60, "it does not begin")
    die(survivor)
    settle(survivor.state)
    return {result["id"]: result for result in results}, running


def settle(state):
    """Everything is in the database, so that damage is not mended by the log; yet the stop was not clean."""
    with contextlib.closing(sqlite3.connect(state / "history" / "history.db")) as db:
        assert db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    log = state / "history" / "history.db-wal"
    log.write_bytes(b"not a log")
    os.chown(log, *owner_of(state))


def owner_of(state):
    info = (state / "history").stat()
    return info.st_uid, info.st_gid


def damage(state, at, pages=1):
    with open(state / "history" / "history.db", "r+b") as f:
        f.seek(at)
        f.write(b"\xa5" * PAGE * pages)


def restart_damaged(survivor):
    """Says it everywhere, and serves all the same."""
    survivor.start()
    web = survivor.web
    said = survivor.daemon.wait_record("the history was damaged: it is put aside, and an empty one takes its place; "
                                       "`atoll history repair` takes over what can still be read")
    assert said["level"] == "error" and said["file"] in digests(survivor.state) and said["alert"] == "history_damaged"
    audit = [json.loads(line) for line in (survivor.state / "audit.log").read_text().splitlines()]
    assert [r["file"] for r in audit if r["msg"] == "alert" and r["kind"] == "history_damaged"][-1] == said["file"]
    assert survivor.is_ready() and web.execute("bash", "echo on")["stdout"] == "on\n"
    return said["file"]


def damaged(survivor):
    """How many, in every place that says so."""
    web = survivor.web
    url = {"ATOLL_URL": f"http://{survivor.daemon.address}"}
    metric = next(line for line in LocalWeb(survivor.daemon.socket).get("/metrics").body.decode().splitlines() if line.startswith("atoll_history_damaged "))
    report = web.get("/v1/doctor").json()
    doctor = [c for section in report["sections"] for c in section["checks"] if c["name"] == "history"]
    local = survivor.atoll.run(["doctor", "--json"], env=url).json()
    there = [c for section in local["sections"] for c in section["checks"] if c["name"] == "history"]
    text = survivor.atoll.run(["doctor"], env=url).out
    n = web.get("/readyz").json()["damaged"]
    assert float(metric.split()[1]) == n
    assert [c["fix"] for c in doctor] == [c["fix"] for c in there] == ["atoll history repair"] * (n > 0), (doctor, there)
    assert ("atoll history repair" in text) == (n > 0), text
    return n


@pytest.mark.parametrize("how", ["through the daemon", "without a daemon"])
def test_a_damaged_history(start, how):
    """It is put aside aloud, and its repair takes over what can be read, once; nothing is deleted, and no output is swept."""
    survivor = start()
    state = survivor.state
    results, running = make_history(survivor)
    # The first pages: SQLite does not even see a database.
    damage(state, 0, 2)
    name = restart_damaged(survivor)
    before, web = digests(state), survivor.web
    assert damaged(survivor) == 1 and list(before) == [name]
    assert all(web.get(f"/v1/executions/{id}").status == 404 for id in results)
    # An unclean stop once more: files without a row are looked for then, but those of the damaged history have rows in it.
    die(survivor)
    survivor.start()
    survivor.daemon.wait_record("a damaged history lies aside and was not repaired; `atoll history repair` takes over what can still be read")
    if how == "through the daemon":
        done = survivor.atoll.run(["history", "repair", "--json", "--url", str(survivor.daemon.socket)])
    else:
        refused = survivor.atoll.run(["history", "repair", "--state-dir", str(state)])
        assert refused.returncode == 125 and "a daemon has" in refused.err and "--url" in refused.err, refused
        assert survivor.end() == 0
        done = survivor.atoll.run(["history", "repair", "--json", "--state-dir", str(state)])
        survivor.start()
    assert done.returncode == 0, done
    report = done.json()
    assert [f["file"] for f in report["files"]] == [name] and report["taken"] == len(results) + 1, report
    web = survivor.web
    assert {id: web.state(id) for id in results} == results
    lost = web.wait(running)
    assert (lost["status"], lost["stdout"]) == ("interrupted", "begun\n") and lost["cause"]["retryable"]
    wide = next(r for r in results.values() if r["stdout_truncated"])
    assert web.get(f"/v1/executions/{wide['id']}/stdout").body == "".join(f"{i}\n" for i in range(1, 100001)).encode()
    rows = web.get("/v1/executions?label=kind=kept&limit=1000").json()["executions"]
    assert len(rows) == ROWS
    assert damaged(survivor) == 0 and digests(state) == before
    again = survivor.atoll.run(["history", "repair", "--url", str(survivor.daemon.socket)])
    assert again.returncode == 0 and again.out == "there is nothing to repair\n", again
    assert survivor.end() == 0
    chaos.check_database(state, damaged=1)


def test_damage_in_the_middle(start):
    """What is in front of a damaged place and behind it is taken."""
    survivor = start()
    results, _ = make_history(survivor)
    size = (survivor.state / "history" / "history.db").stat().st_size
    damage(survivor.state, 0)
    damage(survivor.state, size // 2 // PAGE * PAGE)
    restart_damaged(survivor)
    answer = LocalWeb(survivor.daemon.socket).post("/v1/history/repair", {})
    found = [id for id in results if survivor.web.get(f"/v1/executions/{id}").status == 200]
    assert answer.status == 200 and 0 < len(found) <= answer.json()["taken"] <= len(found) + 1, answer
    assert len(found) > len(results) / 2 and all(survivor.web.state(id)["status"] in ("success", "interrupted") for id in found)
    assert survivor.end() == 0
    chaos.check_database(survivor.state, damaged=1)


def test_repair_is_for_operators(start, atoll, work):
    survivor = start()
    problem(survivor.web.post("/v1/history/repair", {}), 403, "operator_only")
    assert LocalWeb(survivor.daemon.socket).post("/v1/history/repair", {}).json() == {"files": [], "taken": 0}
    done = atoll.run(["history", "repair", "--state-dir", str(work / "nowhere")])
    assert done.returncode == 125 and "there is no history in" in done.err and not (work / "nowhere").exists(), done
    done = atoll.run(["history", "repair", "--url", str(work / "no.sock")])
    assert done.returncode == 125 and "no daemon answers" in done.err, done
