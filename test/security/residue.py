# SPDX-License-Identifier: Apache-2.0
"""Programs that run inside: one looks at everything a sandbox has that another one could have left or changed, one leaves
and changes all it can, one looks for a secret. And how the tests of warm cells use them.
"""
import contextlib
import json
import os
import secrets
from pathlib import Path

# Prints one JSON object; two sandboxes of the same request must print the same.
RESIDUE = r"""
import ctypes, errno, fcntl, json, os, resource, signal, stat, time
libc = ctypes.CDLL(None, use_errno=True)
def text(path):
    try: return open(path, errors='replace').read()
    except OSError as e: return errno.errorcode[e.errno]
def attempt(f, *args):
    try: f(*args); return 'ok'
    except OSError as e: return errno.errorcode[e.errno]
out = {}
fds = {}
for fd in range(1024):
    try: flags = fcntl.fcntl(fd, fcntl.F_GETFD)
    except OSError: continue
    if fd != 100: fds[fd] = [oct(stat.S_IFMT(os.fstat(fd).st_mode)), flags, fcntl.fcntl(fd, fcntl.F_GETFL)]
out['descriptors'] = fds
out['processes'] = sorted(p for p in os.listdir('/proc') if p.isdigit())
out['files'] = sorted(os.path.join(t, n) for d in ('/tmp', '/dev/shm', '/sandbox', '/var/tmp', '/build', '/dev/mqueue')
                      for t, ds, ns in os.walk(d) for n in ds + ns)
out['space'] = {d: (lambda v: [v.f_blocks - v.f_bfree, v.f_files - v.f_ffree])(os.statvfs(d)) for d in ('/tmp', '/sandbox', '/dev/shm')}
buf = (ctypes.c_int * 64)()
out['ipc'] = [libc.shmctl(0, 14, buf), buf[0], libc.semctl(0, 0, 19, buf), buf[8], buf[9], libc.msgctl(0, 12, buf), buf[0]]
net = {}
for name in ('dev', 'snmp', 'netstat', 'snmp6', 'tcp', 'tcp6', 'udp', 'udp6', 'udplite', 'raw', 'raw6', 'igmp', 'igmp6',
             'if_inet6', 'ip6_flowlabel', 'route', 'ipv6_route', 'rt6_stats', 'arp', 'dev_mcast', 'mcfilter', 'mcfilter6', 'packet',
             'anycast6', 'sockstat6', 'fib_trie', 'icmp', 'icmp6', 'dev_snmp6/lo', 'xfrm_stat'):
    net[name] = text('/proc/self/net/' + name)
net['unix'] = [l.split()[7:] for l in text('/proc/self/net/unix').splitlines()[1:] if len(l.split()) > 7]
net['netlink'] = len(text('/proc/self/net/netlink').splitlines())
net['sockets'] = [l for l in text('/proc/self/net/sockstat').splitlines() if not l.startswith(('TCP', 'UDP:'))]
out['net'] = net
out['limits'] = {n: resource.getrlimit(getattr(resource, n)) for n in dir(resource) if n.startswith('RLIMIT_')}
mask = os.umask(0); os.umask(mask)
out['process'] = dict(umask=mask, cwd=os.getcwd(), nice=os.nice(0), scheduler=os.sched_getscheduler(0), cpus=len(os.sched_getaffinity(0)),
    sid=os.getsid(0), pgid=os.getpgid(0), ppid=os.getppid(), uid=os.getresuid(), gid=os.getresgid(), groups=os.getgroups(), name=list(os.uname())[:2],
    timers=[signal.getitimer(i) for i in range(3)], prctl=[libc.prctl(n, 0, 0, 0, 0) for n in (3, 27, 30, 39, 42, 47, 66)],
    personality=libc.personality(0xffffffff), tty=text('/proc/self/stat').rsplit(')', 1)[1].split()[4])
dead = ctypes.c_int(-1); libc.prctl(2, ctypes.byref(dead), 0, 0, 0); sub = ctypes.c_int(-1); libc.prctl(37, ctypes.byref(sub), 0, 0, 0)
out['process']['death'] = [dead.value, sub.value]
out['status'] = {l.split(':')[0]: l.split(':')[1].split() for l in text('/proc/self/status').splitlines()
                 if l.startswith(('Name', 'Umask', 'Tgid', 'Ngid', 'TracerPid', 'Uid', 'Gid', 'Groups', 'Threads', 'Sig', 'Shd', 'Cap', 'NoNew', 'Secc',
                                  'Specul', 'Cpus_', 'Mems_', 'CoreD', 'THP'))}
for name in ('cmdline', 'comm', 'limits', 'oom_score_adj', 'oom_score', 'coredump_filter', 'loginuid', 'sessionid', 'timens_offsets', 'timers', 'cgroup',
             'setgroups', 'attr/current', 'timerslack_ns', 'environ', 'projid_map', 'wchan'):
    out[name] = text('/proc/self/' + name)
out['exe'] = os.readlink('/proc/self/exe')
# A warm cell's root is a read-only view of a tree that was made once, copies of /etc in it; a cold one's is made anew.
out['mounts'] = sorted((f[3] if f[4] != '/dev' else '', f[4], f[5], 'root' if f[4] == '/' else f[f.index('-') + 1])
                       for f in map(str.split, text('/proc/self/mountinfo').splitlines()) if not f[4].startswith('/etc/'))
out['locks'] = [attempt(fcntl.flock, os.open(p, 0), fcntl.LOCK_EX | fcntl.LOCK_NB) for p in ('/usr/share/common-licenses/GPL-3', '/usr', '/etc/passwd')]
out['environment'] = sorted(os.environ.items())
out['devices'] = {n: [oct(s.st_mode), s.st_uid, s.st_rdev] for n in sorted(os.listdir('/dev')) for s in [os.lstat('/dev/' + n)]}
out['key'] = libc.syscall(250, 0, -3, 0)
print(json.dumps(out))
"""

# Argument: a secret, which it leaves wherever it can. Prints `ready`, then waits for a line; ends with daemons alive.
DIRT = r"""
import ctypes, fcntl, os, resource, signal, socket, struct, sys, threading, time
secret = sys.argv[1]
libc = ctypes.CDLL(None, use_errno=True)
def quietly(f, *args):
    try: return f(*args)
    except (OSError, ValueError): pass
def put(path):
    with open(path, 'w') as f: f.write(secret * 100)
for d in ('/tmp', '/dev/shm', '/sandbox', '/var/tmp', os.environ.get('HOME', '/'), '/dev', '/build', '/etc', '/dev/mqueue'):
    quietly(put, d + '/left-' + secret)
    quietly(os.setxattr, d, 'user.left', secret.encode())
held = []
for name in ('\0' + secret, '/tmp/sock'):
    s = socket.socket(socket.AF_UNIX); quietly(s.bind, name); quietly(s.listen); held.append(s)
for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
    for family in (socket.AF_INET, socket.AF_INET6):
        s = quietly(socket.socket, family, kind)
        if s:
            quietly(s.bind, ('', 4711)); quietly(s.listen); quietly(s.sendto, b'x', ('127.0.0.1', 4711)); quietly(s.connect, ('127.0.0.1', 1)); held.append(s)
six = quietly(socket.socket, socket.AF_INET6, socket.SOCK_DGRAM)
if six:
    quietly(six.setsockopt, 41, 32, b'\x20\x01' + bytes.fromhex(secret[-28:]) + struct.pack('!I', 0x12345) + struct.pack('=BBHHHI', 0, 1, 1, 60, 60, 0))
    quietly(six.setsockopt, 41, 20, socket.inet_pton(socket.AF_INET6, 'ff02::4711') + struct.pack('I', 1))
    held.append(six)
four = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
quietly(four.setsockopt, 0, 35, socket.inet_aton('239.1.2.3') + socket.inet_aton('127.0.0.1')); held.append(four)
libc.shmat.restype = ctypes.c_void_p
a = libc.shmat(libc.shmget(0x5ee1, 65536, 0o1666), None, 0)
if a and a != 2 ** 64 - 1: ctypes.memmove(a, secret.encode(), len(secret))
libc.semget(0x5ee1, 4, 0o1666)
class Message(ctypes.Structure): _fields_ = [('type', ctypes.c_long), ('text', ctypes.c_char * 64)]
libc.msgsnd(libc.msgget(0x5ee1, 0o1666), ctypes.byref(Message(1, secret.encode())), 60, 0)
libc.syscall(240, b'left', os.O_RDWR | os.O_CREAT, 0o666, None)
libc.syscall(248, b'user', secret.encode(), secret.encode(), 60, -3)
for p in ('/usr/share/common-licenses/GPL-3', '/usr', '/dev/null', '/etc/passwd'):
    fd = os.open(p, 0); quietly(fcntl.flock, fd, fcntl.LOCK_EX | fcntl.LOCK_NB); held.append(fd)
    libc.inotify_add_watch(libc.inotify_init1(0), p.encode(), 0xfff)
m = os.memfd_create(secret[:200]); os.write(m, secret.encode())
for n in ('CORE', 'MEMLOCK', 'MSGQUEUE', 'NICE', 'RTPRIO', 'RTTIME', 'SIGPENDING'):
    quietly(resource.setrlimit, getattr(resource, 'RLIMIT_' + n), (0, 0))
os.umask(0o777); os.chdir('/tmp'); quietly(os.nice, 5); quietly(os.sched_setaffinity, 0, {min(os.sched_getaffinity(0))})
libc.prctl(15, secret[-15:].encode()); libc.prctl(4, 0); libc.prctl(1, 9); libc.prctl(29, 12345); libc.prctl(41, 1, 0, 0, 0); libc.prctl(36, 1)
quietly(os.sethostname if hasattr(os, 'sethostname') else socket.sethostname, secret[:60])
for p, t in (('/proc/self/oom_score_adj', '900'), ('/proc/self/coredump_filter', '7f'), ('/proc/self/comm', 'left'), ('/proc/self/timerslack_ns', '1'),
             ('/proc/sys/kernel/hostname', 'left'), ('/proc/self/loginuid', '7'), ('/proc/self/autogroup', '5')):
    quietly(lambda: open(p, 'w').write(t))
for s in range(1, 65): quietly(signal.signal, s, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
signal.setitimer(signal.ITIMER_REAL, 600)
os.environ['LEFT'] = secret
libc.setenv(b'LEFT2', secret.encode(), 1)
import atexit, builtins, random, tempfile
builtins.print_ = builtins.print; builtins.left = secret; sys.modules['left'] = sys; random.seed(7); tempfile.tempdir = '/left'; sys.path.insert(0, '/left')
sys.setrecursionlimit(77777)
for _ in range(2):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0: os.execv('/bin/sleep', ['daemon-' + secret, '100'])
        os._exit(0)
threading.Thread(target=time.sleep, args=(100,), daemon=True).start()
heap = [secret + str(i) for i in range(1000)]
sys.stdout.write('ready\n'); sys.stdout.flush()
sys.stdin.readline()
"""

# Prints what it finds of any secret: in files, processes, sockets and its own memory. The pattern does not find itself.
SEARCH = r"""
import json, os, re
pattern = re.compile(rb'r[e]ef-secret-[0-9a-f]{32}')
found = []
def look(where, data):
    found.extend([where, hit.decode()] for hit in set(pattern.findall(data)))
for top in ('/tmp', '/dev', '/sandbox', '/var', '/build', '/home', '/root', '/run'):
    for t, ds, ns in os.walk(top):
        look('name', ' '.join(ds + ns).encode())
        for n in ns:
            p = os.path.join(t, n)
            if os.path.isfile(p):
                try: look(p, open(p, 'rb').read(1 << 20))
                except OSError: pass
for top in ('/proc/self', '/proc/1', '/proc/self/net'):
    for n in os.listdir(top) if os.path.isdir(top) else []:
        if n in ('pagemap', 'mem', 'clear_refs', 'kmsg'): continue
        try: look(top + '/' + n, open(top + '/' + n, 'rb').read(1 << 20))
        except OSError: pass
mapped = 0
with open('/proc/self/mem', 'rb', 0) as mem:
    for line in open('/proc/self/maps').read().splitlines():
        first, last = (int(x, 16) for x in line.split()[0].split('-'))
        if 'r' not in line.split()[1] or '[v' in line: continue
        try:
            mem.seek(first)
            look('memory ' + line, mem.read(last - first))
            mapped += last - first
        except (OSError, ValueError): pass
print(json.dumps([found, mapped]))
"""


def a_secret():
    return "planted-secret-" + secrets.token_hex(16)


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
def soiled(front, secret):
    """While a tenant lives that has left its secret wherever it can."""
    popen = front.popen(["run", "-l", "python", "-c", DIRT, "--", secret])
    try:
        line = popen.stdout.readline()
        assert line == b"ready\n", (line, popen.stderr.read())
        yield
        _, err = popen.communicate(b"\n", timeout=25)
        assert popen.returncode == 0, err
    finally:
        popen.kill()
