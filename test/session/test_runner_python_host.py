# SPDX-License-Identifier: Apache-2.0
"""The Python session runner: host functions, globals, rich outputs, rules."""
import base64
import json

import pytest

from runner_driver import Runner
from test_runner_python import NOTHING, RUNNER_NAME, value_of


@pytest.fixture
def runner():
    with Runner("python") as runner:
        yield runner


def multiply(name, args, kwargs):
    assert name == "multiply"
    return {"result": args[0] * (args[1] if len(args) > 1 else kwargs["by"])}


FUNCTIONS = {"host_functions": ["multiply"], "host": multiply}


# ------------------------------------------------------------------------------------- host functions


def test_a_call_is_one_message(runner):
    number = runner.start("print('before', end='')\nmultiply(2, by=(3, b'x'))", host_functions=["multiply"])
    assert runner.receive() == {"op": "call", "call": 1, "name": "multiply", "args": [2],
                                "kwargs": {"by": {"$tuple": [3, {"$bytes": "eA=="}]}}}
    assert runner.stdout == b"before"
    runner.send({"op": "return", "call": 1, "result": {"$set": [6]}})
    assert runner.receive() == {"op": "done", "n": number, **value_of({"$set": [6]}, "set", "{6}")}
    runner.start("multiply(1)", host_functions=["multiply"])
    assert runner.receive()["call"] == 2


@pytest.mark.parametrize("code", [
    "multiply(2, 3)", "return multiply(2, by=3)", "await multiply(2, 3)", "def f(): return multiply(2, 3)\nf()",
    "async def f(): return await multiply(2, 3)\nawait f()", "import asyncio\nasyncio.run(f2())", "import asyncio\nawait asyncio.create_task(multiply(2, 3))",
    "def g(): return multiply(1, 6)\nawait asyncio.sleep(0)\ng()", "import asyncio\n(await asyncio.gather(*(multiply(i, 2) for i in range(4))))[3]",
    "(await asyncio.gather(*[multiply(i, 2) for i in range(4)]))[3]", "import asyncio\nawait asyncio.wait_for(multiply(2, 3), 5)",
    "import asyncio\nawait asyncio.to_thread(multiply, 2, 3)", "from concurrent.futures import ThreadPoolExecutor\n"
    "with ThreadPoolExecutor(4) as pool: r = list(pool.map(multiply, range(8), [2] * 8))\nr[3]", "list(map(multiply, [2], [3]))[0]"])
def test_calls_of_every_kind(runner, code):
    runner.run("import asyncio\nasync def f2():\n    async with asyncio.TaskGroup() as g: t = g.create_task(multiply(2, 3))\n    return t.result()")
    assert runner.value(code, **FUNCTIONS) == 6


def test_calls_overlap(runner):
    runner.start("import asyncio\nawait asyncio.gather(multiply(1), multiply(2), multiply(3))", host_functions=["multiply"])
    calls = [runner.receive()["call"] for _ in range(3)]
    assert calls == [1, 2, 3]
    for call in (3, 1, 2):
        runner.send({"op": "return", "call": call, "result": call * 10})
    assert runner.receive()["value"] == [10, 20, 30]


def test_threads_and_the_loop_share_the_channel(runner):
    code = ("import asyncio, threading\nfrom concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(8)\nasync def main():\n"
            "    a = [asyncio.get_running_loop().run_in_executor(pool, multiply, i, 1) for i in range(50)]\n"
            "    b = [multiply(i, 1) for i in range(50)]\n    return sum(await asyncio.gather(*a, *b))\nawait main()")
    assert runner.value(code, **FUNCTIONS) == 2 * sum(range(50))


@pytest.mark.parametrize("error,kind,message,text", [
    ({"type": "ValueError", "message": "no"}, "ValueError", "no", "ValueError: no"),
    ({"type": "KeyError", "message": "k"}, "KeyError", "'k'", "KeyError: 'k'"),
    ({"type": "HTTPError", "message": "404"}, "HostError", "404", "HostError: 404"),
    ({"type": "UnicodeDecodeError", "message": "x"}, "HostError", "x", "HostError: x"),
    ({"type": "SystemExit", "message": "3"}, "HostError", "3", "HostError: 3"),
    ({"type": "print", "message": ""}, "HostError", "", "HostError")])
@pytest.mark.parametrize("code", ["multiply(1)", "await multiply(1)"])
def test_errors_of_the_host(runner, code, error, kind, message, text):
    done = runner.done(code, host_functions=["multiply"], host=lambda *_: {"error": error})
    assert (done["error"]["type"], done["error"]["message"], done["exit_code"]) == (kind, message, 1)
    assert runner.stderr.decode() == f'Traceback (most recent call last):\n  File "{runner.work}/cell-1.py", line 1, in <module>\n    {code}\n{text}\n'
    assert runner.value("try:\n    multiply(1)\nexcept Exception as e: t = getattr(e, 'type', None), isinstance(e, RuntimeError)\nt",
                        host_functions=["multiply"], host=lambda *_: {"error": {"type": "Odd", "message": ""}}) == {"$tuple": ["Odd", True]}


def test_values_that_cannot_cross(runner):
    assert runner.error("multiply(object())", **FUNCTIONS) == ("TypeError", "object cannot cross the boundary of the sandbox")
    assert runner.error("multiply(a=[{'x': len}])", **FUNCTIONS) == ("TypeError", "builtin_function_or_method cannot cross the boundary of the sandbox")
    assert runner.error("await multiply(object())", **FUNCTIONS)[0] == "TypeError"
    kind, message = runner.error("multiply('a' * (1 << 20))", **FUNCTIONS)
    assert kind == "ValueError" and message.startswith("arguments of multiply() take 10") and message.endswith("at most 1048576 are allowed")
    assert runner.error("multiply('\\ud800')", **FUNCTIONS)[0] == "UnicodeEncodeError"
    assert runner.error("a = []\na.append(a)\nmultiply(a)", **FUNCTIONS) == ("ValueError", "value has more than 60 levels")
    assert runner.error("multiply(1)", host_functions=["multiply"], host=lambda *_: {"result": {"$odd": 1}}) == ("ValueError", "unknown tag $odd")
    assert runner.value("multiply(2, 3)", **FUNCTIONS) == 6


def test_values_go_both_ways(runner):
    values = [None, True, -5, 1.5, "é", [1, [2]], {"a": {"b": 1}}, {"$bytes": "/w=="}, {"$tuple": [1, {"$tuple": []}]}, {"$set": [1]},
              {"$frozenset": [1]}, {"$complex": [1.0, -0.5]}, {"$datetime": "2020-01-02T03:04:05+00:00"}, {"$date": "2020-01-02"}, {"$time": "03:04:05"},
              {"$timedelta": 1.5}, {"$decimal": "1.50"}, {"$float": "inf"}, {"$float": "-inf"}, {"$int": str(2**70)},
              {"$dict": [[1, {"$tuple": [2]}]]}, {"$dict": [["$x", 1]]}]
    assert runner.value("data", globals={"data": values}) == values
    assert runner.value("multiply(data)", host_functions=["multiply"], host=lambda name, args, kwargs: {"result": args[0]}) == values
    assert runner.value("[type(v).__name__ for v in data]")[7:] == [
        "bytes", "tuple", "set", "frozenset", "complex", "datetime", "date", "time", "timedelta", "Decimal", "float", "float", "int", "dict", "dict"]
    assert runner.error("1", globals={"x": {"$bad": 1}}) == ("ValueError", "unknown tag $bad")


def test_functions_are_those_of_the_execution(runner):
    assert runner.value("multiply.__name__, repr(multiply)[:18]", **FUNCTIONS) == {"$tuple": ["multiply", "<function multiply"]}
    assert runner.error("multiply(2, 3)") == ("NameError", "name 'multiply' is not defined")
    assert runner.value("multiply = 5\nmultiply") == 5
    assert runner.value("multiply(2, 3)", **FUNCTIONS) == 6


def test_a_call_that_outlives_its_execution(runner):
    code = "import threading\nout = []\ndef f():\n    try: multiply(1)\n    except RuntimeError as e: out.append(str(e))\nt = threading.Thread(target=f)\nt.start()"
    runner.start(code, host_functions=["multiply"])
    messages = [runner.receive(), runner.receive()]
    assert sorted(message["op"] for message in messages) == ["call", "done"]
    runner.send({"op": "return", "call": 1, "result": 1})
    assert runner.value("t.join()\nout") == ["multiply() was not answered before its execution ended"]


def test_tasks_that_outlive_their_execution(runner):
    runner.start("import asyncio\ntasks = [asyncio.create_task(multiply(i)) for i in range(3)]\nawait asyncio.sleep(0)", host_functions=["multiply"])
    assert [runner.receive()["op"] for _ in range(4)] == ["call", "call", "call", "done"]
    assert runner.value("[str(e) for e in await asyncio.gather(*tasks, return_exceptions=True)]") == [
        "multiply() was not answered before its execution ended"] * 3


def test_the_front_vanishes_in_a_call(runner):
    runner.start("multiply(1)", host_functions=["multiply"])
    assert runner.receive()["op"] == "call"
    assert runner.end() == 0


# --------------------------------------------------------------------------------------- rich outputs


def test_display_and_methods(runner):
    code = """class R:
    def _repr_html_(self): return '<b>'
    def _repr_png_(self): return b'\\x89PNG'
    def _repr_svg_(self): return None
    def _repr_json_(self): return {'a': 1}, {'expanded': True}
    def _repr_latex_(self): return 1/0
    def __repr__(self): return 'R'
class M(R):
    def _repr_mimebundle_(self, include, exclude): return {'text/html': 'm', 'x/y': 'z'}
print('first')
display(R(), M(), 5)
"""
    bundle = {"text/html": "<b>", "image/png": base64.b64encode(b"\x89PNG").decode(), "application/json": {"a": 1}, "text/plain": "R"}
    meta = {"application/json": {"expanded": True}}
    assert runner.run(code) == ([{"data": bundle, "metadata": meta}, {"data": {**bundle, "text/html": "m", "x/y": "z"}, "metadata": meta},
                                 {"data": {"text/plain": "5"}, "metadata": {}}], NOTHING)
    assert runner.stderr.count(b"ZeroDivisionError") == 2 and runner.stdout == b"first\n"
    outputs, done = runner.run("R()")
    assert outputs == [{"data": bundle, "metadata": meta}] and done == {**NOTHING, "value_type": "R", "value_repr": "R"}
    assert runner.run("display({'text/plain': 'a', 'application/json': float('nan')}, raw=True, metadata={'k': 1})") == (
        [{"data": {"text/plain": "a"}, "metadata": {"k": 1}}], NOTHING)
    assert runner.run("R")[0] == []  # the class, not one of it


def test_outputs_are_bounded(runner):
    outputs, done = runner.run("for i in range(150): display(i)")
    assert [output["data"]["text/plain"] for output in outputs] == [str(i) for i in range(100)] and done == NOTHING
    assert runner.stderr == b"More than 100 outputs in one execution: the rest is left out.\n"
    big = "class B:\n    def __init__(self, **k): self.k = k\n    def _repr_mimebundle_(self, **_): return self.k\n    def __repr__(self): return 'B'\n"
    outputs, _ = runner.run(big + "display(B(a='x' * (33 << 20), b='small'))\ndisplay(B(a='x' * (33 << 20)))")
    assert outputs[0] == {"data": {"b": "small", "text/plain": "B"}, "metadata": {}}
    assert outputs[1]["data"].keys() == {"text/plain"} and "is too large; at most 33554432 are allowed" in outputs[1]["data"]["text/plain"]


def test_matplotlib(runner):
    pytest.importorskip("matplotlib")
    outputs, done = runner.run("import matplotlib.pyplot as plt\nfig, ax = plt.subplots()\nax.plot([1, 2])\nprint('x')")
    assert done == NOTHING and len(outputs) == 1 and outputs[0]["metadata"] == {}
    data = outputs[0]["data"]
    assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG") and "<svg" in data["image/svg+xml"]
    assert data["text/plain"] == "<Figure size 640x480 with 1 Axes>"
    assert runner.run("plt.get_fignums()")[1]["value"] == []
    outputs, _ = runner.run("plt.plot([1])\nplt.show()\nplt.figure()\nplt.figure().show()\ndisplay(7)\n1/0")
    assert [output["data"]["text/plain"] for output in outputs] == ["<Figure size 640x480 with 1 Axes>", "<Figure size 640x480 with 0 Axes>", "7",
                                                                    "<Figure size 640x480 with 0 Axes>"]
    outputs, done = runner.run("fig = plt.figure()\nfig")
    assert len(outputs) == 1 and done["value_type"] == "Figure"
    outputs, done = runner.run("fig")
    assert len(outputs) == 1 and "image/png" in outputs[0]["data"]
    assert runner.stderr == b""


def test_pandas_plotly_pillow_ipython(runner):
    pytest.importorskip("pandas")
    outputs, done = runner.run("import pandas as pd\npd.DataFrame({'a': [1, 2]})")
    assert "<table" in outputs[0]["data"]["text/html"] and outputs[0]["data"]["text/plain"] == "   a\n0  1\n1  2"
    assert done == {**NOTHING, "value_type": "DataFrame", "value_repr": "   a\n0  1\n1  2"}
    pytest.importorskip("PIL")
    for code in ("from PIL import Image\nImage.new('RGB', (2, 2))", "Image.new('RGB', (2, 2)).show()"):
        assert base64.b64decode(runner.run(code)[0][0]["data"]["image/png"]).startswith(b"\x89PNG")
    pytest.importorskip("plotly")
    for code in ("import plotly.graph_objects as go\ngo.Figure(go.Bar(y=[1, float('nan')]))", "go.Figure(go.Bar(y=[1])).show()"):
        data = runner.run(code)[0][0]["data"]
        assert data["application/vnd.plotly.v1+json"]["data"][0]["type"] == "bar" and "text/html" not in data
    pytest.importorskip("IPython")
    outputs, _ = runner.run("from IPython.display import display, HTML\ndisplay(HTML('<i>'))")
    assert outputs[0]["data"]["text/html"] == "<i>"


# --------------------------------------------------------------------------------------------- rules

ALLOW = {"rules": {"imports": {"allow": ["json", "math", "asyncio", "xml.etree", "importlib", "helper"]}}}
DENY = {"rules": {"imports": {"deny": ["os", "xml.dom"]}}}


@pytest.mark.parametrize("code,name", [
    ("import os", "os"), ("import os.path", "os.path"), ("from os import path", "os"), ("__import__('os')", "os"), ("import importlib\nimportlib.import_module('os')", "os"),
    ("exec('import os')", "os"), ("exec('import os', {'__name__': 'json'})", "os"), ("eval('__import__(\"os\")')", "os"), ("import importlib\nimportlib.__import__('os')", "os"),
    ("def f():\n    import os\nf()", "os"), ("async def f():\n    import os\nawait f()", "os")])
def test_denied_imports(runner, code, name):
    for rules in (ALLOW, DENY):
        done = runner.done(code, **rules)
        assert (done["error"]["type"], done["error"]["message"]) == ("ImportError", f"Import '{name}' not allowed")
        assert RUNNER_NAME not in done["error"]["traceback"]
    assert runner.value("import os\nos.getpid() > 0") is True  # no rules, no check


def test_libraries_import_what_they_need(runner):
    assert runner.value("import json, math, asyncio, xml.etree.ElementTree\nfrom xml import etree\nawait asyncio.sleep(0)\nmath.floor(2.5)", **ALLOW) == 2
    assert runner.error("import xml.dom", **ALLOW) == ("ImportError", "Import 'xml.dom' not allowed")
    assert runner.error("from xml import dom", **DENY) == ("ImportError", "Import 'xml.dom' not allowed")
    assert runner.value("import xml.etree, tempfile\n1", **DENY) == 1
    runner.file("write", "own.py", base64=base64.b64encode(b"value = 3").decode())
    runner.file("write", "helper.py", base64=base64.b64encode(b"import os").decode())
    runner.file("write", "socket.py", base64=base64.b64encode(b"").decode())
    assert runner.value("import own\nown.value", **ALLOW) == 3
    assert runner.error("import helper", **ALLOW) == ("ImportError", "Import 'os' not allowed")
    assert runner.error("import socket", **ALLOW) == ("ImportError", "Import 'socket' not allowed")


def test_no_filesystem(runner):
    rules = {"rules": {"filesystem": False}}
    for code in ("open('/etc/passwd')", "import io\nio.open('/etc/passwd')", "import os\nos.open('/etc/passwd', 0)", "os.listdir()", "open('x', 'w')",
                 "import pathlib\npathlib.Path('/etc/passwd').read_text()", "os.remove('a')", "os.mkdir('a')"):
        kind, message = runner.error(code, **rules)
        assert kind == "PermissionError" and "File access is not allowed" in message, code
    assert runner.value("import tempfile, json, asyncio, decimal\nopen(os.pipe()[0]).readable()", **rules) is True
    assert runner.value("open('/dev/null').read()") == ""
    assert runner.file("write", "x", base64="")["error"] is None


def test_no_subprocess(runner):
    rules = {"rules": {"subprocess": False}}
    for code in ("import os\nos.system('true')", "import subprocess\nsubprocess.run(['true'])", "os.fork()", "os.popen('true')", "os.posix_spawn('/bin/true', ['true'], {})"):
        assert runner.error(code, **rules) == ("PermissionError", "[Errno 1] Subprocesses are not allowed"), code
    assert runner.value("subprocess.run(['true']).returncode") == 0


def test_messages_are_json_lines(runner):
    """A message may hold any text, and arrives in pieces."""
    text = json.dumps({"op": "run", "n": 1, "code": "'\u2028\\n' + \"é\""}).encode() + b"\n"
    for place in range(0, len(text), 7):
        runner.channel.sendall(text[place:place + 7])
    assert runner.receive() == {"op": "done", "n": 1, **value_of("\u2028\né", "str", "'\\u2028\\né'")}
