# SPDX-License-Identifier: Apache-2.0
"""Attacks on the move of a copy into its sandbox (box/mover.h). The copy is the tenant's code, and so is all that shares its parent's sandbox.

An attack may make its own fork fail, soon. What must hold: a copy that comes through has no right and sees nothing of outside, the
parent goes on, and nothing is left (the leak oracle looks after each test).
"""
import os
import signal
import textwrap
import threading
import time

import pytest

import oracle
from live import Copy, Session, ask_fork, fork
from program import Atoll
from resident import wait_until
from web import Served

quick = pytest.mark.quick

# In the session: what is put before the copy's own part of a fork. The code sees `copy`, the copy's pid.
BEFORE = """
import ctypes, mmap, os, signal, sys, time
libc = ctypes.CDLL(None, use_errno=True)
runner = sys.modules["atoll_session"]
own = runner.Forker.__dict__.get("own") or runner.Forker.become
runner.Forker.own = own
def become(self, *args):
    copy = os.getpid()
    before(copy)
    own(self, *args)
def before(copy):
%s
runner.Forker.become = become
"""
RIGHTS = """
import ctypes, os
status = dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\\t" in line)
links = [os.readlink(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}")]
links = [link for link in links if link.startswith(("user:", "mnt:", "pid:", "net:", "ipc:", "uts:", "cgroup:")) or "tasks" in link]
setns = [ctypes.CDLL(None).setns(os.open("/proc/self/ns/" + name, 0), 0) for name in ("user", "mnt", "pid", "net")]
[{status[name].strip() for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {"0" * 16}, status["NoNewPrivs"], status["Seccomp"], os.getpid(),
 setns, sorted(name for name in os.listdir("/proc") if name.isdigit())[0], links]
"""
NO_RIGHTS = [True, "1", "2", 2, [-1] * 4, "2", []]


@pytest.fixture
def session(web):
    with Session(web, forkable=True) as session:
        yield session
    for made in web.get("/v1/sessions").json()["sessions"]:
        web.delete(f"/v1/sessions/{made['id']}")


def attack(session, code, tries=1, most=15):
    """Forks under the attack: how many copies came through, each without rights. Afterwards a fork without the attack works."""
    session.run("mark = 'mine'")
    session.run(BEFORE % textwrap.indent(textwrap.dedent(code), "    "))
    through = 0
    for _ in range(tries):
        began = time.monotonic()
        answer = ask_fork(session)
        assert answer.status in (201, 400, 409), answer
        assert time.monotonic() - began < most
        if answer.status == 201:
            through += 1
            copy = Copy(session.web, answer.json()["sessions"][0])
            value = copy.value(RIGHTS)
            assert value == NO_RIGHTS, value
            assert copy.value("mark") == "mine"
            session.web.delete(copy.path)
        assert session.value("mark") == "mine"
    session.run("runner.Forker.become = own")
    wait_until(lambda: ask_fork(session).status == 201, 15, "no fork works any more")
    return through


# ------------------------------------------------------------------------------------------- signals

STORM = """
if os.fork() == 0:
    end = time.monotonic() + 3
    while time.monotonic() < end:
        for number in %s:
            try:
                os.kill(copy, number)
            except OSError:
                os._exit(0)
    os._exit(0)
"""


@quick
@pytest.mark.parametrize("numbers", [
    "(signal.SIGUSR1, signal.SIGWINCH, signal.SIGCHLD)", "(signal.SIGTRAP,)", "(signal.SIGSTOP, signal.SIGCONT)", "(signal.SIGTSTP, signal.SIGTTIN)",
    "range(signal.SIGRTMIN, signal.SIGRTMIN + 8)"])
def test_a_storm_of_signals(session, numbers):
    """Each is handled or would stop or end the copy; the mover drops them, or gives up."""
    session.run("import signal\nfor number in {*range(1, 65)} - {9, 19, 32, 33, 2, 14}:\n    signal.signal(number, lambda *_: None)")
    attack(session, STORM % numbers, tries=2)


@pytest.mark.parametrize("delay", [0, 0.0005, 0.001, 0.002, 0.003])
def test_the_copy_is_killed(session, delay):
    attack(session, f"""
        if os.fork() == 0:
            time.sleep({delay})
            os.kill(copy, signal.SIGKILL)
            os._exit(0)
        """, tries=3)


# --------------------------------------------------------------------------------- threads and programs


def test_threads_in_the_copy(session):
    """A process with threads cannot enter a user namespace: it never gets a right."""
    assert attack(session, """
        import threading
        threading.Thread(target=time.sleep, args=(20,), daemon=True).start()
        """) == 0


def test_a_thread_executes_another_program(session):
    """In a thread, exec takes the place of the process that the mover traces."""
    for delay in (0.0, 0.001, 0.002):
        assert attack(session, f"""
            import threading
            def work():
                time.sleep({delay})
                os.execv("/bin/sleep", ["sleep", "3"])
            threading.Thread(target=work, daemon=True).start()
            """) == 0


def test_the_copy_executes_another_program(session):
    """It announces itself, and then is something else."""
    assert attack(session, """
        channel = max(int(fd) for fd in os.listdir("/proc/self/fd") if fd.isdigit() and os.path.exists("/proc/self/fd/" + fd)
                      and os.readlink("/proc/self/fd/" + fd).startswith("socket:") and int(fd) < 100)
        os.write(channel, b"x")
        os.execv("/bin/sleep", ["sleep", "3"])
        """) == 0


def test_many_announce_themselves(session):
    """More processes than were asked for, and the same one again and again."""
    session.run("mark = 'mine'")
    session.run(BEFORE % textwrap.indent(textwrap.dedent("""
        channel = [int(fd) for fd in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd/" + fd)
                   and os.readlink("/proc/self/fd/" + fd).startswith("socket:")]
        for _ in range(5):
            if os.fork() == 0:
                for fd in channel:
                    try:
                        os.write(fd, b"x")
                    except OSError:
                        pass
                time.sleep(2)
                os._exit(0)
        time.sleep(0.2)
        """), "    "))
    assert ask_fork(session).status in (201, 409)
    assert session.value("mark") == "mine"


# ------------------------------------------------------------------------------------- shared memory

# An accomplice with the copy's memory, in machine code: writes `other` over the instruction at `place` and puts it back, many times.
FLIP = """
import struct
pause = ctypes.cast(libc.pause, ctypes.c_void_p).value
place = pause + ctypes.string_at(pause, 64).index(b"\\x0f\\x05")
page = place & -4096
if libc.mprotect(ctypes.c_void_p(page), 8192, 7):
    raise OSError(ctypes.get_errno(), "mprotect")
code = (b"\\x48\\xbf" + struct.pack("<Q", place) + b"\\x48\\xbb" + struct.pack("<Q", %(times)d)
        + b"\\x66\\xc7\\x07" + %(other)r + b"\\xb9" + struct.pack("<I", %(spin)d) + b"\\xff\\xc9\\x75\\xfc"
        + b"\\x66\\xc7\\x07\\x0f\\x05" + b"\\xb9" + struct.pack("<I", %(spin)d) + b"\\xff\\xc9\\x75\\xfc"
        + b"\\x48\\xff\\xcb\\x75\\xdf" + b"\\xb8\\x3c\\0\\0\\0\\x31\\xff\\x0f\\x05")
memory = mmap.mmap(-1, 65536, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=7)
memory[:len(code)] = code
at = ctypes.addressof(ctypes.c_char.from_buffer(memory))
stack = at + 65536 - 64
ctypes.memmove(stack, struct.pack("<Q", at), 8)
before.memory = memory
assert libc.syscall(56, ctypes.c_long(0x100 | 17), ctypes.c_void_p(stack), 0, 0, 0) > 0
"""


@pytest.mark.parametrize("other", [b"\x90\x90", b"\xcd\x80", b"\x0f\x34", b"\xeb\xfe", b"\x0f\x0b", b"\x90\x0f"],
                         ids=["nothing", "int80", "sysenter", "loop", "invalid", "one-byte"])
def test_the_instruction_is_flipped(session, other):
    """The mover lets the copy execute single instructions, and an accomplice changes them under it. Calls of another kind are killed."""
    for times, spin in ((20_000_000, 1), (200_000, 300)):
        attack(session, FLIP % {"times": times, "other": other, "spin": spin}, tries=3)


def test_the_accomplice_works(session):
    """It does change the instruction: a copy that stays in its parent and calls pause() through it is killed or interrupted."""
    session.run("mark = 1")
    session.run(BEFORE % textwrap.indent(FLIP % {"times": 4_000_000_000, "other": b"\x0f\x0b", "spin": 300}, "    "))
    value = session.value(textwrap.dedent("""
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGALRM, lambda *_: None)
            before(os.getpid())
            for _ in range(1000):
                signal.setitimer(signal.ITIMER_REAL, 0.001)
                signal.pause()
            os._exit(7)
        os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])"""))
    assert value == -signal.SIGILL, value


# -------------------------------------------------------------------------------- a shared table of descriptors

# An accomplice that has the copy's table: says which descriptors of namespaces and of cgroups' files it sees there.
LOOK = """
if libc.syscall(56, 0x400 | 17, 0, 0, 0, 0) == 0:
    end, looks, seen = time.monotonic() + 1, 0, set()
    while time.monotonic() < end:
        for fd in os.listdir("/proc/self/fd"):
            try:
                link = os.readlink("/proc/self/fd/" + fd)
            except OSError:
                continue
            if link.startswith(("user:", "mnt:", "pid:", "net:", "ipc:", "uts:", "cgroup:")) or "tasks" in link or "cgroup.procs" in link:
                seen.add(link)
        looks += 1
    with open("/tmp/looked", "w") as file:
        file.write(f"{looks > 9} {sorted(seen)}")
    os._exit(0)
"""


@quick
def test_an_accomplice_with_the_same_descriptors(session):
    """The copy is given namespaces and files of its cgroup for a moment, in a table of its own."""
    attack(session, LOOK)
    wait_until(lambda: session.value("os.path.exists('/tmp/looked') and open('/tmp/looked').read()") == "True []", 15,
               session.value("os.path.exists('/tmp/looked') and open('/tmp/looked').read()"))


# ------------------------------------------------------------------------------------- who dies meanwhile


@pytest.mark.parametrize("delay", [0, 0.001, 0.002, 0.004])
def test_the_parent_is_killed(session, delay):
    """The process that forked dies while its copies are moved: its sandbox ends, and with it the copies'."""
    session.run("mark = 1")
    session.run(BEFORE % textwrap.indent(textwrap.dedent(f"""
        if os.fork() == 0:
            time.sleep({delay})
            os.kill(2, signal.SIGKILL)
            os._exit(0)
        """), "    "))
    answer = ask_fork(session, 3)
    assert answer.status in (201, 409), answer
    # The killer may come late, also after the fork.
    wait_until(lambda: (session.run("mark")["error"] or {}).get("type") == "NameError", 15, "the session does not come back")
    session.run("mark = 2")
    copy, = fork(session)
    assert copy.value("mark") == 2


def kill_while_forking(session, kill):
    """Forks go on in a thread; kill() is called in the midst of them."""
    stop, seen = threading.Event(), []

    def work():
        while not stop.is_set():
            try:
                seen.append(ask_fork(session, 2).status)
            except OSError:  # the front goes, too
                return

    forker = threading.Thread(target=work)
    forker.start()
    wait_until(lambda: seen.count(201) > 1, 15, "no fork works")
    kill()
    stop.set()
    forker.join()
    return seen


def test_kill_of_the_broker_during_a_fork(mode, stage):
    served = Served(Atoll(mode, stage), stage.scratch(mode, "fork-crash"))
    groups = oracle.list_empty_cgroups()
    try:
        for _ in range(3):
            session = Session(served.web, forkable=True)
            session.run("data = bytearray(b'x') * (20 << 20)")
            started = len(served.daemon.records)
            kill_while_forking(session, lambda: os.kill(served.daemon.child("broker"), signal.SIGKILL))
            served.daemon.wait_record("started", started, process="broker")
            served.wait_ready()
            result = session.run("6 * 7")
            assert result["value"] == 42 and result["session"]["state"] == "lost", result
            for made in served.web.get("/v1/sessions").json()["sessions"]:
                served.web.delete(f"/v1/sessions/{made['id']}")
    finally:
        served.end()
    # A killed broker cannot remove its groups. The next broker does, once they are old; they are empty.
    for group in sorted(oracle.list_empty_cgroups() - groups, reverse=True):
        os.rmdir(group)


def test_kill_of_the_daemon_during_a_fork(mode, stage):
    served = Served(Atoll(mode, stage), stage.scratch(mode, "fork-end"))
    groups = oracle.list_empty_cgroups()
    session = Session(served.web, forkable=True)
    session.run("data = bytearray(b'x') * (20 << 20)")
    below = []

    def kill():
        below.extend(served.daemon.processes())
        oracle.KEPT.discard(served.daemon.pid)
        served.daemon.end(signal.SIGKILL)

    kill_while_forking(session, kill)
    wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in below), why="processes stay")
    for group in sorted(oracle.list_empty_cgroups() - groups, reverse=True):
        os.rmdir(group)
