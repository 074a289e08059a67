# SPDX-License-Identifier: Apache-2.0
"""Nothing is lost, and nothing that is lost is lost in silence: what a daemon says and does about a trouble that cost something.

`bench/lost.py` runs these tests and others of the kind in one go, and prints a table.
"""
import http.server
import json
import os
import signal
import threading

import pytest

import chaos
from chaos import start  # noqa: F401, a fixture
from resident import wait_until

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
