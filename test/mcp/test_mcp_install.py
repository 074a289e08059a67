# SPDX-License-Identifier: Apache-2.0
"""`atoll mcp install` in a home of its own: each client's file, what was in it, and what the documentation says about it."""
import json
import os
import re
import subprocess

import pytest

try:
    import tomllib
except ImportError:  # Python before 3.11
    tomllib = None

from oracle import IS_ROOT
from program import ROOT

pytestmark = pytest.mark.modes("rootless")
NAMES = ["claude-code", "claude-desktop", "codex", "copilot-cli", "cursor", "gemini-cli", "opencode", "vscode", "windsurf", "zed"]
DOC = ROOT / "doc" / "mcp.md"


class Home:
    def __init__(self, atoll, path):
        self.atoll, self.path = atoll, path
        self.env = {"HOME": str(path), "XDG_CONFIG_HOME": None, "CODEX_HOME": None, "COPILOT_HOME": None}

    def install(self, *words, env=None):
        if IS_ROOT:
            subprocess.run(["chown", "-RP", "{0.st_uid}:{0.st_gid}".format(os.stat(self.path)), self.path], check=True)
        return self.atoll.run(["mcp", "install", *words], env={**self.env, **(env or {})})

    def clients(self, **more):
        done = self.install("--list", "--json", **more)
        assert done.returncode == 0 and done.stderr == b"", done
        return {one["name"]: one for one in done.json()["clients"]}

    def files(self):
        return sorted(str(p.relative_to(self.path)) for p in self.path.rglob("*") if p.is_file())


@pytest.fixture
def home(atoll, work):
    return Home(atoll, work)


def plain_json(text):
    """JSON of a text with comments and trailing commas."""
    text = re.sub(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', lambda m: m[1] or " ", text, flags=re.S)
    return json.loads(re.sub(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])', lambda m: m[1] or "", text))


def parse(client, text):
    return tomllib.loads(text) if client["format"] == "toml" else plain_json(text)


@pytest.mark.quick
def test_every_client(home):
    """A new file holds the snippet of the list; a second time nothing changes."""
    before = home.clients()
    assert list(before) == NAMES and {c["state"] for c in before.values()} == {"no file"}
    for name, client in before.items():
        done = home.install("--client", name)
        assert done.returncode == 0 and done.stdout == b"" and client["file"] in done.err and "restart" in done.err, done
        text = open(client["file"]).read()
        assert text == client["snippet"], text
        if tomllib:
            assert str(home.atoll.binary) in json.dumps(parse(client, text)), text
        again = home.install("--client", name)
        assert again.returncode == 0 and "has Atoll already" in again.err and open(client["file"]).read() == text, again
    assert {c["state"] for c in home.clients().values()} == {"added"}
    assert len(home.files()) == len(NAMES), home.files()
    assert all(os.stat(c["file"]).st_mode & 0o777 == 0o600 for c in before.values())


BEFORE = """// Zed settings
//
{
  "theme": "One Dark", // nice
  /* servers
     of mine */
  "context_servers": {
    "other": { "command": "x", "args": ["a,b", "}"], },
  },
  "z": [1, 2,],
}
"""


def test_what_is_there_stays(home):
    file = home.path / ".config" / "zed" / "settings.json"
    file.parent.mkdir(parents=True)
    file.write_text(BEFORE)
    file.chmod(0o640)
    done = home.install("--client", "zed")
    assert done.returncode == 0, done
    text = file.read_text()
    entry = f'    "atoll": {{\n      "command": "{home.atoll.binary}",\n      "args": ["mcp"]\n    }},\n'
    assert text == BEFORE.replace('"}"], },\n', '"}"], },\n' + entry), text
    expected = plain_json(BEFORE)
    expected["context_servers"]["atoll"] = {"command": str(home.atoll.binary), "args": ["mcp"]}
    assert plain_json(text) == expected
    backups = [p for p in file.parent.iterdir() if p != file]
    assert len(backups) == 1 and backups[0].suffix == ".bak" and backups[0].read_text() == BEFORE and str(backups[0]) in done.err, done
    assert all(p.stat().st_mode & 0o777 == 0o640 for p in (file, *backups))


def test_dry_run_is_a_patch(home):
    """Nothing is written; the diff, applied, gives what would have been written."""
    texts = {"zed": BEFORE, "codex": 'model = "x"\n\n[mcp_servers.other]\ncommand = "y"', "cursor": '{"mcpServers": {}}', "vscode": None}
    for name, text in texts.items():
        file = home.clients()[name]["file"]
        os.makedirs(os.path.dirname(file), exist_ok=True)
        if text is not None:
            open(file, "w").write(text)
        seen = home.files()
        diff = home.install("--client", name, "--dry-run")
        assert diff.returncode == 0 and diff.stderr == b"" and home.files() == seen, diff
        assert text is None or open(file).read() == text
        copy = home.path / "copy"
        copy.mkdir()
        if text is not None:
            (copy / "config").write_text(text)
        patch = re.sub(r"(?m)^(---|\+\+\+) /(?!dev/null).*$", r"\1 config", diff.out)
        done = subprocess.run(["git", "apply", "--unidiff-zero", "-p0"], input=patch, text=True, cwd=copy, capture_output=True)
        assert done.returncode == 0, (done, diff.out)
        assert home.install("--client", name).returncode == 0
        assert (copy / "config").read_text() == open(file).read()
        subprocess.run(["rm", "-r", copy], check=True)


def test_other_entries_and_replace(home):
    client = home.clients()["cursor"]
    os.makedirs(os.path.dirname(client["file"]))
    open(client["file"], "w").write('{"mcpServers": {"atoll": {"command": "/old/atoll", "args": ["mcp"]}}}')
    refused = home.install("--client", "cursor")
    assert refused.returncode == 125 and "another server named 'atoll'" in refused.err and "--replace" in refused.err, refused
    assert home.clients()["cursor"]["state"] == "other entry" and len(home.files()) == 1
    assert home.install("--client", "cursor", "--replace").returncode == 0
    assert json.load(open(client["file"])) == json.loads(client["snippet"])
    assert home.clients()["cursor"]["state"] == "added"


def test_links_stay_links(home):
    """Settings often are links into a repository."""
    real = home.path / "dotfiles" / "cursor.json"
    real.parent.mkdir()
    real.write_text("{}\n")
    link = home.path / ".cursor" / "mcp.json"
    link.parent.mkdir()
    link.symlink_to(real)
    assert home.install("--client", "cursor").returncode == 0
    assert link.is_symlink() and "atoll" in real.read_text() and len(home.files()) == 3
    link.unlink()
    link.symlink_to(home.path / "gone")
    assert "symbolic link to a file that is not there" in home.install("--client", "cursor").err


def test_addresses_and_files(home):
    """--url for clients that connect themselves, --file for a project's own settings, the variables that move a client's folder."""
    url = "http://127.0.0.1:8700/mcp"
    for name, client in home.clients().items():
        done = home.install("--client", name, "--url", url)
        if client["http_snippet"] is None:
            assert done.returncode == 125 and "takes no --url" in done.err, done
        else:
            assert done.returncode == 0 and open(client["file"]).read() == client["http_snippet"], done
    project = home.path / "project" / ".mcp.json"
    assert home.install("--client", "claude-code", "--file", str(project)).returncode == 0
    assert json.loads(project.read_text())["mcpServers"]["atoll"]["args"] == ["mcp"]
    moved = home.clients(env={"XDG_CONFIG_HOME": "/x", "CODEX_HOME": "/y", "COPILOT_HOME": "/z"})
    assert (moved["zed"]["file"], moved["codex"]["file"], moved["copilot-cli"]["file"]) == \
        ("/x/zed/settings.json", "/y/config.toml", "/z/mcp-config.json")


def test_refusals(home):
    """Each names the file and the cause, and leaves everything as it was."""
    cursor = home.path / ".cursor" / "mcp.json"
    cursor.parent.mkdir()
    for text, words in (('{\n  "a": \'x\'\n}', "line 2 is not valid JSON"), ("[]", "does not hold a JSON object"),
                        ('{"mcpServers": 3}', "'mcpServers' is not an object"), ("\0", "it is no text")):
        cursor.write_text(text)
        done = home.install("--client", "cursor")
        assert done.returncode == 125 and words in done.err and str(cursor) in done.err and cursor.read_text() == text, done
    assert home.files() == [".cursor/mcp.json"]
    codex = home.path / ".codex" / "config.toml"
    codex.parent.mkdir()
    codex.write_text("mcp_servers = {}\n")
    assert "line 1 sets 'mcp_servers' in a form that Atoll does not edit" in home.install("--client", "codex").err
    assert "did you mean 'cursor'?" in home.install("--client", "cursr").err
    assert "--list" in home.install("--client", "emacs").err
    assert "--client NAME is missing" in home.install().err
    assert "HOME is not set" in home.install("--client", "zed", env={"HOME": None}).err
    cursor.unlink()
    cursor.mkdir()
    assert "is not a file" in home.install("--client", "cursor").err
    home.path.joinpath(".gemini").write_text("")
    done = home.install("--client", "gemini-cli")
    assert done.returncode == 125 and "cannot write beside" in done.err and home.files() == [".codex/config.toml", ".gemini"], done


def test_documentation(home):
    """doc/mcp.md shows each client's file and snippets as the program has them, and all of them parse."""
    if not tomllib:
        pytest.skip("this Python has no tomllib")
    text = DOC.read_text()
    blocks = re.findall(r"(?ms)^```(json|toml)\n(.*?)^```$", text)
    for kind, block in blocks:
        tomllib.loads(block) if kind == "toml" else plain_json(block)
    shown = {block for _, block in blocks}
    for client in home.clients().values():
        path = client["file"].replace(str(home.path), "~")
        assert f"`{path}`" in text and f"`{client['name']}`" in text and client["title"] in text, client
        assert client["snippet"].replace(str(home.atoll.binary), "/usr/bin/atoll") in shown, client
        assert client["http_snippet"] is None or client["http_snippet"] in shown, client


def texts_of_errors():
    """The sentences that the sources of both commands can say."""
    for name in ("cmd-mcp.c", "cmd-mcp-install.c", "config-json.c", "config-toml.c", "mcp-hosts.c"):
        source = (ROOT / "src" / "atoll" / "commands" / name).read_text()
        for match in re.finditer(r'(?:error_set|error_wrap)\([^";]*"((?:[^"\\]|\\.|"\s*")*)"', source):
            text = re.sub(r"%[-.*\d]*[a-z]+", "…", re.sub(r'"\s*"', "", match[1]))
            if text not in ("…", "cannot … …: …", "cannot add Atoll to …"):
                yield name, text


def test_troubleshooting():
    page = (ROOT / "doc" / "troubleshooting.md").read_text().replace("\\`", "`")
    found = list(texts_of_errors())
    assert len(found) > 25 and [entry for entry in found if f"| {entry[1]} |" not in page] == []
