# SPDX-License-Identifier: Apache-2.0
"""How the outputs of tests are judged: checkers by name and programs of the caller's; points."""
import secrets

import pytest

import oracle
from resident import wait_until
from web import problem


def judged(web, code, *tests, language="python", **more):
    result = web.post("/v1/execute", {"language": language, "code": code, "tests": list(tests), **more}, timeout=60).json()
    assert len(result["tests"]) == len(tests), result
    return result


def verdicts(result):
    return [test["verdict"] for test in result["tests"]]


def python(code, **more):
    return {"language": "python", "code": code, **more}


def test_checkers_by_name(web):
    result = judged(web, "print(1 / 3, 'b ', sep='\\n')",
                    {"expected": "0.33333\nb"}, {"expected": "0.33333\nb", "checker": {"tolerance": 1e-4}},
                    {"expected": "0.333\nb", "checker": {"tolerance": 1e-4}}, {"expected": "b\n0.3333333333333333", "checker": "unordered_lines"},
                    {"expected": "0.3333333333333333 b", "checker": "ignore_whitespace"}, {"expected": "0.3333333333333333\nb", "checker": "exact"})
    assert verdicts(result) == ["wrong_answer", "passed", "wrong_answer", "passed", "passed", "passed"], result


def test_a_program_judges(web):
    """It has all three files, and a sandbox of its own: neither program meets what the other left."""
    judge = """
import os, sys
assert sys.argv[1:] == ["input.txt", "output.txt", "expected.txt"]
given, printed, expected = (open(name).read() for name in sys.argv[1:])
print("asked", given.strip(), flush=True)
print("left:", [name for name in ("/tmp/left", "/sandbox/left") if os.path.exists(name)], file=sys.stderr)
sys.exit(sorted(printed.split()) != sorted(expected.split()))
"""
    program = "open('/tmp/left', 'w'), open('left', 'w')\nprint(*reversed(input().split()), sep='\\n')"
    result = judged(web, program, {"stdin": "1 2", "expected": "1 2", "checker": python(judge)},
                    {"stdin": "1 2", "expected": "1 3", "checker": python(judge)},
                    {"stdin": "3", "checker": python("import sys; sys.exit(open('expected.txt').read() != '')")})
    assert verdicts(result) == ["passed", "wrong_answer", "passed"], result
    assert result["tests"][0]["message"] == "asked 1 2\nleft: []\n" and "message" not in result["tests"][2]
    assert result["status"] == "error" and result["cause"]["detail"] == "2 of 3 tests passed" and result["stages"] == []


def test_a_compiled_program_judges(web):
    judge = {"language": "c", "files": {"limit.h": "#define LIMIT 10\n"}, "compiler_args": ["-Wall"], "code": """
#include <stdio.h>
#include "limit.h"
int main(int argc, char **argv) { int n; return fscanf(fopen(argv[2], "r"), "%d", &n) != 1 || n > LIMIT; }
"""}
    result = judged(web, "print(input())", *({"stdin": str(n), "checker": judge} for n in (9, 11, 10)))
    assert verdicts(result) == ["passed", "wrong_answer", "passed"], result


def test_checkers_that_fail(web):
    result = judged(web, "print(1)", *({"checker": checker} for checker in (
        python("import os; os.kill(os.getpid(), 9)"), python("while True: pass", limits={"timeout": "0.3"}),
        {"language": "c", "code": "int main("}, python("print('é' * 2000); raise SystemExit(3)"))))
    assert verdicts(result) == ["checker_error"] * 4, result
    assert [test["message"] for test in result["tests"][:2]] == ["killed by SIGKILL (killed)", "did not end within 300 ms"]
    assert "error" in result["tests"][2]["message"] and 400 < len(result["tests"][3]["message"]) <= 1000
    # Where the program itself fails, there is nothing to judge.
    result = judged(web, "raise SystemExit(1)", {"checker": python("")})
    assert verdicts(result) == ["error"] and "message" not in result["tests"][0]


def test_points(web):
    result = judged(web, "print(input())", {"stdin": "1", "expected": "1", "points": 30}, {"stdin": "1", "expected": "2", "points": 70},
                    {"stdin": "1", "expected": "1"})
    assert result["points"] == {"earned": 30, "possible": 100}
    assert [test.get("points") for test in result["tests"]] == [30, 0, None]
    assert "points" not in judged(web, "print(1)", {"expected": "1"})
    result = judged(web, "int main(", {"expected": "", "points": 5}, language="c")
    assert verdicts(result) == ["compile_error"] and result["points"] == {"earned": 0, "possible": 5}


@pytest.mark.parametrize("checker, status, field", [
    ("exakt", 400, "tests[0].checker"), ({"tolerance": -1}, 400, "tests[0].checker.tolerance"), ({}, 400, "tests[0].checker"), (3, 400, "tests[0].checker"),
    ({"language": "nonesuch", "code": ""}, 400, None), (python("", limits={"memory": "900g"}), 400, "tests[0].checker.limits.memory"),
    (python("", network="host"), 400, "tests[0].checker.network"), (python("", policy="trusted"), 400, "tests[0].checker.policy"),
    (python("", files={"output.txt": ""}), 400, "tests[0].checker"), (python("", tests=[]), 400, "tests[0].checker.tests"),
])
def test_refused_checkers(web, checker, status, field):
    """Before the program has run."""
    body = {"language": "python", "code": "print(1)", "tests": [{"expected": "1", "checker": checker}]}
    problem(web.post("/v1/execute", body), status, field=field)


def test_cancelled_while_it_judges(web):
    nap = f"60.{secrets.randbelow(10**9):09d}"
    checker = {"language": "bash", "code": f"exec sleep {nap}", "limits": {"timeout": 90}}
    id = web.submit("python", "print(1)", groups=[{"name": "second", "needs": ["first"]}, {"name": "first"}],
                    tests=[{"checker": checker, "group": "first"}, {"expected": "1", "group": "second"}])
    wait_until(lambda: oracle.who_runs(nap), why="it is not judged")
    web.delete(f"/v1/executions/{id}")
    result = web.wait(id)
    assert result["status"] == "cancelled" and result["cause"]["kind"] == "cancelled", result
    assert verdicts(result) == ["cancelled", "cancelled"] and result["tests"][0]["stdout"] == "1\n", result
