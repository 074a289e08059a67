# SPDX-License-Identifier: Apache-2.0
"""N04–N12 of test/security/cases.md: programs that may reach listed destinations reach these and no others."""
import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest

import contract
import oracle
from internet import FAR, FAR_IPV6, NEAR, PRIVATE, Internet
from daemon import Daemon
from probe import probe
from program import IS_ROOT, ROOT
from web import LocalWeb

sys.path.insert(0, str(ROOT / "sdk" / "python" / "src"))
from atoll import AtollError, Client, Sandbox  # noqa: E402
from atoll.code_sandbox import CodeSandbox  # noqa: E402

pytestmark = [pytest.mark.cold("relays belong to cold runs"),
              pytest.mark.skipif(not IS_ROOT, reason="needs root, to make network namespaces with public addresses")]

TRY = """
import socket
def word(host, port, say=b'hello\\n', family=0):
    try:
        found = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)[0]
        s = socket.socket(found[0])
        s.settimeout(8)
        s.connect(found[4])
        s.sendall(say)
        return s.makefile('rb').read().decode()[:40]
    except socket.gaierror: return 'no name'
    except ConnectionResetError: return 'reset'
    except ConnectionRefusedError: return 'refused'
    except UnicodeError: return 'no name'
    except OSError as e: return repr(e)
"""


@pytest.fixture(scope="session")
def internet():
    world = Internet()
    yield world
    world.close()


@pytest.fixture
def near(atoll, internet):
    """The program on a machine with two public addresses, which are its own, and a far one."""
    return atoll.variant(wrap=internet.wrap(atoll.home))


def allow(destinations, policy="trusted"):
    return ["--no-daemon", "--policy", policy, "--network", "allow:" + destinations]


def relays():
    found = []
    for path in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):  # it ends
            if oracle.read(path) == "memfd:egress\n":
                found.append(path.parent.name)
    return found


def files_of(pid):
    with contextlib.suppress(OSError):  # it ends
        return len(os.listdir(f"/proc/{pid}/fd"))
    return 0


def policy(near, work, text):
    """A policy file: `trusted` with other words about the network."""
    path = work / "policy.yaml"
    base = (near.stage.data / "policies" / "trusted.yaml").read_text()
    path.write_text(base[:base.index("network:")] + f"network: {text}\n")
    path.chmod(0o644)
    return path


@pytest.mark.quick
def test_N04_listed_destinations_and_no_others(near):
    result = near.python(TRY + """
for host, port in (('pub.test', 80), ('PUB.Test.', 80), ('a.wild.test', 80), ('six.test', 443)): print(word(host, port))
for host, port in (('pub.test', 443), ('a.wild.test', 443), ('wild.test', 80), ('pub.test.evil.test', 80), ('xpub.test', 80),
                   ('mixed.test', 80), ('a@pub.test', 80), ('pub.test%2e', 80), ('pub.test\\r\\n', 80), ('a' * 64 + '.test', 80),
                   (""" + f"'{FAR}', 80), ('{FAR_IPV6}', 80" + """), ('pub.test', 8080)): print(word(host, port))
""", options=allow("pub.test:80,*.wild.test:80,six.test:443"))
    assert result["stdout"].splitlines() == [
        "echo hello "] * 4 + ["reset", "reset"] + ["no name"] * 8 + ["reset", "reset", "refused"], result
    assert [(row["host"], row["port"], row["outcome"], row["count"], row["sent"], row["received"]) for row in result["network"]] == [
        ("pub.test", 80, "connected", 2, 12, 22), ("a.wild.test", 80, "connected", 1, 6, 11), ("six.test", 443, "connected", 1, 6, 11)]
    denied = {row["what"]: row["hint"] for row in result["denials"]}
    assert denied["connect pub.test:443"] == "--network allow:pub.test:443"
    assert denied["lookup xpub.test"] == "--network allow:xpub.test"
    assert denied[f"connect {FAR}:80"] == f"--network allow:{FAR}:80"
    assert denied[f"connect [{FAR_IPV6}]:80"] == f"--network allow:[{FAR_IPV6}]:80"
    assert result["isolation"]["net"] == "allow"


def test_N05_N11_addresses_that_are_not_public(near):
    """Of the host, of its network, of clouds, under any spelling and any name; also the public ones that the host itself has."""
    spellings = ["127.0.0.1", "127.1", "2130706433", "0x7f000001", "0", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", PRIVATE,
                 f"::ffff:{PRIVATE}", "169.254.169.254", NEAR, "2606:2800::1"]
    names = ["private.test", "meta.test", "loop.test", "near.test"]
    result = near.python(TRY + f"""
for host in {spellings + names + ['mixed.test', FAR, FAR_IPV6, '::ffff:' + FAR]!r}: print(word(host, 80))
""", options=allow("*"))
    assert result["stdout"].splitlines() == ["reset"] * len(spellings) + ["no name"] * len(names) + ["echo hello "] * 4, result
    assert {row["host"] for row in result["network"]} == {"mixed.test", FAR, FAR_IPV6}
    assert {row["what"] for row in result["denials"]} >= {f"connect {PRIVATE}:80", f"connect {NEAR}:80", "lookup meta.test", "lookup near.test"}
    assert {row["rule"] for row in result["denials"]} == {"network: public addresses only"}


def test_N05_a_listed_private_address(near, work):
    """The policy lists it as itself; a pattern, or a name that leads there, is not enough."""
    listed = policy(near, work, f"{{mode: allow, allow: ['{PRIVATE}:80', '*']}}")
    result = near.python(TRY + f"for port in (80, 443): print(word('{PRIVATE}', port), word('private.test', port))",
                         options=[*allow("*", listed)[:-1], "allow"])
    assert result["stdout"].splitlines() == ["echo hello  echo hello ", "reset reset"], result
    refused = near.run(["run", *allow(f"{PRIVATE}:443", listed), "-l", "bash", "-c", ":"])
    assert refused.returncode == 126 and f"does not list '{PRIVATE}:443'" in refused.err


def test_N06_a_name_is_resolved_once(near, internet):
    """The host's resolver would lead to a private address from the second time on."""
    name = f"flip-{near.mode}.test"
    result = near.python(TRY + f"for _ in range(3): print(word('{name}', 80))", options=allow(f"{name}:80"))
    assert result["stdout"].splitlines() == ["echo hello "] * 3, result
    assert internet.names_asked().count(name) == 2  # A and AAAA


def test_N08_datagrams_and_names_lead_nowhere(near, internet):
    before = len(internet.names_asked())
    seen = probe(near, f"""
import socket, struct
out = {{}}
def udp(host, port):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(0.5); s.connect((host, port)); s.send(b'x'); s.send(b'x'); s.recv(1)
for host, port in (('{FAR}', 443), ('{PRIVATE}', 9)): out[host] = attempt(udp, host, port)
out['raw'] = attempt(socket.socket, socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
def ask(server, name, kind):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(3)
    wire = b''.join(bytes([len(l)]) + l for l in name.encode().split(b'.')) + b'\\0'
    s.connect((server, 53)); s.send(b'\\x12\\x34\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0' + wire + struct.pack('>HH', kind, 1))
    reply = s.recv(512); return reply[3] & 15, reply[7]
out['names'] = [ask('127.0.0.1', 'pub.test', 1), ask('8.8.8.8', 'pub.test', 1), ask('127.0.0.1', 'pub.test', 16),
                ask('127.0.0.1', 'secret.evil.test', 1), ask('127.0.0.1', 'secret.evil.test', 16)]
say(out)
""", options=allow("pub.test:80"))
    assert seen[FAR] == "ECONNREFUSED" and seen[PRIVATE] == "ECONNREFUSED" and seen["raw"] != "ok"
    assert seen["names"] == [[0, 1], [0, 1], [0, 0], [3, 0], [3, 0]]
    assert set(internet.names_asked()[before:]) == {"pub.test"}


def test_N09_an_empty_list_permits_nothing(near, work):
    empty = policy(near, work, "{mode: allow, allow: []}")
    result = near.python(TRY + f"print(word('pub.test', 80), word('{FAR}', 80), word('127.0.0.1', 80))\n"
                               "for i in range(100): word(f'{i}.test', 80)", options=[*allow("*", empty)[:-1], "allow"])
    assert result["stdout"] == "no name refused refused\n" and result["network"] == [], result
    assert len(result["denials"]) == 64 and result["denials_omitted"] >= 37
    refused = near.run(["run", *allow("*", empty), "-l", "bash", "-c", ":"])
    assert refused.returncode == 126 and "does not list '*'" in refused.err


@pytest.mark.modes("root")
def test_N10_a_flood_stays_with_its_own_relay(near):
    """10,000 connections, of which 300 are held at once: the relay's memory and descriptors stay bounded, and others are served."""
    flood = near.popen(["run", "--json", *allow("pub.test:80"), "-m", "1g", "-l", "python", "-c", """
import socket, sys
def connect(host='pub.test', port=80):
    s = socket.socket(); s.connect((host, port)); return s
for i in range(9700):
    s = socket.socket(); s.connect_ex(('198.18.200.1', 80)); s.close()
held = [connect() for _ in range(300)]
held[0].sendall(b'held\\n')
print(held[0].recv(99), flush=True)
sys.stdin.readline()
[s.close() for s in held]
print(connect().getpeername()[1])
"""])
    most = {"fds": 0, "kib": 0}
    other = []
    end = time.monotonic() + 20
    while not other and time.monotonic() < end:
        for pid in relays():
            most["fds"] = max(most["fds"], files_of(pid))
            with contextlib.suppress(OSError, IndexError):  # it ends
                most["kib"] = max(most["kib"], int(oracle.read(f"/proc/{pid}/status").split("VmRSS:")[1].split()[0]))
        if most["fds"] > 120:
            other = [near.python(TRY + "print(word('pub.test', 80))", options=allow("pub.test:80"))["stdout"]]
    out, err = flood.communicate(b"\n", timeout=30)
    assert other == ["echo hello \n"], (most, err, out)
    assert most["fds"] < 160 and most["kib"] < 24 << 10, most
    assert json.loads(out)["stdout"] == "b'echo held '\n80\n", (out, err)


def test_N10_clients_and_servers_that_stall_or_vanish(near, internet):
    """A program that never reads, one that ends in the middle, and a server that says nothing."""
    broken = internet.broken()
    result = near.python("""
import socket, os
def connect():
    s = socket.create_connection(('pub.test', 80), 5); s.settimeout(5); return s
slow, silent = connect(), connect()
slow.sendall(b'get 100000000\\n')
silent.sendall(b'hold\\n')
quick = connect(); quick.sendall(b'quick\\n'); print(quick.recv(99), flush=True)
os.kill(os.getpid(), 9)
""", options=allow("pub.test:80"))
    assert "echo quick" in result["stdout"] and result["exit_code"] == 137
    end = time.monotonic() + 10
    while internet.broken() == broken:
        assert time.monotonic() < end, "the server of the stalled download still sends"
        time.sleep(0.05)
    assert 0 < result["network"][0]["received"] < 32 << 20


def test_N10_bytes_have_a_budget(near, work):
    bounded = policy(near, work, "{mode: allow, allow: ['*'], bytes: 256k}")
    result = near.python("""
import socket
def get(n):
    got = 0
    try:
        s = socket.create_connection(('pub.test', 80), 5); s.sendall(b'get %d\\n' % n)
        while chunk := s.recv(1 << 16): got += len(chunk)
        return got
    except ConnectionResetError: return 'reset'
print(get(1000), get(10000000), get(1000))
""", options=allow("*", bounded))
    assert result["stdout"] == "1004 reset reset\n", result
    assert result["denials"][0]["rule"] == "network.bytes of the policy"
    assert result["network"][0]["sent"] + result["network"][0]["received"] == 256 << 10


def test_N10_bytes_of_broken_connections_count(near, work):
    """What is sent just before a reset reaches the server: it must not be free."""
    bounded = policy(near, work, "{mode: allow, allow: ['*'], bytes: 256k}")
    result = near.python("""
import socket, struct
def send():
    s = socket.create_connection(('pub.test', 80), 5)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
    s.setblocking(False)
    s.send(b'sink\\n' + bytes(60000))
    s.close()
for _ in range(30):
    try: send()
    except OSError: break
""", options=allow("*", bounded))
    assert result["status"] == "success" and result["denials"][0]["rule"] == "network.bytes of the policy", result
    assert result["network"][0]["sent"] == 256 << 10


def test_N08_questions_to_the_resolver_are_bounded(near, internet):
    """Each question tells a name to others, with or without an answer: beyond the bound none is asked."""
    before = len(internet.names_asked())
    result = near.python("""
import socket
codes = {}
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(9)
s.connect(('127.0.0.1', 53))
for i in range(1100):
    name = b'n%d' % i
    s.send(b'\\x12\\x34\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0' + bytes([len(name)]) + name + b'\\4test\\0\\0\\1\\0\\1')
    code = s.recv(512)[3] & 15
    codes[code] = codes.get(code, 0) + 1
print(codes)
""", options=allow("*"))
    assert result["stdout"] == "{3: 1024, 2: 76}\n", result
    assert len(set(internet.names_asked()[before:])) == 1024


def test_N12_listeners_of_other_sandboxes(near):
    """Also at a port that both have, and at the address that stands for names."""
    with near.popen(["run", *allow("*"), "-l", "python", "-c", """
import socket
socket.create_server(('', 5001)); socket.create_server(('127.0.0.1', 5002)); print('on', flush=True); input()"""]) as first:
        assert first.stdout.readline() == b"on\n"
        result = near.python(TRY + "print([word(h, p) for h in ('127.0.0.1', '198.18.0.1', '198.18.1.0') for p in (5001, 5002)])",
                             options=allow("*"))
        first.communicate(b"\n")
    assert result["stdout"] == str(["refused"] * 6) + "\n"


def test_bytes_arrive_in_both_directions(near):
    result = near.python("""
import socket, hashlib
s = socket.create_connection(('pub.test', 80)); s.sendall(b'get 3000000\\n'); got = s.makefile('rb').read()
print(len(got), got == (bytes(range(251)) * 20000)[:len(got)])
s = socket.create_connection(('pub.test', 80)); s.sendall(b'sink\\n' + b'x' * 3000000); s.shutdown(socket.SHUT_WR); print(s.makefile().read())
""", options=allow("pub.test:80"))
    assert result["stdout"].split() == ["3000203", "True", "3000000"], result
    assert result["network"][0]["sent"] == 3000017 and result["network"][0]["received"] == 3000211


def test_a_killed_relay_breaks_connections_only(near):
    """The program sees a reset, then refusals; its result comes, and the next run is as ever."""
    child = near.popen(["run", "--json", *allow("pub.test:80"), "-l", "python", "-c", TRY + """
s = socket.create_connection(('pub.test', 80)); s.sendall(b'hold\\n'); print('held', flush=True)
try: print(s.recv(1))
except ConnectionResetError: print('reset')
print(word('198.18.1.0', 80))
"""])
    end = time.monotonic() + 20
    while sum(files_of(pid) for pid in relays()) < 7:  # an inner and an outer socket, and five from the beginning on
        assert time.monotonic() < end
        time.sleep(0.02)
    [pid] = relays()
    uid = os.stat(f"/proc/{pid}").st_uid
    status = oracle.read(f"/proc/{pid}/status")
    assert uid == (oracle.NOBODY if near.rootless else uid) and (uid != 0 or "Uid:\t0" not in status)
    assert "CapEff:\t0000000000000000" in status and "Seccomp:\t2" in status and "NoNewPrivs:\t1" in status
    os.kill(int(pid), signal.SIGKILL)
    out, err = child.communicate(timeout=30)
    assert json.loads(out)["stdout"] in ("held\nreset\nrefused\n", "held\nreset\nreset\n"), (out, err)
    assert near.python(TRY + "print(word('pub.test', 80))", options=allow("pub.test:80"))["stdout"] == "echo hello \n"


@contextlib.contextmanager
def served(near, work, *options):
    daemon = Daemon(near, work, *options)
    try:
        with Client(f"unix:{daemon.socket}") as client:
            yield client, LocalWeb(daemon.socket)
    finally:
        daemon.end()


@pytest.mark.modes("root")
def test_a_daemon_permits_what_its_administrator_permits(near, work):
    """The setting network.allow; then PC-Agent-Claw's network_enabled, other languages, stages, and sessions."""
    with served(near, near.mkdir(work / "closed")) as (client, _):
        with pytest.raises(AtollError, match="not allowed by this server: its administrator can set network.allow"):
            client.run("", policy="trusted", network="allow:*")
    with served(near, near.mkdir(work / "open"), "--set", "network.allow=true") as (client, web):
        sandbox = CodeSandbox(client=client)
        assert sandbox.execute(TRY + "print(word('pub.test', 80))", "python", network_enabled=True).stdout == "echo hello \n"
        assert sandbox.execute(TRY + "print(word('pub.test', 80))", "python").stdout == "no name\n"
        contract.learn(web)
        body = {"language": "python", "code": TRY + "word('pub.test', 80), word('other.test', 80)", "policy": "trusted", "network": "allow:pub.test"}
        result = web.post("/v1/execute", body).json()
        assert len(result["network"]) == 1 and len(result["denials"]) == 1, result
        fetch = "fetch('http://pub.test/').then(r => r.text()).then(t => console.log(t))"
        assert client.run(fetch, language="javascript", policy="trusted", network="allow:pub.test").stdout == "hi\n\n"
        with Sandbox(client=client, policy="trusted", network="allow:pub.test:80") as session:
            assert session.run(TRY + "word('pub.test', 80)").value == "echo hello "
            assert session.run("word('pub.test', 443)").value in ("refused", "reset")
            with pytest.raises(AtollError, match="cannot be forked"):
                session.fork(1)
            session.reset()
            assert session.run(TRY + "word('pub.test', 80)").value == "echo hello "


@pytest.mark.parametrize("destinations, policy_name, words", [
    ("pub.test:80", "default", "network: 'allow:pub.test:80' is not allowed by this policy; name one that allows it, such as "
                               "network-allowlist or trusted"),
    ("pub.test:443", "network-allowlist", "policy 'network-allowlist' does not list 'pub.test:443'"),
    ("*", "network-allowlist", "does not list '*'"),
    ("127.0.0.1:80", "trusted", "does not list '127.0.0.1:80'"),
    ("127.1", "trusted", "'127.1' is no HOST"),
    ("a,,b", "trusted", "'' is no HOST")])
@pytest.mark.modes("root")
def test_refusals_say_what_permits(atoll, destinations, policy_name, words):
    done = atoll.run(["run", *allow(destinations, policy_name), "-l", "bash", "-c", ":"])
    assert done.returncode in (125, 126) and words in done.err, done
