# SPDX-License-Identifier: Apache-2.0
"""Real clients of the daemon: curl, http.client, asyncio, Node's fetch, the package ws for Node."""
import asyncio
import json
import os
import secrets
import shutil
import subprocess
import time
from pathlib import Path

import pytest

import oracle
from program import Atoll
from resident import wait_until
from web import Served, WebSocket


@pytest.fixture
def url(web):
    return f"http://{web.host}:{web.port}"


def run(argv, url, **more):
    env = {"PATH": os.environ["PATH"], "HOME": "/tmp", "ATOLL_URL": url, "LANG": "C.UTF-8"}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60, **more)
    assert done.returncode == 0, done
    return done.stdout


def test_keep_alive(web):
    """One connection, many requests of all kinds."""
    connection = web.connect()
    for i in range(20):
        answer = web.post("/v1/execute", {"language": "bash", "code": f"echo {i}"}, keep=connection)
        assert answer.json()["stdout"] == f"{i}\n"
        assert web.get("/v1/executions/ex_none", keep=connection).status == 404
    connection.close()


def test_asyncio(web):
    """Two hundred at once over asyncio's streams, in one process: all wait for their turn."""
    async def one(i):
        reader, writer = await asyncio.open_connection(web.host, web.port)
        body = json.dumps({"language": "bash", "code": f"echo {i}"}).encode()
        writer.write(b"POST /v1/execute HTTP/1.1\r\nHost: %s:%d\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
                     b"Connection: close\r\n\r\n" % (web.host.encode(), web.port, len(body)) + body)
        answer = await reader.read()
        writer.close()
        head, text = answer.split(b"\r\n\r\n", 1)
        return int(head.split()[1]), text

    async def all_of_them():
        return await asyncio.gather(*(one(i) for i in range(200)))

    for i, (status, text) in enumerate(asyncio.run(all_of_them())):
        assert status == 200 and json.loads(text)["stdout"] == f"{i}\n", text


def node(url, program, modules=None):
    path = shutil.which("node")
    if not path:
        pytest.skip("node is not installed")
    argv = [path, "--input-type=module", "-e", program]
    return json.loads(run(argv, url, cwd=modules or "/tmp"))


def test_node_fetch(url):
    got = node(url, """
const url = process.env.ATOLL_URL
const body = JSON.stringify({language: 'javascript', code: 'console.log(6 * 7)'})
const headers = {'Content-Type': 'application/json'}
const whole = await (await fetch(url + '/v1/execute', {method: 'POST', headers, body})).json()
const stream = await fetch(url + '/v1/execute', {method: 'POST', headers: {...headers, Accept: 'text/event-stream'}, body})
let text = ''
for await (const piece of stream.body.pipeThrough(new TextDecoderStream())) text += piece
const events = [...text.matchAll(/^event: (.*)$/gm)].map(m => m[1])
const bad = await fetch(url + '/v1/execute', {method: 'POST', headers, body: '{}'})
console.log(JSON.stringify({out: whole.stdout, events, bad: bad.status, type: bad.headers.get('content-type')}))
""")
    assert got["out"] == "42\n" and got["bad"] == 400 and got["type"] == "application/problem+json"
    assert got["events"][0] == "start" and got["events"][-1] == "result" and "stdout" in got["events"]


@pytest.fixture
def with_ws(tmp_path):
    """A directory in which Node finds the package ws, as Debian has it."""
    if not Path("/usr/share/nodejs/ws").is_dir():
        pytest.skip("node-ws is not installed")
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "ws").symlink_to("/usr/share/nodejs/ws")
    return tmp_path


def test_node_ws(web, url, with_ws):
    id = web.submit("python", "import sys\nprint('ready', flush=True)\nprint(sys.stdin.read().upper())", query="?interactive=true")
    got = node(url, """
import WebSocket from 'ws'
const ws = new WebSocket(process.env.ATOLL_URL.replace('http', 'ws') + '/v1/executions/ID/attach')
const seen = []
ws.on('message', data => {
  const event = JSON.parse(data)
  seen.push(event.event)
  if (event.event === 'stdout' && event.data.startsWith('ready')) {
    ws.send('{"type": "stdin", "data": "hello "}')
    ws.send(Buffer.from('bytes'))
    ws.send('{"type": "eof"}')
  }
  if (event.event === 'result') seen.push(event.data.stdout)
})
ws.on('close', code => console.log(JSON.stringify({seen, code})))
""".replace("ID", id), with_ws)
    assert got["code"] == 1000 and got["seen"][-1] == "ready\nHELLO BYTES\n" and got["seen"][0] == "start", got


def test_unix_socket_with_curl(served):
    if not shutil.which("curl"):
        pytest.skip("curl is not installed")
    done = subprocess.run(["curl", "-s", "--unix-socket", served.daemon.socket, "http://localhost/v1/execute", "-H",
                           "Content-Type: application/json", "-d", '{"language": "bash", "code": "echo socket"}'],
                          capture_output=True, text=True, timeout=30)
    assert json.loads(done.stdout)["stdout"] == "socket\n", done


def test_the_operator_sees_all(web, served):
    """Who comes over the unix socket runs the daemon."""
    id = web.execute("bash", "true")["id"]
    done = subprocess.run(["curl", "-s", "--unix-socket", served.daemon.socket, f"http://localhost/v1/executions/{id}"],
                          capture_output=True, text=True, timeout=30)
    assert json.loads(done.stdout)["id"] == id


def test_drain(mode, stage):
    """On SIGTERM, running requests end well and are answered; new ones are refused."""
    import signal
    import threading
    served = Served(Atoll(mode, stage), stage.scratch(mode, "drain"))
    got = []
    nap = f"25.{secrets.randbelow(10**9):09d}"  # the drain's time is 30 seconds
    thread = threading.Thread(target=lambda: got.append(served.web.execute("bash", f"sleep {nap}; echo ended")))
    thread.start()
    ws = WebSocket(served.web, f"/v1/executions/{served.web.submit('bash', f'sleep {nap}; echo job')}/attach")
    wait_until(lambda: len(oracle.who_runs(nap)) == 2, why="they do not run")
    os.kill(served.daemon.pid, signal.SIGTERM)
    served.daemon.wait_record("draining")
    oracle.wake(nap)
    thread.join(60)
    assert got and got[0]["stdout"] == "ended\n", got
    assert ws.until("result")["data"]["stdout"] == "job\n"
    begin = time.monotonic()
    served.end()
    assert time.monotonic() - begin < 25
