# SPDX-License-Identifier: Apache-2.0
"""/openapi.json: what it says of every operation, and that the daemon does as it says. Each operation is called by its operationId with the
document's own examples; contract.py holds every answer and event against the document, here and in all other tests of the daemon."""
import io
import json
import re
import tarfile

import pytest

import contract
from program import MODES
from web import WebSocket, problem, sse

# The front is the same program for both users.
pytestmark = pytest.mark.modes(MODES[0])
quick = pytest.mark.quick
# What may hold any JSON: values of programs, what other products define, contents of policy files.
FREE = {"InvokeRequest.params", "RichOutput.data", "RichOutput.metadata", "Result.value", "HostCallRequest.args", "HostCallRequest.kwargs",
        "Pair.a", "Pair.b", "Policy.policy", "SessionRequest.rules", "TurnRequest.globals", "CallAnswer.result", "McpMessage.params",
        "McpMessage.result", "McpMessage.error"}


@pytest.fixture
def document(web):
    return web.get("/openapi.json").json()


def operations(document):
    return {operation["operationId"]: (method.upper(), path, operation)
            for path, item in document["paths"].items() for method, operation in item.items()}


class Caller:
    """Calls operations by name, as a generated client does."""

    def __init__(self, web, document):
        self.web, self.schemas = web, document["components"]["schemas"]
        self.operations, self.called = operations(document), set()

    def body(self, operation):
        """Its content type and the document's example; a body of bytes has none."""
        for kind, content in operation.get("requestBody", {}).get("content", {}).items():
            if kind == "application/json":
                name = content["schema"]["$ref"].rpartition("/")[2]
                return kind, self.schemas[name]["examples"][0]
        return None, None

    def __call__(self, name, *arguments, body=None, query="", headers=(), status=None):
        """arguments: of the path, in order. The answer of a success, or of that status."""
        method, path, operation = self.operations[name]
        names = re.findall(r"{(\w+)}", path)
        assert len(names) == len(arguments) and [p["name"] for p in operation["parameters"] if p["in"] == "path"] == names
        for key, value in zip(names, arguments):
            path = path.replace("{%s}" % key, value)
        kind, example = self.body(operation)
        if body is None:
            body = example
        if kind and not isinstance(body, bytes):
            contract.learned.check(operation["requestBody"]["content"][kind]["schema"], body)
        answer = self.web.ask(method, path + query, body, headers)
        assert answer.status == status or (status is None and answer.status < 300), (name, answer)
        self.called.add(name)
        return answer


@quick
def test_every_operation_is_described(document):
    names = [name for item in document["paths"].values() for name in (operation.get("operationId") for operation in item.values())]
    assert len(names) == len(set(names)) and all(re.fullmatch(r"[a-z]+([A-Z][a-z]+)*", name or "") for name in names), names
    tags = {tag["name"] for tag in document["tags"]}
    for name, (method, path, operation) in operations(document).items():
        assert operation["summary"] and set(operation["tags"]) <= tags, name
        responses = operation["responses"]
        assert "default" in responses and any(int(status) < 300 for status in responses if status != "default"), name
        content = [kind for status, response in responses.items() if status == "200" for kind in response.get("content", {})]
        # A client's type of an answer is of one kind: events or JSON.
        assert path == "/mcp" or not ("application/json" in content and set(content) & set(contract.EVENTS)), (name, content)


@quick
def test_every_type_is_told(document):
    """No array, map or object of which nothing is said, but where a program or another product decides."""
    def untold(node):
        if node.get("type") == "array":
            return untold(node["items"])
        if node.get("type") == "object" and "properties" not in node:
            return untold(node["additionalProperties"])
        return not set(node) - {"description"}

    schemas = document["components"]["schemas"]
    free = {f"{name}.{key}" for name, schema in schemas.items() for key, node in schema.get("properties", {}).items() if untold(node)}
    assert free == FREE, free ^ FREE
    assert all("default" not in node for schema in schemas.values() for node in schema.get("properties", {}).values())
    for name in ("ExecuteRequest", "SessionRequest", "ForkRequest"):
        assert "required" not in schemas[name], name


@quick
def test_examples_have_their_shapes(web, document):
    schemas = document["components"]["schemas"]
    shown = {name for name, schema in schemas.items() if "examples" in schema}
    for name in shown:
        contract.learned.check({"$ref": contract.SHAPES + name}, schemas[name]["examples"][0])
    # The error is the one that the daemon gives.
    answer = web.post("/v1/execute", {"language": "python", "code": "", "limits": {"timeout": -1}})
    assert answer.json() == schemas["Problem"]["examples"][0]
    sent = set(re.findall(r'"\$ref": "#/components/schemas/(\w+)"',
                          json.dumps([operation.get("requestBody") for _, _, operation in operations(document).values()])))
    assert sent <= shown, sent - shown


@quick
def test_the_checks_can_fail(document):
    """contract.py finds a missing key, an unknown one, a wrong type, a status and a content type that are not listed."""
    promised = contract.Contract(document)
    path, kind = "/v1/executions/ex_a/files", "application/json"
    fits = {"id": "ex_a", "files": [{"path": "a", "size": 1, "sha256": "0"}], "truncated": False}
    promised.answer("GET", path, 200, kind, json.dumps(fits).encode())
    wrong = [{**fits, "more": 1}, {**fits, "files": [{"path": "a", "size": "1", "sha256": "0"}]}, {"id": "ex_a", "files": []}]
    for body in wrong:
        with pytest.raises(AssertionError):
            promised.answer("GET", path, 200, kind, json.dumps(body).encode())
    for status, other in ((200, "text/html"), (203, kind)):
        with pytest.raises(AssertionError):
            promised.answer("GET", path, status, other, json.dumps(fits).encode())
    with pytest.raises(AssertionError):
        promised.event({"event": "stdout", "seq": 1, "time": "2026-11-15T10:00:00Z", "data": "", "offset": "0"})


@quick
@pytest.mark.parametrize("request_", [
    {"code": {"base64": "cHJpbnQoNyk="}, "language": "python"},
    {"code": "print(input())", "language": "python", "stdin": {"base64": "Nw=="}},
    {"language": "python", "stages": [{"code": "print(input())", "stdin": {"base64": "Nw=="}}]},
    {"language": "python", "code": "class C:\n def m(self, a): return a", "invoke": {"class": "C", "method": "m", "params": {"a": [7]}}},
    {"language": "python", "code": "print(7)", "tests": [{"stdin": {"base64": "Nw=="}, "expected": {"base64": "Nw=="}}]},
    {"language": "python", "code": "print(7)", "tests": [{"expected": "7", "checker": {"language": "bash", "code": "grep -q 7 $2", "files": {"a": ""}}}]},
    {"language": "python", "code": "print(7)", "limits": {"timeout": "5s", "memory": 67108864, "cpu_time": None}},
])
def test_requests_have_their_shapes(web, request_):
    """contract.py holds the body against the document, too."""
    assert web.post("/v1/execute", request_).json()["status"] == "success"


def test_servers(web, served):
    """The address that was asked; over the unix socket the document says that it is relative."""
    assert web.get("/openapi.json").json()["servers"] == [{"url": f"http://{web.host}:{web.port}"}]
    assert web.get("/openapi.json", headers={"Host": f"localhost:{web.port}"}).json()["servers"] == [{"url": f"http://localhost:{web.port}"}]
    assert web.operator.get("/openapi.json").json()["servers"] == [{"url": "/"}]


def archive():
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        info = tarfile.TarInfo("packed.txt")
        info.size = 2
        tar.addfile(info, io.BytesIO(b"hi"))
    return packed.getvalue()


def call_executions(call):
    result = call("execute").json()
    assert (result["stdout"], result["status"]) == ("42\n", "success"), result
    wrote = call("execute", body={"language": "bash", "code": "echo x >a.txt; exit 3", "labels": {"a": "b"}}).json()["id"]
    job = call("createExecution").json()["id"]
    assert call("getExecution", job, query="?wait=30").json()["stdout"] == "42\n"
    call("replayExecution", job)
    [accepted] = call("createExecutions").json()["executions"]
    many = call("listExecutions", query=f"?ids={wrote},{accepted['id']},ex_none").json()["executions"]
    assert [one["id"] for one in many] == [wrote, accepted["id"], "ex_none"] and many[2]["problem"]["code"] == "not_found"
    assert call("listExecutions", query="?status=error&label=a%3Db").json()["executions"][0]["id"] == wrote
    for name in ("getExecutionRequest", "getExecutionAnalysis", "getExecutionDebugReport", "listExecutionFiles"):
        call(name, wrote)
    assert call("getExecutionDebugReport", wrote, query="?format=markdown").headers["content-type"].startswith("text/markdown")
    assert call("listExecutionFiles", wrote, query="?format=tar").headers["content-type"] == "application/x-tar"
    assert call("getExecutionFile", wrote, "a.txt").body == b"x\n"
    assert call("getExecutionStdout", job, headers={"Range": "bytes=0-0"}, status=206).body == b"4"
    call("getExecutionStderr", job)
    assert call("getExecutionValue", job).body == b"null"
    call("compareExecutions", job, wrote)
    call("attachToExecution", job, status=426)
    call("deleteExecution", wrote)
    assert problem(call("getExecution", wrote, status=404), 404)


def call_streams(call, session):
    body = {"language": "bash", "code": "echo one; echo two >&2; sleep 1.1"}
    for kind in contract.EVENTS:
        lines = call("streamExecution", body=body, headers={"Accept": kind})
        assert lines.headers["content-type"] == kind, lines
        events = [json.loads(text) for text in contract.values(kind, lines.body)]
        assert [event["event"] for event in events][0::len(events) - 1] == ["start", "result"]
        assert {"start", "stdout", "stderr", "usage", "stage", "result"} == {event["event"] for event in events}, events
    id = events[-1]["data"]["id"]
    assert call("streamExecutionEvents", id).headers["content-type"] == "text/event-stream"
    call("streamExecutionEvents", id, query="?after=999999999", status=200)
    rich = call("streamInSession", session, body={"code": "from IPython.display import HTML, display\ndisplay(HTML('<b>'))"})
    kinds = {json.loads(text)["event"] for text in contract.values("text/event-stream", rich.body)}
    assert {"output", "result"} <= kinds, kinds


def call_sessions(call):
    session = call("createSession", body={"language": "python", "host_functions": ["f"]}).json()["id"]
    assert call("executeInSession", session).json()["value"] == 42
    call("getSession", session)
    assert session in [one["id"] for one in call("listSessions").json()["sessions"]]
    call("writeSessionFile", session, "a.txt", body=b"abc")
    call("unpackIntoSession", session, body=archive(), query="?format=tar")
    assert {one["path"] for one in call("listSessionFiles", session).json()["files"]} == {"a.txt", "packed.txt"}
    assert call("readSessionFile", session, "a.txt").body == b"abc"
    call("deleteSessionFile", session, "a.txt")
    call("getSessionLogs", session)
    call("attachToSession", session, status=426)
    with call.web.stream("POST", f"/v1/sessions/{session}/execute:stream", {"code": "f(1, by=2)"}) as response:
        for _, name, event in sse(response):
            if name == "host_call":
                call("answerHostCall", session, event["data"]["call_id"])
        assert event["data"]["value"] == 42 and event["data"]["host_calls"][0]["name"] == "f", event
    call_streams(call, session)
    call("interruptSession", session)
    # Rootless, a session may not be one that can be copied.
    copies = call("forkSession", session, status=None if MODES[0] == "root" else 409)
    assert copies.status == 409 or len(copies.json()["sessions"]) == 2
    call("resetSession", session)
    socket = WebSocket(call.web, f"/v1/sessions/{session}/attach")
    socket.send({"type": "execute", "code": "print(1)"})
    assert next(frame for frame in socket.events() if frame.get("event") == "result")["data"]["stdout"] == "1\n"
    socket.close()
    call("deleteSession", session)


def call_others(call):
    for name in ("getRoot", "getHealth", "getReadiness", "getOpenapi", "listLanguages", "listPolicies", "listLimits", "getStats", "getDoctor"):
        call(name)
    call("getMetrics", status=403)
    call("repairHistory", status=403)
    assert call("runGeneratedCode").json()["stdout"] == "42\n"
    call("runGeneratedCode", body={"timeout": 1}, status=400)
    assert call("executeTool").json()["stdout"] == call("callTool").json()["stdout"] == "42\n"
    for name in ("getResourceMetadata", "getMcpResourceMetadata"):
        call(name, status=404)


def call_mcp(call):
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "openapi", "version": "1"}}}
    accept = {"Accept": "application/json, text/event-stream"}
    answer = call("sendMcpMessage", body=hello, headers=accept)
    headers = {**accept, "MCP-Session-Id": answer.headers["mcp-session-id"]}
    assert call("sendMcpMessage", headers=headers).json()["result"] == {}
    with call.web.stream("GET", "/mcp", headers=headers, accept="text/event-stream"):
        call.called.add("streamMcpMessages")
    call("endMcpSession", headers=headers)


def test_every_operation_does_as_described(web, document):
    call = Caller(web, document)
    call_others(call)
    call_mcp(call)
    call_executions(call)
    call_sessions(call)
    call("countCleanUp")
    call("cleanUp")
    call("speakRunner", status=426)  # test_runner_protocol.py speaks it
    assert call.called == set(call.operations), set(call.operations) ^ call.called
