# SPDX-License-Identifier: Apache-2.0
"""The three scripts of compat/002: against a real server they pass, against a wrong one they say so."""
import contextlib
import http.server
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from program import ROOT

SCRIPTS = ROOT / "compat" / "002"
quick, foreign = pytest.mark.quick, pytest.mark.foreign


def run(name, *args, env=None, timeout=120):
    return subprocess.run([SCRIPTS / name, *args], capture_output=True, text=True, timeout=timeout, cwd="/tmp",
                          env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **(env or {})})


@quick
@foreign
@pytest.mark.skipif(not shutil.which("shellcheck"), reason="shellcheck is not installed")
def test_shellcheck():
    done = subprocess.run(["shellcheck", *sorted(SCRIPTS.glob("*.sh"))], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@quick
@foreign
@pytest.mark.parametrize("name, flag", [("start_local_sandbox.sh", "--help"), ("test_code_execution_sandbox.sh", "-h")])
def test_help(name, flag):
    done = run(name, flag)
    assert done.returncode == 0 and done.stderr == "" and f"{name} [" in done.stdout


# ------------------------------------------------------------------------------- the start script


@pytest.fixture
def shown(tmp_path):
    """start(*args, **env): what the script would execute, with its environment."""
    program = tmp_path / "fake"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$OUTPUT_DATA_PATH" "${DEBUG:-}" "$@"\n')
    program.chmod(0o755)

    def start(*args, **env):
        done = run("start_local_sandbox.sh", *map(str, args),
                   env={"ATOLL": str(program), "ATOLL_STATE_DIR": str(tmp_path / "state"), **env})
        return done, done.stdout.splitlines()

    return start


@quick
@foreign
def test_start_chooses_the_directory(shown, tmp_path):
    """Argument, then OUTPUT_DATA_PATH, then the current directory; made when it is not there."""
    for args, env, expected in (((), {}, "/tmp"),
                                ((), {"OUTPUT_DATA_PATH": str(tmp_path / "a")}, str(tmp_path / "a")),
                                (("n", tmp_path / "b c"), {"OUTPUT_DATA_PATH": str(tmp_path / "a")}, str(tmp_path / "b c"))):
        done, lines = shown(*args, **env)
        assert done.returncode == 0, done
        assert lines[0] == expected and os.path.isdir(expected)


@quick
@foreign
def test_start_passes_on_what_it_was_told(shown, tmp_path):
    _, lines = shown()
    state = tmp_path / "state" / "local-sandbox"
    assert lines[1:] == ["", "serve", "--listen", "127.0.0.1:6000", "--socket", f"{state}/atoll.sock", "--state-dir", str(state)]
    _, lines = shown("mine", tmp_path, DEBUG="1", SANDBOX_HOST="::1", SANDBOX_PORT="7000")
    assert lines[1] == "1" and lines[4] == "[::1]:7000" and lines[-1] == str(tmp_path / "state" / "mine")


@quick
@foreign
@pytest.mark.parametrize("args, word", [(("../x",), "name"), (("a b",), "name"), (("n", "/"), "/workspace"),
                                        (("n", "/proc/x/y"), "OUTPUT_DIR"), (("a", "b", "c"), "arguments")])
def test_start_refuses(shown, args, word):
    done, lines = shown(*args)
    assert done.returncode == 1 and lines == [] and word in done.stderr and done.stderr.count("\n") <= 2, done


# -------------------------------------------------------------------------------- the test script


@pytest.fixture
def answering():
    """answering(status, body): the address of a server that answers every POST like that."""
    servers = []

    def start(status, body):
        class Handler(http.server.BaseHTTPRequestHandler):
            def reply(self, code, data):
                self.send_response(code)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def do_GET(self):
                self.reply(405, b"")

            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                self.reply(status, body.encode())

            def log_message(self, *args):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_address[1]}/execute"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@quick
@foreign
@pytest.mark.parametrize("status, body", [
    (200, '{"process_status": "completed", "stdout": "", "stderr": ""}'),
    (500, "Internal Server Error"), (200, "null")])
def test_mismatches_are_told(answering, status, body):
    done = run("test_code_execution_sandbox.sh", "-u", answering(status, body), "-t", "5")
    assert done.returncode == 1, done
    assert "[ERROR] 1. Simple print" in done.stdout or status == 200
    assert done.stdout.splitlines()[-1].split()[3] != "0"


@quick
@foreign
def test_one_mismatch_is_enough(answering):
    """All malformed requests get one answer, which is right for one of them."""
    body = json.dumps({"process_status": "error", "stdout": "", "stderr": "Invalid JSON data"})
    done = run("test_code_execution_sandbox.sh", "-m", "-u", answering(400, body))
    assert done.returncode == 1 and done.stdout.splitlines()[-1] == "1 as expected, 3 not", done


@quick
@foreign
@pytest.mark.parametrize("args", [("-x",), ("-t", "soon"), ("word",), ("-u", "http://127.0.0.1:1/execute")])
def test_bad_options(args):
    assert run("test_code_execution_sandbox.sh", *args).returncode == 2


@quick
@foreign
def test_curl_request_tells_failure(answering):
    assert run("curl_request.sh", answering(200, '{"process_status":"error","stdout":"","stderr":""}')).returncode == 1
    assert run("curl_request.sh", answering(200, '{"process_status":"completed","stdout":"","stderr":""}')).returncode == 0


# ------------------------------------------------------------------------------- against a server


def free_port():
    """A port outside of the range from which the kernel gives ports to programs that ask for any."""
    for port in random.sample(range(10240, int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])), 100):
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


def wait_for(url, popen):
    end = time.monotonic() + 60
    while True:
        assert popen.poll() is None, popen.stderr.read()
        try:
            urllib.request.urlopen(url, timeout=10)
            return
        except urllib.error.HTTPError:
            return
        except OSError:
            assert time.monotonic() < end, f"no server answers at {url}"
            time.sleep(0.05)


@pytest.fixture
def sandbox(mode, stage, atoll, work):
    """A server as the start script starts it: its URL, and its output directory."""
    port, output = free_port(), work / "output"
    env = {**atoll.environment(), "ATOLL": str(stage.binary), "ATOLL_STATE_DIR": str(work / "state"),
           "SANDBOX_PORT": str(port), "ATOLL_POOL": ""}
    popen = subprocess.Popen(atoll.command([SCRIPTS / "start_local_sandbox.sh", "tested", output]), env=env, cwd=work,
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                             start_new_session=True)
    threading.Thread(target=lambda: [None for _ in popen.stderr], daemon=True).start()
    url = f"http://127.0.0.1:{port}/execute"
    wait_for(url, popen)
    yield url, output
    popen.send_signal(signal.SIGTERM)
    popen.wait(30)
    popen.stderr.close()


@pytest.mark.modes("root")  # for the rootless user test_api_execute.py asks the same interface
def test_scenarios(sandbox):
    url, output = sandbox
    done = run("test_code_execution_sandbox.sh", "-u", url)
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-1] == "20 as expected, 0 not"
    assert list(output.iterdir()) == [], "the scenarios take away what they made"
    malformed = run("test_code_execution_sandbox.sh", "-u", url, "-m", "-t", "5")
    assert malformed.stdout.splitlines()[-1] == "4 as expected, 0 not"
    figure = run("curl_request.sh", url)
    assert figure.returncode == 0 and "points: 4" in figure.stdout, figure
