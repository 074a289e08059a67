# SPDX-License-Identifier: Apache-2.0
"""Ten thousand malformed messages from a generator with a fixed seed: each gets the error that the specification says, with its id, and the
server is the same process with the same memory afterwards. Half of them come over HTTP, half over a WebSocket, which is what `atoll mcp`
bridges to."""
import json
import random

import pytest

from mcp import BOTH, LEGACY, META, MODERN, HttpDoor
from program import MODES
from web import WebSocket

# The front is the same program for both users: one of them is enough.
pytestmark = [pytest.mark.modes(MODES[0]), pytest.mark.foreign]
MESSAGES, WARM_UP, GROWTH_KIB = 10000, 2000, 8192
PARSE, INVALID, METHOD, PARAMS, HEADERS, VERSION = -32700, -32600, -32601, -32602, -32020, -32022
ABLE = {META + "protocolVersion": MODERN, META + "clientCapabilities": {}}
ODD = [None, True, False, 0, -1, 1.5, 1e300, 2 ** 62, "", "x", "\u0000", "\ud83d\ude00", "a" * 300, [], [1], {}, {"a": {"b": []}}, [[[]]]]


def memory_kib(pid):
    return next(int(line.split()[1]) for line in open(f"/proc/{pid}/status") if line.startswith("RssAnon:"))


class Case:
    """What is sent, what must come back. id: of the answer; NO_ID: null or absent."""
    NO_ID = object()

    def __init__(self, body, code, status=400, id=NO_ID, headers=(), name="", is_error=False):
        self.body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.code, self.status, self.id, self.headers, self.name, self.is_error = code, status, id, dict(headers), name, is_error


def modern(random, method, params, meta=None):
    id = random.choice([random.randrange(2 ** 53), f"id-{random.random()}", 0, -7, ""])
    return id, {"jsonrpc": "2.0", "id": id, "method": method, "params": {**params, "_meta": ABLE if meta is None else meta}}


def headers_of(message):
    params = message.get("params", {})
    name = params.get("uri" if message["method"] == "resources/read" else "name")
    return {"MCP-Protocol-Version": MODERN, "Mcp-Method": message["method"],
            **({"Mcp-Name": name} if isinstance(name, str) and name.isascii() and name.isprintable() and name.strip() == name else {})}


# --- kinds of faults; each makes a Case -----------------------------------------------------------------------------------------


def no_json(r):
    whole = json.dumps(modern(r, "tools/list", {})[1]).encode()
    kind = r.randrange(6)
    if kind == 0:
        return Case(whole[:r.randrange(1, len(whole))], PARSE)
    if kind == 1:
        return Case(bytes(r.choice(b"{}[]\",:0e-tfn\\/ ") for _ in range(r.randrange(2, 60))) + b"?", PARSE)
    if kind == 2:
        return Case(whole.replace(b"tools", b"to\xff\xfeols"), PARSE)
    if kind == 3:
        return Case(b'{"a":' * r.randrange(3000, 9000), PARSE)
    if kind == 4:
        return Case(whole + r.choice([b"}", b"x", whole]), PARSE)
    return Case(whole.replace(b'"2.0"', r.choice([b"NaN", b"01", b"0x2", b"'2.0'", b"+1", b"\x00"])), PARSE)


def no_message(r):
    """JSON, but no JSON-RPC message."""
    id, message = modern(r, "tools/list", {})
    kind = r.randrange(8)
    if kind == 0:
        return Case([message] * r.randrange(3), INVALID)
    if kind == 1:
        return Case(r.choice(["x", 1, 1.5, True, False, None]), INVALID)
    if kind == 2:
        message["jsonrpc"] = r.choice([v for v in ODD if v != "2.0"] + ["1.0", "2", 2.0])
        return Case(message, INVALID, id=id)
    if kind == 3:
        del message["jsonrpc"]
        return Case(message, INVALID, id=id)
    if kind == 4:
        message["id"] = r.choice([v for v in ODD if not isinstance(v, str) and (isinstance(v, bool) or not isinstance(v, int))])
        return Case(message, INVALID)
    if kind == 5:
        message["method"] = r.choice([v for v in ODD if not isinstance(v, str)])
        return Case(message, INVALID, id=id)
    if kind == 6:
        message["params"] = r.choice([v for v in ODD if not isinstance(v, dict)])
        return Case(message, INVALID, id=id)
    message[r.choice(["result", "error"])] = {}
    return Case(message, INVALID, id=id)


def bad_meta(r):
    meta = r.choice([{}, {META + "protocolVersion": MODERN}, {META + "clientCapabilities": {}},
                     {**ABLE, META + "protocolVersion": r.choice([v for v in ODD if not isinstance(v, str)])},
                     {**ABLE, META + "clientCapabilities": r.choice([v for v in ODD if not isinstance(v, dict)])}])
    id, message = modern(r, r.choice(["tools/list", "server/discover", "tools/call"]), {"name": "execute_code"}, meta)
    return Case(message, PARAMS, id=id, headers=headers_of(message))


def no_method(r):
    method = r.choice(["", "x", "tools", "tools/List", "tools/list ", "TOOLS/LIST", "a" * 400, "rpc.discover", "tools/list\u0000", "ping",
                       "initialize", "logging/setLevel", "tasks/list", "tasks/result", "../../etc/passwd"])
    id, message = modern(r, method, {})
    headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
    if not method.isprintable() or method != method.strip() or not method:
        return Case(message, (METHOD, HEADERS), (404, 400), id=id, headers={**headers, "Mcp-Method": "x"})
    return Case(message, METHOD, 404, id=id, headers=headers)


def bad_headers(r):
    id, message = modern(r, "tools/call", {"name": "execute_code", "arguments": {}})
    headers = headers_of(message)
    key = r.choice(list(headers))
    wrong = r.choice([None, "", "x", headers[key].upper() + "?", headers[key] + "x", "=?base64?####?=", "=?base64?eA==?="])
    if key == "MCP-Protocol-Version" and wrong is None:
        wrong = "2025-11-25"
    return Case(message, HEADERS, id=id, headers={**headers, key: wrong})


def bad_version(r):
    version = r.choice(["2026-07-29", "2099-01-01", "v999.0.0", "1", "2025-11-25x", "latest", "2026-7-28"])
    id, message = modern(r, r.choice(["server/discover", "tools/list"]), {}, {**ABLE, META + "protocolVersion": version})
    return Case(message, VERSION, id=id, headers={**headers_of(message), "MCP-Protocol-Version": version})


def bad_params(r):
    kind, wrong = r.randrange(7), r.choice(ODD)
    if kind == 0:
        name = r.choice([wrong, "execute_code\u0000", "execute_code\u0000x", "Execute_code", " execute_code"])
        id, message = modern(r, "tools/call", {"name": name, "arguments": {}})
    elif kind == 1:
        id, message = modern(r, "tools/call", {"arguments": {}})
    elif kind == 2:
        id, message = modern(r, "tools/call", {"name": "execute_code", "arguments": r.choice([v for v in ODD if v is not None and not isinstance(v, dict)])})
    elif kind == 3:
        id, message = modern(r, "prompts/get", {"name": wrong})
    elif kind == 4:
        id, message = modern(r, "resources/read", {"uri": r.choice(ODD + ["atoll://", "file:///etc/passwd", "atoll://executions/../x", "atoll://executions/%00"])})
    elif kind == 5:
        id, message = modern(r, "completion/complete", r.choice([{}, {"ref": wrong}, {"ref": {"type": "ref/prompt", "name": "no such"}, "argument": {"name": "a", "value": ""}},
                                                                 {"ref": {"type": "ref/prompt"}, "argument": wrong}]))
    else:
        id, message = modern(r, r.choice(["tools/list", "resources/list", "prompts/list"]),
                             {"cursor": r.choice([v for v in ODD if not isinstance(v, str) and v is not None] + ["no cursor of ours", "\u0000"])})
    headers = headers_of(message)
    if message["method"] in ("tools/call", "prompts/get", "resources/read") and "Mcp-Name" not in headers:
        return Case(message, (PARAMS, HEADERS), (200, 400), id=id, headers=headers)
    return Case(message, PARAMS, (200, 400), id=id, headers=headers)


def bad_arguments(r):
    """Faults of a tool's arguments are results that say what is wrong, so that a model can correct them."""
    arguments = {"language": "python", "code": "1"}
    arguments[r.choice(["language", "code"])] = r.choice([v for v in ODD if not isinstance(v, str) or v == ""])
    id, message = modern(r, "tools/call", {"name": "execute_code", "arguments": arguments})
    return Case(message, None, 200, id=id, headers=headers_of(message), is_error=True)


def no_session(r):
    id = r.randrange(1000)
    return Case({"jsonrpc": "2.0", "id": id, "method": r.choice(["tools/list", "ping", "tools/call", "x"])}, INVALID, 400, id=id,
                headers={"MCP-Protocol-Version": r.choice([*LEGACY, None])})


def lost_session(r):
    id = r.randrange(1000)
    return Case({"jsonrpc": "2.0", "id": id, "method": "tools/list"}, INVALID, 404, id=id,
                headers={"MCP-Protocol-Version": LEGACY[0], "Mcp-Session-Id": r.choice(["x", "0" * 64, "a" * 2000, "../x"])})


BOTH_WAYS = [no_json, no_json, no_message, no_message, no_method, bad_version, bad_params, bad_params, bad_arguments]
HTTP_ONLY = [bad_meta, bad_headers, no_session, lost_session]  # a socket has no headers, so that a message without a version is one of the old era


# --- sending them ---------------------------------------------------------------------------------------------------------------


def judge(case, status, answer):
    statuses = case.status if isinstance(case.status, tuple) else (case.status,)
    codes = case.code if isinstance(case.code, tuple) else (case.code,)
    what = (case.body[:600], case.headers, status, answer)
    assert status is None or status in statuses, what
    assert answer["jsonrpc"] == "2.0", what
    if case.is_error:
        assert answer["id"] == case.id and answer["result"]["isError"] is True and answer["result"]["content"], what
        return
    assert "error" in answer and answer["error"]["code"] in codes and isinstance(answer["error"]["message"], str) and answer["error"]["message"], what
    assert set(answer["error"]) <= {"code", "message", "data"} and "result" not in answer, what
    if case.id is Case.NO_ID:
        assert answer.get("id") is None, what
    else:
        assert answer["id"] == case.id and type(answer["id"]) is type(case.id), what


def test_ten_thousand_over_http(served):
    r = random.Random(15)
    kinds = BOTH_WAYS + HTTP_ONLY
    front, memory = served.daemon.child("front"), None
    keep = served.web.connect()
    for i in range(MESSAGES // 2):
        case = kinds[i % len(kinds)](r)
        headers = {"Accept": BOTH, "Content-Type": "application/json", **case.headers}
        answer = served.web.ask("POST", "/mcp", case.body, {k: v for k, v in headers.items() if v is not None}, keep=keep)
        try:
            message = answer.json()
        except ValueError:
            raise AssertionError((kinds[i % len(kinds)].__name__, case.body[:600], case.headers, answer)) from None
        judge(case, answer.status, message)
        if i == WARM_UP:
            memory = memory_kib(front)
    keep.close()
    after_all(served, front, memory)


def test_ten_thousand_over_a_socket(served):
    """A line of standard input is one text message here. What is no text at all is not sent: a WebSocket refuses it."""
    r = random.Random(16)
    front, memory, i = served.daemon.child("front"), None, 0
    socket = WebSocket(served.web, "/mcp")
    assert socket.status == 101
    while i < MESSAGES // 2:
        case = BOTH_WAYS[i % len(BOTH_WAYS)](r)
        try:
            text = case.body.decode()
        except ValueError:
            continue
        socket.send(text)
        judge(case, None, json.loads(socket.receive()))
        i += 1
        if i == WARM_UP:
            memory = memory_kib(front)
    socket.close()
    after_all(served, front, memory)


def after_all(served, front, memory):
    assert served.daemon.child("front") == front
    assert memory_kib(front) - memory < GROWTH_KIB, (memory, memory_kib(front))
    door = HttpDoor(served.web)
    assert door.call("execute_code", language="python", code="print(6*7)")["structuredContent"]["stdout"] == "42\n"
    door.close()
