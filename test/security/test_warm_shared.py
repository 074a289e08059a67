# SPDX-License-Identifier: Apache-2.0
"""M01 of notes/security.md §3.8: nothing that warm programs get from their makers is a channel between them.

Children of one zygote have copies of its memory, unless it is mapped shared; what is handed to many cells has one set of
locks and one position.
"""
import os
from pathlib import Path

import pytest

import oracle
from conftest import ROOT
from resident import own, wait_until

pytestmark = pytest.mark.cold("it is about warm cells")
needs_root = pytest.mark.skipif(not oracle.IS_ROOT, reason="looks into other users' processes: needs root")

# language -> what its programs' command lines begin with
PROGRAMS = {"python": "/usr/bin/python3", "ruby": "/usr/bin/ruby", "php": "/usr/bin/php", "perl": "/usr/bin/perl", "lua": "/usr/bin/lua",
            "bash": "/usr/bin/bash", "javascript": "/usr/bin/node", "typescript": "/usr/bin/node", "java": "/usr/bin/java"}


def hello(language):
    return next((ROOT / "test" / "integration" / "languages" / language).glob("hello.*"))


def common_of(pid):
    """What of a process others could have, too: memory that it can write to, and files without a name."""
    found = set()
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        _, rights, _, device, inode, *name = line.split(None, 5)
        if rights[3] == "s" and (rights[1] == "w" or "/memfd:" in "".join(name)):
            found.add((device, inode))
    for fd in os.listdir(f"/proc/{pid}/fd"):
        if os.readlink(f"/proc/{pid}/fd/{fd}").startswith("/memfd:"):
            status = os.stat(f"/proc/{pid}/fd/{fd}")
            found.add((f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}", str(status.st_ino)))
    return found


def cells(pool, program):
    """pid namespace -> what its program, which waits, could share. Other processes of a sandbox run no tenant's code."""
    table, found = oracle.parents(), {}
    inits = {p for p, (above, _) in table.items() if above == pool.pid and oracle.has_own_pids(p)}
    for pid in [p for p, (above, state) in table.items() if above in inits and state != "Z"]:
        try:
            if oracle.command_line(pid).startswith(program) and os.path.lexists(f"/proc/{pid}/fd/100"):
                found[os.readlink(f"/proc/{pid}/ns/pid")] = common_of(pid)
        except (FileNotFoundError, ProcessLookupError):
            pass  # gone meanwhile
    return found


@needs_root
@pytest.mark.parametrize("language", list(PROGRAMS))
def test_M01_cells_have_no_memory_in_common(own, language):
    pool, seen = own("--spares", "3"), {}

    def are_ready():
        assert pool.any_front().run(["run", hello(language)]).returncode == 0
        seen.clear()
        seen.update(cells(pool, PROGRAMS[language]))
        return len(seen) >= 2

    wait_until(are_ready, 60, f"nothing is kept ready for {language}")
    everything = [thing for things in seen.values() for thing in things]
    assert len(everything) == len(set(everything)), seen
