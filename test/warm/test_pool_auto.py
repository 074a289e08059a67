# SPDX-License-Identifier: Apache-2.0
"""Pools that commands start and end: ATOLL_POOL=auto, `atoll pool --detach`, `--leave-seconds`, `stop`."""
import os
import signal
import subprocess
import time

import pytest

import oracle
from program import Atoll
from resident import sweep, wait_until

RUN = ["run", "--no-daemon", "-l", "python", "-c", "print(6 * 7)"]


def listener(atoll, socket):
    """The process of the pool that `atoll ps` names."""
    done = atoll.variant(env={"ATOLL_POOL": str(socket)}).run(["ps"])
    words = done.out.split()
    return int(words[3].rstrip(")")) if done.out.startswith("A pool (process") else None


def is_gone(pid, socket):
    """Its files go before the process does, which its parent, pid 1, has yet to reap."""
    left = socket.exists() or socket.with_name(f"{socket.name}.lock").exists()
    return not left and oracle.parents().get(pid, (0, "Z"))[1] == "Z"


@pytest.fixture
def place(mode, stage, work):
    """A command line whose usual place for a pool is the test's own; root's place is /run, of this room only."""
    atoll = Atoll(mode, stage, env={"ATOLL_POOL": "auto", "XDG_RUNTIME_DIR": str(work)})
    socket = (work if mode != "root" else type(work)("/run")) / "atoll" / "pool.sock"
    yield atoll, socket
    atoll.run(["pool", "stop"])


@pytest.mark.quick
def test_a_run_leaves_a_pool_behind(place):
    atoll, socket = place
    assert atoll.run(RUN).out == "42\n"
    pid = listener(atoll, socket)
    assert pid and b"\0--leave-seconds\000300\0" in open(f"/proc/{pid}/cmdline", "rb").read()
    wait_until(lambda: any("python/zygote" in oracle.command_line(p) for p in oracle.below(pid)), why="the pool keeps no interpreter")
    assert atoll.run(RUN).out == "42\n" and listener(atoll, socket) == pid
    # Where no daemon runs, the pool is all that `ps` shows; a daemon that was named must answer.
    usual = atoll.variant(env={"ATOLL_URL": None})
    assert usual.run(["ps"]).returncode == 0 and listener(usual, socket) == pid
    assert usual.run(["ps", "--json"]).json() == {"executions": [], "sessions": [], "pool": {"pid": pid, "socket": str(socket)}}
    assert usual.run(["ps", "--url", "http://127.0.0.1:1"]).returncode == 125
    assert usual.run(["ps"], env={"ATOLL_SOCKET": str(socket.with_name("none"))}).returncode == 125
    stopped = atoll.run(["pool", "stop"])
    assert (stopped.returncode, stopped.out, stopped.err) == (0, "", "") and is_gone(pid, socket)
    again = atoll.run(["pool", "stop"])
    assert again.returncode == 125 and f"no pool listens on '{socket}'" in again.err


def test_the_settings_say_so_too(place, work):
    atoll, socket = place
    settings = work / "config" / "atoll" / "atoll.yaml"
    settings.parent.mkdir(parents=True)
    settings.write_text("pool: auto\n")
    quiet = atoll.variant(env={"ATOLL_POOL": "", "XDG_CONFIG_HOME": str(work / "config")})
    assert quiet.variant(env={"ATOLL_POOL": "off"}).run(RUN).out == "42\n" and not listener(atoll, socket)
    assert quiet.result(RUN[1:])["via"] == "pool" and listener(atoll, socket)
    settings.write_text("pool: aut\n")
    done = quiet.run(RUN)
    assert done.out == "42\n" and "pool: 'aut' is not an object of settings" in done.err, done


def test_first_runs_at_once_start_one_pool(place):
    atoll, socket = place
    runs = [atoll.popen(RUN, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) for _ in range(4)]
    assert [run.communicate()[0] for run in runs] == [b"42\n"] * 4
    pid = listener(atoll, socket)
    assert pid and atoll.run(["pool", "stop"]).returncode == 0 and is_gone(pid, socket)


def test_the_last_pool_removes_the_directory(place):
    """Also if another one made it, which was killed, or which came too late for the lock."""
    atoll, socket = place
    assert atoll.run(["pool", "--detach"]).returncode == 0
    pid = listener(atoll, socket)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: oracle.parents().get(pid, (0, "Z"))[1] == "Z", why="it lives")
    assert socket.exists() and atoll.run(["pool", "--detach"]).returncode == 0
    assert atoll.run(["pool", "stop"]).returncode == 0
    wait_until(lambda: not socket.parent.exists(), why="the directory stays")
    sweep(atoll)


def test_a_detached_pool_keeps_nothing_of_its_starter(place, work):
    """Neither a descriptor, such as the lock of a shell, nor its directory, session or terminal."""
    atoll, socket = place
    inner, outer = os.pipe()
    started = atoll.run(["pool", "--detach"], pass_fds=[outer])
    os.close(outer)
    assert started.returncode == 0, started
    assert os.read(inner, 1) == b""
    os.close(inner)
    pid = listener(atoll, socket)
    assert os.readlink(f"/proc/{pid}/cwd") == "/" and os.getsid(pid) == pid
    assert {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in range(3)} == {"/dev/null"}
    refused = atoll.run(["pool", "--detach"])
    assert refused.returncode == 125 and "a pool runs on" in refused.err


def test_an_idle_pool_leaves(place):
    atoll, socket = place
    assert atoll.run(["pool", "--detach", "--leave-seconds", "1"]).returncode == 0
    pid = listener(atoll, socket)
    begun = time.monotonic()
    assert atoll.run(["run", "--no-daemon", "-l", "bash", "-c", "sleep 2; echo on"]).out == "on\n", "it left during a run"
    wait_until(lambda: is_gone(pid, socket), why="the pool stays")
    assert time.monotonic() - begun > 2.9


@pytest.mark.quick
@pytest.mark.modes("rootless")
def test_words(place):
    atoll, _ = place
    done = atoll.run(["pool", "start"])
    assert done.returncode == 125 and "there is only: atoll pool stop" in done.err
    done = atoll.variant(env={"XDG_RUNTIME_DIR": ""}).run(RUN)
    assert done.out == "42\n" and "ATOLL_POOL=auto needs XDG_RUNTIME_DIR" in done.err
