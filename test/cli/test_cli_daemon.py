# SPDX-License-Identifier: Apache-2.0
"""The command line and a server made here, which can say what a daemon never should: control characters, nonsense, nothing.

test_cli_serve.py has the real one."""
import base64
import contextlib
import http.server
import json
import os
import pty
import shutil
import signal
import socketserver
import struct
import subprocess
import threading
import time

import pytest

from resident import wait_until

quick = pytest.mark.quick
CONTROL = "\x1b]0;owned\x07\x1b[31m\u009b\u202e"
ID, SESSION = "ex_aaaaaaaaaaaaaaaaaaaaaaaaaa", "se_aaaaaaaaaaaaaaaaaaaaaaaaaa"
RESULT = {"id": ID, "language": "python", "status": "success", "success": True, "exit_code": 0, "signal": None,
          "cause": {"kind": "exit", "detail": "exited with 0"}, "stdout": "hi\n", "stderr": "", "stdout_bytes": 3,
          "stderr_bytes": 0, "duration": 0.0021, "cpu_time": 0.0009, "memory_peak": 9437184, "labels": {}, "files": [],
          "created_at": "2026-11-15T10:00:00.123Z", "policy": "default", "error": None, "stages": []}


def safe(text):
    """Nothing that a terminal would obey."""
    return all(c in "\n\t" or c.isprintable() for c in text)


# ------------------------------------------------------------------------------------- a made-up server


class Fake(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """Answers by its table {(method, path): answer}; an answer is JSON, bytes, or a function of the handler."""
    daemon_threads = True

    def __init__(self, path):
        self.table, self.seen, self.opened = {}, [], []
        super().__init__(str(path), Handler)
        os.chmod(path, 0o777)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def address_string(self):
        return "unix"

    def log_message(self, *args):
        pass

    def answer(self):
        length = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(length)
        self.server.seen.append((self.command, self.path, dict(self.headers), body))
        path = self.path.split("?")[0]
        what = self.server.table.get((self.command, path), (404, {"code": "not_found", "detail": "There is none."}))
        if callable(what):
            what(self)
            return
        status, tree = what if isinstance(what, tuple) else (200, what)
        self.whole(tree if isinstance(tree, bytes) else json.dumps(tree).encode(), status=status)

    def whole(self, data, fields=(), status=200):
        self.send_response(status)
        for name, value in dict(fields).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_DELETE = answer

    def events(self, *events, end=True):
        """A stream of events, each in a chunk of its own, sent when it is made."""
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in events:
            event = event() if callable(event) else event
            if event:
                line = json.dumps(event).encode() + b"\n"
                self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
                self.wfile.flush()
        if end:
            self.wfile.write(b"0\r\n\r\n")


    def packet(self):
        """One packet of the client (doc/runner-protocol.md)."""
        head = self.rfile.read(5)
        return chr(head[4]), self.rfile.read(int.from_bytes(head[:4], "big") - 1)

    def runner(self, *packets, admission=("A", {"language": "python", "policy": "default", "limits": None})):
        """Carries out a run: each packet is (kind, payload), bytes as they are, or a function of this that gives one of these or None."""
        self.close_connection = True
        self.wfile.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: atoll-runner/1\r\n\r\n")
        request = json.loads(self.packet()[1])
        self.wfile.write(admission if isinstance(admission, bytes) else packet(*admission))
        if isinstance(admission, bytes) or admission[0] != "A":
            return
        self.server.opened.append((request, json.loads(self.packet()[1])))
        try:
            for one in packets:
                one = one(self) if callable(one) else one
                if one:
                    self.wfile.write(one if isinstance(one, bytes) else packet(*one))
        except OSError:
            pass  # the command left: it says why


def packet(kind, payload=b""):
    data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return struct.pack(">I", 1 + len(data)) + kind.encode() + data


@pytest.fixture
def fake(atoll, work):
    server = Fake(work / "f.sock")
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    server.atoll = atoll.variant(env={"ATOLL_URL": str(work / "f.sock")})
    yield server
    server.shutdown()
    server.server_close()


def start_event():
    return {"event": "start", "seq": 1, "data": {"id": ID, "language": "python"}}


def result_event(**more):
    return {"event": "result", "seq": 9, "data": {**RESULT, **more}}


def test_without_a_daemon(atoll, work):
    for words in (["ps"], ["history", "list"], ["history", "show", ID], ["history", "output", ID], ["history", "replay", ID],
                  ["history", "diff", ID, ID], ["history", "stats"], ["history", "rm", ID], ["debug", ID], ["cancel", ID],
                  ["cleanup"], ["debug", "last"]):
        done = atoll.run(words + ["--url", work / "none.sock"])
        assert done.returncode == 125 and done.stdout == b"", done
        assert done.err.count("\n") == 1 and "`atoll serve`" in done.err, done


@quick
@pytest.mark.parametrize("words, said", [
    (["history"], "needs a command"),
    (["history", "shwo", ID], "did you mean 'show'?"),
    (["history", "show"], "one id, not 0"),
    (["history", "diff", ID], "two ids, not 1"),
    (["history", "rm"], "at least one id"),
    (["history", "list", "word"], "takes no argument"),
    (["history", "list", "-n", "0"], "from 1 to"),
    (["history", "list", "--statsu", "x"], "did you mean '--status'?"),
    (["ps", "--url", "https://127.0.0.1"], "speaks no TLS"),
    (["ps", "--url", "http://example.org"], "address in numbers"),
    (["cancel"], "at least one id"),
])
def test_wrong_words(atoll, words, said):
    done = atoll.variant(env={"ATOLL_URL": None}).run(words)
    assert done.returncode == 125 and done.stdout == b"" and said in done.err and done.err.count("\n") == 1, done


def test_list_is_a_table(fake):
    row = {"id": ID, "status": "success", "language": "python", "exit_code": 0, "created_at": "2020-01-01T00:00:00Z",
           "duration": 0.0021, "memory_peak": 9437184, "labels": {"job": f"x{CONTROL}"}}
    running = {"id": ID[:-1] + "b", "status": "running", "language": None, "exit_code": None, "created_at": None,
               "duration": None, "memory_peak": None, "labels": {}}
    fake.table["GET", "/v1/executions"] = {"executions": [row, running], "next": None}
    done = fake.atoll.run(["history", "list", "--status", "error", "--label", "a=b c", "--since", "2h", "-l", "python", "-n", "7"])
    lines = done.out.splitlines()
    assert done.returncode == 0 and len(lines) == 3 and safe(done.out), done
    assert lines[0].split() == ["ID", "AGE", "LANGUAGE", "STATUS", "EXIT", "TIME", "MEMORY", "LABELS"]
    assert lines[1].split()[:8] == [ID, lines[1].split()[1], "python", "success", "0", "2.1", "ms", "9.0"]
    assert lines[1].endswith(r"job=x\x1b]0;owned\x07\x1b[31m\x9b\u202e") and lines[1].split()[1].endswith("d")
    assert lines[0].index("STATUS") == lines[1].index("success") == lines[2].index("running")
    path = fake.seen[0][1]
    assert "limit=7" in path and "status=error" in path and "label=a%3Db%20c" in path and "language=python" in path
    since = int(path.split("since=")[1].split("&")[0])
    assert abs(time.time() - 7200 - since) < 30


def test_list_follows_pages(fake):
    rows = [{"id": f"ex_{i:026}", "status": "success"} for i in range(5)]

    def page(handler):
        at = int(handler.path.split("cursor=p")[1].split("&")[0]) if "cursor=p" in handler.path else 0
        count = int(handler.path.split("limit=")[1].split("&")[0])
        # A page may be short, even empty, and go on.
        some = rows[at:at + min(count, 2)] if at != 2 or not hasattr(page, "again") else rows[2:4]
        if at == 2 and not hasattr(page, "again"):
            some, page.again = [], True
        after = at + len(some)
        data = json.dumps({"executions": some, "next": f"p{after}" if after < 5 else None}).encode()
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    fake.table["GET", "/v1/executions"] = page
    tree = fake.atoll.run(["history", "list", "--json", "-n", "10"]).json()
    assert tree == {"executions": rows, "next": None}
    tree = fake.atoll.run(["history", "list", "--json", "-n", "1"]).json()
    assert tree == {"executions": rows[:1], "next": "p1"}


def test_show_and_output_cannot_drive_a_terminal(fake):
    fake.table["GET", f"/v1/executions/{ID}"] = {
        **RESULT, "stdout": f"one\n{CONTROL}two", "status": "error", "exit_code": 1, "labels": {CONTROL: CONTROL},
        "cause": {"kind": "exit", "detail": CONTROL}, "files": [{"path": f"a{CONTROL}", "size": 12}],
        "error": {"type": f"T{CONTROL}", "message": f"m{CONTROL}", "file": "/sandbox/main.py", "line": 3}}
    done = fake.atoll.run(["history", "show", ID])
    assert done.returncode == 0 and safe(done.out) and r"\x1b]0;owned" in done.out and "error, exit code 1" in done.out, done
    raw = f"one\n{CONTROL}".encode() + b"\xff\x00"
    fake.table["GET", f"/v1/executions/{ID}/stdout"] = raw
    fake.table["GET", f"/v1/executions/{ID}/stderr"] = b"other"
    assert fake.atoll.run(["history", "output", ID]).stdout == raw
    assert fake.atoll.run(["history", "output", "--stderr", ID]).stdout == b"other"
    shown = on_terminal(fake.atoll, ["history", "output", ID])
    assert rb"one" in shown and rb"\x1b]0;owned\x07" in shown and rb"\xff\x00" in shown and b"\x1b" not in shown, shown
    assert b"\x1b]0;owned" in on_terminal(fake.atoll, ["history", "output", "--raw", ID])
    tree = json.loads(fake.atoll.run(["history", "output", "--json", ID]).stdout)
    assert tree == {"id": ID, "stdout": raw.decode(errors="replace"), "stdout_bytes": len(raw), "stdout_binary": True, "complete": False}
    tree = json.loads(fake.atoll.run(["history", "output", "--json", "--stderr", ID]).stdout)
    assert tree == {"id": ID, "stderr": "other", "stderr_bytes": 5, "stderr_binary": False, "complete": False}
    # What the head says is still known behind a body that is larger than the client's buffer.
    raw = b"complete" * (200 << 10)
    fake.table["GET", f"/v1/executions/{ID}/stdout"] = lambda handler: handler.whole(raw, {"Atoll-Complete": "true"})
    tree = json.loads(fake.atoll.run(["history", "output", "--json", ID]).stdout)
    assert tree == {"id": ID, "stdout": raw.decode(), "stdout_bytes": len(raw), "stdout_binary": False, "complete": True}
    fake.table["GET", f"/v1/executions/{ID}/debug-report"] = f"# Report\n{CONTROL}".encode()
    done = fake.atoll.run(["debug", "--markdown", ID])
    assert done.out.startswith("# Report\n\\x1b]") and safe(done.out) and done.out.endswith("\n"), done
    assert fake.seen[-1][2]["Accept"] == "text/markdown"
    text = {"message": CONTROL, "exception": CONTROL, "file": CONTROL, "function": CONTROL, "line": 3, "excerpt": CONTROL, "suggestion": CONTROL}
    report = {"status": "failure", "language": CONTROL, "timestamp": CONTROL, "container_id": CONTROL, "error_message": CONTROL,
              "cause": {"kind": "exit", "detail": CONTROL}, "analysis": {**text, "frames": [text, text]},
              "limits": [{"name": CONTROL, "limit": 1, "peak": 1, "share": 1.0, "hit": True}],
              "denials": [{"what": CONTROL, "rule": CONTROL, "count": 1, "hint": CONTROL}], "output": {"stdout": CONTROL, "stderr": CONTROL}}
    fake.table["GET", f"/v1/executions/{ID}/debug-report"] = report
    done = fake.atoll.run(["debug", ID])
    assert done.out.startswith("the program \\x1b]") and safe(done.out) and done.out.count("owned") > 10, done
    shown = on_terminal(fake.atoll, ["debug", ID])
    assert shown.startswith(b"\x1b[31mthe program") and b"\x1b]" not in shown
    assert b"\x1b" not in on_terminal(fake.atoll.variant(env={"NO_COLOR": "1"}), ["debug", ID])


def test_a_session_cannot_drive_a_terminal(fake):
    """What it printed before, a repr and rich text are escaped; live output is the program's own, as in `atoll run`."""
    fake.table["GET", f"/v1/sessions/{SESSION}/logs"] = {"id": SESSION, "stdout": f"out\n{CONTROL}\n", "stderr": f"err\n{CONTROL}\n", "truncated": False}
    done = fake.atoll.run(["session", "logs", SESSION])
    assert done.returncode == 0 and done.out.startswith("out\n\\x1b]0;owned") and done.err.startswith("err\n\\x1b]0;owned"), done
    assert safe(done.out) and safe(done.err), done
    done = fake.atoll.run(["session", "logs", SESSION, "--json"])
    assert safe(done.out) and json.loads(done.stdout)["stdout"] == f"out\n{CONTROL}\n", done
    for more in ({"value_repr": CONTROL}, {"value": [CONTROL]}):
        fake.table["POST", f"/v1/sessions/{SESSION}/execute"] = lambda handler, more=more: handler.events(
            start_event(), {"event": "stdout", "seq": 2, "offset": 0, "data": f"{CONTROL}\n"},
            {"event": "output", "seq": 3, "data": {"data": {"text/plain": f"rich {CONTROL}"}}},
            {"event": "output", "seq": 4, "data": {"data": {f"a/{CONTROL}": ""}}}, result_event(**more))
        done = fake.atoll.run(["session", "exec", SESSION, "-c", "x"])
        live, rest = done.out.split("\n", 1)
        assert done.returncode == 0 and live == CONTROL and safe(rest) and rest.count("owned") == 3 and "rich \\x1b]0" in rest, done
    assert json.loads(rest.splitlines()[-1]) == [CONTROL]


def on_terminal(atoll, words):
    """What a terminal gets to see."""
    ours, theirs = pty.openpty()
    popen = atoll.popen(words, stdout=theirs, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.close(theirs)
    seen = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:
            break
        if not piece:
            break
        seen += piece
    os.close(ours)
    assert popen.wait(25) == 0
    return seen


def answered(atoll, words, answer):
    """What stands on a terminal that is asked, and the exit code."""
    ours, theirs = pty.openpty()
    popen = atoll.popen(words, stdin=theirs, stderr=theirs)
    os.close(theirs)
    asked = os.read(ours, 4096)
    while b"[y/N] " not in asked:
        asked += os.read(ours, 4096)
    os.write(ours, answer)
    code = popen.wait(25)
    os.close(ours)
    popen.stdout.close()
    return asked.decode(), code


def test_beginnings_of_ids(fake):
    one, two = "ex_" + "a" * 26, "ex_aaaab" + "c" * 21
    fake.table["GET", "/v1/executions"] = {"executions": [{"id": two}], "next": None}
    fake.table["GET", f"/v1/executions/{two}/stdout"] = b"text"
    assert fake.atoll.run(["history", "output", "ex_aaaab"]).out == "text"
    assert fake.seen[0][1] == "/v1/executions?limit=5&id=ex_aaaab"
    fake.table["GET", "/v1/executions"] = {"executions": [{"id": one}, {"id": two}], "next": None}
    for words in (["debug", "ex_aaaa"], ["history", "show", "ex_aaaa"], ["history", "rm", "ex_aaaa"], ["cancel", "ex_aaaa"],
                  ["history", "output", "ex_aaaa"], ["history", "replay", "ex_aaaa"], ["history", "diff", "ex_aaaa", one]):
        done = fake.atoll.run(words)
        assert done.returncode == 125, done
        assert done.err == f"atoll: several ids begin with 'ex_aaaa'; give more of the one you mean: {one}, {two}\n"
    fake.table["GET", "/v1/executions"] = {"executions": [], "next": None}
    assert "no execution 'ex_zzzz'" in fake.atoll.run(["debug", "ex_zzzz"]).err
    fake.table["GET", "/v1/sessions"] = {"sessions": [{"id": one.replace("ex", "se")}, {"id": two.replace("ex", "se")}]}
    fake.table["GET", f"/v1/sessions/{two.replace('ex', 'se')}"] = {"id": two.replace("ex", "se"), "state": "idle"}
    assert "several ids begin with 'se_'" in fake.atoll.run(["session", "show", "se_"]).err
    assert "no session 'se_b'" in fake.atoll.run(["session", "show", "se_b"]).err
    assert fake.atoll.run(["session", "show", "se_aaaab", "--json"]).json()["state"] == "idle"


def test_a_program_on_a_terminal(fake):
    """Unchanged on a pipe; a terminal gets no control characters of another's program."""
    fake.table["GET", f"/v1/executions/{ID}/request"] = {"language": "bash", "code": "echo \x1b]0;title\x07"}
    assert fake.atoll.run(["history", "show", "--code", ID]).out == "echo \x1b]0;title\x07"
    ours, theirs = pty.openpty()
    popen = fake.atoll.popen(["history", "show", "--code", ID], stdout=theirs)
    os.close(theirs)
    shown = os.read(ours, 4096)
    assert popen.wait(25) == 0 and shown == b"echo \\x1b]0;title\\x07\r\n"
    os.close(ours)


def test_removal_asks_on_a_terminal(fake):
    other = ID.replace("a", "b")
    for id in (ID, other):
        fake.table["GET", f"/v1/executions/{id}"] = {"id": id, "status": "success"}
        fake.table["DELETE", f"/v1/executions/{id}"] = {"id": id, "deleted": True}
    fake.table["GET", "/v1/cleanup"] = fake.table["POST", "/v1/cleanup"] = {"cancelled": 1, "deleted": 7, "sessions": 2}
    asked, code = answered(fake.atoll, ["history", "rm", ID, other], b"\n")
    assert code == 125 and asked == "atoll: remove 2 executions with their outputs? [y/N] "
    asked, code = answered(fake.atoll, ["cleanup"], b"n\n")
    assert code == 125 and "end 1 execution and 2 sessions, and remove 7 executions with their outputs? [y/N] " in asked
    assert fake.atoll.run(["history", "rm", "--dry-run", ID, other]).out == \
        f"would remove {ID} (success)\nwould remove {other} (success)\n"
    assert fake.atoll.run(["cleanup", "--dry-run"]).out == "would end 1 execution and 2 sessions, and remove 7 executions with their outputs\n"
    assert {seen[0] for seen in fake.seen} == {"GET"}
    assert answered(fake.atoll, ["history", "rm", ID, other], b"y\n")[1] == 0
    assert [seen[0] for seen in fake.seen[-2:]] == ["DELETE", "DELETE"]
    assert answered(fake.atoll, ["cleanup"], b"yes\n")[1] == 0 and fake.seen[-1][0] == "POST"
    # Words are ids of before anything was removed.
    begin = len(fake.seen)
    targets = [f"/v1/executions/{id}?only=delete" for id in (ID, other)]

    def newest(handler):
        gone = {seen[1] for seen in fake.seen[begin:] if seen[0] == "DELETE"}
        rows = [{"id": id} for id, target in zip((ID, other), targets) if target not in gone]
        handler.whole(json.dumps({"executions": rows}).encode())

    fake.table["GET", "/v1/executions"] = newest
    assert fake.atoll.run(["history", "rm", "-1", "-2", "ex_zzzz"]).returncode == 125
    assert [seen[1] for seen in fake.seen[begin:] if seen[0] == "DELETE"] == targets
    # No question: one id, --yes, a pipe.
    begin = len(fake.seen)
    for words in (["history", "rm", ID], ["history", "rm", "-y", ID, other], ["cleanup", "--yes"]):
        assert fake.atoll.run(words).returncode == 0
    assert [seen[0] for seen in fake.seen[begin:]] == ["DELETE"] * 3 + ["POST"]


def test_problems_are_said(fake):
    done = fake.atoll.run(["history", "show", ID])
    assert done.returncode == 125 and done.err == "atoll: there is no execution with that id; `atoll history list` shows those there are\n"
    fake.table["GET", "/v1/executions"] = (401, {"code": "unauthorized", "detail": f"Give a token.{CONTROL}"})
    done = fake.atoll.run(["ps"])
    assert done.returncode == 125 and done.err.startswith("atoll: Give a token.") and safe(done.err), done
    fake.table["GET", "/v1/executions"] = (200, b"<html>")
    assert "no atoll daemon" in fake.atoll.run(["ps"]).err
    fake.table["GET", "/v1/executions"] = (500, b"oops")
    assert "HTTP 500" in fake.atoll.run(["ps"]).err
    fake.table["GET", "/v1/executions"] = lambda handler: handler.wfile.write(b"220 smtp ready\r\n")
    assert "no atoll daemon" in fake.atoll.run(["ps"]).err
    fake.table["GET", "/v1/executions"] = lambda handler: setattr(handler, "close_connection", True)
    assert "went away" in fake.atoll.run(["ps"]).err
    assert "'../../healthz' is no id" in fake.atoll.run(["history", "show", "../../healthz"]).err


def conflict(code):
    def answer(handler):
        body = json.dumps({"type": "about:blank", "title": "Conflict", "status": 409, "code": code, "detail": "No."}).encode()
        handler.send_response(409)
        handler.send_header("Content-Type", "application/problem+json")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)
    return answer


def test_cancel_and_rm_say_what_they_mean(fake):
    """One request each, that does one thing: a look before it could be wrong a moment later."""
    fake.table["DELETE", f"/v1/executions/{ID}"] = {"id": ID, "cancelled": True, "deleted": False}
    assert fake.atoll.run(["cancel", ID]).returncode == 0
    assert [call[:2] for call in fake.seen] == [("DELETE", f"/v1/executions/{ID}?only=cancel")]
    assert fake.atoll.run(["history", "rm", "--json", ID]).json()["id"] == ID
    assert fake.seen[1][:2] == ("DELETE", f"/v1/executions/{ID}?only=delete") and len(fake.seen) == 2
    fake.table["DELETE", f"/v1/executions/{ID}"] = conflict("not_ended")
    done = fake.atoll.run(["history", "rm", ID])
    assert done.returncode == 125 and f"atoll cancel {ID}" in done.err, done
    fake.table["DELETE", f"/v1/executions/{ID}"] = conflict("already_ended")
    done = fake.atoll.run(["cancel", ID])
    assert done.returncode == 125 and f"{ID} has ended already" in done.err, done


def test_token_over_tcp(atoll, work):
    seen = []

    class Tcp(http.server.BaseHTTPRequestHandler):
        def log_message(self, *args):
            pass

        def do_GET(self):
            seen.append(self.headers)
            data = b'{"executions": []}'
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Tcp)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        token = work / "token"
        token.write_text("# mine\n\nsesame-open-sesame\n")
        url = f"http://127.0.0.1:{server.server_port}"
        done = atoll.run(["ps", "--url", url], env={"ATOLL_TOKEN_FILE": str(token)})
        assert done.returncode == 0, done
        assert seen[0]["Authorization"] == "Bearer sesame-open-sesame" and seen[0]["Host"] == url[7:]
        assert atoll.run(["ps", "--url", url]).returncode == 0 and seen[-1]["Authorization"] is None
        done = atoll.run(["ps", "--url", url], env={"ATOLL_TOKEN_FILE": str(work / "none")})
        assert done.returncode == 125 and "ATOLL_TOKEN_FILE" in done.err, done
    finally:
        server.shutdown()
        server.server_close()


# ------------------------------------------------------------------------------ atoll run, made-up server


def runs(*packets, **more):
    """An answer that carries out a run (doc/runner-protocol.md)."""
    return lambda handler: handler.runner(*packets, **more)


def end(**more):
    result = {**RESULT, **more}
    line = {"id": ID, "status": result["status"], "exit_code": result["exit_code"]}
    return "Z", json.dumps(line).encode() + b"\n" + json.dumps(result).encode()


def test_run_streams(fake):
    said = threading.Event()
    fake.table["GET", "/v1/runner"] = runs(
        ("s", {"id": ID, "language": "python"}), ("o", b"one\n"), lambda _: said.wait(10) and None, ("e", b"two\xff\n"), ("u", {}),
        ("?", b"of a later version"), ("t", {"name": "run", "later": 1}), end(status="error", exit_code=7))
    popen = fake.atoll.popen(["run", "-l", "python", "-c", "x"], stdin=subprocess.DEVNULL)
    assert popen.stdout.readline() == b"one\n"  # before the rest was made
    said.set()
    assert popen.communicate(timeout=25) == (b"", b"two\xff\n") and popen.returncode == 7
    assert fake.opened == [({"language": "python", "code": "x"}, {"interactive": False, "disconnect": "cancel"})]
    assert fake.seen[0][2]["Upgrade"] == "atoll-runner/1"


def test_run_sends_input_that_ended(fake, work):
    fake.table["GET", "/v1/runner"] = runs(end())
    for data, sent in ((b"hello", "hello"), (b"\xff\x00", {"base64": "/wA="}), (b"", None)):
        (work / "input").write_bytes(data)
        with open(work / "input") as file:
            assert fake.atoll.run(["run", "-l", "python", "-c", "x"], stdin=file).returncode == 0
        request, start = fake.opened[-1]
        assert request.get("stdin") == sent and not start["interactive"]
    assert fake.atoll.run(["run", "-l", "python", "-"], input="code").returncode == 0
    assert fake.opened[-1][0] == {"language": "python", "code": "code"}


def test_run_passes_input_on_as_there_is_room(fake, work):
    """A file longer than what goes with the request, and a pipe; never more than the credit."""
    got = []

    def take(handler):
        """Reads the input, with a credit of 64 KiB that comes back for each packet."""
        data, credit = b"", 64 << 10
        while True:
            kind, payload = handler.packet()
            if kind == "E":
                got.append(data)
                return None
            credit -= len(payload)
            assert kind == "I" and credit >= 0
            data += payload
            credit += len(payload)
            handler.wfile.write(packet("i", {"bytes": len(payload)}))

    fake.table["GET", "/v1/runner"] = runs(take, end())
    big = os.urandom(3 << 20)
    (work / "input").write_bytes(big)
    with open(work / "input") as file:
        assert fake.atoll.run(["run", "-l", "python", "-c", "x"], stdin=file).returncode == 0
    assert base64.b64decode(fake.opened[0][0]["stdin"]["base64"]) + got[0] == big
    popen = fake.atoll.popen(["run", "-l", "python", "-c", "x"])
    time.sleep(0.05)
    popen.communicate(b"from a pipe", timeout=25)
    assert popen.returncode == 0 and (fake.opened[1][0].get("stdin") or "").encode() + got[1] == b"from a pipe"


def test_a_large_request_tells_its_progress(fake, work):
    """A terminal learns how much of it was sent to a daemon that takes its time."""
    def slowly(handler):
        handler.wfile.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: atoll-runner/1\r\n\r\n")
        left = int.from_bytes(handler.rfile.read(5)[:4], "big") - 1
        while left:
            left -= len(handler.rfile.read(min(left, 64 << 10)))
            time.sleep(0.05)
        handler.wfile.write(packet("R", {"code": "invalid_field", "detail": "seen"}))
        handler.close_connection = True

    fake.table["GET", "/v1/runner"] = slowly
    (work / "big.py").write_text("#" * (4 << 20))
    ours, theirs = pty.openpty()
    popen = fake.atoll.popen(["run", "--timeout", "9", str(work / "big.py")], stdin=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    seen = b""
    with contextlib.suppress(OSError):  # a terminal's end
        while piece := os.read(ours, 65536):
            seen += piece
    os.close(ours)
    assert popen.wait(25) == 125 and b"sending " in seen and b" of 4 MiB" in seen and b"seen" in seen, seen


def test_run_json_is_the_daemons_result(fake):
    fake.table["GET", "/v1/runner"] = runs(("o", b"not shown"), end(status="timeout", exit_code=124))
    done = fake.atoll.run(["run", "--json", "-l", "python", "-c", "x"], stdin=subprocess.DEVNULL)
    assert done.returncode == 124 and done.json()["id"] == ID, done


REFUSALS = [("invalid_field", 125, "setup_error"), ("unknown_language", 127, "setup_error"), ("policy_refused", 126, "denied"),
            ("internal", 125, "internal_error"), ("unauthorized", 125, "internal_error")]


@pytest.mark.parametrize("code, exit_code, result_status", REFUSALS)
@pytest.mark.parametrize("how", ["answer", "packet", "after the start"])
def test_refusals_are_final(fake, code, exit_code, result_status, how):
    problem = {"code": code, "detail": "limits.memory: no"}
    fake.table["GET", "/v1/runner"] = {"answer": (403, problem), "packet": runs(admission=("R", problem)),
                                       "after the start": runs(("R", problem))}[how]
    done = fake.atoll.run(["run", "-l", "bash", "-c", "echo ran here"], stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout, done.err) == (exit_code, b"", "atoll: limits.memory: no\n"), done
    result = fake.atoll.result(["-l", "bash", "-c", "echo ran here"], stdin=subprocess.DEVNULL)
    assert result["_exit"] == exit_code and result["status"] == result_status and result["language"] == "bash", result
    assert result["cause"]["detail"] == "limits.memory: no" and result["stdout"] == "" and len(result["id"]) == 29


def at_default_place(atoll, work):
    """A command line that finds the made-up server where daemons are, and not by name."""
    (work / "run" / "atoll").mkdir(parents=True)
    (work / "run" / "atoll" / "atoll.sock").symlink_to(work / "f.sock")
    return atoll.variant(env={"ATOLL_URL": None, "XDG_RUNTIME_DIR": str(work / "run")})


UNWILLING = {"429": (429, {"code": "x", "detail": "x"}), "503": (503, {"code": "x", "detail": "x"}),
             "packet": runs(admission=("R", {"code": "queue_full", "detail": "x"}))}


@pytest.mark.modes("rootless")  # the default place of root is the machine's
@pytest.mark.parametrize("answer", UNWILLING.values(), ids=UNWILLING)
def test_unwilling_daemon(fake, atoll, work, answer):
    """A daemon at the default place that takes no more is passed by, with a note; one that was named is not."""
    fake.table["GET", "/v1/runner"] = answer
    words = ["run", "-l", "bash", "-c", "read x; echo $x here"]
    done = fake.atoll.run(words, input="ran")
    assert (done.returncode, done.out, done.err) == (125, "", "atoll: x\n"), done
    done = at_default_place(atoll, work).run(words, input="ran")
    assert (done.returncode, done.out, done.err) == (0, "ran here\n", "atoll: the program runs without the daemon: x\n"), done
    assert len(fake.seen) == 2


@pytest.mark.modes("rootless")
def test_an_older_daemon(fake, atoll, work):
    """It does not know the protocol: one sentence says what to do."""
    words = ["run", "-l", "bash", "-c", "echo ran here"]
    done = fake.atoll.run(words, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.out) == (125, "") and done.err.count("\n") == 1 and "restart it" in done.err, done
    done = at_default_place(atoll, work).run(words, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.out) == (0, "ran here\n") and "restart it" in done.err, done


def test_daemon_that_dies_is_not_run_around(fake):
    fake.table["GET", "/v1/runner"] = runs(("o", b"one\n"))
    done = fake.atoll.run(["run", "-l", "bash", "-c", "echo ran here"], stdin=subprocess.DEVNULL)
    assert done.returncode == 125 and done.out == "one\n" and "ended before the program did" in done.err, done
    fake.table["GET", "/v1/runner"] = lambda handler: setattr(handler, "close_connection", True)
    done = fake.atoll.run(["run", "-l", "bash", "-c", "echo ran here"], stdin=subprocess.DEVNULL)
    assert done.returncode == 125 and done.out == "" and "went away" in done.err, done


def test_signal_cancels(fake):
    """The daemon is told; the result still comes."""
    def until_killed(handler):
        assert handler.packet()[0] == "K"

    fake.table["GET", "/v1/runner"] = runs(("o", b"on\n"), until_killed, end(status="cancelled", exit_code=137))
    popen = fake.atoll.popen(["run", "-l", "python", "-c", "x"], stdin=subprocess.DEVNULL)
    assert popen.stdout.readline() == b"on\n"
    popen.send_signal(signal.SIGTERM)
    assert popen.wait(25) == 128 + signal.SIGTERM
    assert popen.stderr.read() == b""


def test_reader_that_goes(fake):
    gone = threading.Event()

    def more(_):
        time.sleep(0.02)
        return "o", b"x" * 10000

    def until_killed(handler):
        assert handler.packet()[0] == "K"
        gone.set()

    fake.table["GET", "/v1/runner"] = runs(*[more] * 20, until_killed, end())
    popen = fake.atoll.popen(["run", "-l", "python", "-c", "x"], stdin=subprocess.DEVNULL)
    popen.stdout.read(10)
    popen.stdout.close()
    assert popen.wait(25) == 128 + signal.SIGPIPE and gone.wait(25)


@pytest.mark.parametrize("words", [["--no-daemon"], ["--output-dir", "out"], ["--tty"], ["--policy", "./policy.yaml"]])
def test_what_stays_here(fake, work, words):
    shutil.copy(fake.atoll.stage.data / "policies" / "default.yaml", work / "policy.yaml")
    done = fake.atoll.run(["run", "-l", "bash", "-c", "echo here", *words], cwd=work)
    assert done.returncode == 0 and done.out.split() == ["here"] and not fake.seen, done


@pytest.mark.modes("rootless")  # the default place of root is the machine's
def test_unwilling_daemon_costs_no_input(fake, atoll, work):
    """What was read of an endless input before the daemon said no is not lost."""
    fake.table["GET", "/v1/runner"] = runs(admission=("R", {"code": "draining", "detail": "Later."}))
    usual = at_default_place(atoll, work)
    popen = usual.popen(["run", "--quiet", "-l", "bash", "-c", "cat"])
    popen.stdin.write(b"first ")
    popen.stdin.flush()
    wait_until(lambda: fake.seen, why="it waits for the end of its input")
    out, err = popen.communicate(b"second", timeout=25)
    assert (out, err, popen.returncode) == (b"first second", b"", 0)
    big = os.urandom(3 << 20)
    done = usual.run(["run", "-l", "bash", "-c", "cat"], input=big)
    assert done.stdout == big and len(fake.seen) == 2


@pytest.mark.parametrize("bytes_, exit_code, out, said", [
    (packet("o", b"out\xff") + packet(*end(exit_code=6, status="error")), 6, b"out\xff", ""),
    (packet("o", b"x" * 65536) + packet("~") + packet(*end(exit_code=6, status="error")), 6, b"x" * 65536, ""),
    (packet("o", b"out"), 125, b"out", "ended before the program did"),
    (packet("o", b"out") + b"\0\0\0\7o", 125, b"out", "ended before the program did"),
    (packet("o", b"x" * 65537), 125, b"", "does not speak atoll-runner/1"),
    (b"\0\0\0\0o", 125, b"", "does not speak atoll-runner/1"),
    (b"\xff\xff\xff\xffZ", 125, b"", "does not speak atoll-runner/1"),
    (packet("Z", b"{}"), 125, b"", "does not speak atoll-runner/1"),
    (packet("Z", b"{}\n{"), 125, b"", "is no JSON"),
], ids=range(9))
def test_conversation_with_nonsense(fake, bytes_, exit_code, out, said):
    fake.table["GET", "/v1/runner"] = runs(bytes_)
    popen = fake.atoll.popen(["run", "-l", "bash", "-c", "x"])
    try:
        assert popen.stdout.read() == out
        assert popen.wait(25) == exit_code
        err = popen.stderr.read().decode()
        assert said in err and err.count("\n") == (1 if said else 0), err
    finally:
        popen.stdin.close()
        popen.wait(25)


@pytest.mark.parametrize("admission", [b"\0\0\0\0A", packet("A", b"["), packet("A", {"limits": {"memory": "much"}}), packet("o", b"x")])
def test_admission_that_is_nonsense(fake, admission):
    fake.table["GET", "/v1/runner"] = runs(admission=admission)
    done = fake.atoll.run(["run", "-l", "bash", "-c", "x"], stdin=subprocess.DEVNULL)
    assert done.returncode == 125 and "does not speak atoll-runner/1" in done.err and done.err.count("\n") == 1, done


def test_no_daemon_costs_nothing(atoll, work):
    for env in ({"ATOLL_URL": "off"}, {"ATOLL_URL": None, "ATOLL_SOCKET": "off"}, {"ATOLL_URL": None, "XDG_RUNTIME_DIR": str(work)}):
        done = atoll.run(["run", "-l", "bash", "-c", "echo here"], env=env)
        assert (done.returncode, done.out, done.err) == (0, "here\n", ""), done
    done = atoll.run(["run", "-l", "bash", "-c", "echo here"], env={"ATOLL_URL": "gopher://x"})
    assert done.returncode == 125 and "is no daemon's address" in done.err, done
