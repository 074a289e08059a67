# SPDX-License-Identifier: Apache-2.0
"""Documents 003 (SandboxEnvironment, ProgrammaticToolExecutor) and 004 (execute_code) in the Python package, by the texts of their documents."""
import asyncio
import dataclasses
import gc
import sys

import pytest

from program import ROOT

sys.path.insert(0, str(ROOT / "sdk" / "python" / "src"))
from atoll import Client, Sandbox  # noqa: E402
from atoll import tools as tools_module  # noqa: E402
from atoll.environment import (ProgrammaticToolExecutor, ResourceLimits, SandboxEnvironment, SandboxError,  # noqa: E402
                               SandboxSecurityError, create_sandbox)

pytestmark = pytest.mark.modes("root")


def run(awaitable):
    return asyncio.run(awaitable)


# --- document 003: SandboxEnvironment ---------------------------------------------------------------------------------


@pytest.fixture
def environment(client):
    one = SandboxEnvironment(client=client)
    yield one
    one.close()


def test_003_values_and_state(environment):
    assert run(environment.execute_code("result = sum([i**2 for i in range(100)])\nreturn result")) == 328350
    assert run(environment.execute_code("return result")) == 328350, "state persists, also over event loops"
    given = {"data": [1, 2, 3, 4, 5], "multiply": lambda x, y: x * y}
    assert run(environment.execute_code("return multiply(sum(data), 2)", globals_dict=given)) == 30
    assert run(environment.execute_code("multiply(2, 3)")) == 6, "functions persist, too"
    assert run(environment.execute_code("import asyncio\nawait asyncio.sleep(0)\nprint('said')")) is None
    assert environment.get_logs() == {"stdout": "said\n", "stderr": ""}
    environment.reset()
    assert environment.get_logs()["stdout"] == "said\n"
    with pytest.raises(NameError, match="name 'result' is not defined"):
        run(environment.execute_code("result"))


def test_003_async_functions(environment):
    async def fetch(n):
        await asyncio.sleep(0.01)
        return n * 2

    code = "import asyncio\nreturn await asyncio.gather(*[fetch(n) for n in range(4)])"
    assert run(environment.execute_code(code, {"fetch": fetch})) == [0, 2, 4, 6]
    for most in (100, 1000):
        environment.limits.max_tool_calls = most
        with pytest.raises(RuntimeError, match=r"Exceeded max tool calls \(100\)\. Consider optimizing your code or increasing the limit\."):
            run(environment.execute_code("[fetch(n) for n in range(101)]"))
    environment.limits.max_tool_calls = 2
    with pytest.raises(RuntimeError, match=r"Exceeded max tool calls \(2\)\. Consider optimizing your code or increasing the limit\."):
        run(environment.execute_code("[fetch(n) for n in range(3)]"))


def test_003_at_once(client):
    environment = SandboxEnvironment(client=client)
    before = len(client.sessions())

    async def main():
        return await asyncio.gather(*[environment.execute_code("return %d" % n) for n in range(4)])

    assert run(main()) == [0, 1, 2, 3] and len(client.sessions()) == before + 1
    environment.close()


@pytest.mark.parametrize("code, kind, text", [
    ("import os", ImportError, "Import 'os' not allowed"),
    ("__import__('subprocess')", ImportError, "Import 'subprocess' not allowed"),
    ("import importlib", ImportError, "Import 'importlib' not allowed"),
    ("open('/etc/passwd')", PermissionError, ""),
    ("open('x', 'w')", PermissionError, ""),
    ("1/0", ZeroDivisionError, "division by zero"),
    ("{}['tea']", KeyError, "'tea'"),
    ("b'\\xff'.decode()", UnicodeDecodeError, "invalid start byte"),
    ("class OwnError(Exception): pass\nraise OwnError('x')", SandboxError, "OwnError: x"),
    ("def f(:", SyntaxError, ""),
    ("raise SystemExit(3)", SandboxError, "SystemExit"),
])
def test_003_exceptions(environment, code, kind, text):
    with pytest.raises(kind) as caught:
        run(environment.execute_code(code))
    assert text in str(caught.value) and not caught.value.result.ok


def test_003_the_kernel_holds_it(client):
    """The rules of Python are a convenience: calls that go round them find the same."""
    environment = SandboxEnvironment(allowed_imports=["ctypes", "errno"], client=client)
    code = """
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
def word(call, *args):
    return "done" if call(*args) >= 0 else errno.errorcode[ctypes.get_errno()]
return [word(libc.open, b"/etc/passwd", 0), word(libc.open, b"/tmp/x", 0o101, 0o600), word(libc.fork), word(libc.socket, 2, 1, 0)]
"""
    assert run(environment.execute_code(code)) == ["EACCES", "EACCES", "EAGAIN", "EAFNOSUPPORT"]


@pytest.mark.parametrize("module", ["json", "math", "datetime", "asyncio", "typing"])
def test_003_safe_imports(environment, module):
    assert run(environment.execute_code("import %s as m\nm.__name__" % module)) == module


def test_003_allowed_imports(client):
    environment = SandboxEnvironment(allowed_imports=["json", "math", "datetime"], client=client)
    assert run(environment.execute_code('import json\nreturn json.dumps({"key": "value"})')) == '{"key": "value"}'
    with pytest.raises(ImportError, match="Import 'asyncio' not allowed"):
        run(environment.execute_code("import asyncio"))
    environment.close()


def test_003_files(client):
    environment = SandboxEnvironment(filesystem_access=True, client=client)
    assert run(environment.execute_code("open('/sandbox/a', 'w').write('1'); open('/tmp/b', 'w').write('2'); open('a').read()")) == "1"
    with pytest.raises(OSError):
        run(environment.execute_code("open('/etc/shadow')"))
    environment.close()
    environment = SandboxEnvironment(allowed_imports=["ctypes", "errno"], filesystem_access=True, client=client)
    code = "import ctypes, errno\nctypes.CDLL(None, use_errno=True).fork(), errno.errorcode[ctypes.get_errno()]"
    assert run(environment.execute_code(code)) == (-1, "EAGAIN"), "no subprocess, here too"
    environment.close()


@pytest.mark.undisturbed
def test_003_limits(client):
    for limits, code, kind in ((ResourceLimits(timeout_seconds=0.5), "while True: pass", TimeoutError),
                               (ResourceLimits(max_memory_mb=100), "big_list = [0] * (500 * 1024 * 1024 // 8)", MemoryError)):
        environment = SandboxEnvironment(limits=limits, client=client)
        with pytest.raises(kind) as caught:
            run(environment.execute_code(code))
        assert kind is MemoryError or str(caught.value) == "Execution timeout after 0.5s"
        assert run(environment.execute_code("1 + 1")) == 2
        environment.close()


def test_003_lives_as_long_as_the_object(client):
    environment = SandboxEnvironment(client=client)
    run(environment.execute_code("1"))
    assert environment._session.id in [session["id"] for session in client.sessions()]
    Sandbox.connect(environment._session.id, client=client).close()
    assert run(environment.execute_code("2")) == 2, "a session that expired is replaced"
    del environment
    gc.collect()
    assert client.sessions() == []


def test_003_execute(environment):
    def execute(code, context=None):
        return run(environment.execute(code, context))

    plain = execute("result = 1 + 2\nprint('said')")
    assert (plain.success, plain.output, plain.stdout, plain.error, plain.error_type) == (True, 3, "said\n", None, None) and plain.duration > 0
    assert execute("pass").output is None and execute("result = x * y", {"x": 6, "y": 7}).output == 42
    assert execute("async def __main__():\n    return 'done'").output == "done"
    both = ("import asyncio\nasync def task(name):\n    await asyncio.sleep(0.01)\n    return name\n"
            "async def __main__():\n    return await asyncio.gather(task('task1'), task('task2'))")
    assert execute(both).output == ["task1", "task2"]
    failed = execute("print('before')\n1/0")
    assert (failed.success, failed.error, failed.error_type, failed.stdout) == (False, "division by zero", "ZeroDivisionError", "before\n")
    assert "ZeroDivisionError" in failed.stderr and execute("items = []\nitems[10]").error_type == "IndexError"
    environment.limits.timeout_seconds = 0.5
    assert execute("def f(n): return n and f(n - 1)\ntry:\n    1/0\nexcept ZeroDivisionError:\n    result = f(5)").output == 0


@pytest.mark.parametrize("code, text", [
    ("import os", "Forbidden import: os"), ("from os import path", "Forbidden import: os"), ("import os.path", "Forbidden import: os.path"),
    ("import pickle", "Forbidden import: pickle"), ("eval('1')", "Forbidden function: eval"), ("open('x')", "Forbidden function: open"),
    ("__builtins__.x", "Direct __builtins__ access forbidden"), ("__builtins__ = {}", "Cannot modify: __builtins__"),
    ("f.__globals__['x'] = 1", "Cannot modify: __globals__"), ("if True", "Syntax error: ")])
def test_003_validation(client, code, text):
    environment = SandboxEnvironment(client=client)
    with pytest.raises(SandboxSecurityError) as caught:
        environment.validate_code(code)
    assert str(caught.value).startswith(text)
    refused = run(environment.execute(code))
    assert (refused.success, refused.error_type, refused.duration) == (False, "SecurityError", 0) and refused.error.startswith(text)
    assert environment._session is None, "nothing ran"


def test_003_the_rest(client):
    assert dataclasses.asdict(ResourceLimits()) == {
        "max_memory_mb": 512, "max_cpu_percent": 50.0, "timeout_seconds": 30, "max_tool_calls": 100, "max_concurrent": 5,
        "max_total_cost_usd": 10.0, "max_duration": 30, "allow_network": False, "allow_file_io": False}
    assert ResourceLimits(max_duration=2.0).timeout_seconds == 2.0
    assert create_sandbox(limits=ResourceLimits(max_memory_mb=64)).limits.max_memory_mb == 64
    with pytest.raises(NotImplementedError):
        create_sandbox(use_docker=True)
    environment = SandboxEnvironment(allowed_modules={"os"}, client=client)
    environment.validate_code("import os, asyncio")
    assert run(environment.execute("import os\nresult = os.sep")).output == "/"
    environment.close()


# --- document 003: ProgrammaticToolExecutor ---------------------------------------------------------------------------


async def price(name, currency="EUR"):
    """The price of a thing."""
    await asyncio.sleep(0.01)
    return {"tea": 3, "rum": 12}[name]


CATALOG = {"price": price, "note": {"type": "function", "parameters": [{"name": "text", "required": True}], "function": lambda text: len(text)},
           "shell": {"type": "code_exec"}}


@pytest.fixture
def executor(client):
    return ProgrammaticToolExecutor(CATALOG, client=client)


def test_003_tools(executor):
    code = "print('start')\nprices = await asyncio.gather(price(name='tea'), price('rum'))\nreturn json.dumps({'sum': sum(prices), 'of': who})"
    outcome = run(executor.execute(code, {"who": "ada"}))
    assert outcome["result"] == '{"sum": 15, "of": "ada"}' and outcome["output"] == "start\n" and outcome["error"] is None
    assert set(outcome) == {"output", "result", "tool_calls", "execution_time", "error", "execution_id"} and outcome["execution_time"] > 0
    assert outcome["execution_id"].startswith("ptc_") and len(outcome["execution_id"]) == 12
    calls = outcome["tool_calls"]
    assert sorted(call["parameters"]["name"] for call in calls) == ["rum", "tea"]
    assert set(calls[0]) == {"tool", "type", "parameters", "timestamp", "caller", "result_size", "completed_at", "duration", "error"}
    assert [call["caller"] for call in calls] == [{"type": "code_execution", "execution_id": outcome["execution_id"],
                                                   "tool_id": "tool_call_%d" % n} for n in (1, 2)]
    assert calls[0]["duration"] >= 0.01 and calls[0]["completed_at"] > calls[0]["timestamp"] > 0
    assert {call["parameters"]["name"]: call["result_size"] for call in calls} == {"tea": 1, "rum": 2}
    assert executor.get_available_tools() == ["note", "price"]


@pytest.mark.parametrize("code, error", [
    ("return await price()", "ValueError: price: Missing required parameters: {'name'}"),
    ("return await note()", "ValueError: note: Missing required parameters: {'text'}"),
    ("return await price(name='x')", "KeyError: 'x'"),
    ("import os", "Security violation: Forbidden import: os"),
    ("return (", "Security violation: SyntaxError: "),
    ("import socketserver", "ImportError: Import 'socketserver' not allowed"),
    ("1/0", "ZeroDivisionError: division by zero"),
    ("return await shell(code='1')", "RuntimeError: Nested code execution is not allowed"),
])
def test_003_tool_errors(executor, code, error):
    outcome = run(executor.execute(code))
    assert outcome["error"].startswith(error) and outcome["result"] is None, outcome


def test_003_tool_limits(client):
    few = ProgrammaticToolExecutor(CATALOG, ResourceLimits(max_tool_calls=2, timeout_seconds=5), client=client)
    outcome = run(few.execute("for n in range(3): await note(text='x')"))
    assert outcome["error"] == "RuntimeError: Exceeded max tool calls (2). Consider optimizing your code or increasing the limit."
    assert len(outcome["tool_calls"]) == 2
    slow = ProgrammaticToolExecutor(tool_catalog=CATALOG, timeout=0.5, client=client)
    assert run(slow.execute("while True: pass"))["error"] == "TimeoutError: Execution timeout after 0.5s"
    assert (slow.timeout, slow.max_tool_calls) == (0.5, 100)
    slow.timeout, slow.max_tool_calls = 5, 1
    assert run(slow.execute("await note(text='x')\nawait note(text='x')"))["error"].startswith("RuntimeError: Exceeded max tool calls (1).")
    dear = ProgrammaticToolExecutor({"buy": {"function": lambda: 1, "cost": 6.0}}, client=client)
    assert run(dear.execute("await buy()\nawait buy()"))["error"] == "RuntimeError: Exceeded max total cost (10.0 USD)"


def test_003_stubs_and_mcp(client):
    stubbed = run(ProgrammaticToolExecutor(CATALOG, enable_stubs=True, client=client).execute("return await price(name='x')"))
    assert stubbed["result"] == {"tool": "price", "parameters": {"name": "x"}, "stub": True}
    assert stubbed["tool_calls"][0]["caller"]["type"] == "stub_import"

    class Remote:
        async def call_tool(self, name, parameters):
            return [name, parameters]

    class Catalog:
        tools = [{"name": "far", "type": "mcp", "parameters": {"properties": {"a": {}}, "required": ["a"]}}]

    far = ProgrammaticToolExecutor(Catalog(), mcp_client=Remote(), client=client)
    assert run(far.execute("return await far(a=1)"))["result"] == ["far", {"a": 1}]

    async def execute_tool(tool, parameters):
        return tool.name, parameters

    far._execute_tool = execute_tool  # as ToolWeaver's own tests do
    assert run(far.execute("return await far(a=1)"))["result"] == ("far", {"a": 1})
    assert far.execution_id != ProgrammaticToolExecutor(Catalog()).execution_id
    assert "no function" in run(ProgrammaticToolExecutor(Catalog(), client=client).execute("return await far(a=1)"))["error"]


# --- document 004 -----------------------------------------------------------------------------------------------------

FIELDS = {"stdout", "stderr", "exit_code", "execution_time", "status", "error_message", "execution_id", "cause"}


def execute_code(*args, **kwargs):
    answer = tools_module.execute_code(*args, **kwargs)
    assert set(answer) == FIELDS
    return answer


def test_004_outcomes(client):
    done = execute_code("python", "print(input('name? ')); import sys; print('e', file=sys.stderr)", stdin="Ada", client=client)
    assert (done["stdout"], done["stderr"], done["exit_code"], done["status"], done["error_message"]) == ("name? Ada\n", "e\n", 0, "success", None)
    assert done["execution_time"] == round(done["execution_time"], 3) and done["execution_id"].startswith("ex_")
    failed = execute_code("python", "1/0", client=client)
    assert (failed["exit_code"], failed["status"], failed["error_message"]) == (1, "execution_error", "Code execution resulted in an error.")
    assert 'File "/sandbox/code.py", line 1' in failed["stderr"]
    slow = execute_code("bash", "echo on; sleep 20", timeout=0, client=client)
    assert (slow["stdout"], slow["exit_code"], slow["status"]) == ("on\n", -1, "timeout")
    assert slow["error_message"] == "Execution timed out after 1 seconds." and slow["cause"]["kind"] == "timeout"
    hog = execute_code("python", "x = bytearray(400 << 20)\nx[::4096] = b'1' * len(x[::4096])", client=client)
    assert hog["status"] == "execution_error"
    long = execute_code("python", "import sys\nprint('x' * 100001)\nsys.stderr.write('y' * 100001)", client=client)
    assert long["stdout"] == "x" * 100000 + "\n... [Output truncated due to size limits]"
    assert long["stderr"] == "y" * 100000 + "\n... [Error output truncated due to size limits]"
    assert execute_code("javascript", "console.log(6 * 7)", client=client)["stdout"] == "42\n"
    assert execute_code("c", '#include <stdio.h>\nint main(void) { puts("c"); }', client=client)["stdout"] == "c\n"


def test_004_refusals(client):
    for language in ("Python", "js", None, 3):
        refused = execute_code(language, "", client=client)
        assert (refused["stderr"], refused["exit_code"], refused["execution_time"], refused["status"]) == (
            "Unsupported language: %s" % language, -1, 0, "setup_error")
        assert refused["error_message"].startswith("Language '%s' is not supported. Supported languages: python, javascript, bash" % language)
    for code in ("", None, 3):
        refused = execute_code("python", code, client=client)
        assert (refused["stderr"], refused["exit_code"], refused["error_message"]) == (
            "No code provided or invalid code format", -1, "Code must be a non-empty string")
    away = execute_code("python", "1", client=Client("http://127.0.0.1:9"))
    assert away["status"] == "setup_error" and "atoll serve" in away["error_message"]


def test_004_sessions(client):
    assert execute_code("python", "x = 1", session_id="one", client=client)["status"] == "success"
    assert execute_code("python", "print(x)", session_id="one", client=client)["stdout"] == "1\n"
    assert execute_code("python", "print(x)", session_id="two", client=client)["status"] == "execution_error"
    for ignored in ("", "a b", "x" * 65, 7, None):
        assert execute_code("python", "print(x)", session_id=ignored, client=client)["status"] == "execution_error"
    slow = execute_code("python", "while True: pass", session_id="one", timeout=1, client=client)
    assert (slow["status"], slow["exit_code"]) == ("timeout", -1)
    assert execute_code("python", "print(x)", session_id="one", client=client)["stdout"] == "1\n"
    for session in client.sessions():
        Sandbox.connect(session["id"], client=client).close()
    assert execute_code("python", "print(x)", session_id="one", client=client)["status"] == "execution_error", "a session that expired is replaced"
    client.cleanup()
