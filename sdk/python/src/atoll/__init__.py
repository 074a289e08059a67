# SPDX-License-Identifier: Apache-2.0
"""Atoll: run code that is not trusted, and get an exact account of what happened.

>>> import atoll
>>> atoll.run("print(sum(range(10)))").stdout
'45\\n'

>>> with atoll.Sandbox() as sandbox:
...     _ = sandbox.run("import math; radius = 2")
...     round(sandbox.run("math.pi * radius ** 2").value, 2)
12.57

``run`` talks to a running daemon (``ATOLL_URL``, or the default socket) or starts a private one that ends with this
process. ``Sandbox`` is a live interpreter that keeps its state. ``Client`` and ``AsyncClient`` give everything that the API offers.
"""
from __future__ import annotations

import atexit
import os
import threading
from importlib import import_module
from typing import TYPE_CHECKING, Any, Mapping, Optional, Sequence, Union

from ._calls import Files
from ._client import Client, OnText
from ._errors import (APIError, AtollError, AuthenticationFailed, Busy, Conflict, ConnectionFailed, ExecutionError,
                      InvalidRequest, NotFound, PolicyRefusal)
from ._output import Output
from ._result import Cause, Result
from ._session import Sandbox, SessionFiles
from ._session_calls import FileInfo, HostFunction, Logs
from ._wire import VERSION as __version__

if TYPE_CHECKING:
    from ._async_client import AsyncClient
    from ._async_session import AsyncSandbox, AsyncSessionFiles

__all__ = ["APIError", "AsyncClient", "AsyncSandbox", "AsyncSessionFiles", "AtollError", "AuthenticationFailed", "Busy", "Cause",
           "Client", "Conflict", "ConnectionFailed", "ExecutionError", "FileInfo", "HostFunction", "InvalidRequest", "Logs",
           "NotFound", "Output", "PolicyRefusal", "Result", "Sandbox", "SessionFiles", "__version__", "default_client", "run"]

_LATER = {"AsyncClient": "._async_client", "AsyncSandbox": "._async_session", "AsyncSessionFiles": "._async_session"}
_lock = threading.Lock()
_default: Optional[Client] = None
_default_pid = 0


def __getattr__(name: str) -> Any:
    """Loads what needs asyncio when it is asked for: asyncio takes longer to load than all the rest."""
    if name not in _LATER:
        raise AttributeError("module %r has no attribute %r" % (__name__, name))
    return getattr(import_module(_LATER[name], __name__), name)


def default_client() -> Client:
    """The client that ``run`` and the interfaces of other projects share; made by the first call in a process."""
    global _default, _default_pid
    with _lock:
        if _default is None or _default_pid != os.getpid():
            _default, _default_pid = Client(), os.getpid()
            atexit.register(_default.close)
        return _default


def run(code: Optional[str] = None, language: Optional[str] = "python", *,
        stdin: Union[str, bytes, None] = None, args: Optional[Sequence[str]] = None,
        env: Optional[Mapping[str, str]] = None, files: Optional[Files] = None,
        timeout: Union[float, str, None] = None, memory: Union[int, str, None] = None,
        network: Optional[str] = None, workspace: Optional[str] = None, policy: Optional[str] = None,
        on_stdout: Optional[OnText] = None, on_stderr: Optional[OnText] = None,
        check: bool = False, **more: Any) -> Result:
    """Runs a program in a sandbox and gives its result, as ``Client.run``.

    >>> run("echo $NAME; exit 3", "bash", env={"NAME": "reef"}).exit_code
    3
    """
    return default_client().run(code, language, stdin=stdin, args=args, env=env, files=files, timeout=timeout,
                                memory=memory, network=network, workspace=workspace, policy=policy,
                                on_stdout=on_stdout, on_stderr=on_stderr, check=check, **more)
