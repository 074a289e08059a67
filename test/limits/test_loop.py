# SPDX-License-Identifier: Apache-2.0
"""Many runs, a third of them killed by limits: nothing stays, and one broker's memory and fds stay flat.

300 runs by default, a third as many of an ordinary user; ATOLL_LOOP=5000 for the full bar.
"""
import os
import time


RUNS = int(os.environ.get("ATOLL_LOOP", "300"))


def request(n):
    """Two good runs, then one that hits a limit: time, memory, pids, output or disk in turn."""
    if n % 3 != 2:
        return {"language": "bash", "code": f"echo {n} > f; echo {n}"}, ("success",)
    kind = n // 3 % 5
    code, limits, statuses = [
        ("sleep 9", {"timeout": 0.05}, ("timeout",)),
        ("x=$(head -c 40000000 /dev/zero | tr '\\0' a); exit 1", {"memory": "16m", "timeout": 30}, ("limit", "error")),
        ("exec perl -e 'for (1..9) { my $p = fork; defined $p or exit 1; $p or sleep 9 }'", {"pids": 5, "timeout": 30},
         ("limit", "error")),
        ("yes", {"output_total": "256k", "output": "64k", "timeout": 30}, ("limit",)),
        ("head -c 3000000 /dev/zero > big || exit 1", {"disk": "1m", "timeout": 30}, ("limit",)),
    ][kind]
    return {"language": "bash", "code": code, "limits": limits}, statuses


def test_one_broker_stays_flat(library, mode):
    runs = RUNS if mode == "root" else RUNS // 3

    def batch(first, count):
        for n in range(first, first + count):
            body, statuses = request(n)
            rc, result, problem = library.run(body)
            assert rc == 0, problem
            assert result["status"] in statuses, (n, body, result)

    warm = max(30, runs // 10)
    batch(0, warm)
    before = library.health()
    batch(warm, max(runs - warm, 1))
    after, end = library.health(), time.monotonic() + 25
    while any(two["fds"] > one["fds"] for one, two in zip(before["children"], after["children"])) and time.monotonic() < end:
        time.sleep(0.1)  # what the last run had is given back behind its result
        after = library.health()
    assert len(after["children"]) == len(before["children"]) <= 1
    for one, two in zip([before["self"]] + before["children"], [after["self"]] + after["children"]):
        assert one["pid"] == two["pid"], "the broker was replaced"
        assert two["fds"] <= one["fds"], (one, two)
        assert two["hwm_kib"] - one["hwm_kib"] < 512, (one, two)


def test_command_line_in_a_loop(atoll, measure):
    from oracle import leaked_since, snapshot
    before = snapshot()
    peaks = []
    for n in range(max(RUNS // 10, 30)):
        body, statuses = request(n)
        options = [f"--{key.replace('_', '-')}={value}" for key, value in body.get("limits", {}).items()]
        result, peak = atoll.peak_kib(["-l", "bash", *options, "-c", body["code"]], measure)
        assert result["status"] in statuses, (n, result)
        peaks.append(peak)
    assert leaked_since(before) == {}
    assert max(peaks[len(peaks) // 2:]) - max(peaks[:len(peaks) // 2]) < 2048, peaks
