# SPDX-License-Identifier: Apache-2.0
"""Memory of processes, by the sandbox they are in, and of the kernel; CPU time and page faults."""

import os
import pathlib
import time

KIB = 1024
CGROUPS = "/sys/fs/cgroup"
# What a sandbox makes the kernel keep. Stacks are part of VmallocUsed where the kernel maps them (6.18 does).
KERNEL_FIELDS = ("Slab", "PageTables", "Percpu", "VmallocUsed")


def fields(text):
    """{"Pss": bytes, …} of a file like /proc/meminfo or smaps_rollup."""
    found = {}
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        words = rest.split()
        if len(words) == 2 and words[1] == "kB":
            found[name] = int(words[0]) * KIB
    return found


def kernel():
    """{"Slab": bytes, …}: everything a sandbox could have made it grow."""
    info = fields(pathlib.Path("/proc/meminfo").read_text())
    return {name: info.get(name, 0) for name in KERNEL_FIELDS}


def kernel_settled():
    """The same without what the kernel would give back at once: names and inodes of what has ended."""
    try:
        pathlib.Path("/proc/sys/vm/drop_caches").write_text("2\n")
    except OSError:
        pass
    time.sleep(1)
    return kernel()


def parents():
    """{pid: parent's pid} of all processes."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = pathlib.Path(f"/proc/{entry}/stat").read_text()
            except OSError:
                continue
            found[int(entry)] = int(stat.rpartition(")")[2].split()[1])
    return found


def descendants(*roots):
    """Pids below (and with) the given ones."""
    table, found = parents(), set(roots)
    for pid in table:
        chain, current = [], pid
        while current and current not in found:
            chain.append(current)
            current = table.get(current, 0)
        if current in found:
            found.update(chain)
    return found


def spent():
    """
    (seconds of CPU, page faults) of our cgroup with all below it, which is where the broker puts sandboxes. Process trees would not do:
    what a pid namespace kills when it ends is charged to no parent.
    """
    paths = {name: path for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines()
             for _, names, path in [line.split(":", 2)] for name in names.split(",")}
    if "cpuacct" in paths:
        seconds = int(pathlib.Path(f"{CGROUPS}/cpuacct{paths['cpuacct']}/cpuacct.usage").read_text()) / 1e9
        stat, key = f"{CGROUPS}/memory{paths['memory']}/memory.stat", "total_pgfault"
    else:
        used = dict(line.split() for line in pathlib.Path(f"{CGROUPS}{paths['']}/cpu.stat").read_text().splitlines())
        seconds = int(used["usage_usec"]) / 1e6
        stat, key = f"{CGROUPS}{paths['']}/memory.stat", "pgfault"
    return seconds, int(dict(line.split() for line in pathlib.Path(stat).read_text().splitlines())[key])


def of_process(pid):
    rollup = fields(pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text())
    return {"private_dirty": rollup.get("Private_Dirty", 0), "pss": rollup.get("Pss", 0)}


def total(pids):
    """Sum over processes; those that have just ended count nothing."""
    sums = {"private_dirty": 0, "pss": 0}
    for pid in pids:
        try:
            one = of_process(pid)
        except OSError:
            continue
        for name in sums:
            sums[name] += one[name]
    return sums


def cells(root, marker=""):
    """
    [[pid, …], …]: processes below root by the pid namespace they are in, root's own left out. With a marker only
    sandboxes with a process that has a file of such a name mapped.
    """
    home, found = os.readlink(f"/proc/{root}/ns/pid"), {}
    marked = set()
    for pid in descendants(root):
        try:
            space = os.readlink(f"/proc/{pid}/ns/pid")
            if space == home:
                continue
            found.setdefault(space, []).append(pid)
            if marker and marker in pathlib.Path(f"/proc/{pid}/maps").read_text():
                marked.add(space)
        except OSError:
            continue
    return [pids for space, pids in found.items() if not marker or space in marked]
