# SPDX-License-Identifier: Apache-2.0
"""Drives a session runner (runners/<language>/session.*) outside of a sandbox, as src/session does inside.

A temporary directory stands for /sandbox. Descriptor 0 of the runner is one end of a socket pair. The runner leads a process group, so that
interrupt() reaches it as the front's SIGINT does. stdout and stderr are drained while the driver waits for a message: when a message has
come, `stdout` and `stderr` hold all that was written before it.
"""
import functools
import json
import os
import selectors
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

RUNNERS = Path(__file__).resolve().parents[2] / "runners"
LANGUAGES = {
    "python": ("/usr/bin/python3", "py", ["python/session_tools.py", "python/session_fork.py", "python/session.py"]),
    "javascript": ("/usr/bin/node", "js", ["javascript/session_tools.js", "javascript/session.js"]),
    "ruby": ("/usr/bin/ruby", "rb", ["ruby/session.rb"]),
    "bash": ("/usr/bin/bash", "sh", ["bash/session.sh"]),
}
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "MPLBACKEND": "Agg", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONNOUSERSITE": "1"}


class RunnerGone(Exception):
    """The channel has ended."""


class Runner:
    def __init__(self, language, env=None, limits=None):
        interpreter, extension, parts = LANGUAGES[language]
        # No name with "atoll": the oracle of another test, which runs at the same time, would take it for a leak.
        self.directory = tempfile.TemporaryDirectory(prefix="runner-")
        self.work = os.path.realpath(self.directory.name)
        self.script = Path(self.work, f"main.{extension}")
        self.script.write_text("".join((RUNNERS / part).read_text() for part in parts))
        self.channel, theirs = socket.socketpair()
        environment = {**ENVIRONMENT, "HOME": self.work, "MPLCONFIGDIR": f"{tempfile.gettempdir()}/runner-matplotlib", **(env or {})}
        self.process = subprocess.Popen([interpreter, str(self.script)], stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        cwd=self.work, env=environment, start_new_session=True, preexec_fn=lambda: self.prepare(limits))
        theirs.close()
        self.stdout, self.stderr = b"", b""
        self.pieces, self.messages = [], []
        self.selector = selectors.DefaultSelector()
        for name in ("stdout", "stderr"):
            stream = getattr(self.process, name)
            os.set_blocking(stream.fileno(), False)
            self.selector.register(stream, selectors.EVENT_READ, name)
        self.selector.register(self.channel, selectors.EVENT_READ, "channel")
        self.count = 0

    @staticmethod
    def prepare(limits):
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell cannot handle signals that are ignored when it starts
        if limits:
            limits()

    def __enter__(self):
        assert self.receive() == {"op": "ready"}
        return self

    def __exit__(self, *_):
        self.channel.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            pass
        try:
            os.killpg(self.process.pid, signal.SIGKILL)  # also children that the program left
        except ProcessLookupError:
            pass
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()
        self.selector.close()
        self.directory.cleanup()

    # --------------------------------------------------------------------------------------- messages

    def send(self, message):
        self.channel.sendall(json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass") + b"\n")

    def take(self, name):
        """Reads what is there of a stream; False: the stream has ended."""
        stream = getattr(self.process, name)
        while True:
            try:
                data = os.read(stream.fileno(), 1 << 20)
            except BlockingIOError:
                return True
            if not data:
                return False
            setattr(self, name, getattr(self, name) + data)

    def drain(self):
        for name in ("stdout", "stderr"):
            self.take(name)

    def receive(self, timeout=30):
        deadline = time.monotonic() + timeout
        while not self.messages:
            left = deadline - time.monotonic()
            assert left > 0, f"no message; stdout {self.stdout[-500:]!r}, stderr {self.stderr[-2000:]!r}"
            for key, _ in self.selector.select(left):
                if key.data == "channel":
                    self.read_channel()
                elif not self.take(key.data):
                    self.selector.unregister(key.fileobj)
        self.drain()
        return self.messages.pop(0)

    def read_channel(self):
        data = self.channel.recv(1 << 20)
        if not data:
            self.drain()
            raise RunnerGone(self.stderr.decode(errors="replace"))
        *lines, rest = data.split(b"\n")
        if lines:
            lines[0] = b"".join([*self.pieces, lines[0]])
            self.pieces = []
        self.pieces.append(rest)
        self.messages += [json.loads(line, parse_constant=self.refuse) for line in lines]

    @staticmethod
    def refuse(name):
        raise AssertionError(f"{name} is no JSON")

    # ------------------------------------------------------------------------------------- executions

    def start(self, code, **more):
        """Begins an execution; its number."""
        self.count += 1
        self.stdout, self.stderr = b"", b""
        self.send({"op": "run", "n": self.count, **more, "code": code})
        return self.count

    def run(self, code, host=None, **more):
        """Runs code to its end; (outputs, done). `host` is a function of (name, args, kwargs) that answers calls."""
        number = self.start(code, **more)
        outputs = []
        while True:
            message = self.receive()
            if message["op"] == "call":
                self.send({"op": "return", "call": message["call"], **host(message["name"], message["args"], message["kwargs"])})
            elif message["op"] == "output":
                assert message.pop("n") == number and message.pop("op") == "output"
                outputs.append(message)
            else:
                assert message.pop("n") == number and message.pop("op") == "done", message
                return outputs, message

    def done(self, code, **more):
        """The `done` of an execution without outputs."""
        outputs, done = self.run(code, **more)
        assert outputs == [], outputs
        return done

    def value(self, code, **more):
        done = self.done(code, **more)
        assert done["error"] is None and done["exit_code"] == 0, done
        return done.get("value")

    def error(self, code, **more):
        """(type, message) of an execution that fails."""
        done = self.done(code, **more)
        assert done["error"] is not None, done
        return done["error"]["type"], done["error"]["message"]

    def file(self, op, path, **more):
        self.count += 1
        where = {}
        if op in ("read", "write"):
            where["offset"] = more.pop("offset", 0)
        if op == "read":
            where["size"] = more.pop("size", 32 << 20)
        self.send({"op": op, "n": self.count, **where, "path": path, **more})
        answer = self.receive()
        assert answer.pop("op") == "file" and answer.pop("n") == self.count
        return answer

    # ----------------------------------------------------------------------------------------- signals

    def interrupt(self):
        os.killpg(self.process.pid, signal.SIGINT)

    def end(self):
        """Closes the channel; the exit code."""
        self.channel.shutdown(socket.SHUT_WR)
        return self.process.wait(10)


def moments(seen, least, step):
    """Waiting functions for a test that interrupts at each moment of an execution: each waits a step longer. They begin anew, with larger
    steps, until one signal has met running code (True in `seen`): on a busy machine most come before the code does, or behind it."""
    for attempt in range(20 * least):
        again, place = divmod(attempt, least)
        if again and True in seen:
            return
        yield functools.partial(busy_wait, place * step * (1 + again / 2))


def busy_wait(seconds):
    """More exact than a sleep."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        pass
