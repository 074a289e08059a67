# SPDX-License-Identifier: Apache-2.0
"""The tools, resources and prompts of MCP by raw JSON-RPC over POST /mcp; every result against its outputSchema."""
import base64
import itertools
import json
import threading
import time

import pytest

from program import Atoll
from web import Served

ANSWER_MOST = 16 << 10  # bytes of an answer, without images
HEADERS = {"Accept": "application/json, text/event-stream"}
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(range(64))).decode()
PLAIN = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "object": dict, "array": list, "null": type(None)}


def fits(schema, value, where="result"):
    """Strictly: the part of JSON Schema that the tools use. A keyword that is unknown here is a failure."""
    known = {"type", "properties", "required", "additionalProperties", "items", "enum", "anyOf", "minimum", "maximum", "description", "default"}
    assert set(schema) <= known, (where, schema)
    if "anyOf" in schema:
        for one in schema["anyOf"]:
            try:
                return fits(one, value, where)
            except AssertionError:
                continue
        raise AssertionError((where, value, schema))
    names = schema.get("type", [])
    names = names if isinstance(names, list) else [names]
    assert not names or any(isinstance(value, PLAIN[name]) and (name == "boolean" or not isinstance(value, bool)) for name in names), \
        (where, value, schema)
    assert "enum" not in schema or value in schema["enum"], (where, value)
    if isinstance(value, dict):
        properties, others = schema.get("properties", {}), schema.get("additionalProperties", True)
        assert set(schema.get("required", [])) <= set(value), (where, value)
        for key, inner in value.items():
            assert key in properties or others is not False, (where, key)
            fits(properties.get(key, others if isinstance(others, dict) else {}), inner, f"{where}.{key}")
    for i, inner in enumerate(value if isinstance(value, list) else []):
        fits(schema.get("items", {}), inner, f"{where}[{i}]")


class Client:
    """A legacy client over HTTP, with one connection for each call."""

    def __init__(self, web):
        self.web, self.ids, self.session = web, itertools.count(1), None
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        assert self.ask("initialize", hello)["protocolVersion"] == "2025-11-25"
        self.tools = {tool["name"]: tool for tool in self.ask("tools/list")["tools"]}

    def send(self, method, params, id):
        message = {"jsonrpc": "2.0", "method": method, "params": params, **({"id": id} if id else {})}
        headers = {**HEADERS, **({"MCP-Session-Id": self.session} if self.session else {})}
        answer = self.web.post("/mcp", message, headers=headers)
        self.session = answer.headers.get("mcp-session-id", self.session)
        if answer.headers.get("content-type") == "text/event-stream":
            return [json.loads(line[6:]) for line in answer.body.decode().split("\n") if line.startswith("data: {")]
        return [answer.json()] if answer.body else []

    def whole(self, method, params=None, id=None):
        """The notifications, and the last message."""
        *before, last = self.send(method, params or {}, id or next(self.ids))
        return before, last

    def ask(self, method, params=None):
        last = self.whole(method, params)[1]
        assert "result" in last, last
        return last["result"]

    def error(self, method, params):
        return self.whole(method, params)[1]["error"]

    def call(self, name, /, **arguments):
        """The result of a tool, which is as the tool promised."""
        return self.check(name, self.ask("tools/call", {"name": name, "arguments": arguments}))

    def check(self, name, result):
        first, *images = result["content"]
        assert first["type"] == "text" and all(block["type"] == "image" for block in images), result
        if "structuredContent" in result:
            fits(self.tools[name]["outputSchema"], result["structuredContent"], name)
            assert json.loads(first["text"]) == result["structuredContent"]
        else:
            assert result["isError"] and first["text"]
        if name != "execute_code":
            assert len(json.dumps({**result, "content": [first]}, ensure_ascii=False, separators=(",", ":")).encode()) <= ANSWER_MOST
        return result

    def good(self, name, /, **arguments):
        result = self.call(name, **arguments)
        assert not result.get("isError"), result
        return result["structuredContent"]

    def refused(self, name, /, **arguments):
        """The sentence of a call that gave nothing."""
        result = self.call(name, **arguments)
        assert result["isError"] and "structuredContent" not in result, result
        return result["content"][0]["text"]


@pytest.fixture(scope="module")
def client(served):
    return Client(served.web)


@pytest.fixture
def session(client):
    """The id of a Python session of its own."""
    id = client.good("create_session")["session_id"]
    yield id
    client.call("close_session", session_id=id)


@pytest.fixture(scope="module")
def log(client):
    """The execution that printed 50 MB, a line of them each 250,000 an error."""
    id = client.good("create_session")["session_id"]
    code = ("import sys\nfor i in range(1, 760001):\n    sys.stdout.write('ERROR at %d\\n' % i if i % 250000 == 0 else "
            "'%08d a line of a log that has about sixty-six bytes altogether\\n' % i)")
    result = client.good("run_in_session", session_id=id, code=code, timeout=60)
    client.good("close_session", session_id=id)
    assert result["stdout"]["bytes"] > 50_000_000 and result["stdout"]["truncated"]
    return result["execution_id"]


def images(result):
    return [block for block in result["content"] if block["type"] == "image"]


# --- the list ---

def test_list_of_tools(client):
    assert list(client.tools) == ["execute_code", "create_session", "run_in_session", "fork_session", "reset_session", "close_session", "write_file",
                                  "read_file", "list_files", "get_execution", "read_output", "search_history", "list_languages", "explain_policy"]
    for tool in client.tools.values():
        assert tool["title"] and len(tool["description"]) > 60 and tool["inputSchema"]["type"] == tool["outputSchema"]["type"] == "object"
        assert set(tool["annotations"]) == {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
    assert set(client.tools["create_session"]["inputSchema"]["properties"]["limits"]["properties"]) >= {"memory", "timeout", "cpus"}
    assert client.tools["read_output"]["annotations"]["readOnlyHint"] and not client.tools["execute_code"]["annotations"]["readOnlyHint"]
    types = client.tools["execute_code"]["outputSchema"]["properties"]
    assert types["exit_code"] == {"type": "integer"} and types["error_message"] == {"type": ["string", "null"]} and len(types) == 8
    # A model reads all of it before its first call.
    assert len(json.dumps(list(client.tools.values()), ensure_ascii=False, separators=(",", ":")).encode()) < 12_000


def test_execute_code_has_an_open_schema(client):
    schema = client.tools["execute_code"]["inputSchema"]
    words = json.dumps(schema)
    assert not any(f'"{word}"' in words for word in ("minimum", "maximum", "pattern", "enum", "minLength"))
    assert schema["required"] == ["language", "code"] and schema.get("additionalProperties", True) is True
    assert schema["properties"]["language"]["description"].startswith("one of python, javascript, bash, ")


# --- execute_code ---

@pytest.mark.quick
def test_execute_code(client):
    good = client.good("execute_code", language="python", code="import sys\nprint(sys.stdin.read(), __file__)", stdin="in")
    assert list(good) == ["stdout", "stderr", "exit_code", "execution_time", "status", "error_message", "execution_id", "cause"]
    assert (good["stdout"], good["exit_code"], good["status"], good["error_message"]) == ("in /sandbox/code.py\n", 0, "success", None)
    for arguments, status, message in (
            ({"language": "bash", "code": "exit 3"}, "execution_error", "Code execution resulted in an error."),
            ({"language": "bash", "code": "sleep 9", "timeout": -5}, "timeout", "Execution timed out after 1 seconds."),
            ({"language": "Python", "code": "1"}, "setup_error", "Language 'Python' is not supported. Supported languages: python, "),
            ({"language": "python", "code": ""}, "setup_error", "Code must be a non-empty string"),
            ({"language": "python", "code": 7}, "setup_error", "Code must be a non-empty string"),
            ({}, "setup_error", "Language '' is not supported. "),
            ({"language": "python", "code": "1", "files": 3}, "setup_error", "Sandbox execution failed: files: "),
            ({"language": "python", "code": "print(len(b'x' * (300 << 20)))"}, "execution_error", "Code execution resulted in an error.")):
        result = client.call("execute_code", **arguments)
        assert result["isError"] and result["structuredContent"]["status"] == status, result
        assert result["structuredContent"]["error_message"].startswith(message), result
    assert client.good("execute_code", language="python", code="print('ä' * 100001)")["stdout"] == \
        "ä" * 100000 + "\n... [Output truncated due to size limits]"


def test_execute_code_has_the_operators_limits(mode, stage):
    served = Served(Atoll(mode, stage), stage.scratch(mode, "mcp-limits"), env={"SANDBOX_DEFAULT_TIMEOUT_SECONDS": "1"})
    try:
        slow = Client(served.web).call("execute_code", language="bash", code="sleep 30")["structuredContent"]
        assert slow["error_message"] == "Execution timed out after 1 seconds."
    finally:
        served.end()


def test_execute_code_keeps_state_by_name(client):
    assert client.good("execute_code", language="python", code="x = 5", session_id="one")["status"] == "success"
    assert client.good("execute_code", language="python", code="print(x)", session_id="one")["stdout"] == "5\n"
    for other in ("two", "o ne", "", 7, None):
        assert "NameError" in client.call("execute_code", language="python", code="print(x)", session_id=other)["structuredContent"]["stderr"]


def test_images_that_a_program_saves(client):
    code = f"import base64\npng = base64.b64decode('{PNG}')\nfor name in ('a.png', 'b.PNG', 'not.txt'): open(name, 'wb').write(png)\n" \
        "open('fake.png', 'w').write('text')\nopen('large.png', 'wb').write(png + bytes(3 << 20))"
    result = client.call("execute_code", language="python", code=code)
    assert [(block["mimeType"], block["data"]) for block in images(result)] == [("image/png", PNG)] * 2
    id = result["structuredContent"]["execution_id"]
    listed = client.good("list_files", execution_id=id)
    assert [file["path"] for file in listed["files"]] == ["a.png", "b.PNG", "fake.png", "large.png", "not.txt"] and listed["total"] == 5
    page = client.call("read_file", execution_id=id, path="a.png")
    assert images(page)[0]["data"] == PNG and page["structuredContent"]["binary"]
    assert client.good("read_file", execution_id=id, path="fake.png")["text"] == "1: text\n"


# --- sessions ---

@pytest.mark.quick
def test_session_by_session(client):
    made = client.good("create_session", name="mine", files={"in.csv": "a,b\n1,2\n"}, limits={"memory": "1g", "timeout": 20}, idle_timeout=60)
    assert made["language"] == "python" and made["name"] == "mine" and made["state"] == "idle" and made["idle_timeout"] == 60
    id = made["session_id"]
    run = client.good("run_in_session", session_id=id, code="n = len(open('in.csv').read())\nn + k", globals={"k": 2})
    assert run["value"] == "10" and run["session_state"] == "kept" and run["summary"].startswith("Succeeded, after ")
    assert client.good("write_file", session_id=id, path="src/a.txt", content="one\ntwo\n") == {"path": "src/a.txt", "size": 8}
    client.good("write_file", session_id=id, path="b.bin", base64="AP8=")
    assert client.good("run_in_session", session_id=id, code="open('b.bin', 'rb').read()")["value"] == "b'\\x00\\xff'"
    assert [file["path"] for file in client.good("list_files", session_id=id)["files"]] == ["b.bin", "in.csv", "src/a.txt"]
    assert client.good("read_file", session_id=id, path="src/a.txt", grep="w")["text"] == "2: two\n"
    assert client.good("read_file", session_id=id, path="b.bin")["binary"]
    assert client.good("reset_session", session_id=id)["session_id"] == id
    after = client.call("run_in_session", session_id=id, code="n")
    assert after["isError"] and after["structuredContent"]["error"]["type"] == "NameError"
    assert client.good("close_session", session_id=id) == {"session_id": id, "closed": True}
    for name, more in (("run_in_session", {"code": "1"}), ("close_session", {}), ("fork_session", {}), ("list_files", {}), ("reset_session", {}),
                       ("read_file", {"path": "a"}), ("write_file", {"path": "a", "content": ""})):
        said = client.refused(name, session_id=id, **more)
        assert id in said and "create_session" in said, said


def test_failures_say_what_to_do(client, session):
    run = client.call("run_in_session", session_id=session, code="def half(a):\n    return a / 0\nhalf(1)")
    failed = run["structuredContent"]
    assert run["isError"] and failed["status"] == "error" and failed["exit_code"] == 1
    assert failed["summary"].startswith("ZeroDivisionError: division by zero (line 2 of /sandbox/cell-1.py)") and "line 2" in failed["suggestion"]
    assert failed["error"]["line"] == 2 and "> 2 |     return a / 0" in failed["error"]["excerpt"]
    assert client.call("run_in_session", session_id=session, code="1\nhalf(2)")["structuredContent"]["error"]["excerpt"] is None
    slow = client.call("run_in_session", session_id=session, code="print('begun', flush=True)\nwhile True: pass", timeout=1)["structuredContent"]
    assert slow["status"] == "timeout" and slow["stdout"]["text"] == "begun\n" and "give a timeout of 2s" in slow["suggestion"]


@pytest.mark.modes("root")  # without cgroups an allocation fails, and the program sees it
def test_a_memory_limit_says_where_to_give_more(client, session):
    big = client.call("run_in_session", session_id=session, code="x = bytearray(900 << 20)")["structuredContent"]
    assert big["status"] == "limit" and big["session_state"] == "lost"
    assert '{"memory": "1g"}' in big["suggestion"] and "variables are lost" in big["suggestion"], big
    looked = client.good("get_execution", execution_id=big["execution_id"])
    assert looked["summary"] == big["summary"] and looked["status"] == "limit"


def test_charts_are_images(client, session):
    shown = client.call("run_in_session", session_id=session, code="import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()")
    assert base64.b64decode(images(shown)[0]["data"]).startswith(b"\x89PNG") and shown["structuredContent"]["images"] == 1
    assert images(client.call("get_execution", execution_id=shown["structuredContent"]["execution_id"])) == images(shown)
    table = client.good("run_in_session", session_id=session, code="import pandas\ndisplay(pandas.DataFrame({'a': [1, 2]}))")
    assert len(table["displayed"]) == 1 and table["displayed"][0].split() == ["a", "0", "1", "1", "2"], table
    forged = "class Forged:\n    def __init__(self, data): self.data = data\n    def _repr_png_(self): return self.data\n" \
        f"import base64\nfor data in (b'no image', base64.b64decode('{PNG}'), b'\\x89PNG\\r\\n\\x1a\\n' + bytes(3 << 20)): display(Forged(data))"
    result = client.call("run_in_session", session_id=session, code=forged)
    assert [block["data"] for block in images(result)] == ([PNG] if not result.get("isError") else []), result["structuredContent"]
    assert not result.get("isError"), result["structuredContent"]


@pytest.mark.modes("root")  # without cgroups nothing would bound a copy
def test_forks_are_apart(client, session):
    client.good("run_in_session", session_id=session, code="x = 1")
    copies = client.good("fork_session", session_id=session, count=3)["sessions"]
    assert len(copies) == 3 and all(copy["parent"] == session for copy in copies)
    for i, copy in enumerate(copies):
        assert client.good("run_in_session", session_id=copy["session_id"], code=f"x += {i}\nx")["value"] == str(1 + i)
        client.good("close_session", session_id=copy["session_id"])
    assert client.good("run_in_session", session_id=session, code="x")["value"] == "1"


@pytest.mark.modes("root")
def test_copies_that_are_ready_early(client, session):
    """A call is a fiber, which waits while each copy's plan is encoded: copies announce themselves before the last sandbox is begun."""
    for _ in range(6):
        for copy in client.good("fork_session", session_id=session, count=4)["sessions"]:
            client.good("close_session", session_id=copy["session_id"])


def test_arguments_are_checked(client, session):
    for name, arguments, words in (
            ("run_in_session", {"session_id": session}, "code: it is missing; give code to run"),
            ("run_in_session", {"session_id": session, "code": 1}, "code: give a text"),
            ("run_in_session", {"session_id": session, "code": "1", "timeuot": 3}, "timeuot: there is no such key; did you mean timeout?"),
            ("run_in_session", {"session_id": session, "code": "1", "timeout": 0}, "timeout: give a number from 1 to 86400"),
            ("run_in_session", {"session_id": session, "code": "1", "timeout": 80000}, "limits.timeout: 80000 is above the ceiling"),
            ("create_session", {"language": "cobol"}, "cobol"),
            ("create_session", {"limits": {"memory": "1t"}}, "limits.memory: '1t' is above the ceiling"),
            ("fork_session", {"session_id": session, "count": 33}, "count: give a whole number from 1 to 32"),
            ("write_file", {"session_id": session, "path": "a"}, "content: give content (a text) or base64"),
            ("write_file", {"session_id": session, "path": "a", "base64": "!"}, "base64: it is not base64"),
            ("write_file", {"session_id": session, "path": "../a", "content": ""}, "path"),
            ("read_file", {"path": "a"}, "session_id: give session_id or execution_id, one of them"),
            ("read_output", {"execution_id": "ex_no"}, "There is no execution ex_no. "),
            ("read_output", {"execution_id": "ex_no", "stream": "out"}, "stream: give one of stdout|stderr"),
            ("get_execution", {"execution_id": session}, "search_history"),
            ("search_history", {"since": "yesterday"}, "since: give a time like"),
            ("search_history", {"status": "bad"}, "status: give one of queued|running|success"),
            ("list_languages", {"all": True}, "all: there is no such key")):
        said = client.refused(name, **arguments)
        assert words in said, (name, arguments, said)
    assert client.good("run_in_session", session_id=session, code="1", timeout=None, globals=None)["value"] == "1"
    assert client.error("tools/call", {"name": "nope", "arguments": {}})["code"] == -32602


# --- output ---

def test_a_log_of_50_megabytes(client, log):
    head = client.good("read_output", execution_id=log)
    assert head["text"].startswith("1: 00000001 a line") and head["total_lines"] == 760000 and head["complete"] and head["next_line"] > 50
    more = client.good("read_output", execution_id=log, start_line=head["next_line"], max_lines=2)
    assert more["first_line"] == head["next_line"] and more["last_line"] == head["next_line"] + 1
    assert client.good("read_output", execution_id=log, start_line=-1)["text"].startswith("760000: 00760000 a line")
    found = client.good("read_output", execution_id=log, grep="error at \\d+$", ignore_case=True, context=1)
    assert found["matches"] == 3 and found["next_line"] is None
    lines = found["text"].split("\n")
    assert lines[1] == "250000: ERROR at 250000" and lines[0].startswith("249999- ") and lines[3] == "--" and len(lines) == 12
    many = client.good("read_output", execution_id=log, grep="99 a line", max_lines=5)
    assert many["matches"] == 7600 and many["text"].count("\n") == 5 and many["next_line"] == 599
    assert client.good("read_output", execution_id=log, grep="no such words")["note"] == "No line matches."
    assert client.good("read_output", execution_id=log, stream="stderr")["size"] == 0
    tail = client.good("read_output", execution_id=log, offset=-20)
    assert tail["text"] == "ix bytes altogether\n" and tail["next_offset"] is None
    assert "backslash" in client.refused("read_output", execution_id=log, grep="a(")


def test_a_hostile_pattern_holds_up_no_other_call(client, log, served):
    asked = threading.Thread(target=lambda: Client(served.web).call("read_output", execution_id=log, grep="(\\w+\\s?)+[^\\w\\s]{9}"))
    asked.start()
    slowest = 0
    for _ in range(20):
        begin = time.monotonic()
        assert served.web.get("/healthz").status == 200
        slowest = max(slowest, time.monotonic() - begin)
    asked.join(30)
    assert not asked.is_alive() and slowest < 1, slowest


def test_output_is_shortened(client, session):
    run = client.good("run_in_session", session_id=session, code="for i in range(1, 100001): print('line', i)")
    text = run["stdout"]["text"]
    assert text.startswith("line 1\nline 2\n") and text.endswith("line 99999\nline 100000\n") and run["stdout"]["truncated"]
    where = text[text.index("[…"):text.index("…]")]
    start = int(where.split("start_line ")[1])
    assert run["execution_id"] in where and f"line {start - 1}\n" in text and f"line {start}\n" not in text
    assert client.good("read_output", execution_id=run["execution_id"], start_line=start, max_lines=1)["text"] == f"{start}: line {start}\n"
    for unit in ('"', "\\", "\x01", "é", "\n", "a b ", "\U0001f600"):
        code = f"import sys\ns = {unit!r} * 400000\nprint(s)\nprint(s, file=sys.stderr)\ns"
        run = client.good("run_in_session", session_id=session, code=code)  # its size is checked
        assert run["stdout"]["truncated"]
        client.good("read_output", execution_id=run["execution_id"])
        client.good("read_output", execution_id=run["execution_id"], offset=0)


# --- while it runs ---

def test_progress_shows_the_newest_lines(client, session):
    code = "import time\nfor i in range(30): print('step', i, flush=True); time.sleep(0.05)"
    arguments = {"session_id": session, "code": code}
    before, last = client.whole("tools/call", {"name": "run_in_session", "arguments": arguments, "_meta": {"progressToken": "t"}})
    told = [message["params"] for message in before if message["method"] == "notifications/progress"]
    assert len(told) >= 2 and all(one["progressToken"] == "t" for one in told)
    assert [one["progress"] for one in told] == sorted({one["progress"] for one in told})
    assert all(one["message"].startswith("step ") and one["message"].count("\n") <= 2 for one in told), told
    assert client.check("run_in_session", last["result"])["structuredContent"]["status"] == "success"


def wait_for(found):
    """The first answer of a function that is not empty."""
    end = time.monotonic() + 30
    while not (answer := found()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return answer


def test_a_cancelled_call_ends_its_execution(client, session, served):
    other = Client(served.web)
    arguments = {"session_id": session, "code": "import time\ntime.sleep(60)", "timeout": 60}
    asked = threading.Thread(target=lambda: other.send("tools/call", {"name": "run_in_session", "arguments": arguments}, 77))
    asked.start()
    id = wait_for(lambda: client.good("search_history", status="running")["executions"])[0]["execution_id"]
    other.send("notifications/cancelled", {"requestId": 77}, None)
    wait_for(lambda: client.good("get_execution", execution_id=id)["status"] != "running")
    assert client.good("get_execution", execution_id=id)["status"] == "cancelled"
    asked.join(30)
    assert not asked.is_alive()
    assert client.good("run_in_session", session_id=session, code="1")["value"] == "1"


def modern(web, method, name, /, **params):
    """The result of a request of the stateless era, by a client that knows tasks."""
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}}
    answer = web.post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}},
                      headers={**HEADERS, "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": name})
    assert "result" in answer.json(), answer
    return answer.json()["result"]


@pytest.mark.parametrize("name, arguments, expected", [
    ("run_in_session", {"code": "import time\nprint('begun')\ntime.sleep(2.3)\n6 * 7"}, {"value": "42", "status": "success"}),
    ("execute_code", {"language": "bash", "code": "echo begun; sleep 60", "timeout": 3},
     {"stdout": "begun\n", "status": "timeout", "error_message": "Execution timed out after 3 seconds."})])
def test_long_runs_are_tasks(client, session, served, name, arguments, expected):
    if name == "run_in_session":
        arguments = {"session_id": session, **arguments}
    task = modern(served.web, "tools/call", name, name=name, arguments=arguments)
    assert task["resultType"] == "task" and task["status"] == "working", task
    id = task["taskId"]
    done = wait_for(lambda: (now := modern(served.web, "tasks/get", id, taskId=id))["status"] != "working" and now)
    assert done["status"] == "completed", done
    made = client.check(name, done["result"])
    assert {key: made["structuredContent"][key] for key in expected} == expected and bool(made.get("isError")) == (name == "execute_code")


# --- history, host ---

def test_history(client, session):
    client.good("run_in_session", session_id=session, code="unlikely_word = 1")
    client.call("execute_code", language="ruby", code="puts 'unlikely_word'")
    found = client.good("search_history", text="unlikely_word")
    assert [one["language"] for one in found["executions"]] == ["ruby", "python"] and found["next"] is None
    assert found["executions"][0]["code"] == "puts 'unlikely_word'" and found["executions"][0]["status"] == "success"
    first = client.good("search_history", text="unlikely_word", limit=1)
    rest = client.good("search_history", text="unlikely_word", limit=1, cursor=first["next"])
    assert rest["executions"][0]["language"] == "python"
    assert client.good("search_history", text="unlikely_word", language="c")["executions"] == []
    many = client.good("search_history", limit=20)  # its size is checked
    assert len(many["executions"]) == 20 or many["next"] is None


def test_languages_and_policies(client):
    languages = {one["name"]: one for one in client.good("list_languages")["languages"]}
    assert languages["python"]["sessions"] and "numpy" in languages["python"]["libraries"] and not languages["c"]["sessions"]
    allowed = client.good("explain_policy", limits={"memory": "1g"})
    rules = {rule["field"]: rule for rule in allowed["rules"]}
    assert allowed["allowed"] and rules["limits.memory"] == {"field": "limits.memory", "value": 1 << 30, "rule": "request"}
    assert "default" in allowed["policies"] and "strict" in allowed["policies"]
    refused = client.good("explain_policy", limits={"memory": "1t"})
    assert not refused["allowed"] and refused["field"] == "limits.memory" and "ceiling" in refused["refusal"]
    assert not client.good("explain_policy", policy="nope")["allowed"]


# --- resources, prompts, completion ---

def test_resources(client, session):
    run = client.good("execute_code", language="bash", code="echo out; echo err >&2; printf '\\377\\376' > raw; mkdir d; echo x > 'd/a b.txt'")
    base = f"atoll://executions/{run['execution_id']}"

    def read(uri):
        content, = client.ask("resources/read", {"uri": uri})["contents"]
        assert content["uri"] == uri
        return content

    assert json.loads(read(base)["text"])["stdout"] == "out\n" and read(base)["mimeType"] == "application/json"
    assert read(base + "/stdout")["text"] == "out\n" and read(base + "/stderr")["text"] == "err\n"
    assert read(base + "/report")["text"].startswith("# Debug report") and read(base + "/files/d/a%20b.txt")["text"] == "x\n"
    assert base64.b64decode(read(base + "/files/raw")["blob"]) == b"\xff\xfe"
    client.good("write_file", session_id=session, path="a.txt", content="héé")
    assert read(f"atoll://sessions/{session}/files/a.txt")["text"] == "héé"
    assert json.loads(read(f"atoll://sessions/{session}")["text"])["id"] == session
    for uri in (base + "x", base + "/files/none", base + "/files/../../etc/passwd", "atoll://sessions/se_no", base + "/files/%ff", "file:///etc/passwd"):
        assert client.error("resources/read", {"uri": uri})["code"] == -32002, uri
    templates = [row["uriTemplate"] for row in client.ask("resources/templates/list")["resourceTemplates"]]
    assert "atoll://executions/{id}/stdout" in templates and "atoll://sessions/{id}/files/{+path}" in templates


def test_large_resources_name_the_tool(client, log):
    assert "read_output" in client.error("resources/read", {"uri": f"atoll://executions/{log}/stdout"})["message"]


def test_pages_of_resources(client):
    for i in range(55):
        client.good("execute_code", language="bash", code=f"echo {i}")
    seen, cursor = [], None
    while True:
        page = client.ask("resources/list", {"cursor": cursor} if cursor else {})
        assert all(row["name"] and row["description"] and row["mimeType"] for row in page["resources"])
        seen += [row["uri"] for row in page["resources"]]
        cursor = page.get("nextCursor")
        if not cursor:
            break
    assert len(seen) == len(set(seen)) > 55
    assert client.error("resources/list", {"cursor": "nonsense"})["code"] == -32602


def test_prompts_and_completion(client, session):
    assert [row["name"] for row in client.ask("prompts/list")["prompts"]] == ["explain_failure", "run_tests", "plot_file", "try_fixes"]
    failed = client.call("execute_code", language="python", code="1 / 0")["structuredContent"]["execution_id"]
    said, report = client.ask("prompts/get", {"name": "explain_failure", "arguments": {"execution_id": failed}})["messages"]
    assert failed in said["content"]["text"] and "ZeroDivisionError" in report["content"]["resource"]["text"]
    assert client.error("prompts/get", {"name": "explain_failure", "arguments": {"execution_id": "ex_no"}})["code"] == -32602
    tests = client.ask("prompts/get", {"name": "run_tests", "arguments": {"language": "python", "code": "a = 1", "tests": "```\nassert a"}})
    assert "```python\na = 1\n```\n" in tests["messages"][0]["content"]["text"] and "````python\n```\nassert a\n````" in tests["messages"][0]["content"]["text"]
    plot = client.ask("prompts/get", {"name": "plot_file", "arguments": {"path": "data.csv", "session_id": session}})
    assert "data.csv of the session " + session in plot["messages"][0]["content"]["text"]
    fixes = client.ask("prompts/get", {"name": "try_fixes", "arguments": {"session_id": session, "goal": "it must not crash"}})
    assert "fork_session" in fixes["messages"][0]["content"]["text"] and "it must not crash" in fixes["messages"][0]["content"]["text"]

    def complete(ref, name, value):
        return client.ask("completion/complete", {"ref": ref, "argument": {"name": name, "value": value}})["completion"]["values"]

    assert complete({"type": "ref/prompt", "name": "run_tests"}, "language", "ja") == ["javascript", "java"]
    assert failed in complete({"type": "ref/prompt", "name": "explain_failure"}, "execution_id", failed[:8])
    assert complete({"type": "ref/resource", "uri": "atoll://sessions/{id}"}, "id", session[:9]) == [session]
    assert complete({"type": "ref/resource", "uri": "atoll://sessions/{id}/files/{+path}"}, "path", "a") == []
