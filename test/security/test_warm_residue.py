# SPDX-License-Identifier: Apache-2.0
"""M01–M03, M06 and M11 of test/security/cases.md in warm cells: what one tenant leaves, the next does not find.

Every Python program here is warm, or the test fails (resident.py).
"""
import contextlib
import json
import os
import re
import secrets
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import oracle
from program import Atoll
from residue import RESIDUE, SEARCH, a_secret, differences, processes_with, residue, soiled
from resident import front, own

pytestmark = pytest.mark.cold("it is about warm cells")
quick = pytest.mark.quick
needs_root = pytest.mark.skipif(not oracle.IS_ROOT, reason="looks into other users' processes: needs root")


# ------------------------------------------------------------------------------------ M01, M02: residue


@quick
def test_M01_secrets_are_not_found(front):
    """Beside the tenant that has them, and by every later tenant: in files, sockets, counters and memory."""
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


def test_M02_a_cell_is_as_on_the_first_day(front):
    """All that can be seen of it: before the first tenant, beside a tenant that changed all it could, and after."""
    first = residue(front)
    with soiled(front, a_secret()):
        assert differences(first, residue(front)) == {}
    for _ in range(10):  # more than there are spares: what was used comes round
        assert differences(first, residue(front)) == {}


QUIET = {
    "flow label": "socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).setsockopt(41, 32, b'\\x20\\x01' + b'hi' * 7 + struct.pack('!I', 0x12345)"
                  " + struct.pack('=BBHHHI', 0, 1, 1, 60, 60, 0))",
    "multicast": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).setsockopt(0, 35, socket.inet_aton('239.1.2.3') + bytes(4))",
    "multicast 6": "socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).setsockopt(41, 20, socket.inet_pton(10, 'ff02::4711') + struct.pack('I', 1))",
    "anycast": "socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).setsockopt(41, 27, socket.inet_pton(10, '2001:db8::1') + struct.pack('I', 1))",
    "udp": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).bind(('', 4711))",
    "unix": "s = socket.socket(socket.AF_UNIX); s.bind('\\0left'); s.listen()",
    "tcp": "s = socket.socket(); s.bind(('127.0.0.1', 4711)); s.listen()",
    "route": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(('127.0.0.1', 9))",
    "route 6": "socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).connect(('::1', 9))",
    "datagram": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9))",
    "connection": "s = socket.create_server(('127.0.0.1', 4711)); c = socket.create_connection(('127.0.0.1', 4711)); a = s.accept()[0]; a.close(); c.close()",
    "listener in flight": "a, b = socket.socketpair(); s = socket.create_server(('127.0.0.1', 4711)); "
                          "socket.send_fds(a, [b'x'], [b.fileno(), s.fileno()]); socket.send_fds(b, [b'x'], [a.fileno()])",
    "netlink": "s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0); s.bind((4711, 0xffff)); s.send(struct.pack('=IHHII', 20, 18, 0x301, 1, 0) + bytes(4))",
}


@pytest.mark.parametrize("what", list(QUIET))
def test_M02_what_counts_nothing_is_not_left_either(front, what):
    """A network namespace may be used again, but never one in which any of these, one by one, can still be seen."""
    first = residue(front)
    made = front.python(f"import socket, struct\ntry: {QUIET[what]}\nexcept OSError as e: print(e)")
    assert made["status"] == "success", made
    for _ in range(8):
        assert differences(first, residue(front)) == {}, made["stdout"]


@pytest.mark.modes("root")
def test_M02_network_namespaces_come_round(front):
    """That they are used again at all; else the tests above show nothing, and every run pays for a new one."""
    seen = [front.python("import os; print(os.readlink('/proc/self/ns/net'))")["stdout"] for _ in range(24)]
    assert len(set(seen)) < len(seen), seen


def test_M02_a_warm_cell_looks_like_a_cold_one(front):
    cold, warm = json.loads(Atoll(front.mode, front.stage).python("pass\n" + RESIDUE)["stdout"]), residue(front)
    # The kernel shows a place of fixed size: what there is of it is the program's, and zeros behind that.
    for name in ("cmdline", "environ"):
        assert cold[name].startswith(warm[name].rstrip("\0")) and len(warm[name].rstrip("\0")) > 20, (name, warm[name])
        cold[name] = warm[name] = None
    # A broker's first sandbox is cloned beside its own confinement; those that come later inherit the broker's filter, too.
    assert differences(cold, warm) == {"status.Seccomp_filters": (["1"], ["2"])}


def test_M02_daemons_die_with_their_tenant(front):
    secret = a_secret()
    with soiled(front, secret):
        deadline = time.monotonic() + 20
        while len(processes_with(f"daemon-{secret}")) != 2:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    deadline = time.monotonic() + 20
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
    runs = [tagged(front, "toy" + secrets.token_hex(4)) for _ in range(3)]
    try:
        uids = [host_uid(pid) for _, pid in runs]
        spaces = {(kind, os.readlink(f"/proc/{pid}/ns/{kind}")) for _, pid in runs for kind in ("user", "pid", "mnt", "net", "ipc", "uts", "cgroup")}
        zygotes, shared = set(), set()
        for pid in front.pool.zygotes():
            with contextlib.suppress(OSError):  # replaced meanwhile
                zygotes.add(host_uid(pid))
                shared |= {os.readlink(f"/proc/{pid}/ns/{kind}") for kind in ("user", "pid", "mnt", "net", "ipc", "uts")}
        status = Path(f"/proc/{runs[0][1]}/status").read_text()
    finally:
        for popen, _ in runs:
            popen.communicate(b"\n", timeout=25)
    assert len(spaces) == 3 * 7 and not shared & {name for _, name in spaces}
    assert "Seccomp:\t2" in status and "NoNewPrivs:\t1" in status and "CapPrm:\t0000000000000000" in status and "CapBnd:\t0000000000000000" in status
    if front.rootless:
        assert set(uids) == {oracle.NOBODY}
    else:
        assert len(set(uids)) == 3 and all(uid in oracle.SANDBOX_UIDS for uid in uids)
        assert not set(uids) & zygotes


@needs_root
@pytest.mark.modes("root")
def test_M11_a_uid_has_one_sandbox_at_a_time(front):
    """Watched from outside while many come and go, spares included."""
    stop, wrong, seen = threading.Event(), [], set()

    def owner(pid):
        with contextlib.suppress(OSError):
            uid, space = host_uid(pid), os.readlink(f"/proc/{pid}/ns/pid")
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
            if uid in oracle.SANDBOX_UIDS and state not in "ZX" and space != os.readlink("/proc/self/ns/pid"):
                return uid, space
        return None

    def watch():
        while not stop.is_set():
            owners = {}
            for pid in front.pool.below():
                if who := owner(pid):
                    owners.setdefault(who[0], {})[who[1]] = pid
            seen.update(owners)
            # A walk takes a while: one may be gone before another came. Two that are both still there are too many.
            wrong.extend((uid, spaces) for uid, spaces in owners.items()
                         if len(spaces) > 1 and all(owner(pid) == (uid, space) for space, pid in spaces.items()))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        with ThreadPoolExecutor(4) as pool:
            ends = list(pool.map(lambda n: front.python("import time; time.sleep(0.02)")["status"], range(60)))
    finally:
        stop.set()
        watcher.join()
    assert ends == ["success"] * 60 and wrong == [] and len(seen) > 3, (wrong, len(seen))


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
@pytest.mark.undisturbed
def test_M06_no_byte_of_a_tenant_stays_outside(own, work):
    """In its code, input, arguments, variables, files and output: neither the zygote nor the broker nor a spare has it."""
    front, secret = own("--spares", "4").front(), a_secret()  # the session's pool lets its zygotes go while we look
    (work / "data").write_text(secret)
    (work / "data").chmod(0o644)
    code = f"import os, sys\nx = [{secret!r} * 50, sys.stdin.read(), sys.argv, os.environ['TOKEN'], open('data').read()]\nprint(x)\nopen('out', 'w').write(str(x))\n"
    popen = front.popen(["run", "-l", "python", "--file", f"data={work}/data", "--env", f"TOKEN={secret}", "-c",
                         code + "sys.stdout.flush()\nprint('ready', flush=True)\nimport time; time.sleep(2)", "--", secret])
    popen.stdin.write(secret.encode())
    popen.stdin.close()
    popen.stdin = None
    while popen.stdout.readline() not in (b"ready\n", b""):
        pass
    holders = [p for p in front.pool.below() if memory_has(p, secret.encode())]
    during = {p: memory_has(p, secret.encode()) for p in front.pool.zygotes() + front.pool.zygotes("atoll-bare")}
    popen.communicate(timeout=25)
    assert popen.returncode == 0 and holders, "the scan finds nothing even where the secret is"
    assert during and not any(during.values()), during
    end = time.monotonic() + 5
    while True:
        after = {p: memory_has(p, secret.encode()) for p in [front.pool.pid, *front.pool.below()]}
        if not any(after.values()) or time.monotonic() > end:  # what is dead takes a moment to be gone
            break
    assert len(after) > 1 and not any(after.values()), {p: (v, oracle.command_line(p)) for p, v in after.items() if v}
