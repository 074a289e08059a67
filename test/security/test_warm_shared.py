# SPDX-License-Identifier: Apache-2.0
"""M01 of test/security/cases.md: nothing that warm programs get from their makers is a channel between them.

Children of one zygote have copies of its memory, unless it is mapped shared; what is handed to many cells has one set of
locks and one position.
"""
import os
import select
import shutil
from pathlib import Path

import pytest

import oracle
from program import ROOT
from resident import own, wait_until

pytestmark = pytest.mark.cold("it is about warm cells")
needs_root = pytest.mark.skipif(not oracle.IS_ROOT, reason="looks into other users' processes: needs root")

# language -> what its programs' command lines begin with
PROGRAMS = {"python": "/usr/bin/python3", "ruby": "/usr/bin/ruby", "php": "/usr/bin/php", "perl": "/usr/bin/perl", "lua": "/usr/bin/lua",
            "bash": "/usr/bin/bash", "javascript": "/usr/bin/node", "typescript": "/usr/bin/node", "java": "/usr/bin/java"}
OPCACHE = Path("/etc/php/8.2/cli/conf.d/10-opcache.ini")
needs_opcache = pytest.mark.skipif(not OPCACHE.exists(), reason="PHP's opcache is not installed as Debian does it")
SHOWS = r"""<?php
$warm = file_exists('/proc/self/fd/100') ? 'warm' : 'cold';
echo $warm, ' ', preg_match_all('/^\S+ \S\S\Ss .*(zero|SYSV|memfd|deleted)/m', file_get_contents('/proc/self/maps')), "\n";
"""


def hello(language):
    return next((ROOT / "test" / "languages" / "cases" / language).glob("hello.*"))


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


def lines_of(pool, seconds):
    """What a pool has to say, until it is silent for so long."""
    stream = pool.popen.stderr
    while select.select([stream], [], [], seconds)[0]:
        yield stream.readline().decode()


@needs_root
@needs_opcache
@pytest.mark.modes("root")
def test_M01_php_keeps_no_cache_that_all_can_write_to(own, work):
    """Off, even where the host's php.ini turns it on: the cache would be one for all programs of a zygote."""
    settings = work / OPCACHE.name
    settings.write_text("zend_extension=opcache.so\nopcache.enable_cli=1\n")
    there = ["unshare", "--mount", "sh", "-c", f'mount --bind {settings} {OPCACHE} && exec "$@"', "sh"]
    front = own("--spares", "2", wrap=there).any_front()

    def is_warm():
        seen = front.result(["-l", "php", "-c", SHOWS])["stdout"]
        assert seen in ("warm 0\n", "cold 0\n")
        return seen.startswith("warm")

    wait_until(is_warm, 60, "no program is warm")


@needs_opcache
@pytest.mark.parametrize("more", ["", "opcache.protect_memory=1"])
def test_M01_a_zygote_with_common_memory_serves_nobody(own, stage, work, more):
    """In every language: here one whose words ask for it. With `protect_memory` it is read-only until the program changes that."""
    data = shutil.copytree(stage.data, work / "data")
    words = (data / "languages" / "php.yaml").read_text()
    changed = words.replace("opcache.enable_cli=0", "opcache.enable_cli=1")
    assert changed != words
    if more:
        changed = changed.replace("memory_limit=-1", more)
    (data / "languages" / "php.yaml").write_text(changed)
    pool = own("--spares", "2", env={"ATOLL_DATA_DIR": str(data)})
    front = pool.any_front().variant(env={"ATOLL_DATA_DIR": str(data)})
    result = front.result(["-l", "php", "-c", SHOWS])
    assert result["stdout"] == "cold 1\n", result
    said = next(lines_of(pool, 60), "nothing")
    assert "php maps memory that all programs forked from it could write to" in said, said
    for _ in range(5):
        assert front.result(["-l", "php", "-c", SHOWS])["stdout"] == "cold 1\n"
