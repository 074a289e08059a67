# SPDX-License-Identifier: Apache-2.0
"""K01–K13 of test/security/cases.md."""
import hashlib
import json
import mmap
import os
import secrets
import subprocess
from pathlib import Path

import pytest

import oracle
from probe import NR, probe
from program import ROOT
from resident import own  # noqa: F401 (a fixture)

SAMPLE = ["/usr/bin/env", "/usr/bin/bash", "/usr/bin/python3.11", "/usr/bin/su", "/etc/passwd", "/usr/bin/cat",
          "/usr/lib/x86_64-linux-gnu/libc.so.6", "/usr/share/common-licenses/GPL-3"]


def digest(path, direct=False):
    """SHA-256 through the page cache, or past it."""
    if not direct:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    size = os.stat(path).st_size
    fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
    try:
        block = mmap.mmap(-1, 1 << 20)
        sha, left = hashlib.sha256(), size
        while left > 0:
            n = os.readv(fd, [block])
            if n <= 0:
                break
            sha.update(block[:min(n, left)])
            left -= n
        return sha.hexdigest()
    finally:
        os.close(fd)


@pytest.fixture(scope="session", autouse=True)
def page_cache():
    """K07: what the page cache holds of the host's files is the same before and after this whole suite."""
    files = [p for p in SAMPLE if os.path.isfile(p)]
    before = {p: digest(p) for p in files}
    yield before
    after = {p: digest(p) for p in files}
    assert before == after, "a file of the host changed in the page cache"


@pytest.fixture(scope="session")
def syscall_table(compile_c):
    """The program of syscall-table.c, which makes every call from 0 to 1023 with arguments that do nothing."""
    out = compile_c.place / "syscall-table"
    sources = [ROOT / "src" / name for name in ("plan/filter-rules.c", "plan/filter-table.c", "plan/filter.c", "base/parse.c", "base/error.c",
                                                "base/buf.c", "base/fd.c", "base/clock.c")]
    sources += sorted((ROOT / "src" / "base").glob("sha256*.c"))
    subprocess.run(["gcc", "-static", "-O1", "-std=gnu17", "-D_GNU_SOURCE", f"-I{ROOT}/src", f"-I{ROOT}/include",
                    ROOT / "test" / "security" / "syscall-table.c", *sources, "-o", out], check=True)
    return out


@pytest.mark.quick
def test_K01_every_system_call_number(box, syscall_table):
    check_table(box, syscall_table, "default")


@pytest.mark.quick
def test_K01_without_sockets(box, syscall_table):
    check_table(box, syscall_table, "off", ["--network", "off"])


WORKSPACES = {"writable": ["--workspace", "w"], "read-only": ["--workspace", "w", "--read-only"]}


@pytest.mark.quick
@pytest.mark.cold("a pool has workspaces of its own")
@pytest.mark.parametrize("kind", WORKSPACES)
def test_K01_with_a_workspace(box, work, syscall_table, kind):
    check_table(box.variant(env={"ATOLL_STATE_DIR": str(work / "state")}), syscall_table, "default", WORKSPACES[kind])


@pytest.mark.skipif(not oracle.IS_ROOT, reason="needs to be started as root")
@pytest.mark.modes("root")
@pytest.mark.cold("a pool has workspaces of its own")
@pytest.mark.parametrize("kind", WORKSPACES)
def test_K01_with_a_workspace_warm(own, work, syscall_table, kind):
    pool = own(env={"ATOLL_STATE_DIR": str(work / "state")})
    check_table(pool.front(execs=True), syscall_table, "default", WORKSPACES[kind])


def check_table(box, program, profile, options=()):
    """Makes every call in a sandbox, and compares with what the profile's table says."""
    tables = ["syscall-table.json"] + ([f"syscall-table-{profile}.json"] if profile != "default" else [])
    expected = {row["nr"]: row for name in tables for row in json.loads((ROOT / "test/security" / name).read_text())}
    result = box.result([*options, "--timeout", "60", "--file", f"t={program}", "--stage", "x=exec /sandbox/t"], timeout=90)
    lines = result["stdout"].splitlines()
    assert result["exit_code"] == 0 and lines[-1:] == ["done"], result
    assert result["isolation"]["seccomp"].startswith(profile + "@"), result
    wrong = []
    for line in lines[:-1]:
        number, name, answer = line.split(" ", 2)
        row = expected.pop(int(number))
        if row["answer"] == "allow":
            good = answer not in ("ENOSYS", "EPERM", "SIGSYS", "lost")
        elif row["answer"] == "checked":
            good = answer == row["refusal"]
        else:
            good = answer == ("ENOSYS" if row["answer"] == "tracer" else row["answer"])  # no program has a tracer
        if not good and answer != row.get("kernel"):  # the kernel's own answer, on some kernels
            wrong.append((line, row))
    assert wrong == [] and expected == {}


@pytest.mark.undisturbed
def test_K12_each_profile_is_short_and_soon_installed(compile_c):
    """That each answers as its table says is for the emulator (src/plan/test-filter.c)."""
    out = compile_c.place / "filter-install"
    sources = [ROOT / "bench/filter-install.c", *(ROOT / "src" / name for name in ("plan/filter.c", "plan/filter-rules.c", "plan/filter-table.c", "base/clock.c")),
               *sorted((ROOT / "src" / "base").glob("sha256*.c"))]
    subprocess.run(["gcc", "-O2", "-std=gnu17", "-D_GNU_SOURCE", f"-I{ROOT}/src", *sources, "-o", out], check=True)
    lines = subprocess.run([out], check=True, capture_output=True, text=True).stdout.splitlines()
    values = {key: [line[len(key):].split()[0] for line in lines if line.startswith(key)] for key in ("profile", "instructions", "install p50 / p90")}
    assert values["profile"] == ["default", "off", "minimal"]
    assert all(int(n) <= 300 for n in values["instructions"]), values
    assert all(float(us) < 200 for us in values["install p50 / p90"]), values


def test_K02_io_uring(box):
    seen = probe(box, f"say([sc(n, 1, 1, 1, 1, 1, 1) for n in ({NR['io_uring_setup']}, {NR['io_uring_enter']}, {NR['io_uring_register']})])")
    assert seen == ["ENOSYS"] * 3


@pytest.mark.quick
def test_K03_dangerous_calls(box):
    names = ["bpf", "perf_event_open", "userfaultfd", "keyctl", "add_key", "request_key", "kexec_load", "kexec_file_load",
             "init_module", "finit_module", "delete_module", "syslog", "acct", "quotactl", "quotactl_fd", "swapon", "swapoff",
             "reboot", "iopl", "ioperm", "modify_ldt", "lookup_dcookie", "fanotify_init", "fanotify_mark", "io_setup", "mbind",
             "set_mempolicy", "move_pages", "migrate_pages", "vhangup", "uselib", "ustat", "sysfs", "_sysctl", "remap_file_pages"]
    calls = {n: NR[n] for n in names}
    seen = probe(box, f"say({{n: sc(nr, -1, 1, 1, 1, 1, 1) for n, nr in {calls!r}.items()}})")
    assert set(seen.values()) == {"EPERM"}, {n: v for n, v in seen.items() if v != "EPERM"}


@pytest.mark.quick
def test_K04_socket_families(box):
    seen = probe(box, """
import socket
out = {}
for family in range(0, 51):
    for kind in (1, 2, 3, 4, 5, 6, 10):
        for flags in (0, 0o2000000, 0o4000):
            for protocol in (0,) if family != 16 else (0, 4, 6, 9, 12, 15, 16):
                fd = libc.socket(family, kind | flags, protocol)
                if fd >= 0: os.close(fd); out.setdefault('%d %d %d' % (family, kind, protocol), 'ok')
                else: out['e'] = sorted(set(out.get('e', [])) | {errno.errorcode[ctypes.get_errno()]})
high = libc.syscall(41, ctypes.c_long(38 | 1 << 32), 5, 0)
pairs = [f for f in range(51) if libc.socketpair(f, 1, 0, (ctypes.c_int * 2)()) == 0]
say({'open': out, 'high': high, 'pairs': pairs})
""")
    errors = set(seen["open"].pop("e"))
    allowed = {"1 1 0", "1 2 0", "1 3 0", "1 5 0", "2 1 0", "2 2 0", "10 1 0", "10 2 0", "16 2 0", "16 3 0"}
    assert set(seen["open"]) <= allowed, set(seen["open"]) - allowed
    assert {"1 1 0", "1 2 0", "2 1 0", "2 2 0"} <= set(seen["open"])
    assert errors <= {"EAFNOSUPPORT", "ESOCKTNOSUPPORT", "EPROTONOSUPPORT", "EPERM", "EINVAL", "EACCES"}, errors
    assert seen["high"] == -1 and seen["pairs"] == [1]


@pytest.mark.quick
def test_K04_internet_sockets_are_tcp_and_udp(box):
    """Anything else makes the kernel ask the host for a module (SCTP, DCCP, L2TP), or is TCP past Landlock (MPTCP)."""
    seen = probe(box, """
def open_one(*args):
    fd = libc.socket(*args)
    if fd < 0: return errno.errorcode[ctypes.get_errno()]
    os.close(fd); return 'ok'
say([[f, t, p, ' '.join({open_one(f, t | flags, p) for flags in (0, 0o2000000, 0o4000, 0o2004000)})]
     for f in (2, 10) for t in (0, 1, 2, 3, 4, 5, 6, 10, 15) for p in (0, 1, 2, 6, 17, 33, 58, 115, 132, 136, 255, 262, -1)])
""")
    fine = [(1, 0), (1, 6), (2, 0), (2, 17)]
    # The filter's answer, not one of the kernel's (ESOCKTNOSUPPORT, EPROTONOSUPPORT), which come after it looked for a module.
    assert [row for row in seen if tuple(row[1:3]) not in fine and row[3] != "EAFNOSUPPORT"] == []
    has_ipv6 = os.path.exists("/proc/net/if_inet6")
    assert [row for row in seen if tuple(row[1:3]) in fine and (row[0] == 2 or has_ipv6) and row[3] != "ok"] == []


LOOPBACK = {
    "python": """
import socket
for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
    assert socket.getaddrinfo('127.0.0.1', 80, type=kind)[0][2] in (socket.IPPROTO_TCP, socket.IPPROTO_UDP)
s = socket.create_server(('127.0.0.1', 8080))
c = socket.create_connection(('127.0.0.1', 8080)); c.send(b'x'); assert s.accept()[0].recv(1) == b'x'
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_UDP); u.bind(('127.0.0.1', 0)); u.sendto(b'y', u.getsockname())
assert u.recv(1) == b'y'
print('fine')
""",
    "javascript": """
const net = require('net'), u = require('dgram').createSocket('udp4');
u.on('message', m => { u.close(); console.log(String(m)); });
const s = net.createServer(c => { c.end(); s.close(); u.bind(8081, '127.0.0.1', () => u.send('fine', 8081, '127.0.0.1')); });
s.listen(8080, '127.0.0.1', () => net.connect(8080, '127.0.0.1').resume());
""",
    "go": """
package main
import ("fmt"; "net")
func main() {
	s, err := net.Listen("tcp", "127.0.0.1:8080")
	if err != nil { panic(err) }
	go net.Dial("tcp", "127.0.0.1:8080")
	if _, err = s.Accept(); err != nil { panic(err) }
	if _, err = net.ListenPacket("udp", "127.0.0.1:0"); err != nil { panic(err) }
	fmt.Println("fine")
}
""",
    "java": """
import java.net.*;
public class Main {
	public static void main(String[] args) throws Exception {
		ServerSocket s = new ServerSocket(8080, 1, InetAddress.getByName("127.0.0.1"));
		new Socket("127.0.0.1", 8080).close();
		s.accept().close();
		new DatagramSocket(0, InetAddress.getByName("127.0.0.1")).close();
		System.out.println("fine");
	}
}
""",
}


@pytest.mark.modes("root")
@pytest.mark.cold("the filter is the same, as K01 shows")
@pytest.mark.parametrize("language", list(LOOPBACK))
def test_K04_runtimes_open_internet_sockets(box, language):
    result = box.result(["-l", language, "-c", LOOPBACK[language]], timeout=120)
    if result["status"] == "setup_error":
        pytest.skip(f"{language} is not installed")
    assert result["stdout"].strip() == "fine", result


@pytest.mark.quick
def test_K05_terminal_ioctls(box):
    seen = probe(box, """
out = {}
for name, c in dict(TIOCSTI=0x5412, TIOCLINUX=0x541c, TIOCSETD=0x5423, TIOCCONS=0x541d).items():
    for high in (0, 0x123 << 32, 0xffffffff << 32, 1 << 63):
        for fd in (0, 1, -1):
            out['%s %x %d' % (name, high, fd)] = sc(16, fd, c | high if high != 1 << 63 else c - (1 << 63), 1)
say(out)
""")
    assert set(seen.values()) == {"EPERM"}, seen


def test_K05_ioctls_of_sockets(box):
    """An allow-list. Bridges, virtual networks and frame relay load a module, time stamps switch a static key; drivers' are private."""
    seen = probe(box, """
import socket
out = {}
for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX):
    fd = socket.socket(family, socket.SOCK_DGRAM).detach()
    for c in (0x8906, 0x8907, 0x80108906, 0x80108907, 0x8940, 0x8941, 0x8946, 0x8980, 0x8983, 0x89a0, 0x89a1, 0x89b0, 0x89f0, 0x8b01):
        for high in (0, 0x123 << 32):
            out['%d %x' % (family, c | high)] = sc(16, fd, c | high, 1)
say([sorted(set(out.values())), [n for _, n in socket.if_nameindex()]])
""")
    assert seen[0] == ["EINVAL"], seen


OPTIONS = """
import fcntl, mmap, socket
def tried(f, *args):
    try: return f(*args) and 'ok' or 'ok'
    except OSError as e: return errno.errorcode[e.errno]
one = (1).to_bytes(4, 'little')
out = {}
for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        s = socket.socket(family, kind)
        for level in (0, 1, 6, 17, 41, 103, 132, 136, 255, 263, 270, 281, 284, 1 << 20):
            for option in range(150):
                answers = {tried(s.getsockopt, level, option, 64), tried(s.setsockopt, level, option, one)}
                if answers != {'ENOPROTOOPT'}: out['%d/%d' % (level, option)] = 1
a, b = socket.socketpair(); r, w = os.pipe()
f = os.open('lease', os.O_RDWR | os.O_CREAT)
m = mmap.mmap(-1, 1 << 22)
say({'options': sorted(out), 'oob': [tried(a.send, b'x', socket.MSG_OOB), tried(b.recv, 1, socket.MSG_OOB), tried(a.sendmsg, [b'x'], [], socket.MSG_OOB)],
     'lease': tried(fcntl.fcntl, f, 1024, fcntl.F_RDLCK), 'pipe': [tried(fcntl.fcntl, w, 1031, n) for n in (4096, 65536, 65537, 1 << 20)],
     'advice': [tried(m.madvise, n) for n in (4, 12, 14, 25)],
     'barrier': [sc(NR_BARRIER, n, 0, 0) for n in (1, 2, 4)]})
"""


@pytest.mark.quick
def test_K05_options_are_an_allow_list(box):
    """What a socket, a pipe or a mapping may be asked for; the rest switches static keys, interrupts every CPU, or outlives its socket."""
    seen = probe(box, OPTIONS.replace("NR_BARRIER", str(NR["membarrier"])))
    allowed = {1: [*range(1, 22), 30, 38, 39], 6: [*range(1, 13), 18, 25], 0: [1, 2, 8, *range(10, 16), 24, 32, 33, 34],
               41: [*range(16, 20), *range(23, 27), 49, 51, 66, 67]}
    options = {f"{level}/{option}" for level, names in allowed.items() for option in names}
    assert set(seen["options"]) <= options, set(seen["options"]) - options
    assert {"1/2", "1/4", "1/13", "1/15", "6/1", "6/4", "6/11", "0/1", "0/11"} <= set(seen["options"])
    assert seen["oob"] == ["ENOTSUP"] * 3 and seen["lease"] == "EINVAL", seen
    assert seen["pipe"] == ["ok", "ok", "EPERM", "EPERM"] and seen["barrier"] == ["EINVAL"] * 3, seen
    assert [seen["advice"][0], seen["advice"][1], seen["advice"][3]] == ["ok", "EINVAL", "EINVAL"], seen


def test_K06_splice_family_is_closed_and_copies_still_work(box, work):
    data = secrets.token_bytes(300000)
    (work / "data").write_bytes(data)
    want = hashlib.sha256(data).hexdigest()
    seen = probe(box, f"""
import shutil, hashlib, socket
r, w = os.pipe()
f = os.open('data', os.O_RDONLY)
out = [sc({NR['splice']}, f, 0, w, 0, 4096, 0), sc({NR['tee']}, r, w, 4096, 0), sc({NR['sendfile']}, w, f, 0, 4096),
       sc({NR['vmsplice']}, w, 1, 1, 0)]
shutil.copyfile('data', 'copy')
a, b = socket.socketpair()
import threading
got = []
def drain():
    while True:
        c = b.recv(65536)
        if not c: return
        got.append(c)
t = threading.Thread(target=drain); t.start()
a.sendfile(open('data', 'rb')); a.close(); t.join()
say([out, hashlib.sha256(open('copy', 'rb').read()).hexdigest(), hashlib.sha256(b''.join(got)).hexdigest()])
""", options=["--file", f"data={work}/data"])
    assert all(v in ("EINVAL", "EPERM") for v in seen[0]) and seen[0][:3] == ["EINVAL"] * 3, seen
    assert seen[1] == seen[2] == want
    result = box.bash("cat data > a; cp data b; tar c data | tar xO > c; dd if=data of=d bs=4k 2>&-; cat < data | cat > e; "
                      "perl -MFile::Copy -e 'copy(\"data\", \"f\")'; sha256sum a b c d e f | cut -d' ' -f1 | sort -u",
                      options=["--file", f"data={work}/data"])
    assert result["stdout"].split() == [want], result
    if os.path.exists("/usr/bin/node"):
        result = box.result(["-l", "javascript", "--file", f"data={work}/data", "-c",
                             "const fs = require('fs'), c = require('crypto'); fs.copyFileSync('data', 'x');"
                             "fs.createReadStream('x').pipe(fs.createWriteStream('y')).on('finish', () =>"
                             "console.log(c.createHash('sha256').update(fs.readFileSync('y')).digest('hex')))"])
        assert result["stdout"].strip() == want, result


def test_K07_page_cache_is_not_writable(box, page_cache):
    """The primitives of Dirty Pipe, Copy Fail and Dirty Frag against a file that can only be read."""
    target = "/usr/share/common-licenses/GPL-3"
    probe(box, f"""
r, w = os.pipe()
f = os.open({target!r}, os.O_RDONLY)
os.write(w, b'x' * 65536); os.read(r, 65536)
out = [sc({NR['splice']}, f, 0, w, 0, 1, 0), sc({NR['vmsplice']}, w, 1, 1, 0), libc.socket(38, 5, 0), libc.socket(33, 2, 2)]
os.write(w, b'planted')
import mmap
m = mmap.mmap(f, 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE); m[0:7] = b'planted'
out.append(attempt(mmap.mmap, f, 4096, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE))
libc.madvise(ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(m))), 4096, 4)
say(out)
""")
    for path, before in page_cache.items():
        assert digest(path) == before, path
        try:
            assert digest(path, direct=True) == before, f"{path}: cache and disk differ"
        except OSError:
            pass  # this file system has no direct reads


def test_K08_memfd(box, compile_c):
    program = compile_c("""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	char buf[65536], *arg[] = {"self", "again", 0}, *env[] = {0};
	if (argc > 1) {
		FILE *f = fopen("/proc/self/status", "r");
		while (f && fgets(buf, sizeof(buf), f))
			if (!strncmp(buf, "Seccomp:", 8) || !strncmp(buf, "NoNewPrivs:", 11) || !strncmp(buf, "CapEff:", 7)) fputs(buf, stdout);
		printf("ptrace %ld\\n", syscall(101, 16, 1, 0, 0));
		return 0;
	}
	int in = open("/proc/self/exe", O_RDONLY), fd = syscall(319, "x", 0);
	ssize_t n;
	while ((n = read(in, buf, sizeof(buf))) > 0) write(fd, buf, n);
	int huge = syscall(319, "h", 4 /* MFD_HUGETLB */);
	void *p = huge >= 0 && ftruncate(huge, 2 << 20) == 0 ? mmap(0, 2 << 20, 3, MAP_SHARED, huge, 0) : MAP_FAILED;
	printf("huge %d\\n", p != MAP_FAILED);
	/* The host may have none now, and then says ENOMEM. */
	for (int shared = 0; shared < 2; shared++) {
		p = mmap(0, 2 << 20, 3, (shared ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS | MAP_HUGETLB | 21 << MAP_HUGE_SHIFT, -1, 0);
		printf("hugetlb %d\\n", p == MAP_FAILED ? errno : 0);
	}
	fflush(stdout);
	syscall(322, fd, "", arg, env, 0x1000);
	return 9;
}""")
    result = box.result(["--file", f"p={program}", "--stage", "x=exec /sandbox/p"])
    text = " ".join(result["stdout"].split())
    assert result["exit_code"] == 0 and "huge 0 hugetlb 22 hugetlb 22" in text, result
    assert "Seccomp: 2" in text and "NoNewPrivs: 1" in text and "CapEff: 0000000000000000" in text and "ptrace -1" in text


def test_K09_clock_and_names(box):
    calls = {n: NR[n] for n in ("clock_settime", "adjtimex", "clock_adjtime", "settimeofday", "sethostname", "setdomainname")}
    seen = probe(box, f"say({{n: sc(nr, 0, 1, 0) for n, nr in {calls!r}.items()}})")
    assert set(seen.values()) == {"EPERM"}, seen


@pytest.mark.undisturbed
def test_K10_ordinary_calls_work(box):
    seen = probe(box, """
import time, random, tempfile, threading, select, signal, resource
out = [len(os.urandom(16)), time.clock_getres(time.CLOCK_MONOTONIC) <= 1e-6, time.monotonic() < time.monotonic() + 1]
begin = time.monotonic(); time.sleep(0.01); out.append(0.009 < time.monotonic() - begin < 5)
fired = []
signal.signal(signal.SIGALRM, lambda *a: fired.append(1)); signal.setitimer(signal.ITIMER_REAL, 0.01); time.sleep(0.1)
out.append(fired == [1])
with tempfile.TemporaryFile() as f: f.write(b'x'); out.append(True)
p = select.epoll(); p.close()
out.append(os.sched_getaffinity(0) != set())
say(out)
""")
    assert seen == [16] + [True] * 6, seen


CONFORMANCE = {
    "python": r"""
import subprocess, multiprocessing, asyncio, sqlite3, threading, socket, mmap, tempfile, json, concurrent.futures as cf, os
assert subprocess.check_output(['echo', 'x']) == b'x\n'
assert subprocess.run('exit 3', shell=True).returncode == 3
def double(n): return n * 2
if __name__ == '__main__':
    with multiprocessing.Pool(2) as p: assert p.map(double, [1, 2]) == [2, 4]
    with cf.ThreadPoolExecutor(4) as e: assert list(e.map(double, range(9))) == list(range(0, 18, 2))
    async def main():
        p = await asyncio.create_subprocess_exec('cat', stdin=-1, stdout=-1)
        return (await p.communicate(b'hi'))[0], await asyncio.to_thread(double, 4)
    assert asyncio.run(main()) == (b'hi', 8)
    d = sqlite3.connect('/tmp/x.db'); d.execute('pragma journal_mode=wal'); d.execute('create table t(a)')
    d.executemany('insert into t values (?)', [(i,) for i in range(100)]); d.commit()
    assert d.execute('select sum(a) from t').fetchone() == (4950,)
    a, b = socket.socketpair(); a.send(b'x'); assert b.recv(1) == b'x'
    from multiprocessing import shared_memory
    s = shared_memory.SharedMemory(create=True, size=4096); s.buf[0] = 7; s.close(); s.unlink()
    with tempfile.NamedTemporaryFile() as f: f.write(b'x'); f.flush(); os.fsync(f.fileno())
    m = mmap.mmap(-1, 4096); m[0] = 1
    print('fine')
""",
    "javascript": r"""
const cp = require('child_process'), { Worker } = require('worker_threads'), fs = require('fs'), os = require('os');
if (cp.execSync('echo x').toString() !== 'x\n') throw 1;
fs.writeFileSync('/tmp/f', 'x'.repeat(1e6)); fs.copyFileSync('/tmp/f', '/tmp/g');
const w = new Worker('require("worker_threads").parentPort.postMessage(6*7)', { eval: true });
w.on('message', m => { fs.createReadStream('/tmp/f').pipe(fs.createWriteStream('/tmp/h')).on('finish', () => {
  if (m === 42 && fs.statSync('/tmp/h').size === 1e6) console.log('fine'); }); });
""",
    "bash": "diff <(echo a) <(echo a) && coproc cat && echo hi >&${COPROC[1]} && read -u ${COPROC[0]} x && [ $x = hi ] && "
            "mktemp >/dev/null && seq 100 | sort -n | tail -1 >/dev/null && echo fine",
    "ruby": "require 'open3'; require 'socket'; require 'tempfile'\nraise unless Open3.capture2('cat', stdin_data: 'x')[0] == 'x'\n"
            "t = 4.times.map { |i| Thread.new { i * 2 } }.map(&:value)\nr, w = IO.pipe; pid = fork { w.write 'y'; exit! 0 }; w.close\n"
            "Process.wait pid; raise unless r.read == 'y'\nTempfile.create { |f| f.write 'x' }\nputs 'fine' if t.sum == 12",
    "perl": "pipe(R, W); if (!fork) { print W 'x'; exit } close W; wait; die unless <R> eq 'x'; die unless `echo y` eq \"y\\n\"; print 'fine'",
}


@pytest.mark.parametrize("language", list(CONFORMANCE))
def test_K11_runtimes_work_under_the_filter(box, language):
    result = box.result(["-l", language, "-c", CONFORMANCE[language]])
    if result["status"] == "setup_error":
        pytest.skip(f"{language} is not installed")
    assert result["stdout"].strip() == "fine", result


def test_K11_tools_work_under_the_filter(box):
    result = box.bash("git init -q r 2>&1 && cd r && git -c user.email=a -c user.name=b commit -q --allow-empty -m x && git log --oneline "
                      "| wc -l; printf 'int main(){return 5;}' > a.c && gcc a.c -o a && ./a; echo $?")
    if not os.path.exists("/usr/bin/git"):
        pytest.skip("git is not installed")
    assert result["stdout"].split() == ["1", "5"], result


def test_K13_landlock_says_no(box, landlock, canary):
    seen = probe(box, f"""
import socket
def tcp_bind():
    s = socket.socket(); s.bind(('127.0.0.1', 0))
def tcp_connect(): socket.create_connection(('127.0.0.1', {canary.port}), 0.5)
def abstract(): socket.socket(socket.AF_UNIX).connect('\\0' + {canary.abstract!r})
say([attempt(tcp_bind), attempt(tcp_connect), attempt(abstract), attempt(os.truncate, '/usr/bin/env', 0), attempt(os.kill, os.getppid(), 9)])
""")
    isolation = box.bash(":")["isolation"]
    if landlock == "no-landlock":
        assert isolation["landlock"] == 0 and "landlock" in isolation["missing"] and isolation["tier"] == "reduced"
        assert seen[1] != "ok" and seen[2] != "ok" and seen[3] != "ok", seen
    else:
        assert isolation["landlock"] >= 1, isolation
        assert seen[2] in ("EPERM", "EACCES", "ECONNREFUSED") and seen[3] in ("EACCES", "EROFS"), seen
    assert seen[:2] == ["ok", "ECONNREFUSED"], seen  # of its own loopback, where the canary is not
    assert not canary.reached
