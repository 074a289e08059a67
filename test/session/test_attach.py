# SPDX-License-Identifier: Apache-2.0
"""GET /v1/sessions/{id}/attach: code, events, host calls and interrupts over one WebSocket."""
import contextlib
import json
import random
import threading
import time

import pytest

from program import Atoll
from resident import wait_until
from web import Served, Web, WebSocket, output

quick = pytest.mark.quick
MiB = 1 << 20


class Attached(WebSocket):
    """A session and a WebSocket to it."""

    def __init__(self, web, id):
        super().__init__(web, f"/v1/sessions/{id}/attach")
        assert self.status == 101
        self.web, self.id = web, id

    def next(self):
        frame = self.receive()
        return frame if frame is None else json.loads(frame)

    def until(self, **wanted):
        """The frames up to one that has these members."""
        frames = [self.next()]
        while frames[-1] is not None and any(frames[-1].get(key) != value for key, value in wanted.items()):
            frames.append(self.next())
        assert frames[-1] is not None, frames
        return frames

    def ask(self, type, **more):
        """Sends a message; the answer to it. Events that come before it are passed over."""
        self.send({"type": type, "id": "question", **more})
        return self.until(id="question")[-1]

    def execute(self, code, **more):
        """Runs code to its end; its events."""
        answer = self.ask("execute", code=code, **more)
        assert answer["type"] == "accepted", answer
        return self.until(event="result", execution=answer["execution"])

    def run(self, code, **more):
        return self.execute(code, **more)[-1]["data"]


@contextlib.contextmanager
def attached(web, **request):
    answer = web.post("/v1/sessions", {"language": "python", **request})
    assert answer.status == 201, answer
    id = answer.json()["id"]
    ws = Attached(web, id)
    try:
        yield ws
    finally:
        ws.close()
        assert web.delete(f"/v1/sessions/{id}").status == 204


@quick
def test_state_and_events(web):
    with attached(web) as ws:
        events = ws.execute("import sys\nx = 20\nprint('out')\nprint('err', file=sys.stderr)")
        assert events[0]["event"] == "start" and output(events) == "out\n" and output(events, "stderr") == "err\n"
        assert len({event["execution"] for event in events}) == 1 and events[0]["data"]["id"] == events[0]["execution"]
        assert all(event["id"] and event["seq"] and event["time"] for event in events)
        result = ws.run("x + 1")
        assert result["value"] == 21 and result["session"] == {"id": ws.id, "state": "kept", "lost": None}
        assert web.state(result["id"])["value"] == 21  # an execution like any other


@quick
def test_answers_repeat_the_id_of_their_message(web):
    with attached(web) as ws:
        ws.send({"type": "ping", "id": 7})
        assert ws.next() == {"type": "pong", "id": 7}
        ws.send({"type": "ping"})
        assert ws.next() == {"type": "pong"}
        ws.send({"type": "execute", "code": "1", "id": "first"})
        accepted = ws.next()
        assert accepted["type"] == "accepted" and accepted["id"] == "first"
        assert ws.until(event="result")[-1]["execution"] == accepted["execution"]


def test_executions_of_one_socket_wait_for_each_other(web):
    with attached(web) as ws:
        for number in range(5):
            ws.send({"type": "execute", "code": f"print({number}); {number}", "id": number})
        frames = []
        while sum(frame.get("event") == "result" for frame in frames) < 5:
            frames.append(ws.next())
        assert [frame["id"] for frame in frames if frame.get("type") == "accepted"] == list(range(5))
        assert [frame["data"]["value"] for frame in frames if frame.get("event") == "result"] == list(range(5))
        assert output([frame for frame in frames if "event" in frame]) == "0\n1\n2\n3\n4\n"


@quick
def test_host_call(web):
    with attached(web, host_functions=["add"]) as ws:
        ws.send({"type": "execute", "code": "add(2, 3, by=1) + multiply(2, 4)", "host_functions": ["multiply"]})
        call = ws.until(event="host_call")[-1]["data"]
        assert (call["name"], call["args"], call["kwargs"]) == ("add", [2, 3], {"by": 1})
        ws.send({"type": "return", "call_id": call["call_id"], "result": 6})
        call = ws.until(event="host_call")[-1]["data"]
        assert call["name"] == "multiply" and call["args"] == [2, 4]
        ws.send({"type": "return", "call_id": call["call_id"], "result": 8})
        result = ws.until(event="result")[-1]["data"]
        assert result["value"] == 14 and [call["name"] for call in result["host_calls"]] == ["add", "multiply"]


def test_host_call_that_fails(web):
    with attached(web) as ws:
        ws.send({"type": "execute", "host_functions": ["f"],
                 "code": "try:\n    f()\nexcept ValueError as e:\n    r = str(e)\nr"})
        call = ws.until(event="host_call")[-1]["data"]
        ws.send({"type": "return", "call_id": call["call_id"], "error": {"type": "ValueError", "message": "no"}})
        assert ws.until(event="result")[-1]["data"]["value"] == "no"
        answer = ws.ask("return", call_id=call["call_id"], result=1)
        assert answer["type"] == "error" and answer["code"] == "not_found" and "no open call" in answer["detail"]


def test_concurrent_host_calls(web):
    code = "import asyncio\nawait asyncio.gather(*(f(i) for i in range(3)))"
    with attached(web, host_functions=["f"]) as ws:
        ws.send({"type": "execute", "code": code})
        calls = [ws.until(event="host_call")[-1]["data"] for _ in range(3)]
        for call in reversed(calls):
            ws.send({"type": "return", "call_id": call["call_id"], "result": call["args"][0] * 10})
        assert ws.until(event="result")[-1]["data"]["value"] == [0, 10, 20]


def test_rich_output(web):
    code = "class A:\n    def _repr_html_(self):\n        return '<b>a</b>'\n    def __repr__(self):\n        return 'a'\nA()"
    with attached(web) as ws:
        events = ws.execute(code)
        [shown] = [event["data"] for event in events if event["event"] == "output"]
        assert shown["data"]["text/html"] == "<b>a</b>" and shown["data"]["text/plain"] == "a"
        assert events[-1]["data"]["outputs"] == [shown]


@quick
def test_interrupt_keeps_the_state(web):
    with attached(web) as ws:
        ws.run("x = 5")
        ws.send({"type": "execute", "code": "import time\nprint('now')\ntime.sleep(60)"})
        ws.until(event="stdout")
        answer = ws.ask("interrupt")
        assert (answer["type"], answer["interrupted"], answer["state"]) == ("interrupted", True, "kept")
        assert ws.run("x")["value"] == 5
        assert ws.ask("interrupt")["interrupted"] is False


def test_reset(web):
    with attached(web) as ws:
        ws.run("x = 5")
        answer = ws.ask("reset")
        assert answer["type"] == "reset" and answer["session"]["id"] == ws.id
        assert ws.run("x")["error"]["type"] == "NameError"


def test_reset_under_a_host_call(web):
    with attached(web, host_functions=["f"]) as ws:
        ws.send({"type": "execute", "code": "f()"})
        ws.until(event="host_call")
        assert ws.ask("reset")["type"] == "reset"
        assert ws.run("1")["value"] == 1


def test_two_clients_see_all_executions(web):
    with attached(web) as ws:
        other = Attached(web, ws.id)
        ran = ws.execute("print('shared')")
        seen = other.until(event="result")
        assert [e["id"] for e in seen] == [e["id"] for e in ran]
        answer = web.post(f"/v1/sessions/{ws.id}/execute", {"code": "print('posted')"}).json()
        for socket in (ws, other):
            events = socket.until(event="result")
            assert events[-1]["execution"] == answer["id"] and output(events) == "posted\n"
        other.close()


def test_a_client_answers_the_calls_of_another_ones_execution(web):
    with attached(web, host_functions=["f"]) as ws:
        answers = []
        poster = threading.Thread(target=lambda: answers.append(
            web.post(f"/v1/sessions/{ws.id}/execute", {"code": "f() + 1"}).json()))
        poster.start()
        call = ws.until(event="host_call")[-1]["data"]
        ws.send({"type": "return", "call_id": call["call_id"], "result": 1})
        poster.join(30)
        assert answers[0]["value"] == 2


def test_attaching_late_shows_what_runs(web):
    with attached(web) as ws:
        ws.send({"type": "execute", "code": "print('early')\nimport time\nwhile True: time.sleep(0.01)"})
        ws.until(event="stdout")
        late = Attached(web, ws.id)
        assert output(late.until(event="stdout")) == "early\n"
        assert late.ask("interrupt")["interrupted"] is True
        assert late.until(event="result")[-1]["data"]["exit_code"] != 0
        late.close()


@quick
def test_a_client_that_vanishes_ends_the_execution_that_waits_for_it(web):
    with attached(web, host_functions=["f"]) as ws:
        ws.run("x = 1")
        gone = Attached(web, ws.id)
        gone.send({"type": "execute", "code": "f()"})
        execution = gone.until(event="host_call")[-1]["execution"]
        gone.close()
        result = web.wait(execution)
        assert result["status"] == "cancelled" and result["session"]["state"] == "kept"
        assert result["host_calls"][0]["error"]
        ws.until(event="result", execution=execution)
        assert ws.run("x")["value"] == 1


@pytest.mark.parametrize("place", ("session", "execution"))
def test_a_stream_that_vanishes_ends_the_execution_that_waits_for_it(web, place):
    names = {"host_functions": ["f"]}
    with attached(web, **(names if place == "session" else {})) as ws:
        with web.stream("POST", f"/v1/sessions/{ws.id}/execute", {"code": "f()", **(names if place == "execution" else {})},
                        accept="application/x-ndjson") as response:
            events = (json.loads(line) for line in response)
            execution = next(events)["data"]["id"]
            assert any(event["event"] == "host_call" for event in events)
        assert web.wait(execution)["status"] == "cancelled"
        assert ws.until(event="result")[-1]["data"]["session"]["state"] == "kept"


def test_a_client_that_vanishes_leaves_other_code_running(web):
    with attached(web) as ws:
        gone = Attached(web, ws.id)
        accepted = gone.ask("execute", code="import time\nprint(1)\ntime.sleep(0.3)\n'done'")
        gone.until(event="stdout")
        gone.close()
        assert web.wait(accepted["execution"])["value"] == "done"


def test_the_end_of_a_session_closes_its_sockets(web):
    answer = web.post("/v1/sessions", {"language": "python"}).json()
    ws = Attached(web, answer["id"])
    accepted = ws.ask("execute", code="import time\ntime.sleep(60)")
    ws.until(event="start")
    assert web.delete(f"/v1/sessions/{answer['id']}").status == 204
    assert ws.until(event="result")[-1]["execution"] == accepted["execution"]
    assert ws.receive() is None and ws.code == 1000
    ws.close()
    assert WebSocket(web, f"/v1/sessions/{answer['id']}/attach").status == 404


def test_an_attached_session_does_not_expire(web):
    with attached(web, idle_timeout=1) as ws:
        time.sleep(1.3)
        assert ws.run("1 + 1")["value"] == 2
    answer = web.post("/v1/sessions", {"language": "python", "idle_timeout": 1}).json()
    Attached(web, answer["id"]).close()
    wait_until(lambda: web.get(f"/v1/sessions/{answer['id']}").status == 404)


def test_mistakes(web):
    with attached(web) as ws:
        for message, code, words in (
                ("{", "invalid_request", "message"),
                ("[]", "invalid_field", "type: give execute"),
                ({"type": "stdin", "data": "x"}, "invalid_field", "type: give execute"),
                ({"type": "execute"}, "invalid_field", "code: give"),
                ({"type": "execute", "code": "1", "files": {}}, "invalid_field", "files: an execution"),
                ({"type": "execute", "code": "1", "limits": {"memory": "x"}}, "invalid_field", "memory"),
                ({"type": "return", "result": 1}, "invalid_field", "call_id: give"),
                ({"type": "return", "call_id": "1"}, "invalid_field", "result: give"),
                ({"type": "return", "call_id": "99", "result": 1}, "not_found", "no open call"),
                ({"type": "ping", "id": "x" * 200}, "invalid_field", "id: give"),
                (b"bytes", "invalid_field", "as text frames")):
            ws.send(message)
            answer = ws.next()
            assert answer["type"] == "error" and answer["code"] == code and words in answer["detail"], (message, answer)
        assert ws.run("1")["value"] == 1


def test_messages_are_bounded(web):
    with attached(web) as ws:
        assert ws.run(f"len('{'x' * (2 * MiB)}')")["value"] == 2 * MiB
        big = Attached(web, ws.id)
        big.send({"type": "execute", "code": "x" * (5 * MiB)})
        assert big.receive() is None and big.code == 1009
        big.close()
        assert ws.run("1")["value"] == 1


def test_the_line_is_bounded(web):
    with attached(web) as ws:
        ws.send({"type": "execute", "code": "import time\nprint(1)\ntime.sleep(60)"})
        ws.until(event="stdout")
        for number in range(40):
            ws.send({"type": "execute", "code": "0", "id": number})
        frames = [ws.until(id=number)[-1] for number in range(40)]
        refused = [frame for frame in frames if frame["type"] == "error"]
        assert refused and {frame["code"] for frame in refused} == {"queue_full"}
        assert ws.ask("reset")["type"] == "reset"


def test_a_slow_reader_holds_up_neither_code_nor_other_readers(web):
    with attached(web) as ws:
        slow = Attached(web, ws.id)
        assert ws.run(f"print('x' * {8 * MiB}); 'printed'", limits={"output": "16m"})["value"] == "printed"
        assert ws.run("'next'")["value"] == "next"
        values = [slow.until(event="result")[-1]["data"]["value"] for _ in range(2)]
        assert values == ["printed", "next"]
        slow.close()


def test_clients_that_come_and_go(web, served):
    """The session and the daemon go on, also when clients leave things unfinished."""
    front = served.daemon.child("front")
    messages = ({"type": "execute", "code": "f(1)"}, {"type": "execute", "code": "print('x' * 10_000)"}, {"type": "interrupt"},
                {"type": "execute", "code": "import time; time.sleep(0.01)"}, {"type": "reset"}, {"type": "ping"},
                {"type": "return", "call_id": "1", "result": 1}, {"type": "execute", "code": "1/0"})

    def visit(id, seed):
        choice = random.Random(seed)
        for _ in range(12):
            ws = Attached(web, id)
            for message in choice.choices(messages, k=choice.randrange(1, 6)):
                ws.send(message)
            if choice.random() < 0.5:
                ws.next()
            ws.close()

    with attached(web, host_functions=["f"]) as ws:
        visitors = [threading.Thread(target=visit, args=(ws.id, seed)) for seed in range(6)]
        for visitor in visitors:
            visitor.start()
        for visitor in visitors:
            visitor.join(60)
        # What still waits ends by itself: its clients have gone, and with them their host calls.
        wait_until(lambda: web.get(f"/v1/sessions/{ws.id}").json()["waiting"] == 0)
        fresh = Attached(web, ws.id)
        assert fresh.ask("reset")["type"] == "reset" and fresh.run("6 * 7")["value"] == 42
        fresh.close()
    assert served.daemon.child("front") == front


def test_a_session_of_another_caller(mode, stage):
    place = stage.scratch(mode, "tokens")
    tokens = place / "tokens"
    tokens.write_text("0123456789abcdef0123456789abcdef\nfedcba9876543210fedcba9876543210\n")
    tokens.chmod(0o600)
    served = Served(Atoll(mode, stage), place, "--token-file", tokens)
    try:
        one, two = (Web(served.daemon.host, served.daemon.port, token) for token in tokens.read_text().split())
        with attached(one) as ws:
            assert WebSocket(two, f"/v1/sessions/{ws.id}/attach").status == 404
            assert WebSocket(Web(one.host, one.port), f"/v1/sessions/{ws.id}/attach").status == 401
            assert two.get("/v1/sessions").json() == {"sessions": []} and ws.run("1")["value"] == 1
    finally:
        served.end()


def test_what_is_no_session(web):
    with attached(web) as ws:
        assert WebSocket(web, "/v1/sessions/se_none/attach").status == 404
        assert web.get(f"/v1/sessions/{ws.id}/attach").status == 426
