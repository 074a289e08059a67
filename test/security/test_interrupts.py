# SPDX-License-Identifier: Apache-2.0
"""A program must not slow the CPUs that it does not run on.

Switching a static key, and some calls by themselves, interrupt every CPU of the host: "function call interrupts", the line CAL
of /proc/interrupts. interrupts.c does all that the filter allows, one thing at a time for a few milliseconds, inside a sandbox;
this test counts outside and compares with opening and closing a socket. Other work on the host adds to the count, so a thing is
only blamed if it exceeds the bound in every one of several turns, each with a control beside it; a thing that does switch a key
always does.
"""
import os
import statistics
import subprocess
import time

import pytest

import oracle
from program import ROOT

SLICE_MS = 3
TURNS = 8
TIMES = 5  # as much as opening and closing a socket
FLOOR = 500  # interrupts a second, where that takes next to none
# What may exceed the bound, by the beginning of its name, and why that is no harm to others.
REASONS = {
    "process": "a new process begins on another CPU: one interrupt wakes the CPU that is to run it",
    "thread": "as a process",
    "affinity 0x2": "the program moves itself to another CPU: one interrupt each time, to where it goes",
}


def interrupts():
    """How many function call interrupts all CPUs have had."""
    with open("/proc/interrupts", encoding="ascii") as file:
        return sum(int(word) for line in file if line.lstrip().startswith("CAL:") for word in line.split() if word.isdigit())


class Looper:
    """interrupts.c, running."""

    def __init__(self, process):
        self.process, self.names = process, []
        for line in process.stdout:
            if line == "end\n":
                break
            self.names.append(line.rstrip("\n").split(" ", 1)[1])

    def rate(self, item):
        """Interrupts a second while the item is done over and over."""
        before, start = interrupts(), time.monotonic()
        self.process.stdin.write(f"{item} {SLICE_MS}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().split()
        assert answer[:1] == [str(item)], f"it ended in {self.names[item]!r}"
        return (interrupts() - before) / (time.monotonic() - start)

    def bound(self):
        return TIMES * max(self.rate(0), self.rate(0)) + FLOOR

    def exceeds(self, item):
        """Whether it does so in every turn."""
        return all(self.rate(item) > self.bound() for _ in range(TURNS))


@pytest.fixture(scope="module")
def program(compile_c):
    out = compile_c.place / "interrupts"
    names = ("plan/filter-rules.c", "plan/filter-table.c", "plan/filter.c", "base/error.c", "base/buf.c", "base/fd.c", "base/clock.c")
    here = ROOT / "test" / "security"
    subprocess.run(["gcc", "-static", "-O1", "-std=gnu17", "-D_GNU_SOURCE", "-pthread", f"-I{ROOT}/src", f"-I{ROOT}/include", here / "interrupts.c",
                    here / "deeds.c", *(ROOT / "src" / name for name in names), *sorted((ROOT / "src" / "base").glob("sha256*.c")),
                    "-lrt", "-o", out], check=True)
    return out


@pytest.mark.undisturbed
@pytest.mark.modes("root")
@pytest.mark.cold("what the filter allows is the same in a warm cell")
@pytest.mark.skipif(not oracle.IS_ROOT, reason="needs to be started as root")
@pytest.mark.skipif(os.cpu_count() == 1, reason="there is no other CPU to interrupt")
def test_K14_nothing_interrupts_every_cpu(atoll, program, work):
    pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with subprocess.Popen([program], cwd=work, **pipes) as outside:
        looper = Looper(outside)
        proofs = [i for i, name in enumerate(looper.names) if name.startswith("proof set")]
        plain = statistics.median(looper.rate(0) for _ in range(TURNS))
        seen = {looper.names[i]: statistics.median(looper.rate(i) for _ in range(TURNS)) for i in proofs}
        outside.stdin.close()
    if any(rate <= TIMES * plain + FLOOR for rate in seen.values()):
        pytest.skip(f"too busy: a socket has {plain:.0f} interrupts a second, options that switch a static key {seen}, "
                    f"load average {os.getloadavg()[0]:.0f}")
    argv = ["run", "--timeout", "100", "--file", f"t={program}", "--stage", "x=exec /sandbox/t"]
    with atoll.popen(argv, text=True) as inside:
        looper = Looper(inside)
        assert len(looper.names) > 500 and looper.names[0] == "socket and close"
        bound = looper.bound()
        suspects = [i for i in range(len(looper.names)) if looper.rate(i) > bound]
        wrong = [looper.names[i] for i in suspects if looper.exceeds(i)]
        inside.stdin.close()
    assert [name for name in wrong if not name.startswith(tuple(REASONS))] == [], (bound, seen)
