# SPDX-License-Identifier: Apache-2.0
"""libatoll in a process of its own (drive.py, by ctypes): one handle, so one broker, and its requests in order."""
import json

import pytest

from oracle import PYTHON
from program import LIBRARY


class Library:
    """One process that holds one handle (so one broker) and runs requests on it in order."""

    def __init__(self, atoll):
        if b"__asan_init" in LIBRARY.read_bytes():
            pytest.skip("a sanitized libatoll.so cannot be loaded into a Python that is not sanitized")
        self.popen = atoll.popen([atoll.stage.driver, atoll.stage.library], program=PYTHON, stderr=None)

    def ask(self, **message):
        self.popen.stdin.write(json.dumps(message).encode() + b"\n")
        self.popen.stdin.flush()
        line = self.popen.stdout.readline()
        assert line, "the driver of libatoll died"
        return json.loads(line)

    def run(self, request, raw=None):
        """(return value, result or None, problem or None)."""
        answer = self.ask(op="run", request=json.dumps(request) if raw is None else raw)
        result = json.loads(answer["result"]) if answer["result"] else None
        return answer["rc"], result, answer["problem"]

    def health(self):
        return self.ask(op="health")

    def close(self):
        self.popen.stdin.close()
        self.popen.wait(25)
        self.popen.stdout.close()
