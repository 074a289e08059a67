# SPDX-License-Identifier: Apache-2.0
"""Sessions over HTTP: what executions find and answer, and how a session ends (doc/http.md)."""
import hashlib
import base64
import re
import time

import pytest

from live import Session
from program import MODES
from resident import wait_until
from web import problem

# The front is the same program in both modes; what a sandbox is made of is tested in test_session_attacks.py.
pytestmark = pytest.mark.modes(MODES[0])
quick = pytest.mark.quick
ID = re.compile(r"se_[0-9a-z]{26}")


@pytest.fixture
def session(web):
    """A session of the test's own."""
    with Session(web) as session:
        yield session


# --------------------------------------------------------------------------------- creating, listing


@quick
def test_a_life(web):
    answer = web.post("/v1/sessions", {"language": "py", "labels": {"a": "b"}, "idle_timeout": 60, "name": "one", "limits": {"timeout": 5}})
    assert answer.status == 201, answer
    made = answer.json()
    path = answer.headers["location"]
    assert ID.fullmatch(made["id"]) and path == f"/v1/sessions/{made['id']}", made
    assert (made["language"], made["state"], made["executions"], made["labels"], made["name"], made["parent"]) == \
        ("python", "idle", 0, {"a": "b"}, "one", None), made
    assert made["idle_timeout"] == 60 and made["limits"]["timeout"] == 5 and made["isolation"]["tier"], made
    assert made["created_at"] < made["expires_at"]
    assert web.post(f"{path}/execute", {"code": "x = 20"}).json()["value"] is None
    assert web.post(f"{path}/execute", {"code": "x + 22"}).json()["value"] == 42
    shown = web.get(path).json()
    assert shown["executions"] == 2 and shown["state"] == "idle" and shown["waiting"] == 0, shown
    assert made["id"] in [s["id"] for s in web.get("/v1/sessions").json()["sessions"]]
    problem(web.post("/v1/sessions", {"language": "python", "name": "one"}), 422, field="name")
    assert web.delete(path).status == 204
    assert made["id"] not in [s["id"] for s in web.get("/v1/sessions").json()["sessions"]]
    for ask in (lambda: web.get(path), lambda: web.delete(path), lambda: web.post(f"{path}/execute", {"code": "1"}),
                lambda: web.post(f"{path}/interrupt"), lambda: web.post(f"{path}/reset"), lambda: web.get(f"{path}/logs"),
                lambda: web.get(f"{path}/files"), lambda: web.post(f"{path}/calls/1", {"result": 1})):
        problem(ask(), 404, "not_found")


@pytest.mark.parametrize("body, status, field", [
    ({"language": "klingon"}, 400, None),
    ({"language": "c"}, 400, "language"),
    ({"language": 7}, 400, "language"),
    ([], 400, None),
    ({"language": "python", "code": "1"}, 400, "code"),
    ({"language": "python", "colour": 1}, 400, "colour"),
    ({"language": "python", "idle_timeout": 0}, 400, "idle_timeout"),
    ({"language": "python", "idle_timeout": 86401}, 400, "idle_timeout"),
    ({"language": "python", "idle_timeout": "long"}, 400, "idle_timeout"),
    ({"language": "python", "name": ""}, 400, "name"),
    ({"language": "python", "name": "x" * 97}, 400, "name"),
    ({"language": "python", "name": "a\0b"}, 400, "name"),
    ({"language": "python", "name": 5}, 400, "name"),
    ({"language": "python", "host_functions": "f"}, 400, "host_functions"),
    ({"language": "python", "host_functions": ["a b"]}, 400, "host_functions"),
    ({"language": "python", "host_functions": ["1a"]}, 400, "host_functions"),
    ({"language": "python", "host_functions": [1]}, 400, "host_functions"),
    ({"language": "python", "host_functions": ["a\0b"]}, 400, "host_functions"),
    ({"language": "python", "host_functions": ["f"] * 101}, 400, "host_functions"),
    ({"language": "python", "rules": 1}, 400, "rules"),
    ({"language": "python", "rules": {"filesytem": False}}, 400, "rules.filesytem"),
    ({"language": "python", "rules": {"filesystem": "no"}}, 400, "rules.filesystem"),
    ({"language": "python", "rules": {"imports": ["os"]}}, 400, "rules.imports"),
    ({"language": "python", "rules": {"imports": {"alow": ["os"]}}}, 400, "rules.imports"),
    ({"language": "python", "rules": {"imports": {"allow": "os"}}}, 400, "rules.imports.allow"),
    ({"language": "python", "rules": {"imports": {"deny": [1]}}}, 400, "rules.imports.deny"),
    ({"language": "ruby", "rules": {"filesystem": False}}, 400, "rules"),
    ({"language": "python", "limits": {"memory": "100g"}}, 400, "limits.memory"),
    ({"language": "python", "limits": {"memroy": 1}}, 400, "limits.memroy"),
    ({"language": "python", "limits": 3}, 400, "limits"),
    ({"language": "python", "files": {"../x": "y"}}, 400, None),
    ({"language": "python", "env": {"A": 1}}, 400, None),
    ({"language": "python", "labels": {"a=b": "c"}}, 400, "labels.a=b"),
    ({"language": "python", "network": "host"}, 403, None),
    ({"language": "python", "policy": "nobody-wrote-it"}, 400, None),
])
def test_bodies_that_make_no_session(web, body, status, field):
    detail = problem(web.post("/v1/sessions", body), status, field=field)
    assert len(detail) < 300 and not re.search(r"/(var|home|root|proc|work)/|\n", detail), detail


def test_a_limit_outside_of_limits(web):
    detail = problem(web.post("/v1/sessions", {"language": "python", "timeout": 5}), 400, field="timeout")
    assert detail == "timeout: a session has no such key; did you mean 'limits.timeout'?"


@pytest.mark.parametrize("body, field", [
    ({}, "code"),
    ({"code": 7}, "code"),
    ({"code": None}, "code"),
    ({"code": "1", "language": "python"}, "language"),
    ({"code": "1", "stdin": 3}, "stdin"),
    ({"code": "1", "limits": 1}, "limits"),
    ({"code": "1", "limits": {"timeout": 0}}, "limits.timeout"),
    ({"code": "1", "limits": {"timeout": "1y"}}, "limits.timeout"),
    ({"code": "1", "limits": {"colour": 1}}, "limits.colour"),
    ({"code": "1", "limits": {"memory": "64m"}}, "limits.memory"),
    ({"code": "1", "limits": {"pids": 5}}, "limits.pids"),
    ({"code": "1", "host_functions": {"f": 1}}, "host_functions"),
    ({"code": "1", "host_functions": ["f-g"]}, "host_functions"),
    ({"code": "1", "globals": [1]}, "globals"),
    ({"code": "1", "labels": {"a": 1}}, "labels.a"),
    ({"code": "1", "labels": []}, "labels"),
    ([], None),
    ("1", None),
])
def test_bodies_that_are_no_execution(kept, body, field):
    before = kept.show()["executions"]
    detail = problem(kept.web.post(f"{kept.path}/execute", body), 400, field=field)
    assert len(detail) < 300 and "\n" not in detail, detail
    assert kept.show()["executions"] == before


def test_bodies_that_are_no_json(kept):
    for path in ("", f"/{kept.id}/execute", f"/{kept.id}/calls/1"):
        path = f"/v1/sessions{path}"
        problem(kept.web.ask("POST", path, b'{"code": "1"}', {"Content-Type": "text/plain"}), 415)
        problem(kept.web.ask("POST", path, b"{", {"Content-Type": "application/json"}), 400, "invalid_json")
    problem(kept.web.ask("PATCH", kept.path), 405)


# ------------------------------------------------------------------------------------------- results


@quick
def test_state_between_executions(session):
    session.run("import math\nclass A:\n    n = 5\ndef f(x): return x * A.n\nitems = []")
    session.run("items.append(f(2)); A.n = 7")
    assert session.value("items.append(f(2)); items") == [10, 14]
    assert session.value("math.floor(2.5), __name__") == {"$tuple": [2, "__main__"]}
    session.run("import os; os.chdir('/tmp'); os.environ['SEEN'] = '1'; gen = iter(range(3)); next(gen)")
    assert session.value("return [os.getcwd(), os.environ['SEEN'], next(gen)]") == ["/tmp", "1", 1]


@pytest.mark.parametrize("code, value, kind", [
    ("", None, "NoneType"), ("x = 1", None, "NoneType"), ("None", None, "NoneType"), ("1", 1, "int"), ("'é\\0'", "é\0", "str"),
    ("return 3\nprint('not reached')", 3, "int"), ("import asyncio\nawait asyncio.sleep(0, 'late')", "late", "str"),
    ("if 1:\n    return {'a': [1.5, True, None]}", {"a": [1.5, True, None]}, "dict"), ("{1: 2}", {"$dict": [[1, 2]]}, "dict"),
    ("b'x'", {"$bytes": "eA=="}, "bytes"), ("{4}", {"$set": [4]}, "set"), ("float('nan')", {"$float": "nan"}, "float"),
    ("2**70", {"$int": str(2**70)}, "int"), ("1j", {"$complex": [0.0, 1.0]}, "complex"),
    ("from decimal import Decimal\nDecimal('1.5')", {"$decimal": "1.5"}, "Decimal"), ("type", "<class 'type'>", "type"),
    ("class B:\n    def __repr__(self): return 'a B'\nB()", "a B", "B"), ("'\\ud800'", "'\\ud800'", "str"),
    ("{'a\\0b': 1}", {"$dict": [["a\0b", 1]]}, "dict")])
def test_values(kept, code, value, kind):
    result = kept.run(code)
    assert (result["status"], result["exit_code"], result["value"], result["value_type"], result["error"]) == \
        ("success", 0, value, kind, None), result


@pytest.mark.parametrize("code, kind", [
    ("a = []\nfor _ in range(90): a = [a]\na", "list"), ("a = ()\nfor _ in range(40): a = (a,)\na", "tuple")])
def test_values_that_are_too_deep_are_told_as_text(kept, code, kind):
    result = kept.run(code, limits={"timeout": 10})
    assert (result["status"], result["value_type"]) == ("success", kind), str(result)[:500]
    assert isinstance(result["value"], str) and len(result["value"]) < 2 << 20, str(result)[:500]


def test_a_large_value(kept):
    assert kept.value("'y' * (7 << 20)") == "y" * (7 << 20)
    assert kept.value("list(range(200000))") == list(range(200000))


def test_an_exception(kept):
    result = kept.run("import sys\ndef f():\n    raise ValueError('no')\nprint('out'); f()")
    assert (result["status"], result["exit_code"], result["stdout"], result["value"]) == ("error", 1, "out\n", None), result
    assert result["cause"]["kind"] == "exit" and result["session"]["state"] == "kept"
    error = result["error"]
    assert (error["type"], error["message"], error["line"]) == ("ValueError", "no", 3), error
    assert error["file"].startswith("/sandbox/cell-") and error["traceback"] == result["stderr"], error
    assert result["stderr"].startswith("Traceback (most recent call last):\n") and "session" not in result["stderr"]
    assert "raise ValueError('no')" in result["stderr"]
    result = kept.run("1 +")
    assert result["error"]["type"] == "SyntaxError" and result["exit_code"] == 1, result
    result = kept.run("class Odd(Exception): pass\nraise Odd('\\ud800\\0')")
    assert result["error"]["type"] == "Odd" and result["session"]["state"] == "kept", result
    assert kept.run("input()")["error"]["type"] == "EOFError"


def test_exits_keep_the_state(kept):
    kept.run("mark = 5")
    for code, number, status in (("exit()", 0, "success"), ("exit(3)", 3, "error"), ("raise SystemExit(300)", 44, "error"),
                                 ("import sys; sys.exit('words')", 1, "error")):
        result = kept.run(code)
        assert (result["exit_code"], result["status"], result["session"]["state"]) == (number, status, "kept"), result
    assert result["stderr"] == "words\n"
    assert kept.value("mark") == 5


def test_output(kept):
    result = kept.run("import sys, os\nprint('a'); sys.stderr.write('b'); os.write(1, b'c\\xff'); os.system('echo d')")
    assert (result["stdout"], result["stderr"]) == ("a\nc\ufffdd\n", "b"), result
    result = kept.run("print('x' * 3000)", limits={"output": 1000})
    assert result["stdout_truncated"] and result["stdout_bytes"] == 3001 and len(result["stdout"]) < 1200, result
    assert not kept.run("print('x' * 3000)")["stdout_truncated"]


def test_too_much_output_ends_an_execution(session):
    session.run("mark = 1")
    result = session.run("while True: print('x' * 10000)", limits={"output_total": "1m"})
    assert (result["cause"]["kind"], result["session"]["state"]) == ("output", "kept"), {**result, "stdout": ""}
    assert session.value("mark") == 1


def test_globals(kept):
    tagged = {"n": 5, "t": {"$tuple": [1, {"$bytes": "eA=="}]}, "d": {"$date": "2024-02-03"}, "f": {"$float": "inf"}}
    assert kept.value("[n, t, d.isoformat(), f]", globals=tagged) == [5, {"$tuple": [1, {"$bytes": "eA=="}]}, "2024-02-03", {"$float": "inf"}]
    assert kept.value("n") == 5
    result = kept.run("1", globals={"n": {"$pickle": "gASVAAAA"}})
    assert result["error"]["type"] == "ValueError" and result["session"]["state"] == "kept", result


@pytest.mark.undisturbed
def test_usage_is_of_the_execution(session):
    session.run("import time\ndef burn(s):\n    end = time.process_time() + s\n    while time.process_time() < end: pass\nburn(.3)")
    result = session.run("burn(.05)")
    assert 0.03 < result["cpu_time"] < 0.28 and 0.04 < result["duration"] < 5, result
    assert result["memory_peak"] is None or result["memory_peak"] > 1 << 20, result  # None: without a cgroup it is known at the end only


def test_cpu_time_of_an_execution(session):
    result = session.run("mark = 1\nwhile True: pass", limits={"cpu_time": 1, "timeout": 20})
    assert (result["cause"]["kind"], result["session"]["state"]) == ("cpu_time", "kept"), result
    assert session.value("mark") == 1


def test_an_idle_execution_ends(web):
    with Session(web, limits={"idle_timeout": 0.2}) as session:
        result = session.run("mark = 1\nimport time; time.sleep(60)")
        cause = result["cause"]
        assert (result["status"], cause["kind"], cause["limit"], result["session"]["state"]) == ("timeout", "idle", 0.2, "kept"), result
        assert session.value("mark") == 1
        assert session.run("time.sleep(.5)", limits={"idle_timeout": 60})["status"] == "success"
        # What is printed, what is computed, and what the client takes its time for, is no idleness.
        assert session.run("for _ in range(8):\n    time.sleep(.05)\n    print(_)", limits={"idle_timeout": 0.3})["status"] == "success"
        running = session.begin("f()", host_functions=["f"])
        session.busy()
        time.sleep(0.5)
        call = next(number for number in range(1, 9) if session.answer(number, {"result": 8}).status == 204)
        assert call and running.json()["value"] == 8


# ----------------------------------------------------------------------------- timeouts, lost state


@quick
@pytest.mark.undisturbed
@pytest.mark.parametrize("code", ["while True: pass", "import time; time.sleep(60)", "import asyncio\nawait asyncio.sleep(60)",
                                  "import subprocess; subprocess.run(['sleep', '60'])"])
def test_a_timeout_keeps_the_state(kept, code):
    kept.run("mark = 6")
    result = kept.run("print('begun')\n" + code, limits={"timeout": 0.3})
    assert (result["status"], result["cause"]["kind"], result["exit_code"], result["stdout"]) == ("timeout", "timeout", 124, "begun\n"), result
    assert result["session"]["state"] == "kept" and 0.29 < result["duration"] < 1.3, result
    assert kept.value("mark") == 6


def test_a_timeout_that_code_ignores_loses_the_state(session):
    result = session.run("import time; mark = 1\nwhile True:\n    try:\n        time.sleep(60)\n    except BaseException: pass", limits={"timeout": 0.2})
    assert (result["status"], result["session"]["state"]) == ("timeout", "lost"), result
    assert (result["exit_code"], result["cause"]["limit"], result["cause"]["suggest"]) == (124, 0.2, 0.4), result
    assert session.run("mark")["error"]["type"] == "NameError"
    # Code in C that holds the interpreter does not see the signal.
    result = session.run("sum(range(10**11))", limits={"timeout": 0.2})
    assert (result["status"], result["session"]["state"]) == ("timeout", "lost"), result
    assert session.run("6 * 7")["value"] == 42


@pytest.mark.parametrize("code, kind, number", [
    ("import os; print('last', flush=True); os._exit(5)", "exit", 5),
    ("import os, signal; print('last'); os.kill(os.getpid(), signal.SIGSEGV)", "signal", 139),
    ("import os; print('last'); os.abort()", "signal", 134),
])
def test_an_end_of_the_interpreter_loses_the_state(session, code, kind, number):
    session.run("mark = 1")
    result = session.run(code)
    assert (result["cause"]["kind"], result["exit_code"], result["stdout"], result["value"]) == (kind, number, "last\n", None), result
    assert result["session"]["state"] == "lost" and result["status"] == "error", result
    assert session.run("mark")["error"]["type"] == "NameError"
    assert session.show()["state"] == "idle" and session.show()["executions"] == 3


def test_the_memory_limit(web):
    with Session(web, limits={"memory": "96m"}) as session:
        session.run("mark = 1")
        result = session.run("big = bytearray(64 << 20)\nimport os\nos.fork()\nother = bytearray(64 << 20)", limits={"timeout": 10})
        if result["session"]["state"] == "lost":
            assert (result["status"], result["cause"]["kind"]) == ("limit", "memory") or result["cause"]["kind"] == "memory", result
        result = session.run("a = []\nwhile True: a.append(b'x' * (1 << 20))", limits={"timeout": 10})
        assert result["cause"]["kind"] == "memory" or result["error"]["type"] == "MemoryError", result
        session.reset()
        assert session.value("6 * 7") == 42


# ------------------------------------------------------------------------ interrupt, reset, logs


@quick
def test_interrupt(session):
    assert session.interrupt() == {"interrupted": False, "state": "kept"}
    session.run("mark = 8")
    running = session.begin("import time\ntime.sleep(60)")
    session.busy()
    assert session.interrupt() == {"interrupted": True, "state": "kept"}
    result = running.json()
    assert (result["error"]["type"], result["exit_code"], result["session"]["state"]) == ("KeyboardInterrupt", 1, "kept"), result
    assert result["duration"] < 20 and session.value("mark") == 8
    running = session.begin("import time; print('on')\nwhile True:\n    try:\n        time.sleep(60)\n    except BaseException: pass")
    wait_until(lambda: "on" in session.logs()["stdout"], why="it does not begin")
    assert session.interrupt() == {"interrupted": True, "state": "lost"}
    result = running.json()
    assert (result["status"], result["session"]["state"]) == ("cancelled", "lost"), result
    assert session.run("6 * 7")["value"] == 42


def test_reset(web):
    with Session(web, files={"a.txt": "first"}, env={"WORD": "w"}) as session:
        session.run("mark = 1; open('a.txt', 'w').write('second'); open('b.txt', 'w').close()")
        shown = session.reset()
        assert shown["id"] == session.id and shown["state"] == "idle", shown
        assert session.run("mark")["error"]["type"] == "NameError"
        assert session.value("import os; [open('a.txt').read(), sorted(os.listdir()), os.environ['WORD']]") == ["first", ["a.txt"], "w"]
        running = session.begin("import time; time.sleep(60)")
        session.busy()
        waiting = session.begin("'second'")
        wait_until(lambda: session.show()["waiting"] == 2, why="the second does not wait")
        session.reset()
        result = running.json()
        assert (result["status"], result["session"]["state"]) == ("cancelled", "lost"), result
        assert waiting.json()["value"] == "second"


def test_logs(session):
    session.run("print('one')")
    session.run("import sys; print('two', file=sys.stderr)")
    session.reset()
    session.run("print('three')")
    assert session.logs() == {"stdout": "one\nthree\n", "stderr": "two\n", "truncated": False}
    session.run("import os\nfor _ in range(40): os.write(1, b'z' * 65536)", limits={"output": 1000})
    logs = session.logs()
    assert logs["truncated"] and 1 << 19 < len(logs["stdout"]) < 2 << 20 and logs["stdout"].startswith("one\n"), len(logs["stdout"])


@pytest.mark.undisturbed
def test_idle_expiry(web):
    with Session(web, idle_timeout=1) as session:
        assert session.made["idle_timeout"] == 1
        result = session.run("import time; time.sleep(1.5)")
        assert result["status"] == "success", result  # code that runs is not idle
        begun = time.monotonic()
        wait_until(lambda: session.web.get(session.path).status == 404, why="it does not expire")
        assert 0.8 < time.monotonic() - begun < 3


# --------------------------------------------------------------------------------------------- files


@quick
def test_files(web):
    data = bytes(range(256)) * 300
    with Session(web, files={"in/a.txt": "text", "b.bin": {"base64": base64.b64encode(data).decode()}}) as session:
        listed = session.files()
        assert {path: entry["type"] for path, entry in listed.items()} == {"in": "directory", "in/a.txt": "file", "b.bin": "file"}, listed
        assert listed["b.bin"]["size"] == len(data) and abs(listed["in/a.txt"]["mtime"] - time.time()) < 100
        answer = session.get("b.bin")
        assert answer.status == 200 and answer.body == data and answer.headers["content-type"] == "application/octet-stream", answer
        assert session.put("new/deep/c%20d.bin", data).status == 204
        assert session.value("open('new/deep/c d.bin', 'rb').read() == bytes(range(256)) * 300") is True
        session.run("open('out', 'w').write('words'); import os; os.symlink('/etc/passwd', 'link'); os.mkfifo('pipe'); os.symlink('.', 'loop')")
        assert session.get("out").body == b"words" and session.files()["link"]["type"] == "link"
        assert "pipe" not in session.files()
        assert web.delete(f"{session.path}/files/out").status == 204
        problem(session.get("out"), 404)
        problem(web.delete(f"{session.path}/files/out"), 404)
        assert web.delete(f"{session.path}/files/new").status == 204
        assert "new" not in session.files()
        assert session.put("empty", b"").status == 204 and session.get("empty").body == b""
        for path in ("in", "pipe"):
            problem(session.get(path), 400)
        problem(session.get("in/a.txt/x"), 404)
        problem(session.put("in/a.txt/x", b"1"), 404)
        problem(session.put("in", b"1"), 400)
        assert session.show()["executions"] == 2  # operations on files are none


@pytest.mark.parametrize("path", ["..", "../x", "a/../../x", "%2e%2e/x", "..%2fx", "%2fetc%2fpasswd", "a%00b", "./x",
                                  "x" * 5000, "%ff%fe"])
def test_paths_that_are_refused(kept, path):
    for method in ("GET", "PUT", "DELETE"):
        answer = kept.web.ask(method, f"{kept.path}/files/{path}", b"1" if method == "PUT" else None,
                              {"Content-Type": "application/octet-stream"})
        assert answer.status in (400, 404, 414, 431), (method, answer)
    assert kept.files() == {}


def test_large_files(session):
    """A file of any size is read in one answer, by Range, and written in several requests."""
    session.run("import os; data = os.urandom(40 << 20); open('big', 'wb').write(data); import hashlib")
    big = session.get("big").body
    assert len(big) == 40 << 20 and hashlib.sha256(big).hexdigest() == session.value("hashlib.sha256(data).hexdigest()")
    for range, part in [("bytes=35000000-35000009", big[35000000:35000010]), ("bytes=-5", big[-5:]), ("bytes=41943030-", big[41943030:])]:
        answer = session.web.get(f"{session.path}/files/big", headers={"Range": range})
        assert (answer.status, answer.body) == (206, part), answer.headers
    problem(session.web.get(f"{session.path}/files/big", headers={"Range": "bytes=41943040-"}), 416)
    assert session.put("up", bytes(32 << 20)).status == 204
    for at in (32 << 20, 33 << 20):
        answer = session.web.ask("PUT", f"{session.path}/files/up", b"x" * (1 << 20), {
            "Content-Type": "application/octet-stream", "Content-Range": f"bytes {at}-{at + (1 << 20) - 1}/*"})
        assert answer.status == 204, answer
    assert session.files()["up"]["size"] == 34 << 20 and session.get("up").body == bytes(32 << 20) + b"x" * (2 << 20)
    problem(session.put("up2", bytes((32 << 20) + 1)), 413)
    wrong = session.web.ask("PUT", f"{session.path}/files/up", b"xyz", {"Content-Type": "application/octet-stream", "Content-Range": "bytes 0-9/*"})
    assert "content-range" in problem(wrong, 400)
    assert session.put("empty", b"").status == 204 and session.get("empty").body == b""


def test_many_files(session):
    session.run("import os\nfor i in range(10500): open(f'f{i}', 'w').close()", limits={"timeout": 20})
    assert len(session.files()) == 10000
