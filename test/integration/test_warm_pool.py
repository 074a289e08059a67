# SPDX-License-Identifier: Apache-2.0
"""A pool with warm programs, when things go wrong around it: nobody who asks is told of it, and it gets warm again.

Runs through `front()` are warm, or the test fails (resident.py); those through `any_front()` may be either.
"""
import hashlib
import json
import os
import random
import signal
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import oracle
from conftest import Atoll
from resident import GUARD, Pool

quick = pytest.mark.quick
needs_root = pytest.mark.skipif(not oracle.IS_ROOT, reason="needs to be started as root")
WARM = "import os; print(os.path.exists('/proc/self/fd/100'), end='')"


def wait_until(what, seconds=5.0, why="it did not happen"):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, why
        time.sleep(0.01)


def gone(pids):
    table = oracle.parents()
    return not [p for p in pids if p in table and table[p][1] != "Z"]


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass  # gone already


@pytest.fixture
def start(mode, stage, work):
    pools = []

    def begin(*options, **more):
        pools.append(Pool(Atoll(mode, stage), work / f"sock{len(pools)}", *options, **more))
        return pools[-1]

    yield begin
    for pool in pools:
        pool.end()
    if any(pool.popen.returncode == -signal.SIGKILL for pool in pools):
        # Groups that a killed broker could not remove any more go with a later run, once they are old enough.
        time.sleep(0.1)
        for group in oracle.list_empty_cgroups():
            os.utime(group, (time.time() - 60, time.time() - 60))
        assert pools[0].atoll.bash("echo next")["stdout"] == "next\n"


def spares(pool):
    """Programs that wait: Python, below an init of their own."""
    inits = {p for p, (above, _) in oracle.parents().items() if above == pool.pid}
    return [p for p, (above, state) in oracle.parents().items() if above in inits and state != "Z"]


def until_ready(pool, n=1):
    pool.front().until_warm()
    wait_until(lambda: len(spares(pool)) >= n, 10, "no spares")


class Load:
    """Python runs, one after the other in each of some threads, until the end of the block; every result must be right."""

    def __init__(self, front, threads=4):
        self.front, self.stop, self.wrong, self.lines = front, threading.Event(), [], []
        self.threads = [threading.Thread(target=self.work, args=(n,)) for n in range(threads)]

    def work(self, n):
        i = 0
        while not self.stop.is_set():
            i += 1
            code = f"import os, random\nprint({n}, {i}, os.path.exists('/proc/self/fd/100'), hash('x'), random.random())"
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
def test_a_killed_zygote_is_replaced(start):
    pool = start("--spares", "2")
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


@needs_root
def test_zygotes_killed_under_load(start):
    pool = start("--spares", "4")
    until_ready(pool)
    killed = set()
    with Load(pool.any_front()) as load:
        end = time.monotonic() + 3
        while time.monotonic() < end:
            for pid in pool.zygotes() + pool.zygotes("forge"):
                kill(pid)
                killed.add(pid)
            time.sleep(0.25)
    assert load.wrong == [] and len(load.lines) > 20 and len(killed) > 3, load.wrong[:3]
    pool.front().until_warm()


@quick
@needs_root
def test_killed_spares_cost_no_request(start):
    """The program that waits, or its init; while nobody looks, and while requests come."""
    pool = start("--spares", "4")
    until_ready(pool, 2)
    for n, pid in enumerate(spares(pool)):
        kill(pid if n % 2 else oracle.parents().get(pid, (pid,))[0])
    for _ in range(6):
        assert pool.any_front().python("print(1)")["stdout"] == "1\n"
    until_ready(pool)
    rng = random.Random(7)
    killed = 0
    with Load(pool.any_front(), 2) as load:
        end = time.monotonic() + 2
        while time.monotonic() < end:
            waiting = [p for p in spares(pool) if "zygote" in oracle.command_line(p)]
            if waiting:
                before = len(load.lines)
                victim = rng.choice(waiting)
                if victim in spares(pool) and len(load.lines) == before:
                    kill(oracle.parents().get(victim, (0,))[0] or victim) if rng.random() < 0.3 else None
                    killed += 1
            time.sleep(0.05)
    # A victim may have become somebody's run in between: such a run is told that it was killed, and nothing else.
    assert all("137" in str(w) or "killed" in str(w).lower() for w in load.wrong) and len(load.wrong) <= killed / 2, load.wrong[:3]
    until_ready(pool)


@quick
def test_sigterm_leaves_nothing(start):
    pool = start("--spares", "4")
    until_ready(pool, 2)
    for language, code in (("bash", "true"), ("perl", "1;"), ("ruby", "1"), ("php", "<?php"), ("javascript", "1"), ("lua", "x = 1")):
        pool.any_front().run(["run", "-l", language, "-c", code])
    run = pool.front().popen(["run", "-l", "python", "-c", "print('up', flush=True); import time; time.sleep(60)"])
    assert run.stdout.readline() == b"up\n"
    family = pool.below()
    assert len(family) > 4
    assert pool.end() == 0
    wait_until(lambda: gone(family), 2)
    run.communicate(timeout=10)
    assert run.returncode != 0 and not pool.path.exists()


@quick
def test_a_killed_pool_takes_everything_along(start):
    pool = start("--spares", "4")
    until_ready(pool, 2)
    runs = [pool.front().popen(["run", "-l", "python", "-c", "print('up', flush=True); import os, time; os.fork(); time.sleep(60)"])
            for _ in range(3)]
    assert all(run.stdout.readline() == b"up\n" for run in runs)
    family = pool.below()
    assert len(family) > 8 and pool.zygotes()
    assert pool.end(signal.SIGKILL) == -signal.SIGKILL
    wait_until(lambda: gone(family), 2, "something outlives the pool")
    for run in runs:
        out, err = run.communicate(timeout=10)
        assert run.returncode == 125 and b"pool died" in err, err


# ------------------------------------------------------------------------------------ scarcity


@pytest.fixture
def small_pids():
    """A pids group to live in: (prefix that enters it, set_limit)."""
    top = Path("/sys/fs/cgroup/pids")
    if not oracle.IS_ROOT or not top.is_dir():
        pytest.skip("needs root and a pids hierarchy of its own (cgroup v1)")
    own = next(line.split(":", 2)[2] for line in Path("/proc/self/cgroup").read_text().splitlines() if ":pids:" in line)
    group = Path(f"{top}{own}/reef-{os.getpid()}")
    group.mkdir()
    yield (["/bin/sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh"],
           lambda n: (group / "pids.max").write_text(str(n)), lambda: int((group / "pids.current").read_text()))
    wait_until(lambda: (group / "cgroup.procs").read_text() == "", 5)
    for top, dirs, _ in os.walk(group, topdown=False):
        for name in dirs:
            os.rmdir(os.path.join(top, name))
    group.rmdir()


@pytest.mark.modes("root")
def test_a_full_pid_table(small_pids, start):
    """Nothing more can be forked: who asks gets an answer in time, and once there is room everything is as before."""
    prefix, set_limit, current = small_pids
    pool = start("--spares", "4", wrap=prefix)
    until_ready(pool, 2)
    front = pool.any_front()
    set_limit(current())
    answers = []
    for n in range(12):
        done = front.run(["run", "--json", "-l", "python" if n % 2 else "bash", "-c", "print(1)" if n % 2 else "echo 1"], timeout=15)
        result = done.json()
        answers.append(result["status"])
        if result["status"] == "success":
            assert result["stdout"] == "1\n"
        else:
            assert result["cause"]["kind"] in ("internal", "setup") and len(result["cause"]["detail"]) > 20 and done.returncode >= 125, result
    assert set(answers) != {"success"}, "the table was never full"
    assert pool.popen.poll() is None
    set_limit("max")
    wait_until(lambda: front.python("print(1)")["stdout"] == "1\n", 5)
    for _ in range(5):
        assert front.bash("echo 1")["stdout"] == "1\n"
    pool.front().until_warm()


@pytest.mark.modes("root")
def test_a_pid_table_that_is_full_for_moments(small_pids, start):
    prefix, set_limit, current = small_pids
    pool = start("--spares", "4", wrap=prefix)
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


@needs_root
@pytest.mark.modes("root")
def test_memory_bounds_what_is_kept(start):
    """The same demand with much and with little memory."""
    def most(pool):
        peak, peak_kib = 0, 0
        with Load(pool.any_front(), 8):
            end = time.monotonic() + 2
            while time.monotonic() < end:
                time.sleep(0.05)
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            waiting = spares(pool)
            peak, peak_kib = max(peak, len(waiting)), max(peak_kib, private_kib(waiting))
            time.sleep(0.05)
        return peak, peak_kib

    rich, _ = most(start("--spares", "12", "--memory", "1g"))
    poor, poor_kib = most(start("--spares", "12", "--memory", "12m"))
    none, _ = most(start("--spares", "0"))
    assert none == 0 and poor < rich, (none, poor, rich)
    assert poor_kib <= 12 << 10, f"{poor} spares hold {poor_kib} KiB"


# ------------------------------------------------------------------------------------ rotation and rest


@needs_root
@pytest.mark.modes("root")
def test_rotation_under_load(start):
    pool = start("--rotate-forks", "10", "--spares", "4")
    until_ready(pool)
    zygotes = set()
    with Load(pool.any_front()) as load:
        end = time.monotonic() + 4
        while time.monotonic() < end:
            zygotes |= set(pool.zygotes())
            time.sleep(0.02)
    hashes = {line[1] for line in load.lines if line[0] == "True"}
    numbers = [line[2] for line in load.lines]
    assert load.wrong == [] and len(load.lines) > 40, load.wrong[:3]
    assert len(zygotes) >= 3 and len(hashes) >= 3, (zygotes, hashes)
    assert len(set(numbers)) == len(numbers)
    wait_until(lambda: len(pool.zygotes()) <= 4, 10, "the old ones stay")  # one a seat


@needs_root
def test_rotation_by_age(start):
    pool = start("--rotate-seconds", "1", "--spares", "2")
    front = pool.front()
    front.until_warm()
    first = pool.zygotes()

    def replaced():
        front.until_warm()
        return pool.zygotes() and not set(pool.zygotes()) & set(first)

    wait_until(replaced, 10)


@quick
def test_idle_pools_let_go_of_everything(start):
    pool = start("--idle-seconds", "1", "--spares", "2")
    until_ready(pool)
    assert pool.any_front().bash("echo 1")["stdout"] == "1\n"
    wait_until(lambda: not pool.below(), 20, "something stays")
    assert pool.any_front().python("print(1)")["stdout"] == "1\n"
    until_ready(pool)


def test_none_wanted_none_kept(start):
    pool = start()
    time.sleep(0.3)
    assert len(pool.below()) <= 1  # the one sandbox that a broker begins with


# ------------------------------------------------------------------------------------ many


@pytest.mark.modes("root")
def test_two_hundred_at_once(start):
    pool = start()
    until_ready(pool)
    front = pool.any_front()
    code = "import os, sys\nprint(sys.argv[1], os.path.exists('/proc/self/fd/100'))"
    popens = [front.popen(["run", "-l", "python", "-c", code, "--", str(n)], stdin=subprocess.DEVNULL) for n in range(200)]
    outs = [popen.communicate(timeout=60) for popen in popens]
    assert all(out.split()[0] == str(n).encode() and err == b"" for n, (out, err) in enumerate(outs)), [o for o in outs if o[1]][:3]
    assert [popen.returncode for popen in popens] == [0] * 200
    assert sum(b"True" in out for out, _ in outs) > 100
    pool.front().until_warm()


# ------------------------------------------------------------------------------------ same as cold


SAME = ("status", "exit_code", "signal", "stdout", "stderr", "stdout_truncated", "stderr_truncated", "stdout_bytes", "success", "files",
        "files_truncated", "_exit", "error")


def seen(result):
    return {key: result[key] for key in SAME} | {key: result["cause"][key] for key in ("kind", "detail", "limit_key", "limit", "suggest", "retryable")} | {
        "stages": [(s["name"], s["status"], s["exit_code"], s["signal"], s["cause"]["kind"]) for s in result["stages"]],
        "hits": result["usage"]["limit_hits"], "isolation": result["isolation"]}


LIMITS = {
    "timeout": (["--timeout", "300ms"], "print('up', flush=True)\nimport time\ntime.sleep(9)"),
    "timeout busy": (["--timeout", "300ms"], "while True: pass"),
    "cpu-time": (["--cpu-time", "300ms"], "while True: pass"),
    "cpu-time of children": (["--cpu-time", "300ms"], "import os\nos.fork()\nwhile True: pass"),
    "idle": (["--idle-timeout", "300ms"], "print('up', flush=True)\nimport time\ntime.sleep(9)"),
    "memory": (["-m", "64m"], "x = bytearray(200 << 20)\nprint(len(x))"),
    "memory of a child": (["-m", "64m"], "import os\np = os.fork()\nif p == 0:\n    x = bytearray(200 << 20)\n    os._exit(0)\nos.waitpid(p, 0)\nprint('told')"),
    "pids": (["--pids", "8"], "import os\nfor _ in range(20):\n    if os.fork() == 0:\n        import time; time.sleep(5)"),
    "threads": (["--pids", "8"], "import threading, time\nfor _ in range(20): threading.Thread(target=time.sleep, args=(0.1,)).start()"),
    "disk": (["--disk", "4m"], "open('f', 'wb').write(bytes(9 << 20))"),
    "disk, unnoticed": (["--disk", "4m"], "try: open('/tmp/f', 'wb').write(bytes(9 << 20))\nexcept OSError as e: print(e)"),
    "files": (["--files", "50"], "for i in range(99): open(f'/tmp/f{i}', 'w')"),
    "output": (["--output-total", "1m"], "import os\nwhile True: os.write(1, b'x' * 65536)"),
    "output kept": (["--output", "1k"], "print('x' * 5000)"),
    "file size": (["--file-size", "1m"], "open('f', 'wb').write(bytes(9 << 20))"),
    "file size by signal": (["--file-size", "1m"], "import signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_DFL)\nopen('/tmp/f', 'wb').write(bytes(9 << 20))"),
    "open files": (["--open-files", "20"], "held = [open('/dev/null') for _ in range(30)]"),
    "stack": (["--stack", "1m"], "import resource\nprint(resource.getrlimit(resource.RLIMIT_STACK))"),
}


@pytest.mark.parametrize("limit", list(LIMITS))
def test_limits_end_a_warm_program_as_a_cold_one(mode, stage, residents, limit):
    options, code = LIMITS[limit]
    cold = Atoll(mode, stage).python("pass\n" + code, options=options)
    warm = residents.front(mode).python(code, options=options)
    if limit == "output":  # how much of the flood came through is chance
        for result in (cold, warm):
            assert len(result["stdout"]) >= 1 << 20 and result["stdout"].startswith("x" * (1 << 19))
            result["stdout"], result["stdout_bytes"] = "", 0
    assert seen(warm) == seen(cold)
    assert warm["_elapsed"] < 4


PROGRAMS = {
    "arguments": (["-c", "import sys\nprint(sys.argv)", "--", "a", "", "ü b", "-x", "--"], b""),
    "variables": (["--env", "A=1", "--env", "EMPTY=", "--env", "ü=ä b", "-c", "import os\nprint(sorted(os.environ.items()))"], b""),
    "input": (["-c", "import sys\nd = sys.stdin.buffer.read()\nprint(len(d), sum(d))"], bytes(range(256)) * 20000),
    "input unread": (["-c", "print(1)"], bytes(4 << 20)),
    "read-only": (["--read-only", "-c", "open('/tmp/x', 'w').write('1')\ntry: open('/sandbox/x', 'w')\nexcept OSError as e: print(e)"], b""),
    "files": (["--file", "in/data={work}/data", "-c", "import os\nprint(open('in/data').read(), oct(os.stat('in/data').st_mode), sorted(os.listdir('.')))\n"
               "os.makedirs('out/deep'); open('out/deep/f', 'wb').write(bytes(range(256)) * 99); open('in/data', 'a').write('more'); os.chmod('in/data', 0o640)"], b""),
    "a changed program": (["-c", "open('code.py', 'a').write('# more')"], b""),
    "a removed program": (["-c", "import os\nos.unlink('code.py')"], b""),
    "a rewritten program": (["-c", "import os\nt = os.stat('code.py')\ns = open('code.py').read()\nopen('code.py', 'w').write(s.upper())\n"
                             "os.utime('code.py', ns=(t.st_atime_ns, t.st_mtime_ns))\nprint('done')"], b""),
    "a file renamed over": (["-c", "open('new', 'w').write('x')\nimport os\nos.rename('new', 'code.py')"], b""),
    "a link": (["-c", "import os\nos.symlink('/etc/passwd', 'l'); os.mkfifo('p'); os.mkdir('d')"], b""),
    "exit codes": (["-c", "import sys\nsys.exit(77)"], b""),
    "a signal": (["-c", "import os\nos.kill(os.getpid(), 15)"], b""),
    "a segfault": (["-c", "import ctypes\nctypes.string_at(0)"], b""),
    "an exception": (["-c", "def f(): return 1 / 0\nf()"], b""),
    "a syntax error": (["-c", "def f(:\n"], b""),
    "daemons": (["-c", "import os, time\nif os.fork() == 0:\n    os.setsid(); time.sleep(60)\nprint('end')"], b""),
    "binary": (["--output", "16m", "-c", "import sys\nfor i in range(160): sys.stdout.buffer.write(bytes(range(256)) * 256)"], b""),
    "both streams": (["-c", "import os\nfor i in range(500): os.write(1 + i % 2, b'%d\\n' % i)"], b""),
    "network": (["--network", "loopback", "-c", "import socket\ns = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen()\nc = socket.create_connection(s.getsockname())\n"
                 "c.send(b'hi'); print(s.accept()[0].recv(9))"], b""),
    "collect": (["--collect", "*.txt", "-c", "open('a.txt', 'w').write('1'); open('b.bin', 'w').write('2')"], b""),
}


@pytest.mark.parametrize("what", list(PROGRAMS))
def test_programs_do_the_same_warm(mode, stage, residents, work, what):
    """The prefix that tells warm from cold changes the text of the program, so sizes and lines of that are left out."""
    words, given = PROGRAMS[what]
    (work / "data").write_text("given\n")
    (work / "data").chmod(0o644)
    words = [word.replace("{work}", str(work)) for word in words]
    pool = residents.front(mode)
    pool.until_warm()
    results = []
    # Both with the line in front, which a cold program must survive.
    at = words.index("-c") + 1
    line = GUARD.replace("__import__('os')._exit(211)", "True")
    for front in (Atoll(mode, stage), pool):
        text = words[:at] + [(line if front is not pool else "") + words[at]] + words[at + 1:]
        result = front.result(["-l", "python", *text], input=given)
        for file in result["files"]:
            if file["path"] == "code.py":
                file["size"] = file["sha256"] = "the program's"
        for key in ("stdout", "stderr"):
            result[key] = result[key].replace(GUARD, line)
        results.append(seen(result))
    if what == "a rewritten program" and results[1]["files"] == [] != results[0]["files"]:
        pytest.xfail("a file of the caller's whose size and time were put back is told as untouched after a warm run")
    assert results[1] == results[0]


def test_files_come_out(residents, mode, work):
    front = residents.front(mode)
    out = front.mkdir(work / "out")
    data = os.urandom(3 << 20)
    (work / "in").write_bytes(data)
    (work / "in").chmod(0o644)
    result = front.result(["-l", "python", "--file", f"in={work}/in", "--output-dir", out, "-c",
                           "import os\nd = open('in', 'rb').read()\nos.makedirs('a/b'); open('a/b/copy', 'wb').write(d[::-1]); open('empty', 'w')"])
    assert result["status"] == "success", result
    assert (out / "a/b/copy").read_bytes() == data[::-1] and (out / "empty").read_bytes() == b""
    assert {f["path"]: f["sha256"] for f in result["files"]}["a/b/copy"] == hashlib.sha256(data[::-1]).hexdigest()


@quick
def test_conversation(residents, mode):
    """Lines go in and out as they come."""
    popen = residents.front(mode).popen(["run", "-l", "python", "-c", "import sys\nfor line in sys.stdin: print(line[::-1].strip(), flush=True)\nprint('end')"])
    for word in (b"one", b"two", b"three" * 1000):
        popen.stdin.write(word + b"\n")
        popen.stdin.flush()
        assert popen.stdout.readline() == word[::-1] + b"\n"
    assert popen.communicate(timeout=10) == (b"end\n", b"") and popen.returncode == 0


def test_ten_megabytes_through_a_pipe(residents, mode):
    data = os.urandom(10 << 20)
    done = residents.front(mode).run(["run", "-l", "python", "-c", "import sys, shutil\nshutil.copyfileobj(sys.stdin.buffer, sys.stdout.buffer)"], input=data)
    assert done.returncode == 0 and done.stdout == data


@quick
@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_cancelling_a_warm_run(residents, mode, sig):
    tag = f"reef{os.getpid() % 10000:04d}{sig:02d}{time.time_ns() % 10000:04d}"
    popen = residents.front(mode).popen(["run", "-l", "python", "-c", f"import ctypes, os, time\nctypes.CDLL(None).prctl(15, b'{tag}', 0, 0, 0)\n"
                                         "os.fork()\nprint('up', flush=True)\ntime.sleep(60)"])
    assert popen.stdout.readline() == b"up\n"

    def alive():
        found = []
        for pid in oracle.parents():
            try:
                if tag in Path(f"/proc/{pid}/comm").read_text():
                    found.append(pid)
            except OSError:
                pass
        return found

    wait_until(lambda: len(alive()) == 2)
    popen.send_signal(sig)
    popen.communicate(timeout=10)
    assert popen.returncode == (-9 if sig == signal.SIGKILL else 128 + sig)
    wait_until(lambda: not alive(), 1)


def test_many_in_a_row_leave_the_pool_as_it_was(start):
    """Descriptors, processes and memory of the broker after a hundred runs."""
    pool = start("--spares", "2")
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
    wait_until(lambda: len(os.listdir(f"/proc/{pool.pid}/fd")) <= before[0] + 24 and len(pool.below()) <= before[1] + 6, 5)
    assert rss_kib() < before[2] + 2048


def test_results_of_the_library(residents, mode, stage):
    """A caller in its own process, over one handle: two hundred warm requests, each answered with its own result."""
    from conftest import Library
    front = residents.front(mode)
    front.until_warm()
    library = Library(front)
    try:
        warm = 0
        for n in range(200):
            rc, result, problem = library.run({"language": "python", "code": f"{WARM}\nimport sys\nprint({n}, sys.stdin.read())\nsys.exit({n % 256})", "stdin": f"in {n}"})
            assert rc == 0, problem
            assert result["stdout"].endswith(f"{n} in {n}\n") and result["exit_code"] == n % 256, json.dumps(result)
            warm += result["stdout"].startswith("True")
        assert warm > 150, warm
    finally:
        library.close()
