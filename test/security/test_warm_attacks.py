# SPDX-License-Identifier: Apache-2.0
"""Attacks on what only warm runs have: the program's socket, the reply rule, zygotes by `preload`, used network namespaces.

And a comparison, field by field, of what a warm program stands behind with what a cold one does.
"""
import contextlib
import os
import re
import secrets
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import oracle
from program import Atoll
from resident import front, own

pytestmark = pytest.mark.cold("it is about warm cells")
needs_root = pytest.mark.skipif(not oracle.IS_ROOT, reason="looks into other users' processes: needs root")


# ------------------------------------------------------------------------------------ cold and warm, field by field


ISOLATION = r"""
import ctypes, fcntl, json, os, re, resource, signal, socket
libc = ctypes.CDLL(None)
status = dict(l.split(':', 1) for l in open('/proc/self/status').read().splitlines())
names = ('Umask Uid Gid Groups NoNewPrivs Seccomp Seccomp_filters CapInh CapPrm CapEff CapBnd CapAmb SigBlk SigIgn SigCgt SigPnd ShdPnd Threads'
         ' Cpus_allowed Mems_allowed NStgid NSpid NSpgid NSsid CoreDumping THP_enabled').split()
text = lambda name: open('/proc/self/' + name).read()
out = {name: status.get(name, '').strip() for name in names}
out['maps'] = [[text(n).split()[i] for i in (0, 2)] for n in ('uid_map', 'gid_map')] + [text('setgroups')]
out['oom'] = text('oom_score_adj')
out['cgroup'] = [l.split(':', 1)[1] for l in text('cgroup').splitlines()]
# The root is a read-only view of a tree made once (warm) or made anew (cold); directories of /etc are in it, or shown.
out['mounts'] = sorted(re.sub(r'\b\d+:\d+\b|\w*dir=[^ ,]*|[ug]id=\d+|(?<=^/ / ro,nosuid,nodev,relatime - ).*', '', ' '.join(l.split()[3:]))
                       for l in text('mountinfo').splitlines() if ' /etc/' not in l)
out['rlimits'] = {n: resource.getrlimit(getattr(resource, n)) for n in dir(resource) if n.startswith('RLIMIT_')}
out['prctl'] = {n: libc.prctl(v, 0, 0, 0, 0) for n, v in dict(dumpable=3, keepcaps=7, securebits=27, slack=30, mce=34, nnp=39, thp=42).items()}
out['personality'] = libc.personality(0xffffffff)
out['scheduler'] = [os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0), sorted(os.sched_getaffinity(0))]
out['ids'] = [os.getpid(), os.getppid(), os.getsid(0), os.getpgrp()]
out['host'] = [socket.gethostname(), os.getcwd()]
out['environ'] = dict(os.environ)
out['fds'] = [fd for fd in range(1024) if fd != 100 and os.path.lexists('/proc/self/fd/%d' % fd)]
out['streams'] = [[os.fstat(fd).st_mode, fcntl.fcntl(fd, fcntl.F_GETFL), fcntl.fcntl(fd, fcntl.F_GETFD)] for fd in range(3)]
out['timers'] = [signal.getitimer(n) for n in range(3)]
out['shared'] = [l for l in text('maps').splitlines() if 'w' in l.split()[1] and 's' in l.split()[1]]
print(json.dumps([out, {n: os.readlink('/proc/self/ns/' + n) for n in os.listdir('/proc/self/ns')}]))
"""


def test_isolation_is_the_cold_one(front):
    cold, _ = Atoll(front.mode, front.stage).probe("pass\n" + ISOLATION)
    warm, spaces = front.probe(ISOLATION)
    # A broker's first sandbox is cloned beside its own confinement; those that come later inherit the broker's filter, too.
    assert int(warm.pop("Seccomp_filters")) == int(cold.pop("Seccomp_filters")) + 1
    assert {k: (cold[k], warm[k]) for k in cold if cold[k] != warm[k]} == {}
    assert warm["shared"] == [], "memory that a program shares with its zygote and can write to"
    for kind in ("user", "pid", "mnt", "net", "ipc", "uts", "cgroup"):
        assert spaces[kind] != os.readlink(f"/proc/self/ns/{kind}")


def test_the_agents_variables_are_not_seen(front):
    text = front.probe("import json; print(json.dumps(open('/proc/self/environ').read()))")
    assert "LD_PRELOAD" not in text and "ATOLL_AGENT" not in text


# ------------------------------------------------------------------------------------ forged results


@pytest.mark.parametrize("first", [b"", b"0"])
@pytest.mark.parametrize("index", [0, 10, 1 << 31])
def test_a_program_cannot_say_that_its_launch_failed(front, index, first):
    """The record by which the agent reports that files do not fit: from a program it would hide usage and blame the host."""
    result = front.python(f"""
import os, struct, time
open('/sandbox/not-untouched', 'w').close()
if {first!r}: os.write(100, {first!r})
os.write(100, struct.pack('=IIiiqqiII32sxxxxqqqqq', 2, {index}, 13, 0, 0, 0, 0, 0, 0, b'', 0, 0, 0, 0, 0))
time.sleep(0.3)
os._exit(7)
""")
    assert result["cause"]["kind"] == "exit" and result["exit_code"] == (0 if first else 7) and result["cpu_time"] is not None, result


CHANGES = {
    "swapped": "os.rename('a', 't'); os.rename('b', 'a'); os.rename('t', 'b')",
    "exchanged": "import ctypes; ctypes.CDLL(None).renameat2(-100, b'a', -100, b'b', 2)",
    "time put back": "s = os.stat('a').st_mtime_ns; open('a', 'w').write('Z' * 9); os.utime('a', ns=(s, s)); s = os.stat('b').st_mtime_ns;"
                     " open('b', 'w').write('Y'); os.utime('b', ns=(s, s))",
    "mapped": "import mmap\nfor n in 'ab':\n    f = open(n, 'r+b'); m = mmap.mmap(f.fileno(), 1); m[:] = b'Z'; m.close()",
}


@pytest.mark.parametrize("how", list(CHANGES))
def test_changed_files_are_told(front, work, how):
    """The reply that leaves before the death must not miss what a cold run reports."""
    for name in "ab":
        (work / name).write_text(name)
    options = [word for name in "ab" for word in ("--file", f"{name}={work / name}")]
    result = front.python("import os\n" + CHANGES[how], options=options)
    assert result["status"] == "success" and sorted(f["path"] for f in result["files"]) == ["a", "b"], result


@pytest.mark.parametrize("what", ["os.open('out', os.O_CREAT | os.O_RDWR)", "os.pipe()[0]", "os.pipe()[1]",
                                  "__import__('socket').socketpair()[0].detach()"])
def test_descriptor_100_can_be_the_programs(front, what):
    result = front.python(f"import os\nfd = {what}\nos.dup2(fd, 100)\nprint('on')", options=["--timeout", "40"])
    assert (result["status"], result["stdout"]) == ("success", "on\n"), result
    assert [f["size"] for f in result["files"]] in ([], [0]), result


# ------------------------------------------------------------------------------------ what the next tenant finds


def test_a_flow_label_is_not_left(front):
    """It outlives its socket by up to 150 seconds, is counted nowhere, and holds 128 bits of the program's choice."""
    code = """
import json, os, socket, struct
path = '/proc/self/net/ip6_flowlabel'
found = open(path).read().splitlines()[1:] if os.path.exists(path) else []
try: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).setsockopt(41, 32, b'\\x20\\x01' + b'hi' * 7 + struct.pack('!I', 0x12345)
                                                                  + struct.pack('=BBHHHI', 0, 1, 1, 60, 60, 0))
except OSError: pass
print(json.dumps(found))
"""
    assert [front.probe(code) for _ in range(10)] == [[]] * 10


# ------------------------------------------------------------------------------------ what is made once for many


SEES = r"""
import errno, json, os
def text(path):
    try: return open(path).read()
    except OSError as e: return errno.errorcode[e.errno]
root = next(l for l in open('/proc/self/mountinfo') if l.split()[4] == '/').split(' - ')[1].split()[0]
names = ('planted-open', 'planted-group', 'planted-secret', 'alternatives/planted-open', 'alternatives/planted-secret')
print(json.dumps([root, [text('/etc/' + n) for n in names], sorted(os.listdir('/etc/alternatives'))]))
"""


def write_new(path, bits):
    """Never through a link: a copy of /etc is full of links to the host's own files."""
    with open(path, "x") as f:
        f.write(path.name)
    path.chmod(bits)


@pytest.fixture
def host_etc(stage, work):
    """A host with files of its own in /etc, which no other process sees: (its /etc, what goes before a command there, options)."""
    etc = work / "etc"
    subprocess.run(["cp", "-a", "/etc", etc], check=True)
    text = (stage.data / "policies" / "default.yaml").read_text()
    assert "etc: [alternatives," in text
    (work / "policy.yaml").write_text(text.replace("etc: [", "etc: [planted-open, planted-group, planted-secret, "))
    for name, bits in (("planted-open", 0o644), ("planted-group", 0o640), ("planted-secret", 0o600)):
        write_new(etc / name, bits)
    there = ["unshare", "--mount", "sh", "-c", f'mount --bind {etc} /etc && exec "$@"', "sh"]
    return etc, there, ["--policy", str(work / "policy.yaml")]


@needs_root
@pytest.mark.modes("root")
def test_a_skeleton_holds_what_a_sandbox_may_read(own, host_etc):
    """It holds copies for later programs: nothing that only root can read, as in a cold run."""
    _, there, options = host_etc
    pool = own(wrap=there)
    _, *cold = pool.atoll.variant(wrap=there).probe(SEES, options=options)
    assert cold[0] == ["planted-open", "ENOENT", "ENOENT", "ENOENT", "ENOENT"]
    deadline, root = time.monotonic() + 60, None
    while root != "overlay":  # it has a skeleton
        assert time.monotonic() < deadline, "no sandbox has a skeleton"
        root, *warm = pool.front().probe(SEES, options=options)
        assert warm == cold


@needs_root
@pytest.mark.modes("root")
def test_a_small_directory_is_copied_whole_or_shown(own, host_etc):
    """One file in it that only root can read: it stays unreadable, and nothing beside it is lost."""
    etc, there, options = host_etc
    write_new(etc / "alternatives" / "planted-open", 0o644)
    write_new(etc / "alternatives" / "planted-secret", 0o600)
    pool = own(wrap=there)
    _, *cold = pool.atoll.variant(wrap=there).probe(SEES, options=options)
    assert cold[0] == ["planted-open", "ENOENT", "ENOENT", "planted-open", "EACCES"]
    for _ in range(10):
        _, *warm = pool.front().probe(SEES, options=options)
        assert warm == cold


# ------------------------------------------------------------------------------------ what starts ahead


STARTS = """
name: greedy
title: Greedy
extensions: [greedy]
source: code.greedy
runtime: /usr/bin/sleep
package: coreutils
version: [/usr/bin/sleep, --version]
run: [/usr/bin/cat, "{source}"]
warm:
  kind: start
  run: [/usr/bin/sleep, "47.11"]
"""


def limits_of(pid):
    """Of memory, processes and processor time, as the kernel has them for a process's group."""
    groups = {name: path for _, names, path in (line.split(":", 2) for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines())
              for name in names.split(",")}
    files = {"memory": "memory.limit_in_bytes", "pids": "pids.max", "cpu": "cpu.cfs_quota_us"}
    if all(name in groups for name in files):
        return [Path(f"/sys/fs/cgroup/{name}{groups[name]}/{file}").read_text().strip() for name, file in files.items()]
    return [Path(f"/sys/fs/cgroup{groups['']}/{file}").read_text().split()[0] for file in ("memory.max", "pids.max", "cpu.max")]


@needs_root
@pytest.mark.modes("root")
@pytest.mark.parametrize("shares", [[], ["--cpu-shares", "77"]])
def test_what_starts_ahead_is_limited(own, stage, work, shares):
    """A front that was taken over may have any command started, and no client waits for it: the command has the rights of its request."""
    data = shutil.copytree(stage.data, work / "data")
    (data / "languages" / "greedy.yaml").write_text(STARTS)
    pool = own("--spares", "1", env={"ATOLL_DATA_DIR": str(data)})
    front = pool.any_front().variant(env={"ATOLL_DATA_DIR": str(data)})
    found, deadline = [], time.monotonic() + 60
    while not found:
        assert time.monotonic() < deadline, "nothing is started ahead"
        result = front.result(["-l", "greedy", "--memory", "200m", "--pids", "17", "--cpus", "0.5", *shares, "-c", "cold"])
        assert result["stdout"] == "cold", result
        for pid in [p for p in pool.below() if oracle.command_line(p).startswith("/usr/bin/sleep")]:
            with contextlib.suppress(OSError):  # gone meanwhile
                found.append(limits_of(pid))
    # Processors enough that it is there soon; and one process is init.
    assert found[0] == [str(200 << 20), "18", "200000"]


# ------------------------------------------------------------------------------------ zygotes by name


@needs_root
def test_preload_runs_no_program_of_a_package(own):
    """lib2to3.__main__ takes sys.argv for files: it would read all of /usr, at full speed, outside of any sandbox."""
    pool = own()
    result = pool.any_front().python("print(1)", options=["--preload", "usr,lib2to3.__main__"])
    assert result["status"] == "setup_error" and "'lib2to3.__main__' is not the name of a module" in result["cause"]["detail"]
    assert not any("lib2to3" in oracle.command_line(p) for p in pool.below())


@pytest.fixture
def module_that_stays():
    """An installed module that starts a process of its own when it is loaded: (its name, a word of that process)."""
    name, word = f"planted_{secrets.token_hex(6)}", f"{4711 + secrets.randbelow(1 << 20)}.5"
    path = Path(f"/usr/local/lib/python3.{sys.version_info[1]}/dist-packages/{name}.py")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"import os\nos.posix_spawn('/usr/bin/sleep', ['sleep', '{word}'], {{}}, setsid=True)\n")
    yield name, word
    path.unlink()


def status_of(pid):
    return dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)


def bounds_of(uid):
    """Of the group that has the name of this uid: its memory and how many processes."""
    names = (("memory.limit_in_bytes", "memory.max"), ("pids.max",))
    groups = [path for path in Path("/sys/fs/cgroup").rglob(f"*{uid}") if path.is_dir()]
    return [[(group / name).read_text().strip() for group in groups for name in either if (group / name).exists()] for either in names]


@needs_root
@pytest.mark.modes("root")
def test_modules_of_a_caller_are_loaded_without_rights(own, stage, work, module_that_stays):
    """Their zygote has no capability, a uid and a cgroup of its own, and leaves nothing that a module has started."""
    name, word = module_that_stays
    text = (stage.data / "policies" / "default.yaml").read_text()
    (work / "any.yaml").write_text(text.replace("preload: tiers", "preload: any"))
    pool = own()
    assert pool.any_front().run(["run", "-l", "python", "--preload", name, "-c", "1"]).returncode == 126
    front = pool.front()
    front.until_warm()
    result = front.python(f"import {name}\nprint(open('/proc/self/uid_map').read().split()[2])", options=["--policy", work / "any.yaml", "--preload", name])
    assert result["stdout"] == "1\n" and result["isolation"]["tier"] == "full", result
    guests = [pid for pid in pool.zygotes() if name in oracle.command_line(pid)]
    plain = [pid for pid in pool.zygotes() if "planted_" not in oracle.command_line(pid)]
    started = [pid for pid in oracle.parents() if word in oracle.command_line(pid) and "sleep" in oracle.command_line(pid)]
    assert guests and plain and started
    for pid in guests + started:
        status = status_of(pid)
        assert int(status["CapPrm"], 16) == int(status["CapEff"], 16) == int(status["CapAmb"], 16) == 0, status
    uids = {pid: status_of(pid)["Uid"].split()[0] for pid in guests + plain + started}
    assert not {uids[pid] for pid in guests} & {uids[pid] for pid in plain} and {uids[pid] for pid in started} <= {uids[pid] for pid in guests}
    assert all(bounds_of(uids[pid]) == [[str(1 << 30)], ["33"]] for pid in guests), [bounds_of(uids[pid]) for pid in guests]
    assert pool.end() == 0
    assert not [pid for pid in oracle.parents() if word in oracle.command_line(pid)]


def test_lists_of_modules_are_few(own, stage, work):
    """However many lists callers name: few have a zygote, the others run cold, and the zygotes of the tiers stay."""
    text = (stage.data / "policies" / "default.yaml").read_text()
    (work / "any.yaml").write_text(text.replace("preload: tiers", "preload: any"))
    (work / "any.yaml").chmod(0o644)
    pool = own()
    pool.front().until_warm()
    front, plain = pool.any_front(), set(pool.zygotes())
    names = ["aifc", "cgi", "chunk", "colorsys", "imghdr", "mailbox", "sndhdr", "wave"]
    for name in names * 2:
        assert front.python(f"import {name}\nprint(1)", options=["--policy", work / "any.yaml", "--preload", name])["stdout"] == "1\n"
    lists = [name for pid in pool.zygotes() for name in names if name in oracle.command_line(pid).split()]
    assert 0 < len(set(lists)) <= 4 and len(lists) <= 8, lists
    assert plain <= set(pool.zygotes())


@needs_root
def test_a_zygote_that_waits_has_no_capability_in_effect(own):
    """They are, while a clone is made; a moment later nothing is left of that."""
    pool = own()
    pool.front().until_warm()
    zygotes, deadline = pool.zygotes(), time.monotonic() + 20
    assert zygotes
    while not all(re.search(r"^CapEff:\s+0+$", Path(f"/proc/{pid}/status").read_text(), re.M) for pid in zygotes):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_programs_cannot_look_into_pid_1(front):
    """At their first instruction, in cells that were made while a request waited for them."""
    code = ("import json, os\nseen = []\nfor name in ('maps', 'environ', 'mem', 'fd', 'root'):\n"
            "    seen.append(os.path.exists('/proc/1/' + name))\nprint(json.dumps(seen))")
    assert [front.probe(code) for _ in range(10)] == [[False] * 5] * 10
