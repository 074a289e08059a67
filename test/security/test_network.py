# SPDX-License-Identifier: Apache-2.0
"""N01–N03 and N12 of notes/security.md §3.4: no network is the default, and it is none."""

import pytest

from probe import probe


@pytest.mark.quick
def test_N01_nothing_is_reached(box, canary):
    seen = probe(box, f"""
import socket
out = {{}}
socket.setdefaulttimeout(0.5)
def tcp(a, p): socket.create_connection((a, p), 0.5)
def udp(a, p): socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', (a, p))
for a, p in (('127.0.0.1', {canary.port}), ('169.254.169.254', 80), ('8.8.8.8', 53), ('10.0.0.1', 80), ('192.168.0.1', 80)):
    out['tcp ' + a] = attempt(tcp, a, p)
    out['udp ' + a] = attempt(udp, a, p)
def six(a): socket.socket(socket.AF_INET6).connect((a, 80))
for a in ('::1', '2001:4860:4860::8888', '::ffff:127.0.0.1'): out['tcp ' + a] = attempt(six, a)
try: socket.getaddrinfo('example.com', 80); out['dns'] = 'ok'
except OSError as e: out['dns'] = 'no'
say(out)
""")
    assert "ok" not in seen.values(), seen
    assert not canary.reached


@pytest.mark.quick
def test_N02_host_sockets_are_out_of_reach(box, canary):
    seen = probe(box, f"""
import socket
def connect(a): socket.socket(socket.AF_UNIX).connect(a)
say([attempt(connect, a) for a in ('\\0' + {canary.abstract!r}, {canary.path!r}, '/run/docker.sock', '/var/run/docker.sock',
     '/run/systemd/private', '/run/dbus/system_bus_socket', '/tmp/.X11-unix/X0')])
""")
    assert all(code in ("ECONNREFUSED", "ENOENT", "EACCES", "EPERM", "ENOTDIR") for code in seen), seen
    assert not canary.reached


def test_N03_only_lo_and_down(box):
    seen = probe(box, """
import socket, fcntl, struct
out = {}
for i, n in socket.if_nameindex() if True else []:
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    flags = struct.unpack('16sh', fcntl.ioctl(s, 0x8913, struct.pack('16sh', n.encode(), 0))[:18])[1]
    out[n] = flags & 1
say(out)
""")
    assert seen == {"lo": 0} or seen == {}, seen
    up = box.python("import socket\ns = socket.socket(); s.bind(('127.0.0.1', 8080)); s.listen(); "
                    "socket.create_connection(('127.0.0.1', 8080), 1); print([n for _, n in socket.if_nameindex()])",
                    options=["--network", "loopback"])
    assert up["stdout"] == "['lo']\n", up


@pytest.mark.parametrize("network", ["none", "loopback"])
def test_N12_sandboxes_do_not_meet(box, network):
    """A listens on loopback, an abstract name, a path in /tmp and in /dev/shm; B finds none of them."""
    listen = """
import socket, time, sys, os
s = []
try:
    a = socket.socket(); a.bind(('127.0.0.1', 18123)); a.listen(); s.append(a)
except OSError: pass
for name in ('\\0reef', '/tmp/reef', '/dev/shm/reef'):
    b = socket.socket(socket.AF_UNIX); b.bind(name); b.listen(); s.append(b)
print('up', flush=True)
sys.stdin.readline()
"""
    popen = box.popen(["run", "-l", "python", "--network", network, "-c", listen])
    line = popen.stdout.readline()
    assert line == b"up\n", (line, popen.stderr.read())
    seen = probe(box, """
import socket
def tcp(): socket.create_connection(('127.0.0.1', 18123), 0.5)
def unix(a): socket.socket(socket.AF_UNIX).connect(a)
say([attempt(tcp), attempt(unix, '\\0reef'), attempt(unix, '/tmp/reef'), attempt(unix, '/dev/shm/reef'), os.listdir('/tmp'), os.listdir('/dev/shm')])
""", options=["--network", network])
    popen.communicate(b"\n", timeout=25)
    assert "ok" not in seen[:4] and seen[4] == [] and seen[5] == [], seen


def test_N12_ipc_is_private(box):
    make = """
import ctypes, sys
l = ctypes.CDLL(None, use_errno=True)
print(l.shmget(0x5ee1, 4096, 0o1666), l.semget(0x5ee1, 1, 0o1666), l.msgget(0x5ee1, 0o1666), flush=True)
sys.stdin.readline()
"""
    popen = box.popen(["run", "-l", "python", "-c", make])
    ids = popen.stdout.readline().split()
    assert len(ids) == 3 and all(int(i) >= 0 for i in ids), ids
    seen = probe(box, "say([libc.shmget(0x5ee1, 0, 0), libc.semget(0x5ee1, 0, 0), libc.msgget(0x5ee1, 0)])")
    popen.communicate(b"\n", timeout=25)
    assert seen == [-1, -1, -1]
    assert "5ee1" not in open("/proc/sysvipc/shm").read()
