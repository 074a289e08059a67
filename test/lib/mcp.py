# SPDX-License-Identifier: Apache-2.0
"""A client of the Model Context Protocol for tests, without any library: both eras, over HTTP and over `atoll mcp`.

A *door* sends requests and files what comes back: answers by id, notifications in `notes`, requests of the server in `asked`. Each
result of a tool is held against the tool's own outputSchema, strictly.
"""
import itertools
import json
import subprocess
import threading
import time

import jsonschema

from web import Answer

MODERN = "2026-07-28"
LEGACY = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
META = "io.modelcontextprotocol/"
CLIENT = {"name": "atoll-test", "version": "1"}
BOTH = "application/json, text/event-stream"


class Refused(Exception):
    """An error of the protocol."""

    def __init__(self, error, status=None):
        super().__init__(f"{status}: {error}")
        self.code, self.message, self.data, self.status = error["code"], error["message"], error.get("data"), status


def validator(schema):
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def is_well_formed(message):
    """Whether it is one JSON-RPC 2.0 message and nothing else."""
    kinds = {"method" in message, }
    has_end = ("result" in message) + ("error" in message)
    return message.get("jsonrpc") == "2.0" and kinds == {has_end == 0} and has_end < 2 and \
        set(message) <= {"jsonrpc", "id", "method", "params", "result", "error"}


class Door:
    """What both doors share. version: MODERN, or a legacy revision."""

    def __init__(self, version, capabilities=None):
        self.version, self.capabilities = version, capabilities or {}
        self.modern = version == MODERN
        self.numbers = itertools.count(1)
        self.changed = threading.Condition()
        self.answers, self.notes, self.asked = {}, [], []
        self.tools = None

    # -- words --

    def message(self, method, params=None, id=None, progress=None, meta=None, capabilities=None):
        params, own = dict(params or {}), dict(meta or {})
        if self.modern:
            own = {META + "protocolVersion": self.version, META + "clientInfo": CLIENT,
                   META + "clientCapabilities": self.capabilities if capabilities is None else capabilities, **own}
        if progress is not None:
            own["progressToken"] = progress
        if own:
            params["_meta"] = {**own, **params.get("_meta", {})}
        return {"jsonrpc": "2.0", **({} if id is None else {"id": id}), "method": method, **({"params": params} if params else {})}

    def file(self, message, status=None):
        assert is_well_formed(message), message
        with self.changed:
            if "method" not in message:
                self.answers[message.get("id")] = (message, status)
            elif "id" in message:
                self.asked.append(message)
            else:
                self.notes.append(message)
            self.changed.notify_all()

    def until(self, condition, timeout=60, what="what was waited for"):
        """The first thing that condition() finds in what has come."""
        end = time.monotonic() + timeout
        with self.changed:
            while not (found := condition()):
                left = end - time.monotonic()
                assert left > 0, f"no {what}: {self.notes[-5:]} {self.answers}"
                self.changed.wait(min(left, 0.5))
            return found

    def note(self, method, timeout=60, **fields):
        """The first notification of this method and these params."""
        return self.until(lambda: next((n for n in self.notes if n["method"] == method and
                                        all(n["params"].get(k) == v for k, v in fields.items())), None), timeout, method)

    def result(self, id, timeout=60):
        message, status = self.until(lambda: self.answers.pop(id, None), timeout, f"answer to {id}")
        if "error" in message:
            raise Refused(message["error"], status)
        result = message["result"]
        if self.modern:
            assert result["resultType"] in ("complete", "input_required", "task"), result
        return result

    # -- requests --

    def request(self, method, params=None, timeout=60, **more):
        return self.result(self.start(method, params, **more), timeout)

    def connect(self):
        if self.modern:
            return
        self.server = self.request("initialize", {"protocolVersion": self.version, "capabilities": self.capabilities, "clientInfo": CLIENT})
        assert self.server["protocolVersion"] == self.version, self.server
        self.notify("notifications/initialized")

    def list(self, what, key=None):
        """All pages."""
        rows, cursor = [], {}
        while True:
            page = self.request(f"{what}/list", cursor)
            rows += page[key or what]
            if "nextCursor" not in page:
                return rows
            cursor = {"cursor": page["nextCursor"]}

    def tool(self, name):
        if self.tools is None:
            self.tools = {tool["name"]: tool for tool in self.list("tools")}
        return self.tools[name]

    def check(self, name, result):
        """The result against the tool's schema; the same JSON stands in a text block."""
        schema = self.tool(name).get("outputSchema")
        assert isinstance(result["content"], list) and result["content"], result
        if schema and not result.get("isError"):
            assert "structuredContent" in result, result
        if "structuredContent" in result:
            assert schema, f"{name} has no outputSchema"
            validator(schema).validate(result["structuredContent"])
        return result

    def call(self, name, timeout=60, progress=None, **arguments):
        """The result of a tool, with all that it says about errors."""
        return self.check(name, self.request("tools/call", {"name": name, "arguments": arguments}, timeout, progress=progress))

    def do(self, name, timeout=60, progress=None, **arguments):
        """structuredContent of a call that must succeed."""
        result = self.call(name, timeout, progress, **arguments)
        assert not result.get("isError"), (name, arguments, result)
        return result["structuredContent"]


def text_of(result):
    return "".join(block["text"] for block in result["content"] if block["type"] == "text")


def images_of(result):
    return [block for block in result["content"] if block["type"] == "image"]


def model_bytes(result):
    """What a client puts before its model: the text blocks, or the structured content; images are not text."""
    structured = json.dumps(result["structuredContent"], ensure_ascii=False) if "structuredContent" in result else ""
    return max(len(text_of(result).encode()), len(structured.encode()))


class HttpDoor(Door):
    """POST /mcp. Requests that are waited for share a connection; others have one of their own."""

    def __init__(self, web, version=MODERN, capabilities=None, path="/mcp", connect=True):
        super().__init__(version, capabilities)
        self.web, self.path, self.session = web, path, None
        self.open = {}
        self.keep = None
        if connect:
            self.connect()

    def headers(self, message):
        headers = {"Accept": BOTH, "Content-Type": "application/json"}
        if self.modern:
            headers["MCP-Protocol-Version"] = self.version
            headers["Mcp-Method"] = message["method"]
            params = message.get("params", {})
            name = params.get("uri" if message["method"] == "resources/read" else "taskId" if message["method"].startswith("tasks/") else "name")
            if name is not None and message["method"] in ("tools/call", "resources/read", "prompts/get") or message["method"].startswith("tasks/"):
                headers["Mcp-Name"] = str(name)
        elif message.get("method") != "initialize":
            headers["MCP-Protocol-Version"] = self.version
            if self.session:
                headers["Mcp-Session-Id"] = self.session
        return headers

    def post(self, message, headers=None, keep=None):
        """The whole answer, as it is on the wire. headers: further ones; None removes one."""
        all = {**self.headers(message), **(headers or {})}
        return self.web.ask("POST", self.path, message if isinstance(message, bytes) else json.dumps(message).encode(),
                            headers={k: v for k, v in all.items() if v is not None}, keep=keep)

    def read(self, connection, response):
        """Files the messages of an answer as they come."""
        kind = response.getheader("Content-Type", "")
        self.session = response.getheader("Mcp-Session-Id") or self.session
        if kind.startswith("text/event-stream"):
            for _, _, data in events(response):
                if data:
                    self.file(json.loads(data), response.status)
        elif kind.startswith("application/json"):
            self.file(json.loads(response.read()), response.status)
        else:
            body = response.read()
            assert response.status == 202 and body == b"", Answer(response.status, response.getheaders(), body)

    def request(self, method, params=None, timeout=60, **more):
        id = next(self.numbers)
        message = self.message(method, params, id, **more)
        self.keep = self.keep or self.web.connect(timeout=90)
        self.keep.timeout = timeout
        self.read(self.keep, self.web.begin(self.keep, "POST", self.path, json.dumps(message).encode(), self.headers(message)))
        return self.result(id, 5)

    def start(self, method, params=None, **more):
        """Without waiting for the end; the id."""
        id = next(self.numbers)
        message = self.message(method, params, id, **more)
        connection = self.web.connect(timeout=120)
        self.open[id] = connection

        def run():
            try:
                self.read(connection, self.web.begin(connection, "POST", self.path, json.dumps(message).encode(), self.headers(message)))
            except (OSError, ValueError, AttributeError):  # the test has closed it
                pass
            finally:
                connection.close()

        threading.Thread(target=run, daemon=True).start()
        return id

    def hang_up(self, id):
        """Closes the connection that the request came by."""
        connection = self.open.pop(id)
        connection.sock.shutdown(2)

    def notify(self, method, params=None):
        message = self.message(method, params)
        answer = self.post(message)
        assert answer.status == 202 and answer.body == b"", answer

    def close(self):
        if self.session:
            assert self.web.ask("DELETE", self.path, headers={"Mcp-Session-Id": self.session}).status in (200, 202, 204)
        if self.keep:
            self.keep.close()


def events(response):
    """(id, retry, data) of a stream, comments left out."""
    id, retry, data, seen = None, None, [], False
    for raw in response:
        line = raw.decode().rstrip("\r\n")
        if line == "":
            if seen:
                yield id, retry, "\n".join(data)
            retry, data, seen = None, [], False
        elif not line.startswith(":"):
            key, _, value = line.partition(":")
            value = value.removeprefix(" ")
            seen = True
            if key == "id":
                id = value
            elif key == "retry":
                retry = int(value)
            elif key == "data":
                data.append(value)


class StdioDoor(Door):
    """`atoll mcp`: a line a message. All that it prints is kept in `lines`."""

    def __init__(self, atoll, version=MODERN, capabilities=None, words=("mcp",), env=None, connect=True):
        super().__init__(version, capabilities)
        self.popen = atoll.popen(list(words), env=env)
        self.lines, self.err = [], []
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        self.errors = threading.Thread(target=lambda: self.err.extend(self.popen.stderr), daemon=True)
        self.errors.start()
        if connect:
            self.connect()

    def read(self):
        for line in self.popen.stdout:
            self.lines.append(line)
            self.file(json.loads(line))

    def until(self, condition, timeout=60, what="what was waited for"):
        def either():
            assert self.popen.poll() is None or self.reader.is_alive() or condition(), \
                f"atoll mcp has ended with {self.popen.returncode}: {self.err}"
            return condition()
        return super().until(either, timeout, what)

    def send(self, message):
        data = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.popen.stdin.write(data + b"\n")
        self.popen.stdin.flush()

    def start(self, method, params=None, **more):
        id = next(self.numbers)
        self.send(self.message(method, params, id, **more))
        return id

    def notify(self, method, params=None):
        self.send(self.message(method, params))

    def close(self, timeout=20):
        """End of input; the exit code."""
        if not self.popen.stdin.closed:
            self.popen.stdin.close()
        try:
            code = self.popen.wait(timeout)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()
            raise
        self.reader.join(10)
        self.errors.join(10)
        self.popen.stdout.close()
        self.popen.stderr.close()
        return code
