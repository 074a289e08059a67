# SPDX-License-Identifier: Apache-2.0
"""Pools of the tests, and runs that are warm for certain.

A Python program is given one line more, in front: it leaves with NOT_WARM, before anything else happens, unless it finds
descriptor 100, which only warm programs have. Such a run is made again. What a test sees was warm, or there is no result.
Programs of other languages just go through the pool. With `execs` a stage's command is executed by a warm Python instead,
which a program of the test's own (compiled C) then takes the place of; descriptor 100 must be gone by then.
"""
import contextlib
import os
import signal
import subprocess
import time

import pytest

import oracle
from program import Atoll

NOT_WARM, NOT_CLOSED = 211, 212
GUARD = f"__import__('os').path.exists('/proc/self/fd/100') or __import__('os')._exit({NOT_WARM})\n"
# What the front runs cold, pool or not.
COLD_WORDS = {"--tty", "--invoke", "--image", "--request", "--read-only"}
TRIES = 200
YOUNG_S = 2.0


def guarded(words, execs):
    """The words of `atoll run` with a program that leaves unless it is warm; None: it is no Python program."""
    words = [str(word) for word in words]
    if words[:1] != ["run"] or COLD_WORDS & set(words):
        return None
    if execs and words.count("--stage") == 1 and "-c" not in words:
        at = words.index("--stage")
        command = f"test -e /proc/self/fd/100 && exit {NOT_CLOSED}; " + words[at + 1].split("=", 1)[1]
        code = f"import os\nos.execv('/bin/sh', ['sh', '-c', {command!r}])\n"
        return words[:at] + ["-l", "python", "-c", GUARD + code] + words[at + 2:]
    if "-c" not in words or "-l" not in words or words[words.index("-l") + 1] != "python":
        return None
    at = words.index("-c") + 1
    return words[:at] + [GUARD + words[at]] + words[at + 1:]


def wait_until(what, seconds=25.0, why="it did not happen"):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, why
        time.sleep(0.01)


def gone(pids):
    table = oracle.parents()
    return not [p for p in pids if p in table and table[p][1] != "Z"]


class WarmAtoll(Atoll):
    """A front of a pool. `run` and what is built upon it see warm programs only."""

    execs, pool = False, None
    warm = True

    def variant(self, wrap=(), env=None):
        other = super().variant(wrap, env)
        other.execs, other.pool = self.execs, self.pool
        return other

    def popen(self, args, wait=True, program=None, **more):
        words = None if program else guarded(args, self.execs)
        if words and wait:
            self.until_spare("" if self.execs else words[words.index("-c") + 1])
        return super().popen(words or args, program=program, **more)

    def run(self, args, program=None, **more):
        is_guarded = not program and guarded(args, self.execs)
        for _ in range(TRIES if is_guarded else 1):
            done = super().run(args, program=program, wait=False, **more)
            if not is_guarded or done.returncode != NOT_WARM:
                assert done.returncode != NOT_CLOSED, "descriptor 100 came along through exec"
                return done
            time.sleep(0.02)
        raise AssertionError(f"not warm after {TRIES} tries: {done!r}")

    def until_warm(self, like=""):
        """Until programs with the same imports are warm: the imports choose the zygote."""
        assert self.run(["run", "-l", "python", "-c", "raise SystemExit\n" + like]).returncode == 0

    def until_spare(self, like=""):
        """Waits until the next run is certain to be warm, for a run that gets no second try: the run that made sure took a spare itself."""
        end = time.monotonic() + 60
        self.until_warm(like)
        while not self.pool.spares():
            assert time.monotonic() < end, "no spare waits"
            time.sleep(0.02)
            if not self.pool.zygotes():
                self.until_warm(like)


class Pool:
    """`atoll pool`, with its processes."""

    def __init__(self, atoll, path, *options, wrap=(), env=None):
        self.atoll, self.path = atoll, path
        self.popen = atoll.variant(wrap, env).popen(["pool", "--socket", path, *options], stdin=subprocess.DEVNULL,
                                                    stdout=subprocess.DEVNULL)
        self.pid = self.popen.pid  # setpriv becomes the command: it is the same process
        self.family = set()  # who hung below it when it was ended
        self.said = self.popen.stderr.readline().decode()
        assert self.said == f"atoll pool: ready on {path}\n", self.said

    def front(self, execs=False):
        """Runs that are warm for certain."""
        front = WarmAtoll(self.atoll.mode, self.atoll.stage, env={**self.atoll.extra, "ATOLL_POOL": str(self.path)})
        front.execs, front.pool = execs, self
        return front

    def any_front(self):
        """Runs through it, warm or not."""
        return self.atoll.variant(env={"ATOLL_POOL": str(self.path)})

    def below(self):
        return oracle.below(self.pid)

    def zygotes(self, word="zygote"):
        """Interpreters to fork from: direct children whose command names a runner, and that are not pid 1 of a namespace."""
        table = oracle.parents()
        return sorted(p for p in self.below() if table.get(p, (0,))[0] == self.pid and word in oracle.command_line(p)
                      and not oracle.has_own_pids(p))

    def spares(self):
        """Python programs that wait for a request: forked, below an init of their own, and not yet called by another name."""
        table = oracle.parents()
        inits = {p for p, (above, _) in table.items() if above == self.pid}
        return [p for p, (above, state) in table.items() if above in inits and state != "Z" and "python/zygote" in oracle.command_line(p)
                and oracle.has_own_pids(p)]

    def end(self, sig=signal.SIGTERM):
        if self.popen.poll() is None:
            self.family = self.below()
            self.popen.send_signal(sig)
        code = self.popen.wait(25)
        self.popen.stderr.close()
        return code


def end_pools(pools):
    for pool in pools:
        pool.end()
    killed = [pool for pool in pools if pool.popen.returncode == -signal.SIGKILL]
    if killed:
        wait_until(lambda: gone({pid for pool in killed for pid in pool.family}), 25, "something outlives a killed pool")
        sweep(pools[0].atoll)


def unused_groups():
    """Those of a run that is about to begin are not empty for long."""
    groups = oracle.list_empty_cgroups()
    for _ in range(5):
        time.sleep(0.04)
        groups &= oracle.list_empty_cgroups()
    return groups


def make_old(group, seconds=60):
    """So that it is swept. Not if it has just been made: another test's run may be about to begin there, however long it takes."""
    with contextlib.suppress(FileNotFoundError):
        if time.time() - os.stat(group).st_mtime > YOUNG_S:
            os.utime(group, (time.time() - seconds, time.time() - seconds))


def sweep(atoll):
    """Groups that a killed broker could not remove any more go with a later run, once they are old enough."""
    rounds, left = 0, None
    while rounds < 2 or left and rounds < 20:  # some are empty only when the last of the dead is buried
        rounds, left = rounds + 1, unused_groups()
        for group in left:
            make_old(group)
        assert atoll.variant(env={"ATOLL_POOL": "off"}).bash("echo next")["stdout"] == "next\n"


@pytest.fixture
def front(mode, residents):
    """Warm runs through the session's pool."""
    return residents.front(mode)


@pytest.fixture
def own(mode, stage, work):
    """own(*options): a pool of the test's own."""
    pools = []

    def start(*options, **more):
        pools.append(Pool(Atoll(mode, stage), work / f"pool{len(pools)}", *options, **more))
        return pools[-1]

    yield start
    end_pools(pools)


class Residents:
    """One pool a mode, as long as the tests run. Idle ones let go of everything, so what stays at the end has leaked."""

    def __init__(self, stage):
        self.stage, self.pools = stage, {}

    def front(self, mode, execs=False):
        if mode not in self.pools:
            atoll = Atoll(mode, self.stage)
            self.pools[mode] = Pool(atoll, self.stage.scratch(mode, "pool") / "sock", "--spares", "4", "--idle-seconds", "2")
            oracle.KEPT.add(self.pools[mode].pid)
        return self.pools[mode].front(execs)

    def end(self):
        try:
            for mode, pool in self.pools.items():
                assert pool.popen.poll() is None, f"the pool of {mode} died during the tests"
                deadline = time.monotonic() + 60
                while pool.below():
                    left = [f"{p} {oracle.command_line(p)}" for p in pool.below()]
                    assert time.monotonic() < deadline, f"the pool of {mode} still has {left}"
                    time.sleep(0.1)
        finally:
            for pool in self.pools.values():
                oracle.KEPT.discard(pool.pid)
                assert pool.end() == 0


class Pair(Pool):
    """A pool of its own, and the same front without and with it."""

    def __init__(self, atoll, socket):
        super().__init__(atoll, socket)
        self.cold, self.warm = atoll.variant(env={"ATOLL_POOL": "off"}), self.any_front()

    def end(self):
        assert super().end() == 0
