# SPDX-License-Identifier: Apache-2.0
"""A root that the program may write to: anywhere, within its limits, and without any effect on the host or on the next run.

What is written goes to layers on the run's own scratch file system (src/box/layers.h). Only root's broker has them."""
import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path

import oracle
import pytest

from probe import probe

pytestmark = [pytest.mark.modes("root"), pytest.mark.cold("a root that one program may write to is not kept ready"),
              pytest.mark.skipif(not oracle.IS_ROOT, reason="needs to be started as root")]

MIB = 1 << 20
W = ["--writable-root"]


@pytest.fixture
def host_dir():
    """A directory of the host's /usr that a sandbox sees."""
    path = Path(tempfile.mkdtemp(prefix="tests-", dir="/usr/local/share"))
    path.chmod(0o755)
    try:
        yield path
    finally:
        shutil.rmtree(path)


def state_of(top):
    """All that a write to one of these files would change."""
    state = {}
    for path in [top, *sorted(top.rglob("*"))]:
        st = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None
        state[str(path)] = (st.st_mode, st.st_uid, st.st_gid, st.st_nlink, st.st_size, st.st_mtime_ns, st.st_ctime_ns,
                            os.listxattr(path), content)
    return state


@pytest.mark.quick
def test_W01_everything_shown_can_be_written(box):
    seen = probe(box, """
import subprocess
out = {}
for path in ['/new', '/usr/new', '/usr/bin/new', '/usr/local/lib/new', '/etc/new', '/etc/alternatives/new', '/var/new', '/sandbox/new', '/tmp/new']:
    out[path] = attempt(lambda: open(path, 'w').write('x'))
for path in ['/etc/passwd', '/usr/bin/env', '/bin/cat']:
    out['+' + path] = attempt(lambda: open(path, 'ab').write(b'#'))
out['mkdir'] = attempt(os.makedirs, '/a/b/c')
out['rmdir'] = attempt(os.rmdir, '/a/b/c')
out['unlink'] = attempt(os.unlink, '/usr/bin/yes')
out['replace'] = attempt(os.replace, '/usr/bin/new', '/usr/bin/id')
out['symlink'] = attempt(os.symlink, '/tmp', '/usr/link')
out['chmod'] = attempt(os.chmod, '/usr/bin/env', 0o700)
out['truncate'] = attempt(os.truncate, '/usr/bin/whoami', 0)
out['rmtree'] = subprocess.call(['rm', '-rf', '/usr/share/zoneinfo/Africa'])
say([out, os.path.exists('/usr/bin/yes'), open('/usr/bin/id').read(), os.path.exists('/usr/share/zoneinfo/Africa')])
""", options=W)
    assert set(seen[0].values()) == {"ok", 0}, seen
    assert seen[1:] == [False, "x", False], seen
    assert Path("/usr/bin/yes").exists() and Path("/usr/bin/id").stat().st_size > 1000 and not Path("/new").exists()


def test_W02_no_write_reaches_the_host(box, host_dir):
    """Also not through a descriptor from before the copy, a mapping, a link, a directory, another name of the root."""
    for name in ("append", "mapped", "linked", "renamed", "early", "again", "xattr", "times", "allocated"):
        (host_dir / name).write_bytes(b"host" * 2000)
    (host_dir / "dir").mkdir()
    (host_dir / "dir" / "inner").write_text("host")
    os.link(host_dir / "linked", host_dir / "other-name")
    before = state_of(host_dir)
    ways = probe(box, f"""
import mmap, fcntl
top = {str(host_dir)!r}
early = os.open(top + '/early', os.O_RDONLY)
dir_fd = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
def mapped():
    with open(top + '/mapped', 'r+b') as f, mmap.mmap(f.fileno(), 0) as m: m[:4] = b'EVIL'; m.flush()
def put(path, **more):
    fd = os.open(path, os.O_WRONLY, **more); os.write(fd, b'EVIL'); os.fsync(fd); os.close(fd)
def linked():
    os.link(top + '/linked', '/usr/evil'); put('/usr/evil')
def renamed():
    os.rename(top + '/renamed', top + '/moved'); put(top + '/moved')
def allocated():
    fd = os.open(top + '/allocated', os.O_RDWR); os.posix_fallocate(fd, 0, 1 << 16); os.close(fd)
out = {{
    'append': attempt(lambda: put('/proc/self/root' + top + '/append')),
    'mapped': attempt(mapped), 'linked': attempt(linked), 'renamed': attempt(renamed), 'allocated': attempt(allocated),
    'early': attempt(put, '/proc/self/fd/%d' % early), 'early itself': attempt(os.write, early, b'EVIL'),
    'again': attempt(put, 'again', dir_fd=dir_fd),
    'times': attempt(os.utime, top + '/times', (1, 1)), 'dir': attempt(os.rename, top + '/dir', top + '/gone'),
    'inner': attempt(os.unlink, top + '/dir/inner'), 'fchmod': attempt(os.fchmod, dir_fd, 0o777)}}
attempt(os.setxattr, top + '/xattr', 'user.evil', b'1')
attempt(os.setxattr, top, 'trusted.overlay.opaque', b'y')
attempt(fcntl.ioctl, early, 0x40086602, b'\\x10' + bytes(7))  # FS_IOC_SETFLAGS: immutable
say(out)
""", options=W)
    written = {key for key, answer in ways.items() if answer == "ok"}
    assert {"append", "mapped", "linked", "renamed", "allocated", "early", "again", "times", "inner", "fchmod"} <= written, ways
    assert state_of(host_dir) == before


def test_W03_the_next_run_sees_none_of_it(box, host_dir):
    (host_dir / "file").write_text("host")
    change = (f"echo evil > {host_dir}/file; rm /usr/bin/yes; echo evil > /evil; echo evil >> /etc/hosts; echo evil > /usr/evil; "
              f"cat {host_dir}/file")
    look = f"cat {host_dir}/file /etc/hosts; ls / /usr /usr/bin/yes"
    assert box.bash(change, options=W)["stdout"] == "evil\n"
    for options in (W, []):
        seen = box.bash(look, options=options)
        assert seen["exit_code"] == 0 and "evil" not in seen["stdout"] and seen["stdout"].startswith("host"), seen


def test_W04_what_only_root_may_read_stays_so(box, host_dir):
    """The program appears as the owner of what root owns; that must not let it read more than any user of the host."""
    (host_dir / "secret").write_text("SECRET")
    (host_dir / "secret").chmod(0o600)
    (host_dir / "dir").mkdir(0o700)
    (host_dir / "dir" / "inner").write_text("SECRET")
    os.symlink("secret", host_dir / "link")
    seen = probe(box, f"""
import subprocess
top = {str(host_dir)!r}
def text(path): return open(path).read()
def tell(f, *args):
    try: return f(*args)
    except OSError as e: return errno.errorcode[e.errno]
paths = [top + '/secret', top + '/link', top + '/dir/inner']
out = [tell(text, p) for p in paths] + [tell(os.listdir, top + '/dir')]
for p in paths + [top + '/dir']:
    for f, args in ((os.chmod, (p, 0o777)), (os.link, (p, '/usr/taken')), (os.rename, (p, p + '2')), (os.utime, (p,)), (os.truncate, (p, 6))):
        attempt(f, *args)
    out += [tell(text, q) for q in (p, p + '2', '/usr/taken', top + '/dir/inner', top + '/dir2/inner')]
out += [tell(os.listdir, top + '/dir'), subprocess.run(['cp', '-a', top, '/tmp/all']).returncode,
        subprocess.run(['grep', '-r', 'SECRET', top, '/tmp/all'], capture_output=True, text=True).stdout]
say(out)
""", options=W)
    assert "SECRET" not in json.dumps(seen), seen
    assert seen[:4] == ["EACCES"] * 4, seen


def test_W05_the_limits_hold_exactly(box):
    code = """
import os, sys
def fill(paths, size):
    total = count = 0
    full = set()
    while len(full) < len(paths):
        for path in paths:
            if path in full: continue
            try:
                fd = os.open(path + '/f%d' % count, os.O_WRONLY | os.O_CREAT)
                count += 1
                total += os.write(fd, bytes(size)) if size else 0
                os.close(fd)
            except OSError: full.add(path)
    return total, count
paths = ['/', '/usr/bin', '/sandbox', '/tmp', '/etc', '/usr/local/lib']
print(*fill(paths, int(sys.argv[1])))
"""
    total, count = map(int, box.python(code, str(1 << 16), options=[*W, "--disk", "8m"])["stdout"].split())
    assert 8 * MIB - 6 * (1 << 16) <= total <= 8 * MIB, total
    total, count = map(int, box.python(code, "0", options=[*W, "--files", "300"])["stdout"].split())
    assert 270 <= count <= 300, count
    # A copy of what is changed counts, too.
    big = box.bash("f=$(find /usr/bin/ /usr/lib/x86_64-linux-gnu/ -maxdepth 1 -type f -size +4M | head -1); echo >> $f", options=[*W, "--disk", "3m"])
    assert "No space left" in big["stderr"] or big["cause"]["kind"] == "disk", big


def test_W06_nothing_else_becomes_possible(box, canary):
    before = Path("/proc/sys/kernel/core_pattern").read_text()
    seen = probe(box, f"""
import shutil, stat, subprocess
out = {{}}
target = {str(canary.public)!r}
for way in [target, '/proc/1/root' + target, '/../../..' + target, '/usr/../..' + target]:
    out['read ' + way] = attempt(open, way)
for path in ['/dev/new', '/proc/new', '/proc/self/oom_score_adj', '/proc/sys/kernel/core_pattern', '/proc/self/attr/current',
             '/dev/null/x']:
    out['write ' + path] = attempt(lambda: open(path, 'w').write('1'))
out['mknod c'] = attempt(os.mknod, '/usr/null', stat.S_IFCHR | 0o666, os.makedev(1, 3))
out['mknod b'] = attempt(os.mknod, '/disk', stat.S_IFBLK | 0o666, os.makedev(254, 0))
out['chown'] = attempt(os.chown, '/usr/bin/env', 0, 0)
out['chroot'] = attempt(os.chroot, '/usr')
out['unlink dev'] = attempt(os.rmdir, '/dev')
out['rename usr'] = attempt(os.rename, '/usr', '/usr2')
out['mount'] = libc.mount(b'none', b'/mnt', b'tmpfs', 0, None) and 'EPERM'
shutil.copy('/usr/bin/id', '/usr/bin/suid'); os.chmod('/usr/bin/suid', 0o6755)
out['setuid'] = 'EPERM' if subprocess.check_output(['/usr/bin/suid', '-u']) == b'1000\\n' else 'root'
say(out)
""", options=W)
    assert all(answer in ("ENOENT", "EROFS", "EACCES", "EPERM", "EBUSY", "ENOTDIR", "EINVAL", "ENOSYS") for answer in seen.values()), seen
    assert Path("/proc/sys/kernel/core_pattern").read_text() == before
    result = box.bash("true", options=W)
    assert set(result["isolation"]["missing"]) <= {"landlock"}, result


def test_W07_with_a_workspace_and_for_compiled_code(box, work):
    state = box.variant(env={"ATOLL_STATE_DIR": str(work / "state")})
    result = state.bash("echo 1 > /workspace/kept; echo 2 > /usr/lost; rm -rf /usr/share/zoneinfo", options=[*W, "--workspace", "w"])
    assert result["status"] == "success" and [c["path"] for c in result["changes"]] == ["kept"], result
    assert state.bash("cat /workspace/kept; ls /usr/lost", options=["--workspace", "w"])["stdout"] == "1\n"
    code = '#include <stdio.h>\nint main(void) { FILE *f = fopen("/usr/lib/new", "w"); puts(f ? "open" : "closed"); return 0; }'
    assert box.result(["-l", "c", *W, "-c", code])["stdout"] == "open\n"


def test_W08_it_must_be_asked_for_and_permitted(box):
    for options, text in ((["--policy", "lightweight"], "this policy does not permit it"), (["--read-only"], "leave out one of them")):
        result = box.bash("true", options=[*W, *options])
        assert result["status"] in ("denied", "setup_error") and text in result["cause"]["detail"], result
    assert "Read-only file system" in box.bash("touch /usr/new")["stderr"]


@pytest.mark.modes("rootless")
def test_W09_without_root_it_is_refused(box):
    result = box.bash("true", options=W)
    assert result["status"] == "denied" and "only a broker that runs as root" in result["cause"]["detail"], result
