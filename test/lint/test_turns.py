# SPDX-License-Identifier: Apache-2.0
"""turns.py: who has the machine, and who gets a second try."""
import subprocess
import sys
from pathlib import Path

import pytest

import busy
import turns

HOLD = "import sys, turns\nwith turns.{how}():\n    print('in', flush=True)\n    sys.stdin.read()\n"


def other(how):
    """Another test process that waits for the machine and then holds it until it is told to go."""
    return subprocess.Popen([sys.executable, "-c", HOLD.format(how=how)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            cwd=Path(turns.__file__).parent)


@pytest.mark.parametrize("ours,theirs,together", [("shared", "shared", True), ("shared", "alone", False),
                                                  ("alone", "shared", False), ("alone", "alone", False)])
def test_who_may_be_there_at_once(ours, theirs, together):
    with getattr(turns, ours)():
        with other(theirs) as process:
            if together:
                assert process.stdout.readline() == b"in\n"
            else:
                with pytest.raises(subprocess.TimeoutExpired):
                    process.wait(0.3)
                turns.take(turns.LOCK_UN)
                assert process.stdout.readline() == b"in\n"
            process.stdin.close()
            process.wait()


def test_what_fails_beside_others_is_tried_alone():
    seen = []

    def look():
        seen.append(turns.held)
        assert len(seen) == 2
        return "well"

    with turns.shared():
        assert turns.undisturbed(look) == "well" and turns.held == turns.LOCK_SH
    assert seen == [turns.LOCK_SH, turns.LOCK_EX]


def test_what_fails_alone_has_failed():
    seen = []

    def look():
        seen.append(turns.held)
        raise AssertionError("never")

    with turns.shared(), pytest.raises(AssertionError, match="never"):
        turns.undisturbed(look)
    assert seen == [turns.LOCK_SH, turns.LOCK_EX, turns.LOCK_EX]
    with pytest.raises(ZeroDivisionError):
        turns.undisturbed(lambda: 1 // 0)


@pytest.mark.undisturbed
@pytest.mark.parametrize("tries", [[]])
def test_the_mark(tries):
    tries.append(turns.held)
    assert len(tries) == 2 and tries[1] == turns.LOCK_EX, tries


def test_a_busy_machine_is_an_excuse_with_evidence(monkeypatch):
    """Two processors for ten seconds, of which others had seven and the session six; then others had one."""
    monkeypatch.setattr(busy, "IS_ROOM", True)
    monkeypatch.setattr(busy.os, "cpu_count", lambda: 2)
    for others, raised in ((7.0, pytest.skip.Exception), (1.0, AssertionError)):
        monkeypatch.setattr(busy, "seconds", lambda: (100.0, 50.0))
        watch = busy.Watch()
        watch.begin -= 10
        monkeypatch.setattr(busy, "seconds", lambda others=others: (106.0 + others, 56.0))
        with pytest.raises(raised, match="35%.*too slow" if raised is not AssertionError else "^too slow$"):
            watch.judge(AssertionError("too slow"))


def test_only_a_time_is_excused():
    took = 3
    for check, excused in ((lambda: wrong_time(took), True), (lambda: wrong_answer(took), False), (late, True)):
        with pytest.raises((AssertionError, TimeoutError)) as caught:
            check()
        assert busy.is_about_time(caught.value) is excused


def wrong_time(took):
    assert (took
            < 2), "late"


def wrong_answer(answer):
    assert answer == 4


def late():
    raise TimeoutError
