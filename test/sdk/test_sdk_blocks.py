# SPDX-License-Identifier: Apache-2.0
"""Every Python block of the five documents runs, unchanged but for its import line, with its documented result.

A block is found by its document and number. A check below runs it, or says why it is not run. A block without a check fails, and so
does a check without a block.
"""
import ast
import asyncio
import contextlib
import http.client
import inspect
import io
import json
import pathlib
import re
import sys
import types

import pytest

from program import ROOT

sys.path.insert(0, str(ROOT / "sdk" / "python" / "src"))
import atoll as package  # noqa: E402
from atoll import code_sandbox, environment  # noqa: E402

pytestmark = pytest.mark.modes("root")

SEEDS = pathlib.Path(__file__).parent / "seeds"
IMPORTS = [(r"^from autonomous\.code_sandbox import", "from atoll.code_sandbox import"), (r"^from orchestrator import", "from atoll.environment import"),
           (r"^import requests$", "")]


def blocks_of(text):
    """The content of the Python blocks of a Markdown text."""
    return [found.group(2) for found in re.finditer(r"^( *)```python\n(.*?)^\1```$", text, re.M | re.S)]


BLOCKS = {(path.name[:3], number): block for path in sorted(SEEDS.glob("*.txt"))
          for number, block in enumerate(blocks_of(path.read_text(encoding="utf-8")))}
CHECKS = {}


def check(document, number):
    def keep(function):
        CHECKS[document, number] = function
        return function
    return keep


class Stage:
    """Runs a block; names that it leaves undefined are given."""

    def __init__(self, block, address):
        self.block, self.address = block, address
        for before, after in IMPORTS:
            self.block = re.sub(before, after, self.block, flags=re.M)

    def run(self, **names):
        """The block's names and what it printed."""
        scope = {"__name__": "block", **names}
        printed = io.StringIO()
        code = compile(self.block, "block", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        with contextlib.redirect_stdout(printed):
            waiting = eval(code, scope)  # pylint: disable=eval-used; the documents are ours
            if inspect.isawaitable(waiting):
                asyncio.run(_wait(waiting))
        return types.SimpleNamespace(**scope), printed.getvalue()


async def _wait(awaitable):
    return await awaitable


@pytest.fixture
def address(daemon, monkeypatch):
    monkeypatch.setenv("ATOLL_URL", "unix:%s" % daemon.socket)
    monkeypatch.setattr(package, "_default", None)
    yield daemon.address
    if package._default is not None:
        package._default.close()


@pytest.mark.parametrize("document, number", sorted(set(BLOCKS) | set(CHECKS)))
def test_block(address, document, number):
    assert (document, number) in BLOCKS, "this check has no block"
    assert (document, number) in CHECKS, "this block has no check:\n" + BLOCKS[document, number]
    CHECKS[document, number](Stage(BLOCKS[document, number], address))


def test_documents():
    assert sorted(path.name[:3] for path in SEEDS.glob("*.txt")) == ["000", "001", "002", "003", "004"]
    assert blocks_of("a\n```python\nb\n```\n  ```python\n  c\n  ```\n```bash\nd\n```\n") == ["b\n", "  c\n"]
    assert {document for document, _ in BLOCKS} == {"001", "002", "003"}, "documents 000 and 004 have no Python block"


# --- document 001 -----------------------------------------------------------------------------------------------------


@check("001", 0)
def simple_execution(stage):
    names, printed = stage.run()
    assert names.result.success and re.fullmatch(r"Success: True\nOutput: Hello, World!\n\nTime: \d\.\d{3}s\n", printed)


@check("001", 1)
def with_limits(stage):
    names, _ = stage.run(sandbox=code_sandbox.CodeSandbox(), code="print(1)")
    assert names.result.stdout == "1\n" and (names.limits.memory_limit, names.limits.timeout_seconds) == ("256m", 10)


@check("001", 2)
def debugging(stage):
    names, printed = stage.run(sandbox=code_sandbox.CodeSandbox(), error_code="raise ValueError('Test error')")
    assert printed == "Error type: python_exception\n" and names.debug_report["status"] == "failure"


def parameters_in(text):
    """Names and defaults of `name: type = default` lines."""
    return [(name, default) for name, default in re.findall(r"^    (\w+): [^=\n]*?(?: = ([^\n]*?))?,?$", text, re.M)]


def signature_of(function):
    rows = list(inspect.signature(function).parameters.values())
    return [(row.name, "" if row.default is row.empty else repr(row.default).replace("'", '"')) for row in rows if row.name != "self"]


@check("001", 3)
def class_reference(stage):
    """Not run: it is a signature and no valid Python. Names, order and defaults are compared."""
    assert parameters_in(stage.block) == signature_of(code_sandbox.CodeSandbox.execute)
    with pytest.raises(SyntaxError):
        stage.run()
    sandbox = code_sandbox.CodeSandbox(default_limits=None, use_docker_api=True)
    assert sandbox.list_supported_languages() and sandbox.get_execution_history(limit=None) == []
    assert sandbox.get_resource_usage("ex_none") is None and sandbox.cleanup_all_containers() is None


@check("001", 4)
def limits_reference(stage):
    """Not run: it is a signature and no valid Python. Names, order and defaults are compared."""
    assert parameters_in(stage.block) == signature_of(code_sandbox.ResourceLimits)


@check("001", 5)
def result_reference(stage):
    from datetime import datetime
    from typing import Optional
    result = code_sandbox.CodeSandbox().execute("print(1)", "python")
    names, _ = stage.run(result=result, datetime=datetime, Optional=Optional)
    for field in re.findall(r"^result\.(\w+):", stage.block, re.M):
        assert hasattr(names.result, field), field
    assert isinstance(result.timestamp, datetime) and isinstance(result.execution_time, float) and result.timeout is False


@check("001", 6)
def data_processing(stage):
    names, _ = stage.run(sandbox=code_sandbox.CodeSandbox(), json=json)
    assert names.output == {"sum": 15}


@check("001", 7)
def multiple_files(stage):
    names, _ = stage.run(sandbox=code_sandbox.CodeSandbox())
    assert names.result.stdout == "Config: {'setting': 'value'}, Helper: 42\n"


@check("001", 8)
def error_handling(stage):
    _, printed = stage.run(sandbox=code_sandbox.CodeSandbox(), AutoDebuggerIntegration=code_sandbox.AutoDebuggerIntegration)
    assert printed == "Error type: python_exception\nIs error: True\n"


@check("001", 9)
def timeout_enforcement(stage):
    names, _ = stage.run(sandbox=code_sandbox.CodeSandbox(), ResourceLimits=code_sandbox.ResourceLimits)
    assert names.result.error_message == "Execution timed out after 2s"


@check("001", 10)
def debugger(stage):
    names, _ = stage.run(sandbox=code_sandbox.CodeSandbox(), code="print(1)", AutoDebuggerIntegration=code_sandbox.AutoDebuggerIntegration)
    assert names.debug_report["status"] == "success" and names.debug_report["output"]["stdout"] == "1\n"


@check("001", 11)
def learning_system(stage):
    for code, kind in (("print(1)", "success"), ("1/0", "failure")):
        told = []
        learner = types.SimpleNamespace(record_success=lambda *words: told.append(("success", words)),
                                        record_failure=lambda *words: told.append(("failure", words)))
        stage.run(sandbox=code_sandbox.CodeSandbox(), code=code, learning_system=learner)
        assert [entry[0] for entry in told] == [kind] and told[0][1][0] == code


@check("001", 12)
def code_review(stage):
    kept = []
    for safe in (False, True):
        stage.run(sandbox=code_sandbox.CodeSandbox(), code="print(1)", security_scanner=types.SimpleNamespace(is_safe=lambda code, safe=safe: safe),
                  history=types.SimpleNamespace(record=kept.append))
    assert [result.stdout for result in kept] == ["1\n"]


@check("001", 13)
def security_hardening(stage):
    given = {"ResourceLimits": code_sandbox.ResourceLimits, "CodeSandbox": code_sandbox.CodeSandbox}
    names, _ = stage.run(code="import socket\nsocket.create_connection(('1.1.1.1', 53), 1)", **given)
    assert not names.result.success and names.sandbox.default_limits.pids_limit == 25
    names, _ = stage.run(code="open('/sandbox/x', 'w')", **given)
    assert "Read-only file system" in names.result.stderr or "Permission denied" in names.result.stderr


@check("001", 14)
def performance(stage):
    names, _ = stage.run(ResourceLimits=code_sandbox.ResourceLimits, CodeSandbox=code_sandbox.CodeSandbox, snippets=["print(1)", "print(2)"])
    assert names.result.stdout == "2\n" and len(names.sandbox.get_execution_history()) == 2


# --- document 002 -----------------------------------------------------------------------------------------------------


@check("002", 0)
def integration(stage):
    """`requests` is not among the packages that the tests need; this post() does what the block asks of it, on the test's own port."""
    class Response:
        def __init__(self, text):
            self._text = text

        def json(self):
            return json.loads(self._text)

    def post(url, json, headers):
        assert url == "http://localhost:6000/execute"
        connection = http.client.HTTPConnection(stage.address)
        connection.request("POST", "/execute", __import__("json").dumps(json), headers)
        try:
            return Response(connection.getresponse().read())
        finally:
            connection.close()

    names, printed = stage.run(requests=types.SimpleNamespace(post=post))
    assert printed == "Status: completed\nOutput: Hello from Python!\n\n"
    assert names.result == {"process_status": "completed", "stdout": "Hello from Python!\n", "stderr": ""}


# --- document 003 -----------------------------------------------------------------------------------------------------


@check("003", 0)
def import_path(stage):
    assert stage.run()[0].SandboxEnvironment is environment.SandboxEnvironment


@check("003", 1)
def signature(stage):
    """Runs as the class that it describes; its methods have the same parameters as ours."""
    names, _ = stage.run(ResourceLimits=environment.ResourceLimits, Any=object)
    for method in ("__init__", "execute_code"):
        documented = signature_of(getattr(names.SandboxEnvironment, method))
        ours = [row for row in signature_of(getattr(environment.SandboxEnvironment, method)) if row[0] not in ("allowed_modules", "client")]
        assert documented == ours, method
    assert inspect.iscoroutinefunction(environment.SandboxEnvironment.execute_code)


@check("003", 2)
def basic_usage(stage):
    assert stage.run()[1] == "Result: 328350\n"


@check("003", 3)
def custom_globals(stage):
    assert stage.run()[1] == "Result: 30\n"


@check("003", 4)
def restricted_imports(stage):
    names, _ = stage.run()
    assert names.result1 == '{"key": "value"}'
    with pytest.raises(ImportError, match="^Import 'os' not allowed$"):
        asyncio.run(names.sandbox.execute_code(names.code2))


@check("003", 5)
def timeout_protection(stage):
    assert stage.run()[1] == "Code exceeded 5 second timeout\n"


@check("003", 6)
def memory_limit(stage):
    assert stage.run()[1] == "Code exceeded 100MB memory limit\n"


@check("003", 7)
def filesystem_isolation(stage):
    names, _ = stage.run(SandboxEnvironment=environment.SandboxEnvironment)
    with pytest.raises(PermissionError):
        asyncio.run(names.sandbox.execute_code(names.code))
