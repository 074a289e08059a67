# SPDX-License-Identifier: Apache-2.0
"""Crash-only: the promises of the daemon hold when one of its processes dies, its memory ends or its clock jumps.

Names carry the ids of the threat catalogue (C01 to C12). test/lib/chaos.py has the load and the promises; test_crash_disk.py has the disk.
"""
import contextlib
import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

import chaos
import oracle
from chaos import (GOOD, TARGETS, Ledger, Load, Survivor, check_database, check_deaths, check_keys, check_results, check_state, in_background,
                   start)  # noqa: F401, a fixture
from resident import wait_until
from web import problem

KILLS = {"root": 12, "rootless": 6}


def quiet_groups(before):
    """Groups without a process or a keeper. A killed broker cannot remove its groups; the next broker does, once they are old."""
    return {g for g in oracle.list_empty_cgroups() - before if os.path.exists(g)}


# ------------------------------------------------------------------------------------------- kills


def kill_many(survivor, ledger, n):
    """Each target gets its turn, in any order."""
    order = [TARGETS[i % len(TARGETS)] for i in range(n)]
    random.shuffle(order)
    for target in order:
        # One that would outlive them if they let it.
        mark = survivor.sleeper(ledger) if target in ("monitor", "front", "broker") else None
        time.sleep(random.uniform(0, 0.5))
        survivor.kill(target, mark)
        time.sleep(random.uniform(0, 0.3))


def test_C01_C02_C05_kills_under_load(start, mode, work):
    mounts, groups, sockets = oracle.list_mounts(), oracle.list_empty_cgroups(), oracle.list_sockets()
    survivor, ledger = start("--running", "4"), Ledger()
    load = Load(survivor, ledger, GOOD)
    try:
        time.sleep(0.5)
        kill_many(survivor, ledger, KILLS[mode])
    finally:
        load.stop()
    check_deaths(survivor)
    results, disturbed = check_results(survivor, ledger)
    assert len(results) > 3 * KILLS[mode] and disturbed < len(results) * 2 / 3, (len(results), disturbed)
    check_keys(survivor, ledger)
    # Nothing is left of the dead, while the living one is idle and goes on.
    wait_until(lambda: not quiet_groups(groups), 30.0, "groups of dead brokers stay")
    assert oracle.list_mounts() == mounts
    assert survivor.end() == 0
    assert oracle.list_sockets() <= sockets and not survivor.daemon.socket.exists()
    rows = check_database(survivor.state)
    check_state(survivor.state, rows)
    assert set(results) <= set(rows) and not {"queued", "running", "internal_error"} & set(rows.values()), rows
    assert {id: r["status"] for id, r in results.items()} == {id: rows[id] for id in results}


def test_C01_everybody_at_once(start, work):
    """As when the machine's memory runs out: monitor, broker and front in one instant."""
    survivor, ledger = start("--running", "4"), Ledger()
    load = Load(survivor, ledger, GOOD, workers=2)
    try:
        for _ in range(2):
            mark = survivor.sleeper(ledger)
            family = survivor.daemon.processes()
            survivor.faults.append((time.time(), "all"))
            for pid in (survivor.daemon.pid, survivor.daemon.child("broker"), survivor.daemon.child("front")):
                os.kill(pid, signal.SIGKILL)
            chaos.wait_until(lambda: not survivor.strays() and not chaos.who_runs(mark), chaos.ORPHANS_MAX_S,
                             lambda: f"left: {chaos.describe(survivor.strays() | family)}")
            assert survivor.end() == -signal.SIGKILL
            check_database(survivor.state)
            survivor.start()
    finally:
        load.stop()
    check_results(survivor, ledger)
    check_keys(survivor, ledger)


@pytest.mark.modes("rootless")
def test_the_watch_itself(start):
    """An orphan is seen; what should be there is not taken for one."""
    survivor = start()
    # Once the daemon is ready, a process without a parent makes its kits, once: that process ends by itself, and no other comes.
    chaos.wait_until(lambda: not survivor.strays(), chaos.ORPHANS_MAX_S, lambda: f"no orphans: {chaos.describe(survivor.strays())}")
    subprocess.run(["/bin/sh", "-c", "sleep 60 & sleep 60 & true"], check=True)
    seen = survivor.strays()
    assert len(seen) == 2, chaos.describe(seen)
    for pid in seen:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not survivor.strays(), 25, "they are seen for ever")
    assert len(survivor.daemon.processes()) > 2


@pytest.mark.modes("root")
def test_C01_background_work_dies_in_time(start, work):
    """What makes kits behind the daemon has little of the processors, but enough to die: with a nice value of 19 and 24 busy
    neighbours it took 4 seconds, with 10 a third of one."""
    (work / "kits").mkdir()
    survivor = start(env={"ATOLL_KIT_DIR": str(work / "kits")})
    seen = set()

    def niceness():
        for pid in survivor.strays():
            with contextlib.suppress(ProcessLookupError):
                seen.add(os.getpriority(os.PRIO_PROCESS, pid))
        return seen - {0}

    wait_until(niceness, 30, "nothing makes kits")
    assert max(seen) <= 10, seen
    survivor.kill("monitor")


@pytest.mark.modes("root")
def test_C05_durable_before_acknowledged(start):
    """The instant after a 202, the instant after a result: both are there for ever."""
    survivor = start("--running", "2")
    for i in range(4):
        id = survivor.web.submit("bash", f"sleep 30.{i}", limits={"timeout": 60}, headers={"Idempotency-Key": f"k{i}"})
        n = len(survivor.daemon.records)
        os.kill(survivor.daemon.child("front"), signal.SIGKILL)
        survivor.daemon.wait_record("a process died and is started again", n, process="front")
        survivor.wait_ready()
        state = survivor.web.state(id)  # it had begun, or begins now
        if state["status"] in ("queued", "running"):
            assert survivor.web.delete(f"/v1/executions/{id}").status < 300
        assert survivor.web.wait(id)["status"] in ("interrupted", "cancelled")
        again = survivor.web.post("/v1/executions", {"language": "bash", "code": f"sleep 30.{i}", "limits": {"timeout": 60}},
                              headers={"Idempotency-Key": f"k{i}"})
        assert again.status == 202 and again.json()["id"] == id
    result = survivor.web.execute("bash", "echo kept")
    os.kill(survivor.daemon.pid, signal.SIGKILL)
    survivor.end()
    survivor.start()
    assert survivor.web.state(result["id"])["stdout"] == "kept\n"
    assert survivor.end() == 0
    assert check_database(survivor.state)[result["id"]] == "success"
    survivor.start()
    assert survivor.web.state(result["id"]) == result


# -------------------------------------------------------------------------------------------- C04


@pytest.mark.modes("root")
def test_C04_others_are_left_alone(start, atoll, work):
    """A second daemon on a state directory is refused; one with its own neither disturbs the first by dying nor by coming."""
    first = start()
    second = start(place=atoll.mkdir(work / "second"))
    id = first.web.submit("bash", "for i in 1 2 3 4 5 6 7 8; do sleep 0.5; echo $i; done")
    first.web.wait(id, "running")
    done = atoll.run(["serve", "--state-dir", first.state, "--socket", work / "o.sock", "--listen", "127.0.0.1:0"])
    assert done.returncode == 125 and "is in use by another daemon" in done.err, done
    lock = (first.state / "lock").read_text()
    ledger = Ledger()
    for target in ("broker", "monitor"):
        second.kill(target, second.sleeper(ledger))
    assert first.web.wait(id)["stdout"] == "1\n2\n3\n4\n5\n6\n7\n8\n"
    assert first.web.execute("python", "print(1)")["stdout"] == "1\n"
    assert (first.state / "lock").read_text() == lock and first.daemon.brokers() == 1
    check_results(second, ledger)


# -------------------------------------------------------------------------------------------- C06


def test_C06_drain(start):
    """What runs ends with its result, also for who waits; what is queued waits for the next process; nothing new."""
    survivor = start("--running", "2", "--drain", "40s")
    web, nap = survivor.web, f"60.{random.randrange(10**9):09d}"
    with in_background(lambda: web.execute("bash", f"echo begun; sleep {nap}; echo ended", limits={"timeout": 90})) as waited:
        wait_until(lambda: web.get("/v1/stats").json()["now"]["running"] == 1, 25, "it does not begin")
        job = web.submit("bash", f"sleep {nap}; echo job", limits={"timeout": 90})
        wait_until(lambda: len(chaos.who_runs(nap)) == 2, 25, "they do not begin")
        queued = [web.submit("bash", f"echo queued {i}") for i in range(3)]
        assert {web.state(id)["status"] for id in queued} == {"queued"}
        idle, asked = web.connect(), web.connect()
        os.kill(survivor.daemon.pid, signal.SIGTERM)
        survivor.daemon.wait_record("draining")
        # The monitor says so before the front has heard of it, which then closes what is idle.
        with contextlib.suppress(*chaos.LOST):
            wait_until(lambda: web.get("/readyz", keep=asked).status == 503, 25, "the front is not told")
        # No new work, by any way in: an old connection is told, a new one is told or refused.
        for connection in (idle, None):
            with contextlib.suppress(*chaos.LOST):
                answer = web.post("/v1/executions", {"language": "bash", "code": "echo new"}, keep=connection)
                problem(answer, 503, "draining")
                assert int(answer.headers["retry-after"]) > 0
        idle.close()
        asked.close()
        time.sleep(0.5)
        assert survivor.daemon.popen.poll() is None and len(chaos.who_runs(nap)) == 2, "it does not wait for them"
        begin = time.monotonic()
        oracle.wake(nap)
        assert survivor.daemon.popen.wait(60) == 0
        assert time.monotonic() - begin < 25, "it waits for more"
        assert waited()["stdout"] == "begun\nended\n"
    survivor.end()
    rows = check_database(survivor.state)
    assert rows[job] == "success" and [rows[id] for id in queued] == ["queued"] * 3, rows
    assert set(rows.values()) == {"success", "queued"}
    survivor.start()
    assert [survivor.web.wait(id)["stdout"] for id in queued] == [f"queued {i}\n" for i in range(3)]


def test_C06_drain_deadline(start):
    """Who does not end in time is ended: interrupted, with what it printed."""
    survivor = start("--drain", "500ms")
    id = survivor.web.submit("bash", "echo begun; sleep 60.25")
    wait_until(lambda: chaos.who_runs("60.25"), 25, "it does not begin")
    with in_background(lambda: survivor.web.execute("bash", "echo waited; sleep 60.75")) as waited:
        wait_until(lambda: chaos.who_runs("60.75"), 25, "it does not begin")
        begin = time.monotonic()
        assert survivor.end() == 0
        assert 0.4 < time.monotonic() - begin < 30
        result = waited()
    assert (result["status"], result["stdout"]) == ("interrupted", "waited\n")
    assert not chaos.who_runs("60.25") and not chaos.who_runs("60.75")
    assert check_database(survivor.state) == {id: "interrupted", result["id"]: "interrupted"}
    survivor.start()
    state = survivor.web.state(id)
    assert state["stdout"] == "begun\n" and state["cause"]["kind"] == "interrupted"


# -------------------------------------------------------------------------------------- C10 and C12


@contextlib.contextmanager
def memory_group(limit_bytes):
    """A group of our own, as a service manager would put the front in; None where it cannot be made."""
    for top, file in ((Path("/sys/fs/cgroup/memory" + oracle.OURS), "memory.limit_in_bytes"),
                      (Path("/sys/fs/cgroup"), "memory.max")):
        group = top / f"tests-front-{os.getpid()}"
        with contextlib.suppress(OSError):
            group.mkdir()
            if (group / file).exists():
                (group / file).write_text(str(limit_bytes))
                break
            group.rmdir()
    else:
        pytest.skip("no memory group can be made here")
    try:
        yield group
    finally:
        chaos.wait_until(lambda: not (group / "cgroup.procs").read_text(), 60, "a process lives in it")
        group.rmdir()


@pytest.mark.modes("root")
def test_C10_front_out_of_memory(start):
    """The kernel kills a front that exceeds its own limit; another takes over."""
    survivor = start("--running", "1")
    web = survivor.web
    running = web.submit("bash", "sleep 60.125", headers={"Idempotency-Key": "k"})
    wait_until(lambda: chaos.who_runs("60.125"), 25, "it does not begin")
    queued = web.submit("bash", "echo queued")
    front = survivor.daemon.child("front")
    with memory_group(24 << 20) as group:
        (group / "cgroup.procs").write_text(str(front))
        n = len(survivor.daemon.records)
        body = b'{"language": "bash", "code": "true", "stdin": "' + b"x" * (60 << 20) + b'"}'
        with contextlib.suppress(*chaos.LOST):
            web.post("/v1/execute", body, headers={"Content-Type": "application/json"})
        record = survivor.daemon.wait_record("a process died and is started again", n, timeout=30, process="front")
        assert record["how"] == "signal 9 (Killed)" and record["pid"] == front
        chaos.wait_until(lambda: not chaos.who_runs("60.125"), chaos.ORPHANS_MAX_S, "it outlived its front")
        survivor.wait_ready()
    assert web.wait(running)["status"] == "interrupted"
    assert web.wait(queued)["stdout"] == "queued\n"
    again = web.post("/v1/executions", {"language": "bash", "code": "sleep 60.125"}, headers={"Idempotency-Key": "k"})
    assert again.status == 202 and again.json()["id"] == running
    assert survivor.daemon.brokers() == 1


CLOCK = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static volatile const long *jump;
__attribute__((constructor)) static void begin(void)
{
	int fd = open(JUMP, O_RDONLY | O_CLOEXEC);
	jump = mmap(0, sizeof(long), PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
}
int clock_gettime(clockid_t clock, struct timespec *t)
{
	long r = syscall(SYS_clock_gettime, clock, t);
	if (r == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) t->tv_sec += *jump;
	return (int)r;
}
int gettimeofday(struct timeval *t, void *zone)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	*t = (struct timeval){ now.tv_sec, now.tv_nsec / 1000 };
	return 0;
}
time_t time(time_t *t)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return t ? (*t = now.tv_sec) : now.tv_sec;
}
"""

LAUNCH = r"""
#include <unistd.h>
#include <stdlib.h>
int main(void)
{
	char *argv[] = { "atolld", NULL };
	setenv("LD_PRELOAD", SHIM, 1);
	execv(REAL, argv);
	return 127;
}
"""


@pytest.mark.modes("root")
def test_C12_clock_jumps(start, atoll, work, stage, compile_c):
    """The front's clock jumps a day ahead and two back while things run: deadlines, durations and keys do not care."""
    place, data = work / "bin", work / "data"
    place.mkdir(mode=0o755)
    shutil.copytree(stage.data, data)  # of all that is ours the front sees its state and its data
    jump, real, shim = data / "jump", data / "atolld", data / "clock.so"
    jump.write_bytes(bytes(8))
    shutil.copy(stage.bin / "atolld", real)
    shutil.copy(compile_c(CLOCK, "clock.so", static=False, flags=["-shared", "-fPIC", f'-DJUMP="{jump}"']), shim)
    for path in (work, data, jump):
        path.chmod(0o755)
    launcher = compile_c(LAUNCH, "launcher", flags=[f'-DSHIM="{shim}"', f'-DREAL="{real}"'])
    (place / "atolld").write_bytes(launcher.read_bytes())
    (place / "atolld").chmod(0o755)
    (place / "atoll").write_bytes(stage.binary.read_bytes())
    (place / "atoll").chmod(0o755)

    def set_clock(seconds):
        with open(jump, "r+b") as f:
            f.write(seconds.to_bytes(8, "little", signed=True))

    other = atoll.variant(env={"ATOLL_DATA_DIR": str(data)})
    other.binary = place / "atoll"
    other.variant = lambda wrap=(), env=None: other
    survivor = Survivor(other, work, "--running", "4")
    try:
        day = 86400
        first = survivor.web.submit("bash", "echo first", headers={"Idempotency-Key": "first"})
        survivor.web.wait(first)
        kept = survivor.web.state(first)
        ends = []
        for seconds in (day, -day):
            long = survivor.web.submit("bash", "sleep 3; echo long", limits={"timeout": 25})
            late = survivor.web.submit("bash", "sleep 60", limits={"timeout": 4})
            for id in (long, late):  # they may have ended, where a machine stalls for long
                survivor.web.wait(id, "running", "success", "timeout")
            set_clock(seconds)
            with in_background(lambda: survivor.web.execute("python", "print('waited')")) as waited:
                assert waited()["stdout"] == "waited\n"
            end = survivor.web.wait(long)
            assert (end["status"], end["stdout"]) == ("success", "long\n") and 2.9 < end["duration"] < 20, end
            end = survivor.web.wait(late)
            assert end["status"] == "timeout" and 3.9 < end["duration"] < 20, end
            ends += [long, late]
            said = survivor.web.execute("bash", "true")["created_at"]
            assert abs(chaos.seconds_of(said) - time.time() - seconds) < 60, "the clock did not jump"
            again = survivor.web.post("/v1/executions", {"language": "bash", "code": "echo first"},
                                  headers={"Idempotency-Key": "first"})
            assert again.status == 202 and again.json()["id"] == first
        assert survivor.web.state(first) == kept and survivor.daemon.brokers() == 1
        assert {survivor.web.state(id)["status"] for id in ends} == {"success", "timeout"}
    finally:
        assert survivor.end() == 0
    check_database(survivor.state)
