# SPDX-License-Identifier: Apache-2.0
"""Which clock ends a program on a busy machine. A judged program (`tests`) gets the time back for which others made it wait, up to its
timeout once more; and a loop with a limit of CPU time has one verdict, however busy the machine is."""
import contextlib
import json
import os
import subprocess

import pytest

LOOP = "while True: pass"
SLEEP = "import time\nwhile True: time.sleep(60)"
# One process that computes in several threads, all in the way of each other.
CROWD = """
#include <pthread.h>
static void *spin(void *data) { for (;;) ; }
int main(void) { pthread_t t; for (int i = 0; i < 7; i++) pthread_create(&t, 0, spin, 0); spin(0); }
"""


@contextlib.contextmanager
def neighbours(n):
    """Processes beside the sandboxes that want all the time they can get."""
    started = [subprocess.Popen(["/bin/sh", "-c", "while :; do :; done"]) for _ in range(n)]
    try:
        yield
    finally:
        for popen in started:
            popen.kill()
            popen.wait()


@pytest.fixture
def busy():
    with neighbours(3 * os.cpu_count()):
        yield


def judged(atoll, work, code, *options):
    tests = work / "tests.json"
    tests.write_text(json.dumps([{"expected": "never"}]))
    return atoll.python(code, options=["--tests", tests, "--timeout", "1", *options])["tests"][0]


def test_waiting_for_others_extends_the_wall_clock(atoll, work, busy):
    entry = judged(atoll, work, LOOP)
    assert entry["verdict"] == "timeout" and entry["clock"] == "wall", entry
    assert 0.2 < entry["waited"] <= 1 and entry["duration"] >= 1 + entry["waited"], entry


def test_the_extension_ends_at_twice_the_timeout(atoll, work):
    with neighbours(10 * os.cpu_count()):
        entry = judged(atoll, work, LOOP)
    assert entry["verdict"] == "timeout" and 0.9 < entry["waited"] <= 1 and entry["duration"] >= 1.9, entry


def test_sleeping_is_not_waiting(atoll, work, busy):
    entry = judged(atoll, work, SLEEP)
    assert entry["verdict"] == "timeout" and entry["clock"] == "wall" and entry["waited"] < 0.7, entry


@pytest.mark.modes("root")  # rootless there is no quota without a delegated cgroup
def test_its_own_quota_extends_nothing(atoll, work):
    """Nine tenths of its second the quota holds it back: the kernel counts that as waiting, too."""
    entry = judged(atoll, work, LOOP, "--cpus", "0.1")
    assert entry["verdict"] == "timeout" and entry["clock"] == "wall" and entry["waited"] < 0.6, entry


def test_without_tests_the_timeout_is_strict(atoll, busy):
    result = atoll.python(LOOP, options=["--timeout", "1"])
    assert result["status"] == "timeout" and result["cause"]["peak"] < 1.7, result


@pytest.mark.parametrize("cpu", [1, 0.5])
@pytest.mark.parametrize("load", [0, 8])
def test_a_loop_has_one_verdict(atoll, work, cpu, load):
    """The CPU limit is not above the timeout: a loop reaches it first, wherever it must wait."""
    with neighbours(load * os.cpu_count()):
        entry = judged(atoll, work, LOOP, "--cpu-time", cpu)
        result = atoll.python(LOOP, options=["--timeout", "1", "--cpu-time", cpu])
    assert entry["verdict"] == "limit" and entry["clock"] == "cpu", entry
    assert result["status"] == "limit" and result["cause"]["kind"] == "cpu_time" and result["cause"]["limit"] == cpu, result
    if result["cause"]["peak"] is not None:  # without a cgroup the kernel does not count it for the dead
        assert ("computed until its timeout" in result["cause"]["detail"]) == (result["cause"]["peak"] < cpu), result


@pytest.mark.parametrize("load", [0, 8])
def test_wall_time_ends_what_does_not_compute(atoll, work, load):
    with neighbours(load * os.cpu_count()):
        for code, cpu in ((SLEEP, "0.5"), (SLEEP, "1"), (LOOP, "3")):
            entry = judged(atoll, work, code, "--cpu-time", cpu)
            assert entry["verdict"] == "timeout" and entry["clock"] == "wall", (code, cpu, entry)


def test_computing_first_and_then_waiting(atoll, work):
    """Most of the CPU limit is used, and then real time passes: it is the clock that ends it."""
    code = "import time\nwhile time.process_time() < 0.4: pass\ntime.sleep(60)"
    entry = judged(atoll, work, code, "--timeout", "3", "--cpu-time", "0.6")
    assert entry["verdict"] == "timeout" and entry["clock"] == "wall", entry


def test_threads_of_one_program(atoll, work, busy):
    """They wait for each other, too; the loop that they are together has one verdict all the same."""
    (work / "crowd.c").write_text(CROWD)
    result = atoll.result(["--timeout", "1", "--cpu-time", "0.5", work / "crowd.c"])
    assert result["status"] == "limit" and result["cause"]["kind"] == "cpu_time", result


def test_an_end_in_time_names_no_clock(atoll, work):
    tests = work / "tests.json"
    tests.write_text(json.dumps([{"expected": "1"}, {"expected": "2"}]))
    entries = atoll.python("print(1)", options=["--tests", tests])["tests"]
    assert [(entry["verdict"], entry["clock"], entry["waited"]) for entry in entries] == [("passed", None, 0), ("wrong_answer", None, 0)]
