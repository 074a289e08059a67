# SPDX-License-Identifier: Apache-2.0
"""How much of the machine others have while a test measures.

A promise of time can only be judged on a machine that is ours. `Watch` tells which share of all processors went to processes
outside of this test session's room (tools/room, whose cpuacct group counts what is ours), stolen time of a virtual machine
included. A test that fails while this share is large proves nothing: it is skipped, and its reason gives the evidence.
Without a room nothing is known of others, and nothing is excused.
"""
import os
import re
import time
from pathlib import Path

import pytest

import oracle

MUCH = 0.25  # of all processors: beyond this a failed measurement says nothing about the product
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
# That of the whole session: a test process may have a room within it.
GROUP = Path("/sys/fs/cgroup/cpuacct" + re.sub(r"(/reef-\d+)/.*", r"\1", oracle.OWN_GROUPS.get("cpuacct", "")))
IS_ROOM = "/reef-" in str(GROUP)
OWN_USAGE = f"/sys/fs/cgroup/cpuacct{oracle.OWN_GROUPS.get('cpuacct', '')}/cpuacct.usage"


def own_seconds():
    """CPU time of this test process's room: the tests, and all they started; 0 without a room."""
    return int(oracle.read(OWN_USAGE)) / 1e9 if IS_ROOM else 0.0


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
