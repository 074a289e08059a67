# SPDX-License-Identifier: Apache-2.0
"""What bench/ computes from its samples: quantiles, the order of samples, verdicts, the picture, memory by sandbox."""

import mmap
import os
import pathlib
import subprocess
import sys
import time
import xml.etree.ElementTree as xml

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import memory  # noqa: E402
import picture  # noqa: E402
import stats  # noqa: E402


@pytest.mark.parametrize("q, value", [(0, 10), (0.25, 20), (0.5, 30), (0.9, 46), (1, 50)])
def test_quantile_lies_between_neighbours(q, value):
    assert stats.quantile([10, 20, 30, 40, 50], q) == pytest.approx(value)


def test_describe_is_in_milliseconds():
    row = stats.describe([3_000_000, 1_000_000, 2_000_000])
    assert (row["n"], row["min"], row["p50"]) == (3, 1.0, 2.0)
    assert row["p50"] < row["p90"] < row["p99"] < 3


def test_spread_gives_everybody_their_share_in_changing_order():
    rounds = stats.spread(["a", "b", "c", "rare"], 40, {"a": 40, "b": 40, "c": 40, "rare": 10}.get, seed=1)
    assert all(sorted(row)[:3] == ["a", "b", "c"] for row in rounds)
    with_rare = [i for i, row in enumerate(rounds) if "rare" in row]
    assert with_rare == list(range(3, 40, 4))
    assert len({tuple(name for name in row if name != "rare") for row in rounds}) == 6
    assert rounds == stats.spread(["a", "b", "c", "rare"], 40, {"a": 40, "b": 40, "c": 40, "rare": 10}.get, seed=1)


def report(warm_rate, thousand_ms):
    return {"latency": {"python": {"bare": {"p50": 12.0}, "docker-run": {"p50": 300.0}},
                        "ready": {"warm": {"p50": 0.6}}, "pandas": {"warm": {"p50": 0.61}}},
            "rate": {"python": {"bare": {"8": 100.0}, "warm": {"8": warm_rate}}},
            "live": {"1": {"p50": 0.2}, "100": {"p50": 9.0}, "1000": {"p50": thousand_ms}},
            "memory": {"spare": {"private_dirty_mib": 6.1, "kernel_mib": 0.4}}}


def verdicts(found):
    return {row["what"]: row["met"] for row in stats.judge(found)}


def test_bars_are_judged_on_both_sides():
    good, bad = verdicts(report(250.0, 0.3)), verdicts(report(249.0, 0.31))
    rate, live = "Python warm, runs/s at 8 ÷ bare", "Python warm, p50 with 1,000 live ÷ with 1"
    assert (good[rate], bad[rate], good[live], bad[live]) == (True, False, True, False)
    assert good["numpy+pandas ready, print(1), p50 ÷ bare python3 print(1)"] is True
    assert good["numpy+pandas ready, print(1), p50 ÷ docker run print(1)"] is True
    assert good["  a sum of numpy's instead ÷ bare python3 print(1)"] is False
    assert good["parked numpy+pandas spare, Private_Dirty"] is False


def test_what_was_not_measured_is_neither_met_nor_missed():
    found = verdicts({"latency": {}, "rate": {}, "live": {"1": {"p50": 1}, "50": {"p50": 1}}, "memory": {}})
    assert set(found.values()) == {None}
    assert "not measured" in "\n".join(stats.bars_table(stats.judge({"latency": {}, "rate": {}, "live": {}})))


def test_picture_is_drawn_to_scale():
    def row(title, p50):
        return {"title": title, "kind": "peer", "latency": {"p25": p50 * 0.9, "p50": p50, "p90": p50 * 1.1}}

    drawing = xml.fromstring(picture.draw([("a < b", [row("one", 0.5), row("ten", 5), row("hundred", 50)])], "x & y"))
    bars = [float(r.get("width")) for r in drawing.iter("{http://www.w3.org/2000/svg}rect") if r.get("class") == "peer"]
    assert bars[2] - bars[1] == pytest.approx(bars[1] - bars[0], abs=0.2)
    edge = int(drawing.get("height"))
    assert all(float(t.get("y")) <= edge for t in drawing.iter("{http://www.w3.org/2000/svg}text"))


def test_fields_are_bytes():
    assert memory.fields("Rss:   12 kB\nPss_Dirty:\t3 kB\nVmFlags: rd\n") == {"Rss": 12288, "Pss_Dirty": 3072}


def test_descendants_are_found_and_measured():
    shell = subprocess.Popen(["/bin/sh", "-c", "sleep 60 & echo up; wait"], stdout=subprocess.PIPE)
    try:
        assert shell.stdout.readline() == b"up\n"
        found = memory.descendants(shell.pid)
        assert shell.pid in found and len(found) == 2 and os.getpid() not in found
        assert memory.total(found)["pss"] > memory.total([shell.pid])["pss"] > 0
        assert memory.cells(shell.pid) == []
    finally:
        for pid in memory.descendants(shell.pid) - {shell.pid}:
            os.kill(pid, 9)
        shell.wait()
        shell.stdout.close()


def test_what_was_spent_grows():
    seconds, faults = memory.spent()
    end = time.monotonic() + 20
    more, later = faults, seconds
    # The kernel adds up a process's time when it is next scheduled, and not with every reading.
    while (later <= seconds or more < faults + 512) and time.monotonic() < end:
        with mmap.mmap(-1, 1 << 22) as pages:  # malloc may give memory that this process has touched before
            pages[::4096] = bytes(1024)
        later, more = memory.spent()
    assert later > seconds and more >= faults + 512


def test_cost_is_a_run_s_share():
    row = stats.per_run([(100, 0.2, 40_000), (300, 1.0, 120_000)])
    assert row == {"runs": 400, "cpu_ms": pytest.approx(3.0), "faults": 400}
    table = list(stats.cost_table([("warm", {"p50": 2.0, "p90": 3.0, "levels": {"1": row, "8": row}})], 8.0))
    assert table[0].split("  ")[-1] == "faults at 8" and "0.25" in table[1]
