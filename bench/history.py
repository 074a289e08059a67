#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Does the history cost the same with a million rows as with ten thousand? Runs bench-history for both and compares.

    bench/history.py [--rows N] [--build DIR] [--keep DIR]     exit status 1 when a bar was missed

Writes and pages without words are judged by the ratio of the large store to the small one. A search of words has a bound of
its own, on its first page. The small store is measured before and after the large one and the better of the two counts for
it: a busy moment then makes the bar stricter, not looser. Pages of 50 begin at eight places among the newest rows in both;
those of `_time` begin where a quarter of all rows is newer. `few` are as many in both stores, and so lie a hundred times
further apart in the large one. `tick_wordy`, where p99 is the slowest, is history_tick() after executions of which each wrote
8 KiB of new words. --keep uses a large store that an earlier call left there, or leaves one.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BAR = 1.5
BOUND_US = 1000
WORDS_BOUND_US = 50000
SMALL = 10000
JUDGED = ("insert", "finish", "record", "both_in_groups_of_8", "page", "page_time", "page_status", "page_rare_status", "page_few_status",
          "page_statuses", "page_language", "page_few_language", "page_label", "page_rare_label", "page_few_label", "page_labels",
          "page_caller", "page_caller_time", "page_few_caller", "page_caller_language", "page_caller_success", "page_caller_status",
          "page_caller_label", "page_few_caller_success", "page_few_caller_status", "page_few_caller_label", "page_few_caller_few_status",
          "page_language_status", "page_language_label", "page_few_language_label", "page_few_status_label")
WORDS = ("page_word", "page_rare_word", "page_few_word", "page_words", "page_mixed_words", "page_few_words", "page_no_word",
         "page_no_words", "page_disjoint_words", "page_word_time", "page_rare_word_time", "page_few_word_time", "page_words_time",
         "page_mixed_words_time", "page_word_caller", "page_disjoint_words_caller", "page_word_few_caller", "page_rare_word_few_caller",
         "page_few_word_caller", "page_word_language", "page_word_few_language", "page_word_label", "page_word_few_label",
         "page_word_rare_status", "page_word_few_status", "page_rare_word_status")
# No like questions, and so a bound in place of the ratio: of the 5000 programs, each ran 200 times in a large store and twice in
# a small one; a large store's rows ended in 17 minutes, and the sums of each minute are read.
BOUNDED = {**{name: WORDS_BOUND_US for name in WORDS}, "past": BOUND_US, "stats": BOUND_US}
SHOWN = JUDGED + tuple(BOUNDED) + ("tick", "tick_wordy")
LIMIT_S = 480  # of all together


def best(pairs):
    """Of what was measured in several rounds, the one that nothing else disturbed."""
    found = {}
    for name, value in pairs:
        if name not in found or not isinstance(value, dict) or value["p50_us"] < found[name]["p50_us"]:
            found[name] = value
    return found


def measure(program, rows, folder, deadline):
    done = subprocess.run([program, str(rows), folder], check=True, capture_output=True, text=True,
                          timeout=max(1, deadline - time.monotonic()))
    report = json.loads(done.stdout, object_pairs_hook=best)
    if report["rows"] < rows:
        raise ValueError(f"{folder} has {report['rows']:,} rows and not {rows:,}: remove it, or name another")
    return report


def better(a, b):
    return {name: min(a[name], b[name], key=lambda m: m["p50_us"]) for name in SHOWN}


def compare(build, rows, place, keep=None):
    """{"rows", "costs": {name: {"small", "large", "ratio", …}} of what is judged, "shown": the same of the rest}"""
    program = pathlib.Path(build) / "src" / "engine" / "history" / "bench-history"
    deadline = time.monotonic() + LIMIT_S
    with tempfile.TemporaryDirectory(prefix="atoll-history-", dir=place) as folder:
        before = measure(program, SMALL, f"{folder}/before", deadline)
        large = measure(program, rows, keep or f"{folder}/large", deadline)
        after = measure(program, SMALL, f"{folder}/after", deadline)
    small = better(before, after)
    lines = {name: {"small": small[name]["p50_us"], "large": large[name]["p50_us"], "p99": large[name]["p99_us"],
                    "ratio": large[name]["p50_us"] / small[name]["p50_us"],
                    "deep": large.get(f"{name}_deep", {}).get("p50_us")} for name in SHOWN}
    return {"rows": rows, "fill_s": large["fill_s"], "digest_us_a_row": large["digest_us_a_row"],
            "costs": {name: lines[name] for name in JUDGED},
            "shown": {name: row for name, row in lines.items() if name not in JUDGED}}


def table(report):
    yield f"{'history, p50, µs':<28}{SMALL:>10,}{report['rows']:>12,}{'ratio':>8}{'p99':>10}{'further back':>14}"
    for mark, rows in (("*", report["costs"]), (" ", report["shown"])):
        for name, row in rows.items():
            deep = f"{row['deep']:>14.1f}" if row["deep"] else ""
            yield f"{name:<27}{mark}{row['small']:>10.1f}{row['large']:>12.1f}{row['ratio']:>8.2f}{row['p99']:>10.1f}{deep}"
    worst = max(row["ratio"] for row in report["costs"].values())
    slowest = max(report["shown"][name]["large"] for name in WORDS)
    yield (f"worst of * {worst:.2f}, bar {BAR}; slowest search {slowest / 1000:.1f} ms, bar {WORDS_BOUND_US // 1000}; "
           f"digest {report['digest_us_a_row']:.1f} µs a row; filled in {report['fill_s']:.0f} s")


def is_met(report):
    return (all(row["ratio"] <= BAR for row in report["costs"].values()) and
            all(report["shown"][name]["large"] <= bound for name, bound in BOUNDED.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    try:
        report = compare(options.build, options.rows, "/var/tmp", options.keep)
    except ValueError as problem:
        sys.exit(f"bench/history.py: {problem}")
    print("\n".join(table(report)))
    return 0 if is_met(report) else 1


if __name__ == "__main__":
    sys.exit(main())
