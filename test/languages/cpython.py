# SPDX-License-Identifier: Apache-2.0
"""Runs modules of CPython's own tests and prints what became of each test: one JSON object {id: "ok" or why not}.

    cpython.py SECONDS MODULE…      each module in a process of its own, for SECONDS at most
    cpython.py --one MODULE         one module, in this process

It runs outside as well as inside a sandbox, see test_cpython.py.
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest


class Outcomes(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.seen = {}

    def startTest(self, test):
        super().startTest(test)
        self.seen[test.id()] = "ok"

    def addSkip(self, test, reason):
        self.seen[test.id()] = f"skipped: {reason}"

    def addFailure(self, test, err):
        self.seen[test.id()] = f"{err[0].__name__}: {err[1]}"[:300]

    addError = addFailure

    def addSubTest(self, test, subtest, err):
        if err:
            self.addFailure(test, err)

    def addExpectedFailure(self, test, err):
        self.seen[test.id()] = "fails as expected"


def run_one(name):
    from test import support
    # test_socketserver calls loopback a network; other modules would look for hosts on the Internet.
    support.use_resources = ["network"] if name == "test_socketserver" else []
    outcomes = Outcomes()
    try:
        unittest.defaultTestLoader.loadTestsFromName(f"test.{name}").run(outcomes)
    except unittest.SkipTest as reason:
        outcomes.seen[name] = f"skipped: {reason}"
    return outcomes.seen


def run_each(seconds, names):
    seen = {}
    for name in names:
        with tempfile.TemporaryDirectory() as place:
            answer = os.path.join(place, "answer")
            with open(os.path.join(place, "log"), "w+", encoding="utf-8", errors="replace") as log:
                child = subprocess.Popen([sys.executable, os.path.abspath(__file__), "--one", name, answer], cwd=place, stdin=subprocess.DEVNULL,
                                         stdout=log, stderr=log, start_new_session=True)
                try:
                    code = child.wait(seconds)
                except subprocess.TimeoutExpired:
                    os.killpg(child.pid, 9)
                    code = child.wait()
                log.seek(0)
                try:
                    with open(answer, encoding="utf-8") as file:
                        seen.update(json.load(file))
                except OSError:
                    seen[name] = f"ended with {code}: {log.read()[-300:]}"
    return seen


if __name__ == "__main__":
    if sys.argv[1] == "--one":
        outcomes = run_one(sys.argv[2])
        with open(sys.argv[3], "w", encoding="utf-8") as file:
            json.dump(outcomes, file)
        os._exit(0)
    print(json.dumps(run_each(float(sys.argv[1]), sys.argv[2:])))
