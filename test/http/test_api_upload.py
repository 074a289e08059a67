# SPDX-License-Identifier: Apache-2.0
"""Requests whose body is a program or a form, as curl sends them, and what web pages may not send."""
import io
import shutil
import subprocess
import tarfile

import pytest

from web import problem

SHOW = b"import sys\nprint(sys.argv[1:], open('data.txt').read() if len(sys.argv) < 2 else '')\n"


def send(web, body, kind, query="", path="/v1/execute", **headers):
    return web.ask("POST", path + query, body, {"Content-Type": kind, **headers} if kind else headers)


def form(*parts):
    """A form of (name, content) and (name, filename, content), and its type."""
    body = b""
    for name, *file, content in parts:
        filename = f'; filename="{file[0]}"' if file else ""
        body += f'--b-1\r\nContent-Disposition: form-data; name="{name}"{filename}\r\n\r\n'.encode()
        body += (content if isinstance(content, bytes) else content.encode()) + b"\r\n"
    return body + b"--b-1--\r\n", "multipart/form-data; boundary=b-1"


def send_form(web, *parts, path="/v1/execute", query=""):
    return send(web, *form(*parts), path=path, query=query, **{"X-Requested-With": "test"})


def test_the_body_is_the_program(web):
    result = send(web, SHOW, "text/x-python", "?args=%5B%22a%22%5D&timeout=5&memory=256m&pids=20").json()
    assert result["stdout"] == "['a'] \n", result
    request = web.get(f"/v1/executions/{result['id']}/request").json()
    assert request["limits"] == {"timeout": "5", "memory": "256m", "pids": "20"} and request["language"] == "python"
    assert send(web, b"echo $0", "application/octet-stream", "?language=bash").json()["stdout"] == "/sandbox/main.sh\n"
    assert send(web, b"echo plain", "text/plain", "?language=bash", **{"X-Requested-With": "test"}).json()["stdout"] == "plain\n"
    accepted = send(web, b"echo later", "text/x-sh", path="/v1/executions")
    assert accepted.status == 202 and web.wait(accepted.json()["id"])["stdout"] == "later\n"
    # The same program again, with the same key: the body is compared as the JSON that it stands for.
    key = {"Idempotency-Key": "raw"}
    first = send(web, b"echo $RANDOM", "text/x-sh", **key).json()
    assert web.post("/v1/execute", {"code": "echo $RANDOM", "language": "sh"}, headers=key).json()["id"] == first["id"]


@pytest.mark.parametrize("kind, query, field", [
    ("text/x-python", "?timeout=99999", "limits.timeout"), ("text/x-python", "?nonsense=1", "nonsense"),
    ("text/x-python", "?args=a", "args"), ("text/x-python", "?eval=1],[2", "eval"),
    ("text/x-python", "?code=1", "code"), ("text/x-python", "?policy=strict&policy=default", "policy"), ("text/x-nonesuch", "", None),
])
def test_a_refused_program(web, kind, query, field):
    problem(send(web, b"print(1)", kind, query), 400, field=field)


def test_forms(web):
    result = send_form(web, ("language", "python"), ("code", "prog.py", SHOW), ("some", "data.txt", "hello"), ("timeout", "3s"),
                       ("labels", '{"a": "b"}'), ("stdin", b"\xff\x00")).json()
    assert result["stdout"] == "[] hello\n" and result["labels"] == {"a": "b"}, result
    request = web.get(f"/v1/executions/{result['id']}/request").json()
    assert request["stdin"] == {"base64": "/wA="} and request["limits"] == {"timeout": "3s"}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        member = tarfile.TarInfo("prog.py")
        member.size = len(SHOW)
        archive.addfile(member, io.BytesIO(SHOW))
    result = send_form(web, ("language", "python"), ("archive", "p.tgz", packed.getvalue()), ("entry", "prog.py"), query="?args=%5B%22x%22%5D")
    assert result.json()["stdout"] == "['x'] \n", result


@pytest.mark.parametrize("parts, field", [
    ([("code", "1"), ("code", "2")], "code"), ([("code", "1"), ("nonsense", "1")], "nonsense"), ([("code", "1"), ("tests", "[1")], "tests"),
    ([("code", "1"), ("f", "../x", "")], "files"), ([("code", "1"), ("files", "[]"), ("f", "x", "")], "x"),
    ([("code", "1"), ("f", "x", "1"), ("g", "x", "2")], "x"), ([("code", "1"), ("labels", " " * (1 << 20) + "{}")], "labels"),
    ([("code", "1"), ("\xff" * 3, "{")], None),
])
def test_refused_forms(web, parts, field):
    answer = send_form(web, ("language", "python"), *parts)
    assert answer.status == 400 and (field is None or answer.json()["field"].startswith(field)), answer


def test_malformed_forms(web):
    body, kind = form(("code", "1"))
    header = {"X-Requested-With": "test"}
    for broken, its_kind in ((body[:-4], kind), (body, "multipart/form-data"), (b"x" + body, kind), (body.replace(b'"code"', b'"\xff"'), kind)):
        problem(send(web, broken, its_kind, **header), 400, "invalid_request")
    problem(send(web, form(*[("f", f"n{i}", "") for i in range(4300)])[0], kind, **header), 400, "invalid_request")


def test_what_a_web_page_can_send_is_not_taken(web):
    """These types and no type at all need no preflight, and not every browser names the page's origin."""
    body, kind = form(("language", "bash"), ("code", "echo hacked"))
    for content, its_kind in ((b"echo hacked", "text/plain"), (b"echo hacked", "TEXT/PLAIN; x=application/json"), (b"echo hacked", ""),
                              (b"echo hacked", "application/x-www-form-urlencoded"), (body, kind), (body, kind.upper().replace("B-1", "b-1"))):
        for path in ("/v1/execute", "/v1/executions"):
            problem(send(web, content, its_kind, "?language=bash", path=path), 415, "not_json")
    # Nor is a type that two readers could understand differently, with any header.
    for its_kind in ("", "application/x-www-form-urlencoded", "text/plain, application/json", "application/jsonp", "text/html", "text/x-"):
        problem(send(web, b"echo hacked", its_kind, "?language=bash", **{"X-Requested-With": "test"}), 415, "not_json")
    # Routes without programs take JSON alone, with any header.
    problem(send(web, body, kind, path="/v1/sessions", **{"X-Requested-With": "test"}), 415, "not_json")
    problem(send(web, body, kind, path="/v1/executions:batch", **{"X-Requested-With": "test"}), 415, "not_json")
    # A page that is asked for is refused for its origin, and what it would have to ask is not granted.
    problem(send(web, b"echo", "text/x-sh", **{"Origin": "http://evil.example"}), 403, "wrong_origin")
    asked = web.ask("OPTIONS", "/v1/execute", headers={"Access-Control-Request-Headers": "x-requested-with"})
    assert not [name for name in asked.headers if name.startswith("access-control")]


@pytest.mark.skipif(not shutil.which("curl"), reason="there is no curl")
def test_curl(served, tmp_path):
    (tmp_path / "prog.py").write_bytes(SHOW)
    (tmp_path / "data.txt").write_text("hello")
    url = f"http://{served.web.host}:{served.web.port}/v1/execute"
    for words in (["--data-binary", "@prog.py", "-H", "Content-Type: text/x-python", url + "?args=[%22a%22]"],
                  ["--data-binary", "@prog.py", url + "?language=python&args=[%22a%22]"],
                  ["--data-binary", "@prog.py", "-H", "Content-Type: text/plain", url + "?language=python&args=[%22a%22]"],
                  ["-F", "language=python", "-F", "code=@prog.py", "-F", "data=@data.txt", "-H", "X-Requested-With: curl", url],
                  ["-F", "language=python", "-F", "code=@prog.py", "-F", "data=@data.txt", url]):
        done = subprocess.run(["curl", "-sg", "--fail-with-body", *words], cwd=tmp_path, capture_output=True, timeout=60)
        assert done.returncode == 0 and b'"status":"success"' in done.stdout, done
    # A form's type without a language is no program, and a page cannot name itself curl without asking first.
    for words in (["-d", '{"language": "bash", "code": "true"}', url], ["-A", "Mozilla/5.0 curl/8.0", "-d", "true", url + "?language=bash"]):
        done = subprocess.run(["curl", "-sg", "-w", "%{http_code}", *words], cwd=tmp_path, capture_output=True, timeout=60)
        assert done.stdout.endswith(b"415"), done
