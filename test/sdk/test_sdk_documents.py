# SPDX-License-Identifier: Apache-2.0
"""The interfaces of documents 000, 001 and 002 in the Python package, by the messages of their documents."""
import asyncio
import json
import math
import subprocess
import sys

import pytest

from program import ROOT

sys.path.insert(0, str(ROOT / "sdk" / "python" / "src"))
from atoll.code_execution import LocalSandbox, get_sandbox  # noqa: E402
from atoll.code_sandbox import AutoDebuggerIntegration, CodeSandbox, ExecutionResult, ResourceLimits  # noqa: E402
from atoll.executor import (SANDBOX_RUNNER_SCRIPT_TEMPLATE, ExecutionManager, ExecutionManagerConfig, SandboxExecutor)  # noqa: E402

pytestmark = pytest.mark.modes("root")


# --- document 000 -----------------------------------------------------------------------------------------------------


def call(client, body, timeout=5, params=None, name="T"):
    """The outcome of T().m(**params), where `body` is the class's."""
    executor = SandboxExecutor(timeout, client=client)
    code = "class T:\n" + "".join("    %s\n" % line for line in body.splitlines())
    return executor, executor.run(code, name, "m", params or {})


@pytest.mark.parametrize("body, params, result", [
    ("def m(self): return (1, 2)", {}, [1, 2]),
    ("def m(self): return None", {}, None),
    ("def m(self, a, b=2): return a * b", {"a": 4}, 8),
    ("def __init__(self, config): self.c = config\ndef m(self): return self.c", {}, {}),
    ("def m(self): return float('inf')", {}, math.inf),
])
def test_000_results(client, body, params, result):
    assert call(client, body, params=params)[1] == (result, None)


def test_000_nan_and_prints(client):
    assert math.isnan(call(client, "def m(self): return float('nan')")[1][0])
    executor, outcome = call(client, "def m(self): print('a word'); return 3")
    assert outcome == (3, None) and executor.last_result.stdout == "a word\n"


@pytest.mark.parametrize("body, text", [
    ("def m(self): 1/0", "Error during sandboxed tool execution: division by zero\nTraceback:\nTraceback (most recent call last):\n"),
    ("def m(self: return", "Error during sandboxed tool execution: invalid syntax (_sandboxed_tool.py, line 2)\nTraceback:\n"),
    ("def m(self): return {1}", "Error during sandboxed tool execution: Non-serializable result. Serialization error: Object of type set is "
     "not JSON serializable\nTraceback:\n"),
    ("def __init__(self, x): pass\ndef m(self): pass", "Error during sandboxed tool execution: Failed to initialize 'T' with default attempts "
     "(config={} or no args): T.__init__() missing 1 required positional argument: 'x'\nTraceback:\n"),
    ("def m(self):\n    import os; print('x', flush=True); os._exit(0)", "Sandbox execution produced non-JSON output: x"),
    ("def m(self):\n    import os; os._exit(0)", "Sandbox execution completed with no output."),
    ("def m(self):\n    raise SystemExit(3)", "Sandbox execution failed with return code 3 and no specific error output captured."),
    ("def m(self):\n    import os, sys; print('o', flush=True); sys.stderr.write('e\\n'); os._exit(1)",
     "Sandbox execution error (stderr):\ne\nSandbox stdout (non-JSON):\no"),
    ("def m(self):\n    import os, sys; sys.stderr.write('e\\n'); os._exit(1)", "Sandbox execution error (stderr):\ne"),
    ("def m(self):\n    import sys; sys.exit('text')", "Sandbox execution error (stderr):\ntext"),
])
def test_000_errors(client, body, text):
    result, error = call(client, body)[1]
    assert result is None and error.startswith(text), error
    assert "Traceback:" in text or error == text


@pytest.mark.undisturbed
def test_000_both(client):
    """A result and an error at once, a class that is not there, a timeout that is strict, parameters that JSON cannot hold."""
    assert call(client, "def m(self):\n    import sys; sys.stderr.write('w\\n'); return 1")[1] == \
        (1, "Sandbox execution had stderr output (but valid JSON result from stdout):\nw")
    assert "has no attribute 'Nope'" in call(client, "def m(self): pass", name="Nope")[1][1]
    executor, outcome = call(client, "def m(self):\n    while True: pass", timeout=1)
    assert outcome == (None, "Sandbox execution timed out after 1 seconds.")
    assert executor.last_result.duration < 2
    error = call(client, "def m(self, a): pass", params={"a": object()})[1][1]
    assert error.startswith("Error in sandbox executor system: Object of type object is not JSON serializable\nTraceback")


def test_000_the_template_runs(client, monkeypatch):
    monkeypatch.setattr("atoll.executor.SANDBOX_RUNNER_SCRIPT_TEMPLATE",
                        SANDBOX_RUNNER_SCRIPT_TEMPLATE.replace("(**params)", "(**params) + 1"))
    assert call(client, "def m(self): return 1")[1] == (2, None)
    monkeypatch.setattr("atoll.executor.SANDBOX_RUNNER_SCRIPT_TEMPLATE", "print('{\"result\": 5, \"error\": null, \"traceback\": null}')")
    assert call(client, "def m(self): return 1")[1] == (5, None), "an answer on standard output, as the document's"


def test_000_the_template_alone(tmp_path):
    """As the document has it: a runner, four words, and one JSON object on standard output."""
    (tmp_path / "_sandboxed_tool.py").write_text("class T:\n    def m(self, a): return a + 1\n")
    (tmp_path / "_sandbox_runner.py").write_text(SANDBOX_RUNNER_SCRIPT_TEMPLATE)
    words = [sys.executable, "-u", "_sandbox_runner.py", "_sandboxed_tool.py", "T", "m", '{"a": 1}']
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {"result": 2, "error": None, "traceback": None} and done.stderr == ""


@pytest.mark.undisturbed
def test_000_silent_tools(client):
    """A tool that waits is not stuck before its time is over."""
    manager = ExecutionManager(ExecutionManagerConfig(stuck_process_timeout=0.2), client=client)
    executor = SandboxExecutor(5, client=client, manager=manager)
    assert executor.run("import time\nclass T:\n    def m(self): time.sleep(0.6); return 1", "T", "m", {}) == (1, None)


def test_000_programs(client):
    executor = SandboxExecutor(5, client=client)
    done = executor.execute_python_code("import sys; print('out'); sys.stderr.write('err')")
    assert done == {"stdout": "out\n", "stderr": "err", "exit_code": 0, "is_compilation_error": False, "is_runtime_error": False}
    unread, failed = executor.execute_python_code("x ="), executor.execute_python_code("1/0")
    assert (unread["is_compilation_error"], unread["is_runtime_error"], unread["exit_code"]) == (True, False, 1)
    assert (failed["is_compilation_error"], failed["is_runtime_error"], failed["exit_code"]) == (False, True, 1)
    executor.timeout_seconds = 0.3
    slow = executor.execute_python_code("while True: pass")
    assert (slow["stderr"], slow["exit_code"], slow["is_runtime_error"]) == ("Sandbox execution timed out after 0.3 seconds.", -1, True)
    executor.timeout_seconds = 10000
    wrong = executor.execute_python_code("1")
    assert wrong["stderr"].startswith("System error in SandboxExecutor: limits.timeout: ") and wrong["exit_code"] == -2


# --- document 001 -----------------------------------------------------------------------------------------------------


@pytest.fixture
def sandbox(client):
    return CodeSandbox(client=client)


@pytest.mark.parametrize("language, code", [
    ("python", "print(6 * 7)"), ("PYTHON3", "print(6 * 7)"), ("javascript", "console.log(6 * 7)"), (" js ", "console.log(6 * 7)"),
    ("bash", "echo $((6 * 7))"), ("sh", "echo 42"), ("ruby", "puts 6 * 7"),
    ("go", 'package main\nimport "fmt"\nfunc main() { fmt.Println(6 * 7) }')])
def test_001_languages(sandbox, client, language, code):
    result = sandbox.execute(code, language)
    assert (result.success, result.exit_code, result.stdout, result.error_message) == (True, 0, "42\n", None)
    ran = client.get(result.container_id)["runtime"]
    name, _, runtime = result.language.partition(" (")
    assert name == language.lower().strip() and ran.startswith(runtime.rstrip(")")) and runtime != ")", "the runtime that ran"
    assert result.memory_used > 0 and set(result.resource_usage) == {"memory_usage", "cpu_percent", "timestamp"}


def test_001_outcomes(sandbox):
    unknown = sandbox.execute("x", "cobol")
    assert (unknown.success, unknown.exit_code, unknown.execution_time) == (False, -1, 0.0)
    assert unknown.error_message == "Unsupported language: cobol. Supported: bash, go, javascript, js, python, python3, ruby, sh"
    assert sandbox.get_execution_history() == []
    failed = sandbox.execute("raise ValueError('Test error')", "python")
    assert (failed.success, failed.exit_code, failed.error_message) == (False, 1, None)
    assert AutoDebuggerIntegration.analyze_error(failed) == {"is_error": True, "error_type": "python_exception",
                                                             "exception": "ValueError: Test error"}
    slow = sandbox.execute("import time\nprint('on', flush=True)\ntime.sleep(10)", "python", limits=ResourceLimits(timeout_seconds=1))
    assert (slow.timeout, slow.exit_code, slow.error_message, slow.stdout) == (True, 124, "Execution timed out after 1s", "on\n")
    assert AutoDebuggerIntegration.analyze_error(slow)["error_type"] == "timeout"
    report = AutoDebuggerIntegration.create_debug_report(slow)
    assert (report["status"], report["error_type"], report["output"]) == ("failure", "timeout", {"stdout": "on\n", "stderr": ""})
    history = sandbox.get_execution_history()
    assert [entry["exit_code"] for entry in history] == [1, 124] and sandbox.get_execution_history(1) == history[-1:]
    assert set(history[0]) == {"timestamp", "language", "success", "exit_code", "execution_time", "container_id"}
    assert sandbox.get_resource_usage(slow.container_id)["memory_usage"] > 0 and sandbox.get_resource_usage("ex_none") is None


def test_001_reports():
    told = ExecutionResult(success=False, exit_code=1, stdout="", stderr="e", execution_time=0.5, timeout=False, error_message="Test error",
                           language="python", output_files={"a": "b"})
    report = AutoDebuggerIntegration.create_debug_report(told)
    assert (report["error_type"], report["error_message"], report["output_files"]) == ("execution_error", "Test error", {"a": "b"})
    none = ExecutionResult(success=False, exit_code=0, stdout="", stderr="", execution_time=0.5, timeout=False, error_message="E")
    assert AutoDebuggerIntegration.analyze_error(none) == {"is_error": True, "error_type": "sandbox_error", "error": "E"}


def test_001_limits(sandbox, monkeypatch):
    with pytest.warns(UserWarning, match="Timeout 60s exceeds max 30s, using 30s"):
        assert ResourceLimits(timeout_seconds=60).timeout_seconds == 30
    with monkeypatch.context() as raised:
        raised.setattr(ResourceLimits, "MAX_TIMEOUT", 120)
        assert ResourceLimits(timeout_seconds=60).timeout_seconds == 60
    assert ResourceLimits(memory_limit="256m", memory_swap="300m").to_limits()["swap"] == 44 << 20
    hog = sandbox.execute("x = bytearray(200 << 20)\nx[::4096] = b'1' * len(x[::4096])", "python", limits=ResourceLimits(memory_limit="64m"))
    assert not hog.success and (hog.exit_code == 137 or "MemoryError" in hog.stderr)


def test_001_files_and_input(sandbox):
    files = {"config.json": '{"setting": "value"}', "utils.py": "def helper(): return 42"}
    code = ("import json\nfrom utils import helper\nwith open('/sandbox/config.json') as f:\n    config = json.load(f)\n"
            "print(f'Config: {config}, Helper: {helper()}')")
    assert sandbox.execute(code, "python", files=files).stdout == "Config: {'setting': 'value'}, Helper: 42\n"
    assert sandbox.execute("print(1)", "python", files={"../x": ""}).error_message.startswith("Error preparing files: ")
    assert sandbox.execute("echo $NAME", "bash", env_vars={"NAME": "toy"}).stdout == "toy\n"
    assert sandbox.execute_with_input("print(input()[::-1])", "python", "atoll").stdout == "llota\n"
    assert sandbox.execute_tests("def f(): return 2", "assert f() == 3", "python").exit_code == 1
    assert sandbox.execute("open('/sandbox/x', 'w')", "python").exit_code == 1


def test_001_layout(sandbox):
    """The program is code.EXT, so other files may have any other name; Python's output is there without a flush."""
    said = sandbox.execute("import main, os\nprint(sorted(os.listdir('/sandbox')), __file__, os.environ['PYTHONUNBUFFERED'])", "python",
                           files={"main.py": "print('helper')"}, env_vars={"A": "b"})
    assert said.stdout == "helper\n['code.py', 'main.py'] /sandbox/code.py 1\n"
    slow = sandbox.execute("print('on')\nimport time\ntime.sleep(10)", "python", limits=ResourceLimits(timeout_seconds=1))
    assert (slow.stdout, slow.timeout) == ("on\n", True)
    at_once = sandbox.execute("import time\ntime.sleep(10)", "python", limits=ResourceLimits(timeout_seconds=0))
    assert (at_once.error_message, at_once.exit_code) == ("Execution timed out after 0s", 124)


def test_001_another_language(sandbox, monkeypatch):
    """The document's way to extend it: one more entry."""
    row = {"language": "perl", "runtime_name": "Perl 5", "extension": ".pl", "image": "perl:5", "description": "Perl"}
    monkeypatch.setattr(CodeSandbox, "LANGUAGE_CONFIGS", {**CodeSandbox.LANGUAGE_CONFIGS, "perl": row})
    assert sandbox.execute("print 6 * 7", "perl").stdout == "42"
    assert {"language": "perl", "runtime": "Perl 5", "extension": ".pl", "image": "perl:5", "description": "Perl"} in sandbox.list_supported_languages()


@pytest.mark.modes("root", "rootless")
def test_001_writable_root(sandbox, mode):
    """Anywhere, for the run alone; without root a warning says what is writable instead."""
    anywhere, before = "open('/usr/lib/x', 'x'); open('/x', 'x')", "open('/sandbox/x', 'w'); open('/tmp/x', 'w')"
    if mode == "rootless":
        with pytest.warns(UserWarning, match="only /sandbox and /tmp are writable: writable_root: only a broker that runs as root"):
            assert sandbox.execute(before, "python", read_only=False).success
        return
    for _ in range(2):
        assert sandbox.execute(before + "; " + anywhere, "python", read_only=False).success
    assert sandbox.execute(anywhere, "python").exit_code == 1


def test_001_more(sandbox, client):
    """What the document plans: streams, stages, many at once; and the hooks."""
    seen = []
    assert sandbox.execute_streaming("print('now')", "python", on_stdout=seen.append).success and "".join(seen) == "now\n"
    staged = sandbox.execute_stages([("write", "open('n', 'w').write('5')"), ("read", "print(open('n').read())")], "python")
    assert staged.stdout == "5\n"
    assert [result.stdout for result in sandbox.execute_many(["print(%d)" % n for n in range(5)], "python")] == ["%d\n" % n for n in range(5)]
    told = []
    careful = CodeSandbox(client=client, validator=lambda code, _: "refused by review" if "os" in code else None,
                          on_result=lambda code, result: told.append((code, result.success)))
    assert careful.execute("import os", "python").error_message == "refused by review" and careful.execute("1", "python").success
    assert told == [("import os", False), ("1", True)]
    for verdict, success in ((False, False), (True, True), (None, True), ("", True), ("unsafe", False)):
        judged = CodeSandbox(client=client, validator=lambda *_, verdict=verdict: verdict).execute("1", "python")
        assert judged.success is success and (success or judged.error_message), (verdict, judged)
    assert sandbox.get_resource_usage(None) is None and sandbox.get_resource_usage("ex_unknown") is None
    assert sandbox.execute("1", "python", limits=ResourceLimits(memory_limit=64 << 20)).success
    wrong = sandbox.execute("1", "python", limits=ResourceLimits(memory_limit="much"))
    assert wrong.error_message == "Container error: memory_limit: 'much' is not a size; give bytes, or a text like \"512m\""
    assert [row["language"] for row in sandbox.list_supported_languages()] == sorted(CodeSandbox.LANGUAGE_CONFIGS)
    assert all(set(row) == {"language", "runtime", "extension", "image", "description"} and row["image"]
               for row in sandbox.list_supported_languages())
    assert sandbox.execute("import time; time.sleep(60)", "python", limits=ResourceLimits(timeout_seconds=1)).timeout
    sandbox.cleanup_all_containers()
    assert client.history() == []


def test_001_command_line(stage, monkeypatch):
    from program import BINARY
    monkeypatch.setenv("ATOLL_BIN", str(BINARY))
    monkeypatch.setenv("HOME", str(stage.home("root")))
    result = CodeSandbox(use_docker_api=False).execute("print(input())", "python", files={"a": "b"})
    assert result.exit_code == 1 and "EOFError" in result.stderr
    wrong = CodeSandbox(use_docker_api=False).execute("1", "python", files={"../a": "b"})
    assert wrong.exit_code == -1 and wrong.error_message.startswith("Error preparing files: ")
    assert CodeSandbox(use_docker_api=False).execute("open('/usr/lib/x', 'x')", "python", read_only=False).success
    monkeypatch.setenv("ATOLL_BIN", "")
    monkeypatch.setattr("atoll.code_sandbox.find_program", lambda: None)
    with pytest.raises(RuntimeError, match="Atoll not found"):
        CodeSandbox(use_docker_api=False)


# --- document 002 -----------------------------------------------------------------------------------------------------


def test_002_client(daemon):
    sandbox = get_sandbox("local", uri="http://%s" % daemon.address)
    assert isinstance(sandbox, LocalSandbox)
    assert sandbox.execute_code("print('Hello')") == {"process_status": "completed", "stdout": "Hello\n", "stderr": ""}
    assert sandbox.execute_code("{'generated_code': 'print(\"dict\")'}")["stdout"] == "dict\n"
    assert sandbox.execute_code("```python\nprint('fence')\n```")["stdout"] == "fence\n"
    error = sandbox.execute_code("1/0")
    assert error["process_status"] == "error" and "ZeroDivisionError" in error["stderr"]
    assert sandbox.execute_code("while True: pass", timeout=1.0) == {"process_status": "timeout", "stdout": "", "stderr": "Timed out\n"}
    assert sandbox.execute_code("while True: pass", timeout_seconds=0.5)["process_status"] == "timeout"
    for at_once in (0, -1):
        assert sandbox.execute_code("1", at_once) == {"process_status": "timeout", "stdout": "", "stderr": "Timed out\n"}
    assert sandbox.execute_code("print('x' * 50)", max_output_characters=10)["stdout"].startswith("xxxxxxxxxx<output cut>")
    assert sandbox.execute_code("x", language="cobol")["stderr"] == "Only python execution is supported"
    with pytest.raises(KeyError):
        get_sandbox("cloud")
    with pytest.raises(ConnectionError, match="start one with `atoll serve`"):
        get_sandbox("LOCAL", uri="http://127.0.0.1:9").execute_code("1")


def test_002_coroutines(daemon):
    """The toolkit's own execute_code is a coroutine."""
    sandbox = get_sandbox(uri="http://%s" % daemon.address)

    async def main():
        first = await sandbox.execute_code("print(1)")
        return [first, *await asyncio.gather(sandbox.execute_code("print(2)"), sandbox.execute_code("print(3)"))]

    assert [answer["stdout"] for answer in asyncio.run(main())] == ["1\n", "2\n", "3\n"]
    assert json.dumps(asyncio.run(sandbox.execute_code("print(4)"))) == '{"process_status": "completed", "stdout": "4\\n", "stderr": ""}'


def test_002_address(monkeypatch):
    assert LocalSandbox().url == "http://127.0.0.1:6000/execute"
    monkeypatch.setenv("SANDBOX_HOST", "localhost")
    monkeypatch.setenv("SANDBOX_PORT", "8000")
    assert LocalSandbox().url == "http://localhost:8000/execute"
