# SPDX-License-Identifier: Apache-2.0
"""The daemon's HTTP interface: what is kept of an execution, and finding it again."""
import io
import tarfile
import time

import pytest

from program import Atoll
from web import WebSocket, problem

quick = pytest.mark.quick


def listed(web, query=""):
    answer = web.get(f"/v1/executions{query}")
    assert answer.status == 200, answer
    return [row["id"] for row in answer.json()["executions"]]


@quick
def test_whole_streams_and_ranges(web):
    text = "".join(f"line {i}\n" for i in range(40000)).encode()
    result = web.execute("python", "for i in range(40000): print('line', i)", limits={"output": "4k"})
    assert result["stdout_truncated"] and result["stdout_bytes"] == len(text)
    path = f"/v1/executions/{result['id']}/stdout"
    whole = web.get(path)
    assert whole.status == 200 and whole.body == text and whole.headers["atoll-complete"] == "true"
    assert whole.headers["x-content-type-options"] == "nosniff" and whole.headers["accept-ranges"] == "bytes"
    part = web.get(path, headers={"Range": "bytes=10-19"})
    assert part.status == 206 and part.body == text[10:20]
    assert part.headers["content-range"] == f"bytes 10-19/{len(text)}"
    assert web.get(path, headers={"Range": "bytes=-7"}).body == text[-7:]
    assert web.get(path, headers={"Range": f"bytes={len(text)}-"}).status == 416
    assert web.get(f"/v1/executions/{result['id']}/stderr").body == b""
    assert web.ask("HEAD", path).headers["content-length"] == str(len(text))


@quick
def test_bytes_that_are_no_text(web):
    result = web.execute("python", "import sys; sys.stdout.buffer.write(bytes(range(256)))")
    assert result["stdout_binary"]
    assert web.get(f"/v1/executions/{result['id']}/stdout").body == bytes(range(256))


def test_range_while_it_runs(web):
    code = "import sys, time\nfor i in range(100):\n print('%04d' % i, flush=True)\n time.sleep(0.02)\n if i % 40 == 39: input()"
    id = web.submit("python", code, query="?interactive=true")
    path, seen = f"/v1/executions/{id}/stdout", b""
    ws = WebSocket(web, f"/v1/executions/{id}/attach")
    steps = 0
    while True:
        answer = web.get(path, headers={"Range": f"bytes={len(seen)}-"})
        assert answer.status in (206, 416) or (answer.status == 200 and not seen), answer
        seen += answer.body if answer.status != 416 else b""
        steps += answer.status == 206
        if len(seen) in (200, 400):  # the program waits until a watcher has seen so much
            ws.send({"type": "stdin", "data": "on\n"})
        if web.state(id)["status"] == "success":
            break
        time.sleep(0.05)
    rest = web.get(path, headers={"Range": f"bytes={len(seen)}-"})
    seen += rest.body if rest.status == 206 else b""
    ws.close()
    assert seen == b"".join(b"%04d\n" % i for i in range(100)) and steps > 1


@quick
def test_files(web):
    code = "import os\nos.mkdir('d')\nopen('a.txt', 'w').write('A')\nopen('d/b.bin', 'wb').write(b'\\0' * 5000)\n" \
           "open('<script>.html', 'w').write('<script>')"
    result = web.execute("python", code)
    top = f"/v1/executions/{result['id']}/files"
    rows = {row["path"]: row for row in web.get(top).json()["files"]}
    assert set(rows) == {"a.txt", "d/b.bin", "<script>.html"} and rows["d/b.bin"]["size"] == 5000
    one = web.get(f"{top}/d/b.bin")
    assert one.status == 200 and one.body == bytes(5000)
    assert one.headers["content-disposition"].startswith("attachment") and "b.bin" in one.headers["content-disposition"]
    page = web.get(f"{top}/%3Cscript%3E.html")
    assert page.body == b"<script>" and page.headers["content-type"] == "application/octet-stream"
    assert web.get(f"{top}/d/b.bin", headers={"Range": "bytes=0-9"}).body == bytes(10)
    for ask in ({"headers": {"Accept": "application/x-tar"}}, {}):
        answer = web.get(top + ("" if ask else "?format=tar"), **ask)
        assert answer.headers["content-type"] == "application/x-tar", answer
        with tarfile.open(fileobj=io.BytesIO(answer.body)) as tar:
            assert {m.name for m in tar.getmembers() if m.isfile()} == set(rows)
            assert tar.extractfile("a.txt").read() == b"A"
    for name in ("nothing", "d", "..%2fx", "%2e%2e/x", "a.txt/x", "a.txt%00"):
        assert web.get(f"{top}/{name}").status in (400, 404), name
    problem(web.get(f"{top}?format=rar"), 400, field="format")


@quick
def test_the_request(web):
    """As it was sent, also by another reader of the same caller; sent again, it does the same."""
    body = {"language": "python", "code": "print(open('a').read())", "files": {"a": "A"}, "labels": {"of": "request"}}
    result = web.post("/v1/execute", body).json()
    answer = web.get(f"/v1/executions/{result['id']}/request")
    assert answer.status == 200 and answer.json() == body
    problem(web.get("/v1/executions/ex_aaaaaaaaaaaaaaaaaaaaaaaaaa/request"), 404)


@quick
def test_analysis_and_report(web):
    result = web.execute("python", "def f():\n    return 1 / 0\nf()\n")
    top = f"/v1/executions/{result['id']}"
    analysis = web.get(f"{top}/analysis").json()
    assert analysis["is_error"] and analysis["error_type"] == "python_exception"
    assert analysis["exception"] == "ZeroDivisionError" and analysis["line"] == 2 and analysis["suggestion"]
    report = web.get(f"{top}/debug-report")
    assert report.headers["content-type"] == "application/json" and report.json()
    text = web.get(f"{top}/debug-report", headers={"Accept": "text/markdown"})
    assert text.headers["content-type"].startswith("text/markdown") and b"ZeroDivisionError" in text.body
    fine = web.execute("python", "print(1)")
    assert not web.get(f"/v1/executions/{fine['id']}/analysis").json()["is_error"]


def test_analysis_of_what_runs(web):
    id = web.submit("bash", "sleep 25")
    web.wait(id, "running")
    problem(web.get(f"/v1/executions/{id}/analysis"), 409, "not_ended")
    web.delete(f"/v1/executions/{id}")
    web.wait(id)


@quick
def test_replay_and_diff(web):
    result = web.execute("python", "import time; print('same'); print(time.time_ns())")
    answer = web.post(f"/v1/executions/{result['id']}/replay")
    assert answer.status == 202 and answer.json()["id"] != result["id"], answer
    again = web.wait(answer.json()["id"])
    assert again["stdout"].startswith("same\n")
    diff = web.get(f"/v1/executions/{result['id']}/diff/{again['id']}")
    assert diff.status == 200, diff
    assert diff.json()["a"] == result["id"] and diff.json()["b"] == again["id"] and not diff.json()["same"]
    problem(web.get(f"/v1/executions/{result['id']}/diff/ex_none"), 404)


@quick
def test_finding(web):
    mark = f"needle{time.monotonic_ns()}"
    good = web.execute("python", f"print('{mark}')", labels={"kind": mark})["id"]
    bad = web.execute("bash", f"echo {mark}; exit 1", labels={"kind": mark})["id"]
    assert listed(web, f"?label=kind={mark}") == [bad, good]
    assert listed(web, f"?label=kind={mark}&status=error") == [bad]
    assert listed(web, f"?label=kind={mark}&language=python") == [good]
    for word in ("py", "PY", "Python"):
        assert listed(web, f"?label=kind={mark}&language={word}") == [good], word
    assert listed(web, f"?label=kind={mark}&status=error&status=success") == [bad, good]
    assert listed(web, f"?label=kind={mark}&status=error&status=queued") == [bad]
    assert listed(web, f"?label=kind={mark}&label=kind=other") == []
    end = time.monotonic() + 60
    while set(listed(web, f"?text={mark}")) != {good, bad}:
        assert time.monotonic() < end, "the text is not found"
        time.sleep(0.1)
    created = web.get(f"/v1/executions?label=kind={mark}&language=python").json()["executions"][0]["created_at"]
    assert good in listed(web, f"?since={created}") and good not in listed(web, f"?until={created}")
    first = web.get(f"/v1/executions?label=kind={mark}&limit=1").json()
    second = web.get(f"/v1/executions?label=kind={mark}&limit=1&cursor={first['next']}").json()
    assert [row["id"] for row in first["executions"] + second["executions"]] == [bad, good]


@quick
@pytest.mark.parametrize("query, field", [
    ("?limit=0", "limit"), ("?limit=1001", "limit"), ("?limit=x", "limit"), ("?since=yesterday", "since"),
    ("?colour=red", "colour"), ("?language=c&language=py", "language"), ("?cursor=xyz", None), ("?status=purple", None), ("?label=x", None)])
def test_bad_filters(web, query, field):
    problem(web.get(f"/v1/executions{query}"), 400, field=field)


@quick
@pytest.mark.parametrize("method, path, says", [
    ("GET", "/v1/executions/ex_x?wiat=30", "wiat: there is no such parameter; did you mean 'wait'?"),
    ("GET", "/v1/limits?x", "x: there is no such parameter; GET /openapi.json lists those of listLimits"),
    ("GET", "/v1/executions?limit=1&limit=1", "limit: give it once."),
    ("DELETE", "/v1/executions/ex_x?force=1", "force: there is no such parameter; GET /openapi.json lists those of deleteExecution"),
    ("POST", "/v1/execute?timeout=5", "timeout: write it into the JSON body, as a key of limits"),
    ("POST", "/v1/execute?interactive=yes", "interactive: give true or false."),
    ("POST", "/v1/executions?language=bash", "language: write it into the JSON body"),
    ("POST", "/v1/cleanup?status=error", "status: there is no such parameter; GET /openapi.json lists those of cleanUp"),
])
def test_parameters_that_would_do_nothing(web, method, path, says):
    body = {"language": "python", "code": "1"} if "/exec" in path and method == "POST" else None
    answer = web.ask(method, path, body)
    assert problem(answer, 400, "invalid_field", path.partition("?")[2].partition("=")[0]) == says
    assert web.get("/healthz?anything=1").status == 200  # probes may add what they like


@quick
def test_stats(web):
    web.execute("python", "print(1)")
    stats = web.get("/v1/stats").json()
    assert stats["now"]["running_max"] >= 1 and "by_status" in stats
    problem(web.get("/v1/stats?since=x"), 400, field="since")
    mark = f"m{time.monotonic_ns()}"
    web.execute("bash", "exit 1", labels={"kind": mark, "b": "1"})
    only = web.get(f"/v1/stats?label=kind={mark}").json()
    assert only["total"] == 1 and only["by_status"]["error"] == 1 and list(only["by_label"]) == [f"kind={mark}"]
    only, whole = web.get("/v1/stats?language=PY").json(), web.get("/v1/stats").json()
    assert list(only["by_language"]) == ["python"] and only["by_label"] == {}
    assert only["total"] == whole["by_language"]["python"]["total"] < whole["total"], (only, whole)
    problem(web.get(f"/v1/stats?language=py&label=kind={mark}"), 400, field="label")
    problem(web.get("/v1/stats?status=error"), 400, field="status")


@quick
def test_a_state_has_usage_from_the_first(web):
    id = web.submit("bash", "sleep 20")
    state = web.wait(id, "running")
    assert state["usage"]["cpu_time"] >= 0 and set(state["usage"]) >= {"memory_peak", "io_read"}, state
    web.delete(f"/v1/executions/{id}")


@quick
def test_files_in_order_and_by_stars(web):
    code = "mkdir -p d/e; for f in m.csv d/x.csv a.csv d/e/f.csv z.txt; do echo > $f; done"
    assert [f["path"] for f in web.execute("bash", code)["files"]] == ["a.csv", "d/e/f.csv", "d/x.csv", "m.csv", "z.txt"]
    some = web.execute("bash", code, collect=["**/*.csv"])["files"]
    assert [f["path"] for f in some] == ["a.csv", "d/e/f.csv", "d/x.csv", "m.csv"]


@quick
def test_a_refused_job_has_its_language(web):
    answer = web.post("/v1/executions", {"language": "python", "code": "1", "limits": {"memory": "1"}})
    assert answer.status == 202, answer
    result = web.wait(answer.json()["id"])
    assert result["status"] == "setup_error" and result["language"] == "python", result


def test_callers_are_apart_and_clean_up_their_own(mode, stage):
    """A04, A09: what belongs to another token does not exist."""
    atoll, work = Atoll(mode, stage), stage.scratch(mode, "tokens")
    tokens = work / "tokens"
    tokens.write_text("first-secret-of-all\nsecond-secret-of-all operator\n")
    tokens.chmod(0o600)
    if atoll.rootless:
        import os
        from oracle import IS_ROOT, NOBODY
        if IS_ROOT:
            os.chown(tokens, NOBODY, NOBODY)
    from daemon import Daemon
    from web import LocalWeb, Web
    daemon = Daemon(atoll, work, "--token-file", tokens)
    try:
        one, two, nobody = (Web(daemon.host, daemon.port, token)
                            for token in ("first-secret-of-all", "second-secret-of-all", None))
        end = time.monotonic() + 60
        while nobody.get("/readyz").status != 200 and time.monotonic() < end:
            time.sleep(0.02)
        assert nobody.get("/v1/languages").status == 401
        # What is of the server as a whole is for operators.
        assert [who.get("/metrics").status for who in (nobody, one, two, LocalWeb(daemon.socket))] == [401, 403, 200, 200]
        assert Web(daemon.host, daemon.port, "second-secret-of-all operator").get("/v1/limits").status == 401
        assert Web(daemon.host, daemon.port, "first-secret-of-al").get("/v1/limits").status == 401
        assert Web(daemon.host, daemon.port, "x" * 5000).get("/v1/limits").status == 401
        assert nobody.get("/v1/limits?token=first-secret-of-all").status in (400, 401)
        id = one.execute("python", "print(1)")["id"]
        running = one.submit("bash", "sleep 30")
        assert one.state(id)["status"] == "success"
        for path in ("", "/events", "/stdout", "/files", "/analysis", "/attach"):
            assert two.get(f"/v1/executions/{id}{path}").status == 404, path
        assert two.delete(f"/v1/executions/{running}").status == 404
        assert two.post(f"/v1/executions/{id}/replay").status == 404
        assert two.get("/v1/executions").json()["executions"] == []
        assert two.post("/v1/cleanup").json() == {"cancelled": 0, "deleted": 0, "sessions": 0}
        # A request that names what to choose by loses nothing.
        for path, body, field in (("/v1/cleanup", {"status": "error"}, "status"), ("/v1/cleanup?older=1h", None, "older"),
                                  ("/v1/cleanup", [], None)):
            refused = one.post(path, body)
            assert refused.status == 400 and refused.json().get("field") == field, refused
        assert two.get("/v1/cleanup").json() == {"cancelled": 0, "deleted": 0, "sessions": 0}
        assert one.get("/v1/cleanup").json() == {"cancelled": 1, "deleted": 2, "sessions": 0}
        assert one.post("/v1/cleanup", {}).json() == {"cancelled": 1, "deleted": 2, "sessions": 0}
        assert one.get("/v1/executions").json()["executions"] == []
        assert one.get(f"/v1/executions/{id}").status == 404
    finally:
        assert daemon.end() == 0
