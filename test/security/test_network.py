# SPDX-License-Identifier: Apache-2.0
"""N01–N03 and N12 of test/security/cases.md: the default is a loopback of one's own and nothing else; `off` has not even that."""

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
    # A datagram to the sandbox's own loopback is sent, and no program outside receives it.
    assert seen.pop("udp 127.0.0.1") == "ok"
    assert {name for name, answer in seen.items() if answer in ("ok", "EACCES")} == set(), seen
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


@pytest.mark.quick
def test_N03_only_lo_and_up(box):
    """Streams and datagrams, both protocols, by number and by name; the interface is up, has its two addresses, and is not ours to change."""
    seen = probe(box, """
import socket, fcntl, struct
out = {'up': {}, 'joined': []}
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i, n in socket.if_nameindex():
    request = struct.pack('16sh', n.encode(), 0)
    out['up'][n] = struct.unpack('16sh', fcntl.ioctl(s, 0x8913, request)[:18])[1] & 1
    out['down'] = attempt(fcntl.ioctl, s, 0x8914, request)
for where in ('127.0.0.1', '::1', 'localhost', '127.1.2.3') if os.path.exists('/proc/self/net/if_inet6') else ('127.0.0.1', 'localhost', '127.1.2.3'):
    family, _, _, _, address = socket.getaddrinfo(where, 0, type=socket.SOCK_STREAM)[0]
    with socket.socket(family) as t, socket.socket(family, socket.SOCK_DGRAM) as u:
        t.bind(address); t.listen(); c = socket.create_connection((where, t.getsockname()[1])); c.send(b'x')
        u.bind(address); u.sendto(b'y', u.getsockname())
        out['joined'].append(t.accept()[0].recv(1).decode() + u.recv(1).decode())
say(out)
""")
    assert seen["up"] == {"lo": 1} and seen["down"] == "EPERM", seen
    assert len(seen["joined"]) >= 3 and set(seen["joined"]) == {"xy"}, seen


@pytest.mark.quick
def test_N03_off_has_no_sockets(box):
    """Neither Internet nor routing sockets, with a clear errno; AF_UNIX works."""
    seen = probe(box, """
import socket
def open_one(*kind): socket.socket(*kind).close()
a, b = socket.socketpair(); a.send(b'x')
s = socket.socket(socket.AF_UNIX); s.bind('/tmp/s'); s.listen(); c = socket.socket(socket.AF_UNIX); c.connect('/tmp/s')
say([attempt(open_one, f, t) for f in (2, 10, 16, 17) for t in (1, 2, 3)] + [b.recv(1).decode()])
""", options=["--network", "off"])
    assert seen == ["EAFNOSUPPORT"] * 12 + ["x"], seen


def test_N03_the_result_says_the_mode(box):
    for options, mode in (([], "none"), (["--network", "none"], "none"), (["--network", "loopback"], "none"), (["--network", "off"], "off")):
        result = box.python("print(1)", options=options)
        assert (result["status"], result["isolation"]["net"]) == ("success", mode), (options, result)
        assert result["isolation"]["seccomp"].startswith("off@" if mode == "off" else "default@"), result


@pytest.mark.cold("what is read-only runs cold")
def test_N03_strict_is_off(box):
    refused = box.result(["--policy", "strict", "--network", "none", "-l", "python", "-c", "1"])
    if "requires landlock" in refused["cause"]["detail"]:
        return
    assert refused["status"] == "denied" and refused["cause"]["detail"] == "network: 'none' is not allowed by this policy; use off", refused
    result = box.python("print(1)", options=["--policy", "strict"])
    assert (result["status"], result["isolation"]["net"]) == ("success", "off"), result


@pytest.mark.parametrize("network", ["none", "off"])
def test_N12_sandboxes_do_not_meet(box, network):
    """A listens on loopback, an abstract name, a path in /tmp and in /dev/shm; B finds none of them."""
    listen = """
import socket, time, sys, os
s = []
try:
    a = socket.socket(); a.bind(('127.0.0.1', 18123)); a.listen(); s.append(a)
except OSError: pass
for name in ('\\0toy', '/tmp/toy', '/dev/shm/toy'):
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
say([attempt(tcp), attempt(unix, '\\0toy'), attempt(unix, '/tmp/toy'), attempt(unix, '/dev/shm/toy'), os.listdir('/tmp'), os.listdir('/dev/shm')])
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


@pytest.mark.quick
@pytest.mark.parametrize("language, code, what, hint", [
    ("python", 'import socket; socket.create_connection(("1.1.1.1", 53))', "connect 1.1.1.1:53", "--network allow:1.1.1.1:53"),
    ("python", 'import urllib.request; urllib.request.urlopen("http://example.org/x")', "lookup example.org", "--network allow:example.org:80"),
    ("bash", "exec 3<>/dev/tcp/1.1.1.1/53", "connect 1.1.1.1:53", "--network allow:1.1.1.1:53"),
    ("javascript", 'require("net").connect(53, "1.1.1.1")', "connect 1.1.1.1:53", "--network allow:1.1.1.1:53"),
])
def test_what_a_program_without_network_tried(atoll, language, code, what, hint):
    """Its own error says it; the result says in one line why, and what permits it."""
    result = atoll.run(["run", "--json", "-l", language, "-c", code]).json()
    assert result["status"] == "error" and len(result["denials"]) == 1, result
    row = result["denials"][0]
    assert row == {"what": what, "rule": "network: none", "count": row["count"], "hint": hint, "source": "program"} and row["count"] >= 1
    quiet = atoll.run(["run", "--json", "-l", "python", "-c", "print('Network is unreachable: 1.1.1.1:53')"]).json()
    assert quiet["denials"] == []
