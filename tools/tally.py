#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Adds up what the test steps left behind and prints the one line `./dev test` ends with.

  tally.py FOLDER
  tally.py --failed RECORD

FOLDER holds one file a step: *.json (meson's testlog.json: a record a line, TAP in its stdout), *.xml
(pytest's JUnit), *.txt (lines "pass NAME" or "fail NAME", for steps such as a build), and times.tsv (lines "SECONDS, tab,
NAME", the time of each step; with it the longest tests and files are told, too). Every failure is
named, every skip is printed with its reason. A test that failed and then passed in each folder below
FOLDER/again, where it ran alone, is unstable: named and counted, but no failure. Exits with 1 when
something failed or nothing passed.

--failed prints the names of the tests that failed, each with a NUL behind it. RECORD is a *.json as above, or
what pytest's cache keeps of the last failures; a file that is not there means none.
"""

import collections
import json
import pathlib
import re
import sys
import xml.etree.ElementTree as xml

TAP = re.compile(r"^\s*(not )?ok\b(?:\s+\d+)?\s*(?:-\s*)?([^#\n]*)(?:#\s*(SKIP|TODO)\S*\s*(.*))?$", re.M | re.I)
PASSED, FAILED, SKIPPED, UNSTABLE = "passed", "failed", "skipped", "unstable"
LONGEST = 25  # so many tests, and files, are named
LOOKS = 2  # so often must a test that failed pass alone
MESON = {"OK": PASSED, "EXPECTEDFAIL": PASSED, "SKIP": SKIPPED}


def from_tap(name, record):
    """One outcome a TAP line; a program that died without saying `not ok` is a failure of its own."""
    outcomes = []
    for failed, title, directive, reason in TAP.findall(record["stdout"]):
        if (directive or "").upper() == "SKIP":
            outcomes.append((SKIPPED, f"{name}: {title.strip() or reason}", reason or "no reason given"))
        else:
            outcomes.append((FAILED if failed else PASSED, f"{name}: {title.strip()}", ""))
    if MESON.get(record["result"], FAILED) == FAILED and all(o[0] != FAILED for o in outcomes):
        outcomes.append((FAILED, name, record["result"].lower()))
    return outcomes


def from_meson(path):
    for line in path.read_text().splitlines():
        record = json.loads(line)
        name = f"{path.stem} {record['name'].split(' / ')[-1]}"
        if TAP.search(record.get("stdout") or ""):
            yield from from_tap(name, record)
        else:
            words = (record.get("stdout") or record["result"]).strip().splitlines()
            yield MESON.get(record["result"], FAILED), name, words[-1] if words else ""


def from_junit(path):
    for case in xml.parse(path).iter("testcase"):
        name = f"{path.stem} {case.get('classname')}.{case.get('name')}"
        kinds = {child.tag: child for child in case}
        if "failure" in kinds or "error" in kinds:
            child = kinds.get("failure", kinds.get("error"))
            yield FAILED, name, (child.get("message") or "").split("\n")[0]
        elif "skipped" in kinds:
            yield SKIPPED, name, kinds["skipped"].get("message") or "no reason given"
        else:
            yield PASSED, name, ""


def from_lines(path):
    for line in path.read_text().splitlines():
        word, _, name = line.partition(" ")
        yield (PASSED if word == "pass" else FAILED), name, ""


READERS = {".json": from_meson, ".xml": from_junit, ".txt": from_lines}


def outcomes_of(folder):
    for path in sorted(p for p in folder.iterdir() if p.suffix in READERS):
        yield from READERS[path.suffix](path)


def durations_of(folder):
    """(seconds, seconds of CPU, step, file or program, test) of each test. meson does not tell the CPU time."""
    for path in sorted(folder.iterdir()):
        if path.suffix == ".json":
            for record in map(json.loads, path.read_text().splitlines()):
                yield record.get("duration") or 0.0, 0.0, path.stem, record["name"].split(" / ")[-1], ""
        elif path.suffix == ".xml":
            for case in xml.parse(path).iter("testcase"):
                cpu = sum(float(p.get("value")) for p in case.iter("property") if p.get("name") == "cpu")
                yield float(case.get("time") or 0), cpu, path.stem, case.get("classname"), case.get("name")


def print_times(folder):
    """Where the time went: by step (tests that run beside each other have more seconds than their step), by file, by test.

    Files are also told by CPU time. When all processors are busy, that is what a file costs."""
    tests = list(durations_of(folder))
    inside, files, used, used_by = (collections.Counter() for _ in range(4))
    for seconds, cpu, step, file, _ in tests:
        inside[step] += seconds
        files[f"{step} {file}"] += seconds
        used[step] += cpu
        used_by[f"{step} {file}"] += cpu
    for line in (folder / "times.tsv").read_text().splitlines():
        seconds, _, name = line.partition("\t")
        details = [f"its tests: {inside[name]:.0f} s"] * bool(inside[name]) + [f"CPU: {used[name]:.0f} s"] * bool(used[name])
        print(f"TIME {int(seconds):6} s  {name}" + (f"  ({', '.join(details)})" if details else ""))
    for name, seconds in files.most_common(LONGEST):
        print(f"FILE {seconds:6.1f} s  {name}")
    for name, seconds in (+used_by).most_common(LONGEST):
        print(f"CPU  {seconds:6.1f} s  {name}")
    for seconds, _, step, file, test in sorted(tests, reverse=True)[:LONGEST]:
        print(f"TEST {seconds:6.1f} s  {step} {file}{test and '.' + test}")


def passed_alone(folder):
    """Names of the tests that passed, and did nothing else, in every later look."""
    looks = []
    for again in sorted((folder / "again").glob("*")):
        outcomes = list(outcomes_of(again))
        looks.append({name for outcome, name, _ in outcomes if outcome == PASSED} -
                     {name for outcome, name, _ in outcomes if outcome != PASSED})
    return set.intersection(*looks) if len(looks) >= LOOKS else set()


def print_failed(record):
    """As meson and pytest want to be told which tests to run."""
    names = []
    if record.suffix == ".json":
        lines = map(json.loads, record.read_text().splitlines())
        names = [line["name"].split(" / ")[-1] for line in lines if MESON.get(line["result"], FAILED) == FAILED]
    elif record.exists():
        names = json.loads(record.read_text())
    sys.stdout.write("".join(name + "\0" for name in names))
    return 0


def main(folder):
    counts = collections.Counter()
    reasons = collections.defaultdict(list)
    alone = passed_alone(folder)
    for outcome, name, reason in outcomes_of(folder):
        if outcome == FAILED and name in alone:
            outcome = UNSTABLE
        counts[outcome] += 1
        if outcome in (FAILED, UNSTABLE):
            print(f"{outcome.upper():7} {name}  {reason}".rstrip())
        elif outcome == SKIPPED:
            reasons[reason].append(name)
    for reason, names in sorted(reasons.items()):
        print(f"SKIPPED {len(names)} x {reason}")
        for name in names:
            print(f"          {name}")
    if (folder / "times.tsv").exists():
        print_times(folder)
    print(", ".join(f"{counts[key]} {key}" for key in (PASSED, FAILED, UNSTABLE, SKIPPED) if counts[key] or key != UNSTABLE))
    return 1 if counts[FAILED] or not counts[PASSED] else 0


if __name__ == "__main__":
    run = print_failed if sys.argv[1] == "--failed" else main
    sys.exit(run(pathlib.Path(sys.argv[-1])))
