# SPDX-License-Identifier: Apache-2.0
"""The last line of ./dev test adds up meson's and pytest's records and hides nothing."""
import json
import subprocess
import sys
from pathlib import Path

TALLY = Path(__file__).resolve().parents[2] / "tools" / "tally.py"


def tally(folder):
    done = subprocess.run([sys.executable, TALLY, folder], capture_output=True, text=True)
    return done.returncode, done.stdout.splitlines()


def record(name, result, stdout=""):
    return json.dumps({"name": name, "result": result, "stdout": stdout}) + "\n"


def failed(path):
    return subprocess.run([sys.executable, TALLY, "--failed", path], capture_output=True, text=True, check=True).stdout.split("\0")[:-1]


def test_which_failed(tmp_path):
    log, cache = tmp_path / "unit.json", tmp_path / "lastfailed"
    assert failed(cache) == []
    log.write_text(record("atoll:unit / base-buf", "OK") + record("atoll:unit / engine-lost", "FAIL") + record("atoll:unit / loop", "TIMEOUT"))
    cache.write_text(json.dumps({"test/a.py::test_b[x y]": True}))
    assert failed(log) == ["engine-lost", "loop"] and failed(cache) == ["test/a.py::test_b[x y]"]


def test_counts_every_kind(tmp_path):
    (tmp_path / "unit.json").write_text(
        record("base-buf", "OK", "TAP version 13\n1..2\nok 1 - one\nok 2 - two\n")
        + record("loop", "OK", "1..1\nok 1 - x # SKIP no epoll\n") + record("lint-size", "OK"))
    (tmp_path / "integration.xml").write_text(
        '<testsuites><testsuite><testcase classname="a" name="b"/><testcase classname="a" name="c">'
        '<skipped message="needs root"/></testcase></testsuite></testsuites>')
    (tmp_path / "steps.txt").write_text("pass build gcc\n")
    code, lines = tally(tmp_path)
    assert code == 0
    assert lines[-1] == "5 passed, 0 failed, 2 skipped"
    assert "SKIPPED 1 x needs root" in lines and "SKIPPED 1 x no epoll" in lines


def test_where_the_time_went(tmp_path):
    (tmp_path / "times.tsv").write_text("70\tbuild gcc\n9\tintegration\n")
    (tmp_path / "integration.xml").write_text(
        '<testsuites><testsuite><testcase classname="a" name="b" time="3.5"/><testcase classname="a" name="c" time="8">'
        '<properties><property name="cpu" value="6.25"/></properties></testcase><testcase classname="d" name="e" time="9"/></testsuite></testsuites>')
    (tmp_path / "unit.json").write_text(json.dumps({"name": "atoll:unit / loop", "result": "OK", "duration": 4.25}) + "\n")
    code, lines = tally(tmp_path)
    assert code == 0 and [" ".join(line.split()) for line in lines] == [
        "TIME 70 s build gcc", "TIME 9 s integration (its tests: 20 s, CPU: 6 s)",
        "FILE 11.5 s integration a", "FILE 9.0 s integration d", "FILE 4.2 s unit loop", "CPU 6.2 s integration a",
        "TEST 9.0 s integration d.e", "TEST 8.0 s integration a.c", "TEST 4.2 s unit loop", "TEST 3.5 s integration a.b",
        "4 passed, 0 failed, 0 skipped"]


def test_failures_are_named(tmp_path):
    (tmp_path / "unit.json").write_text(
        record("base-buf", "FAIL", "1..2\nok 1 - one\nnot ok 2 - two\n") + record("lint-size", "FAIL", "src/a.c:1: too long"))
    (tmp_path / "steps.txt").write_text("fail build clang\n")
    code, lines = tally(tmp_path)
    assert code == 1 and lines[-1] == "1 passed, 3 failed, 0 skipped"
    assert [line for line in lines if "base-buf: two" in line] and [line for line in lines if "build clang" in line]


def test_a_crash_after_ok_is_a_failure(tmp_path):
    (tmp_path / "unit.json").write_text(record("loop", "ERROR", "1..2\nok 1 - one\n"))
    assert tally(tmp_path) == (1, ["FAILED  unit loop  error", "1 passed, 1 failed, 0 skipped"])


def test_nothing_run_is_a_failure(tmp_path):
    assert tally(tmp_path) == (1, ["0 passed, 0 failed, 0 skipped"])


def junit(path, **outcomes):
    path.parent.mkdir(parents=True, exist_ok=True)
    cases = "".join(f'<testcase classname="t" name="{name}">{"" if good else "<failure message=%r/>" % name}</testcase>' for name, good in outcomes.items())
    path.write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")


def test_only_what_passes_every_time_alone_is_unstable(tmp_path):
    junit(tmp_path / "suite.xml", good=True, stalled=False, wrong=False, once=False)
    junit(tmp_path / "other.xml", stalled=False)  # the same name in a suite that did not run again
    junit(tmp_path / "again/1/suite.xml", stalled=True, wrong=False, once=True)
    assert tally(tmp_path)[1][-1] == "1 passed, 4 failed, 0 skipped"
    junit(tmp_path / "again/2/suite.xml", stalled=True, wrong=False, once=False)
    code, lines = tally(tmp_path)
    assert code == 1 and lines[-1] == "1 passed, 3 failed, 1 unstable, 0 skipped"
    assert [line.split()[:3] for line in lines if line.startswith("UNSTABLE")] == [["UNSTABLE", "suite", "t.stalled"]]


def test_unstable_alone_is_green_and_printed(tmp_path):
    junit(tmp_path / "suite.xml", good=True, stalled=False)
    for look in "12":
        junit(tmp_path / "again" / look / "suite.xml", stalled=True)
    assert tally(tmp_path) == (0, ["UNSTABLE suite t.stalled  stalled", "1 passed, 0 failed, 1 unstable, 0 skipped"])
