# SPDX-License-Identifier: Apache-2.0
"""The interface of document 004: ``execute_code``, as a function and with the fields of the MCP tool.

>>> execute_code("python", "print(6 * 7)")["stdout"]
'42\\n'
>>> execute_code("cobol", "x")["error_message"]
"Language 'cobol' is not supported. Supported languages: python, javascript, bash, ruby, go, c, cpp, rust, java, typescript, php, perl, lua, r"
"""
from __future__ import annotations

import os
import threading
from typing import Any, Dict, Optional, Tuple

from . import default_client
from ._client import Client
from ._errors import AtollError, ConnectionFailed, InvalidRequest, NotFound
from ._result import Result
from ._session import Sandbox

__all__ = ["execute_code"]

LANGUAGES = ("python", "javascript", "bash", "ruby", "go", "c", "cpp", "rust", "java", "typescript", "php", "perl", "lua", "r")
SESSION_LANGUAGES = ("python", "javascript", "bash", "ruby")
_EXTENSIONS = {"python": "py", "javascript": "js", "bash": "sh", "ruby": "rb", "go": "go", "c": "c", "cpp": "cpp", "rust": "rs",
               "typescript": "ts", "php": "php", "perl": "pl", "lua": "lua", "r": "R"}
DEFAULT_TIMEOUT, MIN_TIMEOUT, MAX_TIMEOUT = 30, 1, 300
SESSION_ID_MAX = 64
OUTPUT_MAX = 100000
LIMITS = {"memory": "256m", "cpus": 0.5, "pids": 50, "output": "1m"}

_CUT = {"stdout": "\n... [Output truncated due to size limits]", "stderr": "\n... [Error output truncated due to size limits]"}
_sessions: Dict[Tuple[str, str, str], Sandbox] = {}  # by daemon, session id and language
_sessions_lock = threading.Lock()


def execute_code(language: str, code: str, stdin: Optional[str] = None, timeout: int = DEFAULT_TIMEOUT,
                 session_id: Optional[str] = None, *, client: Optional[Client] = None) -> Dict[str, Any]:
    """Executes code: ``stdout``, ``stderr``, ``exit_code``, ``execution_time``, ``status``, ``error_message``, ``execution_id``, ``cause``.

    ``status`` is success, timeout, execution_error or setup_error. ``timeout`` is clamped to 1–300 seconds. With a ``session_id``
    (alphanumerics, ``_``, ``-``; at most 64; anything else is ignored) python, javascript, bash and ruby keep their state between calls, in
    the daemon, until it was not used for ten minutes; ``stdin`` is then not given. No exception is raised for what the code does.

    >>> execute_code("python", "x = 1", session_id="tour")["status"], execute_code("python", "print(x)", session_id="tour")["stdout"]
    ('success', '1\\n')
    """
    if language not in LANGUAGES:
        return _setup_error("Unsupported language: %s" % (language,), "Language '%s' is not supported. Supported languages: %s"
                            % (language, ", ".join(LANGUAGES)))
    if not isinstance(code, str) or not code:  # pyright: ignore[reportUnnecessaryIsInstance]
        return _setup_error("No code provided or invalid code format", "Code must be a non-empty string")
    seconds = _clamp(timeout)
    try:
        owner = client or default_client()
        if _is_session_id(session_id) and language in SESSION_LANGUAGES:
            result = _run_in_session(owner, str(session_id), language, code, seconds)
        else:
            result = _run_once(owner, language, code, stdin, seconds)
    except ConnectionFailed as error:
        return _setup_error("Atoll is not available", "Atoll is required but not available or not running: %s" % error)
    except (AtollError, OSError) as error:
        return _setup_error("Internal error: %s" % error, "Sandbox execution failed: %s" % error)
    return _answer(result, seconds)


def _ceiling() -> int:
    """``SANDBOX_GLOBAL_MAX_TIMEOUT_SECONDS``, else 300."""
    text = os.environ.get("SANDBOX_GLOBAL_MAX_TIMEOUT_SECONDS", "")
    return int(text) if text.isdigit() and int(text) >= MIN_TIMEOUT else MAX_TIMEOUT


def _clamp(timeout: Any) -> float:
    """
    >>> _clamp(0), _clamp(1000), _clamp(2.5), _clamp(None), _clamp(float("nan"))
    (1, 300, 2.5, 30, 30)
    """
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or timeout != timeout:
        return DEFAULT_TIMEOUT
    return max(MIN_TIMEOUT, min(timeout, _ceiling()))


def _is_session_id(text: Any) -> bool:
    """
    >>> _is_session_id("a-b_1"), _is_session_id(""), _is_session_id("a b"), _is_session_id("x" * 65), _is_session_id(7)
    (True, False, False, False, False)
    """
    return isinstance(text, str) and 0 < len(text) <= SESSION_ID_MAX and all(c.isalnum() or c in "_-" for c in text)


def _run_once(client: Client, language: str, code: str, stdin: Optional[str], seconds: float) -> Result:
    extension = _EXTENSIONS.get(language)  # Java's file has the name of its class
    entry = "code." + extension if extension else None
    return client.run(code, language, stdin=stdin or None, timeout=seconds, entry=entry, limits=LIMITS)


def _run_in_session(client: Client, session_id: str, language: str, code: str, seconds: float) -> Result:
    key = (client.url, session_id, language)
    with _sessions_lock:
        session = _sessions.get(key)
    if session is not None:
        try:
            return session.run(code, timeout=seconds)
        except NotFound:
            pass  # it was idle for too long; its state is gone
    session = _open_session(client, "%s.%s" % (language, session_id), language)
    with _sessions_lock:
        _sessions[key] = session
    return session.run(code, timeout=seconds)


def _open_session(client: Client, name: str, language: str) -> Sandbox:
    """The daemon's session of that name, which other processes may share; it is made when there is none, and ends when it is idle."""
    limits = dict(LIMITS, timeout=_ceiling())
    del limits["output"]  # of a session it would bound the log
    try:
        session = Sandbox(language, name=name, limits=limits, client=client)
        session.detach()
        return session
    except InvalidRequest as error:
        found = [session["id"] for session in client.sessions() if session.get("name") == name] if error.field == "name" else []
        if not found:
            raise
        return Sandbox.connect(found[0], client=client)


def _setup_error(stderr: str, message: str) -> Dict[str, Any]:
    return {"stdout": "", "stderr": stderr, "exit_code": -1, "execution_time": 0, "status": "setup_error", "error_message": message,
            "execution_id": None, "cause": None}


def _cut(text: str, stream: str) -> str:
    return text if len(text) <= OUTPUT_MAX else text[:OUTPUT_MAX] + _CUT[stream]


def _answer(result: Result, seconds: float) -> Dict[str, Any]:
    status, message, exit_code = "success", None, result.exit_code
    if result.status == "timeout":
        status, message, exit_code = "timeout", "Execution timed out after %s seconds." % seconds, -1
    elif result.status in ("denied", "setup_error", "internal_error", "interrupted", "cancelled"):
        status, message, exit_code = "setup_error", "Sandbox execution failed: %s" % result.explain(), -1
    elif not result.ok:
        status, message = "execution_error", "Code execution resulted in an error."
    return {"stdout": _cut(result.stdout, "stdout"), "stderr": _cut(result.stderr, "stderr"), "exit_code": -1 if exit_code is None else exit_code,
            "execution_time": round(result.duration, 3), "status": status, "error_message": message, "execution_id": result.id,
            "cause": result.raw.get("cause")}
