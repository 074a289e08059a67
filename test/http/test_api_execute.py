# SPDX-License-Identifier: Apache-2.0
"""POST /execute over the real daemon: the NeMo Agent Toolkit and PC-Agent-Claw (doc/http.md)."""
import json
import os
import socket
import threading
import time

import pytest

from program import Atoll
from web import Served

quick = pytest.mark.quick


def call(web, code, timeout=10, **more):
    """The NeMo Agent Toolkit's answer; always 200 and always these three."""
    answer = web.post("/execute", {"generated_code": code, "timeout": timeout, **more}, timeout=60)
    assert answer.status == 200 and answer.headers["content-type"] == "application/json", answer
    body = answer.json()
    assert list(body) == ["process_status", "stdout", "stderr"], body
    return body["process_status"], body["stdout"], body["stderr"]


@quick
def test_it_runs(web):
    assert call(web, "print('Hello')") == ("completed", "Hello\n", "")
    assert call(web, "print(1)", language="python") == ("completed", "1\n", "")
    assert call(web, "```python\nprint(2)\n```") == ("completed", "2\n", "")
    assert call(web, "{'generated_code': 'print(3)'}") == ("completed", "3\n", "")
    assert call(web, "import sys; sys.exit(0)")[0] == "completed"
    status, out, err = call(web, "print('before')\n1/0")
    assert status == "error" and out == "before\n" and err.startswith("Traceback") and "ZeroDivisionError" in err
    assert call(web, "import sys; sys.exit(2)")[0] == "error"
    assert call(web, "print(input())", std_input="typed\n") == ("completed", "typed\n", "")
    assert call(web, "print('abcdef')", max_output_characters=3) == ("completed", "abc<output cut>", "")


@quick
@pytest.mark.undisturbed
def test_timeouts(web):
    assert call(web, "print(1)", timeout=0) == ("timeout", "", "Timed out\n")
    call(web, "1")
    begin = time.monotonic()
    assert call(web, "print('partial', flush=True)\nwhile True: pass", timeout=0.5) == ("timeout", "", "Timed out\n")
    took = time.monotonic() - begin
    assert 0.5 <= took < 1.3, took


@quick
def test_other_languages(web):
    assert call(web, "puts 1", language="ruby") == ("error", "", "Only python execution is supported")
    assert call(web, "print(1)", language="Python") == ("error", "", "Only python execution is supported")


@quick
@pytest.mark.parametrize("kind, body, text", [
    ("text/plain", b"{}", "Request must be JSON"),
    (None, b"", "Request must be JSON"),
    ("application/json", b"", "Invalid JSON data"),
    ("application/json", b"null", "Invalid JSON data"),
    ("application/json", b"{nope", "Invalid JSON data"),
    ("application/json", b"{}", "Missing required field: generated_code"),
    ("application/json", b"[1]", "Missing required field: generated_code"),
    ("application/json", b'{"generated_code": "1"}', "Missing required field: timeout"),
    ("application/json", b'{"generated_code": "1", "timeout": "x"}', "Invalid timeout"),
    ("application/json", b'{"generated_code": "1", "timeout": NaN}', "Invalid timeout"),
    ("application/json", b'{"generated_code": 1, "timeout": 1}', "Invalid generated_code"),
])
def test_its_own_errors(web, kind, body, text):
    answer = web.ask("POST", "/execute", body, {"Content-Type": kind} if kind else {})
    assert answer.status == 400, answer
    assert answer.json() == {"process_status": "error", "stdout": "", "stderr": text}


@quick
def test_too_much_json(web):
    answer = web.ask("POST", "/execute", b"[" + b"0," * 400000 + b"0]", {"Content-Type": "application/json"})
    assert answer.status == 400 and answer.json()["stderr"] == "Invalid JSON data"


@quick
def test_methods_and_headers(web):
    for method in ("GET", "PUT", "DELETE"):
        assert web.ask(method, "/execute").status == 405
    options = web.ask("OPTIONS", "/execute")
    assert options.status == 200 and "POST" in options.headers["allow"]
    assert not [name for name in options.headers if name.startswith("access-control")]
    assert web.get("/nowhere").status == 404
    old = {"strict-transport-security": "max-age=31536000; includeSubDomains", "x-xss-protection": "1; mode=block"}
    elsewhere = (web.get("/"), web.get("/nowhere"), web.get("/v1/limits"))
    for answer in (options, web.get("/execute"), web.post("/execute", {}), *elsewhere):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "SAMEORIGIN"
        assert {name: answer.headers.get(name) for name in old} == (dict.fromkeys(old) if answer in elsewhere else old)


@quick
def test_the_shared_workspace(web):
    assert call(web, "import os; print(os.getcwd())")[1] == "/workspace\n"
    assert call(web, "open('note', 'w').write('kept')\nvariable = 1")[0] == "completed"
    assert call(web, "print(open('/workspace/note').read())") == ("completed", "kept\n", "")
    assert "NameError" in call(web, "variable")[2]
    assert call(web, "import os; os.remove('note')")[0] == "completed"


def test_output_data_path(mode, stage):
    work = stage.scratch(mode, "output")
    served = Served(Atoll(mode, stage), work, env={"OUTPUT_DATA_PATH": str(work / "data")})
    try:
        assert call(served.web, "open('made.txt', 'w').write('here')")[0] == "completed"
        assert (work / "data" / "made.txt").read_text() == "here"
    finally:
        served.end()


@quick
def test_document_001(web):
    answer = web.post("/execute", {"code": "print('x')", "language": "python"}).json()
    assert answer["success"] and answer["stdout"] == answer["output"] == "x\n" and answer["exit_code"] == 0
    assert set(answer) == {"success", "stdout", "stderr", "output", "error", "exit_code", "time"}
    answer = web.post("/execute", {"code": "echo $((6*7))", "language": "bash"}).json()
    assert answer["stdout"] == "42\n", answer
    answer = web.post("/execute", {"code": "x", "language": "cobol"}).json()
    assert not answer["success"] and answer["error"].startswith("Unsupported language: cobol. Supported:"), answer


@quick
def test_a_megabyte(web):
    status, out, _ = call(web, "print('y' * (1 << 20))")
    assert status == "completed" and len(out) == (1 << 20) + 1


def test_many_megabytes(web):
    """What is made of a large result on the worker is the same; a client that goes meanwhile does not matter."""
    code = "import sys\nfor s in sys.stdout, sys.stderr: s.write('\\x01\\u20ac\\n' * 800000)"
    sock = socket.create_connection((web.host, web.port))
    text = json.dumps({"generated_code": code, "timeout": 30}).encode()
    sock.sendall(b"POST /execute HTTP/1.1\r\nHost: %s:%d\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                 % (web.host.encode(), web.port, len(text)) + text)
    sock.recv(1)
    sock.close()
    expected = "\x01\u20ac\n" * 800000
    assert call(web, code, timeout=30) == ("completed", expected, expected)
    cut = "\x01\u20ac\n\x01<output cut>"
    assert call(web, code, timeout=30, max_output_characters=4) == ("completed", cut, cut)


@quick
def test_session_header_keeps_the_state(web):
    """Variables are kept for each id, also over a timeout; another id and a request without one know nothing of them."""
    def ask(code, session, timeout=10, **more):
        headers = {"Content-Type": "application/json", **({"X-Session-ID": session} if session else {})}
        answer = web.ask("POST", "/execute", json.dumps({"generated_code": code, "timeout": timeout, **more}).encode(), headers)
        body = answer.json()
        assert list(body) == ["process_status", "stdout", "stderr"], body
        return answer.status, body["process_status"], body["stdout"], body["stderr"]

    assert ask("x = 20", "abc") == (200, "completed", "", "")
    assert ask("while True: pass", "abc", 0.3) == (200, "timeout", "", "Timed out\n")
    assert ask("print(x + 1)", "abc") == (200, "completed", "21\n", "")
    for other in ("abd", None):
        status, word, out, err = ask("print(x)", other)
        assert (status, word, out) == (200, "error", "") and err.endswith("NameError: name 'x' is not defined\n"), err
    assert ask("x", "abc", std_input="1")[1::2] == ("error", "std_input cannot be given with X-Session-ID")
    for bad in ("a" * 65, "a b"):
        assert ask("x", bad)[::3] == (400, "X-Session-ID: give 1 to 64 visible ASCII characters")


@quick
def test_modules_of_the_working_directory(web):
    """It comes first, also for a runtime that waited and for one that starts anew (a file there shadows a module)."""
    code = "import sys\nprint(sys.path[0], sys.path.count('/sandbox'))\nopen('own.py', 'w').write('who = 5')\nimport own, json\nprint(own.who, json.__file__[:8])"
    assert call(web, code) == ("completed", "/workspace 1\n5 /usr/lib\n", "")
    assert call(web, "open('json.py', 'w').write('who = 6')")[0] == "completed"
    assert call(web, "import own, json, os\nprint(own.who, json.who)\nos.remove('json.py')") == ("completed", "5 6\n", "")
    assert call(web, "import own, sys, os\nprint(own.__file__, sys.argv, __file__)\nos.remove('own.py')") == \
        ("completed", "/workspace/own.py ['/sandbox/main.py'] /sandbox/main.py\n", "")


@quick
@pytest.mark.parametrize("code, line, kind", [("print('x'", 1, "SyntaxError"), ("x = 1\nif x:\nprint(x)", 3, "IndentationError"),
                                              ("if 1 is 1: pass\n)", 2, "SyntaxError")])
def test_syntax_errors_open_as_others(web, code, line, kind):
    status, out, err = call(web, code)
    assert (status, out) == ("error", "") and f"{kind}: " in err.splitlines()[-1]
    assert err.split("SyntaxWarning", 1)[0].startswith(("Traceback", "/sandbox")) and \
        f'Traceback (most recent call last):\n  File "/sandbox/main.py", line {line}\n' in err, err
    inside = call(web, "compile('(', 'x', 'exec')")[2]
    assert inside.count("Traceback (most recent call last):") == 1


@quick
def test_nul_is_an_error(web):
    text = ('Traceback (most recent call last):\n  File "/sandbox/main.py", line 2\n'
            "SyntaxError: source code cannot contain null bytes\n")
    assert call(web, "print(1)\n# a\0b") == ("error", "", text)
    assert call(web, "```python\nprint(1)\nprint('\0')\n```") == ("error", "", text)
    answer = web.post("/execute", {"code": "echo 1\necho \0", "language": "bash"}).json()
    assert not answer["success"] and "NUL" in answer["error"] and answer["exit_code"] == -1


def test_memory(web):
    status, _, err = call(web, "x = bytearray(400 << 20); print(len(x))")
    assert status == "completed", err


@pytest.mark.undisturbed
def test_many_at_once(web):
    """The whole pool, not one at a time."""
    call(web, "1")
    results = []
    begin = time.monotonic()
    threads = [threading.Thread(target=lambda: results.append(call(web, "import time; time.sleep(1.5); print(1)")[1]))
               for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == ["1\n"] * 4 and time.monotonic() - begin < 5


def test_two_hundred_at_once(web):
    """They wait for their turn: clients of this interface do not know 429. Requests of /v1 keep their own bounds meanwhile."""
    results = []
    threads = [threading.Thread(target=lambda: results.append(call(web, "print(1)", timeout=50))) for _ in range(200)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == [("completed", "1\n", "")] * 200, [r for r in results if r[0] != "completed"][:3]


@pytest.mark.parametrize("seconds,code", [
    (1, "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"),
    (3, "x = bytearray(b'x') * (2 << 30)\nimport time; time.sleep(60)"),
    (1, "import time\nprint('partly', flush=True)\ntime.sleep(60)"),
], ids=["forks", "memory", "sleeps"])
@pytest.mark.undisturbed
def test_answered_at_the_deadline(served, web, seconds, code):
    """However long its sandbox takes to go; its row has the end once it is gone."""
    known = {row["id"] for row in web.get("/v1/executions?limit=50").json()["executions"]}
    brokers = served.daemon.brokers()
    begin = time.monotonic()
    answer = call(web, code, timeout=seconds)
    taken = time.monotonic() - begin
    assert answer == ("timeout", "", "Timed out\n") and seconds <= taken < seconds + 0.8, (answer, taken)
    rows = [row for row in web.get("/v1/executions?limit=50").json()["executions"] if row["id"] not in known]
    assert len(rows) == 1, rows
    assert web.wait(rows[0]["id"])["status"] == "timeout"
    assert call(web, "print(1)", timeout=20) == ("completed", "1\n", "") and served.daemon.brokers() == brokers


def test_all_languages(mode, stage):
    served = Served(Atoll(mode, stage), stage.scratch(mode, "all"), "--execute-languages", "all")
    try:
        assert call(served.web, "echo hi", language="bash") == ("completed", "hi\n", "")
        assert call(served.web, "x", language="cobol") == ("error", "", "Unsupported language: cobol")
    finally:
        served.end()


def test_a_refused_commit_is_told(mode, stage):
    """The program ended well, and its files are lost: the answer must say so, and why."""
    served = Served(Atoll(mode, stage), stage.scratch(mode, "quota"), env={"ATOLL_WORKSPACES_BYTES": "1m"})
    try:
        status, out, err = call(served.web, "open('large', 'wb').write(bytes(3 << 20))\nprint('written')")
        assert (status, out) == ("completed", "written\n"), (status, out, err)
        assert len(err.splitlines()) == 1 and err.startswith("Nothing was kept in the workspace: ") and "workspaces.bytes" in err, err
        assert call(served.web, "import os; print(os.listdir())") == ("completed", "[]\n", "")
    finally:
        served.end()


def test_refusals_have_its_fields(mode, stage):
    """A refusal has the three fields of a result: clients of this interface read nothing else."""
    work = stage.scratch(mode, "tokens")
    (work / "tokens").write_text("hidden-word-of-32-characters-0001\n")
    (work / "tokens").chmod(0o600)
    os.chown(work / "tokens", work.stat().st_uid, -1)
    served = Served(Atoll(mode, stage), work, "--token-file", str(work / "tokens"))
    try:
        served.web.token = None
        answer = served.web.post("/execute", {"generated_code": "print(1)", "timeout": 5})
        body = answer.json()
        assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer"), answer
        assert list(body) == ["process_status", "stdout", "stderr"] and body["stdout"] == "", body
        assert body["process_status"] == "error" and "token" in body["stderr"].lower(), body
        served.web.token = "hidden-word-of-32-characters-0001"
        assert call(served.web, "print(1)") == ("completed", "1\n", "")
        large = served.web.ask("POST", "/execute", headers={"Content-Type": "application/json", "Content-Length": str(1 << 30)})
        assert large.status == 413 and list(large.json()) == ["process_status", "stdout", "stderr"], large
    finally:
        served.end()
