# SPDX-License-Identifier: Apache-2.0
"""M01–M09 and M11 of notes/security.md §3.8 in warm cells (M07 needs sessions, M10 an option that does not exist yet).

Every Python program here is warm, or the test fails (resident.py). What a warm program has that a cold one has not is
descriptor 100, its socket to the broker: much of this attacks through that.
"""
import contextlib
import json
import os
import re
import secrets
import statistics
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import oracle
from conftest import Atoll
from probe import probe
from residue import DIRT, RESIDUE, SEARCH
from resident import Pool

pytestmark = pytest.mark.cold("it is about warm cells")
quick = pytest.mark.quick
needs_root = pytest.mark.skipif(not oracle.IS_ROOT, reason="looks into other users' processes: needs root")


@pytest.fixture
def front(mode, residents):
    """Warm runs through the session's pool."""
    return residents.front(mode)


@pytest.fixture
def own(mode, stage, work):
    """own(*options): a pool of the test's own."""
    pools = []

    def start(*options, **more):
        pools.append(Pool(Atoll(mode, stage), work / f"pool{len(pools)}", *options, **more))
        return pools[-1]

    yield start
    for pool in pools:
        pool.end()


def a_secret():
    return "reef-secret-" + secrets.token_hex(16)


def processes_with(word):
    """Host pids of processes that have the word on their command line, in their name or in their environment."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            text = Path(f"/proc/{entry}/cmdline").read_bytes() + Path(f"/proc/{entry}/comm").read_bytes()
        except OSError:
            continue
        if word.encode() in text and b"atoll" not in text:
            found.append(int(entry))
    return found


def residue(front, **more):
    result = front.python(RESIDUE, **more)
    assert result["status"] == "success", result
    return json.loads(result["stdout"])


def differences(one, other):
    found = {}
    for key in one.keys() | other.keys():
        a, b = one.get(key), other.get(key)
        if isinstance(a, dict) and isinstance(b, dict):
            found.update({f"{key}.{k}": v for k, v in differences(a, b).items()})
        elif isinstance(a, str) and isinstance(b, str) and a != b:
            found[key] = sorted(set(a.splitlines()) ^ set(b.splitlines())) or (a, b)
        elif isinstance(a, list) and isinstance(b, list) and a != b:
            found[key] = [x for x in a if x not in b], [x for x in b if x not in a]
        elif a != b:
            found[key] = (a, b)
    return found


@contextlib.contextmanager
def soiled(front, secret, options=()):
    """While a tenant lives that has left its secret wherever it can."""
    popen = front.popen(["run", "-l", "python", *options, "-c", DIRT, "--", secret])
    try:
        line = popen.stdout.readline()
        assert line == b"ready\n", (line, popen.stderr.read())
        yield
        _, err = popen.communicate(b"\n", timeout=15)
        assert popen.returncode == 0, err
    finally:
        popen.kill()


# ------------------------------------------------------------------------------------ M01, M02: residue


@quick
def test_M01_secrets_are_not_found(front):
    """Beside the tenant that has them, and by everybody who comes next: in files, sockets, counters and memory."""
    secret = a_secret()
    with soiled(front, secret):
        beside = [probe_search(front) for _ in range(2)]
    after = [probe_search(front) for _ in range(8)]
    for found, mapped in beside + after:
        assert mapped > 4 << 20 and found == [], found


def probe_search(front):
    result = front.python(SEARCH)
    assert result["status"] == "success", result
    return json.loads(result["stdout"])


@pytest.mark.parametrize("network", ["none", "loopback"])
def test_M02_a_cell_is_as_on_the_first_day(front, network):
    """All that can be seen of it: before anybody was there, beside a tenant that changed all it could, and after."""
    options = ["--network", network]
    first = residue(front, options=options)
    with soiled(front, a_secret(), options):
        assert differences(first, residue(front, options=options)) == {}
    for _ in range(10):  # more than there are spares: what was used comes round
        assert differences(first, residue(front, options=options)) == {}


QUIET = {
    "flow label": "socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).setsockopt(41, 32, b'\\x20\\x01' + b'hi' * 7 + struct.pack('!I', 0x12345)"
                  " + struct.pack('=BBHHHI', 0, 1, 1, 60, 60, 0))",
    "multicast": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).setsockopt(0, 35, socket.inet_aton('239.1.2.3') + bytes(4))",
    "multicast 6": "socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).setsockopt(41, 20, socket.inet_pton(10, 'ff02::4711') + struct.pack('I', 1))",
    "anycast": "socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).setsockopt(41, 27, socket.inet_pton(10, '2001:db8::1') + struct.pack('I', 1))",
    "udp": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).bind(('', 4711))",
    "unix": "s = socket.socket(socket.AF_UNIX); s.bind('\\0left'); s.listen()",
    "netlink": "s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0); s.bind((4711, 0xffff)); s.send(struct.pack('=IHHII', 20, 18, 0x301, 1, 0) + bytes(4))",
}


@pytest.mark.parametrize("what", list(QUIET))
def test_M02_what_counts_nothing_is_not_left_either(front, what):
    """A network namespace may be used again; these leave no trace in its counters, one by one."""
    first = residue(front)
    made = front.python(f"import socket, struct\ntry: {QUIET[what]}\nexcept OSError as e: print(e)")
    assert made["status"] == "success", made
    for _ in range(8):
        assert differences(first, residue(front)) == {}, made["stdout"]


def test_M02_a_warm_cell_looks_like_a_cold_one(front):
    cold, warm = json.loads(Atoll(front.mode, front.stage).python("pass\n" + RESIDUE)["stdout"]), residue(front)
    # The kernel shows a place of fixed size: what there is of it is the program's, and zeros behind that.
    for name in ("cmdline", "environ"):
        assert cold[name].startswith(warm[name].rstrip("\0")) and len(warm[name].rstrip("\0")) > 20, (name, warm[name])
        cold[name] = warm[name] = None
    assert differences(cold, warm) == {}


def test_M02_daemons_die_with_their_tenant(front):
    secret = a_secret()
    with soiled(front, secret):
        deadline = time.monotonic() + 3
        while len(processes_with(f"daemon-{secret}")) != 2:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    deadline = time.monotonic() + 0.5
    while processes_with(f"daemon-{secret}"):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_M02_state_of_the_interpreter(front):
    """What Python itself keeps: a tenant that turned everything upside down is not felt by the next."""
    state = """
import builtins, gc, json, random, sys, tempfile, threading, os, signal, warnings, locale, codecs
out = dict(modules=sorted(sys.modules), builtins=sorted(vars(builtins)), path=sys.path, recursion=sys.getrecursionlimit(), tempdir=tempfile.tempdir,
    threads=threading.active_count(), gc=[gc.isenabled(), gc.get_threshold(), gc.callbacks], hooks=[str(sys.excepthook), str(sys.displayhook), len(sys.meta_path),
    len(sys.path_hooks)], trace=sys.gettrace(), switch=sys.getswitchinterval(), names=sorted(globals()), filters=str(warnings.filters), locale=locale.setlocale(0),
    signals={s: str(signal.getsignal(s)) for s in range(1, 32)}, environ=sorted(os.environ), argv=sys.argv, cwd=os.getcwd(), digits=sys.get_int_max_str_digits())
print(json.dumps(out))
"""
    upset = """
import builtins, gc, sys, locale, codecs, os, random, signal, atexit, warnings, threading
sys.path[:] = ['/left']; sys.setrecursionlimit(99999); gc.disable(); gc.set_threshold(1); gc.callbacks.append(print); builtins.left = 1
sys.excepthook = sys.displayhook = print; sys.meta_path.clear(); sys.settrace(lambda *a: None); sys.setswitchinterval(1); sys.set_int_max_str_digits(0)
warnings.simplefilter('error'); signal.signal(2, signal.SIG_IGN); os.environ.clear(); os.chdir('/tmp'); sys.modules['json'] = None; del builtins.len
os._exit(0)
"""
    first = front.probe(state)
    for _ in range(3):
        assert front.python(upset)["exit_code"] == 0
        assert differences(first, front.probe(state)) == {}


# ------------------------------------------------------------------------------------ M03, M11: users


def tagged(front, tag, options=()):
    """A warm program that carries a name until it is fed a line; its host pid."""
    code = f"import ctypes, sys\nctypes.CDLL(None).prctl(15, b'{tag}', 0, 0, 0)\nprint('up', flush=True)\nsys.stdin.readline()"
    popen = front.popen(["run", "-l", "python", *options, "-c", code])
    line = popen.stdout.readline()
    assert line == b"up\n", (line, popen.stderr.read())
    pids = processes_with(tag)
    assert len(pids) == 1, pids
    return popen, pids[0]


def host_uid(pid):
    return int(re.search(r"^Uid:\s+(\d+)", Path(f"/proc/{pid}/status").read_text(), re.M)[1])


@needs_root
def test_M03_tenants_are_different_users(front):
    runs = [tagged(front, "reef" + secrets.token_hex(4)) for _ in range(3)]
    try:
        uids = [host_uid(pid) for _, pid in runs]
        spaces = {(kind, os.readlink(f"/proc/{pid}/ns/{kind}")) for _, pid in runs for kind in ("user", "pid", "mnt", "net", "ipc", "uts", "cgroup")}
        zygotes = front.pool.zygotes()
        shared = {os.readlink(f"/proc/{zygotes[0]}/ns/{kind}") for kind in ("user", "pid", "mnt", "net", "ipc", "uts")} if zygotes else set()
        status = Path(f"/proc/{runs[0][1]}/status").read_text()
    finally:
        for popen, _ in runs:
            popen.communicate(b"\n", timeout=10)
    assert len(spaces) == 3 * 7 and not shared & {name for _, name in spaces}
    assert "Seccomp:\t2" in status and "NoNewPrivs:\t1" in status and "CapPrm:\t0000000000000000" in status and "CapBnd:\t0000000000000000" in status
    if front.rootless:
        assert set(uids) == {oracle.NOBODY}
    else:
        assert len(set(uids)) == 3 and all(uid in oracle.SANDBOX_UIDS for uid in uids)
        assert not set(uids) & {host_uid(z) for z in zygotes}


@needs_root
@pytest.mark.modes("root")
def test_M11_a_uid_has_one_sandbox_at_a_time(front):
    """Watched from outside while many come and go, spares included."""
    stop, wrong, seen = threading.Event(), [], set()

    def watch():
        while not stop.is_set():
            owners = {}
            for pid in front.pool.below():
                try:
                    uid, space = host_uid(pid), os.readlink(f"/proc/{pid}/ns/pid")
                    state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
                except OSError:
                    continue
                if uid in oracle.SANDBOX_UIDS and state not in "ZX" and space != os.readlink("/proc/self/ns/pid"):
                    owners.setdefault(uid, set()).add(space)
            seen.update(owners)
            wrong.extend((uid, spaces) for uid, spaces in owners.items() if len(spaces) > 1)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        with ThreadPoolExecutor(4) as pool:
            ends = list(pool.map(lambda n: front.python("import time; time.sleep(0.02)")["status"], range(60)))
    finally:
        stop.set()
        watcher.join()
    assert ends == ["success"] * 60 and wrong == [] and len(seen) > 3, (wrong, len(seen))


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
out['open'] = [attempt(os.open, '/proc/self/fd/100', os.O_RDWR), attempt(os.open, '/proc/1/fd/100', os.O_RDWR)]
out['kill'] = sorted({attempt(os.kill, pid, 0) for pid in range(3, 70000)})
out['pidfd_open'] = sorted({sc(434, pid, 0) for pid in list(range(3, 3000))})
say(out)
""")
    assert seen["peer"][0] == 0 and seen["ppid"] == 1 and seen["proc"] == ["2"] and seen["names"] == ["", ""], seen
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
    """Whatever else is said: the run goes on, and ends with what the kernel tells of it."""
    result = front.python(f"import os, time\nos.write(100, {SAYINGS[what]!r})\ntime.sleep(0.05)\nprint('on', flush=True)\nos._exit(7)")
    assert (result["stdout"], result["status"], result["exit_code"], result["cause"]["kind"]) == ("on\n", "error", 7, "exit"), result


def test_M04_floods_and_descriptors(front):
    before = pool_fds(front)
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
    deadline = time.monotonic() + 3
    while pool_fds(front) > before + 40:  # spares come and go
        assert time.monotonic() < deadline, (before, pool_fds(front))
        time.sleep(0.05)


def pool_fds(front):
    return len(os.listdir(f"/proc/{front.pool.pid}/fd"))


WORDS = {
    "main": "os.write(100, b'5')",
    "thread": "threading.Thread(target=os.write, args=(100, b'5')).start()",
    "child": "os.fork() or os.write(100, b'5')",
    "daemon": "os.fork() or (os.setsid(), os.fork() or os.write(100, b'5'))",
    "executed": "os.set_inheritable(100, True); os.fork() or os.execv('/bin/sh', ['sh', '-c', 'printf 5 > /proc/self/fd/100 || python3 -c \"import os; os.write(100, bytes([53]))\"; sleep 9'])",
    "copy": "os.write(os.dup(100), b'5')",
}


@pytest.mark.parametrize("who", list(WORDS))
def test_M04_the_last_word_is_the_last(front, who):
    """Whoever of the program says it and however early: it means exit(5), at once, for everybody in the sandbox."""
    tag = "reef" + secrets.token_hex(4)
    code = (f"import ctypes, os, threading, time\nctypes.CDLL(None).prctl(15, b'{tag}', 0, 0, 0)\nprint('before', flush=True)\n"
            f"{WORDS[who]}\ntime.sleep(0.5)\nprint('after', flush=True)\nopen('late', 'w').write('x')\ntime.sleep(20)")
    result = front.python(code, options=["--timeout", "10"])
    assert (result["status"], result["exit_code"], result["signal"], result["cause"]["kind"]) == ("error", 5, None, "exit"), result
    assert result["stdout"] == "before\n" and result["files"] == [] and result["_elapsed"] < 5, result
    deadline = time.monotonic() + 1
    while processes_with(tag):
        assert time.monotonic() < deadline, "something of it still runs"
        time.sleep(0.01)


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
    result = front.python(f"import os, socket, sys\n{code}\nprint('x')\nsys.exit({end})", options=["--timeout", "5"])
    assert (result["stdout"], result["stderr"], result["exit_code"], result["cause"]["kind"]) == ("x\n", "", end, "exit"), result
    assert {f["size"] for f in result["files"]} <= {0}, result["files"]
    assert result["_elapsed"] < 3


def test_M04_waiting_at_the_socket_is_waiting(front):
    result = front.python("import os\nos.read(100, 1)", options=["--timeout", "400ms"])
    assert result["status"] == "timeout" and result["_elapsed"] < 3, result


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


def test_M04_crash_loops(front):
    """Two hundred deaths of every kind: the zygote they came from lives, and who comes next sees nothing of them."""
    first = residue(front)
    zygotes, pid = set(front.pool.zygotes()), front.pool.pid
    with ThreadPoolExecutor(4) as pool:
        ends = list(pool.map(lambda n: crash(front, n), range(200 if front.mode == "root" else 50)))
    assert set(map(str, ends)) == {"True"}, [e for e in ends if e is not True][:5]
    assert zygotes <= set(front.pool.zygotes()) and zygotes and front.pool.popen.poll() is None and front.pool.pid == pid
    for _ in range(5):
        assert differences(first, residue(front)) == {}


# ------------------------------------------------------------------------------------ M05: random numbers


DRAWS = """
import json, os, random, secrets, ssl, sqlite3, tempfile, uuid, multiprocessing, multiprocessing.process, email.generator, threading, hashlib
out = dict(random=random.random(), bits=random.getrandbits(64), choice=''.join(random.choices('abcdefgh', k=30)), own=random.Random().random(),
    system=random.SystemRandom().random(), secrets=secrets.token_hex(8), urandom=os.urandom(8).hex(), getrandom=os.getrandom(8).hex(),
    uuid1=str(uuid.uuid1()), node=uuid.getnode(), uuid4=str(uuid.uuid4()), temp=next(tempfile._get_candidate_names()), mkstemp=tempfile.mkstemp()[1],
    tls=ssl.RAND_bytes(8).hex(), sqlite=sqlite3.connect(':memory:').execute('select hex(randomblob(8))').fetchone()[0],
    authkey=bytes(multiprocessing.process.current_process().authkey).hex(), boundary=email.generator._make_boundary())
try:
    import numpy as np
    out.update(rand=float(np.random.rand()), integers=int(np.random.randint(1 << 62)), normal=float(np.random.normal()), rng=float(np.random.default_rng().random()),
        permutation=np.random.permutation(30).tolist(), state=int(np.random.get_state()[1][5]), seed=str(np.random.SeedSequence().entropy),
        philox=int(np.random.Philox().random_raw()), legacy=float(np.random.RandomState().rand()))
except ImportError: pass
out['hash'] = hash('reef')
print(json.dumps(out))
"""


def draw(front, options=()):
    return front.probe(DRAWS, options=options)


@pytest.mark.parametrize("tier", ["base", "numpy"])
def test_M05_siblings_draw_different_numbers(front, tier):
    """Of everything that draws. What the interpreter fixed when it started, the seed of its hashes, siblings share: that is
    documented, and ends with the zygote."""
    code = DRAWS if tier == "numpy" else DRAWS.replace("import numpy as np", "raise ImportError")
    draws = [front.probe(code) for _ in range(6)]
    shared = [key for key in draws[0] if len({str(d[key]) for d in draws}) < len(draws)]
    if len(set(front.pool.zygotes())) == 1:
        assert len({d["hash"] for d in draws}) == 1
    assert [key for key in shared if key != "hash"] == []
    assert tier == "base" or "rand" in draws[0]


SCRIPTS = {
    "ruby": "require 'securerandom'; require 'tmpdir'; puts [rand, Random.rand, Random.new.rand, SecureRandom.hex(8), [*1..40].shuffle.join, Random.new_seed, Dir.mktmpdir].join(' ')",
    "perl": "use File::Temp 'tempfile'; my ($h, $n) = tempfile(); print join ' ', rand, int(rand(1e15)), $n, join('', sort { rand() <=> rand() } 'a'..'p')",
    "php": "<?php echo implode(' ', [mt_rand(), rand(), random_int(0, PHP_INT_MAX), lcg_value(), uniqid('', true), bin2hex(random_bytes(8)), str_shuffle('abcdefghijklmnopqrst'), implode(array_rand(array_flip(range(1, 99)), 9)), tempnam('/tmp', 'x')]);",
    "bash": "echo $RANDOM$RANDOM$RANDOM $SRANDOM $(mktemp)",
    "lua": "print(math.random(), math.random(1 << 62), os.tmpname())",
    "javascript": "const c = require('crypto'), fs = require('fs'); console.log(Math.random(), Math.random(), c.randomUUID(), c.randomBytes(8).toString('hex'), fs.mkdtempSync('/tmp/x'))",
}


@pytest.mark.parametrize("language", list(SCRIPTS))
def test_M05_other_languages(front, language):
    """Word by word, over several runs through the pool."""
    rows = []
    for _ in range(7):
        result = front.result(["-l", language, "-c", SCRIPTS[language]])
        if result["status"] == "setup_error":
            pytest.skip(f"{language} is not installed")
        assert result["status"] == "success", result
        rows.append(result["stdout"].split())
        time.sleep(0.05)
    same = [(i, column) for i, column in enumerate(zip(*rows)) if len(set(column)) < len(rows)]
    assert same == [], same


@pytest.mark.modes("root")
def test_M05_a_new_zygote_has_a_new_seed(own):
    front = own("--rotate-forks", "4", "--spares", "2").front()
    draws, zygotes = [], set()
    deadline = time.monotonic() + 30
    while len({d["hash"] for d in draws}) < 3:
        assert time.monotonic() < deadline, "it is not replaced"
        draws.append(draw(front))
        zygotes |= set(front.pool.zygotes())
    assert len(zygotes) >= 3
    assert len({d["random"] for d in draws}) == len({d["authkey"] for d in draws}) == len(draws)


# ------------------------------------------------------------------------------------ M06: memory


def memory_has(pid, needle):
    """Where in a process's memory the bytes are. As root, from outside."""
    found = []
    try:
        maps = Path(f"/proc/{pid}/maps").read_text().splitlines()
        memory = open(f"/proc/{pid}/mem", "rb", 0)
    except OSError:
        return []  # gone meanwhile
    with memory as mem:
        for line in maps:
            first, last = (int(x, 16) for x in line.split()[0].split("-"))
            if "r" not in line.split()[1] or "[v" in line:
                continue
            try:
                mem.seek(first)
                if needle in mem.read(last - first):
                    found.append(line.strip())
            except (OSError, ValueError):
                pass
    return found


@quick
@needs_root
def test_M06_no_byte_of_a_tenant_stays_outside(front, work):
    """In its code, input, arguments, variables, files and output: neither the zygote nor the broker nor a spare has it."""
    secret = a_secret()
    (work / "data").write_text(secret)
    (work / "data").chmod(0o644)
    code = f"import os, sys\nx = [{secret!r} * 50, sys.stdin.read(), sys.argv, os.environ['TOKEN'], open('data').read()]\nprint(x)\nopen('out', 'w').write(str(x))\n"
    popen = front.popen(["run", "-l", "python", "--file", f"data={work}/data", "--env", f"TOKEN={secret}", "-c",
                         code + "sys.stdout.flush()\nprint('ready', flush=True)\nimport time; time.sleep(0.5)", "--", secret])
    popen.stdin.write(secret.encode())
    popen.stdin.close()
    popen.stdin = None
    while popen.stdout.readline() not in (b"ready\n", b""):
        pass
    holders = [p for p in front.pool.below() if memory_has(p, secret.encode())]
    during = {p: memory_has(p, secret.encode()) for p in front.pool.zygotes() + front.pool.zygotes("forge")}
    popen.communicate(timeout=10)
    assert popen.returncode == 0 and holders, "the scan finds nothing even where the secret is"
    assert during and not any(during.values()), during
    time.sleep(0.3)
    after = {p: memory_has(p, secret.encode()) for p in [front.pool.pid, *front.pool.below()]}
    assert len(after) > 1 and not any(after.values()), {p: (v, oracle.command_line(p)) for p, v in after.items() if v}


# ------------------------------------------------------------------------------------ M08, M09: neighbours


def test_M08_crashes_do_not_change_a_neighbours_result(front):
    def pair(n):
        with ThreadPoolExecutor(2) as two:
            doomed = two.submit(crash, front, n)
            good = two.submit(front.python, f"print(sum(i * i for i in range(1000)), {n})")
            return doomed.result() is True and good.result()["stdout"] == f"332833500 {n}\n"

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(pair, range(60 if front.mode == "root" else 20)))


@pytest.mark.modes("root")
def test_M09_a_busy_tenant_leaves_room(front):
    busy = ("import os, time\nfor _ in range(3): os.fork()\nf = os.open('/tmp/x', os.O_CREAT | os.O_RDWR)\nend = time.monotonic() + 4\n"
            "while time.monotonic() < end:\n    os.pwrite(f, b'x', 0); os.fsync(f)\n    if os.fork() == 0: os._exit(0)\n    os.wait()")
    popen = front.popen(["run", "-l", "python", "--cpus", "0.5", "--timeout", "4", "-c", busy])
    time.sleep(0.3)
    times = [front.python("print(1)")["_elapsed"] for _ in range(15)]
    popen.kill()
    popen.communicate(timeout=10)
    assert statistics.median(times) < 0.5 and max(times) < 2, times


# ------------------------------------------------------------------------------------ hosts that lack something


LACKS = {"clone3": (("clone3",), None), "openat2": (("openat2",), None),
         "landlock": (("landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"), None),
         "close_range": (("close_range",), None), "forced": ((), "landlock,clone3,openat2"), "no-landlock": ((), "landlock")}


@pytest.mark.parametrize("lack", list(LACKS))
def test_a_pool_on_a_poorer_host(mode, stage, own, enosys, canary, lack):
    """Warm where it can be, and closed in any case."""
    calls, forced = LACKS[lack]
    pool = own(wrap=enosys(*calls) if calls else (), env={"ATOLL_FORCE_OFF": forced} if forced else None)
    front = pool.any_front().variant(env={"ATOLL_FORCE_OFF": forced} if forced else None)
    warm = False
    deadline = time.monotonic() + 3
    while not warm and time.monotonic() < deadline:
        result = front.python(f"""
import ctypes, errno, json, os, socket
def attempt(f, *args):
    try: f(*args); return 'ok'
    except OSError as e: return errno.errorcode.get(e.errno, str(e))
def connect(a): socket.socket(socket.AF_UNIX).connect(a)
status = dict(l.split(':', 1) for l in open('/proc/self/status').read().splitlines())
t = {str(canary.public)!r}
print(json.dumps([os.path.exists('/proc/self/fd/100'), [status[n].strip() for n in ('CapPrm', 'CapEff', 'CapBnd', 'NoNewPrivs', 'Seccomp')],
    [attempt(open, p) for p in (t, '/proc/1/root' + t, '../' * 30 + t[1:])] + [attempt(open, '/usr/bin/env', 'ab'), attempt(open, '/planted', 'w'),
     attempt(socket.create_connection, ('127.0.0.1', {canary.port}), 0.5), attempt(connect, '\\0' + {canary.abstract!r}), attempt(connect, {canary.path!r})],
    sorted(p for p in os.listdir('/proc') if p.isdigit()), [fd for fd in range(1024) if attempt(os.fstat, fd) == 'ok' and fd != 100]]))
""")
        if result["status"] != "success":
            assert result["status"] in ("denied", "internal_error") and result["cause"]["detail"], result
            pytest.skip(f"without {lack} nothing runs here, and the product says so: {result['cause']['detail']}")
        warm, rights, tries, processes, fds = json.loads(result["stdout"])
        assert rights == ["0" * 16] * 3 + ["1", "2"] and "ok" not in tries and processes == ["2"] and fds == [0, 1, 2], result["stdout"]
        assert ("landlock" in result["isolation"]["missing"]) == (lack in ("landlock", "forced", "no-landlock"))
    assert not canary.reached
    if not warm:
        pytest.skip(f"without {lack} there are no warm cells here; everything ran cold")
