# SPDX-License-Identifier: Apache-2.0
"""Sessions without any connection: the calls of their routes, and host functions.

Both kinds of sandbox object (threads, asyncio) send these calls and answer host calls with ``HostFunctions``.
"""
from __future__ import annotations

import inspect
import io
from typing import Any, Awaitable, BinaryIO, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, TypeVar, Union
from urllib.parse import quote

from . import _calls
from ._calls import LIMITS, dump, encode_files
from ._values import decode, encode
from ._wire import Call

HostFunction = Callable[..., Any]
FileData = Union[str, bytes, BinaryIO]

WORK_DIRECTORY = "/sandbox"
PIECE_BYTES = 16 << 20  # of a file, in one request
SIGNATURE_MOST, DOC_MOST = 1000, 4000  # characters, of a host function
Function = TypeVar("Function", bound=HostFunction)  # what a decorator gives back keeps its own type

#: Keys of a session's body, beside limits. ``idle_timeout`` is the session's own here.
SESSION_KEYS = frozenset(("env", "files", "network", "policy", "preload", "labels", "read_only", "rules", "idle_timeout", "name", "forkable"))


class FileInfo(NamedTuple):
    """A file of a session's work directory: ``type`` is file, directory or link."""

    path: str
    size: int
    type: str
    mtime: float

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> "FileInfo":
        """A file from the daemon's JSON object."""
        return cls(str(raw["path"]), int(raw.get("size") or 0), str(raw.get("type") or "file"), float(raw.get("mtime") or 0.0))


class Logs(NamedTuple):
    """Everything that a session printed so far."""

    stdout: str
    stderr: str
    truncated: bool = False

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> "Logs":
        """Logs from the daemon's JSON object."""
        return cls(str(raw.get("stdout") or ""), str(raw.get("stderr") or ""), bool(raw.get("truncated")))


def _split(options: Mapping[str, Any], keys: "frozenset[str]") -> Dict[str, Any]:
    """A body from keywords: limits gathered in ``limits``, the rest as it is; None means that a keyword was not given."""
    body: Dict[str, Any] = {}
    limits: Dict[str, Any] = dict(options.get("limits") or {})
    for name, value in options.items():
        if name == "limits" or value is None:
            continue
        if name in keys:
            body[name] = encode_files(value) if name == "files" else value
        elif name in LIMITS:
            limits[name] = value
        else:
            raise TypeError("%r is neither a limit nor a key of a session" % name)
    if limits:
        body["limits"] = limits
    return body


def session_body(language: str, options: Mapping[str, Any], functions: "HostFunctions") -> Dict[str, Any]:
    """The body of a new session.

    >>> session_body("python", {"memory": "64m", "labels": {"of": "me"}, "timeout": None}, HostFunctions({}))
    {'language': 'python', 'labels': {'of': 'me'}, 'limits': {'memory': '64m'}}
    """
    body: Dict[str, Any] = {"language": language, **_split(options, SESSION_KEYS)}
    if functions.names():
        body["host_functions"] = functions.described()
    return body


def execute_body(code: str, options: Mapping[str, Any], functions: "HostFunctions", variables: Optional[Mapping[str, Any]]) -> Dict[str, Any]:
    """The body of an execution in a session. Callables among the variables become host functions of this execution."""
    body: Dict[str, Any] = {"code": code, **_split(options, frozenset(("labels", "rules")))}
    if functions.names():
        body["host_functions"] = functions.described()
    if variables:
        body["globals"] = {name: encode(value) for name, value in variables.items()}
    return body


def path_of(session_id: str, *rest: str) -> str:
    """The path of a session, or of something below it."""
    return "/".join(["/v1/sessions", quote(session_id, safe="")] + [quote(part) for part in rest])


def create(body: Mapping[str, Any]) -> Call:
    """Makes a session."""
    return Call("POST", "/v1/sessions", dump(body))


def listing() -> Call:
    """The caller's sessions."""
    return _calls.get("/v1/sessions")


def execute(session_id: str, body: Mapping[str, Any], stream: bool) -> Call:
    """Executes code in a session. The code is ended when the client goes away."""
    return Call("POST", path_of(session_id, "execute"), dump(body), "application/x-ndjson" if stream else "application/json")


def answer(session_id: str, call_id: Any, body: Mapping[str, Any]) -> Call:
    """Answers a host call."""
    return Call("POST", path_of(session_id, "calls", str(call_id)), dump(body))


def post(session_id: str, word: str, **body: Any) -> Call:
    """``reset``, ``fork`` or ``interrupt``."""
    return Call("POST", path_of(session_id, word), dump(body))


def delete(session_id: str) -> Call:
    """Ends a session."""
    return Call("DELETE", path_of(session_id))


def work_path(path: str, is_directory: bool = False) -> str:
    """A path of the work directory, relative to it.

    >>> work_path("/sandbox/data/in.txt"), work_path("data/", True), work_path(".", True)
    ('data/in.txt', 'data', '')
    >>> work_path("/tmp/q.txt")
    Traceback (most recent call last):
    ...
    ValueError: '/tmp/q.txt' is not in the session's work directory /sandbox; give a path below it, or let code in the session copy the file there
    >>> work_path("data/")
    Traceback (most recent call last):
    ...
    ValueError: 'data/' names a directory; add the name of a file
    """
    below = path
    if path == WORK_DIRECTORY or path.startswith(WORK_DIRECTORY + "/"):
        below = path[len(WORK_DIRECTORY) + 1:]
    if below.startswith("/") or ".." in below.split("/"):
        raise ValueError("%r is not in the session's work directory %s; give a path below it, or let code in the session copy the file there"
                         % (path, WORK_DIRECTORY))
    below = "/".join(part for part in below.split("/") if part != ".") if below != "." else ""
    if is_directory:
        return below.strip("/")
    if not below or below.endswith("/"):
        raise ValueError("%r names a directory; add the name of a file" % path)
    return below


def _pieces(data: FileData) -> Iterator[bytes]:
    """The contents of a file; one piece, maybe empty, at least."""
    source = io.BytesIO(data.encode("utf-8") if isinstance(data, str) else bytes(data)) if isinstance(data, (str, bytes, bytearray, memoryview)) else data
    piece = source.read(PIECE_BYTES)
    while True:
        if isinstance(piece, str):
            raise TypeError("the file was opened as text; open it with mode 'rb'")
        yield piece
        piece = source.read(PIECE_BYTES)
        if not piece:
            return


def write_file(session_id: str, path: str, data: FileData) -> Iterator[Call]:
    """Writes a file of the work directory, by as many calls as its size needs."""
    target, offset = path_of(session_id, "files", work_path(path)), 0
    for piece in _pieces(data):
        headers = {"Content-Range": "bytes %d-%d/*" % (offset, offset + len(piece) - 1)} if offset else {}
        yield Call("PUT", target, piece, content_type="application/octet-stream", headers=headers)
        offset += len(piece)


def read_file(session_id: str, path: str, offset: int = 0, size: Optional[int] = None) -> Call:
    """Reads a file of the work directory, or a part of it."""
    headers = {} if offset == 0 and size is None else {"Range": "bytes=%d-%s" % (offset, "" if size is None else offset + size - 1)}
    return Call("GET", path_of(session_id, "files", work_path(path)), accept="*/*", headers=headers, idempotent=True)


def size_after(headers: Mapping[str, str], body: bytes) -> int:
    """The size of the file that a part was read of."""
    return int(headers["content-range"].rpartition("/")[2]) if "content-range" in headers else len(body)


def remove_file(session_id: str, path: str) -> Call:
    """Removes a file of the work directory."""
    return Call("DELETE", path_of(session_id, "files", work_path(path.rstrip("/") or path)))


def files_in(answer_json: Mapping[str, Any], base: str) -> List[FileInfo]:
    """The files below a directory, sorted."""
    files = sorted(FileInfo.from_json(raw) for raw in answer_json.get("files") or [])
    return [file for file in files if file.path.startswith(base + "/")] if base else files


def error_body(error: BaseException) -> Dict[str, Any]:
    """An exception as the sandbox gets it. The text of a KeyError is the repr of its key, so the key itself is sent."""
    is_key = isinstance(error, KeyError) and len(error.args) == 1 and isinstance(error.args[0], str)
    return {"error": {"type": type(error).__name__, "message": error.args[0] if is_key else str(error)}}


def _description(function: HostFunction) -> Dict[str, str]:
    found = {}
    try:
        signature = inspect.signature(function)
        plain = [parameter.replace(annotation=_shown(parameter.annotation)) for parameter in signature.parameters.values()]
        text = str(signature.replace(parameters=plain, return_annotation=_shown(signature.return_annotation)))
        if len(text) <= SIGNATURE_MOST:
            found["signature"] = text
    except (TypeError, ValueError):
        pass  # a built-in that does not tell
    doc = inspect.getdoc(function) if inspect.isroutine(function) else None
    if doc:
        found["doc"] = doc[:DOC_MOST]
    return found


class _Shown:
    """An annotation that is shown without quotes also where it is text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _shown(annotation: Any) -> Any:
    return _Shown(annotation) if isinstance(annotation, str) else annotation


class HostFunctions:
    """Functions of this process that code in a session may call, by name."""

    def __init__(self, functions: Optional[Mapping[str, HostFunction]] = None) -> None:
        self._functions: Dict[str, HostFunction] = {}
        for name, function in (functions or {}).items():
            self.add(function, name)

    def add(self, function: HostFunction, name: Optional[str] = None) -> str:
        """Adds a function; its name."""
        word: str = name or str(getattr(function, "__name__", ""))
        if not word.isidentifier():
            raise ValueError("%r is no name for a host function; give one with name=" % word)
        if not callable(function):
            raise TypeError("host function %r is a %s, which cannot be called" % (word, type(function).__name__))
        self._functions[word] = function
        return word

    def names(self) -> List[str]:
        """The names, sorted."""
        return sorted(self._functions)

    def described(self) -> List[Dict[str, str]]:
        """Name, signature and docstring of each, as code in the session sees them by ``help``.

        >>> def price(name: str, count: int = 1) -> float:
        ...     "What it costs."
        >>> HostFunctions({"price": price}).described()
        [{'name': 'price', 'signature': '(name: str, count: int = 1) -> float', 'doc': 'What it costs.'}]
        """
        return [{"name": name, **_description(self._functions[name])} for name in self.names()]

    def joined(self, others: Optional[Mapping[str, HostFunction]]) -> "HostFunctions":
        """These and others."""
        return HostFunctions({**self._functions, **others}) if others else self

    def _start(self, call: Mapping[str, Any]) -> Any:
        name = str(call.get("name"))
        function = self._functions.get(name)
        if function is None:
            raise NameError("host function %r is not registered" % name)
        args, kwargs = call.get("args") or [], call.get("kwargs") or {}
        return function(*[decode(value) for value in args], **{str(key): decode(value) for key, value in kwargs.items()})

    def answer(self, call: Mapping[str, Any]) -> Dict[str, Any]:
        """Calls a function; the body of its answer. An exception of the function is an answer, too."""
        try:
            returned = self._start(call)
            if inspect.isawaitable(returned):
                if inspect.iscoroutine(returned):
                    returned.close()
                raise TypeError("host function %r is asynchronous; use AsyncSandbox" % call.get("name"))
            return {"result": encode(returned)}
        except Exception as error:  # pylint: disable=broad-except; it is raised again inside the sandbox
            return error_body(error)

    async def answer_async(self, call: Mapping[str, Any]) -> Dict[str, Any]:
        """As ``answer``; waits for a function that is asynchronous."""
        try:
            returned = self._start(call)
            if inspect.isawaitable(returned):
                waiting: Awaitable[Any] = returned
                returned = await waiting
            return {"result": encode(returned)}
        except Exception as error:  # pylint: disable=broad-except; it is raised again inside the sandbox
            return error_body(error)
