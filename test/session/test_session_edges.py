# SPDX-License-Identifier: Apache-2.0
"""Sessions whose sandbox goes, or whose executions are sent twice: nothing waits for ever, and nothing is kept for ever."""
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from program import Atoll
from resident import wait_until
from web import Served


@pytest.fixture(scope="module")
def policies(mode, stage):
    """A directory with one policy, `mine`."""
    folder = stage.scratch(mode, "policies")
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def served(mode, stage, policies):
    served = Served(Atoll(mode, stage), stage.scratch(mode, "served"), "--policies-dir", policies)
    yield served
    served.end()


@pytest.fixture
def session(web):
    made = web.post("/v1/sessions", {"language": "python"})
    assert made.status == 201, made
    yield f"/v1/sessions/{made.json()['id']}"
    web.delete(f"/v1/sessions/{made.json()['id']}")


def test_the_same_key_again(web, session):
    """A repeated request is no further execution of the session: its line stays empty."""
    for _ in range(40):
        answer = web.ask("POST", f"{session}/execute", b'{"code": "41 + 1"}', {"Content-Type": "application/json", "Idempotency-Key": session})
        assert answer.status in (200, 202), answer
    assert web.get(session).json()["waiting"] == 0
    assert web.get(session).json()["executions"] == 1
    assert web.post(f"{session}/execute", {"code": "6 * 7"}).json()["value"] == 42


# The channel is a socket with a high number. A thread keeps the process alive when its interpreter wants to end.
CLOSE_CHANNEL = """
import os, socket, stat, threading, time
def close():
    for fd in map(int, os.listdir("/proc/self/fd")):
        try:
            if fd > 99 and stat.S_ISSOCK(os.fstat(fd).st_mode):
                socket.socket(fileno=fd).shutdown(socket.SHUT_WR)
        except OSError:
            pass
    time.sleep(60)
threading.Timer(0.1, close).start()
"""


def test_a_program_that_closes_its_channel(web, session):
    """Its interpreter cannot be told anything any more; the next execution gets another one."""
    assert web.post(f"{session}/execute", {"code": CLOSE_CHANNEL}).json()["status"] == "success"
    time.sleep(0.3)
    result = web.post(f"{session}/execute", {"code": "6 * 7"}).json()
    assert (result["status"], result.get("value")) == ("success", 42), result


def test_executions_that_wait_for_a_sandbox_that_cannot_be_made(stage, web, policies):
    """All of them are told so, not only the first."""
    text = (stage.data / "policies" / "default.yaml").read_text()
    policy = policies / "mine.yaml"
    policy.write_text(text.replace("name: default", "name: mine"))
    policy.chmod(0o644)
    made = web.post("/v1/sessions", {"language": "python", "policy": "mine"})
    assert made.status == 201, made
    path = f"/v1/sessions/{made.json()['id']}"
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(web.post, f"{path}/execute", {"code": "import os, time\ntime.sleep(1)\nos._exit(3)"})
        wait_until(lambda: web.get(path).json()["state"] == "busy")
        others = [pool.submit(web.post, f"{path}/execute", {"code": "1"}) for _ in range(3)]
        wait_until(lambda: web.get(path).json()["waiting"] == 4)
        policy.unlink()
        assert first.result(30).json()["exit_code"] == 3
        for other in others:
            answer = other.result(30)
            assert answer.status != 200 or answer.json()["status"] != "success", answer
    assert web.post(f"{path}/execute", {"code": "1"}).json().get("status") != "success"
    assert web.get(path).json()["waiting"] == 0
    assert web.delete(path).status == 204
