# SPDX-License-Identifier: Apache-2.0
"""R01–R18 of test/security/cases.md, less R16 (it needs the daemon's queue).

Where there is no cgroup (rootless without delegation) memory is held by rlimits and by the size of the
file systems; those tests then check that the program sees the refusal and the host does not.
"""
import contextlib
import json
import os
import time

import pytest

import busy
import turns
from probe import PRELUDE, probe

MIB = 1 << 20


def available():
    for line in open("/proc/meminfo"):
        if line.startswith("MemAvailable"):
            return int(line.split()[1]) * 1024
    return 0


def cgroup(result):
    return result["isolation"]["cgroup"] != "none"


def run_within(mib, run, mib_without_cgroup=None):
    """The result of run(), after which so much of the host's memory may be gone. What others take meanwhile is theirs."""
    for turn in (contextlib.nullcontext, turns.alone):
        watch = busy.Watch()
        with turn():
            before = available()
            result = run()
            taken = before - available() >> 20
        most = mib if cgroup(result) else mib_without_cgroup or mib
        if taken < most:
            return result
    watch.judge(AssertionError(f"{taken} MiB of the host are gone"))


@pytest.mark.any_landlock
def test_R01_balloon(box):
    result = run_within(512, lambda: box.python("x = []\nwhile True: x.append(bytearray(8 << 20))",
                                                options=["-m", "96m", "--timeout", "10"]))
    if cgroup(result):
        assert (result["status"], result["cause"]["kind"], result["exit_code"]) == ("limit", "memory", 137), result
    else:
        assert result["status"] in ("error", "limit") and "MemoryError" in result["stderr"], result


WAYS = {
    "tmpfs": "f = open('/tmp/x', 'wb', 0)\nwhile True: f.write(b'x' * (1 << 20))",
    "shm": "f = open('/dev/shm/x', 'wb', 0)\nwhile True: f.write(b'x' * (1 << 20))",
    "memfd": "f = os.memfd_create('x')\nwhile True: os.write(f, b'x' * (1 << 20))",
    "sysv": "l = libc\nl.shmat.restype = ctypes.c_void_p\n"
            "for i in range(64):\n    s = l.shmget(0, 8 << 20, 0o1600)\n    if s < 0: raise OSError(ctypes.get_errno(), 'shmget')\n"
            "    a = l.shmat(s, None, 0); ctypes.memset(a, 1, 8 << 20)",
    "pipes": "import fcntl\np = []\nwhile True:\n    r, w = os.pipe(); p.append((r, w)); fcntl.fcntl(w, 4, os.O_NONBLOCK)\n"
             "    try:\n        while True: os.write(w, b'x' * 65536)\n    except BlockingIOError: pass",
    "sockets": "import socket\ns = []\nwhile True:\n    a, b = socket.socketpair(); a.setblocking(False); s.append((a, b))\n"
               "    try:\n        while True: a.send(b'x' * 65536)\n    except BlockingIOError: pass",
    "page tables": "import mmap\nm = []\nwhile True:\n    x = mmap.mmap(-1, 1 << 30, flags=0x4022); m.append(x)\n"
                   "    for i in range(0, 1 << 30, 2 << 20): x[i]",
    "tiny maps": "import mmap\nm = []\nwhile True: x = mmap.mmap(-1, 4096); x[0] = 1; m.append(x)",
    "eventfds": "l = []\nwhile True: l.append(os.eventfd(0))",
    "dentries": "n = 0\nwhile n < 60000:\n    attempt(os.stat, '/tmp/' + 'n' * 200 + str(n)); n += 1\nraise OSError(28, 'enough')",
}


@pytest.mark.parametrize("way", list(WAYS))
@pytest.mark.any_landlock
def test_R02_every_way_to_memory_is_bounded(box, way):
    options = ["-m", "64m", "--disk", "256m", "--file-size", "256m", "--timeout", "4", "--open-files", "1024"]
    result = run_within(256, lambda: box.python(PRELUDE + WAYS[way], options=options), 1024)
    if cgroup(result):
        assert result["status"] in ("limit", "error", "timeout"), result
        assert result["memory_peak"] <= 64 * MIB
    else:
        assert "cgroup-memory" in result["isolation"]["missing"]


SOCKETS = {
    "connections": """
l = socket.create_server(('127.0.0.1', 0))
a = socket.create_connection(l.getsockname())
s = [a, l.accept()[0]]
l.close()""",
    "datagrams": """
a = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
a.bind(('127.0.0.1', 0))
a.connect(a.getsockname())
s = [a]""",
}


@pytest.mark.parametrize("kind", list(SOCKETS))
@pytest.mark.any_landlock
@pytest.mark.modes("root")
def test_R02_what_sockets_hold_is_bounded(box, kind):
    """What can be received afterwards was the kernel's memory. Without a bound it is 30 times as much."""
    result = box.python("""
import socket
def fill(s):
    for x in s:
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF): x.setsockopt(socket.SOL_SOCKET, option, 1 << 22)
        x.setblocking(False)
    for x in s:
        try:
            for _ in range(400): x.send(bytes(50000))
        except OSError: pass
    return s
def empty(x):
    try:
        while got := len(x.recv(1 << 20)): yield got
    except OSError: pass
held = []
for _ in range(400):%s
    held += fill(s)
print(sum(sum(empty(x)) for x in held) >> 20)
""" % SOCKETS[kind].replace("\n", "\n    "), options=["-m", "64m", "--open-files", "1024", "--timeout", "20"])
    assert result["status"] == "limit" or result["exit_code"] == 0 and int(result["stdout"]) < 128, result


UNCHARGED = {
    "connections": """
while True:
    l = socket.socket()
    l.bind(('127.0.0.1', 0))
    l.listen(4096)
    held.append(l)
    for _ in range(4000):
        c = socket.socket()
        c.setblocking(False)
        c.connect_ex(l.getsockname())
        c.close()""",
    "routing sockets": """
ask = struct.pack('IHHIIBxHiII', 32, 18, 1, 1, 0, 0, 0, 1, 0, 0)
while True:
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    s.setblocking(False)
    held.append(s)
    for _ in range(300): s.send(ask)""",
}


@pytest.mark.parametrize("kind", list(UNCHARGED))
@pytest.mark.any_landlock
@pytest.mark.modes("root")
def test_R02_what_waits_in_sockets_ends_the_run(box, kind):
    """Connections that nothing accepts, answers that nothing receives: the kernel charges them to no cgroup."""
    result = box.python("import socket, struct\nheld = []" + UNCHARGED[kind], options=["-m", "64m", "--timeout", "60", "--open-files", "1024"])
    assert result["status"] == "limit" and result["cause"]["kind"] == "memory" and result["duration"] < 30, result


@pytest.mark.any_landlock
def test_R03_memory_of_a_child(box):
    result = box.python("import os, sys\np = os.fork()\nif p == 0:\n    x = bytearray(300 << 20); os._exit(0)\n"
                        "_, s = os.waitpid(p, 0)\nprint('told', s != 0, flush=True)\nsys.exit(42)",
                        options=["-m", "96m"])
    if cgroup(result):
        assert (result["status"], result["cause"]["kind"]) == ("limit", "memory"), result
    if result["exit_code"] == 42:
        assert result["stdout"] == "told True\n"


@pytest.mark.any_landlock
def test_R04_the_result_survives_the_out_of_memory_killer(box):
    """Many processes at the limit: init lives or the result still comes, and it says memory."""
    code = ("import os, time\nfor _ in range(6):\n    if os.fork() == 0:\n        x = []\n"
            "        while True: x.append(bytearray(4 << 20))\nx = []\nwhile True: x.append(bytearray(1 << 20)); time.sleep(0.001)")
    result = box.python(code, options=["-m", "64m", "--timeout", "5" if box.rootless else "40"])
    if cgroup(result):
        assert result["status"] == "limit" and result["cause"]["kind"] == "memory", result
    else:
        assert result["status"] in ("error", "limit", "timeout"), result


@pytest.mark.undisturbed
@pytest.mark.modes("root")
@pytest.mark.any_landlock
def test_R05_cpu_is_shared_fairly(box):
    """Busy threads within their quota; another sandbox still starts in reasonable time."""
    spin = "import os, time\nfor _ in range(2): os.fork()\nend = time.monotonic() + 1.5\nwhile time.monotonic() < end: pass"
    popen = box.popen(["run", "--json", "-l", "python", "--cpus", "0.6", "--timeout", "20", "-c", spin])
    time.sleep(0.3)
    starts = [box.bash(":")["_elapsed"] for _ in range(5)]
    result = json.loads(popen.communicate(timeout=25)[0])
    assert result["cpu_time"] / result["duration"] <= 0.6 * 1.15, result
    assert sorted(starts)[2] < 2.0, starts


@pytest.mark.cold("nothing runs")
@pytest.mark.modes("rootless")
@pytest.mark.parametrize("value", ["0", "-1", "nan", "NaN", "1e308", "1e999", "99999999999999999999", "-0.0", "0x1", "inf"])
@pytest.mark.any_landlock
def test_R06_limits_cannot_be_switched_off(box, value):
    done = box.run(["run", "-l", "bash", f"--timeout={value}", "-c", "echo ran"])
    assert done.returncode in (125, 126) and done.stdout == b"", done


FLOODS = {
    "stdout": "while True: os.write(1, b'x' * 65536)",
    "stderr": "while True: os.write(2, b'x' * 65536)",
    "both": "while True: os.write(1, b'x' * 65536); os.write(2, b'y' * 65536)",
    "nul": "while True: os.write(1, bytes(65536))",
    "lines": "while True: os.write(1, b'\\n' * 65536)",
}


@pytest.mark.parametrize("kind", list(FLOODS))
@pytest.mark.any_landlock
def test_R07_floods(box, measure, kind):
    result, peak = box.peak_kib(["-l", "python", "--output-total", "16m", "--timeout", "15", "-c", "import os\n" + FLOODS[kind]],
                                measure)
    assert (result["status"], result["cause"]["kind"]) == ("limit", "output"), result
    assert result["stdout_truncated"] or result["stderr_truncated"]
    assert peak < 24 * 1024, peak


@pytest.mark.any_landlock
def test_R08_input_that_is_not_read(box):
    done = box.run(["run", "-l", "bash", "-c", "echo x"], input=bytes(40 << 20))
    assert done.stdout == b"x\n" and done.returncode == 0
    done = box.run(["run", "-l", "bash", "-c", "exec <&-; sleep 0.2; echo x"], input=bytes(8 << 20))
    assert done.stdout == b"x\n" and done.returncode == 0
    done = box.run(["run", "-l", "bash", "-c", "head -c 5"], input=b"12345" + bytes(8 << 20))
    assert done.stdout == b"12345"


@pytest.mark.any_landlock
def test_R09_descriptors(box):
    result = box.python("import os\nl = []\ntry:\n    while True: l.append(os.open('/dev/null', 0))\n"
                        "except OSError as e: print(e.errno, len(l))")
    number, count = map(int, result["stdout"].split())
    assert number == 24 and 1015 <= count <= 1022 and result["status"] == "success"


@pytest.mark.undisturbed
def test_R10_disk_of_the_host(box):
    free = os.statvfs("/").f_bavail * os.statvfs("/").f_frsize
    result = box.bash("for d in / /usr /etc /var/tmp /home /run /tmp /sandbox /dev/shm /dev; do "
                      "head -c 30000000 /dev/zero > $d/big 2>&-; done; du -sm /sandbox /tmp | cut -f1; exit 1",
                      options=["--disk", "16m", "--file-size", "64m"])
    assert result["status"] == "limit" and result["cause"]["kind"] == "disk", result
    assert free - os.statvfs("/").f_bavail * os.statvfs("/").f_frsize < 64 * MIB


@pytest.mark.any_landlock
def test_R11_threads_and_stacks(box):
    code = ("import threading, os\nthreading.stack_size(256 << 20)\nn = 0\ne = threading.Event()\n"
            "try:\n    while n < 10000: threading.Thread(target=e.wait, daemon=True).start(); n += 1\n"
            "except (RuntimeError, MemoryError): pass\nprint(n, flush=True)\nos._exit(0)")
    result = box.python(code, options=["--pids", "64", "--timeout", "8"])
    assert int(result["stdout"]) <= 64 and result["exit_code"] == 0, result


@pytest.mark.any_landlock
def test_R12_timers_and_signals(box):
    seen = probe(box, """
import signal, resource
n = 0
timer = ctypes.c_int()
while n < 100000 and libc.timer_create(1, None, ctypes.byref(timer)) == 0: n += 1
signal.pthread_sigmask(signal.SIG_BLOCK, {34, 35})
m = 0
info = ctypes.create_string_buffer(128)
info[0] = 35; info[8] = b'\\xff'; info[9] = b'\\xff'; info[10] = b'\\xff'; info[11] = b'\\xff'
while m < 100000 and libc.syscall(129, os.getpid(), 35, info) == 0: m += 1
say([n, m, resource.getrlimit(resource.RLIMIT_SIGPENDING)])
""")
    assert seen[2][1] <= 8192 and seen[0] <= seen[2][1] and seen[1] <= seen[2][1], seen


def test_R13_one_sandbox_does_not_starve_another(box):
    """Per-user kernel counters (inotify instances): each sandbox has a user of its own when started as root."""
    if box.rootless:
        pytest.skip("rootless sandboxes share the caller's user, and with it the kernel's per-user counters; isolation.user says so")
    hog = ("import ctypes, sys\nl = ctypes.CDLL(None)\nn = 0\nwhile l.inotify_init1(0) >= 0: n += 1\n"
           "print(n, flush=True)\nsys.stdin.readline()")
    popen = box.popen(["run", "-l", "python", "-c", hog])
    taken = int(popen.stdout.readline())
    seen = probe(box, "say(libc.inotify_init1(0) >= 0)")
    popen.communicate(b"\n", timeout=25)
    assert taken >= 64 and seen is True


@pytest.mark.cold("a pool has its namespaces from elsewhere")
def test_R14_no_more_namespaces(box, enosys):
    poor = box.variant(wrap=enosys("clone3=ENOSPC", "clone-new=ENOSPC", "unshare=ENOSPC"))
    done = poor.run(["run", "-l", "bash", "-c", "echo ran"])
    assert done.returncode in (125, 126) and done.stdout == b"" and done.err.strip().count("\n") == 0, done
    done = poor.run(["run", "--json", "-l", "bash", "-c", "echo ran"])
    assert done.json()["status"] in ("internal_error", "denied", "setup_error") and done.json()["cause"]["detail"], done


@pytest.mark.modes("root")
def test_R15_no_swap(box, landlock):
    from oracle import list_cgroups
    before = list_cgroups() if not landlock.startswith("warm") else set()  # a cell's group was there before
    popen = box.popen(["run", "-l", "bash", "-m", "64m", "-c", "echo up; read"])
    popen.stdout.readline()
    found = []
    for group in list_cgroups() - before:
        for name in ("memory.memsw.limit_in_bytes", "memory.swap.max"):
            try:
                found.append(open(f"{group}/{name}").read().strip())
            except OSError:
                pass
    popen.communicate(timeout=25)
    if not found:
        pytest.skip("this kernel does not account for swap")
    assert str(64 * MIB) in found or "0" in found, found


COMPILE_BOMBS = {
    "initialiser": ("c", "int main[1 << 30] = {1};"),
    "templates": ("cpp", "template<int N> struct A { A<N+1> a; A<N+2> b; }; template<int N, class T> struct B : B<N+1, A<N>> {}; "
                         "int main() { B<0, int> b; }"),
    "/dev/zero": ("c", '#include "/dev/zero"\nint main(void) { return 0; }'),
    "/dev/stdin": ("c", '#include "/dev/stdin"\nint main(void) { return 0; }'),
    "macros": ("c", "#define A(x) x x x x x x x x x x\n#define B(x) A(A(A(x)))\n#define C(x) B(B(B(x)))\n"
                    "int main(void) { C(C(0;)) return 0; }"),
    "self": ("c", '#include __FILE__\nint main(void) { return 0; }'),
}


@pytest.mark.cold("compilers run cold")
@pytest.mark.any_landlock
@pytest.mark.parametrize("bomb", list(COMPILE_BOMBS))
def test_R17_compile_bombs(box, bomb):
    language, code = COMPILE_BOMBS[bomb]
    words = ["-l", language, "-m", "256m", "--timeout", "4", "--disk", "64m", "-c", code]
    result = run_within(1024, lambda: box.result(words, timeout=60))
    if bomb == "/dev/stdin" and result["status"] == "success":
        return  # nothing is on a compiler's standard input
    assert result["status"] in ("limit", "timeout", "error"), result
    assert [s["name"] for s in result["stages"]][0] == "compile" and result["exit_code"] != 0
    assert all(s["name"] == "compile" or s["exit_code"] is None for s in result["stages"]), result["stages"]
    assert "root:" not in result["stdout"] + result["stderr"]


def test_R18_small_writes_and_syncs(box):
    result = box.python("import os\nf = os.open('/tmp/x', os.O_CREAT | os.O_RDWR)\n"
                        "for n in range(5000): os.pwrite(f, b'x', n % 4096); os.fsync(f)\n"
                        "os.sync(); print('all')", options=["--timeout", "40"])
    assert result["stdout"] == "all\n" and result["status"] == "success"
