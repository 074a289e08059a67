# SPDX-License-Identifier: Apache-2.0
"""Every limit of doc/limits.md: hit it, then read status, cause, limit and peak.

Rootless on a host without a delegated cgroup has no kernel counters for memory and pids: rlimits
hold instead, the program sees the refusal itself, and the result says which layers are missing.
"""
import os
import subprocess
from pathlib import Path

import pytest

from program import REDUCED

quick = pytest.mark.quick
MIB = 1 << 20


def needs_cgroup(result):
    return result["isolation"]["cgroup"] != "none"


def check(result, status, kind, limit=None, exit_code=None):
    assert result["status"] == status, result
    assert result["cause"]["kind"] == kind, result
    assert result["success"] is False
    if limit is not None:
        assert result["cause"]["limit"] == pytest.approx(limit), result["cause"]
    if exit_code is not None:
        assert result["exit_code"] == result["_exit"] == exit_code, result
    assert result["cause"]["detail"]


# -------------------------------------------------------------------------------------------- time


@quick
@pytest.mark.undisturbed
def test_wall(atoll):
    result = atoll.bash("echo partial; sleep 30", options=["--timeout", "900ms"])
    check(result, "timeout", "timeout", 0.9, 124)
    assert 0.9 <= result["cause"]["peak"] < 5 and 0.9 <= result["duration"] < 5
    assert result["stdout"] == "partial\n" and result["_elapsed"] < 10
    assert result["cause"]["retryable"] is True and result["cause"]["suggest"] > 0.9


@quick
@pytest.mark.undisturbed
def test_cpu_time(atoll):
    result = atoll.python("while True: pass", options=["--cpu-time", "0.4", "--timeout", "40"])
    check(result, "limit", "cpu_time", 0.4)
    assert result["exit_code"] >= 128
    assert 0.4 <= result["cause"]["peak"] < 1.2


def test_cpu_time_of_children_counts(atoll):
    code = ("import os, time\n"
            "while True:\n"
            "    if os.fork() == 0:\n"
            "        end = time.process_time() + 0.05\n"
            "        while time.process_time() < end: pass\n"
            "        os._exit(0)\n"
            "    os.wait()\n")
    result = atoll.python(code, options=["--cpu-time", "0.5", "--timeout", "3" if atoll.rootless else "40"])
    if needs_cgroup(result):
        check(result, "limit", "cpu_time", 0.5)
    else:
        assert result["status"] in ("limit", "timeout")


@quick
def test_idle(atoll):
    result = atoll.bash("echo x; sleep 50", options=["--idle-timeout", "0.3", "--timeout", "40"])
    assert result["status"] == "timeout" and result["cause"]["kind"] == "idle", result
    assert result["cause"]["limit"] == pytest.approx(0.3)
    assert result["exit_code"] == 124 and result["_elapsed"] < 20


@pytest.mark.undisturbed
@pytest.mark.brief
def test_idle_is_held_off_by_output(atoll):
    result = atoll.bash("for i in 1 2 3 4 5 6; do sleep 0.3; echo $i; done",
                        options=["--idle-timeout", "1.5", "--timeout", "40"])
    assert result["status"] == "success" and result["stdout"] == "1\n2\n3\n4\n5\n6\n"


@pytest.mark.undisturbed
@pytest.mark.brief
def test_idle_is_held_off_by_work(atoll):
    code = "import time\nend = time.monotonic() + 2\nwhile time.monotonic() < end: pass\nprint('done')"
    result = atoll.python(code, options=["--idle-timeout", "1.3", "--timeout", "40"])
    assert result["status"] == "success", result


STUBBORN = {
    "ignores signals": "import signal, time\n"
                       "for s in range(1, 65):\n"
                       "    try: signal.signal(s, signal.SIG_IGN)\n"
                       "    except (OSError, ValueError): pass\n"
                       "print('up', flush=True)\n"
                       "while True: time.sleep(1)",
    "stops itself": "import os, signal\nprint('up', flush=True)\nos.kill(os.getpid(), signal.SIGSTOP)",
    "stops its group": "import os, signal\nprint('up', flush=True)\n"
                       "[os.fork() for _ in range(3)]\nos.killpg(0, signal.SIGSTOP)",
    "stops everyone": "import os, signal\nprint('up', flush=True)\n"
                      "for _ in range(3):\n    if os.fork() == 0: os.setsid(); signal.pause()\n"
                      "os.kill(-1, signal.SIGSTOP)\nos.kill(os.getpid(), signal.SIGSTOP)",
    "holds a vfork": "import ctypes\nprint('up', flush=True)\n"
                     "import subprocess\nsubprocess.run(['sleep', '30'])",
}


@pytest.mark.parametrize("what", list(STUBBORN))
@pytest.mark.undisturbed
def test_nothing_holds_off_the_wall(atoll, what):
    result = atoll.python(STUBBORN[what], options=["--timeout", "0.9"])
    check(result, "timeout", "timeout", 0.9, 124)
    assert result["stdout"] == "up\n" and result["_elapsed"] < 10


@quick
@pytest.mark.parametrize("daemon", ["sleep 30", "exec >&- 2>&-; sleep 30", "while :; do echo noise; sleep 0.01; done",
                                    "trap '' HUP TERM INT; sleep 30"])
@pytest.mark.undisturbed
def test_daemons_do_not_hold_up_the_result(atoll, daemon):
    """Main ends with 5 while a double-forked child holds stdout: the result comes at once."""
    result = atoll.bash(f"(setsid bash -c '{daemon.replace(chr(39), chr(34))}' &) ; echo main; exit 5",
                        options=["--timeout", "30"])
    assert result["exit_code"] == 5 and result["stdout"].startswith("main\n") or "main\n" in result["stdout"]
    assert result["status"] == "error" and result["_elapsed"] < 8


# ------------------------------------------------------------------------------------------ memory

EATERS = {
    "heap": "x = bytearray(200 << 20)\nfor i in range(0, len(x), 4096): x[i] = 1\nprint('ate')",
    "anonymous shared": "import mmap\nm = mmap.mmap(-1, 200 << 20)\nfor i in range(0, 200 << 20, 4096): m[i] = 1\nprint('ate')",
    "tmpfs": "f = open('/tmp/x', 'wb')\nfor _ in range(200): f.write(b'x' * (1 << 20)); f.flush()\nprint('ate')",
    "shm": "f = open('/dev/shm/x', 'wb')\nfor _ in range(200): f.write(b'x' * (1 << 20)); f.flush()\nprint('ate')",
    "memfd": "import os\nf = os.memfd_create('x')\nfor _ in range(200): os.write(f, b'x' * (1 << 20))\nprint('ate')",
}


@pytest.mark.modes("root")
@pytest.mark.parametrize("how", [pytest.param(h, marks=quick if h == "heap" else []) for h in EATERS])
def test_memory(atoll, how):
    result = atoll.python(EATERS[how], options=["-m", "64m", "--disk", "512m", "--file-size", "512m"])
    if how == "shm" and result["status"] == "error":
        assert "No space left" in result["stderr"]  # /dev/shm may be sized below memory
        return
    check(result, "limit", "memory", 64 * MIB, 137)
    assert 60 * MIB <= result["cause"]["peak"] <= 64 * MIB and result["memory_peak"] == result["cause"]["peak"]
    assert result["cause"]["suggest"] > 64 * MIB and result["cause"]["retryable"] is True
    assert "ate" not in result["stdout"]


@pytest.mark.modes("rootless")
@pytest.mark.parametrize("how", ["heap", "anonymous shared", "tmpfs", "memfd"])
def test_memory_without_cgroup(atoll, how):
    result = atoll.python(EATERS[how], options=["-m", "64m", "--disk", "48m", "--timeout", "40"])
    if needs_cgroup(result):
        check(result, "limit", "memory", 64 * MIB)
        return
    assert {"cgroup-memory"} <= set(result["isolation"]["missing"])
    if how == "heap":
        assert result["status"] in ("error", "limit") and "MemoryError" in result["stderr"], result
    if how == "tmpfs":
        assert result["status"] == "limit" and result["cause"]["kind"] == "disk", result


def child_eats(ending):
    return ("import os\npid = os.fork()\n"
            "if pid == 0:\n    x = bytearray(200 << 20)\n    os._exit(0)\n"
            f"_, status = os.waitpid(pid, 0)\nprint('child', status, flush=True)\nos._exit({ending})")


@pytest.mark.modes("root")
def test_memory_of_a_child_while_main_fails(atoll):
    result = atoll.python(child_eats(42), options=["-m", "64m"])
    check(result, "limit", "memory", 64 * MIB)
    if result["isolation"]["cgroup"] == "v1":  # v2 kills the group as one
        assert result["exit_code"] == 42 and result["stdout"] == "child 9\n"


@pytest.mark.modes("root")
def test_memory_of_a_child_while_main_succeeds(atoll):
    result = atoll.python(child_eats(0), options=["-m", "64m"])
    if result["isolation"]["cgroup"] == "v1":
        assert result["status"] == "success" and "memory" in result["usage"]["limit_hits"], result


def test_sigkill_alone_is_no_memory_limit(atoll):
    result = atoll.bash("kill -KILL $$")
    assert result["status"] == "error" and result["cause"]["kind"] == "signal" and result["exit_code"] == 137


def test_memory_within_the_limit(atoll):
    assert atoll.python("x = bytearray(40 << 20)\nprint(len(x))", options=["-m", "128m"])["stdout"] == "41943040\n"


def sandbox_cgroups():
    from oracle import list_cgroups
    return list_cgroups()


def read(path):
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None


@pytest.mark.modes("root")
def test_kernel_is_told_the_numbers(atoll):
    """What the kernel holds for a running sandbox, read from outside."""
    before = sandbox_cgroups()
    popen = atoll.popen(["run", "-l", "bash", "-m", "96m", "--swap", "32m", "--pids", "37", "--cpus", "0.5", "-c",
                         "echo up; read"])
    assert popen.stdout.readline() == b"up\n"
    groups = sandbox_cgroups() - before
    values = {}
    for group in groups:
        for name in ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "pids.max", "cpu.cfs_quota_us",
                     "cpu.cfs_period_us", "memory.max", "memory.swap.max", "cpu.max", "tasks", "cgroup.procs"):
            value = read(f"{group}/{name}")
            if value:
                values.setdefault(name, []).append(value)
    popen.communicate(timeout=25)
    if "cpu.max" in values:
        assert str(96 * MIB) in values["memory.max"] and "37" in values["pids.max"]
        assert str(32 * MIB) in values.get("memory.swap.max", [str(32 * MIB)])
        shares = [v.split() for v in values["cpu.max"] if not v.startswith("max")]
    else:
        assert str(96 * MIB) in values["memory.limit_in_bytes"]
        assert str(128 * MIB) in values.get("memory.memsw.limit_in_bytes", [str(128 * MIB)])
        shares = [(v, values["cpu.cfs_period_us"][0]) for v in values["cpu.cfs_quota_us"] if v != "-1"]
    # Others' sandboxes may have come meanwhile.
    assert any(int(quota) / int(period) == pytest.approx(0.5) for quota, period in shares), shares
    pids = [int(v) for v in values["pids.max"] if v != "max"]
    assert any(37 <= v <= 39 for v in pids), pids  # init may be counted on top


@pytest.mark.modes("root")
def test_swap_is_zero_by_default(atoll):
    before = sandbox_cgroups()
    popen = atoll.popen(["run", "-l", "bash", "-m", "96m", "-c", "echo up; read"])
    assert popen.stdout.readline() == b"up\n"
    found = [read(f"{g}/{n}") for g in sandbox_cgroups() - before
             for n in ("memory.memsw.limit_in_bytes", "memory.swap.max")]
    popen.communicate(timeout=25)
    assert str(96 * MIB) in found or "0" in found or set(found) == {None}


# --------------------------------------------------------------------------------------------- cpu

SPIN = ("import os, time\nfor _ in range({extra}): os.fork()\n"
        "end = time.monotonic() + {wall}\nwhile time.monotonic() < end: pass\n")


@pytest.mark.undisturbed
@pytest.mark.modes("root")
@pytest.mark.parametrize("cpus,processes", [("0.25", 1), ("0.5", 2)])
def test_cpus_share(atoll, cpus, processes):
    """CPU used over wall time is the share asked for. Never more than 15 % above; below only as far as the host is busy."""
    extra = {1: 0, 2: 1}[processes]
    shares = []
    for _ in range(4):
        result = atoll.python(SPIN.format(extra=extra, wall=1.5) + "\nos.wait() if False else None",
                              options=["--cpus", cpus, "--timeout", "40"])
        shares.append(result["cpu_time"] / result["duration"])
        assert shares[-1] <= float(cpus) * 1.15, result
        if shares[-1] >= float(cpus) * 0.6:
            return
    raise AssertionError(f"asked for {cpus}, measured {shares}")


@pytest.mark.undisturbed
@pytest.mark.modes("root")
@pytest.mark.brief
def test_quota_and_period_are_another_way_to_say_cpus(library):
    code = SPIN.format(extra=0, wall=1)
    shares = []
    for _ in range(4):
        rc, result, problem = library.run({"language": "python", "code": code,
                                           "limits": {"cpu_quota": 30000, "cpu_period": 100000}})
        assert rc == 0, problem
        shares.append(result["cpu_time"] / result["duration"])
        if 0.3 * 0.6 <= shares[-1] <= 0.3 * 1.15:
            return
    raise AssertionError(f"asked for 0.3, measured {shares}")


# -------------------------------------------------------------------------------------------- pids

FORKS = ("import os, signal\nn = 0\n"
         "try:\n"
         "    while n < 500:\n"
         "        if os.fork() == 0: signal.pause()\n"
         "        n += 1\n"
         "except BlockingIOError: print('refused at', n, flush=True)\n"
         "os._exit(3)")
THREADS = ("import threading, os\ngo = threading.Event()\nn = 0\n"
           "try:\n"
           "    while n < 500: threading.Thread(target=go.wait, daemon=True).start(); n += 1\n"
           "except RuntimeError: print('refused at', n, flush=True)\n"
           "os._exit(3)")
BOMB = ":(){ :|:& };:; wait; exit 1"


@quick
@pytest.mark.parametrize("code", [FORKS, THREADS], ids=["processes", "threads"])
def test_pids(atoll, code):
    result = atoll.python(code, options=["--pids", "20", "--timeout", "40"])
    assert result["exit_code"] == 3 and result["stdout"].startswith("refused at "), result
    assert 10 <= int(result["stdout"].split()[2]) <= 20
    if needs_cgroup(result):
        check(result, "limit", "pids", 20, 3)
        assert 18 <= result["cause"]["peak"] <= 21
    else:
        assert result["status"] in ("error", "limit") and "cgroup-pids" in result["isolation"]["missing"]


@pytest.mark.undisturbed
def test_fork_bomb(atoll):
    result = atoll.bash(BOMB, options=["--pids", "40", "--timeout", "1"])
    assert result["status"] in ("timeout", "limit", "error") and result["_elapsed"] < 15
    assert result["stdout_bytes"] == 0 and len(result["stderr"]) <= 2 * MIB


def test_pids_peak_below_the_limit_is_no_hit(atoll):
    result = atoll.bash("sleep 0.1 & sleep 0.1 & wait; exit 4", options=["--pids", "20"])
    assert (result["status"], result["cause"]["kind"]) == ("error", "exit")


# ------------------------------------------------------------------------------------------ output


def test_output_flood(atoll, measure):
    """10 GiB are attempted. The run ends at output_total and atoll's own memory stays flat."""
    code = "import os\nb = b'x' * (1 << 20)\nfor _ in range(10240): os.write(1, b)\nprint('all')"
    result, peak = atoll.peak_kib(["-l", "python", "--output-total", "32m", "-c", code], measure, timeout=60)
    check(result, "limit", "output", 32 * MIB)
    assert result["stdout_truncated"] is True and 32 * MIB <= result["stdout_bytes"] <= 64 * MIB
    assert len(result["stdout"]) <= MIB + 200
    assert peak < 24 * 1024, f"atoll used {peak} KiB"


def test_output_flood_on_stderr_without_newline(atoll):
    code = "import os\nb = b'\\0\\xff' * (1 << 19)\nwhile True: os.write(2, b)"
    result = atoll.python(code, options=["--output-total", "8m", "--timeout", "50"])
    check(result, "limit", "output", 8 * MIB)
    assert result["stderr_truncated"] is True and result["stdout_bytes"] == 0


def test_output_flood_streamed(atoll):
    """Without --json the caller gets no more than the limit either."""
    popen = atoll.popen(["run", "-l", "bash", "--output-total", "4m", "--timeout", "50", "-c", "yes"],
                        stdin=subprocess.DEVNULL)
    total = 0
    while chunk := popen.stdout.read(1 << 16):
        total += len(chunk)
    err = popen.stderr.read()
    assert popen.wait(25) >= 125 and 3 * MIB <= total <= 5 * MIB
    assert b"output" in err and REDUCED.sub(b"", err).count(b"\n") == 1
    popen.stdout.close(), popen.stderr.close()


def test_flat_memory_does_not_depend_on_output(atoll, measure):
    _, small = atoll.peak_kib(["-l", "bash", "-c", "head -c 2000000 /dev/zero"], measure)
    result, large = atoll.peak_kib(["-l", "bash", "-c", "head -c 60000000 /dev/zero"], measure)
    assert result["stdout_bytes"] == 60000000 and large - small < 1024, (small, large)


# -------------------------------------------------------------------------------------------- disk


@quick
@pytest.mark.parametrize("place", ["/sandbox", "/tmp"])
def test_disk_bytes(atoll, place):
    result = atoll.bash(f"head -c 64000000 /dev/zero > {place}/big || exit 9", options=["--disk", "8m"])
    check(result, "limit", "disk", 8 * MIB, 9)
    assert 7 * MIB <= result["cause"]["peak"] <= 8 * MIB and "No space left" in result["stderr"]


def test_disk_is_one_for_both_places(atoll):
    result = atoll.bash("head -c 5000000 /dev/zero > /tmp/a && head -c 5000000 /dev/zero > /sandbox/b || exit 9",
                        options=["--disk", "8m"])
    check(result, "limit", "disk", 8 * MIB, 9)


def test_disk_hit_but_ended_with_0(atoll):
    result = atoll.bash("head -c 64000000 /dev/zero > /tmp/big 2>&-; exit 0", options=["--disk", "8m"])
    assert result["status"] == "success" and "disk" in result["usage"]["limit_hits"], result


@quick
def test_inodes(atoll):
    code = ("import sys\nn = 0\n"
            "try:\n    for n in range(1000): open(f'/tmp/{n}', 'w').close()\n"
            "except OSError as e: print(e.errno, n); sys.exit(9)")
    result = atoll.python(code, options=["--files", "200"])
    check(result, "limit", "disk", 200, 9)
    errno, made = map(int, result["stdout"].split())
    assert errno == 28 and 150 <= made <= 200


@quick
@pytest.mark.parametrize("place", ["/sandbox", "/tmp"])
def test_file_size(atoll, place):
    code = (f"import sys\nf = open('{place}/x', 'wb', 0)\n"
            "try:\n    for _ in range(40): f.write(b'x' * 100000)\n"
            "except OSError as e: print(e.errno, f.tell()); sys.exit(9)")
    result = atoll.python(code, options=["--file-size", "1m"])
    errno, size = map(int, result["stdout"].split())
    assert errno == 27 and size == MIB
    check(result, "limit", "disk", MIB, 9)


def test_file_size_by_signal(atoll):
    result = atoll.bash("head -c 5000000 /dev/zero > x; echo $?; exit 9", options=["--file-size", "1m"])
    assert result["stdout"] == "153\n"  # 128 + SIGXFSZ
    assert result["status"] == "limit" and result["cause"]["kind"] == "disk"


@quick
def test_open_files(atoll):
    code = ("import os, sys\nn = 0\n"
            "try:\n    while True: os.dup(0); n += 1\n"
            "except OSError as e: print(e.errno, n); sys.exit(9)")
    result = atoll.python(code, options=["--open-files", "32"])
    errno, made = map(int, result["stdout"].split())
    assert errno == 24 and 25 <= made <= 29 and result["exit_code"] == 9 and result["status"] == "error"


def test_stack(atoll):
    code = "import resource, json; print(json.dumps(resource.getrlimit(resource.RLIMIT_STACK)))"
    assert atoll.probe(code, options=["--stack", "1m"]) == [MIB, MIB]


# ---------------------------------------------------------------------------------------- defaults


def test_defaults_of_the_table(atoll):
    code = ("import resource as r, os, json\n"
            "s = os.statvfs('/sandbox')\n"
            "print(json.dumps({'fsize': r.getrlimit(r.RLIMIT_FSIZE), 'nofile': r.getrlimit(r.RLIMIT_NOFILE),"
            "'stack': r.getrlimit(r.RLIMIT_STACK), 'core': r.getrlimit(r.RLIMIT_CORE),"
            "'disk': s.f_blocks * s.f_frsize, 'files': s.f_files}))")
    seen = atoll.probe(code)
    assert seen["fsize"] == [256 * MIB] * 2 and seen["nofile"] == [1024, 1024] and seen["stack"] == [8 * MIB] * 2
    assert seen["core"] == [1, 1]  # with 0 the kernel would still start a helper that core_pattern names
    assert seen["disk"] == 256 * MIB and seen["files"] == 16 * 1024


# ------------------------------------------------------------------------------------- bad values

BAD = [
    ("--timeout", "timeout", ["0", "-1", "nan", "inf", "1e308", "1e400", "abc", "", "5x", "1 s", "301", "999999999999999999999"]),
    ("--memory", "memory", ["0", "-1", "9g", "1.5.2m", "abc", "", "1e400", "999999999999999999999g", "12q", "0x10m"]),
    ("--cpus", "cpus", ["0", "-1", "nan", "abc", "4096"]),
    ("--pids", "pids", ["0", "-1", "4097", "1.5", "many"]),
    ("--output", "output", ["-1", "17m", "x"]),
    ("--output-total", "output_total", ["-1", "2g", "x"]),
    ("--disk", "disk", ["0", "-1", "5g", "x"]),
    ("--files", "files", ["0", "-1", "2m", "x"]),
    ("--swap", "swap", ["-1", "9g", "x"]),
    ("--cpu-time", "cpu_time", ["-1", "301", "x"]),
    ("--idle-timeout", "idle_timeout", ["-1", "301", "x"]),
    ("--open-files", "open_files", ["-1", "x", "99999999"]),
]


@pytest.mark.modes("rootless")
@pytest.mark.parametrize("flag,key,value", [(f, k, v) for f, k, vs in BAD for v in vs])
def test_bad_value_is_refused(atoll, flag, key, value):
    done = atoll.run(["run", "-l", "bash", f"{flag}={value}", "-c", "echo ran"])
    assert done.returncode in (125, 126), done
    assert done.stdout == b"", done
    assert done.err.count("\n") == 1 and key in done.err.replace("-", "_"), done
    if value:
        assert value[:12] in done.err, f"the message must name the value: {done.err}"


@quick
@pytest.mark.modes("rootless")
def test_value_above_the_ceiling_names_it(atoll):
    done = atoll.run(["run", "-l", "bash", "--memory", "9g", "-c", ":"])
    assert done.returncode in (125, 126) and ("8 GiB" in done.err or "8g" in done.err or "8589934592" in done.err), done


@pytest.mark.modes("rootless")
@pytest.mark.parametrize("limits", [
    {"memory": -1}, {"memory": "x"}, {"memory": None}, {"memory": []}, {"memory": True}, {"memory": 1e308},
    {"timeout": 0}, {"timeout": -0.5}, {"timeout": "NaN"}, {"timeout": 1e308}, {"timeout": {}}, {"frob": 1},
    {"Memory": 1 << 26}, {"pids": 1.5}, {"cpus": "0"}, {"gpus": 1}])
def test_bad_value_in_json(library, limits):
    rc, result, problem = library.run({"language": "bash", "code": "echo ran", "limits": limits})
    assert rc < 0 or result["status"] in ("setup_error", "denied"), result
    text = (problem or "") + (result or {}).get("cause", {}).get("detail", "") + str((result or {}).get("stderr"))
    assert list(limits)[0] in text, text
    assert not result or (result["exit_code"] is None and result["stdout"] == "")


@pytest.mark.modes("rootless")
@pytest.mark.parametrize("raw", ['{"language":"bash","code":":","limits":{"timeout":NaN}}',
                                 '{"language":"bash","code":":","limits":{"timeout":1e999}}',
                                 '{"language":"bash","code":":","limits":{"memory":99999999999999999999999}}',
                                 '{"language":"bash","code":":","limits":{"memory":1,"memory":2}}',
                                 '{"language":"bash","code":":"', '[]', 'null', '', '"x"', "{}",
                                 '{"language":"bash","code":":","frobnicate":1}',
                                 '{"language":"bash","code":7}', '{"language":7,"code":":"}',
                                 '{"code":":"}', '{"language":"bash"}',
                                 '[' * 100000, '{"a":' * 100000])
def test_malformed_request(library, raw):
    rc, result, problem = library.run(None, raw=raw)
    assert rc < 0 or result["status"] in ("setup_error", "denied"), result
    assert problem or result["cause"]["detail"]


@pytest.mark.modes("rootless")
@pytest.mark.parametrize("text,seconds", [("500ms", 0.5), ("0.5", 0.5), ("0.5s", 0.5)])
def test_ways_to_write_a_time(atoll, text, seconds):
    result = atoll.bash("sleep 9", options=["--timeout", text])
    assert result["status"] == "timeout" and result["cause"]["limit"] == pytest.approx(seconds)


@pytest.mark.modes("rootless")
@pytest.mark.parametrize("text,size", [("4194304", 4 * MIB), ("4m", 4 * MIB), ("4096k", 4 * MIB), ("4M", 4 * MIB)])
def test_ways_to_write_a_size(atoll, text, size):
    result = atoll.bash("df -B1 --output=size /tmp | tail -1", options=["--disk", text])
    assert int(result["stdout"]) == size


def test_suggestions_can_work(atoll):
    """A limit worth retrying with covers what was asked for in one piece; no time is enough for a network that is not there."""
    piece = atoll.python("x = bytearray(10**9)", options=["--memory", "64m"])
    if needs_cgroup(piece):
        assert piece["cause"]["kind"] == "memory" and piece["cause"]["suggest"] >= 10**9, piece["cause"]
    waits = atoll.python("""
import time, urllib.request
while True:
    try:
        urllib.request.urlopen("http://example.org/")
    except OSError as e:
        print(e, flush=True)
    time.sleep(0.3)
""", options=["--timeout", "2"])
    assert (waits["cause"]["kind"], waits["cause"]["suggest"], waits["cause"]["retryable"]) == ("timeout", None, False), waits["cause"]


CROWD = """
import os, sys, time
children = []
def add(n):
    for _ in range(n):
        pid = os.fork()
        if pid == 0:
            time.sleep(60)
            os._exit(0)
        children.append(pid)
def nice():
    return sorted({os.getpriority(os.PRIO_PROCESS, pid) for pid in children})
add(8)
time.sleep(0.2)
few = nice()
add(72)
end = time.monotonic() + float(sys.argv[1])
while nice() != [19] and time.monotonic() < end:
    time.sleep(0.01)
print(few, nice())
"""


def test_crowds_are_in_the_background(atoll):
    """Without a cgroup each of a thousand processes would get as much of the processors as the broker that is to end them."""
    has_cgroup = needs_cgroup(atoll.bash("true"))
    result = atoll.python(CROWD, "0.3" if has_cgroup else "20")
    usual = os.nice(0)
    assert result["stdout"] == f"[{usual}] [{usual if has_cgroup else 19}]\n", result
