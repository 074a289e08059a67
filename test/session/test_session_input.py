# SPDX-License-Identifier: Apache-2.0
"""What notebooks and tools bring along: standard input of an execution, lines that are no Python, functions that tell what they are."""
import os
import re
import signal

import pytest

from live import Session
from resident import wait_until
from web import problem

READS = {
    "python": ("import sys; [input(), sys.stdin.read()]", lambda result: result["value"]),
    "javascript": ("const [first, ...rest] = require('fs').readFileSync(0, 'utf8').split('\\n'); [first, rest.join('\\n')]", lambda result: result["value"]),
    "ruby": ("[gets.chomp, $stdin.read]", lambda result: result["value"]),
    "bash": ("read -r first; printf '%s|' \"$first\"; cat", lambda result: result["stdout"].split("|")),
}


@pytest.mark.parametrize("language", sorted(READS))
def test_an_execution_has_input(served, language):
    code, found = READS[language]
    with Session(served.web, language=language) as session:
        for word in ("one", 'two "2" \\ ä'):
            result = session.run(code, stdin=f"{word}\nthe,\"code\":\"rest\n")
            assert found(result) == [word, 'the,"code":"rest\n'], result
        # The next one has none.
        after = session.run({"python": "import sys; sys.stdin.read()", "javascript": "require('fs').readFileSync(0, 'utf8')",
                             "ruby": "$stdin.read", "bash": "cat"}[language])
        assert (after["value"], after["stdout"]) in (("", ""), (None, "")), after


def test_children_of_python_have_the_input(served):
    with Session(served.web) as session:
        assert session.value("import subprocess; subprocess.run(['cat'], capture_output=True, text=True).stdout", stdin="down\n") == "down\n"


def test_the_tool_of_the_document_has_input_in_a_session(served):
    def execute(code, **more):
        return served.web.post("/v1/tools/execute_code", {"language": "python", "code": code, "session_id": "input", **more}).json()

    assert execute("x = input()", stdin="kept\n")["status"] == "success"
    assert execute("print(x)")["stdout"] == "kept\n"


def test_commands_and_magics(served):
    with Session(served.web) as session:
        result = session.run("x = 3\n!echo one; echo two >&2\nif x:\n    !echo $((x + 1)) three\n'after'")
        assert (result["stdout"], result["stderr"], result["value"]) == ("one\n1 three\n", "two\n", "after"), result
        assert "per loop" in session.run("%timeit x + 1")["stdout"]
        assert session.run("%time y = x\n%matplotlib inline\ny")["value"] == 3
        assert session.run("!mkdir -p sub\n%cd sub\nimport os; os.getcwd()")["value"] == "/sandbox/sub"
        assert session.run("%env WORD=set\nimport os; os.environ['WORD']")["value"] == "set"
        refused = session.run("%load_ext autoreload")
        assert refused["error"]["type"] == "NameError" and "!COMMAND" in refused["error"]["message"] and refused["error"]["line"] == 1, refused
        # Python stays Python.
        assert session.run("text = '''\n!ls\n%cd\n'''\ntext")["value"] == "\n!ls\n%cd\n"
        assert session.run("a = 7\nb = (a\n% 4)\nb")["value"] == 3
        assert session.run("x = = 1")["error"]["type"] == "SyntaxError"


def test_functions_of_the_client_tell_what_they_are(served):
    functions = [{"name": "price", "signature": "(name: str, count: int = 1, *, at=<object>) -> float", "doc": "What it costs.\n\nPer piece."},
                 {"name": "total", "signature": "(a: list[int], b=[1, 2], *rest, key='ä', **more) -> float", "doc": "All of it."}, "plain"]
    with Session(served.web, host_functions=functions) as session:
        shown = session.run("import inspect; help(total); [str(inspect.signature(total)), total.__doc__, price.__doc__]")
        assert "total(a: list[int], b=[1, 2], *rest, key='ä', **more) -> float" in shown["stdout"] and "All of it." in shown["stdout"], shown
        assert shown["value"][1] == "All of it." and shown["value"][2].startswith("price(name: str") and "Per piece." in shown["value"][2], shown
        assert session.serve("[price('tea'), total([1]), plain()]", {
            "price": lambda name: 3, "total": lambda a: 4, "plain": lambda: 5})["value"] == [3, 4, 5]
        for wrong in ([{"signature": "()"}], [{"name": "f", "code": "x"}], [{"name": "f", "doc": 3}], [{"name": "f", "doc": "x" * 20000}]):
            assert session.ask("1", host_functions=wrong).status == 400, wrong
        # A signature is text: nothing of it runs.
        evil = [{"name": "f", "signature": "(a=__import__('os')._exit(3)): pass\ndef g(b=__import__('os')._exit(4))"}]
        assert session.value("f.__name__", host_functions=evil) == "f"
        evil = [{"name": "f", "signature": "(a=__import__('os')._exit(3)) -> __import__('os')._exit(4)"}]
        assert session.value("import inspect; str(inspect.signature(f))", host_functions=evil).startswith("(a=__import__('os')._exit(3))")


@pytest.mark.modes("root")
def test_an_interrupt_that_comes_late_hits_no_other_execution(served):
    """The signal of a timeout goes through pid 1 of the sandbox. On a busy machine the code may end by itself before it arrives."""
    with Session(served.web) as session:
        session.run("import ctypes\nctypes.CDLL(None).prctl(15, b'late-marked')")
        (pid,) = [pid for pid in os.listdir("/proc") if pid.isdigit() and read(f"/proc/{pid}/comm") == "late-marked\n"]
        init = int(re.search(r"PPid:\s+(\d+)", read(f"/proc/{pid}/status"))[1])
        os.kill(init, signal.SIGSTOP)
        try:
            first = session.begin("import time\ntime.sleep(0.5)", limits={"timeout": 0.2})
            assert first.json()["status"] == "timeout"
            second = session.begin("import time\ntime.sleep(1.5)\n'whole'")
            wait_until(lambda: session.show()["waiting"] == 1, 20, "the second execution does not come")
        finally:
            os.kill(init, signal.SIGCONT)
        result = second.json()
        assert (result["value"], result["error"]) == ("whole", None), result


def read(path):
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def test_paths_outside_of_the_work_directory_are_explained(served):
    with Session(served.web) as session:
        for answer in (session.get("/tmp/q.txt"), session.put("d/", b"x"), session.get("a//b"), session.put("/etc/x", b"x")):
            assert "relative to the work directory /sandbox" in problem(answer, 400), answer
