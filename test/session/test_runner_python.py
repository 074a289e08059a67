# SPDX-License-Identifier: Apache-2.0
"""The Python session runner by itself: executions, values, errors, signals, files (test/lib/runner_driver.py drives it)."""
import base64
import os
import resource
import time

import pytest

from runner_driver import Runner, RunnerGone, moments

RUNNER_NAME = "/main.py"
NOTHING = {"error": None, "exit_code": 0, "interrupted": False}


@pytest.fixture(scope="module")
def shared():
    """A runner for tests that do not mind what others leave behind."""
    with Runner("python") as runner:
        yield runner


@pytest.fixture
def runner():
    with Runner("python") as runner:
        yield runner


def value_of(value, kind, text):
    return {**NOTHING, "value": value, "value_type": kind, "value_repr": text}


# -------------------------------------------------------------------------------------------- start


def test_it_leaves_no_file_and_an_empty_input(runner):
    assert os.listdir(runner.work) == []
    assert runner.value("import os, sys\nos.read(0, 1), sys.stdin.read(), os.readlink('/proc/self/fd/0')") == {
        "$tuple": [{"$bytes": ""}, "", "/dev/null"]}
    assert runner.value("os.get_inheritable(200), sys.argv, sys.path[0] == os.getcwd()") == {"$tuple": [False, [""], True]}
    assert runner.error("input()") == ("EOFError", "EOF when reading a line")
    assert runner.done("exit()") == NOTHING  # closes sys.stdin
    assert runner.error("input()") == ("EOFError", "EOF when reading a line")


def test_code_may_have_the_name_of_the_runner():
    """One execution, its file and its exit code: so a program is evaluated whose request says `eval`."""
    with Runner("python") as runner:
        done = runner.done("def f():\n    raise SystemExit(f'{x}')\nx = 5\n1/0", file=str(runner.script))
        path = str(runner.script)
        assert done["error"]["traceback"] == (f'Traceback (most recent call last):\n  File "{path}", line 4, in <module>\n    1/0\n    ~^~\n'
                                              "ZeroDivisionError: division by zero\n")
        assert (done["error"]["file"], done["error"]["line"]) == (path, 4)
        runner.start("while True: pass", file=path)
        time.sleep(0.1)
        runner.interrupt()
        assert runner.receive()["interrupted"] is True
        runner.done("exit(7)", file=path)
        assert runner.end() == 7


def test_it_works_with_few_descriptors():
    with Runner("python", limits=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))) as runner:
        assert runner.value("1 + 1") == 2


@pytest.mark.parametrize("code", ["1", "import asyncio\nasyncio.ensure_future\nawait asyncio.sleep(0)\nt = asyncio.create_task(asyncio.sleep(100))",
                                  "import atexit\natexit.register(print, 'end')"])
def test_it_ends_quietly_with_the_channel(code):
    with Runner("python") as runner:
        runner.run(code)
        runner.stdout = b""
        assert runner.end() == 0
        runner.drain()
        assert runner.stderr == b"" and runner.stdout == (b"end\n" if "atexit" in code else b"")


# ------------------------------------------------------------------------------------------- values

VALUES = [
    ("1 + 1", 2, "int", "2"),
    ("x = 5\nx * 2", 10, "int", "10"),
    ("'é\\n\\u2028😀'", "é\n\u2028😀", "str", "'é\\n\\u2028😀'"),
    ("[1, 2.5, True, None, {'a': []}]", [1, 2.5, True, None, {"a": []}], "list", "[1, 2.5, True, None, {'a': []}]"),
    ("2**63 - 1", 2**63 - 1, "int", str(2**63 - 1)),
    ("-2**63", -2**63, "int", str(-2**63)),
    ("2**63", {"$int": str(2**63)}, "int", str(2**63)),
    ("float('nan')", {"$float": "nan"}, "float", "nan"),
    ("-float('inf'), float('inf')", {"$tuple": [{"$float": "-inf"}, {"$float": "inf"}]}, "tuple", "(-inf, inf)"),
    ("import numpy as np\nnp.int64(-3)", -3, "int64", "-3"),
    ("np.uint64(2**64 - 1), np.float32(.5), np.float64('nan'), np.bool_(True)",
     {"$tuple": [{"$int": str(2**64 - 1)}, 0.5, {"$float": "nan"}, True]}, "tuple", "(18446744073709551615, 0.5, nan, True)"),
    ("b'\\xff'", {"$bytes": "/w=="}, "bytes", "b'\\xff'"),
    ("\ufeff'after a byte order mark'", "after a byte order mark", "str", "'after a byte order mark'"),
    ("bytearray(b'a')", {"$bytes": "YQ=="}, "bytearray", "bytearray(b'a')"),
    ("{3}", {"$set": [3]}, "set", "{3}"),
    ("frozenset({3})", {"$frozenset": [3]}, "frozenset", "frozenset({3})"),
    ("1 + 2j", {"$complex": [1.0, 2.0]}, "complex", "(1+2j)"),
    ("import datetime as d\nd.datetime(2020, 1, 2, 3, 4, 5, 6)", {"$datetime": "2020-01-02T03:04:05.000006"}, "datetime",
     "datetime.datetime(2020, 1, 2, 3, 4, 5, 6)"),
    ("d.datetime(2020, 1, 2, tzinfo=d.timezone.utc)", {"$datetime": "2020-01-02T00:00:00+00:00"}, "datetime",
     "datetime.datetime(2020, 1, 2, 0, 0, tzinfo=datetime.timezone.utc)"),
    ("d.date(2020, 1, 2)", {"$date": "2020-01-02"}, "date", "datetime.date(2020, 1, 2)"),
    ("d.time(1, 2)", {"$time": "01:02:00"}, "time", "datetime.time(1, 2)"),
    ("d.timedelta(days=1, microseconds=5)", {"$timedelta": 86400.000005}, "timedelta", "datetime.timedelta(days=1, microseconds=5)"),
    ("from decimal import Decimal\nDecimal('1.50')", {"$decimal": "1.50"}, "Decimal", "Decimal('1.50')"),
    ("{1: 'a', (2, 3): None}", {"$dict": [[1, "a"], [{"$tuple": [2, 3]}, None]]}, "dict", "{1: 'a', (2, 3): None}"),
    ("{'$x': 1}", {"$dict": [["$x", 1]]}, "dict", "{'$x': 1}"),
    ("{'$x': 1, 'y': 2}", {"$x": 1, "y": 2}, "dict", "{'$x': 1, 'y': 2}"),
    ("import enum\nenum.IntEnum('E', 'A').A", 1, "E", "<E.A: 1>"),
    ("from collections import namedtuple\nnamedtuple('P', 'x y')(1, 2)", {"$tuple": [1, 2]}, "P", "P(x=1, y=2)"),
    ("return 7", 7, "int", "7"),
    ("for i in range(9):\n    if i == 4:\n        return {'i': i}", {"i": 4}, "dict", "{'i': 4}"),
]


@pytest.mark.parametrize("code,value,kind,text", VALUES)
def test_values(shared, code, value, kind, text):
    assert shared.done(code) == value_of(value, kind, text)


@pytest.mark.parametrize("code", ["", "# nothing", "None", "x = 1", "print(end='')", "return", "return None", "if 1:\n    5", "def f(): return 1"])
def test_no_value(shared, code):
    assert shared.done(code) == NOTHING


@pytest.mark.parametrize("code,kind,text", [
    ("object", "type", "<class 'object'>"), ("[object]", "list", "[<class 'object'>]"), ("'\\ud800'", "str", "'\\ud800'"),
    ("a = []\na.append(a)\na", "list", "[[...]]"), ("import enum\nenum.Enum('E', 'A').A", "E", "<E.A: 1>")])
def test_values_that_json_cannot_hold(shared, code, kind, text):
    assert shared.done(code) == {**NOTHING, "value_type": kind, "value_repr": text}


def test_large_values(shared):
    done = shared.done("'a' * 70_000")
    assert done == {**NOTHING, "value": "a" * 70_000, "value_type": "str"}
    done = shared.done("'b' * (9 << 20)")
    text = done.pop("value_repr")
    assert done == {**NOTHING, "value_type": "str", "value_bytes": (9 << 20) + 2}  # no piece follows, because none was asked for
    assert text == "'" + "b" * ((1 << 20) - 1) + f"… ({(9 << 20) + 2} characters)"
    assert shared.value("[" * 60 + "]" * 60) is not None
    assert "value" not in shared.done("a = []\nfor _ in range(500):\n    a = [a]\na")


def test_a_repr_that_fails_is_an_error(shared):
    assert shared.error("class R:\n    def __repr__(self): return 1/0\nR()") == ("ZeroDivisionError", "division by zero")


# -------------------------------------------------------------------------------------------- state


def test_state_is_the_main_module(runner):
    assert runner.value("import dataclasses, pickle, sys\n@dataclasses.dataclass\nclass A:\n    x: int = 1\nsys.modules['__main__'].__dict__ is globals()")
    assert runner.value("pickle.loads(pickle.dumps(A(3))) == A(3), A.__module__, __name__") == {"$tuple": [True, "__main__", "__main__"]}
    assert runner.value("sorted(n for n in globals() if not n.startswith('__'))") == ["A", "dataclasses", "pickle", "sys"]
    assert runner.value("del A\n'A' in globals()") is False


def test_top_level_return_keeps_module_semantics(runner):
    assert runner.value("from math import *\nq: int = 3\nw: str\nexec('zz = 4')\nimport os.path as p, json\n"
                        "for i in range(2): pass\nwith open('/dev/null') as f: pass\ntry:\n    1/0\nexcept Exception as e: pass\n"
                        "match [1, 2]:\n    case [a, *b]: pass\nif (u := 5): pass\ndef g(): return u + q\nclass C:\n    k = u\n"
                        "[v := y for y in range(3)]\nreturn locals() is globals()") is True
    assert runner.value("cos(0), q, zz, json.dumps(1), i, f.closed, a, b, u, v, g(), C.k, C.__qualname__, g.__qualname__") == {
        "$tuple": [1.0, 3, 4, "1", 1, True, 1, [2], 5, 2, 8, 5, "C", "g"]}
    assert runner.error("y\nreturn 1") == ("NameError", "name 'y' is not defined")
    assert runner.value("'e' in globals()") is False
    assert runner.value("try:\n    return 1\nexcept:\n    pass\nfinally:\n    done = True") == 1
    assert runner.value("done") is True
    assert runner.value("if not done: return 1\n2 + 2") == 4
    assert runner.value("del q\nreturn 'q' in globals()") is False
    assert runner.value("import asyncio\nawait asyncio.sleep(0)\nr = 6\nreturn r") == 6
    assert runner.value("r") == 6


@pytest.mark.parametrize("code,message", [
    ("return (yield 1)", "'yield' outside function"), ("yield 1", "'yield' outside function"), ("return 1\nbreak", "'break' outside loop"),
    ("class A:\n    return 1", "'return' outside function"), ("def f(): await x", "'await' outside async function"),
    ("return 1\nnonlocal x", "nonlocal declaration not allowed at module level"), ("x =", "invalid syntax"), ("(", "'(' was never closed")])
def test_syntax_errors(shared, code, message):
    done = shared.done(code)
    path, line = f"{shared.work}/cell-{shared.count}.py", done["error"]["line"]
    assert (done["error"]["type"], done["error"]["message"], done["error"]["file"]) == ("SyntaxError", message, path)
    assert shared.stderr.decode().startswith(f'  File "{path}", line {line}\n    {code.splitlines()[line - 1].strip()}\n')
    assert shared.stderr.decode().endswith(f"SyntaxError: {message}\n")
    assert shared.stderr.decode() == done["error"]["traceback"]


def test_futures_hold_for_later_executions(runner):
    assert runner.value("from __future__ import annotations\ndef f(x: nothing): pass\nf.__annotations__") == {"x": "nothing"}
    assert runner.value("def g(x: nothing): pass\nreturn g.__annotations__") == {"x": "nothing"}


def test_await_uses_one_loop(runner):
    assert runner.value("import asyncio\nq = asyncio.Queue()\nloop = asyncio.get_running_loop()\nawait asyncio.sleep(0, 3)") == 3
    assert runner.value("async def put():\n    await q.put(5)\ntask = asyncio.create_task(put())\nawait asyncio.sleep(0)\n"
                        "loop is asyncio.get_running_loop()") is True
    assert runner.value("await q.get()") == 5
    assert runner.value("asyncio.run(asyncio.sleep(0, 'other'))") == "other"
    assert runner.value("async def agen():\n    yield 1\n    yield 2\n[x async for x in agen()]") == [1, 2]
    assert runner.value("async with asyncio.Lock() as l:\n    z = 8\nz") == 8
    assert runner.error("await asyncio.wait_for(asyncio.sleep(9), 0.01)")[0] == "TimeoutError"
    assert runner.done("import sys\nawait asyncio.sleep(0)\nsys.exit(4)") == {**NOTHING, "exit_code": 4}
    assert runner.error("asyncio.current_task().cancel()\nawait asyncio.sleep(1)")[0] == "CancelledError"
    assert runner.value("await asyncio.sleep(0, 1)") == 1


def test_context_variables_persist(runner):
    assert runner.value("import decimal, asyncio\ndecimal.getcontext().prec = 5\nimport contextvars\nv = contextvars.ContextVar('v')\nv.set(1)\nv.get()") == 1
    assert runner.value("await asyncio.sleep(0)\nv.set(v.get() + 1)\nstr(decimal.Decimal(1) / 3)") == "0.33333"
    assert runner.value("v.get()") == 2


# ------------------------------------------------------------------------------------------- errors


def test_an_error_tells_where_and_hides_the_runner(runner):
    code = "def f(n):\n    if n:\n        return f(n - 1)\n    return {}['é']\n\nf(1)"
    done = runner.done(code)
    path = f"{runner.work}/cell-1.py"
    text = (f'Traceback (most recent call last):\n  File "{path}", line 6, in <module>\n    f(1)\n  File "{path}", line 3, in f\n'
            f'    return f(n - 1)\n           ^^^^^^^^\n  File "{path}", line 4, in f\n    return {{}}[\'é\']\n           ~~^^^^^\nKeyError: \'é\'\n')
    assert done == {**NOTHING, "exit_code": 1, "error": {"type": "KeyError", "message": "'é'", "file": path, "line": 4, "traceback": text}}
    assert runner.stderr.decode() == text and runner.stdout == b""
    assert runner.done("f(0)")["error"]["file"] == path  # the source of an earlier execution


def test_errors_of_libraries_point_at_the_program(runner):
    error = runner.done("import json\n\njson.loads('{')")["error"]
    assert (error["type"], error["module"], error["file"], error["line"]) == ("JSONDecodeError", "json.decoder", f"{runner.work}/cell-1.py", 3)
    assert "/usr/lib/python3" in error["traceback"] and RUNNER_NAME not in error["traceback"]


def test_causes_groups_and_tasks_hide_the_runner(runner):
    code = ("import asyncio\nasync def bad(): raise ValueError('a')\nasync def main():\n    async with asyncio.TaskGroup() as g:\n"
            "        g.create_task(bad())\n        g.create_task(bad())\ntry:\n    await main()\nexcept BaseException as e:\n    raise RuntimeError('b') from e")
    error = runner.done(code)["error"]
    assert error["type"] == "RuntimeError" and RUNNER_NAME not in error["traceback"] and "The above exception" in error["traceback"]
    assert "run_until_complete" not in error["traceback"]


def test_exits(runner):
    for code, number in [("raise SystemExit", 0), ("import sys; sys.exit(3)", 3), ("exit(256 + 7)", 7), ("quit()", 0), ("sys.exit(-1)", 255)]:
        assert runner.done(code) == {**NOTHING, "exit_code": number}
    assert runner.done("sys.exit('bye')") == {**NOTHING, "exit_code": 1}
    assert runner.stderr == b"bye\n"


def test_a_broken_exception_and_a_hook(runner):
    error = runner.done("class E(Exception):\n    def __str__(self): return 1/0\nraise E")["error"]
    assert (error["type"], error["message"], error["module"]) == ("E", "<E without a text>", "__main__")
    runner.done("import sys\nsys.excepthook = lambda kind, error, tb: print('hook', kind.__name__, tb.tb_lineno)")
    assert runner.error("\n1/0") == ("ZeroDivisionError", "division by zero")
    assert runner.stdout == b"hook ZeroDivisionError 2\n" and runner.stderr == b""


def test_a_deep_recursion_and_a_huge_message(runner):
    assert runner.error("def f(): f()\nf()") == ("RecursionError", "maximum recursion depth exceeded")
    assert b"[Previous line repeated 98" in runner.stderr
    error = runner.done("raise ValueError('a' * 10_000_000)")["error"]
    assert error["message"] == "a" * 65536 + "… (10000000 characters)" and len(error["traceback"]) < 300_000
    assert len(runner.stderr) > 10_000_000


def test_memory_errors_are_errors():
    with Runner("python", limits=lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 28, 1 << 28))) as runner:
        for _ in range(2):
            error = runner.done("a = []\nwhile True: a.append(bytearray(1 << 20))")["error"]
            assert (error["type"], error["message"], error["line"]) == ("MemoryError", "", 2)
            assert runner.value("n = len(a)\na.clear()\nn > 20") is True


# ------------------------------------------------------------------------------------------- streams


def test_streams_are_flushed_before_done(runner):
    assert runner.done("import sys\nprint('a', end='')\nsys.stderr.write('b')\nimport os\nos.system('echo c')") == value_of(0, "int", "0")
    assert (runner.stdout, runner.stderr) in ((b"ac\n", b"b"), (b"c\na", b"b"))
    runner.done("for i in range(200_000): print(i)")
    assert runner.stdout == "".join(f"{i}\n" for i in range(200_000)).encode()
    runner.done("sys.stdout.write('x' * 5_000_000)")
    assert runner.stdout == b"x" * 5_000_000


def test_lines_come_at_once(runner):
    runner.start("print('now')\nimport time\ntime.sleep(60)")
    while runner.stdout != b"now\n":
        runner.drain()
        time.sleep(0.01)
    runner.interrupt()
    assert runner.receive()["interrupted"] is True


def test_closed_and_replaced_streams(runner):
    assert runner.done("import sys, io\nsys.stdout = io.StringIO()\nprint('lost')") == NOTHING
    assert runner.done("sys.stdout.close()") == NOTHING
    assert runner.done("sys.stdout = sys.__stdout__\nprint('back')") == NOTHING
    assert runner.stdout == b"back\n"
    assert runner.error("sys.stderr.close()\n1/0")[0] == "ZeroDivisionError"
    assert b"ZeroDivisionError" in runner.stderr


# ------------------------------------------------------------------------------------------- signals


def test_interrupts_keep_the_state(runner):
    for code in ("x = 1\nwhile True: pass", "import time\ntime.sleep(60)", "import asyncio\nawait asyncio.sleep(60)",
                 "async def f():\n    while True: await asyncio.sleep(0)\nawait asyncio.gather(f(), f())", "async def g():\n    while True: pass\nawait g()",
                 "t = asyncio.create_task(g())\nawait asyncio.sleep(60)", "asyncio.run(asyncio.sleep(60))", "multiply(1, 2)", "await multiply(1, 2)",
                 "import subprocess\nsubprocess.run(['sleep', '60'])", "import threading\nthreading.Event().wait()"):
        runner.start(code, host_functions=["multiply"])
        time.sleep(0.15)
        runner.interrupt()
        done = runner.receive()
        if done["op"] == "call":
            done = runner.receive()
        assert done["interrupted"] is True and done["exit_code"] == 1 and done["error"]["type"] == "KeyboardInterrupt", (code, done)
        assert RUNNER_NAME not in done["error"]["traceback"]
        assert done["error"]["file"].startswith(f"{runner.work}/cell-")
        if "t = " in code:
            runner.done("t.cancel()")
    assert runner.value("x") == 1


def test_a_program_may_handle_the_interrupt(runner):
    runner.start("import time\ntry:\n    time.sleep(60)\nexcept KeyboardInterrupt:\n    caught = True\ncaught")
    time.sleep(0.2)
    runner.interrupt()
    assert runner.receive() == {"op": "done", "n": 1, **value_of(True, "bool", "True")}
    assert runner.done("raise KeyboardInterrupt")["interrupted"] is False
    runner.run("import signal\nsignal.signal(signal.SIGINT, signal.SIG_DFL)")
    runner.interrupt()
    assert runner.value("caught") is True


def test_an_interrupt_between_executions_is_ignored(runner):
    for _ in range(20):
        runner.interrupt()
        assert runner.value("1") == 1
        runner.interrupt()
        assert runner.file("list", ".") == {"error": None, "entries": []}


@pytest.mark.parametrize("code", ["for i in range(90_000): pass", "for i in range(30): display(i)", "import asyncio\nfor i in range(20): await asyncio.sleep(0)",
                                  "for i in range(10): multiply(i, i)", "for i in range(10): await multiply(i, i)",
                                  "for i in range(300): print(i)"])
def test_interrupts_at_any_moment_leave_the_stream_sound(runner, code):
    """The signal comes at a growing delay after the start, so that it hits each part of an execution. Each `done` is whole."""
    seen = set()
    runner.run(code, host=lambda *_: {"result": 1}, host_functions=["multiply"])
    for wait in moments(seen, 200, 1e-5):
        number = runner.start(code, host_functions=["multiply"])
        wait()
        runner.interrupt()
        while (message := runner.receive())["op"] != "done":
            assert message["op"] in ("output", "call")
            if message["op"] == "call":
                runner.send({"op": "return", "call": message["call"], "result": 1})
        assert message["n"] == number
        if message["interrupted"]:
            assert message["error"]["type"] == "KeyboardInterrupt"
        else:
            assert message["error"] is None and message["exit_code"] == 0
        seen.add(message["interrupted"])
    assert True in seen
    assert runner.value("40 + 2") == 42


# ------------------------------------------------------------------------------------------- processes


def test_forked_children_cannot_speak(runner):
    code = ("import os, sys\npid = os.fork()\nif pid == 0:\n    try:\n        multiply(1, 2)\n    except RuntimeError as e:\n"
            "        print(e)\n    display(1)\nelse:\n    os.waitpid(pid, 0)\n'end'")
    assert runner.value(code, host_functions=["multiply"]) == "end"
    assert runner.stdout == b"multiply() is a function of the host: a forked process cannot call it\n"
    assert runner.value("pid = os.fork()\nif pid == 0: sys.exit(5)\nos.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])") == 5
    assert runner.value("import multiprocessing\nwith multiprocessing.Pool(2) as p: r = p.map(abs, [-1, -2])\nr") == [1, 2]
    assert runner.value("import subprocess\nsubprocess.run(['cat'], capture_output=True).stdout") == {"$bytes": ""}
    assert runner.value("'socket' in subprocess.run('ls -l /proc/self/fd', shell=True, capture_output=True, text=True, close_fds=False).stdout") is False
    family = "for _ in range(2):\n    pid = os.fork()\n    if pid == 0: continue\n    os.waitpid(pid, 0)\n    break\nprint('one')\n'end'"
    assert runner.value(family) == "end" and (runner.stdout, runner.stderr) == (b"one\n" * 3, b"")


def test_the_end_of_the_process_ends_the_channel(runner):
    with pytest.raises(RunnerGone):
        runner.done("import os\nos._exit(3)")


def test_a_thousand_executions_do_not_grow(runner):
    code = "x = {n}\nclass A{n}: pass\ntry:\n    1/0\nexcept Exception: pass\n[{n}] * 10"
    size = "int(open('/proc/self/statm').read().split()[1])"
    for n in range(200):
        runner.done(code.replace("{n}", str(n)).replace(f"A{n}", "A"))
    runner.done("1/0")
    before = runner.value(size)
    for n in range(1000):
        runner.done(code.replace("{n}", str(n)).replace(f"A{n}", "A"))
    assert runner.value(size) - before < 150  # pages
    assert runner.value("import linecache\nlen(linecache.cache) < 400") is True


# ------------------------------------------------------------------------------------------- files


def b64(data):
    return base64.b64encode(data).decode()


def test_files(runner):
    assert runner.file("write", "a/b/c.bin", base64=b64(b"\0\xff")) == {"error": None}
    assert runner.file("read", "a/b/c.bin") == {"error": None, "base64": b64(b"\0\xff"), "size": 2}
    runner.done("import os\nos.symlink('/etc', 'link')\nos.mkfifo('pipe')\nos.utime('a/b/c.bin', (5, 5))\nos.chdir('/')")
    answer = runner.file("list", ".")
    assert [(e["path"], e["type"]) for e in answer["entries"]] == [("a", "directory"), ("a/b", "directory"), ("a/b/c.bin", "file"), ("link", "link")]
    assert answer["entries"][2] == {"path": "a/b/c.bin", "size": 2, "type": "file", "mtime": 5.0}
    assert [e["path"] for e in runner.file("list", "a/b")["entries"]] == ["a/b/c.bin"]
    assert [e["path"] for e in runner.file("list", "a/b/c.bin")["entries"]] == ["a/b/c.bin"]
    assert runner.file("read", "none") == {"error": "ENOENT", "message": "No such file or directory"}
    assert runner.file("list", "none") == {"error": "ENOENT", "message": "No such file or directory"}
    assert runner.file("read", "a") == {"error": "EISDIR", "message": "Is a directory"}
    assert runner.file("read", "pipe") == {"error": "EINVAL", "message": "Invalid argument"}
    assert runner.file("write", "a", base64="") == {"error": "EISDIR", "message": "Is a directory"}
    assert runner.file("write", "a/b/c.bin/d", base64="")["error"] == "ENOTDIR"
    assert runner.file("remove", "link") == {"error": None}
    assert runner.file("remove", "a") == {"error": None}
    assert runner.file("remove", "a") == {"error": "ENOENT", "message": "No such file or directory"}
    assert os.path.isdir("/etc") and runner.file("list", ".") == {"error": None, "entries": []}


def test_large_files_and_many(runner):
    data = os.urandom(1 << 20) * 4
    assert runner.file("write", "large", base64=b64(data)) == {"error": None}
    assert runner.file("read", "large")["base64"] == b64(data)
    os.truncate(f"{runner.work}/large", 32 << 20)
    assert len(runner.file("read", "large")["base64"]) == -(-(32 << 20) // 3) * 4
    os.truncate(f"{runner.work}/large", (32 << 20) + 1)
    piece = runner.file("read", "large", offset=32 << 20, size=5)
    assert piece == {"error": None, "base64": b64(b"\0"), "size": (32 << 20) + 1}
    assert runner.file("write", "large", offset=32 << 20, base64=b64(b"xyz"))["error"] is None
    assert runner.file("read", "large", offset=(32 << 20) - 1) == {"error": None, "base64": b64(b"\0xyz"), "size": (32 << 20) + 3}
    for n in range(10_010):
        open(f"{runner.work}/f{n}", "w").close()
    assert len(runner.file("list", ".")["entries"]) == 10_000
