# SPDX-License-Identifier: Apache-2.0
"""Sessions when a process of the daemon dies: they leave nothing behind (the leak oracle looks after each test)."""
import os
import signal

import pytest

import oracle
from live import Session
from program import Atoll
from resident import wait_until
from web import Served, problem

NAP = "import time; time.sleep(60)"


@pytest.fixture
def served(mode, stage):
    served = Served(Atoll(mode, stage), stage.scratch(mode, "crash"))
    yield served
    if served.daemon.popen.poll() is None:
        served.end()
    oracle.KEPT.discard(served.daemon.pid)


def test_kill_of_the_daemon(served):
    """The monitor dies with idle, busy and starting sessions: broker, front and every sandbox end."""
    sessions = [Session(served.web) for _ in range(3)]
    sessions[0].run("import os\nfor _ in range(3):\n    if os.fork() == 0: __import__('time').sleep(300)")
    sessions[1].begin(NAP)
    sessions[1].busy()
    below = served.daemon.processes()
    oracle.KEPT.discard(served.daemon.pid)
    served.daemon.end(signal.SIGKILL)
    wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in below), why="processes stay")


def kill_front(served):
    """Sessions live in the front: they end with it. The execution that ran is on record as interrupted."""
    session = Session(served.web)
    before = session.run("1")["id"]
    with session.events(NAP) as events:
        assert next(iter(events))[0] == "start"
        served.kill_front()
    assert served.web.state(before)["value"] == 1
    assert served.web.wait(events.id)["status"] == "interrupted"
    problem(served.web.get(session.path), 404)
    assert served.web.get("/v1/sessions").json()["sessions"] == []
    with Session(served.web) as session:
        assert session.value("6 * 7") == 42


def kill_broker(served):
    """The sandboxes end with their broker. The session stays: its state is lost, and its next execution finds a new interpreter."""
    busy, idle = Session(served.web), Session(served.web)
    for session in (busy, idle):
        session.run("mark = 1")
    asked = busy.begin(NAP)
    busy.busy()
    seen = len(served.daemon.records)
    os.kill(served.daemon.child("broker"), signal.SIGKILL)
    result = asked.json()
    assert result["status"] == "interrupted" or result["session"]["state"] == "lost", result
    served.daemon.wait_record("started", seen, process="broker")
    served.wait_ready()
    for session in (busy, idle):
        assert session.run("mark")["error"]["type"] == "NameError"
        assert session.value("6 * 7") == 42
        served.web.delete(session.path)


def test_kill_of_the_front_and_of_the_broker(served):
    groups = oracle.list_empty_cgroups()
    kill_front(served)
    kill_broker(served)
    # A killed broker cannot remove its groups. The next broker does, once they are old; they are empty.
    served.end()
    for group in sorted(oracle.list_empty_cgroups() - groups, reverse=True):
        os.rmdir(group)
