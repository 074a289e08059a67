# SPDX-License-Identifier: Apache-2.0
"""Everything that a killed daemon kept warm is gone within two seconds, on a busy machine as well."""
import contextlib
import os
import signal
import subprocess
import threading
from pathlib import Path

import pytest

import oracle
from chaos import Ledger, start  # noqa: F401, a fixture

pytestmark = pytest.mark.alone
DEATH_MAX_S = 10.0  # the promise is two, on a machine that is not stalled; who is not helped takes a minute
SHAPES = [("python", "print(1)"), ("bash", "echo 1"), ("javascript", "console.log(1)"), ("ruby", "puts 1"), ("perl", "print 1"),
          ("lua", "print(1)"), ("c", "int main(void) { return 0; }")]


def fill_pool(survivor, least=30):
    """Runs of many shapes until so many processes are kept warm."""
    def ask():
        for language, code in SHAPES:
            for memory in ("128m", "256m"):
                survivor.web.execute(language, code, limits={"memory": memory, "timeout": 20})
    for _ in range(6):
        clients = [threading.Thread(target=ask) for _ in range(4)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        if len(oracle.below(survivor.daemon.child("broker"))) >= least:
            return
    raise AssertionError(f"only {len(oracle.below(survivor.daemon.child('broker')))} processes are kept")


def put_behind(pids, most):
    """Gives sandboxes the lowest weight of all processes, as they have while they are made and after their reply: their death is slow, too."""
    groups = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
                _, names, path = line.split(":", 2)
                if "cpu" in names.split(","):
                    groups.add(Path("/sys/fs/cgroup/cpu" + path, "cpu.idle"))
    done = 0
    for file in sorted(g for g in groups if "atoll" in str(g))[:most]:
        with contextlib.suppress(OSError):
            file.write_text("1")
            done += 1
    return done


def tell(pids, sig):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, sig)


@contextlib.contextmanager
def busy_host():
    """Two programs for each processor that never wait."""
    burners = [subprocess.Popen(["/bin/sh", "-c", "while :; do :; done"]) for _ in range(2 * os.cpu_count())]
    oracle.KEPT.update(b.pid for b in burners)
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()
        oracle.KEPT.difference_update(b.pid for b in burners)


@pytest.mark.parametrize("target", ["monitor", "broker"])
def test_C01_a_full_pool_dies_in_time(start, mode, target):
    """In time, however much is kept warm, however little of the processor the dying are given."""
    survivor, ledger = start("--running", "4", "--set", "pool.spares=16", "--set", "pool.memory=1g"), Ledger()
    fill_pool(survivor)
    mark = survivor.sleeper(ledger)
    with busy_host():
        family = oracle.below(survivor.daemon.child("broker"))
        # The broker that ends frees all of them; after one that was killed, its successor does, and few can be so then.
        n = put_behind(family, len(family) if target == "monitor" else os.cpu_count())
        assert n or mode == "rootless" or not os.path.exists("/sys/fs/cgroup/cpu/cpu.shares")
        survivor.kill(target, mark, seconds=DEATH_MAX_S)


@pytest.mark.modes("root")
def test_C02_who_cannot_look_dies_too(start):
    """The kernel ends what a killed broker leaves: who is stopped cannot see that a socket was closed."""
    survivor, ledger = start("--running", "4"), Ledger()
    fill_pool(survivor)
    mark = survivor.sleeper(ledger)
    family = oracle.below(survivor.daemon.child("broker"))
    try:
        tell(family, signal.SIGSTOP)
        survivor.kill("broker", mark, seconds=DEATH_MAX_S)
    finally:
        tell(family & survivor.strays(), signal.SIGCONT)
