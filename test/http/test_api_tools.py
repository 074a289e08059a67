# SPDX-License-Identifier: Apache-2.0
"""The tool execute_code of Codomyrmex over HTTP: its fields, its texts and session ids, by both routes."""
import json

import pytest

from resident import wait_until

FIELDS = ["stdout", "stderr", "exit_code", "execution_time", "status", "error_message", "execution_id", "cause"]


def call(web, language, code, **more):
    arguments = {"language": language, "code": code, **more}
    answer = web.post("/v1/tools/execute_code", arguments)
    assert answer.status == 200 and list(answer.json()) == FIELDS, answer
    return answer.json()


@pytest.mark.quick
def test_fields_and_texts(web):
    good = call(web, "python", "import sys\nprint(sys.stdin.read(), __file__)", stdin="in")
    assert (good["stdout"], good["exit_code"], good["status"], good["error_message"]) == ("in /sandbox/code.py\n", 0, "success", None)
    assert good["execution_time"] == round(good["execution_time"], 3) and good["execution_id"].startswith("ex_")
    bad = call(web, "bash", "echo out; exit 3")
    assert (bad["stdout"], bad["exit_code"], bad["status"], bad["error_message"]) == ("out\n", 3, "execution_error", "Code execution resulted in an error.")
    slow = call(web, "bash", "echo begun; sleep 9", timeout=0)
    assert (slow["stdout"], slow["exit_code"], slow["status"], slow["error_message"]) == ("begun\n", -1, "timeout", "Execution timed out after 1 seconds.")
    unknown = call(web, "Python", "")
    assert unknown["stderr"] == "Unsupported language: Python" and unknown["execution_time"] == 0 and unknown["exit_code"] == -1
    assert unknown["error_message"].startswith("Language 'Python' is not supported. Supported languages: python, javascript, bash, "), unknown
    empty = call(web, "python", "")
    assert (empty["stderr"], empty["error_message"]) == ("No code provided or invalid code format", "Code must be a non-empty string")
    refused = call(web, "python", "1", files=3)
    assert refused["status"] == "setup_error" and refused["error_message"].startswith("Sandbox execution failed: files: "), refused


def test_output_before_a_timeout(web):
    """The example of its document: no flush, and the lines are there; in a session, too."""
    code = "import time\nwhile True:\n    print('Still running...')\n    time.sleep(0.3)"
    for more in ({}, {"session_id": "timeout"}, {"env": {"A": "b"}}):
        slow = call(web, "python", code, timeout=1, **more)
        assert slow["status"] == "timeout" and slow["stdout"].startswith("Still running...\nStill running...\n"), slow
    assert call(web, "python", code, timeout=1, env={"PYTHONUNBUFFERED": ""})["stdout"] == ""


def test_session_ids(web):
    """State is kept for each language and id; what is no id is ignored; a language without sessions runs as without an id."""
    assert call(web, "python", "x = 5", session_id="one")["status"] == "success"
    assert call(web, "python", "print(x)", session_id="one")["stdout"] == "5\n"
    for session_id in ("two", "o ne", "", 7, None):
        assert "NameError" in call(web, "python", "print(x)", session_id=session_id)["stderr"]
    compiled = call(web, "c", "int main(){return 4;}", session_id="one")
    assert compiled["exit_code"] == 4, compiled


def test_limits_of_the_tool(web):
    killed = call(web, "python", "print(len(b'x' * (300 << 20)))")
    assert killed["status"] == "execution_error" and killed["exit_code"] in (1, 137), killed
    long = call(web, "python", "print('ä' * 100001)")
    assert long["stdout"] == "ä" * 100000 + "\n... [Output truncated due to size limits]"


def test_envelope(web):
    answer = web.post("/v1/tools/call", {"tool_name": "execute_code", "arguments": {"language": "python", "code": "print(6 * 7)"}})
    assert answer.status == 200 and list(answer.json()) == FIELDS and answer.json()["stdout"] == "42\n"
    for wrong in ({}, {"tool_name": "other", "arguments": {}}):
        answer = web.post("/v1/tools/call", wrong)
        assert answer.status == 400 and answer.json()["field"] == "tool_name", answer


def test_disconnect(web):
    """The program of a client that goes ends with it where the client asked for that."""
    def listed(query):
        return web.get("/v1/executions?" + query).json()["executions"]

    connection = web.connect()
    connection.request("POST", "/v1/tools/execute_code?disconnect=cancel", json.dumps({"language": "bash", "code": "sleep 25"}),
                       {"Content-Type": "application/json"})
    wait_until(lambda: listed("status=running"), why="it is not listed")
    name = listed("status=running")[0]["id"]
    connection.close()
    wait_until(lambda: listed("ids=" + name)[0]["status"] == "cancelled", why="it runs on")
    answer = web.post("/v1/tools/execute_code?disconnect=maybe", {"language": "python", "code": "1"})
    assert answer.status == 400 and answer.json()["field"] == "disconnect", answer
