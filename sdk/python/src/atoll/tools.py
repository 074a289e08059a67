# SPDX-License-Identifier: Apache-2.0
"""The tool ``execute_code`` of Codomyrmex, as a function. The daemon answers it as it answers the MCP tool of that name.

>>> execute_code("python", "print(6 * 7)")["stdout"]
'42\\n'
>>> execute_code("Python", "print(1)")["stderr"]
'Unsupported language: Python'
"""
from __future__ import annotations

import math
from typing import Any, Dict, Optional

from . import default_client
from ._calls import tool
from ._client import Client, _object
from ._errors import AtollError, ConnectionFailed

__all__ = ["execute_code"]

DEFAULT_TIMEOUT = 30


def execute_code(language: str, code: str, stdin: Optional[str] = None, timeout: int = DEFAULT_TIMEOUT,
                 session_id: Optional[str] = None, *, client: Optional[Client] = None) -> Dict[str, Any]:
    """Executes code: ``stdout``, ``stderr``, ``exit_code``, ``execution_time``, ``status``, ``error_message``, ``execution_id``, ``cause``.

    ``status`` is success, timeout, execution_error or setup_error. ``timeout`` is clamped to 1–300 seconds. With a ``session_id``
    (alphanumerics, ``_``, ``-``; at most 64; anything else is ignored) python, javascript, bash and ruby keep their state between calls, in
    the daemon, also for other processes, until the session was not used for ten minutes. No exception is raised for what the code does.

    >>> execute_code("python", "x = 1", session_id="tour")["status"], execute_code("python", "print(x)", session_id="tour")["stdout"]
    ('success', '1\\n')
    """
    arguments = {"language": str(language), "code": _plain(code), "stdin": _plain(stdin), "timeout": _plain(timeout),
                 "session_id": _plain(session_id)}
    try:
        owner = client or default_client()
        return _object(owner._transport.call(tool("execute_code", arguments)).json())
    except ConnectionFailed as error:
        return _setup_error("Atoll is not available", "Atoll is required but not available or not running: %s" % error)
    except (AtollError, OSError) as error:
        return _setup_error("Internal error: %s" % error, "Sandbox execution failed: %s" % error)


def _plain(value: Any) -> Any:
    """The value where JSON has it; the daemon judges it. Anything else is as if it had not been given.

    >>> _plain("text"), _plain(float("nan")), _plain(object()), _plain(float("inf")) > 300
    ('text', None, None, True)
    """
    if isinstance(value, float) and not math.isfinite(value):
        return None if value != value else math.copysign(1e9, value)
    return value if value is None or isinstance(value, (str, int, float)) else None


def _setup_error(stderr: str, message: str) -> Dict[str, Any]:
    return {"stdout": "", "stderr": stderr, "exit_code": -1, "execution_time": 0, "status": "setup_error", "error_message": message,
            "execution_id": None, "cause": None}
