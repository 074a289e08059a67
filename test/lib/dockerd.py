# SPDX-License-Identifier: Apache-2.0
"""A Docker daemon of the tests' own, without a bridge, and the flags that doc/install.md gives to containers."""
import contextlib
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

from program import ROOT

CLIENT, DAEMON = "/usr/bin/docker", "/usr/sbin/dockerd"  # Debian's
ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/root", "LANG": "C.UTF-8"}


class Unavailable(Exception):
    """dockerd does not run here; the text says why."""


def flags_of(row):
    """The flags in the second column of the row of doc/install.md that begins so."""
    page = (ROOT / "doc" / "install.md").read_text(encoding="utf-8")
    return re.search(r"^\| " + re.escape(row) + r" \| `([^`]*)`", page, re.M)[1].split()


@contextlib.contextmanager
def containers(tree):
    """Runs commands in containers whose root is a copy of the directory: run(flags, words, timeout)."""
    if not Path(DAEMON).exists():
        raise Unavailable("dockerd is not installed")
    place = Path(os.path.realpath("/var/tmp")) / f"tests-docker-{os.getpid()}"
    place.mkdir()
    host = f"unix://{place}/docker.sock"
    with open(place / "log", "wb") as log, contextlib.ExitStack() as stack:
        daemon = subprocess.Popen([DAEMON, "--iptables=false", "--bridge=none", "--data-root", place / "data", "--exec-root", place / "exec",
                                   "--pidfile", place / "pid", "-H", host], stdout=log, stderr=log)
        stack.callback(lambda: shutil.rmtree(place, ignore_errors=True))
        # dockerd leaves the namespace of --network host mounted.
        stack.callback(lambda: subprocess.run(["umount", "-q", place / "exec/netns/default"], check=False, capture_output=True))
        stack.callback(daemon.wait)
        stack.callback(daemon.terminate)
        end = time.monotonic() + 60
        while not (place / "docker.sock").exists() and time.monotonic() < end and daemon.poll() is None:
            time.sleep(0.1)
        if daemon.poll() is not None or not (place / "docker.sock").exists():
            raise Unavailable(f"dockerd does not start here: {(place / 'log').read_text()[-300:]}")
        subprocess.run(["sh", "-c", f"tar -C {tree} --exclude=./proc/* --exclude=./sys/* -c . | {CLIENT} -H {host} import - fresh"],
                       check=True, capture_output=True, env=ENVIRONMENT, timeout=300)

        def run(flags, words, timeout=180):
            return subprocess.run([CLIENT, "-H", host, "run", "--rm", *flags, "fresh", *words], capture_output=True, text=True,
                                  env=ENVIRONMENT, timeout=timeout, check=False)
        yield run
