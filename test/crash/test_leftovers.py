# SPDX-License-Identifier: Apache-2.0
"""What an ordinary user's zygote has on the host while it loads modules is gone in the end, whichever process was killed.

test_warm_pool.py kills a process that makes it; here the victim is the process that removes it, or all of them in one instant.
"""
import os
import secrets
import signal
import time

import pytest

import oracle
from resident import own, wait_until

pytestmark = pytest.mark.modes("rootless")


def loading(pool):
    """(directory, who removes it) of a zygote that loads."""
    run = pool.any_front().popen(["run", "-l", "python", "-c", "import json; print(1)"])  # a light zygote loads too fast to be seen
    seen = {}

    def is_seen():
        seen.update((word, pid) for pid in pool.below() for word in oracle.command_line(pid).split()
                    if word.startswith("/tmp/atoll-") and os.path.exists(f"{word}/lock"))
        return seen

    wait_until(is_seen, 25, "no zygote was seen loading")
    (place, remover), = seen.items()
    return run, place, remover


def struck(own, *more):
    """The same, where who removes it was killed in time, and so was who is named by more(pool, who removes it)."""
    for _ in range(10):
        pool = own("--spares", "2")
        run, place, remover = loading(pool)
        try:
            victims = [remover, *(one(pool, remover) for one in more)]
            for pid in victims:
                os.kill(pid, signal.SIGKILL)
            return pool, run, place, victims
        except (ProcessLookupError, KeyError):  # it has loaded meanwhile
            run.communicate(timeout=25)
    raise AssertionError("it is too quick for us")


def make_old(place):
    os.utime(place, (time.time() - 3600, time.time() - 3600))


@pytest.fixture
def plant():
    """plant(user): an old directory as a zygote makes it, and its lock, which no process holds yet."""
    made = []

    def make(user, prefix="/tmp/atoll-", mode=0o700):
        made.append(f"{prefix}{secrets.token_hex(8)}")
        os.mkdir(made[-1], 0o700)
        lock = os.open(f"{made[-1]}/lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if oracle.IS_ROOT:
            os.chown(f"{made[-1]}/lock", user, user)
            os.chown(made[-1], user, user)
        os.chmod(made[-1], mode)
        make_old(made[-1])
        return made[-1], lock

    yield make
    for place in made:
        if os.path.exists(place):
            os.unlink(f"{place}/lock")
            os.rmdir(place)


def test_the_remover_is_killed(own):
    """The zygote goes on, and sees to it itself."""
    pool, run, place, _ = struck(own)
    wait_until(lambda: not os.path.exists(place), 25, f"{place} stays")
    assert run.communicate(timeout=25) == (b"1\n", b"")
    pool.front().until_warm()


def test_everybody_is_killed_at_once(own, plant):
    """The next zygote of this user removes it, and nothing that another process may still use."""
    user = oracle.NOBODY if oracle.IS_ROOT else os.geteuid()
    _, run, place, victims = struck(own, lambda pool, remover: oracle.parents()[remover][0], lambda pool, remover: pool.pid)
    run.communicate(timeout=30)
    wait_until(lambda: not set(victims[:2]) & set(oracle.parents()), 25, "they do not die")
    assert os.path.exists(f"{place}/lock")
    make_old(place)
    left, lock = plant(user)
    os.close(lock)
    used, lock = plant(user)
    os.lockf(lock, os.F_LOCK, 0)
    stay = [used, plant(user, "/tmp/atoll-named-")[0], plant(user, mode=0o755)[0]] + ([plant(0)[0]] if oracle.IS_ROOT else [])
    young, _ = plant(user)
    os.utime(young)
    try:
        own("--spares", "2").front().until_warm()
        wait_until(lambda: not os.path.exists(place) and not os.path.exists(left), 25, "what is left of the dead stays")
        assert all(map(os.path.exists, [*stay, young]))
    finally:
        os.close(lock)
