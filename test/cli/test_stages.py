# SPDX-License-Identifier: Apache-2.0
"""Several programs in one sandbox, one build with many inputs, and calls of one method."""
import json
import re

import pytest

quick = pytest.mark.quick

# ------------------------------------------------------------------------------------------- stages


@quick
def test_stages_run_in_order_in_one_sandbox(atoll):
    result = atoll.result(["--stage", "one=echo 1 > f; echo first", "--stage", "two=cat f; echo second"])
    assert result["status"] == "success" and result["stdout"] == "first\n1\nsecond\n", result
    assert [(s["name"], s["status"], s["exit_code"]) for s in result["stages"]] == [
        ("one", "success", 0), ("two", "success", 0)]
    assert all(s["duration"] > 0 for s in result["stages"])


@quick
def test_first_failure_stops(atoll):
    result = atoll.result(["--stage", "a=true", "--stage", "b=echo bad >&2; exit 4", "--stage", "c=echo never"])
    assert (result["status"], result["exit_code"], result["_exit"]) == ("error", 4, 4)
    assert [s["name"] for s in result["stages"]] == ["a", "b"] or result["stages"][2]["exit_code"] is None
    assert "never" not in result["stdout"] and result["stderr"] == "bad\n"


def test_processes_of_a_stage_do_not_reach_the_next(atoll):
    result = atoll.result(["--stage", "a=(setsid sleep 30 &); sleep 0.1", "--stage",
                           "b=ls /proc | grep -c '^[0-9]'; pgrep -x sleep || echo gone"])
    assert "gone" in result["stdout"], result


def test_timeout_in_a_stage(atoll):
    result = atoll.result(["--timeout", "0.4", "--stage", "a=echo up; sleep 20", "--stage", "b=echo never"])
    assert (result["status"], result["_exit"]) == ("timeout", 124) and "never" not in result["stdout"]
    assert result["stages"][0]["status"] == "timeout"


def test_bad_stage_words(atoll):
    for word in ("noequals", "=cmd", "x=", "a/b\n=cmd"):
        done = atoll.run(["run", "--stage", word])
        assert done.returncode == 125 and done.err.count("\n") == 1, (word, done)


def test_stages_with_their_own_words(library):
    rc, result, problem = library.run({"stages": [
        {"name": "a", "argv": ["/usr/bin/env"], "env": {"A": "1"}},
        {"name": "b", "code": "cat; echo ${A:-unset}", "stdin": "given\n"},
        {"name": "c", "code": "sleep 9", "limits": {"timeout": 0.3}}]})
    assert rc == 0, problem
    assert "A=1" in result["stdout"] and "given\nunset\n" in result["stdout"]
    assert [s["status"] for s in result["stages"]] == ["success", "success", "timeout"]
    assert result["status"] == "timeout" and result["cause"]["limit"] == pytest.approx(0.3)


def test_many_stages_are_bounded(library):
    rc, result, _ = library.run({"stages": [{"name": f"s{i}", "code": ":"} for i in range(33)]})
    assert rc < 0 or result["status"] == "setup_error"


# ----------------------------------------------------------------------------- stages of a language


@quick
def test_code_of_a_stage_is_of_the_language(library):
    rc, result, problem = library.run({"language": "python", "args": ["word"], "stages": [
        {"name": "one", "code": "open('x', 'w').write('5')"},
        {"name": "two", "code": "import sys\nprint(open('x').read(), sys.argv)"},
        {"name": "three", "argv": ["ls"]}]})
    assert rc == 0, problem
    assert result["status"] == "success", result
    assert result["stdout"] == "5 ['/sandbox/main-2.py', 'word']\nmain-1.py\nmain-2.py\nx\n"
    # What was put there is not what was left there.
    assert [f["path"] for f in result["files"]] == ["x"] and result["runtime"].startswith("Python ")


def test_a_stages_error_is_in_its_file(library):
    rc, result, problem = library.run({"language": "py", "stages": [
        {"code": "import code\nassert not code.__file__.startswith('/sandbox')"},
        {"code": "x = 1\nx / 0"}, {"code": "print('never')"}]})
    assert rc == 0, problem
    assert [(s["name"], s["status"]) for s in result["stages"]] == [("stage-1", "success"), ("stage-2", "error")]
    assert result["error"] == {"type": "ZeroDivisionError", "message": "division by zero", "file": "/sandbox/main-2.py", "line": 2}
    assert result["stdout"] == ""


def test_a_stage_of_a_language_has_its_own_words(library):
    rc, result, problem = library.run({"language": "javascript", "env": {"A": "1", "B": "1"}, "stages": [
        {"name": "a", "code": "console.log(process.env.A, process.env.B)", "env": {"B": "2"}},
        {"name": "b", "code": "console.log(require('fs').readFileSync(0, 'utf8'))", "stdin": "given"},
        {"name": "c", "code": "for (;;) ;", "limits": {"timeout": 0.4}}]})
    assert rc == 0, problem
    assert result["stdout"] == "1 2\ngiven\n" and result["status"] == "timeout", result
    assert [s["status"] for s in result["stages"]] == ["success", "success", "timeout"]


def test_shell_stages_need_no_file(library):
    bash = {"language": "sh", "stages": [{"code": "a=(1 2); echo ${a[1]} > f"}, {"code": "ls; cat f"}]}
    rc, result, problem = library.run(bash)
    assert rc == 0 and result["stdout"] == "f\n2\n", (problem, result)


@pytest.mark.parametrize("language,one,two", [
    ("ruby", "File.write('x', '5')", "puts File.read('x')"),
    ("php", "<?php file_put_contents('x', '5');", "<?php echo file_get_contents('x'), \"\\n\";"),
    ("perl", "open(my $f, '>', 'x'); print $f '5';", "open(my $f, '<', 'x'); print <$f>, \"\\n\";"),
    ("lua", "io.open('x', 'w'):write('5')", "print(io.open('x'):read())"),
    ("r", "cat('5\\n', file='x')", "cat(readLines('x'), '\\n', sep='')")])
def test_stages_of_interpreters(library, language, one, two):
    rc, result, problem = library.run({"language": language, "stages": [{"code": one}, {"code": two}]})
    assert rc == 0 and (result["status"], result["stdout"]) == ("success", "5\n"), (problem, result)


C_WRITES = '#include <stdio.h>\nint main(void) { FILE *f = fopen("x", "w"); fputs("5", f); return fclose(f); }'
C_READS = """#include <stdio.h>
int main(int n, char **v) { char b[9] = ""; fgets(b, 9, fopen("x", "r")); printf("%s %s\\n", b, v[1]); return 3; }"""


def test_stages_of_a_compiled_language(library):
    rc, result, problem = library.run({"language": "c", "args": ["word"], "stages": [
        {"name": "one", "code": C_WRITES}, {"name": "look", "argv": ["cat", "x"]}, {"name": "two", "code": C_READS}]})
    assert rc == 0, problem
    assert [(s["name"], s["exit_code"]) for s in result["stages"]] == [
        ("compile:one", 0), ("compile:two", 0), ("one", 0), ("look", 0), ("two", 3)]
    assert result["stdout"] == "55 word\n" and result["exit_code"] == 3


@pytest.mark.modes("root")  # the front compiles and judges, the same for each user
def test_stages_with_the_same_class(library):
    code = "public class Main { public static void main(String[] a) { System.out.println(%d); } }"
    rc, result, problem = library.run({"language": "java", "stages": [{"code": code % 1}, {"code": code % 2}]})
    assert rc == 0 and result["stdout"] == "1\n2\n", (problem, result)


def test_a_stage_that_cannot_be_built_ends_it(library):
    rc, result, problem = library.run({"language": "c", "stages": [
        {"name": "one", "code": C_WRITES}, {"name": "two", "code": "int main(void) { return undeclared; }"}]})
    assert rc == 0, problem
    assert [(s["name"], s["status"]) for s in result["stages"]] == [("compile:one", "success"), ("compile:two", "error")]
    assert "/sandbox/main-2.c" in result["stderr"] and "undeclared" in result["stderr"] and result["files"] == []


@pytest.mark.modes("root")
def test_what_stages_are_built_to_is_bounded(library):
    """Each would do for itself; all of them lie in memory at the same time."""
    code = "char big[%d << 20] = { 1 }; int main(void) { return big[%d] - %d; }"
    rc, result, _ = library.run({"language": "c", "stages": [{"code": code % (90, i, i == 0)} for i in range(5)]})
    assert result["status"] == "setup_error" and result["stdout"] == "", (rc, result)
    assert result["cause"]["detail"] == "stages: what they are built to may hold 320 MiB together"
    # The fourth is too much: the fifth is not built.
    assert [s["name"] for s in result["stages"]] == [f"compile:stage-{i}" for i in (1, 2, 3, 4)]
    rc, result, problem = library.run({"language": "c", "stages": [{"code": code % (90, i, i == 0)} for i in range(2)]})
    assert rc == 0 and result["status"] == "success" and result["cached_build"], (problem, result)


@quick
def test_the_flag_is_a_shell_command_whatever_the_language(atoll):
    result = atoll.result(["-l", "python", "--stage", "a=echo $((6 * 7))", "--stage", "b=exit 3"])
    assert (result["stdout"], result["exit_code"]) == ("42\n", 3), result
    assert [s["name"] for s in result["stages"]] == ["a", "b"]


def test_a_stages_file_may_not_be_another(library):
    rc, _, problem = library.run({"language": "python", "stages": [{"code": "pass"}], "files": {"main-1.py": ""}})
    assert rc < 0 and "main-1.py" in problem


def test_explain_shows_each_build(atoll, work):
    request = work / "request.json"
    request.write_text(json.dumps({"language": "c", "stages": [{"code": C_WRITES}, {"argv": ["true"]}, {"code": C_READS}]}))
    done = atoll.run(["run", "--explain", "--request", request])
    assert done.returncode == 0 and done.out.count("plan of the compile stage") == 2, done
    assert '"/build/1/program"' in done.out and '"/build/3/program"' in done.out


# --------------------------------------------------------------------------------- compile and run


def test_compile_and_run_are_two_stages(atoll):
    result = atoll.result(["-l", "c", "-c", '#include <stdio.h>\nint main(void) { puts("built"); return 3; }'])
    assert [(s["name"], s["status"], s["exit_code"]) for s in result["stages"]] == [
        ("compile", "success", 0), ("run", "error", 3)]
    assert (result["stdout"], result["exit_code"]) == ("built\n", 3)


def test_compiler_error_ends_it(atoll):
    result = atoll.result(["-l", "c", "-c", "int main(void) { return undeclared; }"])
    assert result["status"] == "error" and result["exit_code"] != 0
    assert [s["name"] for s in result["stages"]] == ["compile"] or result["stages"][1]["exit_code"] is None
    assert "undeclared" in result["stderr"] and "/sandbox/main.c" in result["stderr"].replace("main.c:", "/sandbox/main.c:")


# -------------------------------------------------------------------------------------------- tests


@pytest.mark.undisturbed
@pytest.mark.brief
@pytest.mark.modes("root")  # the front compiles and judges, the same for each user
def test_verdicts(library):
    rc, result, problem = library.run({
        "language": "python",
        "code": "n = int(input())\nif n == 3: raise SystemExit(5)\nif n == 4:\n    while True: pass\nprint(n * n)",
        "limits": {"timeout": 2},
        "tests": [{"stdin": "1\n", "expected": "1\n"}, {"stdin": "2\n", "expected": "4"},
                  {"stdin": "2\n", "expected": "5\n"}, {"stdin": "3\n", "expected": ""},
                  {"stdin": "4\n", "expected": ""}]})
    assert rc == 0, problem
    tests = result["tests"]
    assert [t["verdict"] for t in tests] == ["passed", "passed", "wrong_answer", "error", "timeout"]
    assert [t["passed"] for t in tests] == [True, True, False, False, False]
    assert tests[2]["stdout"] == "4\n" and tests[3]["exit_code"] == 5
    assert result["success"] is False


def test_each_test_gets_a_fresh_sandbox(library):
    rc, result, problem = library.run({
        "language": "bash", "code": "ls /tmp /sandbox | grep mark || echo clean; touch /tmp/mark /sandbox/mark",
        "tests": [{"stdin": "", "expected": "clean\n"}] * 3})
    assert rc == 0 and [t["verdict"] for t in result["tests"]] == ["passed"] * 3, (problem, result)
    assert result["status"] == "success" and result["success"] is True


@quick
def test_verdicts_on_a_terminal(atoll, work):
    tests = [{"stdin": "1", "expected": "1", "points": 2}, {"stdin": "1", "expected": "1.3", "checker": {"tolerance": 0.1}, "points": 3},
             {"stdin": "1", "checker": {"language": "python", "code": "print('too small\\nby 1'); raise SystemExit(1)"}},
             {"stdin": "", "expected": "", "name": "no \x1b[2Jinput"}]
    (work / "tests.json").write_text(json.dumps(tests))
    run = ["run", "-c", "print(input())", "-l", "python", "--tests", work / "tests.json"]
    done = atoll.run(run)
    assert done.out == ('test 1: passed\ntest 2: wrong_answer: line 1, column 1: expected "1.3", got "1"\ntest 3: wrong_answer: too small\n'
                        "test 4 (no \\x1b[2Jinput): error: EOFError: EOF when reading a line (line 1)\n1 of 4 passed, 2 of 5 points\n"), done
    assert done.returncode == 1
    # An object says also how they are judged; they run one by one, and none after the first that fails.
    (work / "tests.json").write_text(json.dumps({"tests": [{**test, "group": "all"} for test in tests], "stop_at": "first",
                                                 "groups": [{"name": "all", "points": 10}]}))
    done = atoll.run(run)
    assert done.out.splitlines()[2:] == ["test 3: skipped: a test before it failed", "test 4 (no \\x1b[2Jinput): skipped: a test before it failed",
                                         "group all: wrong_answer, 0 of 10 points", "1 of 4 passed, 0 of 10 points"], done


def test_an_interactor_without_a_daemon(library):
    interactor = {"language": "python", "code": "print(open('input.txt').read(), flush=True)\nraise SystemExit(input() != open('expected.txt').read())"}
    rc, result, problem = library.run({"language": "python", "code": "print(int(input()) * 2)", "interactor": interactor,
                                       "tests": [{"stdin": str(i), "expected": str(2 * i if i else 1)} for i in range(4)]})
    assert rc == 0 and [t["code"] for t in result["tests"]] == ["WA", "AC", "AC", "AC"], (problem, result)
    assert result["tests"][3]["transcript"] == "< 3\n> 6\n"


def test_one_build_for_all(library):
    rc, result, problem = library.run({
        "language": "c", "code": "#include <stdio.h>\nint main(void){int n; scanf(\"%d\",&n); printf(\"%d\\n\",n+1);}",
        "tests": [{"stdin": str(i), "expected": f"{i + 1}\n"} for i in range(4)]})
    assert rc == 0 and all(t["passed"] for t in result["tests"]), (problem, result)
    assert [s["name"] for s in result["stages"]].count("compile") <= 1


def test_build_failure_is_the_verdict_of_every_test(library):
    rc, result, problem = library.run({"language": "c", "code": "int main(", "tests": [{"stdin": "", "expected": ""}] * 3})
    assert rc == 0, problem
    assert result["success"] is False and result["status"] == "error"
    assert [t["verdict"] for t in result["tests"]] == ["compile_error"] * 3
    assert all(not t["passed"] and t["exit_code"] is None and t["stdout"] == "" and t["memory_peak"] is None for t in result["tests"])
    assert "error" in result["stderr"]


@pytest.mark.modes("root")  # the front compiles and judges, the same for each user
def test_what_all_tests_print_is_bounded(library):
    """They are judged by all of it; of the later ones only the ends are kept, and each says how much is missing."""
    size = 700000
    rc, result, problem = library.run({
        "language": "python",
        "code": f"import sys\nprint('a' + 'é' * {size // 2 - 1} + input())\nsys.stderr.write('e' * {size})",
        "tests": [{"stdin": f"{i}\n", "expected": "a" + "é" * (size // 2 - 1) + f"{i}\n"} for i in range(6)]})
    assert rc == 0 and result["status"] == "success", (problem, result["status"], result["cause"])
    tests = result["tests"]
    assert [t["verdict"] for t in tests] == ["passed"] * 6
    texts = [t[k].encode() for t in tests for k in ("stdout", "stderr")]
    assert sum(len(t) for t in texts) < (2 << 20) + 12 * 2500
    assert tests[0]["stderr"] == "e" * size and "omitted" not in tests[0]["stdout"]
    for i, test in list(enumerate(tests))[2:]:
        assert test["stdout"].startswith("aé") and test["stdout"].endswith(f"é{i}\n"), test["stdout"][-50:]
        for key, whole in (("stdout", size + 1), ("stderr", size)):
            omitted = re.search(r"\n\.\.\. \[(\d+) bytes omitted\] \.\.\.\n", test[key])
            assert omitted and len(test[key].encode()) - len(omitted[0]) + int(omitted[1]) == whole, test[key][:50]


def test_tests_above_their_own_limit_and_that_of_all(library):
    rc, result, problem = library.run({
        "language": "python", "code": "print('x' * 3000000)", "tests": [{"stdin": "", "expected": ""}] * 4})
    assert rc == 0, problem
    for test in result["tests"]:
        parts = re.fullmatch(r"(x+)\n\.\.\. \[(\d+) bytes omitted\] \.\.\.\n(x+)\n", test["stdout"])
        assert parts and len(parts[1]) + int(parts[2]) + len(parts[3]) == 3000000, len(test["stdout"])
    assert [len(t["stdout"]) > 1 << 20 for t in result["tests"]] == [True, True, False, False]


def test_tests_that_never_ran_say_why(library):
    rc, result, problem = library.run({"language": "c", "code": "int main(){}", "image": "/nowhere-at-all",
                                       "tests": [{"stdin": "", "expected": ""}] * 2})
    assert rc != 0 and result["status"] in ("setup_error", "denied"), result
    assert [(t["verdict"], t["status"]) for t in result["tests"]] == [("error", result["status"])] * 2


# ------------------------------------------------------------------------------------------- invoke

TOOL = """
class Calculator:
    def __init__(self, config):
        self.base = config.get('base', 10)
    def add(self, a, b=0):
        print('noise on stdout')
        return {'sum': a + b + self.base}
    def none(self):
        return None
    def fail(self):
        raise ValueError('no good')
    def odd(self):
        return object()
    def leave(self):
        raise SystemExit(3)
class Plain:
    def echo(self, **kw):
        return kw
"""


@quick
def test_invoke(atoll):
    result = atoll.result(["-l", "python", "--invoke", "Calculator.add", "--params", '{"a": 1, "b": 2}', "-c", TOOL])
    assert result["status"] == "success" and result["value"] == {"sum": 13}, result
    assert result["stdout"] == "noise on stdout\n" and result["error"] is None


def test_invoke_other_shapes(atoll):
    params = {"x": [1, 2.5, None, True, "é"], "y": {"z": {}}}
    result = atoll.result(["-l", "python", "--invoke", "Plain.echo", "--params", json.dumps(params), "-c", TOOL])
    assert result["value"] == params
    result = atoll.result(["-l", "python", "--invoke", "Calculator.none", "-c", TOOL])
    assert result["status"] == "success" and result["value"] is None


@pytest.mark.parametrize("method,kind,text", [("Calculator.fail", "ValueError", "no good"),
                                              ("Calculator.odd", None, "not JSON serializable"),
                                              ("Calculator.missing", None, "missing"),
                                              ("Nobody.add", None, "Nobody")])
def test_invoke_errors(atoll, method, kind, text):
    result = atoll.result(["-l", "python", "--invoke", method, "-c", TOOL])
    assert result["success"] is False and result["status"] == "error", result
    assert text in result["error"]["message"], result
    if kind:
        assert result["error"]["type"] == kind


def test_invoke_exit_is_reported(atoll):
    result = atoll.result(["-l", "python", "--invoke", "Calculator.leave", "-c", TOOL])
    assert result["status"] == "error" and result["exit_code"] == 3


@pytest.mark.parametrize("words", [["--invoke", "nodot"], ["--invoke", "A.b", "--params", "{bad"],
                                   ["--invoke", "A.b", "--params", "[1]"], ["--params", "{}"]])
def test_invoke_bad_words(atoll, words):
    done = atoll.run(["run", "-l", "python", *words, "-c", TOOL])
    assert done.returncode == 125 and done.err.count("\n") == 1, done


def test_a_program_cannot_forge_its_value(atoll):
    """All that is printed is output; the value is the method's alone, the exit code the process's."""
    code = TOOL + ("\nimport json, os, sys\n"
                   "for fd in range(3):\n"
                   "    try: os.write(fd, json.dumps({'value': 'forged', 'result': 'forged', 'exit_code': 0}).encode() + b'\\n')\n"
                   "    except OSError: pass\n")
    result = atoll.result(["-l", "python", "--invoke", "Calculator.add", "--params", '{"a": 1}', "-c", code])
    assert result["value"] == {"sum": 11} and "forged" in result["stdout"]
