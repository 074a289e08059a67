# SPDX-License-Identifier: Apache-2.0
"""M04, M08 and M09 of test/security/cases.md in warm cells (M07 needs sessions, M10 an option that does not exist yet).

Every Python program here is warm, or the test fails (resident.py). What a warm program has that a cold one has not is
descriptor 100, its socket to the broker: much of this attacks through that.
"""
import contextlib
import os
import secrets
import statistics
import struct
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from library import Library
from probe import probe
from residue import differences, processes_with, residue
from resident import front, own, wait_until

pytestmark = pytest.mark.cold("it is about warm cells")
quick = pytest.mark.quick


# ------------------------------------------------------------------------------------ M04: the zygote and the socket


@quick
def test_M04_nobody_outside_is_found(front):
    """The socket's other end is a way to name the broker: it must lead nowhere."""
    seen = probe(front, """
import fcntl, socket, struct
s = socket.socket(fileno=os.dup(100))
out = {'peer': struct.unpack('iII', s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)), 'ppid': os.getppid(),
       'names': [str(s.getsockname()), str(s.getpeername())], 'proc': sorted(p for p in os.listdir('/proc') if p.isdigit()), 'pidfd': None}
try:
    fd = struct.unpack('i', s.getsockopt(socket.SOL_SOCKET, 77, 4))[0]
    if fd >= 0:
        out['pidfd'] = [sc(424, fd, sig, 0, 0) for sig in (0, 9, 19)] + [sc(438, fd, 0, 0), sc(308, fd, 0x20000000), sc(440, fd, 0, 0, 0, 0)] \\
            + [sc(16, fd, 0xff00 | n, 0) for n in range(1, 11)]
        out['info'] = [l for l in open('/proc/self/fdinfo/%d' % fd).read().splitlines() if l.startswith(('Pid', 'NSpid'))]
except OSError as e: out['refused'] = e.errno
# The kernel has given it a name at random, which means nothing in our network namespace.
out['connect'] = [attempt(socket.socket(socket.AF_UNIX, kind).connect, s.getpeername() or b'\\0none')
                  for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET)]
out['open'] = [attempt(os.open, '/proc/self/fd/100', os.O_RDWR), attempt(os.open, '/proc/1/fd/100', os.O_RDWR)]
out['kill'] = sorted({attempt(os.kill, pid, 0) for pid in range(3, 70000)})
out['pidfd_open'] = sorted({sc(434, pid, 0) for pid in list(range(3, 3000))})
say(out)
""")
    assert seen["peer"][0] == 0 and seen["ppid"] == 1 and seen["proc"] == ["2"], seen
    assert seen["names"][0] == "" and seen["connect"] == ["ECONNREFUSED"] * 3, seen
    assert "ok" not in (seen["pidfd"] or []) + seen["open"], seen
    assert all(line.split()[1] in ("0", "-1") for line in seen.get("info", [])), seen
    assert seen["kill"] == ["ESRCH"] and seen["pidfd_open"] in (["ESRCH"], ["EINVAL", "ESRCH"]), seen


SAYINGS = {
    "garbage": b"\xff" * 4, "long": b"x" * 4096, "too large": b"256", "negative": b"-1", "hex": b"0x0", "newline": b"0\n", "zeros": b"0000",
    "many digits": b"00000", "nothing": b"", "nul": b"0\0", "space": b" 0", "parked": b"P",
    "a failure": struct.pack("=IIiiqqiII32sxxxxqqqqq", 2, 0, 13, 0, 0, 0, 0, 0, 0, b"forged", 0, 0, 0, 0, 0),
    "an exit": struct.pack("=IIiiqqiII32sxxxxqqqqq", 3, 0, 0, 0, 0, 0, 0, 0, 0, b"", 0, 0, 0, 0, 0),
    "prepared": struct.pack("=IIiiqqiII32sxxxxqqqqq", 1, 0, 0, 0, 0, 0, 7, 0, 0, b"", 0, 0, 0, 0, 0),
    "a launch": struct.pack("=II", 0x4C4E4348, 0) + bytes(24), "a fork": struct.pack("=II", 0x464F524B, 0) + bytes(60),
}


@pytest.mark.parametrize("what", list(SAYINGS))
def test_M04_only_an_exit_code_is_understood(front, what):
    """After other words the run goes on, and ends with what the kernel tells of it."""
    result = front.python(f"import os, time\nos.write(100, {SAYINGS[what]!r})\ntime.sleep(0.05)\nprint('on', flush=True)\nos._exit(7)")
    assert (result["stdout"], result["status"], result["exit_code"], result["cause"]["kind"]) == ("on\n", "error", 7, "exit"), result


@pytest.mark.apart  # the kernel counts descriptors in flight by user, and rootless sandboxes are all one user's
def test_M04_floods_and_descriptors(front):
    front.until_warm()  # a pool without requests so far has none of its spares
    before = pool_nulls(front)
    flood = """
import array, os, socket, time
s = socket.socket(fileno=100)
s.setblocking(False)
sent = 0
fds = array.array('i', [os.open('/dev/null', 0)] * 200 + [os.open('/sandbox', 0)])
for data, more in ((b'9' * 4, [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)]), (b'x' * 60000, []), (b'x', []), (b'', [])):
    try:
        while sent < 100000: s.sendmsg([data], more); sent += 1
    except OSError: pass
time.sleep(0.1)
print(sent > 0, flush=True)
os._exit(9)
"""
    for _ in range(3):
        result = front.python(flood)
        assert (result["stdout"], result["exit_code"]) == ("True\n", 9), result
    credentials = front.python("import os, socket, struct\ns = socket.socket(fileno=os.dup(100))\n"
                               "try: s.sendmsg([b'0'], [(1, 2, struct.pack('iII', 1, 0, 0))])\nexcept OSError as e: print(e.errno, flush=True)\n"
                               "os._exit(3)")
    assert (credentials["stdout"] in ("1\n", "22\n"), credentials["exit_code"]) == (True, 3), credentials
    deadline = time.monotonic() + 30
    while pool_nulls(front) > before + 4:
        assert time.monotonic() < deadline, (before, pool_nulls(front))
        time.sleep(0.05)


def pool_nulls(front):
    """How many descriptors of null devices the pool has. What else it has depends on how many spares it keeps."""
    links = []
    for fd in os.listdir(f"/proc/{front.pool.pid}/fd"):
        with contextlib.suppress(OSError):  # it was closed meanwhile
            links.append(os.readlink(f"/proc/{front.pool.pid}/fd/{fd}"))
    return sum(link.endswith("null") for link in links)


WORDS = {
    "main": "os.write(100, b'5')",
    "thread": "threading.Thread(target=os.write, args=(100, b'5')).start()",
    "copy": "os.write(os.dup(100), b'5')",
    "executed": "os.set_inheritable(100, True); os.execv(sys.executable, ['python3', '-c', 'import os, time; os.write(100, b\"5\"); time.sleep(9)'])",
    "parent of another": "os.fork() or time.sleep(30); os.write(100, b'5')",
}


@pytest.mark.parametrize("who", list(WORDS))
def test_M04_the_last_word_is_the_last(front, who):
    """However early the main process says it: it means exit(5), at once, for every process in the sandbox."""
    tag = "toy" + secrets.token_hex(4)
    code = (f"import ctypes, os, sys, threading, time\nctypes.CDLL(None).prctl(15, b'{tag}', 0, 0, 0)\nprint('before', flush=True)\n"
            f"{WORDS[who]}\ntime.sleep(8)\nprint('after', flush=True)\nopen('late', 'w').write('x')\ntime.sleep(20)")
    result = front.python(code, options=["--timeout", "40"])
    assert (result["status"], result["exit_code"], result["signal"], result["cause"]["kind"]) == ("error", 5, None, "exit"), result
    assert result["stdout"] == "before\n" and result["files"] == [] and result["_elapsed"] < 20, result
    deadline = time.monotonic() + 20
    while processes_with(tag):
        assert time.monotonic() < deadline, "something of it still runs"
        time.sleep(0.01)


# Each child keeps a copy of the socket from before the fork, which the agent does not know of.
SAY = "[say(data) for data in (b'0', b'1', b'0')], time.sleep(60)"
FORGERS = {
    "child": f"os.fork() or ({SAY})",
    "raw fork": f"libc.syscall(57) or ({SAY})",
    "raw clone that shares descriptors": f"libc.syscall(56, 0x400, 0, 0, 0, 0) or ({SAY})",
    "daemon": f"os.fork() or (os.setsid(), os.fork() and os._exit(0), {SAY})",
    "thread of a child": f"os.fork() or (threading.Thread(target=lambda: ({SAY})).start(), time.sleep(60))",
    "executed": "os.set_inheritable(kept, True); os.fork() or os.execv(sys.executable, ['python3', '-c',"
                " f'import os, time; os.write({kept}, b\"0\"); time.sleep(60)'])",
    "with the main process's credentials": f"libc.syscall(57) or (credit(main), credit(1), credit(0), {SAY})",
    "a flood": "libc.syscall(57) or [say(b'0') for _ in range(100000)] and time.sleep(60)",
    "a flood of nothing": "libc.syscall(57) or [say(b'') for _ in range(100000)] and time.sleep(60)",
    "descriptors": "libc.syscall(57) or (socket.send_fds(kept_socket, [b'0'], [0, 1, 2]), time.sleep(60))",
    "nonsense of its own": "[say(b'x' * n) for n in range(1, 30)]",
}
FORGERY = """
import ctypes, os, socket, struct, sys, threading, time
libc, main, kept = ctypes.CDLL(None), os.getpid(), os.dup(100)
kept_socket = socket.socket(fileno=kept)
def say(data):
    try: kept_socket.send(data)
    except OSError: pass
def credit(pid):
    try: kept_socket.sendmsg([b'0'], [(socket.SOL_SOCKET, 2, struct.pack('iII', pid, 1000, 1000))])
    except OSError: pass
"""


@quick
def test_M04_children_have_no_word(front):
    """What a process that is not the main one says on the socket, and how often, is passed over: the main process goes on to its end,
    and its code is the one that is told. One that the agent sees being forked has no socket at all."""
    for who, code in FORGERS.items():
        for end, want in (("sys.exit(7)", 7), ("os._exit(8)", 8), ("os.kill(main, 15)", -15)):
            result = front.python(f"{FORGERY}{code}\ntime.sleep(0.02)\nprint('on', flush=True)\n{end}", options=["--timeout", "40"])
            seen = (result["stdout"], result["status"], result["exit_code"] if result["signal"] is None else -result["signal"])
            assert seen == ("on\n", "error", want) and result["_elapsed"] < 20, (who, end, result)
    fds = front.probe("""
import json, os
r, w = os.pipe()
if os.fork() == 0:
    os.write(w, json.dumps([int(n) for n in os.listdir('/proc/self/fd')]).encode()); os._exit(0)
os.wait()
print(os.read(r, 999).decode())
""")
    assert 100 not in fds and set(fds) >= {0, 1, 2}, fds


STAMPS = """
import ctypes, os, struct, time
ctypes.CDLL(None).prctl(15, b'toystamps', 0, 0, 0)
fd = os.open('/workspace/stamp', os.O_RDWR | os.O_CREAT)
os.pwrite(fd, struct.pack('d', 0), 0)
os.write(100, b'0')
while True: os.pwrite(fd, struct.pack('d', time.time()), 0)
"""


@pytest.mark.modes("root")  # without privilege workspaces are not for warm cells
def test_M04_nothing_is_written_behind_a_result(own, work):
    """A program that says its last word and goes on writing to what outlives it: none of it comes after the result has."""
    place = {"ATOLL_STATE_DIR": str(work / "state")}
    front = own("--spares", "2", env=place).any_front().variant(env=place)
    library, stamp, warm = Library(front), work / "state" / "workspaces" / "late" / "stamp", 0
    deadline = time.monotonic() + 60
    try:
        while warm < 15:
            assert time.monotonic() < deadline, "it does not get warm"
            rc, result, problem = library.run({"language": "python", "code": STAMPS, "workspace": "late", "limits": {"cpus": 0.2}})
            now = time.time()
            if rc != 0 or result["status"] != "success":
                assert "Bad file descriptor" in result["stderr"], (problem, result)  # cold
                continue
            warm += 1
            wait_until(lambda: not processes_with("toystamps"))
            assert struct.unpack("d", stamp.read_bytes())[0] <= now
    finally:
        library.close()


def test_M04_files_said_to_be_done(front):
    """Written before the last word, by a child that goes on writing: one state of them is told, and it is consistent."""
    result = front.python("import os\nopen('done', 'w').write('x' * 5000)\nif os.fork() == 0:\n    n = 0\n"
                          "    while True: open('f%d' % n, 'w').write('y'); n += 1\nos.write(100, b'0')\nos.read(100, 1)")
    files = {f["path"]: f["size"] for f in result["files"]}
    assert result["status"] == "success" and files.pop("done") == 5000 and all(size in (0, 1) for size in files.values()), result["status"]


ENDS = {
    "closed": ("os.close(100)", 6), "shut": ("socket.socket(fileno=os.dup(100)).shutdown(2)", 6), "all closed": ("os.closerange(3, 1024)", 6),
    "null": ("os.dup2(os.open('/dev/null', os.O_RDWR), 100)", 6),
    "a file": ("os.dup2(os.open('/sandbox/mine', os.O_RDWR | os.O_CREAT), 100)", 6),
    "standard output": ("os.dup2(1, 100)", 6),
    "a pipe": ("r, w = os.pipe(); os.dup2(w, 100); os.close(r)", 6),
    "a socket": ("a, b = socket.socketpair(); os.dup2(a.fileno(), 100)", 6),
    "many files": ("os.closerange(3, 1024); held = [open(f'/sandbox/f{n}', 'w') for n in range(120)]", 6),
}


@pytest.mark.parametrize("how", list(ENDS))
def test_M04_a_program_without_its_socket(front, how):
    """It may close the descriptor, or open something else under its number: that is then left alone, and the code is right."""
    code, end = ENDS[how]
    result = front.python(f"import os, socket, sys\n{code}\nprint('x')\nsys.exit({end})", options=["--timeout", "40"])
    assert (result["stdout"], result["stderr"], result["exit_code"], result["cause"]["kind"]) == ("x\n", "", end, "exit"), result
    assert {f["size"] for f in result["files"]} <= {0}, result["files"]
    assert result["_elapsed"] < 20


def test_M04_waiting_at_the_socket_is_waiting(front):
    result = front.python("import os\nos.read(100, 1)", options=["--timeout", "400ms"])
    assert result["status"] == "timeout" and result["_elapsed"] < 20, result


def test_M04_exec_takes_nothing_along(front):
    result = front.python("import os\nos.execv('/bin/sh', ['sh', '-c', 'ls /proc/self/fd; env; cat /proc/self/maps; exit 3'])")
    fds = result["stdout"].split("PATH=")[0].split()
    assert result["exit_code"] == 3 and "100" not in fds and "LD_PRELOAD" not in result["stdout"] and "agent" not in result["stdout"], result
    kept = front.python("import os\nos.set_inheritable(100, True)\nos.execv('/bin/sh', ['sh', '-c', 'exit 4'])")
    assert kept["exit_code"] == 4, kept


CRASHES = {
    "segv": "import ctypes\nctypes.string_at(0)", "abort": "import os\nos.abort()", "kill": "import os\nos.kill(os.getpid(), 9)",
    "memory": "x = []\nwhile True: x.append(bytearray(4 << 20))", "stack": "import ctypes\nctypes.CDLL(None).raise_ if False else None\nimport os\nos.kill(os.getpid(), 31)",
}


def crash(front, n):
    kind = list(CRASHES)[n % len(CRASHES)]
    result = front.python(CRASHES[kind], options=["-m", "64m", "--timeout", "20"])
    if kind != "memory":
        wanted = {"segv": 11, "abort": 6, "kill": 9, "stack": 31}[kind]
        return (result["status"], result["signal"]) == ("error", wanted) or (kind, result["status"], result["cause"])
    if result["isolation"]["cgroup"] != "none":
        return result["cause"]["kind"] == "memory" or (kind, result["status"], result["cause"])
    return result["status"] in ("error", "limit") or (kind, result["status"], result["cause"])


def test_M04_crash_loops(own):
    """A hundred deaths of every kind: the zygote they came from lives, and who comes next sees nothing of them. In a pool of
    its own: one that others have used for long replaces zygotes by itself."""
    front = own("--spares", "4").front()
    first = residue(front)
    zygotes, pid = set(front.pool.zygotes()), front.pool.pid
    with ThreadPoolExecutor(4) as pool:
        ends = list(pool.map(lambda n: crash(front, n), range(100 if front.mode == "root" else 25)))
    assert set(map(str, ends)) == {"True"}, [e for e in ends if e is not True][:5]
    assert zygotes <= set(front.pool.zygotes()) and zygotes and front.pool.popen.poll() is None and front.pool.pid == pid
    for _ in range(5):
        assert differences(first, residue(front)) == {}


# ------------------------------------------------------------------------------------ M08, M09: neighbours


def test_M08_crashes_do_not_change_a_neighbours_result(front):
    def pair(n):
        with ThreadPoolExecutor(2) as two:
            doomed = two.submit(crash, front, n)
            good = two.submit(front.python, f"print(sum(i * i for i in range(1000)), {n})")
            return doomed.result() is True and good.result()["stdout"] == f"332833500 {n}\n"

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(pair, range(40 if front.mode == "root" else 20)))


@pytest.mark.undisturbed
@pytest.mark.alone  # about who gets the processor
@pytest.mark.modes("root")
def test_M09_a_busy_tenant_leaves_room(front):
    busy = ("import os, time\nfor _ in range(3): os.fork()\nf = os.open('/tmp/x', os.O_CREAT | os.O_RDWR)\nend = time.monotonic() + 4\n"
            "while time.monotonic() < end:\n    os.pwrite(f, b'x', 0); os.fsync(f)\n    if os.fork() == 0: os._exit(0)\n    os.wait()")
    popen = front.popen(["run", "-l", "python", "--cpus", "0.5", "--timeout", "4", "-c", busy])
    time.sleep(0.3)
    times = [front.python("print(1)")["_elapsed"] for _ in range(15)]
    popen.kill()
    popen.communicate(timeout=25)
    assert statistics.median(times) < 0.5 and max(times) < 5, times
