# SPDX-License-Identifier: Apache-2.0
"""One function a route: arguments in, ``Call`` out. Both clients send these calls.

``request_body`` turns keywords into the body of an execution. Limits may stand beside the other keywords
(``timeout=5``) or in ``limits``, where the two that collide with other keywords (``files``) have their place.
"""
from __future__ import annotations

import base64
import difflib
import json
from typing import Any, Dict, Mapping, Optional, Sequence, Union
from urllib.parse import quote, urlencode

from ._wire import Call

Files = Mapping[str, Union[str, bytes]]

#: Limits that may be given as keywords of their own.
LIMITS = frozenset((
    "timeout", "cpu_time", "idle_timeout", "memory", "swap", "cpus", "pids", "output", "output_total", "disk",
    "file_size", "open_files", "stack", "cpu_quota", "cpu_period", "cpu_shares"))
#: Every other key of a request's body.
KEYS = frozenset((
    "args", "stdin", "env", "files", "limits", "network", "policy", "workspace", "commit", "read_only", "writable_root",
    "image", "mounts", "tty", "merge_stderr", "preload", "compiler_args", "stages", "tests", "groups", "stop_at", "interactor", "invoke", "eval", "history", "archive", "entry", "labels",
    "collect", "priority",
    "host_functions", "callback_url"))


def dump(value: Any) -> bytes:
    """JSON as it travels. TypeError and ValueError name the key whose value JSON does not have.

    >>> dump({"limits": {"timeout": float("nan")}})
    Traceback (most recent call last):
    ...
    ValueError: limits.timeout: Out of range float values are not JSON compliant
    """
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":")).encode("utf-8")
    except (TypeError, ValueError) as error:
        raise _fault("", value) or error from None


def _fault(path: str, value: Any) -> Optional[Exception]:
    """The error of the innermost key that JSON cannot hold."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        rows = value.items() if isinstance(value, dict) else ()
        inner = (_fault("%s.%s" % (path, key) if path else str(key), item) for key, item in rows)
        return next(filter(None, inner), type(error)("%s: %s" % (path, error) if path else str(error)))
    return None


def encode_bytes(data: bytes) -> Dict[str, str]:
    """Bytes as a value of the API."""
    return {"base64": base64.b64encode(data).decode("ascii")}


def encode_files(files: Files) -> Dict[str, Any]:
    """Files as the API takes them: text as text, bytes as base64."""
    try:
        entries = files.items()
    except AttributeError:
        raise TypeError("files: %r is not a mapping of names and contents, such as {'data.csv': 'a,b'}" % (files,)) from None
    return {name: encode_bytes(data) if isinstance(data, bytes) else data for name, data in entries}


def _unknown(name: str) -> TypeError:
    near = difflib.get_close_matches(name, sorted(LIMITS | KEYS), 1)
    hint = "; did you mean %r?" % near[0] if near else ""
    return TypeError("%r is neither a limit nor a key of a request%s" % (name, hint))


def request_body(code: Optional[str], language: Optional[str], options: Mapping[str, Any]) -> Dict[str, Any]:
    """The body of an execution.

    >>> request_body("print(1)", "python", {"timeout": 5, "env": {"A": "b"}})
    {'code': 'print(1)', 'language': 'python', 'env': {'A': 'b'}, 'limits': {'timeout': 5}}
    """
    body: Dict[str, Any] = {}
    if code is not None:
        body["code"] = code
    if language is not None:
        body["language"] = language
    limits: Dict[str, Any] = dict(options.get("limits") or {})
    for name, value in options.items():
        if name not in LIMITS and name not in KEYS:
            raise _unknown(name)
        if value is None or name == "limits":
            continue
        if name in LIMITS:
            limits[name] = value
        elif name == "files":
            body[name] = encode_files(value)
        elif name in ("stdin", "archive") and isinstance(value, bytes):
            body[name] = encode_bytes(value) if name == "stdin" else encode_bytes(value)["base64"]
        else:
            body[name] = value
    if limits:
        body["limits"] = limits
    return body


def execute(body: Mapping[str, Any], stream: bool) -> Call:
    """Runs to the end. The program ends when the client goes away."""
    accept = "application/x-ndjson" if stream else "application/json"
    return Call("POST", "/v1/execute?disconnect=cancel", dump(body), accept)


def submit(body: Mapping[str, Any], key: Optional[str]) -> Call:
    """Accepts an execution that runs on its own."""
    headers = {"Idempotency-Key": key} if key else {}
    return Call("POST", "/v1/executions", dump(body), headers=headers, idempotent=key is not None)


def submit_many(programs: Sequence[Mapping[str, Any]], key: Optional[str]) -> Call:
    """Accepts many; each is a mapping of the arguments of ``request_body``."""
    bodies = [request_body(one.get("code"), one.get("language", "python"),
                           {name: value for name, value in one.items() if name not in ("code", "language")}) for one in programs]
    headers = {"Idempotency-Key": key} if key else {}
    return Call("POST", "/v1/executions:batch", dump({"executions": bodies}), headers=headers, idempotent=key is not None)


def get(path: str, accept: str = "application/json", **query: Any) -> Call:
    """A GET of a path that is encoded already."""
    words = urlencode({name: value for name, value in query.items() if value is not None}, doseq=True)
    return Call("GET", path + ("?" + words if words else ""), accept=accept, idempotent=True)


def execution_path(execution_id: str, *rest: str) -> str:
    """The path of an execution, or of something below it."""
    return "/".join(["/v1/executions", quote(execution_id, safe="")] + [quote(part) for part in rest])


def cancel(execution_id: str) -> Call:
    """Ends an execution that has not ended."""
    return Call("DELETE", execution_path(execution_id) + "?only=cancel")


def delete(execution_id: str) -> Call:
    """Removes an execution that has ended."""
    return Call("DELETE", execution_path(execution_id) + "?only=delete")


def replay(execution_id: str) -> Call:
    """Runs the same request again."""
    return Call("POST", execution_path(execution_id, "replay"), dump({}))


def tool(name: str, arguments: Mapping[str, Any]) -> Call:
    """Calls a tool; arguments that are None are left out. Its program ends when the client goes away."""
    return Call("POST", "/v1/tools/%s?disconnect=cancel" % name, dump({key: value for key, value in arguments.items() if value is not None}))


def cleanup() -> Call:
    """Ends and removes everything of this caller."""
    return Call("POST", "/v1/cleanup", b"{}")
