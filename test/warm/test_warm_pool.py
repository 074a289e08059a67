# SPDX-License-Identifier: Apache-2.0
"""A pool with warm programs, when things go wrong around it: no caller notices, and the pool gets warm again.

Runs through `front()` are warm, or the test fails (resident.py); those through `any_front()` may be either.
"""
import os
import random
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import oracle
from program import Atoll
from resident import Pool, end_pools, gone, own, wait_until

quick = pytest.mark.quick
needs_root = pytest.mark.skipif(not oracle.IS_ROOT, reason="needs to be started as root")


IMPORTS = "import os, random\n"  # of the programs of Load: what a program imports chooses its zygote


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass  # gone already


def spares(pool):
    """Programs that wait: Python, below an init of their own."""
    inits = {p for p, (above, _) in oracle.parents().items() if above == pool.pid}
    return [p for p, (above, state) in oracle.parents().items() if above in inits and state != "Z" and oracle.has_own_pids(p)]


def until_ready(pool, n=1):
    pool.front().until_warm(IMPORTS)
    wait_until(lambda: len(spares(pool)) >= n, 25, "no spares")


class Load:
    """Python runs, one after the other in each of some threads, until the end of the block; every result must be right."""

    def __init__(self, front, threads=4):
        self.front, self.stop, self.wrong, self.lines = front, threading.Event(), [], []
        self.threads = [threading.Thread(target=self.work, args=(n,)) for n in range(threads)]

    def work(self, n):
        i = 0
        while not self.stop.is_set():
            i += 1
            code = IMPORTS + f"print({n}, {i}, os.path.exists('/proc/self/fd/100'), hash('x'), random.random())"
            try:
                done = self.front.run(["run", "-l", "python", "-c", code])
            except AssertionError as e:
                self.wrong.append(str(e))
                return
            words = done.out.split()
            if done.returncode != 0 or words[:2] != [str(n), str(i)]:
                self.wrong.append((n, i, repr(done)))
            else:
                self.lines.append(words[2:])

    def hashes(self):
        """One for each zygote that programs came from."""
        return {line[1] for line in list(self.lines) if line[0] == "True"}

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        for thread in self.threads:
            thread.join()


# ------------------------------------------------------------------------------------ deaths


@quick
@needs_root
@pytest.mark.parametrize("where", ("/tmp", "/root"))
def test_wherever_it_is_installed(mode, stage, where):
    """A zygote has a /tmp of its own, and is a user who may not enter /root: it finds its runner all the same."""
    if mode != "root":
        pytest.skip("a zygote of an ordinary user has neither")
    with tempfile.TemporaryDirectory(dir=where) as top:
        data = shutil.copytree(stage.data, Path(top) / "data")
        pool = Pool(Atoll(mode, stage), Path(top) / "pool", "--spares", "2", env={"ATOLL_DATA_DIR": str(data)})
        try:
            pool.front().until_warm()
        finally:
            end_pools([pool])


@quick
@needs_root
def test_zygotes_expect_what_requests_are(own):
    """Children prepare for the variables of a request that says nothing of them; if these were others, all would be slower."""
    pool = own("--spares", "2")
    until_ready(pool)
    code = "import os\nprint('\\n'.join([f'{k}={v}' for k, v in os.environ.items()]))"
    seen = Atoll(pool.atoll.mode, pool.atoll.stage).python(code)["stdout"]
    started = Path(f"/proc/{pool.zygotes()[0]}/environ").read_text().split("\0")
    assert [word for word in started if word.startswith("ATOLL_USUAL=")] == [f"ATOLL_USUAL={seen.rstrip()}"]


@quick
@needs_root
def test_a_killed_zygote_is_replaced(own):
    pool = own("--spares", "2")
    until_ready(pool)
    old = pool.zygotes()
    assert len(old) == 1
    kill(old[0])
    for _ in range(5):
        assert pool.any_front().python("print(1)")["stdout"] == "1\n"
    pool.front().until_warm()
    wait_until(lambda: pool.zygotes() and pool.zygotes() != old)
    for pid in spares(pool):  # children of the dead one may serve; those of the new one must
        kill(pid)
    pool.front().until_warm()


@pytest.mark.modes("rootless")
@pytest.mark.parametrize("victim", ["zygote", "pool"])
def test_killed_while_it_loads(own, victim):
    """What modules write when they are loaded an ordinary user's zygote has on the host: it is gone however that ends."""
    pool = own("--spares", "2")
    words = ["run", "-l", "python", "-c", "import json"]
    run = pool.any_front().popen(words)
    seen = {}

    def loads():
        nonlocal run
        seen.update((word, pid) for pid in pool.below() for word in oracle.command_line(pid).split()
                    if word.startswith("/tmp/atoll-") and os.path.isdir(word))
        if not seen and run.poll() is not None:  # it had loaded before we looked: another one
            run.communicate(timeout=25)
            for pid in pool.zygotes():
                kill(pid)
            run = pool.any_front().popen(words)
        return seen

    wait_until(loads, 25, "no zygote was seen loading")
    (place, remover), = seen.items()
    if victim == "pool":
        pool.end(signal.SIGKILL)
    else:
        zygote = oracle.parents().get(remover)
        if zygote:  # else it has loaded all by now, and there is nothing left already
            kill(zygote[0])
    wait_until(lambda: not os.path.exists(place), 25, f"{place} stays")
    run.communicate(timeout=25)


@needs_root
def test_zygotes_killed_under_load(own):
    pool = own("--spares", "4")
    until_ready(pool)
    killed = set()
    with Load(pool.any_front()) as load:
        begin = time.monotonic()
        while time.monotonic() < begin + (1 if len(load.lines) > 20 and len(killed) > 3 else 40):
            for pid in pool.zygotes() + pool.zygotes("atoll-bare"):
                kill(pid)
                killed.add(pid)
            time.sleep(0.25)
    assert load.wrong == [] and len(load.lines) > 20 and len(killed) > 3, load.wrong[:3]
    pool.front().until_warm()


@needs_root
def test_killed_spares_cost_no_request(own):
    """The program that waits, or its init; between requests, and while requests come."""
    pool = own("--spares", "4")
    until_ready(pool, 2)
    for n, pid in enumerate(spares(pool)):
        kill(pid if n % 2 else oracle.parents().get(pid, (pid,))[0])
    for _ in range(6):
        assert pool.any_front().python("print(1)")["stdout"] == "1\n"
    until_ready(pool)
    rng = random.Random(7)
    killed = 0
    with Load(pool.any_front(), 2) as load:
        begin = time.monotonic()
        while time.monotonic() < begin + (1 if killed >= 8 else 40):
            waiting = [p for p in spares(pool) if "zygote" in oracle.command_line(p)]
            if waiting:
                before = len(load.lines)
                victim = rng.choice(waiting)
                if victim in spares(pool) and len(load.lines) == before:
                    kill(oracle.parents().get(victim, (0,))[0] or victim) if rng.random() < 0.3 else None
                    killed += 1
            time.sleep(0.05)
    # A victim may have become a caller's run in between: such a run is told that it was killed or interrupted, and nothing else.
    told = [w for w in load.wrong if any(word in str(w) for word in ("137", "killed", "interrupted"))]
    assert told == load.wrong and len(told) <= max(killed / 2, 4), load.wrong[:3]
    until_ready(pool)


@quick
def test_sigterm_leaves_nothing(own):
    pool = own("--spares", "4")
    until_ready(pool, 2)
    for language, code in (("bash", "true"), ("perl", "1;"), ("ruby", "1"), ("php", "<?php"), ("javascript", "1"), ("lua", "x = 1")):
        pool.any_front().run(["run", "-l", language, "-c", code])
    run = pool.front().popen(["run", "-l", "python", "-c", "print('up', flush=True); import time; time.sleep(60)"])
    assert run.stdout.readline() == b"up\n"
    family = pool.below()
    assert len(family) > 4
    assert pool.end() == 0
    wait_until(lambda: gone(family), 10)
    run.communicate(timeout=25)
    assert run.returncode != 0 and not pool.path.exists()


@quick
def test_a_killed_pool_takes_everything_along(own):
    pool = own("--spares", "4")
    until_ready(pool, 2)
    runs = [pool.front().popen(["run", "-l", "python", "-c", "print('up', flush=True); import os, time; os.fork(); time.sleep(60)"])
            for _ in range(3)]
    assert all(run.stdout.readline() == b"up\n" for run in runs)
    family = pool.below()
    assert len(family) > 8 and pool.zygotes()
    assert pool.end(signal.SIGKILL) == -signal.SIGKILL
    wait_until(lambda: gone(family), 10, "something outlives the pool")
    for run in runs:
        out, err = run.communicate(timeout=25)
        assert run.returncode == 125 and b"pool died" in err, err


# ------------------------------------------------------------------------------------ scarcity


@pytest.fixture
def small_pids():
    """A pids group to live in: (prefix that enters it, set_limit)."""
    top = Path("/sys/fs/cgroup/pids")
    if not oracle.IS_ROOT or not top.is_dir():
        pytest.skip("needs root and a pids hierarchy of its own (cgroup v1)")
    own = next(line.split(":", 2)[2] for line in Path("/proc/self/cgroup").read_text().splitlines() if ":pids:" in line)
    group = Path(f"{top}{own}/tests-{os.getpid()}")
    group.mkdir()
    yield (["/bin/sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh"],
           lambda n: (group / "pids.max").write_text(str(n)), lambda: int((group / "pids.current").read_text()))
    wait_until(lambda: (group / "cgroup.procs").read_text() == "", 25)
    for top, dirs, _ in os.walk(group, topdown=False):
        for name in dirs:
            os.rmdir(os.path.join(top, name))
    group.rmdir()


@pytest.mark.modes("root")
def test_a_full_pid_table(small_pids, own):
    """Nothing more can be forked: who asks gets an answer in time, and once there is room everything is as before."""
    prefix, set_limit, current = small_pids
    pool = own("--spares", "4", wrap=prefix)
    until_ready(pool, 2)
    front = pool.any_front()
    set_limit(current())
    answers = []
    for n in range(12):
        done = front.run(["run", "--json", "-l", "python" if n % 2 else "bash", "-c", "print(1)" if n % 2 else "echo 1"], timeout=45)
        result = done.json()
        answers.append(result["status"])
        if result["status"] == "success":
            assert result["stdout"] == "1\n"
        else:
            assert result["cause"]["kind"] in ("internal", "setup") and len(result["cause"]["detail"]) > 20 and done.returncode >= 125, result
    assert set(answers) != {"success"}, "the table was never full"
    assert pool.popen.poll() is None
    set_limit("max")
    wait_until(lambda: front.python("print(1)")["stdout"] == "1\n", 25)
    for _ in range(5):
        assert front.bash("echo 1")["stdout"] == "1\n"
    pool.front().until_warm()


@pytest.mark.modes("root")
def test_a_pid_table_that_is_full_for_moments(small_pids, own):
    prefix, set_limit, current = small_pids
    pool = own("--spares", "4", wrap=prefix)
    until_ready(pool, 2)
    stop = threading.Event()

    def squeeze():
        while not stop.is_set():
            set_limit(max(current() - 1, 1))
            time.sleep(0.05)
            set_limit("max")
            time.sleep(0.1)

    squeezer = threading.Thread(target=squeeze)
    squeezer.start()
    try:
        statuses = {pool.any_front().python("print(1)")["status"] for _ in range(40)}
    finally:
        stop.set()
        squeezer.join()
        set_limit("max")
    assert statuses <= {"success", "internal_error", "error"} and pool.popen.poll() is None, statuses
    pool.front().until_warm()


def private_kib(pids):
    total = 0
    for pid in pids:
        try:
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Private_Dirty"):
                    total += int(line.split()[1])
        except OSError:
            pass
    return total


@pytest.mark.undisturbed
@needs_root
@pytest.mark.modes("root")
def test_memory_bounds_what_is_kept(own):
    """The same demand with much and with little memory."""
    def most(pool):
        peak, peak_kib = 0, 0
        with Load(pool.any_front(), 8):
            time.sleep(0.6)
        end = time.monotonic() + 0.6
        while time.monotonic() < end:
            waiting = spares(pool)
            peak, peak_kib = max(peak, len(waiting)), max(peak_kib, private_kib(waiting))
            time.sleep(0.05)
        return peak, peak_kib

    rich, _ = most(own("--spares", "12", "--memory", "1g"))
    poor, poor_kib = most(own("--spares", "12", "--memory", "12m"))
    none, _ = most(own("--spares", "0"))
    assert none == 0 and poor < rich, (none, poor, rich)
    assert poor_kib <= 12 << 10, f"{poor} spares hold {poor_kib} KiB"


# ------------------------------------------------------------------------------------ rotation and rest


@needs_root
@pytest.mark.modes("root")
def test_rotation_under_load(own):
    pool = own("--rotate-forks", "10", "--spares", "4")
    until_ready(pool)
    zygotes = set()
    with Load(pool.any_front()) as load:
        end = time.monotonic() + 60
        while (len(zygotes) < 3 or len(load.hashes()) < 3 or len(load.lines) <= 40) and time.monotonic() < end:
            zygotes |= set(pool.zygotes())
            time.sleep(0.02)
    hashes = load.hashes()
    numbers = [line[2] for line in load.lines]
    assert load.wrong == [] and len(load.lines) > 40, load.wrong[:3]
    assert len(zygotes) >= 3 and len(hashes) >= 3, (zygotes, hashes)
    assert len(set(numbers)) == len(numbers)
    wait_until(lambda: len(pool.zygotes()) <= 4, 25, "the old ones stay")  # one a seat


def test_programs_that_import_nothing_have_a_small_zygote(own):
    """Its programs have nothing loaded that they did not ask for; others get a zygote with more."""
    front = own("--spares", "2").front()
    maps = "print('_json' in open('/proc/self/maps').read())"
    assert front.python(maps)["stdout"] == "False\n"
    (light,) = front.pool.zygotes()
    assert front.python("import json\n" + maps)["stdout"] == "True\n"
    (stock,) = set(front.pool.zygotes()) - {light}
    assert " itertools " in oracle.command_line(light) and " itertools " not in oracle.command_line(stock)


def huge_kib(pid):
    return sum(int(line.split()[1]) for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines() if line.startswith("AnonHugePages"))


@needs_root
def test_zygotes_lie_in_huge_pages(own):
    """And what their programs write to is copied in small pages: a spare does not grow."""
    switch = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if not switch.exists() or "[never]" in switch.read_text():
        pytest.skip("this kernel makes no huge pages")
    pool = own("--spares", "2")
    until_ready(pool, 2)
    assert all(huge_kib(pid) >= 4096 for pid in pool.zygotes())
    assert all(private_kib([pid]) < 2048 for pid in spares(pool))


@needs_root
def test_rotation_by_age(own):
    pool = own("--rotate-seconds", "1", "--spares", "2")
    front = pool.front()
    front.until_warm()
    first = pool.zygotes()

    def replaced():
        front.until_warm()
        return pool.zygotes() and not set(pool.zygotes()) & set(first)

    wait_until(replaced, 25)


def test_idle_pools_let_go_of_everything(own):
    pool = own("--idle-seconds", "1", "--spares", "2")
    until_ready(pool)
    assert pool.any_front().bash("echo 1")["stdout"] == "1\n"
    wait_until(lambda: not pool.below(), 60, "something stays")
    assert pool.any_front().python("print(1)")["stdout"] == "1\n"
    until_ready(pool)


def test_none_wanted_none_kept(own):
    pool = own()
    time.sleep(0.3)
    assert len(pool.below()) <= 1  # the one sandbox that a broker begins with


# ------------------------------------------------------------------------------------ many


@pytest.mark.modes("root")
def test_a_group_is_used_again_without_its_past(own):
    """What one tenant burnt is not the next one's, who has its group: neither in the account nor against the limit."""
    front = own("--spares", "2").any_front()
    burn = "import time\nend = time.process_time() + 0.7\nwhile time.process_time() < end: pass\nprint(1)"
    for _ in range(2):
        assert front.result(["-l", "python", "-c", burn])["cpu_time"] > 0.6
        # Cold, and in a sandbox that was not made ahead: it has a terminal.
        after = front.result(["-l", "python", "--tty", "--cpu-time", "600ms", "-c", "print(1)"])
        assert after["status"] == "success" and after["cpu_time"] < 0.5, after


@pytest.mark.modes("root")
def test_two_hundred_at_once(own):
    """All have their own output. How many of them are warm depends on how much of the processors others leave to the pool."""
    pool = own()
    until_ready(pool)
    front = pool.any_front()
    code = "import os, sys\nprint(sys.argv[1], os.path.exists('/proc/self/fd/100'))"
    popens = [front.popen(["run", "-l", "python", "-c", code, "--", str(n)], stdin=subprocess.DEVNULL) for n in range(200)]
    outs = [popen.communicate(timeout=120) for popen in popens]
    assert all(out.split()[0] == str(n).encode() and err == b"" for n, (out, err) in enumerate(outs)), [o for o in outs if o[1]][:3]
    assert [popen.returncode for popen in popens] == [0] * 200
    assert any(b"True" in out for out, _ in outs)
    pool.front().until_warm()


def test_many_in_a_row_leave_the_pool_as_it_was(own):
    """Descriptors, processes and memory of the broker after a hundred runs."""
    pool = own("--spares", "2")
    until_ready(pool)

    def rss_kib():
        return int(next(line for line in Path(f"/proc/{pool.pid}/status").read_text().splitlines() if line.startswith("VmRSS")).split()[1])

    front = pool.front()
    for n in range(20):
        front.run(["run", "-l", "python", "-c", f"print({n})"])
    time.sleep(0.5)
    before = len(os.listdir(f"/proc/{pool.pid}/fd")), len(pool.below()), rss_kib()
    with ThreadPoolExecutor(2) as two:
        assert all(two.map(lambda n: front.run(["run", "-l", "python", "-c", f"print({n})"]).out == f"{n}\n", range(100)))
    wait_until(lambda: len(os.listdir(f"/proc/{pool.pid}/fd")) <= before[0] + 24 and len(pool.below()) <= before[1] + 6, 25)
    assert rss_kib() < before[2] + 2048
