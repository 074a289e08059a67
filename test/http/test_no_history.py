# SPDX-License-Identifier: Apache-2.0
"""`"history": false`: nothing of the execution is stored, not for a moment, and not when the daemon dies."""
import json
import signal

import pytest

from daemon import Daemon
from resident import wait_until
from web import Web, output, problem

pytestmark = pytest.mark.quick
SECRET = "a-word-that-is-nowhere-else"
# More than fits into memory, written in two parts, with a file beside it.
CODE = f"import sys\nopen('kept.txt', 'w').write('{SECRET}')\nfor i in range(60000): print('{SECRET}', i)\nsys.stdout.flush()\n"


def found(state):
    """Files below the state directory that hold the secret, and files of outputs or results. The broker's socket is none."""
    def holds(path):
        try:
            return SECRET.encode() in path.read_bytes()
        except FileNotFoundError:  # the daemon is at work
            return False

    files = [path for path in state.rglob("*") if path.is_file() and not path.is_symlink()]
    return [path for path in files if path.parts[-3] in ("outputs", "files") or holds(path)]


def test_nothing_is_stored(served, web):
    result = web.post("/v1/execute", {"language": "python", "code": CODE, "history": False}).json()
    assert result["status"] == "success" and result["history"] is False and result["stdout_bytes"] > 1 << 20
    assert [file["path"] for file in result["files"]] == ["kept.txt"]
    for path in ("", "/stdout", "/files/kept.txt", "/events", "/request"):
        assert web.get(f"/v1/executions/{result['id']}{path}").status == 404, path
    assert web.get("/v1/executions").json()["executions"] == [] and found(served.daemon.state) == []
    # Nor is what a compiler made of it, or said of it.
    for code, status in ((f'int puts(const char *); int main() {{ puts("{SECRET}"); }}', "success"), (f"int main() {{ {SECRET} }}", "error")):
        result = web.post("/v1/execute", {"language": "c", "code": code, "history": False}).json()
        assert result["status"] == status and result["history"] is False and found(served.daemon.state) == []
    assert "history" not in web.execute("bash", "true") and "history" not in web.execute("bash", "true", history=True)


def test_it_can_be_followed_and_ended(served, web):
    """While it runs it is there by its id, and only there."""
    connection = web.connect()
    body = {"language": "python", "code": CODE + "input()", "history": False}
    response = web.begin(connection, "POST", "/v1/execute?interactive=true", body, {"Accept": "application/x-ndjson"})
    id = response.headers["content-location"].split("/")[-1]
    wait_until(lambda: web.get(f"/v1/executions/{id}/stdout").body.count(b"\n") == 60000, why="its output does not come")
    before = [row["id"] for row in web.get("/v1/executions").json()["executions"]]
    assert id not in before and web.get(f"/v1/executions/{id}").json()["status"] == "running"
    assert found(served.daemon.state) == []
    assert web.delete(f"/v1/executions/{id}").json()["cancelled"]
    events = [json.loads(line) for line in response.read().splitlines()]
    connection.close()
    # Its reader comes late, and gets all of it from a file that has no name.
    assert output(events).count("\n") == 60000
    assert events[-1]["data"]["status"] == "cancelled" and events[-1]["data"]["history"] is False
    assert web.get(f"/v1/executions/{id}").status == 404 and found(served.daemon.state) == []


def test_what_needs_a_record_is_refused(web):
    body = {"language": "bash", "code": "true", "history": False}
    assert "POST /v1/execute" in problem(web.post("/v1/executions", body), 400, "invalid_field", "history")
    key = {"Idempotency-Key": "one"}
    assert "Idempotency-Key" in problem(web.post("/v1/execute", body, headers=key), 400, "invalid_field", "history")
    problem(web.post("/v1/execute", {**body, "history": "no"}), 400, "invalid_field", "history")


def test_a_killed_daemon_leaves_nothing(atoll, work):
    daemon = Daemon(atoll, work)
    web = Web(daemon.host, daemon.port)
    connection = web.connect()
    response = web.begin(connection, "POST", "/v1/execute", {"language": "python", "code": CODE + "import time; time.sleep(60)", "history": False},
                         {"Accept": "application/x-ndjson"})
    while SECRET not in response.readline().decode():
        pass
    daemon.end(signal.SIGKILL)
    connection.close()
    assert found(daemon.state) == []
    again = Daemon(atoll, work)
    web = Web(again.host, again.port)
    assert web.get("/v1/executions").json()["executions"] == [] and found(again.state) == []
    web.execute("python", CODE)
    assert len(found(again.state)) >= 3, "what is stored is not found"
    again.end()


def test_from_the_command_line(served):
    """A run of its own, which leaves the daemon alone."""
    cli = served.daemon.atoll.variant(env={"ATOLL_URL": str(served.daemon.socket)})
    before = cli.run(["history", "list", "--json"]).json()
    done = cli.run(["run", "--no-history", "--json", "-l", "python", "-c", CODE])
    assert done.json()["history"] is False and done.json()["via"] == "direct"
    assert cli.run(["run", "--no-history", "-l", "bash", "-c", r"printf '\377'; cat"], input="hi").stdout == b"\xffhi"
    assert cli.run(["history", "list", "--json"]).json() == before and found(served.daemon.state) == []
