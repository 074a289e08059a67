# SPDX-License-Identifier: Apache-2.0
"""Listening sockets that systemd passes on: the daemon serves those of its settings, and refuses others."""
import json
import subprocess
import sys
import urllib.request

import pytest

from daemon import Daemon

pytestmark = pytest.mark.modes("root")  # sockets are taken before the daemon looks at its user

# As systemd does: the sockets are descriptors from 3 on, and LISTEN_PID names the process that is executed.
PASS = """
import os, socket, sys
for i, where in enumerate(sys.argv[1].split(",")):
    tcp = ":" in where
    s = socket.socket(socket.AF_INET if tcp else socket.AF_UNIX)
    s.bind(("127.0.0.1", int(where.rsplit(":", 1)[1])) if tcp else where)
    s.listen()
    os.dup2(s.fileno(), 40 + i)
for i in range(len(sys.argv[1].split(","))):
    os.dup2(40 + i, 3 + i)
    os.close(40 + i)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(sys.argv[1].split(","))))
os.execv(sys.argv[2], sys.argv[2:])
"""


def passing(*where):
    return (sys.executable, "-c", PASS, ",".join(map(str, where)))


@pytest.fixture
def port():
    import socket
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def test_passed_sockets_are_served_and_their_file_stays(atoll, work, port):
    path = work / "d.sock"
    daemon = Daemon(atoll, work, wrap=passing(f"127.0.0.1:{port}", path), listen=(f"127.0.0.1:{port}",))
    try:
        body = json.dumps({"language": "bash", "code": "ls -l /proc/self/fd"}).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/execute", body, {"content-type": "application/json"})
        result = json.load(urllib.request.urlopen(request, timeout=30))
        assert result["status"] == "success" and "socket:" not in result["stdout"]
        assert atoll.run(["history", "list"], env={"ATOLL_URL": f"unix:{path}"}).returncode == 0
    finally:
        daemon.end()
    assert path.is_socket()


def test_socket_that_no_setting_names_is_refused(atoll, work, port):
    words = ["serve", "--state-dir", work / "state", "--socket", "off", "--listen", "127.0.0.1:0"]
    done = atoll.variant(passing(f"127.0.0.1:{port}"), None).run(words, stdin=subprocess.DEVNULL)
    assert done.returncode == 125
    assert f"systemd passes a listening socket for 127.0.0.1:{port}, which the settings do not have" in done.err
