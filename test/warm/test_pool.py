# SPDX-License-Identifier: Apache-2.0
"""`atoll pool`: one broker for many callers, and what becomes of them when it or one of them goes."""
import json
import os
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import oracle
from library import Library
from oracle import IS_ROOT, NOBODY, below, parents
from program import Atoll
from resident import Pool, end_pools, wait_until

quick = pytest.mark.quick


def runs_below(pid, word):
    """Whether a program with this word on its command line runs below pid."""
    for child in below(pid):
        try:
            if word.encode() in Path(f"/proc/{child}/cmdline").read_bytes():
                return True
        except OSError:
            pass
    return False


def fds(pool):
    return len(os.listdir(f"/proc/{pool.pid}/fd"))


@pytest.fixture
def start(work):
    pools = []

    def begin(atoll, *options):
        pools.append(Pool(atoll, work / "run" / "pool.sock", *options))
        return pools[-1]

    yield begin
    end_pools(pools)


@pytest.fixture
def pool(atoll, start):
    return start(atoll)


def sleeper(front, seconds, word="done"):
    """A run that is busy for a while, and what it is known by."""
    mark = f"{seconds + time.monotonic_ns() % 10**8 / 10**9:.9f}"
    popen = front.popen(["run", "-l", "bash", "-c", f"sleep {mark}; echo {word}"], stdin=subprocess.DEVNULL)
    return popen, mark


def wakes(popen, mark):
    """What a sleeper says that is woken."""
    oracle.wake(mark)
    return popen.communicate(timeout=25)


# ------------------------------------------------------------------------------------ the command


@pytest.mark.modes("root")
@pytest.mark.parametrize("words", [["--spares", "-1"], ["--spares", "many"], ["--memory", "lots"], ["--memory", "0"],
                                   ["--socket", "/proc/nowhere/at/all.sock"], ["--socket", "/tmp/" + "x" * 120]])
def test_what_it_refuses(atoll, words):
    done = atoll.run(["pool", *words])
    assert done.returncode == 125 and done.out == ""
    assert done.err.startswith("atoll: ") and done.err.count("\n") == 1


@quick
def test_its_files(pool):
    assert stat.S_IMODE(pool.path.parent.stat().st_mode) == 0o700
    assert stat.S_ISSOCK(pool.path.stat().st_mode)
    assert stat.S_IMODE(pool.path.stat().st_mode) == 0o600
    assert pool.end() == 0
    assert not pool.path.parent.exists()


def test_a_directory_that_was_there_stays(atoll, start, work):
    atoll.mkdir(work / "run")
    pool = start(atoll)
    assert pool.end() == 0
    assert os.listdir(work / "run") == []


@pytest.mark.modes("rootless")
def test_the_usual_place_of_a_user(atoll, work):
    """Found by both without a word."""
    here = atoll.variant(env={"XDG_RUNTIME_DIR": str(work), "ATOLL_POOL": None})
    popen = here.popen(["pool"], stdin=subprocess.DEVNULL, stdout=None)
    try:
        assert popen.stderr.readline().decode() == f"atoll pool: ready on {work}/atoll/pool.sock\n"
        run, mark = sleeper(here, 25)
        wait_until(lambda: runs_below(popen.pid, mark))
        assert wakes(run, mark) == (b"done\n", b"")
    finally:
        popen.terminate()
        assert popen.wait(25) == 0
        popen.stderr.close()
    done = atoll.run(["pool"], env={"XDG_RUNTIME_DIR": None})
    assert done.returncode == 125 and "XDG_RUNTIME_DIR" in done.err


@quick
@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.modes("root")
def test_signals_end_it_and_what_runs(pool, sig):
    popen, mark = sleeper(pool.any_front(), 30)
    wait_until(lambda: runs_below(pool.pid, mark))
    assert pool.end(sig) == 0
    out, err = popen.communicate(timeout=25)
    assert popen.returncode != 0 and out == b""
    assert not pool.path.parent.exists()


def test_a_second_one_is_refused(pool):
    second = pool.atoll.run(["pool", "--socket", pool.path])
    assert second.returncode == 125
    assert second.err == (f"atoll: a pool runs on '{pool.path}' already; end it first, or give this one another "
                          "socket\n")
    assert pool.any_front().bash("echo still")["stdout"] == "still\n"


def test_a_dead_ones_socket_is_replaced(atoll, start):
    first = start(atoll)
    first.end(signal.SIGKILL)
    assert stat.S_ISSOCK(first.path.stat().st_mode)
    # A run that begins meanwhile finds no pool, and does without.
    assert first.any_front().bash("echo alone")["stdout"] == "alone\n"
    second = start(atoll)
    popen, mark = sleeper(second.any_front(), 25)
    wait_until(lambda: runs_below(second.pid, mark))
    assert wakes(popen, mark) == (b"done\n", b"")


@pytest.mark.modes("root")
def test_a_file_in_its_place_stays(atoll, work):
    path = work / "precious"
    path.write_text("mine")
    done = atoll.run(["pool", "--socket", path])
    assert done.returncode == 125 and "no socket" in done.err
    assert path.read_text() == "mine"


# ------------------------------------------------------------------------------------ its callers


@quick
def test_runs_go_through_it(pool):
    popen, mark = sleeper(pool.any_front(), 25)
    wait_until(lambda: runs_below(pool.pid, mark))
    assert wakes(popen, mark) == (b"done\n", b"")
    wait_until(lambda: not runs_below(pool.pid, mark))


def test_off_means_off(pool):
    popen, mark = sleeper(pool.atoll.variant(env={"ATOLL_POOL": "off"}), 25)
    wait_until(lambda: runs_below(popen.pid, mark))
    assert not runs_below(pool.pid, mark)
    assert wakes(popen, mark) == (b"done\n", b"")


def same(result):
    gone = {"id", "created_at", "duration", "cpu_time", "memory_peak", "usage", "stages", "via", "_elapsed"}
    return {key: value for key, value in result.items() if key not in gone}


@pytest.mark.parametrize("code", ["echo out; echo err >&2; echo file > made", "exit 7", "kill -9 $$", "cat", "(exit 3) &"])
def test_results_are_those_of_a_broker_of_ones_own(pool, code):
    alone = pool.atoll.variant(env={"ATOLL_POOL": "off"}).bash(code, input="given\n")
    assert same(pool.any_front().bash(code, input="given\n")) == same(alone)


def test_limits_hold(pool):
    front = pool.any_front()
    assert front.bash("sleep 20", options=["--timeout", "300ms"])["status"] == "timeout"
    flood = front.bash("head -c 20000000 /dev/zero", options=["--output-total", "1m"])
    assert flood["status"] != "success" and flood["cause"]["kind"] == "output"


def test_two_at_once(pool):
    first, mark_1 = sleeper(pool.any_front(), 25, "one")
    second, mark_2 = sleeper(pool.any_front(), 25, "two")
    wait_until(lambda: runs_below(pool.pid, mark_1) and runs_below(pool.pid, mark_2))
    assert wakes(first, mark_1) == (b"one\n", b"")
    assert wakes(second, mark_2) == (b"two\n", b"")


@quick
def test_a_killed_front_takes_its_own_run_only(pool):
    doomed, mark = sleeper(pool.any_front(), 30)
    other, other_mark = sleeper(pool.any_front(), 25, "spared")
    wait_until(lambda: runs_below(pool.pid, mark) and runs_below(pool.pid, other_mark))
    doomed.kill()
    doomed.communicate(timeout=25)
    wait_until(lambda: not runs_below(pool.pid, mark), 10)
    assert runs_below(pool.pid, other_mark)
    assert wakes(other, other_mark) == (b"spared\n", b"")


def test_cancelling_ends_the_run(pool):
    popen, mark = sleeper(pool.any_front(), 30)
    wait_until(lambda: runs_below(pool.pid, mark))
    popen.send_signal(signal.SIGINT)
    popen.communicate(timeout=25)
    assert popen.returncode == 128 + signal.SIGINT
    wait_until(lambda: not runs_below(pool.pid, mark), 10)


def test_a_front_that_does_not_read_holds_up_nobody(pool, work):
    front = pool.any_front()
    nap = f"25.{time.monotonic_ns() % 10**9:09d}"
    code = f"for i in $(seq 400); do echo $i > f$i; done; exec sleep {nap}"
    slow = front.popen(["run", "--json", "-l", "bash", "-c", code], stdin=subprocess.DEVNULL)
    wait_until(lambda: runs_below(pool.pid, nap))
    slow.send_signal(signal.SIGSTOP)
    oracle.wake(nap)
    wait_until(lambda: not runs_below(pool.pid, nap))
    time.sleep(0.5)  # its files are on their way
    begin = time.monotonic()
    assert front.bash("echo quick")["stdout"] == "quick\n"
    assert time.monotonic() - begin < 20
    slow.send_signal(signal.SIGCONT)
    out, err = slow.communicate(timeout=25)
    assert len(json.loads(out)["files"]) == 400, err


def connect(path):
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    sock.connect(str(path))
    sock.settimeout(25)
    return sock


@pytest.mark.modes("root")
def test_nonsense_harms_only_its_sender(pool):
    idle = connect(pool.path)
    assert len(idle.recv(1 << 16)) > 100  # its greeting
    size = 1 << 16
    for record in (b"x", b"\0" * 5000, struct.pack("<II", 2, 9).ljust(1048, b"\0"), struct.pack("<II", 3, 9) + b"\xff" * 1040):
        sock = connect(pool.path)
        sock.recv(size)
        sock.send(record)
        sock.close()
    broken = connect(pool.path)
    broken.recv(size)
    broken.send(b"short")
    assert broken.recv(size) == b""
    assert pool.any_front().bash("echo fine")["stdout"] == "fine\n"
    idle.close()
    broken.close()


@pytest.mark.modes("root")
def test_descriptors_are_given_back(atoll, start):
    pool = start(atoll, "--spares", "0")
    front = pool.any_front()
    front.bash("true")
    time.sleep(0.3)
    before = fds(pool)
    for _ in range(15):
        assert front.bash("echo x > made")["status"] == "success"
    for _ in range(5):
        doomed, mark = sleeper(front, 30)
        wait_until(lambda: runs_below(pool.pid, mark))
        doomed.kill()
        doomed.communicate(timeout=25)
    wait_until(lambda: fds(pool) <= before + 2)


MANY = """
import ctypes, json, sys, threading
lib = ctypes.CDLL(sys.argv[1])
class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("data_dir", ctypes.c_char_p), ("cache_dir", ctypes.c_char_p)]
bad = []
def work(n):
    handle, problem = ctypes.c_void_p(), ctypes.c_char_p()
    options = Options(ctypes.sizeof(Options), None, None)
    if lib.atoll_new(ctypes.byref(options), ctypes.byref(handle), ctypes.byref(problem)) < 0:
        bad.append(problem.value)
        return
    for i in range(int(sys.argv[3])):
        request = json.dumps({"language": "bash", "code": f"echo {n}-{i}", "limits": {"timeout": 60}}).encode()
        result = ctypes.c_char_p()
        rc = lib.atoll_run(handle, request, None, ctypes.byref(result), ctypes.byref(problem))
        got = json.loads(result.value) if result.value else {}
        if rc < 0 or got.get("stdout") != f"{n}-{i}\\n":
            bad.append((rc, problem.value and problem.value.decode(), got.get("stdout"), got.get("error")))
    lib.atoll_free.argtypes = [ctypes.c_void_p]
    lib.atoll_free(handle)
threads = [threading.Thread(target=work, args=(n,)) for n in range(int(sys.argv[2]))]
for t in threads: t.start()
for t in threads: t.join()
print(json.dumps([str(b) for b in bad]))
"""


@pytest.mark.parametrize("pooled", [True, False])
@pytest.mark.modes("root")
def test_twenty_threads_with_a_handle_each(atoll, start, pooled):
    env = {"ATOLL_POOL": str(start(atoll).path) if pooled else "off"}
    done = atoll.run(["-c", MANY, atoll.stage.library, "20", "10" if pooled else "2"], program="/usr/bin/python3",
                     env=env, timeout=120)
    assert done.returncode == 0, done
    assert done.json() == []


@pytest.mark.modes("root")
def test_twenty_processes_at_once(pool):
    front, done = pool.any_front(), []

    def work(n):
        for i in range(3):
            done.append((front.run(["run", "-l", "bash", "-c", f"echo {n}-{i}"], timeout=60).out, f"{n}-{i}\n"))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 60 and all(got == want for got, want in done)


# ------------------------------------------------------------------------------- when it goes


@quick
def test_a_handle_outlives_its_pool(atoll, start):
    pool = start(atoll)
    lib = Library(pool.any_front())
    try:
        request = {"language": "bash", "code": "echo hello"}
        assert lib.run(request)[1]["stdout"] == "hello\n"
        assert lib.health()["children"] == []  # no broker was forked
        pool.end(signal.SIGKILL)
        rc, result, problem = lib.run(request)
        assert (rc, problem) == (0, None) and result["stdout"] == "hello\n"
        assert len(lib.health()["children"]) == 1
        # It stays with its own broker; a new handle finds the new pool.
        again = start(atoll)
        assert lib.run(request)[1]["stdout"] == "hello\n"
        other = Library(again.any_front())
        assert other.run(request)[1]["stdout"] == "hello\n"
        assert other.health()["children"] == []
        other.close()
    finally:
        lib.close()


def test_a_run_that_had_begun_is_told(pool):
    popen, mark = sleeper(pool.any_front(), 30)
    wait_until(lambda: runs_below(pool.pid, mark))
    inside = below(pool.pid)
    pool.end(signal.SIGKILL)
    out, err = popen.communicate(timeout=25)
    assert popen.returncode == 125 and b"pool died" in err
    wait_until(lambda: not [p for p, (_, state) in parents().items() if p in inside and state != "Z"])


def test_a_run_that_had_not_begun_is_done_by_another(atoll, start):
    """Its pool dies between taking the request and starting anything."""
    pool = start(atoll)
    lib = Library(pool.any_front())
    try:
        request = {"language": "bash", "code": "echo hello"}
        assert lib.run(request)[1]["stdout"] == "hello\n"
        os.kill(pool.pid, signal.SIGSTOP)
        timer = threading.Timer(0.5, pool.end, [signal.SIGKILL])
        timer.start()
        rc, result, problem = lib.run(request)
        timer.join()
        assert (rc, problem) == (0, None) and result["stdout"] == "hello\n"
        assert len(lib.health()["children"]) == 1
    finally:
        lib.close()


@pytest.mark.modes("root")
def test_a_stopped_pool_is_done_without(pool):
    os.kill(pool.pid, signal.SIGSTOP)
    try:
        assert pool.any_front().bash("echo alone")["stdout"] == "alone\n"
    finally:
        os.kill(pool.pid, signal.SIGCONT)


# ------------------------------------------------------------------------------------ other users


@pytest.mark.modes("root")
def test_other_users_are_turned_away(pool):
    """Even where the file system would let them."""
    opened = {path: path.stat().st_mode for path in (pool.path, *list(pool.path.parents)[:3])}
    for path in opened:
        path.chmod(0o666 if path == pool.path else 0o755)
    script = ("import socket, sys\ns = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
              "s.settimeout(25)\ns.connect(sys.argv[1])\nprint(len(s.recv(65536)))\n")
    try:
        for uid, told in ((0, True), (NOBODY, False)):
            out = subprocess.run(["setpriv", f"--reuid={uid}", "--clear-groups", sys.executable, "-c", script,
                                  pool.path], capture_output=True, text=True)
            assert (int(out.stdout) > 0) == told, out
        user = Atoll("rootless", pool.atoll.stage).variant(env={"ATOLL_POOL": str(pool.path)})
        assert user.bash("echo own")["stdout"] == "own\n"
    finally:
        for path, mode in opened.items():
            path.chmod(mode & 0o7777)


@pytest.mark.modes("rootless")
@pytest.mark.skipif(not IS_ROOT, reason="needs to be started as root")
def test_another_users_pool_is_not_trusted(pool):
    root = Atoll("root", pool.atoll.stage).variant(env={"ATOLL_POOL": str(pool.path)})
    popen, mark = sleeper(root, 25)
    wait_until(lambda: runs_below(popen.pid, mark))
    assert not runs_below(pool.pid, mark)
    assert wakes(popen, mark) == (b"done\n", b"")


@quick
def test_results_name_it(atoll, pool):
    assert pool.any_front().python("pass")["via"] == "pool" and atoll.python("pass")["via"] == "direct"
