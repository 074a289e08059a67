# SPDX-License-Identifier: Apache-2.0
"""The leak oracle: what of the product is on this machine right now, and what stayed that was not there before.

Looks at cgroups, mounts, processes, files, sockets and IPC. `./dev test` gives each session, and as root each of its test
processes, a room of its own on the machine (tools/room), in which another Atoll's things are not seen; without one, another Atoll
that runs at the same time is taken for a leak. Tests of the same session in other processes are waited for before anything is
called a leak (turns.py).
"""

import contextlib
import os
import re
import signal
import subprocess
import time
import warnings
from pathlib import Path

import turns

NOBODY = 65533  # the unprivileged user of rootless mode; owns nothing else on the machine
SANDBOX_UIDS = range(0x70000000, 0x80000000)
PYTHON = "/usr/bin/python3"
KERNEL = "2"  # the parent of its threads
IS_ROOT = os.geteuid() == 0


def read(path):
    """What a small file of the kernel's says. Around each test there are hundreds of them: pathlib would take most of its time."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, 1 << 16).decode("utf-8", "replace")
    finally:
        os.close(fd)


def cgroups_of(pid):
    """Hierarchy -> path of a process's group there ("" is that of cgroup v2); nothing when the process is gone."""
    try:
        lines = [line.split(":", 2) for line in read(f"/proc/{pid}/cgroup").splitlines()]
    except OSError:
        return {}
    return {name: path.rstrip("/") for _, names, path in lines for name in names.split(",")}


OWN_GROUPS = cgroups_of("self")
HIERARCHIES = [top for name, path in OWN_GROUPS.items()  # in which sandboxes have groups, from where ours begin
               if name in ("", "pids", "memory", "cpu", "cpuacct")
               and os.path.exists((top := f"/sys/fs/cgroup/{name}".rstrip("/") + path) + "/cgroup.procs")]
OURS = OWN_GROUPS.get("memory", "") + "/"


def walk_cgroups(top):
    """(path, name) of every directory. One that has none inside has two links: its many files need not be looked at."""
    with contextlib.suppress(OSError):  # gone meanwhile
        if os.lstat(top).st_nlink == 2:
            return
        with os.scandir(top) as entries:
            names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        for name in names:
            path = f"{top}/{name}"
            yield path, name
            yield from walk_cgroups(path)


def list_cgroups():
    """Every group that is the product's and ours."""
    return {path for top in HIERARCHIES for path, name in walk_cgroups(top)
            if "atoll" in path[len(top):] or (name.isdigit() and int(name) in SANDBOX_UIDS)}


def list_empty_cgroups():
    """Those without a process, also below them: list_processes() finds what still runs."""
    empty = list_cgroups()
    for group in list(empty):
        try:
            is_alive = read(f"{group}/cgroup.procs") != ""
        except OSError:
            is_alive = True  # gone meanwhile
        while is_alive and group:  # so are those above it
            empty.discard(group)
            group = group.rpartition("/")[0]
    return empty and empty - held_by_pools(empty)


HOLDERS = {}  # of groups: the descriptor that had it when they were looked at last


def link(path):
    try:
        return os.readlink(path)
    except OSError:  # a process may end meanwhile, or close a descriptor
        return None


def names(path):
    """It and the directory it is in; of nothing nothing."""
    return (path, os.path.dirname(path)) if path else ()


def list_holders():
    """The processes that may hold a group: all of them, those first that had one at the last look."""
    last = dict.fromkeys(path.split("/")[2] for path in HOLDERS.values())
    yield from last
    yield from (entry for entry in os.listdir("/proc") if entry.isdigit() and entry not in last)


def held_by_pools(groups):
    """Those that a living pool keeps for its next sandbox: it holds files of theirs, or their directories (cgroup v2)."""
    held = {g: HOLDERS[g] for g in groups if g in HOLDERS and g in names(link(HOLDERS[g]))}
    for entry in list_holders():
        if len(held) == len(groups):
            break
        if not re.search(r"atoll (pool|serve)\b", command_line(entry)):
            continue
        with contextlib.suppress(OSError):
            for fd in os.listdir(f"/proc/{entry}/fd"):
                path = f"/proc/{entry}/fd/{fd}"
                held.update((group, path) for group in names(link(path)) if group in groups)
    HOLDERS.clear()
    HOLDERS.update(held)
    return set(held)


def list_mounts():
    return set(Path("/proc/self/mountinfo").read_text().splitlines())


def find_reapers():
    """Who orphans are given to: pid 1, and a subreaper above us if there is one."""
    script = ("import os\nr, w = os.pipe()\n"
              "if os.fork() == 0:\n    os.close(w); os.read(r, 1); print(os.getppid(), flush=True)\n")
    out = subprocess.run([PYTHON, "-c", script], capture_output=True, text=True, timeout=60).stdout
    return {1} | {int(word) for word in out.split()}


REAPERS = find_reapers()
KEPT = set()  # pids of pools that a whole session uses: what lives below them is meant to stay


def parents():
    """pid -> (parent, state) of everything that runs."""
    table = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                text = read(f"/proc/{entry}/stat")
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
        return len(re.search(r"^NSpid:(.*)$", read(f"/proc/{pid}/status"), re.M)[1].split()) > 1
    except OSError:
        return True


def command_line(pid):
    try:
        return read(f"/proc/{pid}/cmdline").replace("\0", " ").strip()
    except OSError:
        return ""


def who_runs(mark):
    """Sandboxed processes with this word on their command line."""
    return {pid for pid, (_, state) in parents().items() if state != "Z" and mark in command_line(pid) and has_own_pids(pid)}


def wake(mark):
    """Ends the naps of a sandboxed script, `sleep` with this word, so that it goes on: by a signal that a shell says nothing of."""
    end = time.monotonic() + 25
    # Not a clone that is still called as its front is: it becomes an init, which this signal does nothing to.
    while not (found := {pid for pid in who_runs(mark) if command_line(pid).startswith("sleep ")}):
        assert time.monotonic() < end, f"no process sleeps {mark}"
        time.sleep(0.01)
    for pid in found:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGPIPE)


THREADS = set()  # the kernel's, by number and inode: most of what runs here


def list_pids():
    """(number, inode) of everything that runs. Who comes after a dead process has its number but not its inode."""
    with os.scandir("/proc") as entries:
        return [(entry.name, entry.inode()) for entry in entries if entry.name.isdigit()]


def word_of(status, key):
    """What stands behind the key, in a process's status."""
    return status[status.index(key) + len(key):].split(None, 1)[0]


def hangs_below(pid, tops, above):
    """Whether it, or a process it hangs below, is one of these."""
    while pid in above and pid not in tops:
        pid = above[pid]
    return pid in above


def tell_apart(pid, uid):
    """What no other process is called, before or after it."""
    text = read(f"/proc/{pid}/stat")
    end = text.rindex(")") + 1
    return f"pid {pid} {text[text.index('('):end]} uid {uid} started {text[end:].split()[19]}"


def list_processes():
    """The product's processes that are ours or orphans: by its name, a sandbox's uid, or the rootless user's.

    One that hangs below another living process (another run of this suite, a developer's shell)
    is theirs.
    """
    above, suspects = {}, {}
    for entry, inode in list_pids():
        if (entry, inode) in THREADS:
            continue
        try:
            status = read(f"/proc/{entry}/status")
        except OSError:
            continue
        parent = word_of(status, "\nPPid:\t")
        if parent == KERNEL:
            THREADS.add((entry, inode))
            continue
        if word_of(status, "\nState:\t") == "Z" and int(parent) in REAPERS:
            continue  # dead, and that it is still listed is the reaper's slowness
        pid, uid = int(entry), int(word_of(status, "\nUid:\t"))
        above[pid] = int(parent)
        if uid in SANDBOX_UIDS or (uid == NOBODY and IS_ROOT) or status.startswith("Name:\tatoll"):
            suspects[pid] = uid
    # What is below a pool that is kept is most of it, and needs no further look.
    for pid in [pid for pid in suspects if hangs_below(pid, KEPT, above)]:
        del suspects[pid]
    suspects = {pid: uid for pid, uid in suspects.items() if f"{cgroups_of(pid).get('memory', '')}/".startswith(OURS)}
    found = set()
    for pid, uid in suspects.items():
        top = above[pid]
        while top in suspects:
            top = above[top]
        if top in REAPERS or top == os.getpid() or top not in above:
            with contextlib.suppress(OSError):  # it has ended
                found.add(tell_apart(pid, uid))
    return found


def is_of_the_product(entry):
    """By its name; or by its owner, if only sandboxes and the product are that user."""
    if "atoll" in entry.name:
        return True
    return IS_ROOT and not entry.name.startswith("tests-") and (
        (uid := entry.stat(follow_symlinks=False).st_uid) == NOBODY or uid in SANDBOX_UIDS)


def list_files():
    found = set()
    for place in ("/tmp", "/var/tmp", "/run", "/dev/shm"):
        with contextlib.suppress(OSError), os.scandir(place) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):  # gone meanwhile
                    if is_of_the_product(entry):
                        found.add(entry.path)
    return found


def used(paths):
    """Those that a living process has in its command line: it is to remove them."""
    words = {word for pid in os.listdir("/proc") if pid.isdigit() for word in command_line(pid).split()} if paths else set()
    return paths & words


def list_sockets():
    lines = Path("/proc/net/unix").read_text().splitlines()[1:]
    return {line.split(None, 7)[7] for line in lines if "atoll" in line and len(line.split(None, 7)) == 8}


def list_ipc():
    found = set()
    for kind in ("shm", "sem", "msg"):
        for line in Path(f"/proc/sysvipc/{kind}").read_text().splitlines()[1:]:
            found.add(f"{kind} {' '.join(line.split()[:2])}")
    return found


WATCHED = {"cgroup": list_empty_cgroups, "mount": list_mounts, "process": list_processes, "file": list_files,
           "socket": list_sockets, "ipc": list_ipc}


latest = None  # what was there at the last look, if nothing of it was new


def forget():
    """Something begins or ends that is not one test's."""
    global latest
    latest = None


def snapshot():
    """What is there; the last look serves, unless it was forgotten."""
    return latest or {kind: look() for kind, look in WATCHED.items()}


def stays(found, seconds):
    """What of it is still there after so many seconds, looking again and again."""
    deadline = time.monotonic() + seconds
    while any(found.values()) and time.monotonic() < deadline:
        time.sleep(0.02)
        found = {kind: items and items & WATCHED[kind]() for kind, items in found.items()}
        found["file"] = found["file"] - used(found["file"])  # a process that has only begun shows no command line yet
    return found


def leaked_since(before, patience=20.0):
    """What is there now, was not before, and stays for `patience` seconds: a machine with a load of 15 tears down slowly."""
    global latest
    latest = None
    now = snapshot()
    left = {kind: now[kind] - before[kind] for kind in WATCHED}
    excused = used(left["file"])
    left["file"] -= excused
    now["file"] -= excused  # until then it is new
    if not any(left.values()):
        latest = now
        return {}
    left = stays(left, patience)
    if any(left.values()) and turns.held != turns.LOCK_EX:
        warnings.warn(f"waits alone for what may be another test's, or late: {left}", stacklevel=2)
        with turns.alone():  # what is another test's goes with that test
            left = stays(left, patience)
    return {kind: sorted(items) for kind, items in left.items() if items}
