# SPDX-License-Identifier: Apache-2.0
"""The interface of Unified-AI-Project's sandbox: ``SandboxExecutor`` and ``ExecutionManager``.

``run`` writes the tool's code and the runner below into a sandbox, where the runner makes an instance of the class and calls
the method. The runner's answer is a file, so a tool may print what it likes: its output is kept in ``last_result``.

>>> executor = SandboxExecutor(timeout_seconds=5)
>>> executor.run("class Adder:\\n    def add(self, a, b):\\n        return a + b", "Adder", "add", {"a": 2, "b": 3})
(5, None)
"""
from __future__ import annotations

import hashlib
import json
import traceback
from typing import Any, Callable, Dict, Optional, Tuple

from . import default_client
from ._client import Client
from ._errors import AtollError, NotFound
from ._manager import ExecutionManager, ExecutionResult, ExecutionStatus, TerminalStatus, get_execution_manager
from ._manager_config import ExecutionManagerConfig
from ._result import Result

__all__ = ["DEFAULT_SANDBOX_TIMEOUT", "ExecutionManager", "ExecutionManagerConfig", "ExecutionResult", "ExecutionStatus",
           "SANDBOX_RUNNER_SCRIPT_TEMPLATE", "SandboxExecutor", "TerminalStatus", "get_execution_manager"]

DEFAULT_SANDBOX_TIMEOUT = 10

TOOL_FILE = "_sandboxed_tool.py"
RUNNER_FILE = "_sandbox_runner.py"
PARAMS_FILE = "_sandbox_params.json"
ANSWER_FILE = "_sandbox_answer.json"
SCRIPT_FILE = "_sandboxed_script.py"

#: What runs in the sandbox, beside the tool. Its words are the tool's file, class, method, the parameters as JSON (``@`` and a name: in that
#: file), and the file of the answer, {"result", "error", "traceback"}; without that word the answer is printed.
SANDBOX_RUNNER_SCRIPT_TEMPLATE = '''\
import importlib.util
import json
import sys
import traceback


def load(path):
    spec = importlib.util.spec_from_file_location("sandboxed_tool_module_" + path.rsplit("/", 1)[-1][:-3], path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def instantiate(tool_class, name):
    try:
        return tool_class(config={})
    except TypeError:
        try:
            return tool_class()
        except Exception as error:
            text = "Failed to initialize '%s' with default attempts (config={} or no args): %s" % (name, error)
            try:
                wrapped = type(error)(text)
            except Exception:
                wrapped = RuntimeError(text)
            raise wrapped from error


def answer_of(tool, class_name, method_name, params):
    answer = {"result": None, "error": None, "traceback": None}
    try:
        instance = instantiate(getattr(load(tool), class_name), class_name)
        answer["result"] = getattr(instance, method_name)(**params)
    except Exception as error:
        answer["error"], answer["traceback"] = str(error) or type(error).__name__, traceback.format_exc()
    try:
        return json.dumps(answer)
    except (TypeError, ValueError, RecursionError) as error:
        kind = type(answer["result"]).__name__
        text = "Non-serializable result. Serialization error: %s" % error
        if answer["error"]:
            text += " | Original execution error: %s" % answer["error"]
        return json.dumps({"result": "Result of type %s is not JSON serializable." % kind, "error": text,
                           "traceback": traceback.format_exc()})


def main(tool, class_name, method_name, params, answer_path=None):
    if params.startswith("@"):
        with open(params[1:], encoding="utf-8") as file:
            params = file.read()
    text = answer_of(tool, class_name, method_name, json.loads(params))
    if answer_path is None:
        print(text)
    else:
        with open(answer_path, "w", encoding="utf-8") as file:
            file.write(text)


main(*sys.argv[1:])
'''


class SandboxExecutor:
    """Calls methods of classes that untrusted code defines.

    The timeout is strict: code that takes longer is killed, and never run again. With ``use_execution_monitoring`` the calls are
    counted by an ``ExecutionManager`` (``manager``, else the one of this process), which may lower the timeout of a call that
    it has seen before with the same code and parameters. The sandbox's account of the last call is in ``last_result``.
    """

    def __init__(self, timeout_seconds: float = DEFAULT_SANDBOX_TIMEOUT, use_execution_monitoring: bool = True, *,
                 client: Optional[Client] = None, manager: Optional[ExecutionManager] = None) -> None:
        self.timeout_seconds = timeout_seconds
        self.use_execution_monitoring = use_execution_monitoring
        self.last_result: Optional[Result] = None
        self._client = client
        self._manager = manager or (ExecutionManager(client=client) if client else None)

    def run(self, code_string: str, class_name: str, method_name: str,
            method_params: Dict[str, Any]) -> Tuple[Any, Optional[str]]:
        """The method's result and None, or None and the text of the error."""
        try:
            client = self._client or default_client()
            files = {TOOL_FILE: code_string, PARAMS_FILE: json.dumps(method_params)}
            words = [TOOL_FILE, class_name, method_name, "@" + PARAMS_FILE, ANSWER_FILE]

            def start(limits: Dict[str, Any]) -> Result:
                # A tool that waits in silence has all of its time; idle_timeout is for commands.
                return client.run(SANDBOX_RUNNER_SCRIPT_TEMPLATE, "python", entry=RUNNER_FILE, files=files, args=words,
                                  collect=[ANSWER_FILE], timeout=limits["timeout"])

            timeout = self.timeout_seconds
            if self.use_execution_monitoring:
                result, timeout = self._run_watched("\0".join([*files.values(), class_name, method_name]), start)
            else:
                result = start({"timeout": timeout})
            self.last_result = result
            _require_begun(result)
            return self._outcome(result, _read_answer(client, result), timeout)
        except Exception as error:  # pylint: disable=broad-except; the document promises a text for every failure
            return None, "Error in sandbox executor system: %s\n%s" % (error, traceback.format_exc())

    def execute_python_code(self, code_string: str) -> Dict[str, Any]:
        """Runs a program: ``stdout``, ``stderr``, ``exit_code``, ``is_compilation_error``, ``is_runtime_error``.

        >>> SandboxExecutor().execute_python_code("1 / 0")["is_runtime_error"]
        True
        """
        try:
            result = (self._client or default_client()).run(code_string, "python", entry=SCRIPT_FILE, timeout=self.timeout_seconds)
            _require_begun(result)
        except Exception as error:  # pylint: disable=broad-except; the document promises a text for every failure
            return _script_outcome("", "System error in SandboxExecutor: %s\n%s" % (error, traceback.format_exc()), -2)
        self.last_result = result
        if result.status == "timeout":
            return _script_outcome("", "Sandbox execution timed out after %s seconds." % self.timeout_seconds, -1)
        return _script_outcome(result.stdout, result.stderr, result.exit_code or 0)

    def _run_watched(self, content: str, start: Callable[[Dict[str, Any]], Result]) -> Tuple[Result, float]:
        """The result under a manager's care, and the timeout that it was given."""
        manager = self._manager or get_execution_manager()
        key = "tool " + hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
        ended = manager.execute(key, start, self.timeout_seconds)
        if ended.result is None:
            raise AtollError(ended.error_message or ended.status.value)
        return ended.result, ended.timeout_used

    @staticmethod
    def _outcome(result: Result, answer: Optional[Dict[str, Any]], timeout: float) -> Tuple[Any, Optional[str]]:
        """The document's mapping; the order of its cases matters."""
        if result.status == "timeout":
            return None, "Sandbox execution timed out after %s seconds." % timeout
        said, out = result.stderr.strip(), result.stdout.strip()
        if answer is not None:
            if answer.get("error") or answer.get("traceback"):
                return None, "Error during sandboxed tool execution: %s\nTraceback:\n%s" % (answer.get("error"), answer.get("traceback"))
            if result.stderr:
                return answer.get("result"), "Sandbox execution had stderr output (but valid JSON result from stdout):\n%s" % said
            return answer.get("result"), None
        if said and out:
            return None, "Sandbox execution error (stderr):\n%s\nSandbox stdout (non-JSON):\n%s" % (said, out)
        if said:
            return None, "Sandbox execution error (stderr):\n%s" % said
        if out:
            return None, "Sandbox execution produced non-JSON output: %s" % out
        if result.exit_code == 0:
            return None, "Sandbox execution completed with no output."
        return None, "Sandbox execution failed with return code %s and no specific error output captured." % result.exit_code


def _script_outcome(stdout: str, stderr: str, exit_code: int) -> Dict[str, Any]:
    unread = any(word in stderr for word in ("SyntaxError:", "IndentationError:", "TabError:"))
    return {"stdout": stdout, "stderr": stderr, "exit_code": exit_code, "is_compilation_error": unread,
            "is_runtime_error": exit_code != 0 and stderr != "" and not unread}


def _require_begun(result: Result) -> None:
    """Only what never ran has no exit code."""
    if result.exit_code is None:
        raise AtollError(result._explain_end())


def _read_answer(client: Client, result: Result) -> Optional[Dict[str, Any]]:
    """The runner's answer: its file, or what another template printed; None when the tool ended the process before there was one."""
    is_there = any(file.get("path") == ANSWER_FILE for file in result.files)
    try:
        answer = json.loads(client.file(result.id, ANSWER_FILE).decode("utf-8") if is_there else result.stdout)
    except (NotFound, ValueError):
        return None
    return answer if isinstance(answer, dict) else None
