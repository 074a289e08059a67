# SPDX-License-Identifier: Apache-2.0
"""Several test processes on one machine (pytest -n): most tests do not mind each other, some need it for themselves.

Every test shares the machine, or has it alone if it is marked so. `alone()` is for the moments of a test that look at, or
change, what belongs to all. A test marked `undisturbed` measures what others may spoil but rarely do: it shares the machine,
and what fails then is tried again alone. Two locks, on files of the tests themselves: a process that waits for the room
holds the door, so that others cannot keep it waiting by taking turns.
"""
import contextlib
import os
import subprocess
import warnings
from fcntl import LOCK_EX, LOCK_SH, LOCK_UN, flock
from pathlib import Path

HERE = Path(__file__).resolve().parent
DOOR, ROOM = (os.open(HERE / name, os.O_RDONLY | os.O_CLOEXEC) for name in ("oracle.py", "turns.py"))
held = LOCK_UN


def take(how):
    global held
    flock(ROOM, LOCK_UN)
    if how != LOCK_UN:
        flock(DOOR, LOCK_EX)
        flock(ROOM, how)
        flock(DOOR, LOCK_UN)
    held = how


@contextlib.contextmanager
def holding(how):
    before = held
    if before != how:
        take(how)
    try:
        yield
    finally:
        if before != how:
            take(before)


def shared():
    return holding(LOCK_SH)


def alone():
    """What was seen before may have changed when it begins."""
    return holding(LOCK_EX)


def undisturbed(look):
    """look(); again, alone, if what it asserts does not hold: others may have had the time, the memory or the disk. Also who
    is alone may have been kept waiting, by the machine below: so three times in all."""
    with contextlib.ExitStack() as stack:
        for _ in range(2):
            try:
                return look()
            except (AssertionError, TimeoutError, subprocess.TimeoutExpired) as error:
                warnings.warn(f"tried again alone: {error}", stacklevel=2)
            stack.enter_context(alone())
        return look()
