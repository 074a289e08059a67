# SPDX-License-Identifier: Apache-2.0
"""What /openapi.json promises. web.py holds each answer and event that a test sees against it: the operation lists this status, this type and
this shape, and the shape names every key. A request that was taken has the shape of its operation's body."""
import json
import re

import fastjsonschema  # it compiles a schema into a function: a test run checks thousands of answers

LARGEST = 1 << 20  # bytes of an answer that are looked at
EVENTS = ("text/event-stream", "application/x-ndjson")
SHAPES = "#/components/schemas/"


def closed(node):
    """The same schemas, with no room for keys that they do not name. Clients get the open ones, because keys may be added."""
    if isinstance(node, list):
        return [closed(one) for one in node]
    if not isinstance(node, dict):
        return node
    node = {key: closed(value) for key, value in node.items()}
    if "properties" in node and node.get("type") == "object":
        node.setdefault("additionalProperties", False)
    return node


def values(kind, body):
    """The JSON texts of a body. An MCP answer that takes seconds begins with an event without data, to go on behind."""
    if kind == "text/event-stream":
        return [line[6:] for line in body.split(b"\n") if line.startswith(b"data: ") and line != b"data: "]
    return body.split(b"\n")[:-1] if kind == "application/x-ndjson" else [body]


class Contract:
    def __init__(self, document):
        self.document = document
        self.components = {"schemas": closed(document["components"]["schemas"])}
        self.checks = {}
        self.paths = []
        # A plain segment wins over a name in its place.
        for pattern in sorted(document["paths"], key=lambda path: path.replace("{", "~")):
            matcher = re.escape(pattern).replace(r"\{path\}", ".+")
            self.paths.append((re.compile(re.sub(r"\\{\w+\\}", "[^/]+", matcher) + "$"), document["paths"][pattern]))

    def check(self, schema, value):
        """Raises what says where the value does not have the shape."""
        key = json.dumps(schema)
        if key not in self.checks:
            self.checks[key] = fastjsonschema.compile({**schema, "components": self.components})
        self.checks[key](value)

    def operation(self, method, path):
        """None: the document does not list it."""
        for matcher, item in self.paths:
            if matcher.match(path.partition("?")[0]):
                return item.get(method.lower())
        return None

    def response(self, operation, status):
        """None: there is no such answer."""
        listed = operation["responses"]
        said = listed.get(str(status)) or (listed.get("default") if status >= 400 else None)
        if said and "$ref" in said:
            return self.document["components"]["responses"][said["$ref"].rpartition("/")[2]]
        return said

    def answer(self, method, path, status, kind, body):
        """kind: the answer's content type."""
        operation = self.operation(method, path)
        kind = kind.partition(";")[0]
        if operation is None or not body or len(body) > LARGEST:
            return
        said = self.response(operation, status)
        assert said, f"{method} {path}: /openapi.json lists no {status}"
        # Clients of before `:stream` get events from the same path by Accept.
        if kind in EVENTS and kind not in said["content"]:
            return
        assert kind in said["content"], f"{method} {path}: {status} comes as {kind}, /openapi.json lists {list(said['content'])}"
        if status != 206 and (kind in EVENTS or kind in ("application/json", "application/problem+json")):
            for text in values(kind, body):
                self.value(said["content"][kind]["schema"], text, f"{method} {path}: {status}")

    def request(self, method, path, body):
        """Of a request that was taken: its body is one that the document permits. A null counts as not given."""
        content = ((self.operation(method, path) or {}).get("requestBody") or {}).get("content", {})
        if not isinstance(body, dict) or "application/json" not in content or len(str(body)) > LARGEST:
            return
        given = {key: value for key, value in body.items() if value is not None}
        try:
            self.check(content["application/json"]["schema"], given)
        except fastjsonschema.JsonSchemaException as error:
            raise AssertionError(f"{method} {path} took what /openapi.json does not permit: {error.message} in {given}") from error

    def value(self, schema, text, where):
        try:
            self.check(schema, json.loads(text))
        except fastjsonschema.JsonSchemaException as error:
            raise AssertionError(f"{where} is not as /openapi.json says: {error.message} in {text[:2000]!r}") from error

    def event(self, event):
        try:
            self.check({"$ref": SHAPES + "Event"}, event)
        except fastjsonschema.JsonSchemaException as error:
            raise AssertionError(f"no Event of /openapi.json: {error.message} in {event}") from error


learned = None  # of this process: all daemons of a test run are one program


def learn(web):
    global learned
    if not learned:
        learned = Contract(web.get("/openapi.json").json())
