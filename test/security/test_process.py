# SPDX-License-Identifier: Apache-2.0
"""P01–P22 of test/security/cases.md."""
import json
import os
import re
import secrets
import socket
import subprocess
import time

import pytest

import oracle
from oracle import IS_ROOT, NOBODY
from probe import NR, probe
from resident import wait_until

MIB = 1 << 20
NEW = {"NEWTIME": 0x80, "NEWNS": 0x20000, "NEWCGROUP": 0x2000000, "NEWUTS": 0x4000000, "NEWIPC": 0x8000000,
       "NEWUSER": 0x10000000, "NEWPID": 0x20000000, "NEWNET": 0x40000000}


@pytest.mark.quick
def test_P01_no_privilege(box):
    status = box.bash("cat /proc/self/status")["stdout"]
    fields = dict(re.findall(r"^(\w+):[ \t]*(.*)$", status, re.M))
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(fields[name], 16) == 0, (name, fields[name])
    assert fields["NoNewPrivs"] == "1" and fields["Seccomp"] == "2"
    assert fields["Groups"].strip() in ("", fields["Gid"].split()[0], "65534")
    assert "0" not in fields["Uid"].split() + fields["Gid"].split()


def test_P01_host_sees_an_unprivileged_unique_user(box):
    nap = f"25.{secrets.randbelow(10**9):09d}"
    popen, other = (box.popen(["run", "-l", "bash", "-c", f"echo up; sleep {nap}"]) for _ in range(2))
    assert popen.stdout.readline() == other.stdout.readline() == b"up\n"
    wait_until(lambda: len(oracle.who_runs(nap)) == 2, why="they are not seen")
    uids = [re.search(r"^Uid:\s+(\d+)", oracle.read(f"/proc/{pid}/status"), re.M)[1] for pid in oracle.who_runs(nap)]
    oracle.wake(nap)
    popen.communicate(timeout=25), other.communicate(timeout=25)
    if box.rootless:
        assert uids == [str(NOBODY if IS_ROOT else os.geteuid())] * 2
    else:
        assert len(set(uids)) == 2 and all(int(uid) in oracle.SANDBOX_UIDS for uid in uids), uids


def test_P02_no_way_to_become_another(box):
    seen = probe(box, """
say({'setuid': attempt(os.setuid, 0), 'setresuid': attempt(os.setresuid, 0, 0, 0), 'setgid': attempt(os.setgid, 0),
     'setresgid': attempt(os.setresgid, 0, 0, 0), 'setgroups': attempt(os.setgroups, [0]), 'setgroups2': attempt(os.setgroups, []),
     'capset': sc(126, ctypes.create_string_buffer(b'\\x22\\x05\\x08\\x20' + bytes(4)),
                  ctypes.create_string_buffer(b'\\xff' * 24)), 'ids': [os.getuid(), os.geteuid(), os.getgid(), os.getgroups()]})
""")
    ids = seen.pop("ids")
    assert all(code in ("EPERM", "EINVAL") for code in seen.values()), seen
    assert 0 not in ids[:3] and 0 not in ids[3]


def test_P03_signals_reach_nobody_else(box):
    host = subprocess.Popen(["sleep", "30"])
    try:
        seen = probe(box, """
import signal
me = {os.getpid()}
codes = {}
for pid in range(1, 66000):
    if pid not in me: codes.setdefault(attempt(os.kill, pid, 0), []).append(pid)
killed = [attempt(os.kill, 1, s) for s in (9, 15, 2, 19)]
signal.signal(15, signal.SIG_IGN)
all_ = attempt(os.kill, -1, 15)
say({'codes': {k: (len(v), v[:9]) for k, v in codes.items()}, 'killed': killed, 'all': all_, 'ppid': os.getppid(),
     'seen': [p for p in os.listdir('/proc') if p.isdigit()], 'alive': attempt(os.kill, os.getpid(), 0)})
""")
        assert host.poll() is None
    finally:
        host.kill()
        host.wait()
    assert set(seen["codes"]) <= {"ESRCH", "EPERM", "ok"}
    assert set(seen["codes"].get("ok", (0, []))[1]) | set(seen["codes"].get("EPERM", (0, []))[1]) <= {1, 2, 3}, seen
    assert set(map(int, seen["seen"])) <= {1, 2, 3, 4}, seen["seen"]
    assert seen["ppid"] in (0, 1)


@pytest.mark.quick
def test_P04_init_is_closed(box):
    seen = probe(box, """
out = {}
for n in ('mem', 'environ', 'maps', 'smaps', 'auxv', 'pagemap', 'stack', 'syscall', 'io', 'fdinfo', 'map_files', 'attr/current'):
    p = '/proc/1/' + n
    out[n] = attempt(os.listdir, p) if os.path.isdir(p) else attempt(lambda: open(p, 'rb').read(1))
for n in ('exe', 'root', 'cwd'):
    out[n] = attempt(os.readlink, '/proc/1/' + n)
    out[n + ' open'] = attempt(os.open, '/proc/1/' + n, os.O_RDONLY)
out['fd'] = attempt(os.listdir, '/proc/1/fd')
for n in ('user', 'mnt', 'pid', 'net'): out['ns/' + n] = attempt(os.open, '/proc/1/ns/' + n, 0)
say(out)
""")
    allowed = ("EACCES", "ENOENT", "EPERM", "ESRCH")
    bad = {k: v for k, v in seen.items() if v not in allowed and k != "attr/current"}
    assert bad == {}, bad


@pytest.mark.quick
def test_P05_no_way_into_another_process(box):
    calls = {"attach": (NR["ptrace"], 16, 1), "traceme": (NR["ptrace"], 0, 0), "seize": (NR["ptrace"], 0x4206, 1),
             "readv": (NR["process_vm_readv"], 1, 1, 1, 1, 1), "writev": (NR["process_vm_writev"], 1, 1, 1, 1, 1),
             "getfd": (NR["pidfd_getfd"], -1, 0, 0), "kcmp": (NR["kcmp"], 1, 1, 0), "madvise": (NR["process_madvise"], -1, 1, 1)}
    seen = probe(box, f"say({{n: sc(*a) for n, a in {calls!r}.items()}})")
    assert set(seen.values()) == {"EPERM"}, seen


@pytest.mark.undisturbed
@pytest.mark.any_landlock
def test_P06_daemons_die_with_main(box):
    code = ("import os, signal, time\n"
            "for _ in range(5):\n"
            "    if os.fork() == 0:\n"
            "        os.setsid()\n"
            "        if os.fork() == 0:\n"
            "            for s in range(1, 65):\n"
            "                try: signal.signal(s, signal.SIG_IGN)\n"
            "                except (OSError, ValueError): pass\n"
            "            time.sleep(60)\n"
            "        os._exit(0)\n"
            "time.sleep(0.1); print('end')")
    result = box.python(code, options=["--timeout", "20"])
    assert result["status"] == "success" and result["stdout"] == "end\n" and result["_elapsed"] < 15
    # At once, not only within the oracle's patience.
    from oracle import list_processes
    uid, end = str(65533) if box.rootless else None, time.monotonic() + 2
    while left := [p for p in list_processes() if "python" in p and (uid is None or uid in p)]:
        assert time.monotonic() < end, left
        time.sleep(0.05)


@pytest.mark.any_landlock
def test_P07_output_after_the_end_does_not_block(box):
    result = box.bash("(setsid bash -c 'while :; do echo spam; done' &); echo main; exit 0", options=["--timeout", "20"])
    assert result["status"] == "success" and result["_elapsed"] < 15 and result["exit_code"] == 0


@pytest.mark.quick
@pytest.mark.any_landlock
def test_P08_clone_parent_cannot_forge_the_exit_code(box):
    result = box.python("""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
r = libc.syscall(56, ctypes.c_long(0x8000 | 17), None, None, None, None)
if r == 0: os._exit(0)
print(r, ctypes.get_errno(), flush=True)
os._exit(7)
""")
    assert result["exit_code"] == 7 and result["stdout"] == "-1 1\n", result


BOMBS = {
    "fork": "while (fork() >= 0 || errno == EAGAIN) n++;",
    "vfork": "for (;;) { pid_t p = vfork(); if (p == 0) { for (volatile int i = 0; i < 1000; i++) fork(); _exit(0); } }",
    "thread": "pthread_t t; for (;;) pthread_create(&t, 0, (void *(*)(void *))pause, 0);",
    "exec": "for (int i = 0; i < 4; i++) fork(); execl(\"/proc/self/exe\", \"p\", (char *)0); execl(\"/sandbox/p\", \"p\", (char *)0);",
}


@pytest.mark.parametrize("kind", list(BOMBS))
@pytest.mark.undisturbed
@pytest.mark.any_landlock
def test_P09_bombs_are_bounded(box, compile_c, kind):
    program = compile_c("#include <errno.h>\n#include <pthread.h>\n#include <unistd.h>\nstatic volatile long n;\n"
                        f"int main(void) {{ {BOMBS[kind]} return 0; }}", flags=("-pthread",))
    popen = box.popen(["run", "--json", "--pids", "32", "--timeout", "0.25", "--file", f"p={program}", "--stage",
                       "x=exec /sandbox/p"])
    time.sleep(0.15)
    begin = time.monotonic()
    subprocess.run(["true"], check=True)
    assert time.monotonic() - begin < 5, "the host cannot start a process"
    out, _ = popen.communicate(timeout=25)
    result = json.loads(out)
    assert result["status"] in ("timeout", "limit", "error"), result
    assert result["duration"] < 8
    if result["isolation"]["cgroup"] != "none" and result["usage"]["pids_peak"] is not None:
        assert result["usage"]["pids_peak"] <= 34


@pytest.mark.undisturbed
@pytest.mark.parametrize("code", ["kill -STOP $$", "kill -STOP 0", "kill -STOP -1; kill -STOP $$",
                                  "(sleep 9 &) ; (kill -STOP 0 &); sleep 9"])
@pytest.mark.any_landlock
def test_P10_stopped_processes_still_time_out(box, code):
    result = box.bash(code, options=["--timeout", "0.2"])
    assert result["status"] == "timeout" and result["_elapsed"] < 8


HOLDS = {
    "busy, ignoring": "import signal\n[signal.signal(s, signal.SIG_IGN) for s in (1, 2, 3, 15, 24, 30)]\nwhile True: pass",
    "asleep": "import time\ntime.sleep(99)",
    "futex": "import threading\nl = threading.Lock(); l.acquire(); l.acquire()",
    "vfork": "import ctypes\nl = ctypes.CDLL(None)\nif l.vfork() == 0:\n    while True: pass",
    "fifo": "import os\nos.mkfifo('/tmp/f'); open('/tmp/f')",
}


@pytest.mark.undisturbed
@pytest.mark.parametrize("how", list(HOLDS))
@pytest.mark.any_landlock
def test_P11_every_hold_times_out(box, how):
    result = box.python(HOLDS[how], options=["--timeout", "0.3"])
    assert result["status"] == "timeout" and result["exit_code"] == 124 and result["_elapsed"] < 8, result


@pytest.mark.any_landlock
def test_P12_exit_codes_and_signals_are_exact(box, compile_c):
    program = compile_c("#include <signal.h>\n#include <stdlib.h>\n#include <sys/resource.h>\n#include <unistd.h>\n"
                        "int main(int argc, char **argv) { int n = atoi(argv[1]); sigset_t all;\n"
                        "struct rlimit big = {RLIM_INFINITY, RLIM_INFINITY}; setrlimit(RLIMIT_CORE, &big);\n"
                        "signal(n, SIG_DFL); sigfillset(&all); sigprocmask(SIG_UNBLOCK, &all, 0); raise(n); return 99; }")
    for code in (0, 1, 2, 77, 123, 124, 125, 126, 127, 128, 129, 137, 200, 254, 255):
        result = box.bash(f"exit {code}")
        assert (result["exit_code"], result["signal"]) == (code, None)
        assert result["status"] == ("error" if code else "success") and result["cause"]["kind"] == "exit"
    for number in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 24, 25, 26, 27, 29, 30, 31):
        result = box.result(["--file", f"p={program}", "--stage", f"x=exec /sandbox/p {number}"])
        assert (result["exit_code"], result["signal"]) == (128 + number, number), result
        if number != 25:  # SIGXFSZ is how the kernel tells of a file that is too large
            assert result["status"] == "error" and result["cause"]["kind"] == "signal"
        assert result["files"] == [], "a core file"


@pytest.mark.any_landlock
def test_P13_orphans_are_reaped(box, compile_c):
    program = compile_c("""
#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
	int failed = 0, made = 0;
	for (int i = 0; i < 1000; i++) {
		pid_t p = fork();
		if (p == 0) {
			if (fork() == 0) _exit(3);
			_exit(0);
		}
		if (p < 0) { failed++; usleep(1000); i--; if (failed > 20000) break; continue; }
		made++;
		waitpid(p, NULL, 0);
	}
	printf("%d\\n", made);
	return 0;
}""")
    result = box.result(["--pids", "24", "--timeout", "100", "--file", f"p={program}", "--stage", "x=exec /sandbox/p"], timeout=120)
    assert result["stdout"] == "1000\n" and result["exit_code"] == 0, result


@pytest.mark.quick
def test_P14_no_new_namespaces(box):
    seen = probe(box, f"""
out = {{}}
for name, flag in {NEW!r}.items():
    out['unshare ' + name] = sc({NR['unshare']}, flag)
    out['setns ' + name] = sc({NR['setns']}, -1, flag)
    ctypes.set_errno(0)
    r = libc.syscall({NR['clone']}, ctypes.c_long(flag | 17), None, None, None, None)
    if r == 0: os._exit(0)
    out['clone ' + name] = errno.errorcode[ctypes.get_errno()] if r < 0 else 'ok'
    r = libc.syscall({NR['clone']}, ctypes.c_long(flag | 17 | 0xf << 32), None, None, None, None)
    if r == 0: os._exit(0)
    out['clone high ' + name] = errno.errorcode[ctypes.get_errno()] if r < 0 else 'ok'
out['clone3'] = sc({NR['clone3']}, 1, 88)
say(out)
""")
    # NEWTIME is no flag of clone(2): its bit is part of the exit signal there.
    assert seen.pop("clone3") == "ENOSYS"
    for name in ("clone NEWTIME", "clone high NEWTIME"):
        seen.pop(name)
    # setns is a tracer's to permit, and no program has one.
    assert all(answer == ("ENOSYS" if name.startswith("setns") else "EPERM") for name, answer in seen.items()), seen


def test_P15_prctl_is_an_allow_list(box):
    seen = probe(box, f"""
nr = {NR['prctl']}
say({{'refused': {{n: sc(nr, *a) for n, a in dict(
    ptracer=(0x59616d61, 1), mm=(35, 1, 0), seccomp=(22, 2, 1), dispatch=(59, 1, 0, 0, 0), core=(62, 1, 0, 0, 0),
    speculation=(53, 0, 2, 0, 0), keepcaps=(8, 1), ambient=(47, 2, 0, 0, 0), bounding=(24, 21), securebits=(28, 0),
    endian=(20, 0), tsc=(26, 2), mce=(33, 1, 1)).items()}},
    'seccomp': sc({NR['seccomp']}, 1, 8, 1), 'landlock': sc({NR['landlock_create_ruleset']}, 1, 8, 0),
    'allowed': {{n: sc(nr, *a) for n, a in dict(name=(15, ctypes.c_char_p(b'x')), nnp=(39, 0, 0, 0, 0), dumpable=(3,)).items()}}}})
""")
    assert all(v in ("EPERM", "ENOSYS") for v in seen["refused"].values()), seen
    assert seen["seccomp"] in ("EPERM", "ENOSYS") and seen["landlock"] in ("EPERM", "ENOSYS")
    assert set(seen["allowed"].values()) == {"ok"}, seen


def test_P16_personality(box):
    seen = probe(box, f"say([sc({NR['personality']}, v) for v in (0x40000, 0x400000, 0x8, 0x20000)] + "
                      f"[sc({NR['personality']}, 0xffffffff), sc({NR['personality']}, 0)])")
    assert seen == ["EPERM"] * 4 + ["ok", "ok"], seen


def test_P17_foreign_abis_are_killed(box, compile_c):
    int80 = compile_c("int main(void) { long r; __asm__ volatile(\"int $0x80\" : \"=a\"(r) : \"a\"(20) : \"memory\"); return 0; }")
    x32 = compile_c("#include <unistd.h>\n#include <sys/syscall.h>\nint main(void) { syscall(0x40000000 | 39); return 0; }")
    for program in (int80, x32):
        result = box.result(["--file", f"p={program}", "--stage", "x=exec /sandbox/p"])
        assert result["status"] == "error" and result["signal"] in (31, 11), result


def test_P18_priorities_are_not_raised(box):
    seen = probe(box, f"""
say({{'fifo': attempt(os.sched_setscheduler, 0, os.SCHED_FIFO, os.sched_param(1)),
     'rr': attempt(os.sched_setscheduler, 0, os.SCHED_RR, os.sched_param(50)),
     'nice': attempt(os.setpriority, 0, 0, -20), 'ioprio': sc({NR['ioprio_set']}, 1, 0, 1 << 13),
     'mlock': attempt(lambda: (_ for _ in ()).throw(OSError(ctypes.get_errno(), '')) if libc.mlock(
         ctypes.create_string_buffer(64 << 20), 64 << 20) else None)}})
""", options=["-m", "256m"])
    assert all(v in ("EPERM", "EACCES", "ENOSYS", "ENOMEM", "EAGAIN") for v in seen.values()), seen


def test_P19_rlimits_are_not_raised(box):
    seen = probe(box, f"""
import resource
def up(which):
    soft, hard = resource.getrlimit(which)
    resource.setrlimit(which, (hard + 1, hard + 1))
names = ('RLIMIT_NOFILE', 'RLIMIT_CORE', 'RLIMIT_FSIZE', 'RLIMIT_MEMLOCK', 'RLIMIT_RTPRIO', 'RLIMIT_NICE', 'RLIMIT_SIGPENDING')
out = {{}}
for n in names:
    try: up(getattr(resource, n)); out[n] = 'ok'
    except (ValueError, OSError) as e: out[n] = 'refused'
say([out, sc({NR['prlimit64']}, 1, 7, 0, 0), sc({NR['prlimit64']}, os.getppid(), 7, 0, 0)])
""")
    assert set(seen[0].values()) == {"refused"} and seen[1] == seen[2] == "EPERM", seen


def test_P20_nothing_of_the_host_is_told(box):
    secret = secrets.token_hex(12)
    result = box.python("import os, json, glob\nout = [dict(os.environ), os.uname().nodename]\n"
                        "for p in glob.glob('/proc/*/cmdline') + glob.glob('/proc/*/environ') + glob.glob('/proc/*/comm'):\n"
                        "    try: out.append([p, open(p).read()])\n    except OSError: pass\nprint(json.dumps(out))",
                        env={"ATOLL_TEST_TOKEN": secret, "AWS_SECRET": secret})
    text = result["stdout"]
    assert secret not in text and str(box.home) not in text and str(box.stage.top) not in text and "/work" not in text
    host = socket.gethostname()
    if len(host) > 3:
        assert host not in text
    data = json.loads(text)
    assert data[1] != host or len(host) <= 3
    assert set(data[0]) <= {"PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "TMPDIR", "USER", "LOGNAME", "PWD", "SHELL",
                            "TZ", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONIOENCODING", "PYTHONUTF8",
                            "MPLCONFIGDIR", "PYTHONNOUSERSITE", "MPLBACKEND", "OMP_NUM_THREADS", "GOMAXPROCS",
                            "RAYON_NUM_THREADS", "PYTHON_CPU_COUNT", "XDG_CACHE_HOME"}, set(data[0])


def test_P21_what_cannot_be_executed_is_the_callers_error(library, landlock):
    """argv of a stage: missing, a directory, no format, a loop of interpreters, too long."""
    if landlock == "no-landlock":
        pytest.skip("the same path; one variant is enough")
    files = {"text": "no format\n", "loop": "#!/sandbox/loop\n", "gone": "#!/nonexistent/interpreter\n"}
    for argv in (["/nonexistent"], ["/sandbox"], ["/sandbox/text"], ["/sandbox/loop"], ["/sandbox/gone"], ["relative"],
                 ["/usr/bin/true"] + ["x" * 131073], ["/etc/passwd"]):
        rc, result, problem = library.run({"files": files, "stages": [{"name": "s", "argv": argv}]})
        if rc < 0:
            assert problem and "internal" not in problem.lower(), (argv[0], problem)
        else:
            assert result["status"] in ("setup_error", "error"), (argv[0][:40], result)
            assert result["exit_code"] in (None, 126, 127) and result["cause"]["detail"]
    rc, result, problem = library.run({"stages": [{"name": "s", "argv": ["/usr/bin/printf", "%s"] + ["y"] * 4000}]})
    assert rc == 0 and result["stdout"] == "y" * 4000, problem
    rc, result, problem = library.run({"language": "bash", "code": "exit $#", "args": ["z" * 1000] * 4000})
    assert rc < 0 or result["status"] in ("setup_error", "error"), result
    assert rc < 0 or result["status"] != "internal_error"


def test_P22_no_controlling_terminal(box):
    seen = probe(box, "say([attempt(os.open, '/dev/tty', os.O_RDWR), attempt(os.open, '/dev/console', os.O_RDWR), "
                      "attempt(os.open, '/dev/tty0', os.O_RDWR), os.getsid(0) == os.getpid() or os.getsid(0) in (0, 1, 2)])")
    assert all(v in ("ENXIO", "ENOENT", "EACCES") for v in seen[:3]), seen


def test_P22_terminal_is_a_fresh_one(box):
    """With --tty: the program's own pty, whose injection calls are refused."""
    done = box.run(["run", "--tty", "-l", "python", "-c",
                    "import fcntl, os\nfor c in (0x5412, 0x541c):\n"
                    "    try: fcntl.ioctl(0, c, b'x'); print('went through')\n"
                    "    except OSError as e: print('errno', e.errno)\nprint(os.ttyname(0))"])
    assert done.out.count("errno 1") == 2 and "/dev/pts/" in done.out or "/dev/tty" in done.out or "console" in done.out, done
