# SPDX-License-Identifier: Apache-2.0
"""No descriptor of a program is a file that the host, or another sandbox, has as well: what one does to it (locks, times, leases,
watches) others would see. All of it is looked at from outside, while two of each kind run at the same time.
"""
import contextlib
import json
import os
from pathlib import Path

import pytest

import oracle
from library import Library
from resident import own, wait_until

pytestmark = [pytest.mark.cold("it has warm programs of its own"),
              pytest.mark.skipif(not oracle.IS_ROOT, reason="looks into other users' processes: needs root")]
quick = pytest.mark.quick

# Each holds a file named up from when it is to be looked at.
WAITS = "import time\nheld = open('/tmp/up', 'w')\ntime.sleep(600)"
BLOCKS = '#include "/proc/self/fd/1"\nint main;'  # the compiler reads its own output, which never ends
SLEEPS = "exec 7> /tmp/up; sleep 600"
COLD = {
    "cold": {"language": "python", "code": WAITS},
    "terminal": {"language": "python", "code": WAITS, "tty": True},
    "first stage": {"stages": [{"name": "a", "code": SLEEPS}]},
    "second stage": {"stages": [{"name": "a", "code": "true"}, {"name": "b", "code": SLEEPS}]},
    "compiler": {"language": "c", "code": BLOCKS},
    "input": {"language": "python", "code": WAITS, "stdin": "given"},
}
WARM = {
    "python3": {"language": "python", "code": WAITS},
    "ruby": {"language": "ruby", "code": "held = File.open('/tmp/up', 'w'); sleep 600"},
    "node": {"language": "javascript", "code": "require('fs').openSync('/tmp/up', 'w'); setTimeout(() => {}, 600000)"},
}
NODES = {(s.st_dev, s.st_ino) for s in map(os.stat, map("/dev/".__add__, ("null", "zero", "full", "random", "urandom", "tty")))}


def descriptors(pid):
    """(device, inode) -> what it is. Not the kernel's inode of all descriptors that have no file (eventfd, epoll, …)."""
    found = {}
    with contextlib.suppress(OSError):  # gone meanwhile
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):  # closed meanwhile
                link, status = os.readlink(f"/proc/{pid}/fd/{fd}"), os.stat(f"/proc/{pid}/fd/{fd}")
                if not link.startswith("anon_inode:"):
                    found[status.st_dev, status.st_ino] = f"{fd} {link}"
    return found


def everything_else(but):
    """What the host has: its devices, and what all processes hold but those."""
    found = {}
    for node in Path("/dev").rglob("*"):
        status = os.lstat(node)
        found[status.st_dev, status.st_ino] = str(node)
    for pid in set(oracle.parents()) - but:
        found.update({key: f"{pid} {oracle.command_line(pid)[:60]}: {what}" for key, what in descriptors(pid).items()})
    return found


def programs(top):
    """Sandbox -> its processes but pid 1, below that process: a program there can reach what they hold."""
    found = {}
    for pid in oracle.below(top):
        try:
            inside = oracle.read(f"/proc/{pid}/status").split("NSpid:")[1].split("\n")[0].split()
            if len(inside) > 1 and inside[-1] != "1":
                found.setdefault(os.readlink(f"/proc/{pid}/ns/pid"), set()).add(pid)
        except (OSError, IndexError):
            pass
    return found


def is_up(pids):
    """Whether its program has got to where it waits; the compiler, which cannot say so, is there."""
    return any("/cc1" in oracle.command_line(pid) or any(what.endswith("/up") for what in descriptors(pid).values()) for pid in pids)


def up(tops):
    """The sandboxes below those processes whose program waits."""
    found = {ns: pids for top in tops for ns, pids in programs(top).items()}
    return {ns: pids for ns, pids in found.items() if is_up(pids)}


def check(boxes, others, what, rootless):
    """Those against the host and against each other. Others: who has the other ends of its pipes and sockets."""
    host, held = everything_else(set().union(*boxes.values()) | others), {}
    for ns, pids in boxes.items():
        for pid in pids:
            for key, link in descriptors(pid).items():
                # Without privilege the nodes of /dev are the host's, and a program may open them by itself.
                if rootless and key in NODES and link.split()[0] not in "012":
                    continue
                assert key not in host, (what, oracle.command_line(pid), link, host[key])
                assert held.setdefault(key, ns) == ns, (what, oracle.command_line(pid), link, "another sandbox has it")


class Waiting(Library):
    """A request through libatoll, which gives no input where there is none; its answer does not come."""

    def __init__(self, front, request):
        super().__init__(front)
        self.popen.stdin.write(json.dumps({"op": "run", "request": json.dumps(request | {"limits": {"timeout": 120}})}).encode() + b"\n")
        self.popen.stdin.flush()
        self.pid = self.popen.pid

    def end(self):
        self.popen.kill()
        self.close()


@quick
def test_descriptors_of_cold_programs(atoll):
    for what, request in COLD.items():
        runs = [Waiting(atoll, request) for _ in range(2)]
        try:
            tops = {run.pid for run in runs}
            wait_until(lambda: len(up(tops)) == 2, 25, what)
            # A broker is the front's own fork, and not pid 1 of a namespace.
            brokers = {pid for top in tops for pid in oracle.below(top) if not oracle.has_own_pids(pid)}
            check(up(tops), tops | brokers, what, atoll.rootless)
        finally:
            for run in runs:
                run.end()


def test_descriptors_of_warm_programs(own):
    pool = own("--spares", "2")
    front = pool.any_front()
    for what, request in WARM.items():
        if not Path(f"/usr/bin/{what}").exists():
            continue
        runs = []
        try:
            while sum(is_warm(pids) for pids in up({pool.pid}).values()) < 2:
                runs.append(Waiting(front, request))
                wait_until(lambda: len(up({pool.pid})) == len(runs), 60, what)
                assert len(runs) < 8, f"{what} does not get warm"
                wait_until(lambda: len(programs(pool.pid)) > len(runs), 60, f"no {what} waits")
            check(up({pool.pid}), {pool.pid} | {run.pid for run in runs}, what, front.rootless)
        finally:
            for run in runs:
                run.end()
            wait_until(lambda: not up({pool.pid}))


def is_warm(pids):
    return any(os.path.lexists(f"/proc/{pid}/fd/100") for pid in pids)


EMPTY = """
import os, select, stat
os.path.exists('/proc/self/fd/100') and os.write(2, b'warm')
print(os.read(0, 10), os.isatty(0), select.select([0], [], [], 0)[0], open('/dev/stdin').read() == '', os.lseek(0, 0, 1), flush=True)
for call in (lambda: os.write(0, b'x'), lambda: os.truncate(0, 5)):
    try: print(call())
    except OSError: print('refused')
print(stat.S_ISCHR(os.fstat(0).st_mode), os.fstat(0).st_rdev == os.stat('/dev/null').st_rdev, oct(os.fstat(0).st_mode))
"""


@quick
def test_nothing_to_read(mode, atoll, residents):
    """Without input a program reads an end, cold and warm alike: the null device where the sandbox has one of its own, else an empty file."""
    front, seen = residents.front(mode), {}
    front.until_warm()
    libraries = Library(atoll), Library(front)
    try:
        for _ in range(200):
            for library in libraries:
                result = library.run({"language": "python", "code": EMPTY})[1]
                seen[result["stderr"]] = result["stdout"].splitlines()
            if "warm" in seen:
                break
    finally:
        for library in libraries:
            library.close()
    assert set(seen) == {"", "warm"} and seen[""] == seen["warm"], seen
    assert seen[""][:3] == ["b'' False [0] True 0", "refused", "refused"], seen
    assert seen[""][3].startswith("True True 0o20" if mode == "root" else "False False 0o100"), seen
