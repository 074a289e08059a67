# SPDX-License-Identifier: Apache-2.0
"""One account takes all connections that accounts share, and closes them. How the front's time is shared: src/web/http/test-share.c."""
import contextlib
import socket
import time
from pathlib import Path

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


def connections(siege):
    """The front's ends of connections that it has not closed: established, or closed by the client alone."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(row[1].endswith(f":{siege.port:04X}") and row[3] in ("01", "08") for row in rows)


def until(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def waiting_job(siege):
    job = siege.alice.submit("bash", "read line; echo got $line", query="?interactive=1")
    siege.alice.wait(job, "running")
    return job


def test_connections_of_one_account(siege):
    """Event streams of one account take all it may have: others are served as if they were not there, and the account hears what to do."""
    job = waiting_job(siege)
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(send(siege, f"/v1/executions/{job}/events")) for _ in range(OWN)]
        assert all(s.recv(65536).startswith(b"HTTP/1.1 200 ") for s in held)
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
        assert connections(siege) >= OWN and silent
    until(lambda: connections(siege) == 0)
    assert siege.alice.delete(f"/v1/executions/{job}").status == 200
    siege.alice.wait(job)


def test_closed_clients_are_noticed(siege):
    """A client that closes is gone at once, long before its wait is over; one that only sends no more gets its answer."""
    job = waiting_job(siege)
    until(lambda: connections(siege) == 0)
    patient = send(siege, f"/v1/executions/{job}?wait=60")
    patient.shutdown(socket.SHUT_WR)
    held = [send(siege, f"/v1/executions/{job}{('?wait=60', '/events')[i % 2]}") for i in range(20)]
    until(lambda: connections(siege) == 21)
    # Their requests are handled, and wait.
    assert siege.alice.get("/healthz").status == 200
    for s in held:
        s.close()
    until(lambda: connections(siege) == 1, 20)
    assert siege.alice.delete(f"/v1/executions/{job}").status == 200
    answer = b"".join(iter(lambda: patient.recv(65536), b""))
    patient.close()
    assert answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 ") and b'"cancelled"' in answer, answer
    until(lambda: connections(siege) == 0)
