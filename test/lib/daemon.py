# SPDX-License-Identifier: Apache-2.0
"""`atoll serve` for tests: on ports of its own, with a state directory of its own, and its log as records."""
import json
import os
import re
import signal
import subprocess
import threading
import time

import oracle


class Daemon:
    """A running daemon. It listens on a free port of 127.0.0.1 and on a unix socket below `work`."""

    def __init__(self, atoll, work, *options, ready=True, env=None, wrap=(), listen=("127.0.0.1:0",)):
        self.atoll, self.state, self.socket = atoll, work / "state", work / "d.sock"
        words = ["serve", "--state-dir", self.state, "--socket", self.socket, "--log-format", "json"]
        for address in listen:
            words += ["--listen", address]
        self.popen = atoll.variant(wrap, env).popen(words + list(options), stdin=subprocess.DEVNULL,
                                                    stdout=subprocess.DEVNULL)
        self.pid = self.popen.pid  # setpriv becomes the command: it is the same process
        self.records, self.other = [], []
        self.changed = threading.Condition()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        if ready:
            self.wait_ready()

    def read(self):
        for line in self.popen.stderr:
            with self.changed:
                try:
                    self.records.append(json.loads(line))
                except ValueError:
                    self.other.append(line.decode("utf-8", "replace"))
                self.changed.notify_all()
        with self.changed:
            self.changed.notify_all()

    def wait_record(self, message, after=0, timeout=60.0, **fields):
        """The first record with this message and these fields, from number `after` on."""
        end = time.monotonic() + timeout
        with self.changed:
            while True:
                for record in self.records[after:]:
                    if record["msg"] == message and all(record.get(k) == v for k, v in fields.items()):
                        return record
                left = end - time.monotonic()
                assert left > 0, f"no {message!r} {fields} in {self.records} {self.other}"
                assert self.popen.poll() is None or self.reader.is_alive(), \
                    f"ended with {self.popen.returncode}: {self.records} {self.other}"
                self.changed.wait(min(left, 0.1))

    def wait_ready(self, after=0):
        record = self.wait_record("ready", after)
        self.address = record["listen"].split()[0]
        self.host, self.port = self.address.rsplit(":", 1)
        self.port = int(self.port)
        return record

    def child(self, name):
        """The pid of the broker or the front that runs now."""
        with self.changed:
            pids = [r["pid"] for r in self.records if r["msg"] == "started" and r["process"] == name]
        return pids[-1]

    def memory(self, name):
        """The bytes that the broker or the front holds."""
        return int(re.search(r"VmRSS:\s+(\d+)", oracle.read(f"/proc/{self.child(name)}/status"))[1]) << 10

    def brokers(self):
        """How many there were."""
        return sum(r["msg"] == "started" and r["process"] == "broker" for r in self.records)

    def processes(self):
        return oracle.below(self.pid)

    def runner(self):
        """`atoll run` through this daemon's broker, past its front."""
        return self.atoll.variant(env={"ATOLL_POOL": str(self.state / "run" / "broker.sock")})

    def end(self, sig=signal.SIGTERM, timeout=60):
        """Its exit code."""
        if self.popen.poll() is None:
            os.kill(self.pid, sig)
        code = self.popen.wait(timeout)
        self.reader.join(25)
        self.popen.stderr.close()
        return code
