# SPDX-License-Identifier: Apache-2.0
"""`tests`: what an entry says of its program, and how tests depend on each other."""
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
