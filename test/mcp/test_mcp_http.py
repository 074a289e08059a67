# SPDX-License-Identifier: Apache-2.0
"""Streamable HTTP as the specification has it: Origin, Host and tokens, the session header's rules in each era, DELETE and 405, streams that
go on after a cut, and what a client's leaving means in each era."""
import json
import time

import pytest

from mcp_served import serve
from mcp import BOTH, LEGACY, META, MODERN, HttpDoor, Refused, events
from oracle import below
from program import MODES
from web import Web

# The front is the same program for both users: one of them is enough.
pytestmark = pytest.mark.modes(MODES[0])
HELLO = {"jsonrpc": "2.0", "id": 1, "method": "initialize",
         "params": {"protocolVersion": LEGACY[0], "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}
SLEEP = {"language": "python", "code": "import time\nprint('begun', flush=True)\ntime.sleep(60)", "timeout": 90}


def send(web, message, **headers):
    all = {"Accept": BOTH, "Content-Type": "application/json", **{k.replace("_", "-"): v for k, v in headers.items()}}
    return web.ask("POST", "/mcp", json.dumps(message).encode(), {k: v for k, v in all.items() if v is not None})


def running(web):
    return [x["id"] for x in web.get("/v1/executions?status=running").json()["executions"]]


def wait_for(condition, timeout=30):
    end = time.monotonic() + timeout
    while not (found := condition()):
        assert time.monotonic() < end, "nothing came"
        time.sleep(0.02)
    return found


# --- who may ask ----------------------------------------------------------------------------------------------------------------


@pytest.mark.quick
def test_origin_and_host(web):
    own = f"127.0.0.1:{web.port}"
    for host in (own, f"localhost:{web.port}", f"[::1]:{web.port}"):
        assert send(web, HELLO, Host=host, Origin=f"http://{host}").status == 200, host
    for origin in ("http://evil.example.com", "null", f"http://localhost:{web.port + 1}", "https://127.0.0.1.evil.example", "http://evil.example.com:80"):
        answer = send(web, HELLO, Origin=origin)
        assert answer.status == 403 and "mcp-session-id" not in answer.headers, (origin, answer)
    for host in ("localhost", f"localhost:{web.port}", own, f"[::1]:{web.port}"):
        assert send(web, HELLO, Host=host).status == 200, host
    for host in ("evil.example.com", f"evil.example.com:{web.port}", "127.0.0.1.evil.example"):
        assert 400 <= send(web, HELLO, Host=host).status < 500, host
    for method in ("GET", "DELETE"):
        assert web.ask(method, "/mcp", headers={"Origin": "http://evil.example.com", "Accept": "text/event-stream"}).status == 403


def test_tokens(mode, stage):
    """A session belongs to the principal that made it; 401 names the scheme."""
    names = stage.scratch(mode, "tokens") / "tokens"
    names.write_text("first-token-of-ann-0123456789\nsecond-token-of-bob-0123456789\n")
    names.chmod(0o600)
    one = serve(mode, stage, "--token-file", names)
    try:
        web = one.web
        none = send(web, HELLO)
        assert none.status == 401 and "bearer" in none.headers["www-authenticate"].lower(), none
        ann = HttpDoor(Web(web.host, web.port, "first-token-of-ann-0123456789"), LEGACY[0])
        bob = HttpDoor(Web(web.host, web.port, "second-token-of-bob-0123456789"), LEGACY[0])
        assert ann.session != bob.session
        stolen = bob.post(bob.message("ping", id=9), {"Mcp-Session-Id": ann.session})
        assert stolen.status == 404, stolen
        assert bob.web.ask("DELETE", "/mcp", headers={"Mcp-Session-Id": ann.session}).status == 404
        assert ann.request("ping") == {}
        id = ann.do("execute_code", language="python", code="print('secret')")["execution_id"]
        assert "secret" not in json.dumps(bob.call("get_execution", execution_id=id)) and bob.call("get_execution", execution_id=id)["isError"]
        session = ann.do("create_session", language="bash")["session_id"]
        assert bob.call("run_in_session", session_id=session, code="echo x")["isError"]
        ann.close()
        bob.close()
    finally:
        one.end()


# --- shapes of requests ---------------------------------------------------------------------------------------------------------


def test_media_types(web):
    assert send(web, HELLO, Content_Type="text/plain").status == 415
    assert send(web, HELLO, Accept="text/html").status == 406
    assert send(web, HELLO, Accept="*/*").status == 200
    answer = send(web, HELLO)
    assert answer.headers["content-type"] == "application/json"
    accepted = send(web, {"jsonrpc": "2.0", "method": "notifications/initialized"}, Mcp_Session_Id=answer.headers["mcp-session-id"])
    assert accepted.status == 202 and accepted.body == b""


@pytest.mark.parametrize("version", LEGACY)
def test_legacy_sessions(web, version):
    door = HttpDoor(web, version)
    assert door.session and all(0x21 <= ord(c) <= 0x7e for c in door.session) and len(door.session) >= 26
    assert door.server["serverInfo"]["name"] == "atoll" and door.server["capabilities"]["tools"] is not None
    assert door.request("ping") == {}
    ping = door.message("ping", id=5)
    assert door.post(ping, {"Mcp-Session-Id": None}).status == 400
    assert door.post(ping, {"Mcp-Session-Id": "x" * 32}).status == 404
    assert door.post(ping, {"MCP-Protocol-Version": None}).status == 200
    assert door.post(ping, {"MCP-Protocol-Version": "1999-01-01"}).status == 400
    unknown = door.post(door.message("no/such", id=6))
    assert unknown.status == 200 and unknown.json()["error"]["code"] == -32601, unknown  # 404 would mean that the session has ended
    # Ending it, twice; afterwards it is gone.
    assert web.ask("DELETE", "/mcp", headers={"Mcp-Session-Id": door.session}).status in (200, 204)
    assert web.ask("DELETE", "/mcp", headers={"Mcp-Session-Id": door.session}).status == 404
    assert web.ask("DELETE", "/mcp").status == 400
    gone = door.post(ping)
    assert gone.status == 404 and gone.json()["id"] == 5, gone


def test_versions_are_negotiated(web):
    for asked, given in ((LEGACY[1], LEGACY[1]), ("2024-01-01", LEGACY[0]), ("3000-01-01", LEGACY[0]), (MODERN, LEGACY[0])):
        hello = {**HELLO, "params": {**HELLO["params"], "protocolVersion": asked}}
        answer = send(web, hello)
        assert answer.status == 200 and answer.json()["result"]["protocolVersion"] == given, (asked, answer)


def test_modern_is_stateless(web):
    """No session, no GET, no DELETE; headers of the old era are passed over."""
    door = HttpDoor(web)
    listed = door.post(door.message("tools/list", id=1), {"Mcp-Session-Id": "whatever-it-was", "Last-Event-ID": "7"})
    assert listed.status == 200 and "mcp-session-id" not in listed.headers, listed
    result = listed.json()["result"]
    assert result["resultType"] == "complete" and result["ttlMs"] >= 0 and result["cacheScope"] in ("public", "private")
    assert result["_meta"][META + "serverInfo"]["name"] == "atoll"
    for method in ("GET", "DELETE"):
        answer = web.ask(method, "/mcp", headers={"MCP-Protocol-Version": MODERN, "Accept": "text/event-stream"})
        assert answer.status == 405 and "POST" in answer.headers["allow"], answer
    for method in ("PUT", "PATCH"):
        assert web.ask(method, "/mcp", b"{}").status == 405
    discovered = door.request("server/discover")
    assert discovered["supportedVersions"] == [MODERN] and discovered["instructions"]
    with pytest.raises(Refused) as unknown:
        door.request("no/such")
    assert (unknown.value.status, unknown.value.code) == (404, -32601)


# --- streams --------------------------------------------------------------------------------------------------------------------


def test_answers_become_streams(web):
    """JSON while there is nothing to say before the answer, events when there is. Only a legacy client may resume: only it gets ids."""
    for version in (MODERN, LEGACY[0]):
        door = HttpDoor(web, version)
        quick = door.post(door.message("tools/call", {"name": "execute_code", "arguments": {"language": "python", "code": "print(1)"}}, 1))
        assert quick.headers["content-type"] == "application/json", quick
        message = door.message("tools/call", {"name": "execute_code", "arguments": {
            "language": "bash", "code": "for i in 1 2 3; do echo $i; sleep 0.4; done", "timeout": 20}}, 2, progress="p")
        connection = web.connect()
        response = web.begin(connection, "POST", "/mcp", json.dumps(message).encode(), door.headers(message))
        assert response.getheader("Content-Type") == "text/event-stream" and response.getheader("X-Accel-Buffering") == "no"
        got = list(events(response))
        connection.close()
        assert all((id is None) == door.modern for id, _, _ in got), got
        told = [json.loads(data) for _, _, data in got if data]
        progress = [m["params"] for m in told if m.get("method") == "notifications/progress"]
        assert progress and all(p["progressToken"] == "p" for p in progress), told
        steps = [p["progress"] for p in progress]
        assert steps == sorted(set(steps)), steps
        assert told[-1]["id"] == 2 and told[-1]["result"]["structuredContent"]["stdout"] == "1\n2\n3\n" and "method" not in told[-1]
        assert all("method" in m and "id" not in m for m in told[:-1]), told
        door.close()


def test_legacy_stream_goes_on_after_a_cut(web):
    """The connection breaks while the tool runs. Leaving is no cancellation here: GET with Last-Event-ID gives the rest, each event once."""
    door = HttpDoor(web, LEGACY[0])
    message = door.message("tools/call", {"name": "execute_code", "arguments": {
        "language": "bash", "code": "for i in 1 2 3 4 5; do echo $i; sleep 0.5; done", "timeout": 20}}, 7, progress=1)
    connection = web.connect()
    response = web.begin(connection, "POST", "/mcp", json.dumps(message).encode(), door.headers(message))
    seen = []
    for id, _, data in events(response):
        seen.append((id, data))
        if data and "method" in json.loads(data):
            break
    connection.sock.close()
    connection.close()
    assert all(id for id, _ in seen), seen
    resumed = web.connect()
    response = web.begin(resumed, "GET", "/mcp", headers={"Accept": "text/event-stream", "Mcp-Session-Id": door.session,
                                                           "MCP-Protocol-Version": LEGACY[0], "Last-Event-ID": seen[-1][0]})
    assert response.status == 200, response.read()
    rest = []
    for id, _, data in events(response):
        rest.append((id, data))
        if data and json.loads(data).get("id") == 7:
            break
    resumed.close()
    assert json.loads(rest[-1][1])["result"]["structuredContent"]["stdout"] == "1\n2\n3\n4\n5\n"
    ids = [id for id, data in seen + rest if data]
    assert len(set(ids)) == len(ids), ids
    unknown = web.ask("GET", "/mcp", headers={"Accept": "text/event-stream", "Mcp-Session-Id": "x" * 32, "MCP-Protocol-Version": LEGACY[0]})
    assert unknown.status == 404, unknown
    none = web.ask("GET", "/mcp", headers={"Accept": "text/event-stream", "MCP-Protocol-Version": LEGACY[0]})
    assert none.status == 400, none
    door.close()


# --- ending what runs -----------------------------------------------------------------------------------------------------------


def test_modern_client_that_leaves_cancels(web):
    door = HttpDoor(web)
    id = door.start("tools/call", {"name": "execute_code", "arguments": SLEEP})
    execution = wait_for(lambda: running(web))[0]
    door.hang_up(id)
    state = web.wait(execution, timeout=20)
    assert state["status"] == "cancelled", state
    assert HttpDoor(web).call("execute_code", language="python", code="print(1)")["structuredContent"]["stdout"] == "1\n"


def test_legacy_client_that_leaves_does_not_cancel(web):
    door = HttpDoor(web, LEGACY[0])
    id = door.start("tools/call", {"name": "execute_code", "arguments": {**SLEEP, "code": "import time\ntime.sleep(1.5)\nprint('end')"}}, progress=3)
    execution = wait_for(lambda: running(web))[0]
    door.hang_up(id)
    state = web.wait(execution, timeout=20)
    assert state["status"] == "success" and state["stdout"] == "end\n", state
    door.close()


def test_legacy_client_cancels_by_notification(web):
    """After that there is no answer, and the program is gone."""
    door = HttpDoor(web, LEGACY[0])
    id = door.start("tools/call", {"name": "execute_code", "arguments": SLEEP}, progress=4)
    execution = wait_for(lambda: running(web))[0]
    door.notify("notifications/cancelled", {"requestId": id, "reason": "the user wants something else"})
    assert web.wait(execution, timeout=20)["status"] == "cancelled"
    assert door.request("ping") == {} and id not in door.answers
    door.notify("notifications/cancelled", {"requestId": 4711})  # which never was
    door.close()


def test_session_that_ends_takes_its_calls_along(web):
    door = HttpDoor(web, LEGACY[0])
    door.start("tools/call", {"name": "execute_code", "arguments": SLEEP}, progress=5)
    execution = wait_for(lambda: running(web))[0]
    assert web.ask("DELETE", "/mcp", headers={"Mcp-Session-Id": door.session}).status == 204
    assert web.wait(execution, timeout=20)["status"] == "cancelled"


def test_many_clients(served, web):
    """A client that makes sessions without end is bounded, and does not shut out the others for good."""
    doors, refused = [], None
    for _ in range(600):
        answer = send(web, HELLO)
        if answer.status != 200:
            refused = answer
            break
        doors.append(answer.headers["mcp-session-id"])
    assert refused is None or refused.status in (429, 503), refused
    for session in doors:
        assert web.ask("DELETE", "/mcp", headers={"Mcp-Session-Id": session}).status == 204
    door = HttpDoor(web, LEGACY[0])
    assert door.request("ping") == {}
    door.close()
    assert len(below(served.daemon.pid)) < 30
