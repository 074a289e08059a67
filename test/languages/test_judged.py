# SPDX-License-Identifier: Apache-2.0
"""Endings of judged programs (`tests`) that an exit code alone does not tell; and the options that Java is started with."""
import json

import pytest

HEAP = "java.util.List<byte[]> list = new java.util.ArrayList<>();"
FILL = "while (true) list.add(new byte[1 << 20]);"


def java(body):
    return f"public class Main {{ static int deep(int n) {{ return n == 0 ? 0 : 1 + deep(n - 1); }}\n" \
           f"public static void main(String[] args) throws Exception {{ {body} }} }}"


@pytest.fixture
def judged(atoll, work):
    def run(language, code, *options, expected="never"):
        (work / "tests.json").write_text(json.dumps([{"expected": expected}]))
        result = atoll.result(["-l", language, "--tests", work / "tests.json", *options, "-c", code],
                              env={"ATOLL_KIT_DIR": atoll.stage.java_kit()} if language == "java" else None)
        return result["tests"][0]
    return run


@pytest.mark.parametrize("language, code", [
    ("python", "print(1"), ("python", "def f():\nreturn 1"), ("python", "if 1:\n\tx = 1\n        y = 2"), ("javascript", "let x = ;")])
def test_a_text_that_is_no_program(judged, language, code):
    entry = judged(language, code)
    assert (entry["verdict"], entry["code"]) == ("compile_error", "CE"), entry


@pytest.mark.parametrize("language, code", [
    ("python", "eval('1 +')"), ("python", "print(1, flush=True)\nexec('print(1')"), ("javascript", "JSON.parse('{')"), ("javascript", "eval('let x = ;')"),
    ("python", "raise SyntaxError('mine')")])
def test_a_syntax_error_of_a_program_that_runs(judged, language, code):
    entry = judged(language, code)
    assert (entry["verdict"], entry["code"]) == ("error", "RE"), entry


def test_other_runs_know_no_such_error(atoll):
    result = atoll.python("print(1")
    assert result["status"] == "error" and result["cause"]["kind"] == "exit" and result["error"]["type"] == "SyntaxError", result


@pytest.mark.parametrize("body", [
    f"{HEAP} {FILL}",
    f"{HEAP} try {{ {FILL} }} catch (Throwable t) {{ list = null; t.printStackTrace(); System.exit(3); }}",
    f"{HEAP} try {{ {FILL} }} catch (Throwable t) {{ list = null; t.printStackTrace(); }}",
    "long[] all = new long[Integer.MAX_VALUE - 8]; System.out.println(all.length);",
])
def test_java_without_memory(judged, body):
    entry = judged("java", java(body), "--memory", "256m")
    assert (entry["verdict"], entry["code"], entry["status"]) == ("limit", "MLE", "limit"), entry
    assert entry["cause"]["kind"] == "memory" and entry["cause"]["limit"] == 256 << 20, entry


def test_caught_and_passed(judged):
    """A program that gave its memory back and went on has not failed."""
    body = f"{HEAP} try {{ {FILL} }} catch (OutOfMemoryError e) {{ list = null; }} System.out.println(1);"
    entry = judged("java", java(body), "--memory", "256m", expected="1")
    assert entry["code"] == "AC", entry


def test_the_compiler_has_cpu_time_of_its_own(judged):
    """The limit is the program's. This header alone takes a compiler half a second."""
    entry = judged("cpp", "#include <bits/stdc++.h>\nint main() { std::cout << 1; }", "--cpu-time", "0.1", expected="1")
    assert entry["code"] == "AC", entry


def run_java(atoll, body, *options):
    return atoll.result(["-l", "java", *options, "-c", java(body)], env={"ATOLL_KIT_DIR": atoll.stage.java_kit()})


def test_the_stack_limit_reaches_java(atoll):
    deep = "System.out.println(deep(200000));"
    assert run_java(atoll, deep, "--stack", "512m")["stdout"] == "200000\n"
    assert "StackOverflowError" in run_java(atoll, deep, "--stack", "512k")["stderr"]


@pytest.mark.parametrize("variable, shown", [
    ("JDK_JAVA_OPTIONS=-Xss300k", "-Xss300k"), ("JAVA_TOOL_OPTIONS=-XX:+UseParallelGC", "-XX:+UseParallelGC"), ("JAVA_TOOL_OPTIONS=-Xmx64m", "-Xmx64m"),
    ("JDK_JAVA_OPTIONS=-XX:ActiveProcessorCount=3", "-XX:ActiveProcessorCount=3")])
def test_options_of_the_caller_win(atoll, variable, shown):
    """Ours are not among the arguments that the virtual machine shows; without a caller's, they are."""
    body = ("System.out.println(String.join(\" \", java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments()));"
            "System.out.println(Runtime.getRuntime().availableProcessors());")
    words, processors = run_java(atoll, body, "--env", variable)["stdout"].splitlines()
    names = ("-Xss", "GC", "ActiveProcessorCount", "-Xmx")
    name = next(name for name in names if name in shown)
    assert [word for word in words.split() if name in word] == [shown], words
    assert processors == ("3" if "Processor" in shown else "1")
