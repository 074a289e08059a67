# SPDX-License-Identifier: Apache-2.0
"""Sessions of each language in real sandboxes: state, values, errors, exits, interrupts, host functions, files."""
import base64
import io
import json
import tarfile
import threading
import time
import zipfile

import pytest

from web import problem

LANGUAGES = ("python", "javascript", "ruby", "bash")
SET = {"python": "x = 41", "javascript": "let x = 41", "ruby": "x = 41", "bash": "x=41"}
PRINT = {"python": "print(x + 1)", "javascript": "console.log(x + 1)", "ruby": "puts x + 1", "bash": "echo $((x + 1))"}
EXIT = {"python": "exit(3)", "javascript": "process.exit(3)", "ruby": "exit 3", "bash": "f() { exit 3; }; f"}
SPIN = {"python": "while True: pass", "javascript": "while (true) {}", "ruby": "loop {}", "bash": "while :; do :; done"}
WAIT = {"python": "import time; time.sleep(60)", "javascript": "await new Promise((r) => setTimeout(r, 60000))", "ruby": "sleep 60", "bash": "sleep 60"}
FAIL = {"python": "\n1/0", "javascript": "\nnull.x", "ruby": "\nnil.foo", "bash": "\nfoo-bar-baz"}
CHILD = {"python": "import subprocess; subprocess.run('ls -l /proc/self/fd | grep -c socket', shell=True).returncode",
         "javascript": "require('child_process').execSync('ls -l /proc/self/fd | grep -c socket || true', {stdio: 'inherit'})",
         "ruby": "system 'ls -l /proc/self/fd | grep -c socket'", "bash": "ls -l /proc/self/fd | grep -c socket"}
CALL = {"python": "multiply(6, 7)", "javascript": "await multiply(6, 7)", "ruby": "multiply(6, 7)"}


@pytest.fixture(params=LANGUAGES)
def session(request, web):
    session = Session(web, request.param)
    yield session
    web.delete(session.path)


class Session:
    def __init__(self, web, language, **more):
        answer = web.post("/v1/sessions", {"language": language, **more})
        assert answer.status == 201, answer
        self.web, self.language, self.path = web, language, f"/v1/sessions/{answer.json()['id']}"

    def run(self, code, **more):
        answer = self.web.post(f"{self.path}/execute", {"code": code[self.language] if isinstance(code, dict) else code, **more})
        assert answer.status == 200, answer
        return answer.json()


def test_state_is_kept(session):
    assert session.run(SET)["exit_code"] == 0
    for code, number in ((PRINT, 0), (EXIT, 3), (PRINT, 0), (FAIL, 127 if session.language == "bash" else 1), (PRINT, 0)):
        result = session.run(code)
        assert result["exit_code"] == number and result["session"]["state"] == "kept", result
        if code is PRINT:
            assert result["stdout"] == "42\n" and result["stderr"] == ""


def test_errors_point_at_the_code(session):
    error = session.run(FAIL).get("error")
    if session.language != "bash":
        assert error["line"] == 2 and error["file"].startswith("/sandbox/cell-1.")
    assert ".atoll" not in session.run(FAIL)["stderr"]


def test_interrupts_and_timeouts_keep_the_state(session):
    session.run(SET)
    for code in (SPIN, WAIT):
        result = session.run(code, limits={"timeout": 0.3})
        assert result["status"] == "timeout" and result["session"]["state"] == "kept", result
        results = []
        thread = threading.Thread(target=lambda: results.append(session.run(code)))
        thread.start()
        while session.web.get(session.path).json()["state"] != "busy":
            time.sleep(0.01)
        time.sleep(0.1)
        answer = session.web.post(f"{session.path}/interrupt", {}).json()
        thread.join(30)
        assert answer["state"] == "kept" and results[0]["session"]["state"] == "kept", (answer, results)
    assert session.run(PRINT)["stdout"] == "42\n"


def test_children_do_not_have_the_channel(session):
    assert session.run(CHILD)["stdout"] == "0\n"
    assert session.run(SET)["exit_code"] == 0


def test_files(session):
    headers = {"Content-Type": "application/octet-stream"}
    assert session.web.ask("PUT", f"{session.path}/files/a/b.bin", b"\0\xff", headers=headers).status == 204
    assert session.web.get(f"{session.path}/files/a/b.bin").body == b"\0\xff"
    files = session.web.get(f"{session.path}/files").json()["files"]
    assert [(entry["path"], entry["type"]) for entry in files] == [("a", "directory"), ("a/b.bin", "file")], files
    assert session.web.delete(f"{session.path}/files/a/b.bin").status == 204
    assert session.web.get(f"{session.path}/files/a/b.bin").status == 404


def packed(kind, files, links=()):
    """A tar, tar.gz or zip with these files."""
    out = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(out, "w") as archive:
            for name, data in files.items():
                archive.writestr(name, data)
        return out.getvalue()
    with tarfile.open(fileobj=out, mode="w:gz" if kind == "tar.gz" else "w") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
        for name in links:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
            archive.addfile(entry)
    return out.getvalue()


def test_archives(session):
    """doc/http.md: raw at PUT …/files?format=tar, unpacked into /sandbox."""
    def put(body, query="?format=tar"):
        return session.web.ask("PUT", f"{session.path}/files{query}", body, headers={"Content-Type": "application/x-tar"})
    for kind in ("tar", "tar.gz", "zip"):
        files = {f"{kind}/text": b"t" * 70000, f"{kind}/deep/bytes": bytes(range(256)), f"{kind}/empty": b""}
        assert put(packed(kind, files)).status == 204
        for name, data in files.items():
            assert session.web.get(f"{session.path}/files/{name}").body == data, name
    before = session.web.get(f"{session.path}/files").json()
    for body in (b"", packed("tar", {}), b"no archive", packed("tar", {"../x": b"1"}), packed("tar", {"/x": b"1"}), packed("tar", {"y": b"1"}, ["link"])):
        problem(put(body), 400, "invalid_field")
    problem(put(packed("tar", {}), ""), 400, "invalid_field")
    assert put(packed("tar", {"tar/text/below": b"1"})).status in (400, 404), "a file below a file"
    assert session.web.get(f"{session.path}/files").json() == before, "a refused archive left files"
    gone = session.web.ask("PUT", "/v1/sessions/se_aaaaaaaaaaaaaaaaaaaaaaaaaa/files?format=tar", packed("tar", {"a": b""}),
                           headers={"Content-Type": "application/x-tar"})
    problem(gone, 404)


@pytest.mark.parametrize("language", CALL)
def test_host_functions(web, language):
    session = Session(web, language, host_functions=["multiply"])
    with web.stream("POST", f"{session.path}/execute", {"code": CALL[language]}, accept="application/x-ndjson") as response:
        for line in response:
            event = json.loads(line)
            if event["event"] == "host_call":
                assert event["data"]["args"] == [6, 7]
                assert web.post(f"{session.path}/calls/{event['data']['call_id']}", {"result": 42}).status == 204
        assert event["data"]["value"] == 42 and event["data"]["host_calls"][0]["name"] == "multiply"
    web.delete(session.path)


def test_images_of_javascript(web):
    png = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
    session = Session(web, "javascript")
    assert session.run(f"Buffer.from('{png}', 'base64')")["outputs"][0]["data"]["image/png"] == png
    web.delete(session.path)
