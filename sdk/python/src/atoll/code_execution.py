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
from typing import Any, Dict, Generator, NoReturn, Optional, Tuple
from urllib.parse import urljoin, urlsplit

from ._errors import ConnectionFailed

__all__ = ["LocalSandbox", "Sandbox", "get_sandbox"]


class Answer(Dict[str, str]):
    """The answer's fields. The toolkit's own method is a coroutine, so ``await`` and ``asyncio.run`` take an answer, too.

    >>> import asyncio
    >>> asyncio.run(Answer(process_status="completed"))
    {'process_status': 'completed'}
    """

    def __await__(self) -> "Generator[None, None, Answer]":
        return self
        yield  # makes it a generator

    def __hash__(self) -> int:  # type: ignore[override]  # ``asyncio.gather`` keeps what it waits for by its hash
        return id(self)

    def send(self, _value: object) -> NoReturn:
        """Ends at once, as a coroutine with nothing to wait for."""
        raise StopIteration(self)

    def throw(self, error: BaseException, *_: object) -> NoReturn:
        """Raises what a loop wants to raise inside."""
        raise error

    def close(self) -> None:
        """There is nothing to close."""


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
        except OSError as error:
            connection.close()
            if isinstance(error, socket.timeout):
                raise
            raise ConnectionFailed("no server answers at %s (%s); start one with `atoll serve`, or name another by uri= or SANDBOX_HOST "
                                   "and SANDBOX_PORT" % (self.url, error.strerror or error)) from error
        except BaseException:
            connection.close()
            raise

    def _ask(self, request: Dict[str, Any], timeout: float) -> Answer:
        if timeout <= 0:
            return _timed_out()
        try:
            status, body = self._post(request, timeout)
        except socket.timeout:
            return _timed_out()
        if status == 502:
            return _timed_out()
        try:
            answer = json.loads(body.decode("utf-8"))
        except ValueError as error:
            return _failed('Unknown error: %s "%s"' % (error, body.decode("utf-8", "replace")))
        return Answer(answer) if isinstance(answer, dict) else _failed("Unknown error")


class LocalSandbox(Sandbox):
    """The sandbox server of this machine."""

    def execute_code(self, generated_code: str, timeout: float = 10.0, language: str = "python",
                     max_output_characters: int = 1000, *, timeout_seconds: Optional[float] = None) -> Answer:
        """Executes code: ``process_status`` (completed, error, timeout), ``stdout`` and ``stderr``.

        An output of more than ``max_output_characters`` is cut there and ends with ``<output cut>``. ``timeout_seconds`` is another name of
        ``timeout``.
        """
        timeout = timeout if timeout_seconds is None else timeout_seconds
        request = {"generated_code": unwrap_code(generated_code), "timeout": timeout, "language": language,
                   "max_output_characters": max_output_characters}
        return self._ask(request, timeout)


def _failed(text: str, status: str = "error") -> Answer:
    return Answer(process_status=status, stdout="", stderr=text)


def _timed_out() -> Answer:
    return _failed("Timed out\n", "timeout")


_KINDS = {"local": LocalSandbox}


def get_sandbox(sandbox_type: str = "local", *, uri: Optional[str] = None) -> LocalSandbox:
    """A sandbox by its type. KeyError: there is none of that type."""
    return _KINDS[sandbox_type.lower()](uri=uri)
