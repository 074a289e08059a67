# SPDX-License-Identifier: Apache-2.0
"""Crash-only: the promises of the daemon hold when the end of its log is lost, and when the daemon or another program fills the disk.

Names carry the ids of the threat catalogue. test/lib/chaos.py has the promises.
"""
import contextlib
import os
import random
import re
import signal
import threading
import time
from pathlib import Path

import pytest

import chaos
import oracle
from chaos import check_database, start  # noqa: F401, a fixture
from resident import wait_until
from web import problem


@pytest.mark.modes("rootless")
def test_C09_truncated_log(start):
    """A power cut's model: kill -9, and the end of the write-ahead log is gone, at any byte."""
    survivor = start()
    kept = []
    for _ in range(5):
        for i in range(12):
            kept.append(survivor.web.execute("bash", f"echo {i}")["id"])
        os.kill(survivor.daemon.pid, signal.SIGKILL)
        chaos.wait_until(lambda: not survivor.strays(), chaos.ORPHANS_MAX_S, "orphans")
        survivor.end()
        log = survivor.state / "history" / "history.db-wal"
        size = log.stat().st_size
        cut = random.randrange(max(1, size - 150_000), size)
        os.truncate(log, cut)
        arrivals = (survivor.state / "history" / "arrivals").read_bytes()
        survivor.start()
        rows = [id for id in kept if survivor.web.get(f"/v1/executions/{id}").status == 200]
        # What had not gone through the log is not lost with it. Of the rest only the newest may be, and what is left is whole:
        # one that was not over in an instant has two records there, and the second may be the first that is missing.
        elsewhere = [id for id in kept if id.encode() in arrivals]
        logged = [id for id in kept if id not in elsewhere]
        left = [id for id in rows if id not in elsewhere]
        assert set(elsewhere) <= set(rows)
        assert left == logged[:len(left)], f"a hole, cut at {cut} of {size}"
        assert all(survivor.web.state(id)["status"] == "success" for id in [*left[:-1], *elsewhere])
        assert all(survivor.web.state(id)["status"] in ("success", "interrupted") for id in left[-1:])
        kept = [id for id in rows if survivor.web.state(id)["status"] == "success"]
        assert survivor.web.execute("python", "print('on')")["stdout"] == "on\n"
    assert survivor.end() == 0
    assert set(kept) <= set(check_database(survivor.state))


class SmallDisk:
    """A daemon whose state directory is a small file system in a mount namespace of its own."""

    def __init__(self, start, work, *options, size="24m"):
        state = work / "state"
        state.mkdir(mode=0o700)
        self.survivor = start(*options, wrap=[
            "unshare", "-m", "--propagation", "private", "/bin/sh", "-c",
            f'mount -t tmpfs -o size={size},mode=0700 survivor "$0" && exec "$@"', str(state)])
        self.web = self.survivor.web
        self.fd = os.open(f"/proc/{self.survivor.daemon.pid}/root{state}", os.O_PATH | os.O_DIRECTORY)
        self.path = Path(f"/proc/self/fd/{self.fd}")

    def fill(self):
        """To the last byte."""
        fd = os.open(self.path / "fill", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        step = 1 << 20
        while step:
            try:
                os.write(fd, b"\0" * step)
            except OSError:
                step //= 2
        os.close(fd)

    def free(self):
        os.unlink(self.path / "fill")

    @contextlib.contextmanager
    def kept_full(self):
        """Also the room that the daemon gives back is taken, at once."""
        over = threading.Event()

        def fill():
            while not over.wait(0.01):
                self.fill()

        thread = threading.Thread(target=fill, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def refuses(self):
        """Keeps it full until new work is refused: what a run leaves behind may fit in what was set aside."""
        self.fill()
        answer = self.web.post("/v1/executions", {"language": "bash", "code": "true"})
        return answer.status == 503 and answer


@pytest.mark.modes("root")
def test_C11_disk_full(start, work):
    """New work is refused with 503, what runs ends with its result, and all is well once there is room again."""
    disk = SmallDisk(start, work, "--running", "2")
    web, front = disk.web, disk.survivor.daemon.child("front")
    before = web.execute("python", "print('before')")
    nap = f"60.{random.randrange(10**9):09d}"
    body = {"language": "bash", "code": f"echo one; sleep {nap}; echo two", "limits": {"timeout": 90}}
    running = web.post("/v1/executions", body, headers={"Idempotency-Key": "running"}).json()["id"]
    wide = web.submit("bash", f"sleep {nap}; seq -f 'line %.0f' 0 59999", limits={"timeout": 90})
    chaos.wait_until(lambda: len(chaos.who_runs(nap)) == 2, 25, "they do not begin")
    queued = web.submit("bash", "echo queued")
    chaos.wait_until(disk.refuses, 20, "work is accepted though nothing can be stored")
    problem(disk.refuses(), 503, "storage")
    answer = web.post("/v1/execute", {"language": "bash", "code": "true"})
    problem(answer, 503, "storage")
    assert int(answer.headers["retry-after"]) > 0
    assert web.get("/healthz").status == 200
    ready = web.get("/readyz")
    assert ready.status == 503 and ready.json()["storage"] is False, ready
    # A known key is known; what is there can be read.
    again = web.post("/v1/executions", body, headers={"Idempotency-Key": "running"})
    assert again.status == 202 and again.json()["id"] == running
    assert web.state(before["id"]) == before
    oracle.wake(nap)
    end = web.wait(running)
    assert (end["status"], end["stdout"]) == ("success", "one\ntwo\n")
    end = web.wait(wide)
    assert end["status"] == "success" and end["stdout"].startswith("line 0\n") and end["stdout"].endswith("line 59999\n"), end
    assert web.state(queued)["status"] == "queued"
    disk.free()
    chaos.wait_until(disk.survivor.is_ready, 60, "no recovery")
    assert web.wait(queued)["stdout"] == "queued\n"
    after = web.execute("python", "print('after')")
    assert after["stdout"] == "after\n"
    assert disk.survivor.daemon.child("front") == front and disk.survivor.daemon.brokers() == 1
    assert disk.survivor.end() == 0
    rows = check_database(disk.path)
    os.close(disk.fd)
    assert {rows[id] for id in (before["id"], running, wide, queued, after["id"])} == {"success"}, rows
    assert not {"queued", "running", "internal_error"} & set(rows.values()), rows


@pytest.mark.modes("root")
def test_output_that_the_disk_has_no_room_for(start, work):
    """It is cut and says so, also later. While other programs fill the disk, no history is deleted."""
    disk = SmallDisk(start, work, "--running", "2", size="64m")
    web = disk.web
    before = web.execute("python", "print('before' * 20000)", limits={"output": "4k"})
    (disk.path / "fill").write_bytes(bytes(40 << 20))
    cut = web.execute("python", "import sys\nfor i in range(30): sys.stdout.write('x' * (1 << 20))")
    assert (cut["status"], cut["stdout_bytes"]) == ("success", 30 << 20)
    path = f"/v1/executions/{cut['id']}/stdout"

    def is_cut():
        answer = web.get(path)
        return answer.headers["atoll-complete"] == "false" and (8 << 20) < len(answer.body) < (24 << 20)

    assert is_cut() and web.get(f"/v1/executions/{before['id']}/stdout").headers["atoll-complete"] == "true"
    time.sleep(1.5)  # two looks at what there is to delete
    assert is_cut() and web.state(before["id"]) == before
    disk.free()
    chaos.wait_until(disk.survivor.is_ready, 60, "no recovery")
    assert is_cut() and web.get(f"/v1/executions/{before['id']}/stdout").headers["atoll-complete"] == "true"
    assert disk.survivor.end() == 0
    os.close(disk.fd)


def storable(web, ids):
    """Whether there is room for a new one, whose id is put there."""
    answer = web.post("/v1/execute", {"language": "bash", "code": "echo on"})
    if answer.status == 200:
        ids.append(answer.json()["id"])
    return answer.status == 200


@pytest.mark.modes("root")
def test_disk_that_our_own_outputs_have_filled(start, work):
    """When the history fills the disk, its oldest rows go until there is room; no request has to come for that."""
    disk = SmallDisk(start, work, "--running", "2", size="40m")
    web = disk.web
    for i in range(3):
        result = web.execute("python", "import sys\nfor i in range(30): sys.stdout.write('x' * (1 << 20))")
        assert (result["status"], result["stdout_bytes"]) == ("success", 30 << 20)
        newest = []
        chaos.wait_until(lambda: storable(web, newest), 30, lambda: f"still refused: {disk.survivor.said()}")
    assert web.state(newest[0])["status"] == "success" and web.get(f"/v1/executions/{result['id']}").status in (200, 404)
    assert disk.survivor.end() == 0
    check_database(disk.path)
    os.close(disk.fd)


@pytest.mark.modes("root")
def test_C11_killed_with_a_full_disk(start, work):
    """Also recovery is a write: a front that finds no room comes up, tells what it knows, and goes on when there is some."""
    disk = SmallDisk(start, work, "--running", "1")
    web = disk.web
    before = web.execute("bash", "echo before")
    running = web.submit("bash", "sleep 60.375")
    wait_until(lambda: chaos.who_runs("60.375"), 25, "it does not begin")
    queued = web.submit("bash", "echo queued")
    chaos.wait_until(disk.refuses, 20, "work is accepted though nothing can be stored")
    with disk.kept_full():
        n = len(disk.survivor.daemon.records)
        os.kill(disk.survivor.daemon.child("front"), signal.SIGKILL)
        chaos.wait_until(lambda: not chaos.who_runs("60.375"), chaos.ORPHANS_MAX_S, "it outlived its front")
        disk.survivor.daemon.wait_record("a process died and is started again", n, process="front")

        def tells():
            with contextlib.suppress(*chaos.LOST):
                return web.get(f"/v1/executions/{before['id']}").status == 200
            return False

        chaos.wait_until(tells, 20, lambda: f"no front on a full disk: {disk.survivor.said()}")
        assert web.state(before["id"]) == before and web.state(queued)["status"] == "queued"
    chaos.wait_until(disk.refuses, 20, "work is accepted though nothing can be stored")
    disk.free()
    chaos.wait_until(disk.survivor.is_ready, 40, lambda: f"no recovery: {disk.survivor.said()}")
    assert web.wait(running)["status"] == "interrupted"
    assert web.wait(queued)["stdout"] == "queued\n"
    assert disk.survivor.end() == 0
    check_database(disk.path)
    os.close(disk.fd)


@pytest.mark.modes("root")
@pytest.mark.parametrize("size", ["3m", "8m"])
def test_full_disk_of_a_small_state_directory(start, work, size):
    """What needs no record goes on; the refusal says which directory is full and how many bytes it needs; with that room all is well."""
    disk = SmallDisk(start, work, size=size)
    web = disk.web
    before = web.execute("bash", "echo before")
    for _ in range(2):
        n = len(disk.survivor.daemon.records)
        with disk.kept_full():
            chaos.wait_until(disk.refuses, 20, "work is accepted though nothing can be stored")
            detail = problem(web.post("/v1/execute", {"language": "bash", "code": "true"}), 503, "storage")
            needed = int(re.search(r"needs (\d+) bytes", detail)[1])
            assert str(disk.survivor.state) in detail and 0 < needed <= {"3m": 3, "8m": 8}[size] << 18 and "history" in detail, detail
            chaos.wait_until(lambda: any(r["level"] == "error" and f"{disk.survivor.state}/history is full" in r["msg"] for r in disk.survivor.daemon.records[n:]),
                             20, lambda: f"the log does not say it: {disk.survivor.daemon.records[n:]} {disk.survivor.state}")
            for i in range(3):
                answer = web.post("/v1/execute", {"language": "bash", "code": f"echo {i}; seq 1000", "history": False})
                assert answer.status == 200 and answer.json()["stdout"].startswith(f"{i}\n1\n2\n"), answer
            assert web.state(before["id"]) == before
        disk.free()
        chaos.wait_until(disk.survivor.is_ready, 60, lambda: f"no recovery: {disk.survivor.said()}")
        disk.survivor.daemon.wait_record("results can be stored again", n)
        after = web.execute("bash", "echo after")
        assert web.state(after["id"]) == after
    assert disk.survivor.end() == 0
    rows = check_database(disk.path)
    os.close(disk.fd)
    assert {rows[id] for id in (before["id"], after["id"])} == {"success"}
