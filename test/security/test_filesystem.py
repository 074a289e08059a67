# SPDX-License-Identifier: Apache-2.0
"""F01–F22 of test/security/cases.md, less those that need sessions or archives (F09, F19, F21)."""
import hashlib
import os
import socket
import time
from pathlib import Path

import pytest

from probe import NR, probe

MIB = 1 << 20
SHOWN = {"bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr", "etc", "dev", "proc", "sandbox", "tmp", "build",
         "var", "sys", "opt", ".atoll"}  # the last: what an interpreter runs before programs


def sha(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def test_F01_only_the_manifest_is_seen(box):
    seen = probe(box, r"""
etc = {}
for top, dirs, names in os.walk('/etc'):
    for n in names:
        p = os.path.join(top, n)
        try: etc[p] = open(p, 'rb').read(4096).decode('latin1')
        except OSError as e: etc[p] = None
say({'top': os.listdir('/'), 'etc': etc, 'var': [os.path.join(t, n) for t, d, ns in os.walk('/var') for n in ns][:20],
     'uts': os.uname().nodename})
""", options=["--output", "16m"])
    assert set(seen["top"]) <= SHOWN, seen["top"]
    assert not {"home", "root", "run", "boot", "srv", "mnt", "media", "work"} & set(seen["top"])
    host = socket.gethostname()
    for path, text in seen["etc"].items():
        name = path.rsplit("/", 1)[1]
        assert not name.startswith(("shadow", "gshadow", "machine-id", "sudoers", "ssh_host")), path
        if len(host) > 3:
            assert host not in (text or ""), f"the host's name is in {path}"
    assert seen["etc"].get("/etc/hostname", "").strip() != host and seen["uts"] != host
    assert seen["var"] == []


@pytest.mark.quick
def test_F02_host_files_cannot_be_read(box, canary):
    tries = probe(box, f"""
target = {str(canary.public)!r}
out = {{}}
ways = [target, '../' * 40 + target[1:], '/proc/self/cwd/' + '../' * 40 + target[1:], '/proc/1/root' + target,
        '/proc/self/root' + target, '/proc/1/cwd' + target, '/tmp/' + '../' * 40 + target[1:]]
ways += ['/proc/self/fd/%d%s' % (n, target) for n in range(40)]
ways += ['/proc/self/fd/%d/../../../..%s' % (n, target) for n in range(40)]
for way in ways + [w.replace('public', 'secret') for w in ways]:
    try: out[way] = open(way).read()
    except OSError as e: out[way] = errno.errorcode[e.errno]
out['listdir'] = attempt(os.listdir, {str(canary.dir)!r})
say(out)
""")
    for way, seen in tries.items():
        assert seen in ("ENOENT", "EACCES", "ENOTDIR", "EPERM", "ELOOP"), (way, seen)


def test_F03_read_only_paths_stay_so(box):
    watched = ["/usr/bin/env", "/etc/passwd", "/usr/share/common-licenses/GPL-3"]
    before = [sha(p) for p in watched]
    seen = probe(box, """
out = {}
for f in ['/usr/bin/env', '/etc/passwd', '/usr/share/common-licenses/GPL-3', '/bin/sh']:
    out[f] = {
        'append': attempt(open, f, 'ab'), 'write': attempt(os.open, f, os.O_WRONLY), 'trunc': attempt(os.truncate, f, 0),
        'unlink': attempt(os.unlink, f), 'rename': attempt(os.rename, f, f + '.x'), 'chmod': attempt(os.chmod, f, 0o777),
        'utime': attempt(os.utime, f), 'chown': attempt(os.chown, f, os.getuid(), os.getgid()),
        'setxattr': attempt(os.setxattr, f, 'user.x', b'1'), 'link': attempt(os.link, f, f + '.l')}
for d in ['/', '/usr', '/usr/bin', '/etc', '/dev', '/proc', '/lib', '/var']:
    if os.path.isdir(d):
        out[d] = {'create': attempt(open, d + '/planted', 'w'), 'mkdir': attempt(os.mkdir, d + '/planteddir'),
                  'symlink': attempt(os.symlink, 'x', d + '/plantedlink'), 'chmod': attempt(os.chmod, d, 0o777)}
say(out)
""")
    for path, tries in seen.items():
        for what, code in tries.items():
            assert code in ("EROFS", "EACCES", "EPERM", "EXDEV", "ENOENT", "ENOTSUP", "EOPNOTSUPP", "ELOOP",
                            "EBUSY"), (path, what, code)
    assert [sha(p) for p in watched] == before


def test_F04_the_trusted_binary_cannot_be_written(box):
    before = sha(box.binary)
    seen = probe(box, """
out = {}
for p in ['/proc/self/exe', '/proc/1/exe', '/proc/%d/exe' % os.getppid()]:
    out[p] = [attempt(os.open, p, os.O_WRONLY), attempt(os.open, p, os.O_RDWR | os.O_TRUNC)]
    fd = -1
    try: fd = os.open(p, os.O_PATH)
    except OSError: pass
    if fd >= 0: out[p].append(attempt(os.open, '/proc/self/fd/%d' % fd, os.O_WRONLY))
say(out)
""")
    for path, codes in seen.items():
        assert all(c in ("EACCES", "ETXTBSY", "EROFS", "EPERM", "ENOENT") for c in codes), (path, codes)
    assert sha(box.binary) == before


@pytest.mark.quick
def test_F05_only_three_descriptors(box, landlock):
    seen = probe(box, """
import fcntl, stat
out = {}
for fd in range(1024):
    try: flags = fcntl.fcntl(fd, fcntl.F_GETFD)
    except OSError: continue
    out[fd] = stat.S_IFMT(os.fstat(fd).st_mode)
    if fd == 100 and not flags & fcntl.FD_CLOEXEC: out[fd] = 'inherited'
say(out)
""")
    # A warm program has its own socket to say its exit code by, until it executes another.
    assert set(seen) == {"0", "1", "2"} | ({"100"} if landlock == "warm" else set()), seen
    import stat
    assert all(kind in (stat.S_IFIFO, stat.S_IFREG, stat.S_IFCHR, stat.S_IFSOCK) for kind in seen.values())


def test_F05_descriptors_of_a_static_program(box, compile_c, work):
    """The same seen by a program that opens nothing itself, started straight from init."""
    program = compile_c("#include <fcntl.h>\n#include <stdio.h>\nint main(void) { for (int i = 0; i < 4096; i++)"
                        " if (fcntl(i, F_GETFD) >= 0) printf(\"%d \", i); return 0; }")
    result = box.result(["--file", f"p={program}", "--stage", "x=exec /sandbox/p"])
    assert result["stdout"].split() == ["0", "1", "2"], result


def test_F06_device_nodes(box):
    seen = probe(box, """
import stat, socket
out = {}
for d in ('/sandbox', '/tmp'):
    for kind, dev in ((stat.S_IFCHR, (1, 1)), (stat.S_IFBLK, (8, 0)), (stat.S_IFCHR, (1, 3)), (stat.S_IFCHR, (10, 229))):
        out['%s %o %s' % (d, kind, dev)] = attempt(os.mknod, d + '/n', kind | 0o666, os.makedev(*dev))
os.mkfifo('/sandbox/fifo'); socket.socket(socket.AF_UNIX).bind('/sandbox/sock')
say(out)
""")
    assert set(seen.values()) <= {"EPERM", "EACCES"}, seen
    listed = box.bash("mkfifo fifo; echo x > real")["files"]
    assert [f["path"] for f in listed] == ["real"]


def test_F07_setuid_gives_nothing(box, compile_c):
    seen = probe(box, """
import stat
bad, n = [], 0
for top in ('/usr/bin', '/usr/sbin', '/usr/lib', '/usr/lib/openssh', '/usr/lib/dbus-1.0', '/usr/libexec', '/usr/local/bin'):
    for name in os.listdir(top) if os.path.isdir(top) else []:
        p = os.path.join(top, name)
        try: st = os.lstat(p)
        except OSError: continue
        if stat.S_ISREG(st.st_mode) and st.st_mode & 0o6000:
            n += 1
            if not os.statvfs(p).f_flag & os.ST_NOSUID: bad.append(p)
say({'bad': bad, 'n': n, 'flags': {d: bool(os.statvfs(d).f_flag & os.ST_NOSUID) for d in ('/', '/usr', '/sandbox', '/tmp', '/dev', '/dev/shm')}})
""")
    assert seen["bad"] == [] and seen["n"] > 0 and all(seen["flags"].values()), seen
    program = compile_c("#include <stdio.h>\n#include <unistd.h>\nint main(void) { printf(\"%d %d %d %d\", getuid(), geteuid(),"
                        " getgid(), getegid()); return 0; }")
    result = box.result(["--file", f"p={program}", "--stage",
                         "x=chmod 6755 p; ./p; echo; cp /usr/bin/id i; chmod 6755 i; ./i -u; id -u"])
    ids, own, real = result["stdout"].split("\n")[:3]
    uid, euid, gid, egid = ids.split()
    assert uid == euid != "0" and gid == egid != "0" and own == real == uid, result


def test_F08_dev_is_minimal(box):
    seen = probe(box, """
out = {}
for top, dirs, names in os.walk('/dev'):
    for n in dirs + names:
        p = os.path.join(top, n)
        out[p] = os.readlink(p) if os.path.islink(p) else oct(os.lstat(p).st_mode & 0o170000) + ':%d,%d' % (
            os.major(os.lstat(p).st_rdev), os.minor(os.lstat(p).st_rdev))
full = attempt(lambda: os.write(os.open('/dev/full', os.O_WRONLY), b'x'))
null = os.write(os.open('/dev/null', os.O_WRONLY), b'x')
say({'list': out, 'full': full, 'null': null, 'zero': os.read(os.open('/dev/zero', 0), 4).hex(),
     'random': len(os.read(os.open('/dev/urandom', 0), 16)), 'shm': attempt(open, '/dev/shm/x', 'w')})
""")
    names = {p[5:] for p in seen["list"]}
    assert names <= {"null", "zero", "full", "random", "urandom", "shm", "fd", "stdin", "stdout", "stderr", "tty", "ptmx",
                     "pts", "pts/ptmx", "mqueue", "core"}, names
    devices = {p[5:]: v.split(":")[1] for p, v in seen["list"].items() if v.startswith("0o20000:")}
    assert devices == {k: v for k, v in {"null": "1,3", "zero": "1,5", "full": "1,7", "random": "1,8", "urandom": "1,9",
                                         "tty": "5,0", "pts/ptmx": "5,2"}.items() if k in devices}
    assert {"null", "zero", "full", "random", "urandom"} <= set(devices)
    assert seen["full"] == "ENOSPC" and seen["null"] == 1 and seen["zero"] == "00000000" and seen["random"] == 16
    assert seen["shm"] == "ok"


def test_F10_links_and_renames_across(box):
    seen = probe(box, """
open('/sandbox/mine', 'w').write('x')
say([attempt(os.link, '/usr/bin/env', '/sandbox/env'), attempt(os.rename, '/usr/bin/env', '/sandbox/env'),
     attempt(os.link, '/etc/passwd', '/tmp/p'), attempt(os.rename, '/sandbox/mine', '/usr/bin/mine'),
     attempt(os.link, '/sandbox/mine', '/usr/bin/mine'), attempt(os.rename, '/sandbox/mine', '/mine')])
""")
    assert all(code in ("EXDEV", "EROFS", "EACCES", "EPERM") for code in seen), seen


def test_F11_file_handles(box):
    seen = probe(box, f"say([sc({NR['name_to_handle_at']}, -100, 1, 1, 1, 0), sc({NR['open_by_handle_at']}, -1, 1, 0)])")
    assert seen == ["EPERM", "EPERM"]


def test_F12_mount_family(box):
    calls = ["mount", "umount2", "pivot_root", "chroot", "fsopen", "fsconfig", "fsmount", "fspick", "open_tree",
             "move_mount", "mount_setattr", "open_tree_attr"]
    seen = probe(box, "say({n: sc(nr, 1, 1, 1, 1, 1) for n, nr in %r.items()})" % {n: NR[n] for n in calls})
    assert all(code in ("EPERM", "ENOSYS") for code in seen.values()), seen
    assert all(seen[n] == "EPERM" for n in calls if n != "open_tree_attr"), seen


def test_F13_proc_shows_processes_only(box, canary):
    seen = probe(box, """
out = {}
for n in ['kcore', 'keys', 'key-users', 'sysrq-trigger', 'kallsyms', 'sched_debug', 'timer_list', 'config.gz', 'cmdline',
          'version', 'meminfo', 'cpuinfo', 'modules', 'mounts', 'net/tcp', 'net/unix', 'sys/kernel/hostname', 'iomem',
          'interrupts', 'scsi', 'acpi', 'bus', 'fs', 'irq', 'tty', 'driver', 'asound', 'kmsg', 'kpagecount', 'loadavg', 'stat',
          'uptime', 'partitions', 'mdstat', 'sysvipc/shm', 'locks', 'swaps', 'vmstat', 'zoneinfo', 'sys']:
    p = '/proc/' + n
    out[n] = attempt(os.listdir, p) if os.path.isdir(p) else attempt(lambda: open(p, 'rb').read(1))
say({'files': out, 'list': sorted(os.listdir('/proc')) if os.path.isdir('/proc') else [],
     'pid1': [attempt(lambda: open('/proc/1/' + n).read()) for n in ('mounts', 'mountinfo', 'environ', 'maps', 'auxv')],
     'mountinfo': open('/proc/self/mountinfo').read() if os.path.exists('/proc/self/mountinfo') else ''})
""")
    reachable = {n for n, code in seen["files"].items() if code == "ok"}
    assert reachable <= {"mounts", "net/tcp", "net/unix"}, reachable  # links to self
    assert all(n.isdigit() or n in ("self", "thread-self", "mounts", "net") for n in seen["list"]), seen["list"]
    for word in (str(canary.dir), "/root", "/home", "/work/", str(box.home), "/var/lib"):
        assert word not in seen["mountinfo"], (word, seen["mountinfo"])


def test_F14_proc_is_not_writable(box):
    seen = probe(box, """
def put(p, text): 
    fd = os.open(p, os.O_WRONLY)
    try: os.write(fd, text)
    finally: os.close(fd)
say({p: attempt(put, p, t) for p, t in {
    '/proc/sys/kernel/core_pattern': b'|/bin/x', '/proc/sysrq-trigger': b'h', '/proc/self/uid_map': b'0 0 1',
    '/proc/self/gid_map': b'0 0 1', '/proc/self/setgroups': b'allow', '/proc/self/loginuid': b'0',
    '/proc/self/oom_score_adj': b'-1000', '/proc/1/oom_score_adj': b'1000', '/proc/1/mem': b'x',
    '/proc/sys/vm/overcommit_memory': b'1', '/proc/self/attr/current': b'x'}.items()})
""")
    assert all(code in ("ENOENT", "EPERM", "EACCES", "EROFS", "EINVAL", "ENXIO", "EIO") for code in seen.values()), seen


def test_F15_no_sysfs_and_no_cgroupfs(box):
    """/sys is a directory of the sandbox's root with three lists of processors, which cannot be written."""
    seen = probe(box, "say([attempt(os.listdir, p) for p in ('/sys/fs/cgroup', '/sys/kernel', '/sys/class', '/cgroup')])")
    assert seen == ["ENOENT"] * 4
    seen = probe(box, """
mounts = [line.split()[4] for line in open('/proc/self/mountinfo')] if os.path.exists('/proc/self/mountinfo') else []
say([[os.path.join(top, name) for top, _, names in os.walk('/sys') for name in sorted(names)], [m for m in mounts if m.startswith('/sys')],
     [attempt(os.open, p, os.O_WRONLY | os.O_CREAT) for p in ('/sys/devices/system/cpu/online', '/sys/new')]])""")
    lists = [f"/sys/devices/system/cpu/{name}" for name in ("online", "possible", "present")]
    assert seen[:2] == [lists, []] and not {"ok", "ENOENT"} & set(seen[2]), seen


@pytest.mark.undisturbed
def test_F16_full_work_directory_leaves_the_host_alone(box):
    def host():
        values = [os.statvfs(p) for p in ("/", "/tmp", "/dev/shm")]
        return [(v.f_bavail * v.f_frsize, v.f_favail) for v in values]

    before = host()
    seen = probe(box, """
def fill():
    with open('/tmp/big', 'wb', 0) as f:
        while True: f.write(b'x' * 65536)
def litter():
    n = 0
    while True: open('/sandbox/%d' % n, 'w').write('1'); n += 1
first = attempt(fill)
size = os.stat('/tmp/big').st_size
os.unlink('/tmp/big')
second = attempt(litter)
count = len(os.listdir('/sandbox'))
for n in range(count): 
    try: os.unlink('/sandbox/%d' % n)
    except OSError: pass
say([first, size, second, count])
""", options=["--disk", "8m", "--files", "500", "--file-size", "64m"])
    assert seen[0] == seen[2] == "ENOSPC" and 7 * MIB < seen[1] <= 8 * MIB and 400 < seen[3] <= 500, seen
    for (bytes_before, files_before), (bytes_after, files_after) in zip(before, host()):
        assert bytes_before - bytes_after < 64 * MIB and files_before - files_after < 4000


@pytest.mark.any_landlock
def test_F17_collection_of_hostile_trees(box, measure):
    code = r"""
import os
f = open('sparse', 'wb')
for size in (1 << 50, 1 << 40, 200 << 20):
    try: f.truncate(size); break
    except OSError: pass
open('eight', 'wb').truncate(8 << 20)
for i in range(1000): os.symlink('eight', 'link%d' % i)
for name in (b'\xff' * 255, b'a\nb', b'\x1b[2J', b'-n', b'..\xc0\xaf..', '․․'.encode(), b' ', b'"'): open(name, 'w').close()
here = os.getcwd()
try:
    for i in range(4000): os.mkdir('d'); os.chdir('d')
except OSError: pass
open('deep', 'w').write('x')
"""
    begin = time.monotonic()
    result, peak = box.peak_kib(["-l", "python", "--files", "14k", "--timeout", "50", "-c", code], measure)
    assert result["status"] == "success", result
    assert time.monotonic() - begin < 30
    assert sum(f["size"] for f in result["files"]) <= 2 << 30 or result.get("files_truncated")
    assert all(not f["path"].startswith(("/", "../")) and "link" not in f["path"] for f in result["files"])
    assert peak < 48 * 1024, peak


@pytest.mark.quick
def test_F18_links_are_never_followed_out(box, work, canary):
    out = box.mkdir(work / "out")
    code = (f"ln -s /etc/passwd a; ln -s {canary.public} b; ln -s /proc/self/environ c; ln -s /etc d; ln -s e e; mkfifo result; "
            f"ln -s {canary.dir} dir; mkdir swap; echo x > swap/f; "
            f"(setsid bash -c 'while :; do mv swap s2; ln -s {canary.dir} swap; rm swap; mv s2 swap; done' 2>&- &) ; sleep 0.1")
    done = box.run(["run", "--json", "-l", "bash", "--output-dir", out, "-c", code])
    result = done.json()
    assert {f["path"] for f in result["files"]} <= {"swap/f", "s2/f", "f"}, result["files"]
    assert canary.text not in done.out and "root:x:" not in done.out and done.elapsed < 20
    for top, dirs, names in os.walk(out):
        for name in dirs + names:
            assert not os.path.islink(os.path.join(top, name))
    assert canary.untouched()


def test_F20_permissions_do_not_stop_clean_up(box):
    result = box.python("import os\nfor i in range(20):\n    os.mkdir('d%d' % i); open('d%d/f' % i, 'w').close()\n"
                        "    os.chmod('d%d/f' % i, 0); os.chmod('d%d' % i, 0)\nos.chmod('/tmp', 0)\nos.chmod('.', 0)")
    assert result["status"] == "success", result  # the leak oracle sees the rest


def test_F22_no_channel_through_shared_files(box):
    """A holds a lock and watches; B must neither feel the lock nor be noticed."""
    target = "/usr/share/common-licenses/GPL-3"
    holder = f"""
import fcntl, os, ctypes, select, sys
f = open({target!r}); fcntl.flock(f, fcntl.LOCK_EX)
libc = ctypes.CDLL(None); i = libc.inotify_init1(0o4000); w = libc.inotify_add_watch(i, {target!r}.encode(), 0xfff)
print('ready', w >= 0, flush=True)
sys.stdin.readline()
print('event' if w >= 0 and select.select([i], [], [], 0.1)[0] else 'quiet')
"""
    other = f"""
f = open({target!r})
import fcntl
one = attempt(fcntl.flock, f, fcntl.LOCK_EX | fcntl.LOCK_NB)
f.read()
say(one)
"""
    popen = box.popen(["run", "-l", "python", "-c", holder])
    ready = popen.stdout.readline()
    assert ready.startswith(b"ready"), (ready, popen.stderr.read())
    got = probe(box, other)
    popen.stdin.write(b"\n")
    out, _ = popen.communicate(timeout=25)
    assert got == "ok" and out == b"quiet\n", (got, out)
    # The host holds the lock: the sandbox does not feel that either.
    import fcntl
    with open(target) as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        assert probe(box, other) == "ok"
