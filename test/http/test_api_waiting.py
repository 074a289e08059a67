# SPDX-License-Identifier: Apache-2.0
"""The daemon's HTTP interface: what waits for its turn, and what happens when the broker has no room for it."""
import contextlib
import re
import secrets
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

import pytest

import oracle
from daemon import Daemon
from program import Atoll
from resident import wait_until
from web import LocalWeb, Served, Web, problem

quick = pytest.mark.quick
PROGRAM = {"language": "python", "code": "print('ran')"}


@pytest.fixture
def daemon(mode, stage, work):
    daemon = Daemon(Atoll(mode, stage), work)
    daemon.web = Web(daemon.host, daemon.port)
    daemon.web.operator = LocalWeb(daemon.socket)
    assert daemon.web.execute("python", "print(1)")["status"] == "success"
    yield daemon
    assert daemon.end() == 0


def files(daemon, n):
    """So many descriptors its broker may have: none that it does not have, where it has more."""
    words = daemon.atoll.command(["prlimit", f"--pid={daemon.child('broker')}", f"--nofile={n}:"])
    subprocess.run(words, check=True)


@contextlib.contextmanager
def full(daemon):
    """Its broker gets no descriptor until the end of this; what it has it keeps."""
    most = re.search(r"open files +(\d+) ", Path(f"/proc/{daemon.child('broker')}/limits").read_text())[1]
    files(daemon, 8)
    try:
        yield lambda: files(daemon, most)
    finally:
        files(daemon, most)


def row(web, id):
    found = [row for row in web.get("/v1/executions?limit=1000").json()["executions"] if row["id"] == id]
    return found[0] if found else None


def at(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


@quick
@pytest.mark.undisturbed
def test_when_it_started(mode, stage):
    """Who waited for a turn is listed with the moment in which it came, while it runs and afterwards."""
    served = Served(Atoll(mode, stage), stage.scratch(mode, "turn"), "--running", "1")
    web = served.web
    try:
        with ThreadPoolExecutor(1) as threads:
            nap = f"25.{secrets.randbelow(10**9):09d}"
            first = web.submit("bash", "sleep 25")
            web.wait(first, "running")
            waited = threads.submit(web.execute, "bash", f"sleep {nap}")
            wait_until(lambda: web.get("/v1/stats").json()["now"]["queued"] == 1, 25, "it does not wait")
            job = web.submit("bash", "true")
            assert web.state(job)["started_at"] is None and row(web, job)["started_at"] is None
            time.sleep(0.4)
            assert web.delete(f"/v1/executions/{first}").json()["cancelled"]
            web.wait(first)
            running = []
            wait_until(lambda: running.extend(web.get("/v1/executions?status=running").json()["executions"]) or running, 25)
            assert web.state(running[0]["id"])["started_at"] == running[0]["started_at"], running
            wait_until(lambda: oracle.who_runs(nap), 25)
            oracle.wake(nap)
            result = waited.result()
            web.wait(job)
        listed, rest = row(web, result["id"]), row(web, first)
        assert running[0]["id"] == result["id"] and running[0]["started_at"] == listed["started_at"], (running, listed)
        assert at(listed["started_at"]) >= at(rest["ended_at"]) - 0.01 and listed["created_at"] == result["created_at"]
        assert at(listed["started_at"]) - at(listed["created_at"]) > 0.3, listed
        # In the queue, from the start to the end, and the program itself: one after the other.
        assert at(listed["started_at"]) - at(listed["created_at"]) <= result["usage"]["start"] + 0.05, (listed, result)
        assert listed["duration"] == result["duration"] <= at(listed["ended_at"]) - at(listed["started_at"]) + 0.01, listed
        # No client listed it while it ran.
        alone = row(web, web.execute("bash", "true")["id"])
        assert 0 <= at(alone["started_at"]) - at(alone["created_at"]) < 15 and alone["started_at"] <= alone["ended_at"], alone
    finally:
        served.end()


@pytest.fixture
def served_alone(mode, stage):
    served = Served(Atoll(mode, stage), stage.scratch(mode, "never"))
    yield served
    served.end()


@quick
def test_what_never_ran_never_started(served_alone):
    web = served_alone.web
    refused = web.submit("cobol", "x")
    assert web.wait(refused)["status"] == "setup_error" and row(web, refused)["started_at"] is None


@quick
def test_no_room_for_who_waits(daemon):
    """As when the line is full: nothing was taken, and it can be sent again."""
    web = daemon.web
    before = len(web.get("/v1/executions").json()["executions"])
    with full(daemon):
        answer = web.post("/v1/execute", PROGRAM)
        assert "no room" in problem(answer, 429, "queue_full") and 1 <= int(answer.headers["retry-after"]) <= 60
        # A list that is asked for while it is tried makes a row of it; that row goes, too.
        with ThreadPoolExecutor(4) as threads:
            answers = list(threads.map(lambda n: web.post("/v1/execute", PROGRAM) if n % 2 else web.get("/v1/executions"), range(8)))
        assert {answer.status for answer in answers[1::2]} <= {429}, answers
    assert len(web.get("/v1/executions").json()["executions"]) == before
    wait_until(lambda: web.post("/v1/execute", PROGRAM).status == 200, 25)
    assert web.execute("python", "print(2)")["stdout"] == "2\n"
    assert 'atoll_refused_total{code="queue_full"}' in web.operator.get("/metrics").body.decode()


@quick
def test_no_room_for_a_job(daemon):
    """It was accepted, so it has a result: nothing began, and it can be run again."""
    web = daemon.web
    with full(daemon):
        result = web.wait(web.submit(**PROGRAM))
        assert (result["status"], result["stdout"]) == ("interrupted", ""), result
        assert result["cause"]["retryable"] is True and "too many runs" in result["cause"]["detail"], result
    assert web.wait(web.submit(**PROGRAM))["stdout"] == "ran\n"


def test_bytes_that_wait_are_bounded(mode, stage, work):
    """A few large bodies fill a disk as well as many small ones do."""
    with contextlib.closing(contextlib.ExitStack()) as stack:
        served = Served(Atoll(mode, stage), work, "--running", "1", "--set", "queue.bytes_per_caller=4m")
        stack.callback(served.end)
        web = served.web
        holder = web.submit("bash", "read line", query="?interactive=1")
        web.wait(holder, "running")
        large = {"language": "bash", "code": "true", "stdin": "x" * (3 << 20)}
        first = web.post("/v1/executions", large)
        assert first.status == 202, first
        assert "bytes" in problem(web.post("/v1/executions", large), 429, "queue_full").lower()
        small = web.submit("bash", "true")
        assert web.delete(f"/v1/executions/{holder}").status in (200, 202)
        for id in (first.json()["id"], small):
            assert web.wait(id)["status"] == "success"
        assert web.post("/v1/executions", large).status == 202
