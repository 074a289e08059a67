# SPDX-License-Identifier: Apache-2.0
"""Clients that others wrote, over both doors: the SDKs of the old and of the new era, and the Inspector. Each lists and calls every tool;
every result is held against its schema, by ajv in strict mode and by jsonschema."""
import json

import pytest

import npm
from mcp import HttpDoor, validator
from program import MODES, ROOT

# The front is the same program for both users: one of them is enough.
pytestmark = [pytest.mark.modes(MODES[0]), pytest.mark.foreign]
TOOLS = ["execute_code", "create_session", "run_in_session", "fork_session", "reset_session", "close_session", "write_file", "read_file",
         "list_files", "get_execution", "read_output", "search_history", "list_languages", "explain_policy"]
PLAN = [
    {"name": "list_languages", "arguments": {}},
    {"name": "execute_code", "arguments": {"language": "python", "code": "print(6 * 7)"}, "keep": {"run": "execution_id"}},
    {"name": "create_session", "arguments": {"language": "python", "files": {"in.csv": "a,b\n1,2\n"}}, "keep": {"session": "session_id"}},
    {"name": "write_file", "arguments": {"session_id": "$session", "path": "notes/a.txt", "content": "one\ntwo\nthree\n"}},
    {"name": "run_in_session", "arguments": {"session_id": "$session", "code": "n = len(open('notes/a.txt').read())\nprint('hi')\nn"},
     "keep": {"turn": "execution_id"}},
    {"name": "list_files", "arguments": {"session_id": "$session"}},
    {"name": "read_file", "arguments": {"session_id": "$session", "path": "notes/a.txt", "grep": "^t"}},
    {"name": "fork_session", "arguments": {"session_id": "$session"}, "keep": {"copy": "sessions.0.session_id"}},
    {"name": "reset_session", "arguments": {"session_id": "$session"}},
    {"name": "close_session", "arguments": {"session_id": "$copy"}},
    {"name": "close_session", "arguments": {"session_id": "$session"}},
    {"name": "get_execution", "arguments": {"execution_id": "$run"}},
    {"name": "read_output", "arguments": {"execution_id": "$turn"}},
    {"name": "search_history", "arguments": {"language": "python", "limit": 3}},
    {"name": "explain_policy", "arguments": {"limits": {"memory": "1g"}}},
]
if MODES[0] == "rootless":  # whose sessions cannot be forked
    TOOLS.remove("fork_session")
    PLAN = [step for step in PLAN if step["name"] != "fork_session" and step["arguments"].get("session_id") != "$copy"]
WAYS = [("sdk", None, "http"), ("sdk", None, "stdio"), ("client", "2026-07-28", "http"), ("client", "2026-07-28", "stdio"), ("client", None, "http"),
        ("client", None, "stdio")]


def check_calls(calls):
    by_name = {}
    for call in calls:
        assert not call["is_error"] and call["errors"] is None, call
        by_name[call["name"]] = call
    assert set(by_name) == set(TOOLS)
    assert by_name["execute_code"]["structured"]["stdout"] == "42\n"
    assert by_name["run_in_session"]["structured"]["value"] == "14", by_name["run_in_session"]
    assert by_name["read_file"]["structured"]["matches"] == 2
    assert "hi" in by_name["read_output"]["structured"]["text"]
    assert by_name["explain_policy"]["structured"]["allowed"] is True
    return by_name


@pytest.mark.parametrize("client, pin, way", WAYS, ids=["-".join([c, "pinned" if p else "free", w]) for c, p, w in WAYS])
def test_sdk(served, bridge, client, pin, way):
    npm.required()
    job = {"modules": str(npm.MODULES), "client": client, "pin": pin, "plan": PLAN}
    if way == "http":
        job["url"] = f"http://127.0.0.1:{served.daemon.port}/mcp"
    else:
        job["command"] = bridge.command([bridge.binary, "mcp"])
        job["env"] = bridge.environment()
    done = npm.node(ROOT / "test" / "mcp" / "clients.cjs", input=json.dumps(job), timeout=90)
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-4000:])
    seen = json.loads(done.stdout)
    assert set(seen["tools"]) >= set(TOOLS) and seen["server"]["name"] == "atoll", seen["tools"]
    check_calls(seen["calls"])
    if client == "client":
        assert seen["version"] == "2026-07-28", seen["version"]  # also the one that was free to choose


def inspect(served, bridge, way, *words):
    npm.required()
    launcher = npm.MODULES / "@modelcontextprotocol" / "inspector" / "clients" / "launcher" / "build" / "index.js"
    if way == "http":
        target = [f"http://127.0.0.1:{served.daemon.port}/mcp", "--protocol-era", "modern"]
    else:
        target = [*bridge.command([bridge.binary, "mcp"]), *(word for key, value in bridge.environment().items() for word in ("-e", f"{key}={value}"))]
    done = npm.node(launcher, "--cli", *target, *words, "--format", "json", env={"HOME": bridge.environment()["HOME"]}, timeout=60)
    assert done.returncode == 0, (words, done.stdout[-2000:], done.stderr[-2000:])
    return json.loads(done.stdout)["result"]


@pytest.mark.parametrize("way", ["http", "stdio"])
def test_inspector(served, bridge, way):
    """--strict ends with 6 when a schema is one that some client cannot take."""
    listed = {tool["name"]: tool for tool in inspect(served, bridge, way, "--method", "tools/list", "--strict")["tools"]}
    assert set(listed) >= set(TOOLS)
    kept, calls = {}, []
    for step in PLAN:
        arguments = {key: kept[value[1:]] if isinstance(value, str) and value.startswith("$") else value for key, value in step["arguments"].items()}
        result = inspect(served, bridge, way, "--method", "tools/call", "--tool-name", step["name"], "--tool-args-json", json.dumps(arguments))
        validator(listed[step["name"]]["outputSchema"]).validate(result["structuredContent"])
        calls.append({"name": step["name"], "is_error": result.get("isError", False), "errors": None, "structured": result["structuredContent"]})
        for variable, path in step.get("keep", {}).items():
            at = result["structuredContent"]
            for key in path.split("."):
                at = at[int(key)] if key.isdigit() else at[key]
            kept[variable] = at
    check_calls(calls)


def test_lists_are_the_same_everywhere(door, web):
    """Each door and each era lists the same tools, prompts and templates, in the same order."""
    reference = HttpDoor(web)
    for what, key in (("tools", None), ("prompts", None), ("resources/templates", "resourceTemplates")):
        assert door.list(what, key) == reference.list(what, key)
    reference.close()
