# SPDX-License-Identifier: Apache-2.0
"""`tests`: what an entry says of its program, and how tests depend on each other."""
import os
import secrets

import pytest

import oracle
from resident import wait_until
from web import problem
from test_api_checkers import judged, python, verdicts


def codes(result):
    return [test["code"] for test in result["tests"]]


def test_an_entry_says_how_its_program_ended(web):
    """Words of judges beside ours, and of each end what is known about it."""
    program = """
import os, sys
kind = input()
if kind == "crash": raise KeyError("tea")
if kind == "signal": os.kill(os.getpid(), 11)
if kind == "loop":
    while True: pass
if kind == "eat": x = "x" * 10**9
if kind == "flood":
    while True: print("y" * 4096)
if kind == "exit": sys.exit(3)
print(kind)
"""
    result = judged(web, program, *({"stdin": kind, "expected": "good\n"} for kind in ("good", "bad", "crash", "signal", "loop", "eat", "flood", "exit")),
                    limits={"memory": "64m", "cpu_time": "300ms", "output_total": "1m", "timeout": "20s"})
    good, bad, crash, signal, loop, eat, flood, leave = result["tests"]
    assert codes(result) == ["AC", "WA", "RE", "RE", "TLE", eat["code"], "OLE", "RE"], result
    assert good["difference"] is None and good["error"] is None and good["signal"] is None and good["cause"]["kind"] == "exit"
    assert 0 < good["cpu_time"] < 20 and good["memory_peak"] > 1 << 20
    # Its output is wrong; the program itself ended well.
    assert bad["exit_code"] == 0 and bad["cause"]["detail"] == "exited with 0" and bad["status"] == "success"
    assert bad["difference"] == {"line": 1, "column": 1, "expected": "good", "got": "bad"}
    assert crash["error"] == {"type": "KeyError", "message": "'tea'", "file": "/sandbox/main.py", "line": 4} and crash["difference"] is None
    assert signal["signal"] == 11 and signal["exit_code"] == 139 and signal["error"]["type"] == "SIGSEGV"
    assert loop["cause"]["kind"] == "cpu_time" and loop["cause"]["limit"] == 0.3 and loop["cpu_time"] >= 0.3
    # Python may see that there is no memory before the kernel does.
    assert (eat["code"], eat["cause"]["kind"]) == ("MLE", "memory") or eat["error"]["type"] == "MemoryError", eat
    assert flood["cause"]["kind"] == "output" and leave["exit_code"] == 3 and leave["cause"]["detail"] == "exited with 3"


def test_entries_of_a_program_that_cannot_be_built(web):
    result = judged(web, "int main(", {"expected": "1"}, {"expected": "2"}, language="c")
    assert codes(result) == ["CE", "CE"] and verdicts(result) == ["compile_error"] * 2, result
    assert all(test["error"]["line"] == 1 and test["exit_code"] is None and test["cpu_time"] is None for test in result["tests"])


def test_the_first_difference_is_short(web):
    result = judged(web, "print('ok')\nprint('x' * 100000)", {"expected": "ok\n" + "x" * 50000 + "y"}, {"expected": "ok\n" + "x" * 100000 + "\nmore"})
    first, second = (test["difference"] for test in result["tests"])
    assert (first["line"], first["column"]) == (2, 50001) and len(first["expected"]) < 150 and first["expected"].endswith("xy") and len(first["got"]) < 150
    assert second == {"line": 3, "column": 1, "expected": "more", "got": None}


def test_words_files_and_limits_of_a_test(web):
    program = """
import os, sys
print(*sys.argv[1:], os.environ.get("A"), os.environ.get("B"), open("f").read(), open("g").read() if os.path.exists("g") else "")
if "slow" in sys.argv:
    while True: pass
"""
    result = judged(web, program, {"name": "plain", "expected": "x 1 2 all"},
                    {"name": "own", "expected": "y z 1 3 mine more", "args": ["y", "z"], "env": {"B": "3"}, "files": {"f": "mine", "g": "more"}},
                    {"name": "limited", "expected": "", "args": ["slow"], "limits": {"cpu_time": "200ms"}},
                    args=["x"], env={"A": "1", "B": "2"}, files={"f": "all"})
    assert codes(result) == ["AC", "AC", "TLE"] and [test["name"] for test in result["tests"]] == ["plain", "own", "limited"], result
    assert result["tests"][2]["cause"]["limit"] == 0.2


@pytest.mark.parametrize("more, field", [
    ({"limits": {"timeout": 10000}}, "tests[0].limits.timeout"), ({"files": {"main.py": ""}}, "tests[0].files"),
    ({"files": {"../x": ""}}, "files"), ({"group": 3}, "tests[0].group"), ({"args": "x"}, "tests[0].args"), ({"env": {"=": ""}}, "tests[0].env"),
])
def test_refused_members(web, more, field):
    problem(web.post("/v1/execute", {"language": "python", "code": "print(1)", "tests": [{"expected": "1", **more}]}), 400, field=field)


@pytest.mark.parametrize("stop_at, expected", [
    ("never", ["AC", "WA", "AC", "WA", "AC"]), ("first", ["AC", "WA", "SK", "SK", "SK"]), ("group", ["AC", "WA", "SK", "WA", "AC"])])
def test_stop_at(web, stop_at, expected):
    """By the order of the list: the first failure is the slowest test, so where tests run side by side, later ones have ended before it."""
    program = "import time\nkind = input()\ntime.sleep(0.3 if kind == 'late' else 0)\nprint(kind)"
    tests = [{"stdin": "a", "expected": "a", "group": "one"}, {"stdin": "late", "expected": "b", "group": "one"},
             {"stdin": "c", "expected": "c", "group": "one"}, {"stdin": "d", "expected": "x", "group": "two"}, {"stdin": "e", "expected": "e"}]
    result = judged(web, program, *tests, stop_at=stop_at)
    assert codes(result) == expected, result
    skipped = [test for test in result["tests"] if test["code"] == "SK"]
    assert all(test["verdict"] == "skipped" and test["stdout"] == "" and test["exit_code"] is None for test in skipped)
    assert all(test["cause"]["detail"].startswith("a test") for test in skipped)


def test_groups(web):
    """A group that needs another one runs only when that has passed; points are those of tests, of all, or of the worst."""
    tests = [{"stdin": "1", "expected": "1", "group": "samples"}, {"stdin": "2", "expected": "2", "group": "small"},
             {"stdin": "3", "expected": "0", "group": "small"}, {"stdin": "4", "expected": "4", "group": "large"},
             {"stdin": "5", "expected": "5", "group": "loose", "points": 4}, {"stdin": "6", "expected": "0", "group": "loose", "points": 6},
             {"stdin": "7", "expected": "7", "points": 5}]
    groups = [{"name": "samples", "points": 0}, {"name": "small", "needs": ["samples"], "points": 30},
              {"name": "large", "needs": ["small"], "points": 60}, {"name": "loose"}]
    result = judged(web, "print(input())", *tests, groups=groups)
    assert codes(result) == ["AC", "AC", "WA", "SK", "AC", "WA", "AC"], result
    assert result["tests"][3]["cause"]["detail"] == "it needs the group small"
    assert [(group["name"], group["code"], group["points"], group["possible"]) for group in result["groups"]] == [
        ("samples", "AC", 0, 0), ("small", "WA", 0, 30), ("large", "SK", 0, 60), ("loose", "WA", 4, 10)]
    assert result["points"] == {"earned": 9, "possible": 105}
    for scoring, points in (("sum", 15), ("all", 0), ("min", 0)):
        result = judged(web, "print(input())", *tests[1:3], groups=[{"name": "small", "points": 30, "scoring": scoring}])
        assert result["points"] == {"earned": points, "possible": 30}, (scoring, result)


def says(code, words="", file="stderr"):
    return python(f"import sys\nprint({words!r}, file=sys.{file})\nsys.exit({code})")


def test_exit_codes_of_testlib(web):
    checkers = [says(0, "ok 3 numbers"), says(1, "wrong answer 1st numbers differ"), says(2, "wrong output format"), says(3, "FAIL the jury has no answer"),
                says(4), says(8, "unexpected eof"), says(7, "points 12.5 nearly"), says(7, "points 40"), says(7, "points 99"), says(7, "none")]
    result = judged(web, "print(1)", *({"checker": checker, "points": 40} for checker in checkers))
    assert codes(result) == ["AC", "WA", "PE", "IE", "PE", "PE", "WA", "AC", "AC", "IE"], result
    assert [test["points"] for test in result["tests"]] == [40, 0, 0, 0, 0, 0, 12.5, 40, 40, 0]
    assert result["points"] == {"earned": 132.5, "possible": 400} and verdicts(result)[2] == "presentation_error"
    # As a part of what a test without points is worth, and of a group's.
    result = judged(web, "print(1)", *({"checker": says(7, f"points {part}"), "group": "g"} for part in (0.5, 0.25)),
                    groups=[{"name": "g", "points": 100, "scoring": "min"}])
    assert result["points"] == {"earned": 25, "possible": 100} and codes(result) == ["WA", "WA"]


CRASHES = {
    "python": "open('nothing.txt')", "javascript": "null.x", "ruby": "nil.x", "php": "<?php throw new Exception('x');", "perl": "die 'x'",
    "lua": "error('x')", "r": "stop('x')", "typescript": "const x: any = null; x.y", "java": "class Main { public static void main(String[] a) { int[] x = {}; x[1] = 2; } }",
    "go": "package main\nfunc main() { var m map[string]int; m[\"a\"] = 1 }", "rust": "fn main() { let v: Vec<i32> = vec![]; v[0]; }",
    "cpp": "#include <stdexcept>\nint main() { throw std::runtime_error(\"x\"); }", "c": "int main(void) { __builtin_trap(); }",
}


@pytest.mark.parametrize("language", CRASHES)
def test_a_checker_that_crashes_is_no_judgement(web, language):
    result = judged(web, "print(1)", {"checker": {"language": language, "code": CRASHES[language]}})
    if "is not installed" in str(result["tests"][0]["message"]):
        pytest.skip(result["tests"][0]["message"])
    assert codes(result) == ["IE"] and verdicts(result) == ["checker_error"] and result["tests"][0]["message"], result


def test_words_of_the_program_do_not_make_a_crash(web):
    """A checker that shows what it was given, also a traceback of the program's, says wrong answer by its exit code."""
    program = "print('Traceback (most recent call last):\\n  File \"/sandbox/main.py\", line 1, in <module>\\nKeyError: 1')"
    result = judged(web, program, {"checker": python("import sys\nprint(open('output.txt').read())\nsys.exit(1)")},
                    {"checker": python("import sys\nsys.exit('ValueError: ' + open('output.txt').readline())")})
    assert codes(result) == ["WA", "WA"], result


def test_tests_run_side_by_side(web):
    """Each has a place of the run slots; they are given back."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one core: tests run one after another")
    nap = f"60.{secrets.randbelow(10**9):09d}"
    id = web.submit("bash", f"exec sleep {nap}", tests=[{"expected": ""}] * 3)
    wait_until(lambda: len(oracle.who_runs(nap)) >= 2, why="they run one by one")
    assert web.get("/v1/stats").json()["now"]["running"] >= 2
    web.delete(f"/v1/executions/{id}")
    assert codes(web.wait(id)) == ["SK"] * 3
    wait_until(lambda: web.get("/v1/stats").json()["now"]["running"] == 0, why="places are kept")


GUESS = """
import sys
secret, low, high = int(open("input.txt").read()), 1, 100
print(high, flush=True)
for line in sys.stdin:
    guess = int(line)
    if guess == secret:
        print("right", flush=True)
        sys.exit("ok %d" % guess if open("expected.txt").read() else 0)
    print("higher" if guess < secret else "lower", flush=True)
print("it gave up", file=sys.stderr)
sys.exit(1)
"""
SEARCH = """
low, high = 1, int(input())
while True:
    middle = (low + high) // 2
    print(middle, flush=True)
    answer = input()
    if answer == "right": break
    if answer == "higher": low = middle + 1
    else: high = middle - 1
"""


def talk(web, code, interactor, *tests, **more):
    return judged(web, code, *(tests or [{"stdin": "37"}]), interactor=python(interactor) if isinstance(interactor, str) else interactor, **more)


def test_interactor(web):
    result = talk(web, SEARCH, GUESS, {"stdin": "37", "points": 4}, {"stdin": "100", "points": 6, "name": "edge"})
    assert codes(result) == ["AC", "AC"] and result["points"] == {"earned": 10, "possible": 10} and result["success"], result
    first = result["tests"][0]
    assert first["transcript"] == "< 100\n> 50\n< lower\n> 25\n< higher\n> 37\n< right\n" and first["stdout"] == "50\n25\n37\n", first
    assert first["exit_code"] == 0 and first["cpu_time"] > 0 and "message" not in first


def test_a_compiled_interactor(web):
    """Two languages, and a program that reads nothing."""
    interactor = {"language": "cpp", "code": """
#include <fstream>
#include <iostream>
int main(int, char **argv) {
    int a, b, sum;
    std::ifstream(argv[1]) >> a >> b;
    std::cout << a << " " << b << std::endl;
    std::cin >> sum;
    std::ofstream(argv[2]) << sum;
    std::cerr << (sum == a + b ? "ok" : "wrong answer");
    return sum != a + b;
}"""}
    result = talk(web, "#include <stdio.h>\nint main(void) { int a, b; return scanf(\"%d %d\", &a, &b) != 2 || printf(\"%d\\n\", a + b) < 0; }",
                  interactor, {"stdin": "2 40"}, language="c")
    assert codes(result) == ["AC"] and result["tests"][0]["message"] == "ok" and result["tests"][0]["transcript"] == "< 2 40\n> 42\n", result
    result = talk(web, "print(41)", interactor, {"stdin": "2 40"})
    assert codes(result) == ["WA"] and result["tests"][0]["exit_code"] == 0, result
    result = talk(web, "print(41)", {"language": "cpp", "code": "int main("})
    assert codes(result) == ["IE"] and "main" in result["tests"][0]["message"], result


#: Of each way to die: the program, the interactor, whose fault it is.
DEATHS = {
    "the program crashes": ("print(input())\nraise KeyError(1)", GUESS, "RE"),
    "the program exits with 3": ("import sys; sys.exit(3)", GUESS, "RE"),
    "the program is killed": ("import os; os.kill(os.getpid(), 9)", GUESS, "RE"),
    "the program ends too early": ("input(); print(1)", GUESS, "WA"),
    "the program ends too early, and its interactor breaks": ("input()", "print(1, flush=True)\ninput()\ninput()", "WA"),
    "the program leaves an interactor that does not end": ("pass", "while True: print('x' * 1000, flush=True)", "IE"),
    "the program leaves an interactor that has more to say": ("print(1)", "input()\nfor i in range(10**5): print(i)", "AC"),
    "both wait": ("input()\ninput()\ninput()", "input()", "TLE"),
    "the program does not end": ("while True: pass", GUESS, "TLE"),
    "the program does not end after it was accepted": ("input()\nwhile True: pass", "print(1)", "TLE"),
    "the program prints without end": ("while True: print('x' * 4096)", "import sys\nfor line in sys.stdin: pass", "OLE"),
    "the program eats memory": ("x = bytearray(10**9)\nwhile True: pass", "input()", "RE MLE"),
    "the interactor accepts, and the program goes on printing": ("input()\nfor i in range(10**4): print(i)", "print(1)", "AC"),
    "the interactor accepts, and the program fails after that": ("input()\ninput()", "print(1)", "RE"),
    "the interactor rejects at once": ("while True: input()", "import sys; sys.exit(1)", "WA"),
    "the interactor rejects, and the program waits for it": ("print(input())\nprint(input())", "import sys\nprint(1, flush=True)\ninput()\nsys.exit(2)", "PE"),
    "the interactor rejects a flood": ("while True: print(1)", "import sys\ninput()\nsys.exit(1)", "WA"),
    "the interactor crashes": ("input()\ninput()", "print(1, flush=True)\n{}[1]", "IE"),
    "the interactor is killed": ("input()\ninput()", "import os; os.kill(os.getpid(), 11)", "IE"),
    "the interactor fails": ("input()", "import sys; sys.exit(3)", "IE"),
    "the interactor does not end": ("input()", "while True: pass", "IE"),
    "the interactor crashes when the program has ended": ("print(1)", "input()\n{}[1]", "IE"),
}


@pytest.mark.parametrize("name", DEATHS)
def test_whose_fault_it_is(web, name):
    """The one that ends first decides, several times in a row and several at once."""
    program, interactor, expected = DEATHS[name]
    result = talk(web, program, python(interactor, limits={"timeout": "1s"}), {"stdin": "37"}, {"stdin": "37"}, {"stdin": "37"},
                  limits={"timeout": "1s", "memory": "64m", "output_total": "256k"})
    assert all(code in expected.split() for code in codes(result)), (name, result)
    assert all(not test["passed"] for test in result["tests"]) == (expected != "AC")


def test_a_long_talk_is_kept_in_part(web):
    """The start and the end of what was said; memory and the interactor's input are bounded by the pipes."""
    result = talk(web, "for i in range(20000): print(i, flush=True); assert input() == str(i)",
                  "import sys\nfor i in range(20000): print(input(), flush=True)", limits={"timeout": "20s"})
    transcript = result["tests"][0]["transcript"]
    assert codes(result) == ["AC"], result["tests"][0]["message"]
    assert len(transcript) < 20000 and transcript.startswith("> 0\n< 0\n> 1\n") and transcript.endswith("> 19999\n< 19999\n") and "bytes omitted" in transcript


@pytest.mark.parametrize("body, field", [
    ({"interactor": {"language": "python"}}, "interactor"), ({"interactor": {"language": "nonesuch", "code": ""}}, None),
    ({"interactor": python("", limits={"memory": "900g"})}, "interactor.limits.memory"), ({"stop_at": "later"}, "stop_at"),
    ({"groups": [{"name": "a"}]}, "groups[0]"), ({"groups": [{"name": "a", "needs": ["b"]}], "tests": [{"expected": "", "group": "a"}]}, "groups[0]"),
])
def test_refused_requests(web, body, field):
    problem(web.post("/v1/execute", {"language": "python", "code": "print(1)", "tests": [{"expected": "1"}], **body}), 400, field=field)


def test_cancelled_while_they_talk(web):
    nap = f"60.{secrets.randbelow(10**9):09d}"
    bash = {"language": "bash", "code": f"exec sleep {nap}", "limits": {"timeout": 90}}
    id = web.submit("bash", f"exec sleep {nap}", tests=[{"stdin": ""}], interactor=bash)
    wait_until(lambda: len(oracle.who_runs(nap)) == 2, why="they do not talk")
    web.delete(f"/v1/executions/{id}")
    result = web.wait(id)
    assert result["status"] == "cancelled" and verdicts(result) == ["cancelled"], result


def test_the_analysis_is_that_of_the_test_that_failed(web):
    """A wrong answer of a program that ended with 0 is no end with 1."""
    def analysis(code, *tests, **more):
        result = judged(web, code, *tests, **more)
        found = web.get(f"/v1/executions/{result['id']}/analysis").json()
        return found["error_type"], found["message"], found["line"], found["suggestion"]

    kind, message, line, suggestion = analysis("print(input())", {"stdin": "1", "expected": "1"}, {"stdin": "2", "expected": "3"})
    assert (kind, message, line) == ("wrong_answer", 'test 2: line 1, column 1: expected "3", got "2"', None) and "ended with" not in suggestion
    kind, message, line, suggestion = analysis("x = int(input())\nprint(1 // x)", {"stdin": "1", "expected": "1"}, {"stdin": "0", "expected": "3"})
    assert (kind, message, line) == ("python_exception", "integer division or modulo by zero", 2), message
    kind, message, line, suggestion = analysis("while True: pass", {"expected": "1"}, limits={"cpu_time": "200ms"})
    assert kind == "cpu_time" and "--cpu-time" in suggestion
    kind, message, line, suggestion = analysis("print(1)", {"checker": python("null.x")})
    assert kind == "checker_error" and message.startswith("test 1: ") and "judges failed" in suggestion
    kind, message, line, suggestion = analysis("int main(", {"expected": "1"}, language="c")
    assert kind == "compile_error" and line == 1
