# SPDX-License-Identifier: Apache-2.0
"""What users get wrong, and what they are told: test/golden/mistakes.txt, in which each message was reviewed.

The file is the list as well: a line that begins with `$`, an HTTP method, `MCP` or `>>>` is done, and below it stand the exit code (or
status, or exception) and the message. ATOLL_GOLDEN_UPDATE=1 writes the messages anew, to be read before they are committed.
"""
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from oracle import IS_ROOT, NOBODY
from program import ROOT
from web import Served

sys.path.insert(0, str(ROOT / "sdk" / "python" / "src"))
import atoll as package  # noqa: E402

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "mistakes.txt"
TOKEN = "a-token-of-the-tests-0123456789"
MCP = "2026-07-28"
MISTAKES = re.compile(r"(?m)^(\$|>>>|MCP|GET|POST|DELETE) (.+)\n((?:  .*\n)*)")
FILES = {
    "a.py": "print(1)\n", "notes": "no program\n", "numbers.json": "{\"a\": 1}\n", "broken.json": "[{]\n", "project/one.py": "", "project/two.py": "",
    "tabs.yaml": "queue:\n\tmax: 3\n", "typo.yaml": "# how many may wait\nqueue:\n  maks: 3\n", "group.yaml": "queu:\n  max: 3\n",
    "wrong.yaml": "queue:\n  max: many\n", "limit.yaml": "limits:\n  defaults:\n    memroy: 1g\n", "twice.yaml": "drain: 1s\ndrain: 2s\n",
    "mem.yaml": "language: python\ncode: print(1)\nlimits:\n  mem: 1g\n", "Empty.java": "\n", "utf16.py": "print(1)\n",
    "lang.yaml": "lang: python\ncode: print(1)\n", "token": TOKEN + "\n", "open-token": TOKEN + "\n", "no-token": "",
}


@pytest.fixture
def place(atoll, work):
    """A directory with the files that the mistakes name."""
    for name, text in FILES.items():
        (work / name).parent.mkdir(exist_ok=True)
        (work / name).write_text(text)
        (work / name).chmod(0o644 if name == "open-token" else 0o600)
    (work / "utf16.py").write_text(FILES["utf16.py"], encoding="utf-16")
    shutil.copy("/bin/true", work / "program")
    with open(work / "large.py", "wb") as f:
        f.truncate(70 << 20)
    if IS_ROOT:
        subprocess.run(["chown", "-R", f"{NOBODY}:{NOBODY}", work], check=True)
    return work


@pytest.fixture
def served(atoll, place):
    one = Served(atoll, place, "--token-file", place / "token")
    one.web.token = TOKEN
    yield one
    one.end()


class Maker:
    """Makes the mistakes; each method returns what a user sees."""

    def __init__(self, atoll, place, served):
        self.place, self.served, self.web = place, served, served.web
        bin = place / "bin"
        bin.mkdir()
        (bin / "atoll").symlink_to(atoll.binary)
        self.atoll = atoll.variant(env={"PATH": f"{bin}:{os.environ['PATH']}", "PORT": str(served.daemon.port), "STATE": str(served.daemon.state),
                                        "ATOLL_URL": str(served.daemon.socket), "TOKEN_FILE": str(place / "token")})

    def shell(self, line):
        done = self.atoll.run(["-c", line], program="/bin/sh", cwd=self.place, timeout=20)
        assert done.stdout == b"", done
        return f"{done.returncode} {done.err.strip()}"

    def http(self, method, line):
        target, _, body = line.partition(" ")
        answer = self.web.ask(method, target, body.encode() or None, {"Content-Type": "application/json"} if body else {})
        text = answer.json()
        return f"{answer.status} {text.get('detail') or text.get('stderr')}"

    def mcp(self, line):
        method, _, text = line.partition(" ")
        params = json.loads(text)
        meta = {f"io.modelcontextprotocol/{key}": value for key, value in
                (("protocolVersion", MCP), ("clientInfo", {"name": "tests", "version": "1"}), ("clientCapabilities", {}))}
        headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": MCP, "Mcp-Method": method,
                   "Mcp-Name": params.get("name") or params.get("uri") or ""}
        answer = self.web.post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}, headers=headers)
        whole = json.loads(re.search(r"\{.*\}", answer.body.decode())[0])
        if "error" in whole:
            return f"{whole['error']['code']} {whole['error']['message']}"
        assert whole["result"]["isError"], whole
        said = whole["result"]["content"][0]["text"]
        return f"isError {json.loads(said)['error_message'] if said.startswith('{') else said}"

    def python(self, line):
        with package.Client(f"unix:{self.served.daemon.socket}") as client, pytest.raises(Exception) as caught:
            eval(line, {"client": client, "port": self.served.daemon.port, **vars(package)})
        return f"{type(caught.value).__name__}: {caught.value}"

    def make(self, kind, line):
        do = {"$": self.shell, ">>>": self.python, "MCP": self.mcp}.get(kind)
        said = do(line) if do else self.http(kind, line)
        for text, name in ((str(self.place), "HERE"), (str(self.served.daemon.port), "PORT"), (f"process {self.served.daemon.pid})", "process PID)"),
                           (f"pid {self.served.daemon.pid})", "pid PID)")):
            said = said.replace(text, name)
        # What this host has.
        said = re.sub(r"(installed: )[\d., ]+", r"\1VERSIONS", said)
        said = re.sub(r"(another address with --listen 127\.0\.0\.1:)\d+", r"\1FREE", said)
        return re.sub(r"\d+ GiB", "N GiB", said)


def everything_in(place):
    return sorted(str(path) for path in place.rglob("*") if place / "state" not in path.parents)


@pytest.mark.modes("rootless")
def test_mistakes(atoll, place, served):
    maker, golden = Maker(atoll, place, served), GOLDEN.read_text()
    before = everything_in(place)

    def make(found):
        kind, line, _ = found.groups()
        return f"{kind} {line}\n" + "".join(f"  {row}\n" for row in maker.make(kind, line).splitlines())

    told = MISTAKES.sub(make, golden)
    if os.environ.get("ATOLL_GOLDEN_UPDATE"):
        GOLDEN.write_text(told)
    else:
        assert told == golden
    assert everything_in(place) == before, "a mistake left something behind"


def test_messages_are_brief():
    """One clear sentence or two, in words that a user has."""
    found = [match.groups() for match in MISTAKES.finditer(GOLDEN.read_text())]
    assert len(found) >= 60 and len({(kind, line) for kind, line, _ in found}) == len(found)
    for kind, line, said in found:
        assert said.count("\n") == 1 and 20 < len(said) < 330, (kind, line, said)
        assert not re.search(r"(?i)errno|invalid argument|document 00|\(null\)|traceback|nullptr|0x", said), (kind, line, said)
