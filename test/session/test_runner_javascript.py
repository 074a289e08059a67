# SPDX-License-Identifier: Apache-2.0
"""The JavaScript session runner by itself (test/lib/runner_driver.py drives it)."""
import base64
import os
import shutil
import time

import pytest

from runner_driver import Runner, RunnerGone, moments

pytestmark = pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")
NOTHING = {"error": None, "exit_code": 0, "interrupted": False}
INTERRUPTED = {"error": {"type": "KeyboardInterrupt", "message": "", "file": None, "line": None, "traceback": "KeyboardInterrupt\n"},
               "exit_code": 1, "interrupted": True}


@pytest.fixture(scope="module")
def shared():
    with Runner("javascript") as runner:
        yield runner


@pytest.fixture
def runner():
    with Runner("javascript") as runner:
        yield runner


def value_of(value, kind, text):
    return {**NOTHING, "value": value, "value_type": kind, "value_repr": text}


VALUES = [
    ("1 + 1", 2, "number", "2"), ("'é\\n\\u2028'", "é\n\u2028", "string", "'é\\n\u2028'"), ("[1, 2.5, true, null, undefined, {a: []}]",
     [1, 2.5, True, None, None, {"a": []}], "Array", "[ 1, 2.5, true, null, undefined, { a: [] } ]"),
    ("null", None, "null", "null"), ("NaN", {"$float": "nan"}, "number", "NaN"), ("[-Infinity, Infinity]", [{"$float": "-inf"}, {"$float": "inf"}],
     "Array", "[ -Infinity, Infinity ]"),
    ("2n ** 70n", {"$int": str(2**70)}, "bigint", f"{2**70}n"), ("Buffer.from([255])", {"$bytes": "/w=="}, "Buffer", "<Buffer ff>"),
    ("new Uint8Array([255]).buffer", {"$bytes": "/w=="}, "ArrayBuffer", "ArrayBuffer { [Uint8Contents]: <ff>, byteLength: 1 }"),
    ("new Set([3])", {"$set": [3]}, "Set", "Set(1) { 3 }"), ("new Map([[1, 'a']])", {"$dict": [[1, "a"]]}, "Map", "Map(1) { 1 => 'a' }"),
    ("new Date(0)", {"$datetime": "1970-01-01T00:00:00.000Z"}, "Date", "1970-01-01T00:00:00.000Z"),
    ("({$x: 1})", {"$dict": [["$x", 1]]}, "Object", "{ '$x': 1 }"), ("({$x: 1, y: undefined, z: 2})", {"$x": 1, "z": 2}, "Object", "{ '$x': 1, y: undefined, z: 2 }"),
    ("return 7", 7, "number", "7"), ("for (let i = 0; ; i++) { if (i === 4) { return {i} } }", {"i": 4}, "Object", "{ i: 4 }"),
    ("await new Promise((r) => setTimeout(r, 1, 5))", 5, "number", "5"), ("return (await Promise.all([1, 2])).length", 2, "number", "2"),
    ("(await import('path')).basename('/a/b')", "b", "string", "'b'"), ("require('path').basename('/a/b')", "b", "string", "'b'"),
    ("function f() { return 1 }\nf()", 1, "number", "1"), ("[1].map((x) => { return x + 1 })", [2], "Array", "[ 2 ]"),
]


@pytest.mark.parametrize("code,value,kind,text", VALUES)
def test_values(shared, code, value, kind, text):
    assert shared.done(code) == value_of(value, kind, text)


@pytest.mark.parametrize("code", ["", "// nothing", "undefined", "let unused = 1", "return", "var v0 = 1", "function f0() {}"])
def test_no_value(shared, code):
    assert shared.done(code) == NOTHING


@pytest.mark.parametrize("code,kind,text", [
    ("() => 1", "function", "[Function (anonymous)]"), ("class Q {}; new Q()", "Q", "Q {}"), ("'\\ud800'", "string", "'\\ud800'"), ("Symbol('s')", "symbol", "Symbol(s)"),
    ("const c = []; c.push(c); c", "Array", "<ref *1> [ [Circular *1] ]"), ("Promise.resolve(1)", "Promise", "Promise { 1 }"), ("/x/", "RegExp", "/x/")])
def test_values_that_json_cannot_hold(shared, code, kind, text):
    assert shared.done(code) == {**NOTHING, "value_type": kind, "value_repr": text}


def test_large_values(shared):
    assert shared.done("'a'.repeat(70000)") == {**NOTHING, "value": "a" * 70_000, "value_type": "string"}
    done = shared.done("'b'.repeat(9 << 20)")
    assert "value" not in done and done["value_repr"].endswith("... 9427184 more characters")


def test_values_that_the_front_does_not_read(shared):
    assert shared.value("[1e20, -1e20, 1e300 * 0 + 1e22]") == [{"$int": str(10**20)}, {"$int": str(-10**20)}, {"$int": str(10**22)}]
    assert shared.value("({'a\\0': 1})") == {"$dict": [["a\0", 1]]}
    assert "value" in shared.done("var deep = []; for (let i = 0; i < 58; i++) deep = [deep]; deep")
    assert "value" not in shared.done("deep = new Set([new Map([[1, [deep]]])])")
    assert "value" in shared.done("Array(240000).fill(1)")
    assert "value" not in shared.done("Array(260000).fill(1)")


def test_state(runner):
    assert runner.done("let a = 1; const b = 2; class C { x = 3 }; var d = 4; function e() { return a + b + d }") == NOTHING
    assert runner.value("[a, b, new C().x, d, e()]") == [1, 2, 3, 4, 7]
    assert runner.value("const b = 20; let a = 10; return e()") == 34
    assert runner.value("const {x, y: [z]} = {x: 1, y: [2]}; await 0; x + z") == 3
    assert runner.value("z") == 2
    assert os.listdir(runner.work) == []
    assert runner.value("[process.argv.length, __filename]") == [1, f"{runner.work}/cell.js"]


def test_input_is_empty(runner):
    assert runner.value("const chunks = []; for await (const c of process.stdin) chunks.push(c); chunks.length") == 0
    assert runner.value("const fs = require('fs'); [fs.readFileSync(0).length, fs.readFileSync('/dev/stdin').length, fs.readSync(0, Buffer.alloc(9))]") == [0, 0, 0]
    assert runner.value("const cp = require('child_process'); String(cp.execSync('cat', {stdio: ['inherit', 'pipe', 'inherit']}))") == ""
    assert runner.value("cp.spawnSync('cat', [], {stdio: 'inherit'}).status") == 0
    assert runner.value("await new Promise((r) => cp.spawn('cat', {stdio: 'inherit'}).on('exit', r))") == 0
    assert runner.value("1") == 1


def test_errors(runner):
    done = runner.done("function f() {\n  throw new TypeError('deep')\n}\nf()")
    path = f"{runner.work}/cell-1.js"
    text = f"{path}:2\n  throw new TypeError('deep')\n        ^\n\nTypeError: deep\n    at f ({path}:2:9)\n    at {path}:4:1\n"
    assert done == {**NOTHING, "exit_code": 1, "error": {"type": "TypeError", "message": "deep", "file": path, "line": 2, "traceback": text}}
    assert runner.stderr.decode() == text
    done = runner.done("let q = \n")
    assert (done["error"]["type"], done["error"]["message"], done["error"]["line"]) == ("SyntaxError", "Unexpected end of input", 2)
    assert runner.done("throw 5")["error"] == {"type": "number", "message": "5", "file": f"{runner.work}/cell-3.js", "line": 1,
                                               "traceback": f"{runner.work}/cell-3.js:1\nthrow 5\n     ^\n\nUncaught 5\n"}
    assert runner.error("await Promise.reject(new RangeError('r'))") == ("RangeError", "r")
    assert runner.error("setTimeout(() => { throw new Error('late') }, 1); await new Promise(() => {})") == ("Error", "late")
    assert runner.error("Promise.reject(new Error('lost')); await new Promise((r) => setTimeout(r, 1000))") == ("Error", "lost")
    assert runner.error("class E extends Error { constructor() { super('m', {cause: new Error('c')}); this.name = 'E' } }; throw new E()") == ("E", "m")
    assert b"cause" in runner.stderr and b"/main.js" not in runner.stderr
    runner.done("setTimeout(() => { throw new Error('between') }, 1)")
    time.sleep(0.1)
    assert runner.value("1") == 1


def test_stacks_hide_the_runner(runner):
    path = f"{runner.work}/cell-1.js"
    assert runner.value("try { null.x } catch (e) { e.stack }") == \
        f"TypeError: Cannot read properties of null (reading 'x')\n    at {path}:1:12"
    runner.done("console.log(new Error('a', {cause: new Error('b')})); try { require('fs').readFileSync('/none') } catch (e) { console.log(e) }")
    text = runner.stdout.decode()
    assert "Error: a\n" in text and "[cause]: Error: b\n" in text and "ENOENT" in text and "cell-2.js" in text, text
    assert "inspector" not in text and "main.js" not in text, text
    error = runner.done("require('fs').readFileSync('/none')")["error"]
    assert (error["file"], error["line"]) == (f"{runner.work}/cell-3.js", 1), error


def test_words_of_a_module(runner):
    assert runner.value("module.exports = {a: 1}; [require.main === module, exports === module.exports, __dirname]") == [True, False, runner.work]
    assert runner.value("const module = 3, exports = 4; module + exports") == 7


def test_exits(runner):
    assert runner.done("process.exit(3)") == {**NOTHING, "exit_code": 3}
    assert runner.done("process.exit()") == NOTHING
    assert runner.done("process.exitCode = 4; undefined") == {**NOTHING, "exit_code": 4}
    assert runner.done("setTimeout(() => process.exit(6), 1); await new Promise(() => {})") == {**NOTHING, "exit_code": 6}
    assert runner.done("1") == value_of(1, "number", "1")


def test_streams(runner):
    assert runner.done("console.log('a'); console.error('b'); process.stdout.write('c'); undefined") == NOTHING
    assert (runner.stdout, runner.stderr) == (b"a\nc", b"b\n")
    runner.done("for (let i = 0; i < 50000; i++) console.log(i)")
    assert runner.stdout == "".join(f"{i}\n" for i in range(50_000)).encode()
    runner.done("process.stdout.write('x'.repeat(5e6)); undefined")
    assert runner.stdout == b"x" * 5_000_000


def test_host_functions(runner):
    functions = {"host_functions": ["multiply"], "host": lambda name, args, kwargs: {"result": args[0] * args[1]}}
    assert runner.value("await multiply(2, 3)", **functions) == 6
    runner.start("await Promise.all([multiply(1), multiply(2)])", host_functions=["multiply"])
    assert [runner.receive() for _ in range(2)] == [
        {"op": "call", "call": 2, "name": "multiply", "args": [1], "kwargs": {}}, {"op": "call", "call": 3, "name": "multiply", "args": [2], "kwargs": {}}]
    for call in (3, 2):
        runner.send({"op": "return", "call": call, "result": {"$bytes": "eA=="}})
    assert runner.receive()["value"] == [{"$bytes": "eA=="}] * 2
    for kind, known in (("TypeError", "TypeError"), ("ValueError", "HostError")):
        answer = {"error": {"type": kind, "message": "no"}}
        done = runner.done("\nawait multiply(1)", host_functions=["multiply"], host=lambda *_: answer)
        path = f"{runner.work}/cell-{runner.count}.js"
        text = f"{path}:2\nawait multiply(1)\n      ^\n\n{known}: no\n    at {path}:2:7" + ("" if known == "TypeError" else " {\n  type: 'ValueError'\n}") + "\n"
        assert done["error"] == {"type": known, "message": "no", "file": path, "line": 2, "traceback": text}
    assert runner.value("try { await multiply(1) } catch (e) { [e.type, e instanceof HostError] }", host_functions=["multiply"],
                        host=lambda *_: {"error": {"type": "Odd", "message": ""}}) == ["Odd", True]
    assert runner.error("await multiply(() => 1)", **functions) == ("TypeError", "function cannot cross the boundary of the sandbox")
    assert runner.error("await multiply('a'.repeat(1 << 20))", **functions)[0] == "RangeError"
    assert runner.error("await multiply(1)") == ("ReferenceError", "multiply is not defined")
    values = [None, 1, "é", {"$bytes": "/w=="}, {"$set": [1]}, {"$dict": [[1, 2]]}, {"$float": "nan"}, {"$int": "5"}, {"$datetime": "2020-01-01T00:00:00.000Z"}]
    assert runner.value("data", globals={"data": values}) == values
    assert runner.error("1", globals={"data": {"$odd": 1}}) == ("TypeError", "unknown tag $odd")


def test_rich_outputs(runner):
    png = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
    outputs, done = runner.run("display({toHTML() { return '<b>' }}, 5); Buffer.from('%s', 'base64')" % png)
    assert outputs == [{"data": {"text/plain": "{ toHTML: [Function: toHTML] }", "text/html": "<b>"}, "metadata": {}}, {"data": {"text/plain": "5"}, "metadata": {}},
                       {"data": {"text/plain": "<Buffer 89 50 4e 47 0d 0a 1a 0a>", "image/png": png}, "metadata": {}}]
    assert done["value"] == {"$bytes": png}
    outputs, _ = runner.run("({[Symbol.for('Jupyter.display')]() { return {'application/json': {a: 1}} }})")
    assert outputs[0]["data"]["application/json"] == {"a": 1}
    outputs, _ = runner.run("for (let i = 0; i < 150; i++) display(i)")
    assert len(outputs) == 100 and runner.stderr == b"More than 100 outputs in one execution: the rest is left out.\n"
    outputs, _ = runner.run("display({toHTML() { return 'x'.repeat(40 << 20) }})")
    assert outputs[0]["data"].keys() == {"text/plain"} and "is too large" in outputs[0]["data"]["text/plain"]


def test_interrupts(runner):
    runner.value("var kept = 1; kept")
    for code in ("while (true) {}", "await new Promise(() => {})", "while (true) await null", "await 1; for (;;) {}", "for (;;) [1].map((x) => x)", "await multiply(1)", "require('child_process').execSync('sleep 60')"):
        number = runner.start(code, host_functions=["multiply"])
        time.sleep(0.15)
        runner.interrupt()
        done = runner.receive()
        if done["op"] == "call":
            done = runner.receive()
        assert done["op"] == "done" and done["n"] == number
        if "execSync" not in code:  # Node reports how the command ended
            assert done == {"op": "done", "n": number, **INTERRUPTED}
        runner.interrupt()
        time.sleep(0.05)  # Node's watchdog is a thread
        assert runner.value("kept") == 1


def test_interrupts_after_a_host_call(runner):
    number = runner.start("await multiply(1); for (;;) {}", host_functions=["multiply"])
    runner.send({"op": "return", "call": runner.receive()["call"], "result": 1})
    time.sleep(0.15)
    runner.interrupt()
    assert runner.receive() == {"op": "done", "n": number, **INTERRUPTED}


def test_interrupts_keep_the_state_each_time(runner):
    runner.done("var count = 0")
    for attempt in range(60):
        code = ("count++; for (;;) display", "count++; for (;;) console.log('x'.repeat(99))", "count++; await new Promise(() => {})")[attempt % 3]
        number = runner.start(code)
        time.sleep(0.01)
        runner.interrupt()
        assert runner.receive() == {"op": "done", "n": number, **INTERRUPTED}
    assert runner.value("count") == 60
    assert runner.done("console.log('fine')") == NOTHING and runner.stdout == b"fine\n"


def test_interrupts_at_any_moment_leave_the_stream_sound():
    """Each message is whole. Node may end when V8 terminates code in the instant in which it ends."""
    seen, lost, runner = set(), 0, Runner("javascript").__enter__()
    for attempt, wait in enumerate(moments(seen, 200, 1e-5)):
        number = runner.start(("for (let i = 0; i < 1e5; i++) {}", "await 1; 2", "let = ;", "display(1); throw new Error()")[attempt % 4])
        wait()
        runner.interrupt()
        try:
            while (message := runner.receive())["op"] == "output":
                pass
        except (RunnerGone, ConnectionResetError):
            lost += 1
            runner.__exit__()
            runner = Runner("javascript").__enter__()
            continue
        assert message["op"] == "done" and message["n"] == number
        seen.add(message["interrupted"])
    runner.__exit__()
    assert seen == {True, False} and lost <= attempt // 10


def test_files(runner):
    assert runner.file("write", "a/b.bin", base64="AP8=") == {"error": None}
    assert runner.file("read", "a/b.bin") == {"error": None, "base64": "AP8=", "size": 2}
    os.utime(f"{runner.work}/a/b.bin", (5, 5))
    os.symlink("/etc", f"{runner.work}/link")
    entries = runner.file("list", ".")["entries"]
    assert [(e["path"], e["type"]) for e in entries] == [("a", "directory"), ("a/b.bin", "file"), ("link", "link")]
    assert entries[1] == {"path": "a/b.bin", "size": 2, "type": "file", "mtime": 5}
    assert runner.file("read", "none") == {"error": "ENOENT", "message": "no such file or directory"}
    assert runner.file("read", "a")["error"] == "EISDIR"
    assert [runner.file("remove", path)["error"] for path in ("link", "a", "a")] == [None, None, "ENOENT"]
    assert os.path.isdir("/etc") and runner.file("list", ".") == {"error": None, "entries": []}
    with open(f"{runner.work}/large", "wb") as file:
        file.truncate((32 << 20) + 1)
    piece = runner.file("read", "large", offset=32 << 20, size=5)
    assert piece == {"error": None, "base64": "AA==", "size": (32 << 20) + 1}
    assert runner.file("write", "large", offset=32 << 20, base64="eHl6")["error"] is None
    assert runner.file("read", "large", offset=(32 << 20) - 1) == {"error": None, "base64": "AHh5eg==", "size": (32 << 20) + 3}


def test_a_thousand_executions_do_not_grow(runner):
    size = "globalThis.gc?.(); process.memoryUsage().rss"
    for n in range(300):
        runner.done(f"var x{n % 10} = {n}; [{n}]")
    before = runner.value(size)
    for n in range(1000):
        runner.done(f"var x{n % 10} = {n}; [{n}]")
    assert runner.value(size) - before < 40 << 20


def test_code_may_have_the_name_of_the_runner():
    with Runner("javascript") as runner:
        path = str(runner.script)
        done = runner.done("let x = 1;\nthrow new Error('e')", file=path)
        assert done["error"] == {"type": "Error", "message": "e", "file": path, "line": 2,
                                 "traceback": f"{path}:2\nthrow new Error('e')\n      ^\n\nError: e\n    at {path}:2:7\n"}
        runner.done("process.exit(7)", file=path)
        assert runner.end() == 7


@pytest.mark.parametrize("code,text", [("1", b""), ("setTimeout(() => console.log('later'), 50)", b"later\n")])
def test_it_ends_with_the_channel(code, text):
    with Runner("javascript") as runner:
        runner.run(code)
        runner.stdout = b""
        assert runner.end() == 0
        runner.drain()
        assert (runner.stdout, runner.stderr) == (text, b"")
