# SPDX-License-Identifier: Apache-2.0
"""The Ruby session runner by itself (test/lib/runner_driver.py drives it)."""
import os
import shutil
import time

import pytest

from runner_driver import Runner, moments

pytestmark = pytest.mark.skipif(not shutil.which("ruby"), reason="ruby is not installed")
NOTHING = {"error": None, "exit_code": 0, "interrupted": False}


@pytest.fixture(scope="module")
def shared():
    with Runner("ruby") as runner:
        yield runner


@pytest.fixture
def runner():
    with Runner("ruby") as runner:
        yield runner


def value_of(value, kind, text):
    return {**NOTHING, "value": value, "value_type": kind, "value_repr": text}


VALUES = [
    ("1 + 1", 2, "Integer", "2"), ("\"é\\n\\u2028\"", "é\n\u2028", "String", "\"é\\n\\u2028\""), (":sym", "sym", "Symbol", ":sym"),
    ("[1, 2.5, true, nil, {a: []}]", [1, 2.5, True, None, {"a": []}], "Array", "[1, 2.5, true, nil, {:a=>[]}]"),
    ("2**63 - 1", 2**63 - 1, "Integer", str(2**63 - 1)), ("-2**63", -2**63, "Integer", str(-2**63)), ("2**63", {"$int": str(2**63)}, "Integer", str(2**63)),
    ("[Float::NAN, -Float::INFINITY]", [{"$float": "nan"}, {"$float": "-inf"}], "Array", "[NaN, -Infinity]"),
    ("\"\\xff\".b", {"$bytes": "/w=="}, "String", '"\\xFF"'), ("\"\\xff\"", {"$bytes": "/w=="}, "String", '"\\xFF"'),
    ("require 'set'\nSet[3]", {"$set": [3]}, "Set", "#<Set: {3}>"), ("Complex(1, 2)", {"$complex": [1.0, 2.0]}, "Complex", "(1+2i)"),
    ("Time.utc(2020, 1, 2)", {"$datetime": "2020-01-02T00:00:00.000000+00:00"}, "Time", "2020-01-02 00:00:00 UTC"),
    ("require 'date'\nDate.new(2020, 1, 2)", {"$date": "2020-01-02"}, "Date", "#<Date: 2020-01-02 ((2458851j,0s,0n),+0s,2299161j)>"),
    ("require 'bigdecimal'\nBigDecimal('1.5')", {"$decimal": "1.5"}, "BigDecimal", "0.15e1"),
    ("{1 => 'a'}", {"$dict": [[1, "a"]]}, "Hash", '{1=>"a"}'), ("{'$x' => 1}", {"$dict": [["$x", 1]]}, "Hash", '{"$x"=>1}'),
    ("{'a' => 1, a: 2}", {"$dict": [["a", 1], ["a", 2]]}, "Hash", '{"a"=>1, :a=>2}'),
    ("return 7", 7, "Integer", "7"), ("[1, 2].each { |i| return i * 2 if i == 2 }", 4, "Integer", "4"),
]


@pytest.mark.parametrize("code,value,kind,text", VALUES)
def test_values(shared, code, value, kind, text):
    assert shared.done(code) == value_of(value, kind, text)


@pytest.mark.parametrize("code", ["", "# nothing", "nil", "return", "puts", "class K; end"])
def test_no_value(shared, code):
    assert shared.done(code) == NOTHING


@pytest.mark.parametrize("code,kind,text", [("1..2", "Range", "1..2"), ("Struct.new(:a)", "Class", None), ("a = []; a << a; a", "Array", "[[...]]"),
                                            ("d = []; 100.times { d = [d] }; d", "Array", None), ("[1] * 260_000", "Array", None)])
def test_values_that_json_cannot_hold(shared, code, kind, text):
    done = shared.done(code)
    assert done.pop("value_bytes", 0) == (520_001 if "260_000" in code else 0)  # of its JSON
    assert done == {**NOTHING, "value_type": kind, "value_repr": text or done["value_repr"]}


def test_state_and_input(runner):
    assert runner.done("x = 1; def f; 2; end; class C; X = 3; end; $g = 4; K = 5") == value_of(5, "Integer", "5")
    assert runner.value("[x, f, C::X, $g, K]") == [1, 2, 3, 4, 5]
    assert runner.value("[gets, $stdin.read, File.readlink('/proc/self/fd/0')]") == [None, "", "/dev/null"]
    assert runner.value("local_variables") == ["x"]
    assert os.listdir(runner.work) == []


def test_errors(runner):
    path = f"{runner.work}/cell-1.rb"
    text = f"{path}:2:in `f': deep (ArgumentError)\n\tfrom {path}:4:in `<main>'\n"
    assert runner.done("def f\n  raise ArgumentError, 'deep'\nend\nf") == {
        **NOTHING, "exit_code": 1, "error": {"type": "ArgumentError", "message": "deep", "file": path, "line": 2, "traceback": text}}
    assert runner.stderr.decode() == text
    error = runner.done("\nx = (")["error"]
    assert (error["type"], error["file"], error["line"]) == ("SyntaxError", f"{runner.work}/cell-2.rb", 2)
    assert runner.stderr.decode() == error["traceback"] and "main.rb" not in error["traceback"]
    error = runner.done("begin; raise 'a'; rescue; raise 'b'; end")["error"]
    assert "main.rb" not in error["traceback"] and ": a (RuntimeError)" in error["traceback"]
    assert runner.error("def g; g; end; g")[0] == "SystemStackError"
    assert runner.error("throw :x")[0] == "UncaughtThrowError"
    assert runner.error("break")[0] in ("SyntaxError", "LocalJumpError")


def test_a_guard_of_the_main_program(runner):
    assert runner.value("__FILE__ == $0") is True


def test_exits(runner):
    assert runner.done("exit 3") == {**NOTHING, "exit_code": 3}
    assert runner.done("exit") == NOTHING
    assert runner.done("exit false") == {**NOTHING, "exit_code": 1}
    assert runner.done("abort 'bye'") == {**NOTHING, "exit_code": 1} and runner.stderr == b"bye\n"
    assert runner.done("fork { exit 4 }; Process.wait; $?.exitstatus") == value_of(4, "Integer", "4")
    assert runner.done("if fork then Process.wait; $?.exitstatus else exit 6 end") == value_of(6, "Integer", "6")
    runner.done("exit 7")
    assert runner.end() == 7


def test_streams(runner):
    assert runner.done("print 'a'; warn 'b'; system 'echo c'; nil") == NOTHING
    assert (runner.stdout, runner.stderr) == (b"ac\n", b"b\n")
    runner.done("50_000.times { |i| puts i }; nil")
    assert runner.stdout == "".join(f"{i}\n" for i in range(50_000)).encode()


def test_host_functions(runner):
    functions = {"host_functions": ["multiply"], "host": lambda name, args, kwargs: {"result": args[0] * kwargs.get("by", 2)}}
    assert runner.value("multiply(2, by: 3)", **functions) == 6
    assert runner.value("class A; def m; multiply(5); end; end; A.new.m", **functions) == 10
    assert runner.value("4.times.map { |i| Thread.new { multiply(i) } }.map(&:value)", **functions) == [0, 2, 4, 6]
    for kind, known in (("ArgumentError", "ArgumentError"), ("ValueError", "HostError"), ("bad name", "HostError"), ("Kernel", "HostError")):
        answer = {"error": {"type": kind, "message": "no"}}
        done = runner.done("multiply(1)", host_functions=["multiply"], host=lambda *_: answer)
        assert (done["error"]["type"], done["error"]["message"], done["error"]["line"]) == (known, "no", 1)
        assert "main.rb" not in done["error"]["traceback"]
    assert runner.value("begin; multiply(1); rescue HostError => e; e.type; end", host_functions=["multiply"],
                        host=lambda *_: {"error": {"type": "Odd", "message": ""}}) == "Odd"
    assert runner.error("multiply(1..2)", **functions) == ("TypeError", "Range cannot cross the boundary of the sandbox")
    assert runner.error("multiply('a' * (1 << 20))", **functions)[0] == "ArgumentError"
    assert runner.error("multiply(1)")[0] == "NoMethodError"
    values = [None, 1, "é", {"$set": [1]}, {"$dict": [[1, 2]]}, {"$float": "nan"}, {"$int": str(2**70)}, {"$complex": [1.0, 2.0]}, {"$date": "2020-01-01"},
              {"$datetime": "2020-01-01T00:00:00.000000+00:00"}, {"$decimal": "1.5"}, {"$bytes": "/w=="}]
    assert runner.value("data", globals={"data": values}) == values
    assert runner.error("1", globals={"data": {"$odd": 1}}) == ("ArgumentError", "unknown tag $odd")


def test_forked_children_cannot_speak(runner):
    code = "pid = fork do\n  display 1\n  begin; multiply(1); rescue RuntimeError => e; puts e.message; end\nend\nProcess.wait(pid)\nnil"
    assert runner.done(code, host_functions=["multiply"]) == NOTHING
    assert runner.stdout == b"multiply() is a function of the host: a forked process cannot call it\n"
    assert runner.value("`ls -l /proc/self/fd`.include?('socket')") is False


def test_rich_outputs(runner):
    outputs, done = runner.run("class R; def to_html; '<b>'; end; def to_png; \"\\x89\".b; end; def inspect; 'R'; end; end\ndisplay 5\nR.new")
    assert outputs == [{"data": {"text/plain": "5"}, "metadata": {}}, {"data": {"text/plain": "R", "text/html": "<b>", "image/png": "iQ=="}, "metadata": {}}]
    assert done == {**NOTHING, "value_type": "R", "value_repr": "R"}
    outputs, _ = runner.run("150.times { |i| display i }")
    assert len(outputs) == 100 and runner.stderr == b"More than 100 outputs in one execution: the rest is left out.\n"


def test_interrupts(runner):
    runner.done("kept = 1")
    for code in ("loop {}", "sleep 60", "multiply(1)", "`sleep 60`", "Thread.new { sleep }.join", "loop { display 1 }"):
        number = runner.start(code, host_functions=["multiply"])
        time.sleep(0.15)
        runner.interrupt()
        while (done := runner.receive())["op"] != "done":
            pass
        assert done["n"] == number and done["interrupted"] is True and done["exit_code"] == 1 and done["error"]["type"] == "KeyboardInterrupt", (code, done)
        assert done["error"]["file"] == f"{runner.work}/cell-{number}.rb" and "main.rb" not in done["error"]["traceback"]
    runner.start("begin; sleep 60; rescue Interrupt; :caught; end")
    time.sleep(0.15)
    runner.interrupt()
    assert runner.receive()["value"] == "caught"
    runner.interrupt()
    assert runner.value("kept") == 1


@pytest.mark.parametrize("code", ["20_000.times { }; nil", "20.times { |i| display i }; nil", "10.times { |i| multiply(i) }; nil", "100.times { |i| puts i }; nil"])
def test_interrupts_at_any_moment_leave_the_stream_sound(runner, code):
    seen = set()
    for wait in moments(seen, 200, 1e-5):
        number = runner.start(code, host_functions=["multiply"])
        wait()
        runner.interrupt()
        while (message := runner.receive())["op"] != "done":
            if message["op"] == "call":
                runner.send({"op": "return", "call": message["call"], "result": 1})
        assert message["n"] == number
        assert (message["error"] or {}).get("type") == ("KeyboardInterrupt" if message["interrupted"] else None), message
        seen.add(message["interrupted"])
    assert True in seen
    assert runner.value("40 + 2") == 42


def test_files(runner):
    assert runner.file("write", "a/b.bin", base64="AP8=") == {"error": None}
    assert runner.file("read", "a/b.bin") == {"error": None, "base64": "AP8=", "size": 2}
    os.utime(f"{runner.work}/a/b.bin", (5, 5))
    os.symlink("/etc", f"{runner.work}/link")
    os.mkfifo(f"{runner.work}/pipe")
    entries = runner.file("list", ".")["entries"]
    assert [(e["path"], e["type"]) for e in entries] == [("a", "directory"), ("a/b.bin", "file"), ("link", "link")]
    assert entries[1] == {"path": "a/b.bin", "size": 2, "type": "file", "mtime": 5.0}
    assert runner.file("read", "none") == {"error": "ENOENT", "message": "No such file or directory"}
    assert runner.file("read", "a") == {"error": "EISDIR", "message": "Is a directory"}
    assert runner.file("read", "pipe")["error"] == "EINVAL"
    assert runner.file("write", "a/b.bin/c", base64="")["error"] == "ENOTDIR"
    assert [runner.file("remove", path)["error"] for path in ("link", "a", "a")] == [None, None, "ENOENT"]
    assert os.path.isdir("/etc") and runner.file("list", ".") == {"error": None, "entries": []}


def test_a_thousand_executions_do_not_grow(runner):
    size = "Integer(File.read('/proc/self/statm').split[1])"
    for n in range(300):
        runner.done(f"x = {n}; [x]")
    before = runner.value(f"GC.start; {size}")
    for n in range(1000):
        runner.done(f"x = {n}; [x]")
    assert runner.value(f"GC.start; {size}") - before < 2500  # pages
    assert runner.end() == 0
