# SPDX-License-Identifier: Apache-2.0
"""Programs that mean no good, and callers that do not either. What they try must come to nothing, for them and for others."""
import random
import socket

from chaos import LOST, Load, Program

# All but our own failures.
ANY = ("success", "error", "timeout", "limit", "denied", "setup_error")
ESCAPED = "6001.625"  # what a process that outlives its program would be known by


def silent(*words):
    """None of these may be in what it printed."""
    def check(result):
        said = result["stdout"] + result["stderr"]
        return next((f"{word!r} was read" for word in words if word in said), None)
    return check


def ended_or_refused(result):
    """One that uses too much memory is ended, and that is `limit`, where a control group counts it. Without one (rootless, and
    none delegated) RLIMIT_DATA holds: the kernel refuses the allocation and keeps no count of refusals, so all that is left to
    see is a program that exits by itself: `error`, with Python's own words for why. It is `limit` only if the broker, which looks
    every 50 ms, finds it above: its stack and its files in memory count there, and not in RLIMIT_DATA."""
    if result["status"] == "limit":
        return None if result["cause"]["kind"] == "memory" else f"ended for {result['cause']}"
    if "cgroup-memory" not in result["isolation"]["missing"]:
        return "memory is counted, and yet it was not ended"
    return None if "MemoryError" in result["stderr"] else "nothing was refused"


def hostile(code, *words, language="python", statuses=ANY, **limits):
    return Program(language, code, statuses=statuses, limits={"timeout": 2, **limits}, weight=1, check=silent(*words))


def programs(canary):
    """One of each kind."""
    attempt = "\nfor f in tries:\n    try: print(f())\n    except Exception as e: print(type(e).__name__)\n"
    return [
        hostile("import os\nwhile True:\n    try: os.fork()\n    except OSError: pass", pids=64),
        Program("python", "x = []\nwhile True: x.append(bytearray(1 << 20))", statuses=("limit", "error"),
                limits={"timeout": 20, "memory": "64m"}, weight=1, check=ended_or_refused),
        hostile("while True: pass", statuses=("timeout",), timeout=1),
        hostile("while True: print('x' * 4000)", output="64k", output_total="8m"),
        hostile("f = open('/tmp/big', 'wb')\nwhile True: f.write(b'x' * (1 << 20))", disk="8m"),
        hostile("i = 0\nwhile True:\n    open(f'/tmp/{i}', 'w').close(); i += 1", timeout=1),
        hostile("import os\ntries = [lambda: open(%r).read(), lambda: open(%r).read(), lambda: os.listdir(%r)]%s" %
                (str(canary.public), str(canary.secret), str(canary.dir), attempt), canary.text),
        hostile(f"""import socket
def reach(family, kind, address):
    s = socket.socket(family, kind); s.settimeout(0.5); s.connect(address); s.send(b'x'); return 'reached'
tries = [lambda: reach(socket.AF_INET, socket.SOCK_STREAM, ('127.0.0.1', {canary.port})),
         lambda: reach(socket.AF_UNIX, socket.SOCK_STREAM, chr(0) + {canary.abstract!r}),
         lambda: reach(socket.AF_UNIX, socket.SOCK_STREAM, {canary.path!r})]{attempt}""", "reached"),
        hostile(f"setsid sleep {ESCAPED} & (trap '' HUP TERM; exec sleep {ESCAPED}) & echo gone", language="bash"),
        hostile("kill -9 -1; echo there", language="bash"),
        hostile("kill -STOP $$", language="bash", statuses=("timeout",), timeout=1),
        hostile("""import ctypes, os
libc = ctypes.CDLL(None)
for call in (lambda: libc.unshare(0x10000000), lambda: libc.mount(b'none', b'/tmp', b'tmpfs', 0, 0), lambda: libc.ptrace(16, 1, 0, 0),
             lambda: libc.chroot(b'/tmp'), lambda: libc.setuid(0), lambda: libc.reboot(0)):
    call()
for path in ('/proc/sys/kernel/hostname', '/etc/passwd', '/usr/bin/atoll', '/sys/fs/cgroup/x', '/dev/sda'):
    try: open(path, 'w').write('x'); print('written', path)
    except OSError: pass""", "written"),
        hostile("""from multiprocessing import shared_memory
import ctypes, os
libc = ctypes.CDLL(None)
for key in range(1, 9): libc.shmget(key, 4096, 0o1600), libc.msgget(key, 0o1600), libc.semget(key, 1, 0o1600)
try: shared_memory.SharedMemory('memory', create=True, size=4096)
except OSError: pass
os._exit(0)"""),
        hostile("import os\nfds = []\nwhile True:\n    try: fds.append(os.open('/dev/null', 0))\n    except OSError: break\nprint(len(fds))"),
        hostile("import os\nos.makedirs('a/' * 60)\nos.symlink('/etc/passwd', 'link')\nos.mkfifo('pipe')\nos.link('link', 'hard')"),
        hostile("import sys, os\nsys.stdout.buffer.write(os.urandom(200000)); os.kill(os.getpid(), 11)"),
        hostile("while (true) { new Array(1e6).fill('x'); }", language="javascript", timeout=1, memory="128m"),
        Program("python", "def f(:", statuses=("error",), weight=1),
        Program("cobol", "STOP RUN.", statuses=("setup_error",), weight=1),
    ]


GARBAGE = [b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"POST /v1/execute HTTP/1.1\r\nHost: x\r\n",
           b"POST /v1/execute HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
           b"GET /" + b"a" * 70000 + b" HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
           b"POST /v1/execute HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"]


class Abuse(Load):
    """Callers that send what is no request, leave in the middle, or read nothing."""

    def work(self, rng):
        while not self.over.wait(rng.uniform(0.05, 0.4)):
            try:
                with socket.create_connection((self.survivor.web.host, self.survivor.web.port), timeout=5) as s:
                    rng.choice((self.babble, self.leave, self.stall))(s, rng)
            except LOST:
                pass

    def babble(self, s, rng):
        s.sendall(rng.choice(GARBAGE) if rng.random() < 0.7 else rng.randbytes(rng.randrange(1, 5000)))
        s.settimeout(0.3)
        while s.recv(65536):
            pass

    def begin(self, s, code):
        body = b'{"language": "bash", "code": "%s", "limits": {"timeout": 3, "output": "64k"}}' % code
        s.sendall(b"POST /v1/execute HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAccept: text/event-stream\r\nContent-Type: application/json\r\n"
                  b"Content-Length: %d\r\n\r\n%s" % (self.survivor.web.port, len(body), body))

    def leave(self, s, rng):
        self.begin(s, b"sleep 1; echo nobody listens")
        self.over.wait(rng.uniform(0, 0.3))

    def stall(self, s, rng):
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.begin(s, b"yes | head -c 3000000")
        self.over.wait(1.0)


def mixed(good, canary, share):
    """Good and bad ones, so that this share of what is run is bad."""
    bad = programs(canary)
    total = sum(p.weight for p in good)
    for p in bad:
        p.weight = total * share / (1 - share) / len(bad)
    random.shuffle(bad)
    return good + bad
