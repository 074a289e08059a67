# SPDX-License-Identifier: Apache-2.0
"""The leak oracle: what of the product is on this machine right now, and what stayed that was not there before.

Looks at cgroups, mounts, processes, files, sockets and IPC. What others leave who test here at the same time
is told apart where it can be; ATOLL_NEIGHBOURS=1 says that there are such others.
"""

import os
import re
import subprocess
import time
from pathlib import Path

NOBODY = 65533  # the unprivileged user of rootless mode; owns nothing else on the machine
SANDBOX_UIDS = range(0x70000000, 0x80000000)
PYTHON = "/usr/bin/python3"
IS_ROOT = os.geteuid() == 0


def memory_cgroup(pid):
    """Where a process is accounted. Others who test on this machine at the same time are elsewhere, if anywhere."""
    try:
        lines = [line.split(":", 2) for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines()]
    except OSError:
        return ""
    return next((path for _, names, path in lines if "memory" in names.split(",")), "/").rstrip("/") + "/"


OURS = memory_cgroup("self")
NEIGHBOURS = "ATOLL_NEIGHBOURS" in os.environ  # others test here right now: ignore what may be theirs


def list_cgroups():
    """Every group that is the product's and ours."""
    found, foreign = set(), set()
    for top, names, _ in os.walk("/sys/fs/cgroup"):
        for name in names:
            path = os.path.join(top, name)
            if "atoll" not in path and not (name.isdigit() and int(name) in SANDBOX_UIDS):
                continue
            if path.startswith("/sys/fs/cgroup/memory/") and not path.startswith("/sys/fs/cgroup/memory" + OURS):
                foreign.add(name)
            else:
                found.add(path)
    if NEIGHBOURS:
        own = {path.rsplit("/", 1)[1] for path in found if path.startswith("/sys/fs/cgroup/memory/")}
        return {path for path in found if own & set(path.split("/"))}
    return {path for path in found if not foreign & set(path.split("/"))}


def list_empty_cgroups():
    """Those that nobody lives in, nor below: what still runs is list_processes' business."""
    groups = list_cgroups()
    alive = set()
    for group in groups:
        try:
            if Path(group, "cgroup.procs").read_text():
                alive.add(group)
        except OSError:
            alive.add(group)  # gone meanwhile
    return {g for g in groups if not any(a == g or a.startswith(g + "/") for a in alive)} - held_by_pools()


def held_by_pools():
    """Groups that a living pool keeps for its next sandbox: it holds their directories."""
    held = set()
    for entry in os.listdir("/proc"):
        if entry.isdigit() and re.search(r"atoll pool\b", command_line(entry)):
            try:
                held |= {os.readlink(f"/proc/{entry}/fd/{fd}") for fd in os.listdir(f"/proc/{entry}/fd")}
            except OSError:
                continue  # ended meanwhile
    return held


def list_mounts():
    return set(Path("/proc/self/mountinfo").read_text().splitlines())


def find_reapers():
    """Who orphans are given to: pid 1, and a subreaper above us if there is one."""
    script = ("import os\nr, w = os.pipe()\n"
              "if os.fork() == 0:\n    os.close(w); os.read(r, 1); print(os.getppid(), flush=True)\n")
    out = subprocess.run([PYTHON, "-c", script], capture_output=True, text=True, timeout=10).stdout
    return {1} | {int(word) for word in out.split()}


REAPERS = find_reapers()
KEPT = set()  # pids of pools that a whole session uses: what lives below them is meant to stay


def parents():
    """pid -> (parent, state) of everything that runs."""
    table = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                text = Path(f"/proc/{entry}/stat").read_text()
            except OSError:
                continue
            rest = text[text.rindex(")") + 2:].split()
            table[int(entry)] = (int(rest[1]), rest[0])
    return table


def below(pid):
    """Every living process that hangs below this one."""
    table, found = parents(), {pid}
    grown = True
    while grown:
        more = {p for p, (above, state) in table.items() if above in found and state != "Z"} - found
        found |= more
        grown = bool(more)
    return found - {pid}


def has_own_pids(pid):
    """Whether it lives in a pid namespace below ours; True as well when it is gone."""
    try:
        return len(re.search(r"^NSpid:(.*)$", Path(f"/proc/{pid}/status").read_text(), re.M)[1].split()) > 1
    except OSError:
        return True


def command_line(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except OSError:
        return ""


def list_processes():
    """The product's processes that are ours or nobody's: its name, a sandbox's uid, or the rootless user's.

    One that hangs below somebody else's living process (another run of this suite, a developer's shell)
    is theirs.
    """
    table, suspects = {}, set()
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            status = Path(f"/proc/{entry}/status").read_text()
            stat = Path(f"/proc/{entry}/stat").read_text()
        except OSError:
            continue
        pid, rest = int(entry), stat[stat.rindex(")") + 2:].split()
        if rest[0] == "Z" and int(rest[1]) in REAPERS:
            continue  # dead; that it is still listed is the reaper's slowness
        uid = int(re.search(r"^Uid:\s+(\d+)", status, re.M)[1])
        name = stat[stat.index("(") + 1:stat.rindex(")")]
        table[pid] = (int(rest[1]), f"pid {pid} ({name}) uid {uid} started {rest[19]}")
        if (uid in SANDBOX_UIDS or (uid == NOBODY and IS_ROOT) or name.startswith("atoll")) and \
                memory_cgroup(pid).startswith(OURS):
            suspects.add(pid)
    found = set()
    for pid in suspects:
        above, kept = table[pid][0], pid in KEPT
        while above in suspects:
            kept |= above in KEPT
            above = table[above][0]
        if kept:
            continue
        if above in REAPERS or above == os.getpid() or above not in table:
            found.add(table[pid][1])
    return found


def list_files():
    found = set()
    for place in ("/tmp", "/var/tmp", "/run", "/dev/shm"):
        try:
            found.update(os.path.join(place, n) for n in os.listdir(place) if "atoll" in n)
        except OSError:
            pass
    return found


def list_sockets():
    lines = Path("/proc/net/unix").read_text().splitlines()[1:]
    return {line.split(None, 7)[7] for line in lines if len(line.split(None, 7)) == 8 and "atoll" in line}


def list_ipc():
    found = set()
    for kind in ("shm", "sem", "msg"):
        for line in Path(f"/proc/sysvipc/{kind}").read_text().splitlines()[1:]:
            found.add(f"{kind} {' '.join(line.split()[:2])}")
    return found


WATCHED = {"cgroup": list_empty_cgroups, "mount": list_mounts, "process": list_processes, "file": list_files,
           "socket": list_sockets, "ipc": list_ipc}


def snapshot():
    return {kind: look() for kind, look in WATCHED.items()}


def leaked_since(before, patience=2.0):
    """What is there now, was not before, and stays for `patience` seconds."""
    deadline = time.monotonic() + patience
    left = None
    while True:
        now = snapshot()
        fresh = {kind: now[kind] - before[kind] for kind in WATCHED}
        left = fresh if left is None else {kind: left[kind] & fresh[kind] for kind in WATCHED}
        found = {kind: sorted(items) for kind, items in left.items() if items}
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.05)
