# SPDX-License-Identifier: Apache-2.0
"""The daemon's own processes, as an attacker would find them who has taken one over: what each may call, hold and see. What happens
to one that tries more is tried by src/box/confine/test-confine.c and src/engine/test-unpack.c, which enter the same roles."""
import base64
import io
import os
import re
import signal
import stat
import tarfile
import time
from pathlib import Path

import pytest

from program import FRONT, Atoll
from siege import Siege
from web import SANITIZED

pytestmark = pytest.mark.cold("the daemon keeps its own cells warm")

# What a front may find at the top, besides the way to its state directory and its data.
TOP = {"bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "opt", "proc", "sbin", "usr"}
# Capabilities that no process of ours has: modules, raw I/O, boot, time, raw sockets, kernel log, bpf, perf, MAC.
NEVER = [16, 17, 22, 25, 13, 34, 39, 38, 32, 33]


@pytest.fixture(scope="module")
def siege(mode, stage):
    made = Siege(Atoll(mode, stage), stage.scratch(mode, "confined"))
    yield made
    made.end()


def status(pid):
    text = Path(f"/proc/{pid}/status").read_text()
    return dict(re.findall(r"^(\w+):\s*(.*)$", text, re.M))


def children(pid):
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def archive(name, text):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as tar:
        info = tarfile.TarInfo(name)
        info.size = len(text)
        tar.addfile(info, io.BytesIO(text))
    return base64.b64encode(data.getvalue()).decode()


def test_each_process_has_its_filter(siege, mode):
    front, broker = siege.front, siege.daemon.child("broker")
    unpacker, = children(front)
    for pid in (front, broker, unpacker):
        found = status(pid)
        assert (found["Seccomp"], found["NoNewPrivs"]) == ("2", "1"), (pid, found)
    for pid in (front, unpacker):
        assert int(status(pid)["CapEff"], 16) == int(status(pid)["CapPrm"], 16) == 0
    if mode == "root":
        for kind in ("CapEff", "CapPrm", "CapBnd", "CapAmb"):
            caps = int(status(broker)[kind], 16)
            assert not [cap for cap in NEVER if caps >> cap & 1], f"{kind}: {caps:x}"
    # Non-dumpable: its files in /proc are root's, though its user is another.
    assert os.stat(f"/proc/{front}/environ").st_uid == 0 or SANITIZED


def test_the_front_sees_little(siege, mode):
    front = siege.front
    root, outside = Path(f"/proc/{front}/root"), Path("/proc/self/ns/mnt")
    if mode != "root":
        assert siege.alice.execute("bash", ":")["isolation"]["front"] == "partly"
        return
    assert os.readlink(f"/proc/{front}/ns/mnt") != os.readlink(outside)
    ways = {Path(p).parts[1] for p in (siege.daemon.state, FRONT, os.environ.get("ATOLL_DATA_DIR", "/usr"), __file__, "/var")}
    assert {p.name for p in root.iterdir()} <= TOP | ways
    for path in ("etc/shadow", "etc/passwd", "etc/ssh", "root", "home", "run", "sys", "proc/1", "proc/sys", "var/lib", "var/log", "boot"):
        if Path("/", path) not in [*siege.daemon.state.parents, siege.daemon.state]:
            assert not (root / path).exists(), path
    assert {p.name for p in (root / "proc").iterdir()} == {"self"}
    assert {p.name for p in (root / "dev").iterdir()} == {"null", "urandom"}
    mounts = dict(re.findall(r"^(\d+) (.*)$", Path(f"/proc/{front}/mountinfo").read_text(), re.M))
    writable = [line.split()[3] for line in mounts.values() if line.split()[4].split(",")[0] == "rw"]
    assert [Path(p) for p in writable] == [siege.daemon.state.resolve()]
    # No descriptor of a directory leads out of its root.
    for fd in os.listdir(f"/proc/{front}/fd"):
        if stat.S_ISDIR(os.stat(f"/proc/{front}/fd/{fd}").st_mode):
            mount = re.search(r"mnt_id:\s*(\d+)", Path(f"/proc/{front}/fdinfo/{fd}").read_text())[1]
            assert mount in mounts, (fd, os.readlink(f"/proc/{front}/fd/{fd}"))


def test_it_is_told(siege, mode):
    result = siege.alice.execute("bash", ":")
    assert result["isolation"]["broker"] == "confined"
    assert result["isolation"]["front"] == ("confined" if mode == "root" else "partly")
    assert ("front" in result["isolation"]["missing"]) == (mode != "root")
    checks = {c["name"]: c for section in siege.alice.get("/v1/doctor").json()["sections"] for c in section["checks"]}
    assert checks["broker"]["verdict"] == "ok"
    assert checks["front"]["verdict"] == ("ok" if mode == "root" else "missing")


def test_without_an_unpacker_the_front_starts_again(siege):
    front = siege.front
    unpacker, = children(front)
    os.kill(unpacker, signal.SIGKILL)
    siege.daemon.wait_record("a process died and is started again", process="front", pid=front)
    end = time.monotonic() + 60
    while siege.front == front or siege.nobody.get("/readyz").status != 200:
        assert time.monotonic() < end
        time.sleep(0.02)
    result = siege.alice.post("/v1/execute", {"language": "bash", "entry": "a.sh", "archive": archive("a.sh", b"echo packed")}).json()
    assert result["stdout"] == "packed\n"
