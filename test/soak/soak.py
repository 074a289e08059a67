#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The daemon for a long time under good work, hostile work, and kill -9 of its processes: what must hold at every instant.

    ./dev soak [--seconds 1200] [--kills 200] [--mode root|rootless] [--seed N]

Two parts: 40 % of the time nothing is killed, and what the daemon holds at rest must not grow; then the kills, with every
promise of test/lib/chaos.py. Watched once a second, and compared from before the first start to after the end:

    I1  processes: none outlives its parent by two seconds; at rest there are zygotes, and two processes a waiting sandbox
    I2  control groups: bounded; at the end as before       I3  the host's mounts: never change
    I4  open files of monitor, broker and front, by kind     I5  their memory
    I6  the state directory: every file is an execution's, its bytes in bounds; nothing in /tmp, /run, /dev/shm
    I7  network interfaces and namespaces of the host        I8  IPC objects
    I9  open files, inodes and slab of the kernel
    I10 one result for all that was accepted, begun once     I11 canaries, programs, data and /etc: untouched
    I12 no internal_error, and nothing else undisturbed      I13 latency: health answers at once, p99 of good work
"""
import argparse
import copy
import hashlib
import os
import random
import sys
import threading
import time
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "lib")]

import busy  # noqa: E402
import chaos  # noqa: E402
import hostile  # noqa: E402
import oracle  # noqa: E402
from canary import Canary  # noqa: E402
from program import MODES, Atoll, Stage  # noqa: E402

STEADY_SHARE, HOSTILE_SHARE = 0.4, 0.4
RUNNING, SPARES = 4, 4
MiB = 1 << 20
FDS_GROWTH_MAX, MEMORY_GROWTH_MAX = 8, 32 * MiB  # of a process at rest, from one rest to the next
CELLS_GROWTH_MAX, CELL_FDS_MAX = 100, 11  # what a broker keeps warm depends on what was run last; invariant 10 of ARCHITECTURE.md
MEMORY_MAX = {"monitor": 64 * MiB, "front": 256 * MiB, "broker": 256 * MiB}
GROUPS_MAX = 2000
HEALTH_MAX_S, P99_MAX_S = 10.0, 45.0  # a machine that does other things, too
KERNEL_GROWTH_MAX = {"files": 4000, "inodes": 200_000, "slab": 256 * MiB}  # others use the machine, too, and caches fill
KERNEL_WAIT_S = 30.0
STATE_BYTES_MAX, STATE_BYTES_EACH_MAX = 64 * MiB, MiB  # and for each execution
CELL_PROCESSES_MAX = 2  # of a sandbox that waits for a program: init, and the interpreter


def fds_of(pid):
    """How many descriptors of each kind. The control files of a group, which may be kept open, count as one."""
    kinds, groups = Counter(), set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            link = os.readlink(f"/proc/{pid}/fd/{fd}")
        except OSError:
            continue
        if link.startswith("/sys/fs/cgroup/"):
            groups.add(link.split("/")[-2])
        else:
            kinds[link.split(":")[0] if ":" in link else "file"] += 1
    return kinds + Counter(group=len(groups))


def memory_of(pid):
    """What is its own: shared pages of programs do not count."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return 0


def hash_tree(*tops):
    """Names, modes and contents."""
    h = hashlib.sha256()
    for top in tops:
        for path in sorted(Path(top).rglob("*")) if Path(top).is_dir() else [Path(top)]:
            st = path.lstat()
            h.update(f"{path} {st.st_mode} {st.st_uid} {st.st_size}\n".encode())
            if path.is_file() and not path.is_symlink() and st.st_size < 64 * MiB and os.access(path, os.R_OK):
                h.update(path.read_bytes())
    return h.hexdigest()


def host_facts():
    """What belongs to the host and must be the same for ever (I3, I7, I8)."""
    def names(path):
        return frozenset(os.listdir(path)) if os.path.isdir(path) else frozenset()
    return {"mounts": frozenset(oracle.list_mounts()), "interfaces": names("/sys/class/net"), "netns": names("/run/netns"),
            "shm": names("/dev/shm"), "mqueue": names("/dev/mqueue"), "ipc": frozenset(oracle.list_ipc())}


def kernel_facts():
    """What the kernel holds for us, and would keep for ever if we did not give it back (I9)."""
    inodes, free = map(int, Path("/proc/sys/fs/inode-nr").read_text().split()[:2])
    slab = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("SUnreclaim:"))
    return {"files": int(Path("/proc/sys/fs/file-nr").read_text().split()[0]), "inodes": inodes - free,
            "slab": int(slab.split()[1]) * 1024}


def check_kernel(before, watch):
    """Of the whole machine: it says nothing about us while others use much of it, and what other tests use goes again."""
    if watch.others() >= busy.MUCH:
        print(f"the kernel's growth is not judged: other processes had {watch.others():.0%} of the processors")
        return
    for name, most in KERNEL_GROWTH_MAX.items():
        chaos.wait_until(lambda: kernel_facts()[name] - before[name] < most, KERNEL_WAIT_S,
                         lambda: f"the kernel's {name}: {before[name]} before, {kernel_facts()[name]} after")


def state_bytes(state):
    return sum(path.lstat().st_blocks * 512 for path in Path(state).rglob("*"))


def too_many(survivor):
    """Processes below a broker at rest that are neither a zygote nor a sandbox that waits (I1)."""
    broker, table = survivor.daemon.child("broker"), oracle.parents()
    found = []
    for top in [p for p, (parent, state) in table.items() if parent == broker and state != "Z"]:
        family = {top} | oracle.below(top)
        if len(family) > (CELL_PROCESSES_MAX if chaos.is_init(top) else 1):
            found += sorted(family)
    return found


class Watch:
    """Looks once a second, in a thread; what it finds wrong is kept for the end."""

    def __init__(self, survivor, canary):
        self.survivor, self.canary = survivor, canary
        self.host, self.wrong, self.samples = host_facts(), [], 0
        self.health, self.peaks = [], Counter()
        self.seen = {}  # orphan -> since when
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.over.wait(1.0):
            try:
                self.look()
            except (OSError, IndexError, ValueError):
                pass  # a process that is looked at may die
            self.samples += 1

    def stop(self):
        self.over.set()
        self.thread.join(60)

    def complain(self, what):
        if len(self.wrong) < 50:
            self.wrong.append(f"{time.strftime('%T')} {what}")

    def look(self):
        now = host_facts()
        for name, was in self.host.items():
            if now[name] != was:
                self.complain(f"the host's {name}: {sorted(now[name] ^ was)[:5]}")
        if not self.canary.untouched():
            self.complain(f"canary: {self.canary.reached}")
        groups = len(oracle.list_cgroups())
        self.peaks["groups"] = max(self.peaks["groups"], groups)
        if groups > GROUPS_MAX:
            self.complain(f"{groups} control groups")
        self.look_at_processes()
        self.look_at_health()

    def look_at_processes(self):
        strays, now = self.survivor.strays(), time.monotonic()
        self.seen = {pid: self.seen.get(pid, now) for pid in strays}
        old = [pid for pid, since in self.seen.items() if now - since > chaos.ORPHANS_MAX_S]
        if old:
            self.complain(f"orphans: {chaos.describe(old)}")
        self.peaks["processes"] = max(self.peaks["processes"], len(self.survivor.daemon.processes()))
        for name, most in MEMORY_MAX.items():
            pid = self.survivor.pick(name)
            bytes, fds = memory_of(pid), sum(fds_of(pid).values())
            self.peaks[f"{name} MiB"] = max(self.peaks[f"{name} MiB"], bytes // MiB)
            self.peaks[f"{name} fds"] = max(self.peaks[f"{name} fds"], fds)
            if bytes > most:
                self.complain(f"the {name} has {bytes // MiB} MiB")

    def look_at_health(self):
        begin, at = time.monotonic(), time.time()
        try:
            self.survivor.web.get("/healthz", timeout=30)
        except chaos.LOST:
            if not self.survivor.was_disturbed(at, time.time(), chaos.BACK_MAX_S):
                self.complain("no answer from /healthz")
            return
        seconds = time.monotonic() - begin
        self.health.append(seconds)
        if seconds > HEALTH_MAX_S and not self.survivor.was_disturbed(at, at + seconds, chaos.BACK_MAX_S):
            self.complain(f"/healthz took {seconds:.1f} s")


def rest(survivor):
    """Waits until nothing runs, is queued or warms up; what each process holds then."""
    def is_idle():
        now = survivor.web.get("/v1/stats").json()["now"]
        return now["running"] == now["queued"] == 0
    chaos.wait_until(is_idle, 180, "the daemon does not come to rest")
    held, before = None, {}
    for _ in range(40):  # what is warmed up again, and what is torn down behind a result
        time.sleep(0.25)
        held = {name: (fds_of(survivor.pick(name)), memory_of(survivor.pick(name)), survivor.pick(name)) for name in MEMORY_MAX}
        if {n: h[0] for n, h in held.items()} == before:
            break
        before = {n: h[0] for n, h in held.items()}
    assert not chaos.who_runs(hostile.ESCAPED), "a program escaped"
    chaos.wait_until(lambda: not too_many(survivor), 60, lambda: f"at rest, and yet: {chaos.describe(too_many(survivor))}")
    return held


def show(held):
    return {name: f"{sum(fds.values())} fds, {memory // 1024} KiB" for name, (fds, memory, _) in held.items()}


def check_growth(before, after):
    for name, (fds, memory, pid) in after.items():
        old_fds, old_memory, old_pid = before[name]
        assert pid == old_pid, f"the {name} died by itself"
        slack = FDS_GROWTH_MAX
        if name == "broker":
            cells = max(0, fds["anon_inode"] - old_fds["anon_inode"])  # a pidfd each
            assert cells <= CELLS_GROWTH_MAX, f"{cells} more sandboxes are kept"
            slack += cells * CELL_FDS_MAX
        for kind in fds:
            assert fds[kind] - old_fds[kind] <= slack, f"the {name} holds {fds[kind]} of {kind} at rest, {old_fds[kind]} before"
        assert memory - old_memory <= MEMORY_GROWTH_MAX, f"the {name} grew from {old_memory} to {memory} bytes"


def percentiles(seconds):
    ordered = sorted(seconds) or [0.0]
    return {f"p{p}": ordered[min(len(ordered) - 1, len(ordered) * p // 100)] for p in (50, 90, 99)}


class Soak:
    """One soak: `report` says in numbers what happened."""

    def __init__(self, atoll, work, canary, say=print):
        self.atoll, self.work, self.canary, self.say = atoll, work, canary, say
        self.begun, self.seconds = time.monotonic(), 0

    def tell(self, text):
        left = max(0, self.begun + self.seconds - time.monotonic())
        self.say(f"{time.monotonic() - self.begun:7.1f} s, {left:.0f} s left  {text}")

    def run(self, seconds, kills):
        self.seconds = seconds
        groups, sockets = oracle.list_cgroups(), oracle.list_sockets()
        trees = [self.atoll.stage.bin, self.atoll.stage.data, "/etc"]
        content, kernel, files = hash_tree(*trees), kernel_facts(), oracle.list_files()
        others = busy.Watch()
        chaos.become_subreaper()
        self.survivor = chaos.Survivor(self.atoll, self.work, "--running", str(RUNNING), "--set", f"pool.spares={SPARES}")
        self.watch = Watch(self.survivor, self.canary)
        try:
            self.ledger = chaos.Ledger()
            steady = self.steady(seconds * STEADY_SHARE)
            self.kills(seconds * (1 - STEADY_SHARE), kills)
            report = self.judge(groups, steady)
        finally:
            self.watch.stop()
            code = self.survivor.end()
            chaos.wait_until(lambda: not self.survivor.strays(), chaos.ORPHANS_MAX_S, "orphans of the last daemon")
            chaos.become_subreaper(False)
        assert code == 0, self.survivor.said()
        assert not self.watch.wrong, "\n".join(self.watch.wrong)
        assert oracle.list_sockets() <= sockets and not self.survivor.daemon.socket.exists()
        chaos.wait_until(lambda: not oracle.list_empty_cgroups() - groups, 60,
                         lambda: f"groups: {oracle.list_empty_cgroups() - groups}")
        assert hash_tree(*trees) == content, "programs, data or /etc have changed"
        check_kernel(kernel, others)
        assert oracle.list_files() <= files, oracle.list_files() - files
        rows = chaos.check_database(self.survivor.state)
        chaos.check_state(self.survivor.state, rows)
        assert not {"queued", "running", "internal_error"} & set(rows.values()), Counter(rows.values())
        bytes = state_bytes(self.survivor.state)
        assert bytes < STATE_BYTES_MAX + STATE_BYTES_EACH_MAX * len(rows), f"{bytes} bytes of {len(rows)} executions"
        return report

    def loads(self):
        programs = hostile.mixed([copy.copy(p) for p in chaos.GOOD], self.canary, HOSTILE_SHARE)
        return [chaos.Load(self.survivor, self.ledger, programs, workers=4), hostile.Abuse(self.survivor, self.ledger, programs, workers=1)]

    def under_load(self, work):
        loads = self.loads()
        try:
            return work()
        finally:
            for load in loads:
                load.stop()

    def steady(self, seconds):
        """Warms up, rests, works, rests: what it holds the second time is what it held the first."""
        self.under_load(lambda: time.sleep(min(20, seconds / 4)))
        before = rest(self.survivor)
        self.tell(f"at rest: {show(before)}")
        self.under_load(lambda: self.wait(seconds * 3 / 4))
        after = rest(self.survivor)
        self.tell(f"at rest: {show(after)}")
        check_growth(before, after)
        return len(self.ledger.accepted)

    def wait(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(min(10, max(0, end - time.monotonic())))
            self.check()

    def check(self):
        """Says how far it is, and ends it at the first thing that is wrong."""
        self.tell(f"{len(self.ledger.accepted)} accepted, {len(self.ledger.results)} answered, {len(self.survivor.faults)} kills, "
                  f"{self.ledger.lost} lost, refused {self.ledger.refused}")
        assert not self.watch.wrong, "\n".join(self.watch.wrong)
        assert not self.ledger.wrong, self.ledger.wrong[:5]

    def kills(self, seconds, n):
        order = [chaos.TARGETS[i % len(chaos.TARGETS)] for i in range(n)]
        random.shuffle(order)

        def strike():
            begin = time.monotonic()
            for i, target in enumerate(order):
                time.sleep(max(0, begin + seconds * (i + random.random()) / n - time.monotonic()))
                mark = self.survivor.sleeper(self.ledger) if target in ("monitor", "front", "broker") else None
                self.survivor.kill(target, mark)
                if i % 5 == 4:
                    self.check()

        self.under_load(strike)

    def judge(self, groups, steady):
        rest(self.survivor)
        chaos.check_deaths(self.survivor)
        results, disturbed = chaos.check_results(self.survivor, self.ledger)
        chaos.check_keys(self.survivor, self.ledger)
        chaos.wait_until(lambda: not oracle.list_empty_cgroups() - groups, 60, "groups of dead brokers stay")
        latency = percentiles([s for _, s in self.ledger.seconds])
        assert latency["p99"] < P99_MAX_S, latency
        assert len(results) > 20 and self.watch.samples > 5
        return {"accepted": len(results), "while nothing was killed": steady,
                "kills": dict(Counter(t for _, t in self.survivor.faults)),
                "statuses": dict(Counter(r["status"] for r in results.values())), "disturbed": disturbed, "lost": self.ledger.lost,
                "refused": self.ledger.refused, "latency": latency, "health": percentiles(self.watch.health),
                "slowest deaths": {t: round(max(s, default=0), 3) for t, s in self.survivor.deaths.items()},
                "peaks": dict(self.watch.peaks)}


def main():
    parser = argparse.ArgumentParser(description="soak test of the daemon")
    parser.add_argument("--seconds", type=float, default=1200)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--mode", choices=MODES, default=MODES[0])
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    options = parser.parse_args()
    random.seed(options.seed)
    print(f"seed {options.seed}, {options.seconds:.0f} s, {options.kills} kills, {options.mode}", flush=True)
    stage, canary = Stage(), Canary()
    try:
        soak = Soak(Atoll(options.mode, stage), stage.scratch(options.mode, "soak"), canary,
                    say=lambda text: print(text, flush=True))
        report = soak.run(options.seconds, options.kills)
    finally:
        canary.close()
        stage.remove()
    for name, value in report.items():
        print(f"{name}: {value}")
    print("soak: all invariants held")


if __name__ == "__main__":
    main()
