# SPDX-License-Identifier: Apache-2.0
"""A client of sessions for tests."""
import contextlib
import json
import threading
import time

from web import sse

HEALTH_MOST = 0.1  # seconds until /healthz must have answered while hostile code runs


class Session:
    """One session of the daemon, from its creation to its deletion."""

    def __init__(self, web, **body):
        answer = web.post("/v1/sessions", {"language": "python", **body})
        assert answer.status == 201, answer
        self.web, self.made = web, answer.json()
        self.id, self.path = self.made["id"], f"/v1/sessions/{self.made['id']}"
        assert answer.headers["location"] == self.path

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.web.delete(self.path)

    def show(self):
        answer = self.web.get(self.path)
        assert answer.status == 200, answer
        return answer.json()

    def ask(self, code, keep=None, **more):
        """The answer, also a refusal."""
        return self.web.post(f"{self.path}/execute", {"code": code, **more}, keep=keep)

    def run(self, code, keep=None, **more):
        """The result of an execution."""
        answer = self.ask(code, keep, **more)
        assert answer.status == 200, answer
        result = answer.json()
        assert result["session"]["id"] == self.id, result
        return result

    def value(self, code, **more):
        """The value of an execution that must have succeeded."""
        result = self.run(code, **more)
        assert result["status"] == "success" and result["session"]["state"] == "kept", result
        return result["value"]

    @contextlib.contextmanager
    def events(self, code, **more):
        """Events as they come: (name, data)."""
        with self.web.stream("POST", f"{self.path}/execute", {"code": code, **more}) as response:
            id = response.getheader("Content-Location").rsplit("/", 1)[1]
            yield Events(id, ((name, event.get("data")) for _, name, event in sse(response)))

    def serve(self, code, functions, **more):
        """Runs code with these host functions; the result. A function gets args and kwargs, and may raise."""
        with self.events(code, host_functions=[*functions], **more) as events:
            for name, data in events:
                if name == "result":
                    return data
                if name == "host_call":
                    try:
                        answer = {"result": functions[data["name"]](*data["args"], **data["kwargs"])}
                    except Exception as error:
                        answer = {"error": {"type": type(error).__name__, "message": str(error)}}
                    assert self.answer(data["call_id"], answer).status == 204
        raise AssertionError("no result")

    def answer(self, call, body):
        return self.web.post(f"{self.path}/calls/{call}", body)

    def begin(self, code, **more):
        """An execution in a thread of its own; join() returns its answer."""
        return Asking(lambda: self.ask(code, **more))

    def busy(self):
        """Returns when code runs."""
        end = time.monotonic() + 20
        while (shown := self.show())["state"] != "busy":
            assert time.monotonic() < end, shown
            time.sleep(0.005)

    def interrupt(self):
        answer = self.web.post(f"{self.path}/interrupt")
        assert answer.status == 200, answer
        return answer.json()

    def reset(self):
        answer = self.web.post(f"{self.path}/reset")
        assert answer.status == 200, answer
        return answer.json()

    def logs(self):
        return self.web.get(f"{self.path}/logs").json()

    def put(self, path, data):
        return self.web.ask("PUT", f"{self.path}/files/{path}", data, {"Content-Type": "application/octet-stream"})

    def get(self, path):
        return self.web.get(f"{self.path}/files/{path}")

    def files(self):
        answer = self.web.get(f"{self.path}/files")
        assert answer.status == 200, answer
        return {entry["path"]: entry for entry in answer.json()["files"]}


class Events:
    """The events of one execution, (name, data) each; its id is known before its code runs."""

    def __init__(self, id, events):
        self.id, self.events = id, events

    def __iter__(self):
        return self.events

    def until(self, wanted):
        """The data of the next event of this name."""
        for name, data in self.events:
            if name == wanted:
                return data
        raise AssertionError(f"no {wanted}")


class Asking(threading.Thread):
    """A request in a thread of its own."""

    def __init__(self, ask):
        super().__init__(daemon=True)
        self.ask, self.answer, self.failure = ask, None, None
        self.start()

    def run(self):
        try:
            self.answer = self.ask()
        except Exception as error:
            self.failure = error

    def result(self, timeout=60):
        self.join(timeout)
        assert self.answer is not None, self.failure or "no answer"
        return self.answer

    def json(self):
        answer = self.result()
        assert answer.status == 200, answer
        return json.loads(answer.body)


class Health(threading.Thread):
    """Asks /healthz again and again; `worst` is the longest time until an answer, in seconds."""

    def __init__(self, web):
        super().__init__(daemon=True)
        self.web, self.worst, self.count, self.over = web, 0.0, 0, threading.Event()

    def __enter__(self):
        self.start()
        return self

    def run(self):
        connection = self.web.connect()
        while True:  # once at least, also if what it watches is over when this thread gets a processor
            begun = time.monotonic()
            assert self.web.get("/healthz", keep=connection).status == 200
            self.worst = max(self.worst, time.monotonic() - begun)
            self.count += 1
            if self.over.wait(0.005):
                break
        connection.close()

    def __exit__(self, *_):
        self.over.set()
        self.join(20)


class Copy(Session):
    def __init__(self, web, made):
        self.web, self.made, self.id, self.path = web, made, made["id"], f"/v1/sessions/{made['id']}"


def ask_fork(session, count=1):
    """The answer, also a refusal."""
    return session.web.post(f"{session.path}/fork", {"count": count})


def fork(session, count=1):
    answer = ask_fork(session, count)
    assert answer.status == 201, answer
    made = answer.json()["sessions"]
    assert len(made) == count and len({one["id"] for one in made}) == count
    return [Copy(session.web, one) for one in made]
