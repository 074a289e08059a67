# SPDX-License-Identifier: Apache-2.0
"""The client of NVIDIA NeMo Agent Toolkit's code execution server: ``get_sandbox`` and ``LocalSandbox``.

The client speaks plain HTTP to ``POST /execute``, so it works with Atoll and with the document's own server. It returns the
answer's three fields as they are.
"""
from __future__ import annotations

import ast
import http.client
import json
import os
import socket
import threading
from typing import Any, Dict, Optional, Tuple
from urllib.parse import urljoin, urlsplit

__all__ = ["LocalSandbox", "Sandbox", "get_sandbox"]

Answer = Dict[str, str]


def default_uri() -> str:
    """The server's address: ``SANDBOX_HOST`` and ``SANDBOX_PORT``, by default http://127.0.0.1:6000."""
    return "http://%s:%s" % (os.environ.get("SANDBOX_HOST", "127.0.0.1"), os.environ.get("SANDBOX_PORT", "6000"))


def unwrap_code(generated_code: str) -> str:
    """The code itself, without a dictionary, a Markdown fence or a leading word ``python`` around it.

    >>> unwrap_code("```python\\nprint('x')\\n```")
    "print('x')"
    >>> unwrap_code("{'generated_code': 'print(1)'}")
    'print(1)'
    """
    try:
        literal = ast.literal_eval(generated_code)
        if isinstance(literal, dict) and "generated_code" in literal:
            generated_code = str(literal["generated_code"])
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        pass
    code = generated_code.strip().strip("`")
    first, newline, rest = code.partition("\n")
    return (rest if newline and first.strip() in ("python", "py") else code).strip()


class Sandbox:
    """A server that executes code, reached over connections that are kept alive, one for each thread."""

    def __init__(self, *, uri: Optional[str] = None) -> None:
        self.url = urljoin((uri or default_uri()).rstrip("/") + "/", "execute")
        parts = urlsplit(self.url)
        if parts.scheme != "http" or not parts.hostname:
            raise ValueError("uri must be http://HOST:PORT, not %r" % uri)
        self._place: Tuple[str, int] = (parts.hostname, parts.port or 80)
        self._path = parts.path
        self._threads = threading.local()

    def _connection(self, timeout: float) -> http.client.HTTPConnection:
        connection: Optional[http.client.HTTPConnection] = getattr(self._threads, "connection", None)
        if connection is None:
            connection = self._threads.connection = http.client.HTTPConnection(*self._place)
        connection.timeout = timeout
        if connection.sock is not None:
            connection.sock.settimeout(timeout)
        return connection

    def _post(self, request: Dict[str, Any], timeout: float) -> Tuple[int, bytes]:
        connection = self._connection(timeout)
        reused = connection.sock is not None
        body = json.dumps(request).encode("utf-8")
        try:
            connection.request("POST", self._path, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, response.read()
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            connection.close()
            if not reused:
                raise
            return self._post(request, timeout)
        except BaseException:
            connection.close()
            raise

    def _ask(self, request: Dict[str, Any], timeout: float) -> Answer:
        try:
            status, body = self._post(request, timeout)
        except socket.timeout:
            return _timed_out()
        if status == 502:
            return _timed_out()
        try:
            answer = json.loads(body.decode("utf-8"))
        except ValueError as error:
            return {"process_status": "error", "stdout": "", "stderr": 'Unknown error: %s "%s"' % (error, body.decode("utf-8", "replace"))}
        return answer if isinstance(answer, dict) else {"process_status": "error", "stdout": "", "stderr": "Unknown error"}


class LocalSandbox(Sandbox):
    """The sandbox server of this machine."""

    def execute_code(self, generated_code: str, timeout: float = 10.0, language: str = "python",
                     max_output_characters: int = 1000) -> Answer:
        """Executes code: ``process_status`` (completed, error, timeout), ``stdout`` and ``stderr``.

        An output of more than ``max_output_characters`` is cut there and ends with ``<output cut>``.
        """
        request = {"generated_code": unwrap_code(generated_code), "timeout": timeout, "language": language,
                   "max_output_characters": max_output_characters}
        return self._ask(request, timeout)


def _timed_out() -> Answer:
    return {"process_status": "timeout", "stdout": "", "stderr": "Timed out\n"}


_KINDS = {"local": LocalSandbox}


def get_sandbox(sandbox_type: str = "local", *, uri: Optional[str] = None) -> LocalSandbox:
    """A sandbox by its type. KeyError: there is none of that type."""
    return _KINDS[sandbox_type](uri=uri)
