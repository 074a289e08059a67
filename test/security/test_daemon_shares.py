# SPDX-License-Identifier: Apache-2.0
"""One account takes all connections that accounts share, and closes them. How the front's time is shared: src/http/test-share.c."""
import contextlib
import socket
import time

import pytest

from program import Atoll
from siege import Siege

pytestmark = pytest.mark.cold("the daemon keeps its own cells warm")
CONNECTIONS = 64
OWN = CONNECTIONS - CONNECTIONS // 8


@pytest.fixture(scope="module")
def siege(mode, stage):
    made = Siege(Atoll(mode, stage), stage.scratch(mode, "shares"), f"http.connections_max={CONNECTIONS}")
    yield made
    made.end()


def send(siege, path, times=1):
    s = siege.connect()
    s.sendall(f"GET {path} HTTP/1.1\r\n{siege.headers}\r\n".encode() * times)
    return s


def status_so_far(s):
    """The status of an answer that is there; None: none yet. An end without one is an answer, too."""
    s.setblocking(False)
    try:
        return int((s.recv(4096).split() or [0, 0])[1])
    except BlockingIOError:
        return None
    finally:
        s.setblocking(True)


def waiting_job(siege):
    job = siege.alice.submit("bash", "read line; echo got $line", query="?interactive=1")
    siege.alice.wait(job, "running")
    return job


def test_connections_of_one_account(siege):
    """Long polls and event streams of one account: others are served as if they were not there, and the account hears what to do."""
    job, fds = waiting_job(siege), siege.fds()
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(send(siege, f"/v1/executions/{job}{('?wait=60', '/events')[i % 2]}")) for i in range(OWN)]
        end = time.monotonic() + 30
        while siege.fds() < fds + OWN:
            assert time.monotonic() < end
        refused = siege.alice.get("/v1/languages")
        assert refused.status == 503 and refused.json()["code"] == "busy", refused
        assert "one caller" in refused.json()["detail"] and refused.headers["retry-after"] == "1"
        assert siege.alice.get("/healthz").status == 200
        for _ in range(5):
            assert siege.bob.execute("bash", "echo mine")["stdout"] == "mine\n"
        # Silent connections of the same address give way, too.
        silent = [stack.enter_context(siege.connect()) for _ in range(3 * CONNECTIONS)]
        for _ in range(5):
            assert siege.bob.execute("bash", "echo mine")["stdout"] == "mine\n"
        assert all(status_so_far(s) in (None, 200) for s in held) and silent
    siege.settle(fds + 4)  # files of the job's events, as long as it runs
    assert siege.alice.delete(f"/v1/executions/{job}").status == 200
    siege.alice.wait(job)


def test_closed_clients_are_noticed(siege):
    """A client that closes is gone at once, long before its wait is over; one that only sends no more gets its answer."""
    job, fds = waiting_job(siege), siege.fds()
    patient = send(siege, f"/v1/executions/{job}?wait=60")
    patient.shutdown(socket.SHUT_WR)
    held = [send(siege, f"/v1/executions/{job}{('?wait=60', '/events')[i % 2]}") for i in range(20)]
    end = time.monotonic() + 30
    while siege.fds() < fds + 21:
        assert time.monotonic() < end
    for s in held:
        s.close()
    siege.settle(fds + 1, timeout=20)
    assert siege.alice.delete(f"/v1/executions/{job}").status == 200
    answer = b"".join(iter(lambda: patient.recv(65536), b""))
    patient.close()
    assert answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 ") and b'"cancelled"' in answer, answer
    siege.settle(fds)
