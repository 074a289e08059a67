# SPDX-License-Identifier: Apache-2.0
"""The minimal tier (src/box/place.h): the ids of test/security/cases.md that hold without namespaces, and what is particular to it."""
import os
import re
import secrets
import signal
import subprocess
import time

import pytest

import oracle
from daemon import Daemon
from probe import NR, probe
from resident import own, wait_until  # noqa: F401, a fixture
from test_kernel import check_table, syscall_table  # noqa: F401, a fixture

pytestmark = [pytest.mark.modes("root"), pytest.mark.cold("a cell has namespaces")]
MINIMAL = ["--isolation", "minimal"]
MIB = 1 << 20


def inside(atoll, code, **more):
    return probe(atoll, code, options=MINIMAL, **more)


def start(atoll, code):
    """A run that has said "up"."""
    popen = atoll.popen(["run", *MINIMAL, "-l", "bash", "-c", code])
    assert popen.stdout.readline() == b"up\n"
    return popen


def field(pid, name):
    return int(re.search(rf"^{name}:\s+(\d+)", oracle.read(f"/proc/{pid}/status"), re.M)[1])


def naps(nap):
    """Sandboxed processes that sleep so long."""
    return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if oracle.command_line(pid) == f"sleep {nap}"]


def test_the_result_says_what_held(atoll):
    result = atoll.python("import os; print(os.getcwd())", options=MINIMAL)
    assert re.fullmatch(r"/tmp/atoll/\d+/sandbox\n", result["stdout"]), result
    isolation = result["isolation"]
    assert isolation["tier"] == "minimal" and isolation["user"] == "unique" and isolation["net"] == "off"
    assert {"userns", "overlay", "proc"} <= set(isolation["missing"]) and isolation["landlock"] >= 1
    assert atoll.python("print(1)")["isolation"]["tier"] != "minimal", "nobody asked for it"


def test_paths_in_words_and_variables_are_its_own(atoll):
    code = "import os, sys; print(sys.argv[1], os.environ['HOME'], os.environ['A'])"
    words = atoll.python(code, "/sandbox/x", options=[*MINIMAL, "--env", "A=-I/tmp:/usr"])["stdout"].split()
    place = words[0].removesuffix("/sandbox/x")
    assert words == [f"{place}/sandbox/x", f"{place}/sandbox", "-I/tmp:/usr"], words


@pytest.mark.parametrize("options", [["--tty"], ["--workspace", "w"], ["--network", "none"]], ids=lambda o: o[0][2:])
def test_what_it_cannot_have_is_refused(atoll, options):
    done = atoll.run(["run", *MINIMAL, *options, "-l", "bash", "-c", "true"])
    assert done.returncode == 126 and options[0][2:] in done.err, done


def test_no_policy_is_replaced_by_it(atoll):
    for words in (["--policy", "strict", *MINIMAL], [*MINIMAL, "--policy", "strict"]):
        done = atoll.run(["run", *words, "-l", "bash", "-c", "true"])
        assert done.returncode != 0 and "give one of them" in done.err, done
    done = atoll.run(["run", "--isolation", "full", "-l", "bash", "-c", "true"])
    assert done.returncode != 0 and "is not minimal" in done.err, done
    assert atoll.bash("true", options=["--policy", "minimal", *MINIMAL])["isolation"]["tier"] == "minimal"


def test_without_landlock_it_is_refused(atoll):
    done = atoll.run(["run", *MINIMAL, "-l", "bash", "-c", "true"], env={"ATOLL_FORCE_OFF": "landlock"})
    assert done.returncode == 126 and "only Landlock keeps programs from the host's files" in done.err


@pytest.mark.modes("rootless")
def test_without_root_it_is_refused(atoll):
    done = atoll.run(["run", *MINIMAL, "-l", "bash", "-c", "true"])
    assert done.returncode == 126 and "takes root" in done.err


def test_P01_P02_no_privilege(atoll):
    seen = inside(atoll, """
caps = ctypes.create_string_buffer(24)
sc(125, ctypes.create_string_buffer(b'\\x22\\x05\\x08\\x20' + bytes(4)), caps)
say({'ids': [*os.getresuid(), *os.getresgid()], 'groups': os.getgroups(), 'caps': caps.raw.hex(), 'bounding': [libc.prctl(23, c, 0, 0, 0) for c in range(41)],
     'nnp': libc.prctl(39, 0, 0, 0, 0), 'setuid': attempt(os.setuid, 0), 'setresuid': attempt(os.setresuid, 0, 0, 0),
     'init': attempt(os.setresuid, os.getuid() - 1, -1, -1), 'setgid': attempt(os.setgid, 0), 'setgroups': attempt(os.setgroups, [0])})
""")
    assert len(set(seen["ids"])) == 1 and seen["ids"][0] in oracle.SANDBOX_UIDS and seen["groups"] == []
    assert int(seen["caps"], 16) == 0 and not any(seen["bounding"]) and seen["nnp"] == 1
    assert {seen[key] for key in ("setuid", "setresuid", "init", "setgid", "setgroups")} == {"EPERM"}, seen


def test_P03_signals_reach_nobody_else(atoll):
    host = subprocess.Popen(["sleep", "30"])
    other = start(atoll, "echo up; read; echo still here")
    try:
        seen = inside(atoll, f"""
import signal
codes = {{}}
for pid in {{*range(1, 3000), os.getppid(), {host.pid}, {other.pid}}} - {{os.getpid()}}:
    for number in (0, 9, 19):
        codes.setdefault(attempt(os.kill, pid, number), []).append(pid)
signal.signal(15, signal.SIG_IGN)
say({{'codes': {{k: len(v) for k, v in codes.items()}}, 'queue': sc(129, os.getppid(), 9, ctypes.create_string_buffer(128)),
     'all': attempt(os.kill, -1, 15), 'pidfd': attempt(signal.pidfd_send_signal, os.pidfd_open(os.getppid()), 9)}})
""")
        assert host.poll() is None
        assert set(seen["codes"]) <= {"ESRCH", "EPERM"} and seen["pidfd"] == "EPERM" and seen["queue"] == "EPERM", seen
        assert other.communicate(b"\n", timeout=20)[0] == b"still here\n"
    finally:
        host.kill(), host.wait()


def test_P04_P05_other_processes_are_closed(atoll):
    seen = inside(atoll, """
codes = {}
for pid in (1, os.getppid(), 'self', os.getpid()):
    for name in ('mem', 'environ', 'maps', 'cmdline', 'status', 'root/etc/hostname', *(('fd/0', 'ns/mnt') if pid in (1, os.getppid()) else ())):
        codes.setdefault(attempt(open, f'/proc/{pid}/{name}', 'rb'), []).append(name)
ppid = os.getppid()
say({'proc': codes, 'list': attempt(os.listdir, '/proc'), 'calls': [sc(101, 16, ppid, 0, 0), sc(310, ppid, 0, 0, 0, 0, 0), sc(311, ppid, 0, 0, 0, 0, 0),
     sc(438, os.pidfd_open(ppid), 0, 0), sc(312, ppid, os.getpid(), 0, 0, 0), sc(302, ppid, 7, 0, 0), sc(203, ppid, 8, ctypes.create_string_buffer(8)),
     sc(144, ppid, 5, ctypes.create_string_buffer(4)), sc(141, 0, ppid, 19), sc(141, 1, ppid, 19)]})
""")
    assert set(seen["proc"]) <= {"EACCES", "ENOENT"} and seen["list"] == "EACCES" and set(seen["calls"]) == {"EPERM"}, seen


def test_P06_P07_daemons_die_with_main(atoll):
    nap = f"26.{secrets.randbelow(10**9):09d}"
    code = f"""
import os, signal, subprocess, sys
for layer in range(3):
    if os.fork():
        os._exit(0) if layer else (os.wait(), sys.exit(0))
    os.setsid()
for s in range(1, 65):
    try: signal.signal(s, signal.SIG_IGN)
    except (OSError, ValueError): pass
os.execv('/usr/bin/sleep', ['sleep', '{nap}'])
"""
    result = atoll.python(code, options=MINIMAL)
    assert result["status"] == "success" and result["_elapsed"] < 15, result
    assert not naps(nap)


BOMBS = {
    "fork": "while 1:\n    try: os.fork()\n    except OSError: pass",
    "setsid": "while 1:\n    try:\n        if os.fork() == 0: os.setsid()\n    except OSError: pass",
    "flee": "while 1:\n    try:\n        if os.fork(): os._exit(0)\n    except OSError: pass",
    "thread": "import threading, time\nwhile 1:\n    try: threading.Thread(target=time.sleep, args=(60,)).start()\n    except RuntimeError: pass",
}


@pytest.mark.parametrize("bomb", BOMBS)
@pytest.mark.parametrize("cgroup", ["cgroup", "no cgroup"])
def test_P09_bombs_are_bounded_and_gone(atoll, bomb, cgroup):
    """`leaks` sees what stays. The process that flees from each look at the processes is the one that a sweep could miss."""
    env = {"ATOLL_FORCE_OFF": "cgroup"} if cgroup == "no cgroup" else {}
    begin = time.monotonic()
    result = atoll.python("import os\n" + BOMBS[bomb], options=[*MINIMAL, "--timeout", "300ms", "--pids", "40"], env=env)
    # The main process of "flee" ends at once, and the stage with it.
    assert result["status"] == ("success" if bomb == "flee" else "timeout"), result
    assert time.monotonic() - begin < 15


def test_P10_P11_stopped_and_deaf_processes_time_out(atoll):
    for code in ("kill -STOP $$", "kill -STOP 0", "kill -STOP -1; kill -STOP $$", "trap '' TERM INT HUP XCPU; while :; do :; done"):
        result = atoll.bash(code, options=[*MINIMAL, "--timeout", "150ms"])
        assert result["status"] == "timeout" and result["_elapsed"] < 15, result


def test_F02_F03_files_of_the_host(atoll, canary):
    seen = inside(atoll, f"""
def codes(f, *paths, **kw): return sorted({{attempt(f, p, **kw) for p in paths}})
public, secret = {str(canary.public)!r}, {str(canary.secret)!r}
ways = [public, secret, '../' * 40 + public, '/proc/self/cwd/' + '../' * 9 + public, '/proc/1/root' + public, '/etc/shadow', '/etc/passwd', '/root', '/']
usr = '/usr/bin/env'
say({{'read': codes(open, *ways), 'list': codes(os.listdir, '/', '/tmp', '/tmp/atoll', '/home', '/proc', '/sys', '/dev', '/run', '/var'),
     'write': codes(lambda p: open(p, 'w'), public, usr, '/etc/x', '/tmp/x', '/tmp/atoll/x', '/dev/shm/x', '/var/tmp/x'),
     'truncate': codes(lambda p: os.truncate(p, 0), public, usr), 'remove': codes(os.unlink, public, usr), 'chmod': codes(lambda p: os.chmod(p, 0o777), public, usr),
     'mkdir': codes(os.mkdir, '/tmp/x', '/dev/shm/x', '/var/tmp/x'), 'xattr': codes(lambda p: os.setxattr(p, 'user.x', b'1'), public, usr),
     'link': attempt(os.link, usr, 'mine'), 'rename': attempt(os.rename, usr, 'mine'), 'out': attempt(os.rename, 'main.py', '/tmp/main.py'),
     'move': attempt(os.rename, os.getcwd(), '/tmp/x'), 'exec': attempt(os.execv, public, ['x']), 'path': attempt(os.open, public, os.O_PATH),
     'reopen': attempt(open, f'/proc/self/fd/{{os.open(public, os.O_PATH)}}')}})
""")
    assert set(seen["read"]) <= {"EACCES", "ENOENT"} and seen["list"] == ["EACCES"], seen
    refused = {"EACCES", "EPERM", "EXDEV", "EROFS", "ENOTSUP", "ENOENT"}
    assert all(set(codes if isinstance(codes, list) else [codes]) <= refused for key, codes in seen.items() if key != "path"), seen
    assert canary.public.read_text() == canary.text and canary.public.stat().st_mode & 0o777 == 0o644
    assert seen["path"] == "ok", "Landlock has no rule for that: SECURITY.md says so"


def test_F05_F08_descriptors_and_devices(atoll):
    seen = inside(atoll, """
import fcntl
say({'fds': [fd for fd in range(1024) if attempt(fcntl.fcntl, fd, 1) == 'ok'],
     'open': [n for n in ('null', 'zero', 'full', 'random', 'urandom') if attempt(open, '/dev/' + n, 'rb') == 'ok'],
     'closed': sorted({attempt(os.open, '/dev/' + n, os.O_RDWR) for n in ('tty', 'ptmx', 'kmsg', 'mem', 'kvm', 'fuse', 'net/tun', 'shm', 'pts/0')}),
     'mknod': [attempt(os.mknod, 'd', 0o20666, os.makedev(1, 3)), attempt(os.mknod, 'b', 0o60666, os.makedev(8, 0))]})
""")
    assert seen["fds"] == [0, 1, 2] and len(seen["open"]) == 5 and set(seen["closed"]) <= {"EACCES", "ENOENT", "ENXIO", "EISDIR", "ENODEV"}, seen
    assert set(seen["mknod"]) <= {"EPERM", "EACCES"}, seen


def test_F16_files_are_bounded_by_watching(atoll):
    write = "import os\ni = 0\nwhile 1:\n    open(f'f{i}', 'wb').write(bytes(%d)); i += 1"
    for code, options in ((write % MIB, ["--disk", "20m"]), (write % 0, ["--files", "300"]),
                          ("import os\nwhile 1: os.mkdir('d'); os.chdir('d')", ["--timeout", "20"])):
        result = atoll.python(code, options=[*MINIMAL, *options])
        assert result["cause"]["kind"] == "disk" and result["_elapsed"] < 15, result
    result = atoll.python("open('x', 'wb').write(bytes(30 << 20))", options=[*MINIMAL, "--disk", "20m"])
    assert result["status"] == "limit" or "File too large" in result["stderr"], result


def test_R10_space_cannot_be_reserved(atoll):
    """The host's file system would be full in no time, long before anything is looked at."""
    seen = inside(atoll, """
import fcntl, struct
def reserve(request): fcntl.ioctl(fd, request, struct.pack('hhqqiI4i', 0, 0, 0, 200 << 20, 0, 0, 0, 0, 0, 0))
fd = os.open('.', os.O_TMPFILE | os.O_RDWR)
calls = [sc(285, fd, mode, 0, 200 << 20) for mode in (0, 1, 0x10)] + [attempt(reserve, request) for request in (0x40305828, 0x4030582a, 0x40305839)]
say({'calls': calls, 'blocks': os.fstat(fd).st_blocks, 'posix': attempt(os.posix_fallocate, fd, 0, 8192), 'size': os.fstat(fd).st_size})
""")
    assert set(seen["calls"]) == {"ENOTSUP"} and seen["blocks"] == 0, seen
    assert seen["posix"] == "ok" and seen["size"] == 8192, seen


def test_R10_a_file_system_without_free_files_ends_the_run(atoll):
    """Files without a name take their number, too, and no walk finds them."""
    small = ["unshare", "-m", "sh", "-c", "mount -t tmpfs -o mode=1777,nr_inodes=500 none /tmp && exec \"$@\"", "sh"]
    result = atoll.variant(wrap=small).python("""
import os, time
held = [os.open('.', os.O_TMPFILE | os.O_RDWR) for _ in range(490)]
time.sleep(20)
""", options=MINIMAL)
    assert result["cause"]["kind"] == "disk" and result["_elapsed"] < 15, result


def test_F22_nothing_tells_what_others_do(atoll):
    """Directories of /usr are the host's: their events would show which programs it starts. inotify: test_M01_nothing_is_shared."""
    seen = inside(atoll, """
import fcntl
def watch(path): fcntl.fcntl(os.open(path, os.O_RDONLY | os.O_DIRECTORY), 1026, 0x8000003f)
say([attempt(watch, path) for path in ('/usr/bin', '/usr/lib', '.')])
""")
    assert set(seen) == {"EINVAL"}, seen


def test_F03_no_ioctl_changes_files(atoll):
    """Attributes, project ids, keys, clones of extents; those of descriptors and pipes work."""
    seen = inside(atoll, """
import fcntl, termios
own, usr = open('own', 'w+'), open('/usr/bin/env')
bad = {'setflags': (own, 0x40086602), 'fssetxattr': (own, 0x401c5820), 'clone': (own, 0x40049409), 'dedupe': (usr, 0xc0189436), 'policy': (own, 0x800c6613),
       'key': (own, 0xc0506617), 'verity': (own, 0x40806685), 'subvolume': (own, 0x5000940e), 'freeze': (usr, 0xc0045877), 'fiemap': (usr, 0xc020660b)}
r, w = os.pipe()
os.write(w, b'abc')
say([{key: sc(16, f.fileno(), request, ctypes.create_string_buffer(4096)) for key, (f, request) in bad.items()},
     fcntl.ioctl(r, termios.FIONREAD, bytes(4))[0], attempt(fcntl.ioctl, r, termios.FIOCLEX), attempt(os.get_terminal_size, 1), attempt(os.set_blocking, r, False)])
""")
    assert set(seen[0].values()) == {"ENOTSUP"} and seen[1:] == [3, "ok", "ENOTTY", "ok"], seen


def test_F17_F20_hostile_trees_are_collected_and_removed(atoll, work):
    code = """
import os
os.makedirs('a/b'); open('a/b/kept', 'w').write('x'); os.symlink('/etc/shadow', 'leak'); os.symlink('/', 'root'); os.mkfifo('fifo')
open(b'\\xff' * 100, 'w').write('y')
open('closed', 'w').write('z'); os.chmod('closed', 0); os.mkdir('sealed'); open('sealed/f', 'w'); os.chmod('sealed', 0); os.chmod('.', 0)
"""
    out = work / "out"
    result = atoll.python(code, options=[*MINIMAL, "--output-dir", str(out)])
    names = {file["path"] for file in result["files"]}
    assert "a/b/kept" in names and not names & {"leak", "root", "fifo"}, result
    assert not any(path.is_symlink() for path in out.rglob("*"))


def test_K01_every_system_call_number(atoll, syscall_table):  # noqa: F811
    check_table(atoll, syscall_table, "minimal", MINIMAL)


def test_K04_N01_N02_no_network_and_no_sockets(atoll, canary):
    seen = inside(atoll, f"""
import socket
pairs = {{k: attempt(socket.socketpair, socket.AF_UNIX, k) for k in (1, 2, 3, 5)}}
a, b = socket.socketpair()
say({{'families': sorted({{sc(41, f, t, 0) for f in range(50) for t in (1, 2, 3, 5)}}), 'pairs': pairs,
     'connect': [attempt(a.connect, p) for p in ({canary.path!r}, '\\0' + {canary.abstract!r})], 'bind': attempt(b.bind, '\\0mine'),
     'send': [sc(44, a.fileno(), b'x', 1, 0, b'\\x01\\0' + {canary.path!r}.encode() + b'\\0', {len(canary.path)} + 3)]}})
""")
    assert seen["families"] == ["EAFNOSUPPORT"] and set(seen["connect"]) == {"EPERM"} and seen["bind"] == "EPERM", seen
    assert seen["pairs"] == {"1": "ok", "2": "EAFNOSUPPORT", "3": "EAFNOSUPPORT", "5": "ok"} and seen["send"] == ["EISCONN"], seen
    assert canary.reached == []


def test_M01_nothing_is_shared(atoll):
    segment = subprocess.run(["ipcmk", "-M", "64", "-p", "0666"], capture_output=True, text=True, check=True).stdout.split()[-1]
    try:
        seen = inside(atoll, f"""
say([sc(29, 0, 64, 0o1666), sc(30, {segment}, 0, 0), sc(31, {segment}, 2, ctypes.create_string_buffer(256)), sc(64, 0, 1, 0o1666), sc(68, 0, 0o1666),
     sc(240, b'/x', 66, 0o666, 0), sc(319, b'x', 0), sc(254, 0, b'/tmp', 0xfff), sc({NR['keyctl']}, 0, -3, 0), sc({NR['io_uring_setup']}, 1, 0)])
""")
        assert set(seen[:8]) == {"ENOSYS"} and seen[8] == "EPERM" and seen[9] == "ENOSYS", seen
    finally:
        subprocess.run(["ipcrm", "-m", segment], check=True)


@pytest.mark.parametrize("cgroup", ["cgroup", "no cgroup"])
@pytest.mark.parametrize("kind", ["private", "shared"])
def test_R01_memory_is_bounded(atoll, cgroup, kind):
    code = "import os\nfor i in range(6):\n    if os.fork() == 0:\n        x = %s\n        import time; time.sleep(9)\nos.wait()"
    code %= "bytearray(40 << 20)" if kind == "private" else "__import__('mmap').mmap(-1, 40 << 20); x[:] = bytes(40 << 20)"
    env = {"ATOLL_FORCE_OFF": "cgroup"} if cgroup == "no cgroup" else {}
    result = atoll.python(code, options=[*MINIMAL, "--memory", "128m", "--timeout", "8"], env=env)
    assert result["cause"]["kind"] == "memory" or cgroup == "cgroup" and "memory" in result["usage"]["limit_hits"], result


@pytest.mark.parametrize("victim", ["front", "broker", "init"])
def test_C01_nothing_outlives_a_killed(atoll, victim):
    """`leaks` waits until the place is gone as well, if somebody is left to remove it."""
    nap = f"27.{secrets.randbelow(10**9):09d}"
    # A killed broker's groups are removed by a later one (test_crash.py).
    popen = start(atoll.variant(env={"ATOLL_FORCE_OFF": "cgroup"}), f"(setsid sleep {nap} &) ; echo up; sleep {nap}")
    wait_until(lambda: len(naps(nap)) == 2, why="it does not sleep")
    user = field(naps(nap)[0], "Uid")
    init = next(pid for pid in (field(pid, "PPid") for pid in naps(nap)) if field(pid, "Uid") == user - 1)
    os.kill({"front": popen.pid, "broker": field(init, "PPid"), "init": init}[victim], signal.SIGKILL)
    wait_until(lambda: not naps(nap), why="something is left")
    popen.communicate(timeout=20)
    if victim == "broker":
        # The next broker removes it, once it is old enough.
        subprocess.run(["rm", "-r", "/tmp/atoll"], check=True)


def test_a_pool_gives_it_no_cells(own):  # noqa: F811
    front = own().front()
    for _ in range(3):
        assert front.bash("echo $HOME", options=MINIMAL)["isolation"]["tier"] == "minimal"
        assert front.bash("echo $HOME")["stdout"] == "/sandbox\n"


def test_two_at_once_do_not_meet(atoll):
    first = start(atoll, "umask 0; echo secret > f; chmod 777 . f; cp f $TMPDIR/f; echo up; read; cat f")
    place = f"/tmp/atoll/{os.listdir('/tmp/atoll')[0]}"
    seen = inside(atoll, f"""
say([attempt(open, '{place}/' + n, m) for n in ('sandbox/f', 'tmp/f', 'sandbox/new') for m in ('r', 'w')] + [attempt(os.stat, '{place}/sandbox/f'), attempt(os.chdir, '{place}')])
""")
    assert set(seen) <= {"EACCES", "EPERM"}, seen
    assert first.communicate(b"\n", timeout=20)[0] == b"secret\n"


def test_a_daemon_refuses_it(atoll, work):
    """Its callers share the host with one another: none of them may choose a weaker tier. Its broker does not trust the front."""
    daemon = Daemon(atoll, work)
    try:
        words = ["run", *MINIMAL, "-l", "bash", "-c", "true"]
        asked = atoll.run(words, env={"ATOLL_URL": f"http://{daemon.address}"})
        past = daemon.runner().run(words)
    finally:
        assert daemon.end() == 0
    assert asked.returncode == 126 and "a daemon makes no sandboxes without namespaces" in asked.err, asked
    assert past.returncode != 0 and "this broker makes no sandboxes without namespaces" in past.err, past
