# SPDX-License-Identifier: Apache-2.0
"""The interface of PC-Agent-Claw's sandbox: ``CodeSandbox``, ``ResourceLimits``, ``ExecutionResult``, ``AutoDebuggerIntegration``.

Programs run in Atoll's sandbox instead of Docker containers; names, fields and texts are the document's. A "container" is an
execution, and its id stands in ``container_id``.

>>> sandbox = CodeSandbox()
>>> sandbox.execute("print('Hello, World!')", "python").stdout
'Hello, World!\\n'
"""
from __future__ import annotations

import json
import re
import subprocess
import threading
import time
import warnings
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Callable, ClassVar, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from . import default_client
from ._client import Client, OnText
from ._daemon import find_program
from ._errors import APIError, AtollError
from ._result import Result

__all__ = ["AutoDebuggerIntegration", "CodeSandbox", "ExecutionResult", "ResourceLimits"]

TIMEOUT_EXIT_CODE = 124
HISTORY_MAX = 10000
_SIZE_UNITS = {"b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


Row = Dict[str, str]


def _row(language: str, runtime: str, extension: str, image: str) -> Row:
    return {"language": language, "runtime_name": runtime, "extension": extension, "image": image, "description": runtime + " runtime"}


_PYTHON = _row("python", "Python 3.11", ".py", "python:3.11-slim")
_JAVASCRIPT = _row("javascript", "Node.js 18", ".js", "node:18-alpine")
_BASH = _row("bash", "Bash 5", ".sh", "ubuntu:22.04")


def _size_bytes(name: str, size: Union[str, int]) -> int:
    """Bytes of a size such as ``512m``.

    >>> _size_bytes("memory_limit", "512m")
    536870912
    """
    word = str(size).strip().lower()
    if word.endswith("ib") or (word.endswith("b") and word[:-1] and word[-2].isalpha()):
        word = word.rstrip("b").rstrip("i")
    unit = _SIZE_UNITS.get(word[-1:], None)
    try:
        return int(float(word[:-1]) * unit) if unit else int(word)
    except (ValueError, OverflowError):
        raise ValueError("%s: %r is not a size; give bytes, or a text like \"512m\"" % (name, size)) from None


@dataclass
class ResourceLimits:
    """Limits of one execution. A timeout above ``MAX_TIMEOUT`` becomes ``MAX_TIMEOUT``, with a warning.

    >>> ResourceLimits(memory_limit="256m", timeout_seconds=10).memory_swap
    '256m'
    """

    memory_limit: str = "512m"
    memory_swap: Optional[str] = None
    cpu_quota: int = 100000
    cpu_period: int = 100000
    cpu_shares: int = 1024
    pids_limit: int = 100
    timeout_seconds: int = 30

    MAX_TIMEOUT: ClassVar[int] = 30

    def __post_init__(self) -> None:
        if self.timeout_seconds > self.MAX_TIMEOUT:
            warnings.warn("Timeout %ss exceeds max %ss, using %ss" % (self.timeout_seconds, self.MAX_TIMEOUT, self.MAX_TIMEOUT), stacklevel=3)
            self.timeout_seconds = self.MAX_TIMEOUT
        if self.memory_swap is None:
            self.memory_swap = self.memory_limit

    def to_limits(self) -> Dict[str, Any]:
        """The limits of Atoll's request. Swap is what ``memory_swap`` allows beyond ``memory_limit``."""
        memory = _size_bytes("memory_limit", self.memory_limit)
        swap = max(0, _size_bytes("memory_swap", self.memory_swap or self.memory_limit) - memory)
        return {"memory": memory, "swap": swap, "cpu_quota": self.cpu_quota, "cpu_period": self.cpu_period,
                "cpu_shares": self.cpu_shares, "pids": self.pids_limit, "timeout": max(self.timeout_seconds, 0.001)}


@dataclass
class ExecutionResult:
    """What became of one execution."""

    success: bool
    exit_code: int
    stdout: str
    stderr: str
    execution_time: float
    timeout: bool = False
    error_message: Optional[str] = None
    container_id: Optional[str] = None
    language: Optional[str] = None
    resource_usage: Optional[Dict[str, Any]] = None
    output_files: Dict[str, str] = field(default_factory=dict)
    memory_used: Optional[int] = None
    cpu_percent: Optional[float] = None
    timestamp: datetime = field(default_factory=datetime.now)

    def to_dict(self) -> Dict[str, Any]:
        """All fields as JSON can hold them."""
        return dict(asdict(self), timestamp=self.timestamp.isoformat())


Validator = Callable[[str, str], Union[None, bool, str]]
Stage = Tuple[str, str]


class CodeSandbox:
    """Executes code in a sandbox and keeps a history of what it executed.

    ``use_docker_api=True`` (the name is the document's) talks to a daemon, ``False`` runs the command line program for each
    execution. ``validator(code, language)`` returns None or True, or the reason why the code is not run, or False.
    ``on_result(code, result)`` is called with every result.

    To add a language, add a row to ``LANGUAGE_CONFIGS``: its ``language`` is the name that ``atoll languages`` knows.
    """

    LANGUAGE_CONFIGS: ClassVar[Dict[str, Row]] = {
        "python": _PYTHON, "python3": _PYTHON, "javascript": _JAVASCRIPT, "js": _JAVASCRIPT, "bash": _BASH, "sh": _BASH,
        "ruby": _row("ruby", "Ruby 3.2", ".rb", "ruby:3.2-alpine"), "go": _row("go", "Go 1.21", ".go", "golang:1.21-alpine")}

    def __init__(self, default_limits: Optional[ResourceLimits] = None, use_docker_api: bool = True, *,
                 client: Optional[Client] = None, validator: Optional[Validator] = None,
                 on_result: Optional[Callable[[str, ExecutionResult], Any]] = None) -> None:
        self.default_limits = default_limits or ResourceLimits()
        self.use_docker_api = use_docker_api
        self.execution_history: List[Dict[str, Any]] = []
        self._client = client
        self._validator = validator
        self._on_result = on_result
        self._usage: Dict[str, Dict[str, Any]] = {}
        self._lock = threading.Lock()
        if not use_docker_api and find_program() is None:
            raise RuntimeError("Atoll not found. Install it, or set ATOLL_BIN to the program `atoll`.")

    @property
    def client(self) -> Client:
        """The client whose daemon runs the code."""
        if self._client is None:
            self._client = default_client()
        return self._client

    # --- executing ---------------------------------------------------------------------------------------------------

    def execute(self, code: str, language: str, limits: Optional[ResourceLimits] = None, network_enabled: bool = False,
                env_vars: Optional[Dict[str, str]] = None, files: Optional[Dict[str, str]] = None,
                read_only: bool = True) -> ExecutionResult:
        """Runs ``code`` and waits for its end.

        With ``read_only=False`` it can write anywhere; what it changes ends with it, and the host's files stay as they are.
        Where the daemon has no such root to give (it does not run as root, for example), a warning says so, and the program
        can write to ``/sandbox`` and ``/tmp``.

        >>> CodeSandbox().execute("echo hi; exit 3", "bash").exit_code
        3
        """
        options: Dict[str, Any] = {"env": env_vars, "files": files, "read_only": read_only,
                                   "writable_root": not read_only or None}
        options.update(_network(network_enabled))
        return self._execute(code, language, limits, options)

    def execute_streaming(self, code: str, language: str, on_stdout: Optional[OnText] = None,
                          on_stderr: Optional[OnText] = None, limits: Optional[ResourceLimits] = None,
                          **options: Any) -> ExecutionResult:
        """As ``execute``; the callbacks get the output while the program runs."""
        options.setdefault("read_only", True)
        return self._execute(code, language, limits, dict(options, on_stdout=on_stdout or _ignore, on_stderr=on_stderr))

    def execute_with_input(self, code: str, language: str, stdin_input: str,
                           limits: Optional[ResourceLimits] = None) -> ExecutionResult:
        """As ``execute``, with ``stdin_input`` as standard input.

        >>> CodeSandbox().execute_with_input("print(input()[::-1])", "python", "atoll").stdout
        'llota\\n'
        """
        return self._execute(code, language, limits, {"stdin": stdin_input, "read_only": True})

    def execute_tests(self, code: str, test_code: str, language: str,
                      limits: Optional[ResourceLimits] = None) -> ExecutionResult:
        """Runs ``code`` with ``test_code`` below it."""
        return self.execute(code + "\n\n" + test_code, language, limits)

    def execute_file(self, path: str, language: str, limits: Optional[ResourceLimits] = None) -> ExecutionResult:
        """Runs the program in a file of this machine."""
        with open(path, encoding="utf-8") as file:
            return self.execute(file.read(), language, limits)

    def execute_stages(self, stages: Sequence[Stage], language: str, limits: Optional[ResourceLimits] = None,
                       files: Optional[Dict[str, str]] = None) -> ExecutionResult:
        """Runs several programs, each ``(name, code)``, one after the other in one sandbox, until one fails."""
        listed = [{"name": name, "code": code} for name, code in stages]
        return self._execute(None, language, limits, {"stages": listed, "files": files})

    def execute_many(self, codes: Iterable[str], language: str, limits: Optional[ResourceLimits] = None,
                     concurrency: int = 8) -> Iterator[ExecutionResult]:
        """Runs several programs at once, each in a sandbox of its own; the results come in the order of the codes."""
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(concurrency) as pool:
            for result in pool.map(lambda code: self.execute(code, language, limits), codes):
                yield result

    def _execute(self, code: Optional[str], language: str, limits: Optional[ResourceLimits],
                 options: Dict[str, Any]) -> ExecutionResult:
        name = language.lower().strip()
        row = self.LANGUAGE_CONFIGS.get(name)
        if row is None:
            known = ", ".join(sorted(self.LANGUAGE_CONFIGS))
            return ExecutionResult(False, -1, "", "", 0.0, error_message="Unsupported language: %s. Supported: %s" % (language, known),
                                   language=language)
        reason = self._refusal(code or "", name)
        if reason:
            return self._keep(code, name, ExecutionResult(False, -1, "", "", 0.0, error_message=reason, language=name))
        limits = limits or self.default_limits
        began = time.monotonic()
        try:
            raw = self._run(code, row, dict(options, limits=limits.to_limits(), **_layout(code, row, options)))
            result = _from_result(raw, limits)
            result.language = "%s (%s)" % (name, _short_runtime(raw) or row["runtime_name"])
        except (AtollError, OSError, ValueError) as error:
            field = error.field if isinstance(error, APIError) else None
            result = ExecutionResult(False, -1, "", "", 0.0, error_message=_failure_text(field, str(error)), language=name)
        result.execution_time = round(time.monotonic() - began, 3)
        return self._keep(code, name, result)

    def _refusal(self, code: str, name: str) -> Optional[str]:
        """Why the validator does not let the code run."""
        verdict = self._validator(code, name) if self._validator else None
        if verdict is False:
            return "Code refused by the validator"
        return verdict if isinstance(verdict, str) and verdict else None

    def _run(self, code: Optional[str], row: Row, options: Dict[str, Any]) -> Result:
        try:
            result = self._run_once(code, row, options)
            if result.status != "denied" or not result._explain_end().startswith("writable_root:"):
                return result
            reason = result._explain_end()
        except APIError as error:
            if error.field != "writable_root":
                raise
            reason = error.detail
        warnings.warn("only /sandbox and /tmp are writable: " + reason, stacklevel=4)
        return self._run_once(code, row, dict(options, writable_root=None))

    def _run_once(self, code: Optional[str], row: Row, options: Dict[str, Any]) -> Result:
        if self.use_docker_api or "on_stdout" in options:
            return self.client.run(code, row["language"], **options)
        return _run_program(code, row["language"], options)

    def _keep(self, code: Optional[str], name: str, result: ExecutionResult) -> ExecutionResult:
        entry = {"timestamp": result.timestamp.isoformat(), "language": name, "success": result.success,
                 "exit_code": result.exit_code, "execution_time": result.execution_time, "container_id": result.container_id}
        with self._lock:
            self.execution_history.append(entry)
            del self.execution_history[:-HISTORY_MAX]
            if result.container_id and result.resource_usage:
                self._usage[result.container_id] = result.resource_usage
        if self._on_result:
            self._on_result(code or "", result)
        return result

    # --- looking back ------------------------------------------------------------------------------------------------

    def list_supported_languages(self) -> List[Dict[str, str]]:
        """The languages, by name: language, runtime, extension, image, description."""
        return [{"language": name, "runtime": row["runtime_name"], "extension": row["extension"], "image": row["image"],
                 "description": row["description"]} for name, row in sorted(self.LANGUAGE_CONFIGS.items())]

    def get_execution_history(self, limit: Optional[int] = None) -> List[Dict[str, Any]]:
        """What this object executed, oldest first: all of it, or the last ``limit``."""
        with self._lock:
            return self.execution_history[-limit:] if limit else list(self.execution_history)

    def get_resource_usage(self, container_id: Optional[str]) -> Optional[Dict[str, Any]]:
        """Memory and CPU of an execution, also of one that still runs; None when it is unknown."""
        if not container_id:
            return None
        try:
            usage = _usage_of(self.client.get(container_id))
        except APIError:
            usage = None
        return usage or self._usage.get(container_id)

    def cleanup_all_containers(self) -> None:
        """Ends the executions of this object's caller that still run, and removes all of them."""
        self.client.cleanup()


def _ignore(_text: str) -> None:
    """Takes output that no callback wants."""


def _short_runtime(result: Result) -> str:
    """The runtime that ran, as the document writes it: name, major and minor version.

    >>> _short_runtime(Result.from_json({"runtime": "Python 3.11.2"}))
    'Python 3.11'
    """
    found = re.match(r"\D*\d+(\.\d+)?", str(result.raw.get("runtime") or ""))
    return found.group() if found else ""


def _network(enabled: bool) -> Dict[str, str]:
    return {"network": "allow:*", "policy": "trusted"} if enabled else {}


def _layout(code: Optional[str], row: Row, options: Mapping[str, Any]) -> Dict[str, Any]:
    """The document's name of the program's file, and of Python its variable, so that what was printed before a timeout is there."""
    layout: Dict[str, Any] = {} if code is None else {"entry": "code" + row["extension"]}
    if row["language"] == "python":
        layout["env"] = dict({"PYTHONUNBUFFERED": "1"}, **(options.get("env") or {}))
    return layout


def _failure_text(field: Optional[str], text: str) -> str:
    return ("Error preparing files: %s" if (field or "").startswith("files") else "Container error: %s") % text


def _usage_of(raw: Mapping[str, Any]) -> Optional[Dict[str, Any]]:
    """The document's three fields from a result, or from the live usage of a running execution."""
    live = raw.get("usage") or {}
    memory = raw.get("memory_peak", live.get("memory_peak", live.get("memory")))
    cpu, wall = raw.get("cpu_time", live.get("cpu_time")), raw.get("duration", live.get("duration"))
    if memory is None:
        return None
    percent = round(100.0 * cpu / wall, 1) if cpu is not None and wall else 0.0
    return {"memory_usage": memory, "cpu_percent": percent, "timestamp": datetime.now().isoformat()}


def _from_result(result: Result, limits: ResourceLimits) -> ExecutionResult:
    usage = _usage_of(result.raw)
    timed_out = result.status == "timeout"
    exit_code = TIMEOUT_EXIT_CODE if timed_out else -1 if result.exit_code is None else result.exit_code
    message: Optional[str] = None
    if timed_out:
        message = "Execution timed out after %ss" % limits.timeout_seconds
    elif result.exit_code is None:
        message = _failure_text(result._explain_end().split(":")[0], result._explain_end())
    elif result.status == "limit":
        message = result._explain_end()
    return ExecutionResult(result.ok, exit_code, result.stdout, result.stderr, result.duration, timed_out, message,
                           result.id or None, None, usage, {}, result.memory_peak, usage["cpu_percent"] if usage else None)


def _run_program(code: Optional[str], language: str, options: Dict[str, Any]) -> Result:
    """One execution by the command line program."""
    from ._calls import request_body

    program = find_program()
    if program is None:
        raise AtollError("the program `atoll` was not found; install Atoll or set ATOLL_BIN")
    body = request_body(code, language, options)
    done = subprocess.run([program, "run", "--json", "--no-daemon", "--request", "-"], input=json.dumps(body).encode("utf-8"),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    try:
        return Result.from_json(json.loads(done.stdout.decode("utf-8")))
    except ValueError:
        raise AtollError(done.stderr.decode("utf-8", "replace").strip() or "`atoll run` printed no result") from None


class AutoDebuggerIntegration:
    """Reports and analyses of results, as an automatic debugger wants them."""

    @staticmethod
    def create_debug_report(result: ExecutionResult) -> Dict[str, Any]:
        """Everything about a result in one dictionary.

        >>> AutoDebuggerIntegration.create_debug_report(CodeSandbox().execute("print(1)", "python"))["status"]
        'success'
        """
        report: Dict[str, Any] = {
            "status": "success" if result.success else "failure",
            "exit_code": result.exit_code,
            "execution_time": result.execution_time,
            "timestamp": result.timestamp.isoformat(),
            "language": result.language,
            "container_id": result.container_id,
            "output": {"stdout": result.stdout, "stderr": result.stderr},
            "resource_usage": result.resource_usage,
        }
        if result.timeout or result.error_message:
            report["error_type"] = "timeout" if result.timeout else "execution_error"
            report["error_message"] = result.error_message
        if result.output_files:
            report["output_files"] = result.output_files
        return report

    @staticmethod
    def analyze_error(result: ExecutionResult) -> Dict[str, Any]:
        """Which kind of error a result has.

        >>> AutoDebuggerIntegration.analyze_error(CodeSandbox().execute("raise ValueError('Test error')", "python"))["exception"]
        'ValueError: Test error'
        """
        analysis: Dict[str, Any] = {"is_error": not result.success, "error_type": "unknown"}
        if result.timeout:
            analysis["error_type"] = "timeout"
            analysis["suggestion"] = "Code execution exceeded time limit. Consider optimizing or increasing timeout."
        elif result.exit_code != 0:
            analysis["error_type"] = "execution_failure"
            if "Traceback" in result.stderr:
                analysis["error_type"] = "python_exception"
                exception = _exception_line(result.stderr)
                if exception:
                    analysis["exception"] = exception
        elif result.error_message:
            analysis["error_type"] = "sandbox_error"
            analysis["error"] = result.error_message
        return analysis


def _exception_line(stderr: str) -> Optional[str]:
    """The line that names the exception: the last one behind a traceback that is not indented.

    >>> _exception_line("Traceback (most recent call last):\\n  File \\"a\\"\\nValueError: test error\\n")
    'ValueError: test error'
    """
    lines = [line for line in stderr.splitlines() if line.strip() and not line.startswith(" ")]
    behind = [line.strip() for line in lines if not line.startswith("Traceback (most recent call last)")]
    named = [line for line in behind if ":" in line]
    return named[-1] if named else behind[-1] if behind else None
