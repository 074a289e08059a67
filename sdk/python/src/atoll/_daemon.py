# SPDX-License-Identifier: Apache-2.0
"""A private daemon: started when no other is known, gone with this process.

The daemon's standard input is a pipe that this process holds. When this process ends, also by kill -9, the pipe closes and
the daemon ends (``atoll serve --until-eof``). Its state lies in a temporary directory. A shell waits for the daemon's end and removes
that directory, because this process may have been killed by then.
"""
from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
import threading
import time
from typing import Optional

from ._address import Address
from ._calls import get
from ._errors import APIError, ConnectionFailed
from ._sync import Transport

READY_SECONDS = 30.0
HOST_CALLS = 10000  # of one execution

_lock = threading.Lock()
_private: Optional["PrivateDaemon"] = None


def find_program() -> Optional[str]:
    """The program ``atoll``: ``ATOLL_BIN``, on PATH, or built in the tree that this package lies in or was installed from."""
    return os.environ.get("ATOLL_BIN") or shutil.which("atoll") or _built()


def _built() -> Optional[str]:
    here = os.path.dirname(os.path.abspath(__file__))
    trees = [os.path.join(here, *[os.pardir] * 4)]
    try:
        with open(os.path.join(here, "tree.txt"), encoding="utf-8") as file:  # the build backend's note
            trees.append(file.read().strip())
    except OSError:
        pass
    for tree in trees:
        program = os.path.normpath(os.path.join(tree, "build", "atoll"))
        # A tree may have gone, and its path may be another user's by now.
        if os.access(program, os.X_OK) and os.stat(program).st_uid in (0, os.geteuid()):
            return program
    return None


class PrivateDaemon:
    """A daemon of this process's own."""

    def __init__(self, program: str) -> None:
        self.pid = os.getpid()
        self._dir = tempfile.mkdtemp(prefix="atoll-")
        os.chmod(self._dir, 0o711)  # the front of a daemon that root starts runs as another user
        self._log = os.path.join(self._dir, "log")
        self.address = Address(os.path.join(self._dir, "atoll.sock"), "", 0)
        # Its only caller owns it, so what a caller may have is what the caller asks for.
        settings = ["--set", "listen=", "--set", "network.allow=true", "--set", "sessions.host_calls=%d" % HOST_CALLS]
        command = ["/bin/sh", "-c", '"$@"; rm -rf -- "$0"', self._dir, program, "serve", "--until-eof", *settings,
                   "--socket", str(self.address.path), "--state-dir", os.path.join(self._dir, "state"), "--log-file", self._log]
        try:
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                             stderr=subprocess.PIPE, start_new_session=True)
        except OSError as error:
            shutil.rmtree(self._dir, ignore_errors=True)
            raise ConnectionFailed("cannot start a shell for %s: %s" % (program, error)) from error

    def wait_ready(self) -> None:
        """Returns once the daemon takes work."""
        transport = Transport(self.address, None)
        end = time.monotonic() + READY_SECONDS
        while not self._is_ready(transport):
            if self._process.poll() is not None:
                words = self._process.stderr.read().decode("utf-8", "replace").strip() if self._process.stderr else ""
                raise ConnectionFailed("the private daemon ended at once: %s" % (words or "it gave no reason"))
            if time.monotonic() > end:
                raise ConnectionFailed("the private daemon was not ready within %d s" % READY_SECONDS)
            time.sleep(0.005)
        transport.close()

    def _is_ready(self, transport: Transport) -> bool:
        try:
            return os.path.exists(str(self.address.path)) and transport.call(get("/readyz")).status == 200
        except (APIError, ConnectionFailed):
            return False

    def stop(self) -> None:
        """Ends the daemon and removes its state."""
        if self.pid != os.getpid():
            return  # a forked child holds a copy of this object, not the daemon
        if self._process.stdin:
            self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stderr:
            self._process.stderr.close()


def private_address() -> Address:
    """The address of this process's private daemon, which is started by the first call."""
    global _private
    with _lock:
        if _private is not None and _private.pid == os.getpid() and _private._process.poll() is None:
            return _private.address
        program = find_program()
        if program is None:
            raise ConnectionFailed("no daemon is running and the program `atoll` was not found; install Atoll, start "
                                   "`atoll serve`, or set ATOLL_URL or ATOLL_BIN")
        _private = PrivateDaemon(program)
        atexit.register(_private.stop)
        _private.wait_ready()
        return _private.address
