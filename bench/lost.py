#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Is anything lost, or lost in silence? Runs the tests of every such case in one go and prints a table.

    bench/lost.py

A case is a row of CASES: what is tried, the tests that hold it. The tests run through `./dev test` in this source tree, which builds what
they need; as root, each runs as root and rootless where it can. Exits with 0 when every case was tried and held.
"""

import pathlib
import subprocess
import sys
import xml.etree.ElementTree as xml

ROOT = pathlib.Path(__file__).resolve().parent.parent
REPORT = ROOT / "build-results" / "selected.xml"

CASES = [
    ("a damaged history is put aside aloud, and repaired", "test/crash/test_lost.py", ("test_a_damaged_history", "test_damage_in_the_middle")),
    ("only operators repair; without a history a sentence says so", "test/crash/test_lost.py", ("test_repair_is_for_operators",)),
    ("callbacks that are off are refused, not forgotten", "test/http/test_api_run.py", ("test_callbacks",)),
    ("callbacks of interrupted executions come from the next process", "test/crash/test_lost.py", ("test_callbacks_after_a_kill",)),
    ("a full disk: results end, new work is refused, all is well later", "test/crash/test_crash_disk.py", ("test_C11_disk_full", "test_C11_killed_with_a_full_disk")),
    ("a full disk: a small directory, runs without history", "test/crash/test_crash_disk.py", ("test_full_disk_of_a_small_state_directory",)),
    ("root without CAP_KILL ends on a signal", "test/daemon/test_serve_monitor.py", ("test_root_without_the_right_to_signal",)),
    ("what a program without network tried is named", "test/security/test_network.py", ("test_what_a_program_without_network_tried",)),
    ("a daemon that was named and does not answer is an error", "test/cli/test_cli_serve.py", ("test_a_daemon_that_was_named_has_no_substitute",)),
    ("files of a session outlive its interpreter", "test/session/test_session_files.py",
     ("test_files_outlive_the_interpreter", "test_files_outlive_other_interpreters", "test_files_of_a_full_disk_are_kept")),
    ("a value too large for its result is there as a whole", "test/session/test_session_values.py", ("test_a_large_value", "test_a_value_beyond_every_bound")),
    ("acknowledged is durable, at any instant of a kill", "test/crash/test_crash.py", ("test_C05_durable_before_acknowledged",)),
]


def outcomes():
    """{test: [(passed, seconds)]}: parameters and modes are one test."""
    found = {}
    for case in xml.parse(REPORT).iter("testcase"):
        bad = any(case.find(word) is not None for word in ("failure", "error", "skipped"))
        found.setdefault(case.get("name").split("[")[0], []).append((not bad, float(case.get("time"))))
    return found


def main():
    files = sorted({file for _, file, _ in CASES})
    names = sorted({name for _, _, tests in CASES for name in tests})
    REPORT.unlink(missing_ok=True)
    run = subprocess.run([ROOT / "dev", "test", *files, "-k", " or ".join(names)], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if not REPORT.exists():
        sys.exit(run.stdout[-4000:] + "bench/lost.py: the tests did not run")
    found, held = outcomes(), True
    for what, _, tests in CASES:
        results = [result for name in tests for result in found.get(name, [(False, 0.0)])]
        well = all(passed for passed, _ in results)
        held = held and well
        print(f"{'held' if well else 'LOST':5} {sum(passed for passed, _ in results):3} of {len(results):3}  {sum(s for _, s in results):6.1f} s  {what}")
    if not held:
        sys.exit("\n".join(line for line in run.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))))


if __name__ == "__main__":
    main()
