# SPDX-License-Identifier: Apache-2.0
"""`atoll mcp` on standard input and output: nothing but messages on stdout, a prompt end, and nothing left behind, with a private daemon and
with one that runs."""
import json
import os
import signal
import subprocess
import time

import pytest

import oracle
from mcp import LEGACY, MODERN, StdioDoor, is_well_formed
from program import Atoll

pytestmark = pytest.mark.modes("root", "rootless")
PRIVATE = {"ATOLL_URL": "off"}


def atoll_processes(pid):
    return oracle.below(pid)


@pytest.fixture
def alone(atoll, work):
    """`atoll mcp` with a home and a runtime directory of its own and no daemon to find."""
    runtime = atoll.mkdir(work / "runtime")
    runtime.chmod(0o700)
    return atoll.variant(env={"XDG_RUNTIME_DIR": str(runtime), "HOME": str(work), **PRIVATE}), runtime, work


@pytest.mark.quick
@pytest.mark.undisturbed
@pytest.mark.parametrize("version", [MODERN, LEGACY[0]], ids=["modern", "legacy"])
def test_private_daemon(alone, version):
    """Every line is a message; at the end of the input it leaves with 0 at once, with its daemon and its files."""
    atoll, runtime, home = alone
    door = StdioDoor(atoll, version)
    assert door.do("execute_code", language="python", code="import os; print(os.getcwd())")["stdout"] == "/sandbox\n"
    session = door.do("create_session", language="bash")["session_id"]
    assert door.do("run_in_session", session_id=session, code="echo $((6*7))")["stdout"]["text"] == "42\n"
    assert len(atoll_processes(door.popen.pid)) >= 2
    begin = time.monotonic()
    assert door.close() == 0
    assert time.monotonic() - begin < 10
    assert door.lines and all(is_well_formed(json.loads(line)) and line.endswith(b"\n") for line in door.lines)
    # A sanitizer warns of fibers.
    assert [line for line in door.err if b"ASan doesn't fully support" not in line] == [], door.err
    assert [p for p in runtime.rglob("*")] == [], list(runtime.rglob("*"))
    assert not list(home.glob(".local")) and not [p for p in home.rglob("*") if "state" in p.name], list(home.rglob("*"))


@pytest.mark.undisturbed
def test_end_of_input_cancels_what_runs(alone):
    atoll = alone[0]
    door = StdioDoor(atoll)
    door.start("tools/call", {"name": "execute_code", "arguments": {"language": "python", "code": "import time; time.sleep(60)", "timeout": 90}},
               progress=1)
    door.note("notifications/progress", progressToken=1)
    begin = time.monotonic()
    assert door.close() == 0 and time.monotonic() - begin < 15
    assert any(line.endswith(b"requests that were not answered are cancelled: 1\n") for line in door.err), door.err


def test_answers_are_written_before_it_leaves(alone):
    """A script pipes its requests in and closes: all of them are answered, in any order."""
    atoll = alone[0]
    hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": LEGACY[0], "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}}
    calls = [{"jsonrpc": "2.0", "id": i, "method": "tools/call", "params": {"name": "execute_code", "arguments": {"language": "python", "code": f"print({i})"}}}
             for i in range(1, 6)]
    lines = [hello, {"jsonrpc": "2.0", "method": "notifications/initialized"}, *calls]
    done = atoll.run(["mcp"], input="".join(json.dumps(line) + "\n" for line in lines))
    assert done.returncode == 0 and done.stderr == b"", done
    answers = {json.loads(line)["id"]: json.loads(line) for line in done.out.splitlines()}
    assert set(answers) == set(range(6)), done
    assert all(answers[i]["result"]["structuredContent"]["stdout"] == f"{i}\n" for i in range(1, 6)), answers


def test_cancel_and_progress(alone):
    for version in (MODERN, LEGACY[0]):
        door = StdioDoor(alone[0], version)
        id = door.start("tools/call", {"name": "execute_code", "arguments": {"language": "bash", "code": "echo one; sleep 60", "timeout": 90}}, progress="t")
        assert door.note("notifications/progress", progressToken="t")["params"]["progress"] >= 0
        door.notify("notifications/cancelled", {"requestId": id})
        listed = door.do("search_history", limit=1)
        assert listed["executions"] and id not in door.answers
        door.until(lambda: door.answers or True, 1)
        end = time.monotonic() + 20
        while door.do("search_history", limit=1)["executions"][0]["status"] != "cancelled":
            assert time.monotonic() < end
            time.sleep(0.05)
        assert id not in door.answers
        assert door.close() == 0


def test_many_at_a_time(alone):
    """Answers come as they are ready, not in the order of the requests."""
    door = StdioDoor(alone[0])
    slow = door.start("tools/call", {"name": "execute_code", "arguments": {"language": "bash", "code": "sleep 1; echo slow"}})
    quick = [door.start("tools/call", {"name": "execute_code", "arguments": {"language": "python", "code": f"print({i})"}}) for i in range(4)]
    assert [door.result(id)["structuredContent"]["stdout"] for id in quick] == [f"{i}\n" for i in range(4)]
    assert slow not in door.answers
    assert door.result(slow)["structuredContent"]["stdout"] == "slow\n"
    assert door.close() == 0


def test_long_lines(alone):
    """A message of megabytes in, a result of megabytes out."""
    door = StdioDoor(alone[0])
    data = "x" * (3 << 20)
    session = door.do("create_session", language="python")["session_id"]
    assert door.do("write_file", session_id=session, path="big", content=data)["size"] == len(data)
    value = door.do("run_in_session", session_id=session, code="len(open('big').read())")["value"]
    assert value == str(len(data))
    assert door.close() == 0


def test_what_is_no_message(alone):
    """Empty lines and CRLF are passed over; garbage is answered, and the next message still works."""
    door = StdioDoor(alone[0])
    door.send(b"")
    door.send(b"   ")
    door.send(b"not json")
    assert door.until(lambda: door.answers.pop(None, None))[0]["error"]["code"] == -32700
    door.send(b'{"jsonrpc": "2.0", "id": 1, "method"')
    assert door.until(lambda: door.answers.pop(None, None))[0]["error"]["code"] == -32700
    door.send(b"\xff\xfe")
    assert door.until(lambda: door.answers.pop(None, None))[0]["error"]["code"] == -32700
    door.send(json.dumps(door.message("tools/list", id=77)).encode() + b"\r")
    assert door.result(77)["tools"]
    assert door.close() == 0


@pytest.mark.parametrize("victim", ["monitor", "front"])
def test_private_daemon_is_killed(alone, victim):
    """The daemon dies: one sentence on stderr that says so, an exit code of Atoll's own, and nothing left."""
    atoll, runtime, _ = alone
    door = StdioDoor(atoll)
    door.do("execute_code", language="python", code="1")
    family = atoll_processes(door.popen.pid)
    names = {pid: open(f"/proc/{pid}/comm").read().strip() for pid in family}
    os.kill(min(pid for pid, name in names.items() if name == {"monitor": "atoll", "front": "atolld"}[victim]), signal.SIGKILL)
    try:
        code = door.popen.wait(20)
    except subprocess.TimeoutExpired:
        door.popen.kill()
        raise
    door.reader.join(10)
    door.errors.join(10)
    said = b"".join(door.err).decode()
    assert code == 125 and said.startswith("atoll: ") and "daemon" in said and said.count("\n") == 1, (code, said)
    for stream in (door.popen.stdin, door.popen.stdout, door.popen.stderr):
        stream.close()
    assert [p for p in runtime.rglob("*") if not p.is_dir()] == [], list(runtime.rglob("*"))


def test_bridge_is_killed(alone):
    """Its daemon sees the end and leaves too, and the next one is not disturbed by what was left."""
    atoll, runtime, _ = alone
    door = StdioDoor(atoll)
    door.do("create_session", language="python")
    family = atoll_processes(door.popen.pid)
    door.popen.kill()
    door.popen.wait()
    end = time.monotonic() + 20
    while any(os.path.exists(f"/proc/{pid}") for pid in family):
        assert time.monotonic() < end, [open(f"/proc/{p}/cmdline").read() for p in family if os.path.exists(f"/proc/{p}")]
        time.sleep(0.05)
    for stream in (door.popen.stdin, door.popen.stdout, door.popen.stderr):
        stream.close()
    second = StdioDoor(atoll)
    assert second.do("execute_code", language="python", code="print(2)")["stdout"] == "2\n"
    assert second.close() == 0


def test_daemon_that_runs(served, bridge):
    """It is used, and outlives the bridge with its sessions."""
    door = StdioDoor(bridge)
    session = door.do("create_session", language="python")["session_id"]
    door.do("run_in_session", session_id=session, code="x = 41")
    assert atoll_processes(door.popen.pid) == [] or len(atoll_processes(door.popen.pid)) == 0
    assert door.close() == 0
    second = StdioDoor(bridge, LEGACY[0])
    assert second.do("run_in_session", session_id=session, code="x + 1")["value"] == "42"
    second.do("close_session", session_id=session)
    assert second.close() == 0
    own = StdioDoor(bridge, words=("mcp", "--no-daemon"))
    assert own.call("run_in_session", session_id=session, code="1")["isError"]
    assert own.close() == 0


def test_named_daemon_is_not_there(atoll, work):
    """A daemon that was asked for by name is not replaced by another one."""
    done = atoll.variant(env={"ATOLL_URL": str(work / "none.sock")}).run(["mcp"])
    assert done.returncode == 125 and done.stdout == b"" and "none.sock" in done.err, done


def test_stdout_that_is_closed(alone):
    """A client that has died reads no more: no crash, no process that stays."""
    popen = alone[0].popen(["mcp"])
    popen.stdout.close()
    popen.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode() + b"\n")
    popen.stdin.close()
    assert popen.wait(20) in (0, 125)
    popen.stderr.close()


def test_another_directory_and_bare_environment(stage, mode, work):
    """Clients start it anywhere, with little more than HOME and PATH."""
    plain = Atoll(mode, stage)
    env = {key: value for key, value in plain.environment(PRIVATE).items() if key in ("PATH", "HOME", "ATOLL_URL", "ATOLL_DATA_DIR", "LD_LIBRARY_PATH")}
    popen = subprocess.Popen(plain.command([plain.binary, "mcp"]), env=env, cwd="/", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": LEGACY[0], "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}}
    out, err = popen.communicate(json.dumps(hello).encode() + b"\n", timeout=30)
    assert popen.returncode == 0 and err == b"" and json.loads(out)["result"]["serverInfo"]["name"] == "atoll", (out, err)
