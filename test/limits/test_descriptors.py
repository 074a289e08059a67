# SPDX-License-Identifier: Apache-2.0
"""Descriptors of a broker: what a live run takes, and what happens when there are none left."""
import json
import os
import re
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import oracle
from daemon import Daemon
from resident import own, wait_until
from web import Web

quick = pytest.mark.quick
# Kept open because that is quicker, within a share of the limit (box/cgroup-open.h): none of these is a run's own.
KEPT = re.compile(r"/atoll-[^/]+/[^/]+$|/net/(snmp6?|netstat|rt6_stats|sockstat|ipv4/route/flush)$")
# Its sockets, its pidfd, two directories, /dev, its network namespace; its program's pidfd; and its caller's socket.
MOST = {"warm": 10, "cold": 7}
WAITS = "import sys\nprint('begun', flush=True)\nsys.stdin.read()\nprint('ended')"
CROWDED = "the sandbox broker has too many runs for its limit of {} open files: try again when one has ended, " \
          "or raise the limit (ulimit -n, LimitNOFILE=)"


def few_files(n):
    return ["prlimit", f"--nofile={n}:{n}"]


def links(pid):
    found = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            found.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
        except OSError:
            pass  # closed meanwhile
    return found


def steady(pid):
    """What is open, once nothing is made or removed any more."""
    seen = []

    def is_steady():
        seen.append(sorted(links(pid)))
        return len(seen) >= 50 and seen[-1] == seen[-50]

    wait_until(is_steady, 90, "its descriptors come and go")
    return seen[-1]


def sandboxes(pool):
    """How many there are, with those that were made ahead."""
    return sum(above == pool.pid and state != "Z" and oracle.has_own_pids(pid) for pid, (above, state) in oracle.parents().items())


def waiting(front):
    """A run, and its first word: it has begun and waits. Nothing: it was refused."""
    run = front.popen(["run", "-l", "python", "-c", WAITS], stdin=subprocess.PIPE)
    return run, run.stdout.readline()


def let_go(run):
    out, err = run.communicate(timeout=60)
    return run.returncode, out, err.decode()


@pytest.mark.parametrize("kind", ["warm", "cold"])
def test_what_a_live_run_takes(own, kind):
    """And that is all: the control files that a broker keeps open for runs stay within a share of the limit, however many runs there are."""
    limit, spares = 480, int(kind == "warm")
    pool = own("--spares", str(spares), wrap=few_files(limit))
    if spares:
        pool.front().until_warm()
    runs, counts = [], []
    try:
        for n in (3, 6):
            for _ in range(n):
                wait_until(lambda: sandboxes(pool) >= len(runs) + spares, 25, "nothing is made ahead")
                runs.append(waiting(pool.any_front()))
                assert runs[-1][1] == b"begun\n", let_go(runs[-1][0])
            wait_until(lambda: sandboxes(pool) == len(runs) + spares, 25, "nothing is made ahead")
            found = steady(pool.pid)
            counts.append(sum(not KEPT.search(link) for link in found))
            # A group may have its files even where the share is used up.
            assert len(found) - counts[-1] <= limit // 10 + limit // 40 + 16, found
        assert counts[1] - counts[0] <= 6 * MOST[kind], found
    finally:
        ended = [let_go(run) for run, _ in runs]
    assert ended == [(0, b"ended\n", "")] * len(runs)


@quick
def test_something_is_ready_beside_many(own):
    """Live runs have most of the descriptors, and the next one is warm none the less."""
    limit, runs = 300, []
    pool = own("--spares", "1", wrap=few_files(limit))
    pool.front().until_warm()
    try:
        while len(os.listdir(f"/proc/{pool.pid}/fd")) < limit * 0.6:
            wait_until(lambda: sandboxes(pool) == len(runs) + 1, 25, "nothing is made ahead")
            runs.append(waiting(pool.any_front()))
            assert runs[-1][1] == b"begun\n", let_go(runs[-1][0])
        wait_until(lambda: sandboxes(pool) == len(runs) + 1, 25, "nothing is made ahead")
    finally:
        ended = [let_go(run) for run, _ in runs]
    assert ended == [(0, b"ended\n", "")] * len(runs) and len(runs) > 5


@pytest.mark.parametrize("limit", [128, 200])
def test_a_pool_without_descriptors(own, limit):
    """A request that finds no room is refused and may be sent again; the runs that are under way are not disturbed."""
    pool = own("--spares", "2", wrap=few_files(limit))
    front = pool.any_front()
    with ThreadPoolExecutor(8) as threads:
        runs = list(threads.map(lambda _: waiting(front), range(40)))
    try:
        # How many depends on who is heard at all: others do it by themselves.
        refused = [let_go(run) for run, word in runs if word == b""]
        assert len(refused) >= 1 and set(refused) == {(125, b"", f"atoll: {CROWDED.format(limit)}\n")}, refused
    finally:
        ended = [let_go(run) for run, word in runs if word]
    assert len(ended) >= 2 and set(ended) == {(0, b"ended\n", "")}, ended
    # Descriptors on their way count for all processes of this user, other tests' included: the refusal is the same.
    done = front.run(["run", "--json", "-l", "python", "-c", "print(1)"])
    end = time.monotonic() + 20
    while done.returncode == 125 and CROWDED.format(limit) in done.out and time.monotonic() < end:
        done = front.run(["run", "--json", "-l", "python", "-c", "print(1)"])
    assert json.loads(done.out)["stdout"] == "1\n"


def patiently(web, request):
    """The answer, when it is not to ask again later."""
    end = time.monotonic() + 60
    while (answer := web.post("/v1/execute", request, timeout=60)).status == 429 and time.monotonic() < end:
        time.sleep(0.2)
    return answer


def test_a_daemon_with_few_descriptors(atoll, work):
    """It says how many it can run at once, and the others wait for their turn. Sandboxes that are torn down still hold descriptors, so
    the broker may have no room for the next run, which the caller is told."""
    daemon = Daemon(atoll, work, "--running", "500", wrap=few_files(360))
    try:
        said = daemon.wait_record("the limit of open files is too low for queue.running; raise it (ulimit -n, LimitNOFILE=)")
        assert (said["files"], said["asked"], said["running"]) == (360, 500, 12)
        web = Web(daemon.host, daemon.port)
        with ThreadPoolExecutor(40) as threads:
            results = list(threads.map(lambda i: patiently(web, {
                "language": "python", "code": f"import time\ntime.sleep(1)\nprint({i})\nopen('made', 'w').write('x' * 9)",
                "collect": ["*"]}), range(40)))
        assert {answer.status for answer in results} == {200}, results
        assert {answer.json()["status"] for answer in results} == {"success"}, results
        assert daemon.brokers() == 1
    finally:
        assert daemon.end() == 0
