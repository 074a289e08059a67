# SPDX-License-Identifier: Apache-2.0
"""How much of the machine others have while a test measures.

A promise of time can only be judged on a machine that is ours. `Watch` tells which share of all processors went to processes
outside of this test session's room (tools/room, whose cpuacct group counts what is ours), stolen time of a virtual machine
included. A test that fails while this share is large proves nothing: it is skipped, and its reason gives the evidence.
Without a room nothing is known of others, and nothing is excused.

Only a statement about a time is excused: one that names a time, or that waited too long. A test marked `brief` gives its programs so
little time that any of its statements may fail on a slow machine.
"""
import ast
import os
import re
import time
import traceback
from pathlib import Path

import pytest

import oracle

MUCH = 0.25  # of all processors: beyond this a failed measurement says nothing about the product
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
# That of the whole session: a test process may have a room within it.
GROUP = Path("/sys/fs/cgroup/cpuacct" + re.sub(r"(/room-\d+)/.*", r"\1", oracle.OWN_GROUPS.get("cpuacct", "")))
IS_ROOM = "/room-" in str(GROUP)
OWN_USAGE = f"/sys/fs/cgroup/cpuacct{oracle.OWN_GROUPS.get('cpuacct', '')}/cpuacct.usage"


def own_seconds():
    """CPU time of this test process's room: the tests, and all they started; 0 without a room."""
    return int(oracle.read(OWN_USAGE)) / 1e9 if IS_ROOM else 0.0

TIMES = re.compile(r"elapsed|taken|took|monotonic|duration|median|most\(\)|ratio|times\b|starts\b|slow\b|seconds|deadline|timeout|p50")


def statement(path, line):
    """The source of the innermost statement at this line of a file."""
    text = Path(path).read_text()
    found = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.stmt) and node.lineno <= line <= node.end_lineno]
    return ast.get_source_segment(text, max(found, key=lambda node: node.lineno)) if found else ""


def is_about_time(error):
    if not isinstance(error, AssertionError):
        return True
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and bool(TIMES.search(statement(frames[-1].filename, frames[-1].lineno)))


def seconds():
    """(what all processors were used for, what ours were), in seconds since a beginning that does not matter."""
    user, nice, system, _, _, irq, softirq, steal = map(int, Path("/proc/stat").read_text().splitlines()[0].split()[1:9])
    own = int((GROUP / "cpuacct.usage").read_text()) / 1e9 if IS_ROOM else 0.0
    return (user + nice + system + irq + softirq + steal) * TICK_S, own


class Watch:
    def __init__(self):
        self.begin, self.used = time.monotonic(), seconds()

    def others(self):
        """The share of all processors that others have had since."""
        if not IS_ROOM:
            return 0.0
        took = max(time.monotonic() - self.begin, TICK_S) * os.cpu_count()
        used, own = seconds()
        return max(0.0, (used - self.used[0]) - (own - self.used[1])) / took

    def judge(self, error):
        """Raises the error, unless others had so much of the machine that it proves nothing."""
        share = self.others()
        if share < MUCH:
            raise error
        pytest.skip(f"too busy: other processes had {share:.0%} of the processors for {time.monotonic() - self.begin:.1f} s "
                    f"(load average {os.getloadavg()[0]:.0f}); it said: {str(error)[:300]}")
