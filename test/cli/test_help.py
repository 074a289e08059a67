# SPDX-License-Identifier: Apache-2.0
"""Help texts against test/golden/help*.txt (ATOLL_GOLDEN_UPDATE=1 writes them anew), and slips of the fingers."""
import os
import re
import subprocess
from pathlib import Path

import pytest

GOLDEN = Path(__file__).resolve().parent.parent / "golden"
pytestmark = [pytest.mark.quick, pytest.mark.modes("rootless")]


@pytest.mark.foreign
@pytest.mark.parametrize("name, words", [("help", ["help"]), ("help-run", ["help", "run"]), ("help-languages", ["help", "languages"]),
                                         ("help-doctor", ["help", "doctor"]), ("help-serve", ["help", "serve"]),
                                         ("help-ps", ["help", "ps"]), ("help-pool", ["help", "pool"]), ("help-prepare", ["help", "prepare"]), ("help-cancel", ["help", "cancel"]),
                                         ("help-debug", ["help", "debug"]), ("help-cleanup", ["help", "cleanup"]),
                                         ("help-history", ["help", "history"]),
                                         *((f"help-history-{name}", ["help", "history", name])
                                           for name in ("list", "show", "output", "replay", "diff", "stats", "rm", "repair")),
                                         ("help-mcp", ["help", "mcp"]), ("help-mcp-install", ["help", "mcp", "install"]),
                                         ("help-session", ["help", "session"]),
                                         *((f"help-session-{name}", ["help", "session", name])
                                           for name in ("new", "list", "show", "exec", "repl", "attach", "fork", "interrupt", "reset", "logs",
                                                        "files", "put", "get", "rm"))])
def test_golden(atoll, name, words):
    done = atoll.run(words)
    assert done.returncode == 0 and done.stderr == b"", done
    file = GOLDEN / f"{name}.txt"
    if os.environ.get("ATOLL_GOLDEN_UPDATE"):
        file.write_text(done.out)
    assert done.out == file.read_text()


def test_manual_page(atoll):
    """All that help lists is in it, and roff has nothing to say against it."""
    page = atoll.run(["man"])
    assert page.returncode == 0 and page.out.startswith(".TH ATOLL 1 "), page
    plain = page.out.replace("\\-", "-")
    for file in GOLDEN.glob("help-*.txt"):
        help = file.read_text()
        name = " ".join(word for word in help.splitlines()[0].split()[1:] if word.isalpha() and word.islower())
        assert f'.SS "{name}"\n' in plain, file
        flags = re.findall(r"(?m)^  (?:-\w, |    )(--[\w-]+(?: \S+)?)", help)
        assert flags or "Commands:" in help or "Options:" not in help, file
        for flag in flags:
            assert f"\\fB{flag}\\fR\n" in plain, (file, flag)
    sections = re.findall(r"(?m)^\.SH (.*)", plain)
    assert sections[-4:] == ["EXIT STATUS", "ENVIRONMENT", "FILES", "EXAMPLES"]
    assert {"0", "124", "125", "126", "127", "128+n"} <= set(re.findall(r"\\fB([\d+n]+)\\fR", plain))
    for name in ("ATOLL_URL", "ATOLL_POOL", "ATOLL_QUEUE_MAX", "ATOLL_LIMITS_CEILINGS_MEMORY"):
        assert name in plain.split(".SH ENVIRONMENT")[1].split(".SH")[0], name
    for example in re.findall(r"\\fB(atoll .*)\\fR", plain.split(".SH EXAMPLES")[1]):
        help = atoll.run(["help", *re.match(r"atoll ((?:[a-z]+ )?(?:list|repl)|[a-z]+)", example)[1].split()])
        assert help.returncode == 0 and all(f"{flag} " in help.out for flag in re.findall(r" (--[\w-]+)", example.split("|")[0].split("&&")[0])), example
    assert "atoll man" not in plain and "man" not in atoll.run(["help"]).out.split()
    checked = subprocess.run(["groff", "-man", "-Kutf8", "-ww", "-z"], input=page.stdout, capture_output=True, timeout=30)
    assert checked.returncode == 0 and checked.stderr == b"", checked


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["help", "--help"]])
def test_help_in_other_words(atoll, words):
    assert atoll.run(words).stdout == atoll.run(["help"]).stdout


@pytest.mark.foreign
@pytest.mark.parametrize("command", ["run", "languages", "doctor", "ps", "cleanup"])
def test_help_flag_wins_over_the_rest(atoll, command):
    assert atoll.run([command, "--json", "--help"]).stdout == atoll.run(["help", command]).stdout


@pytest.mark.parametrize("words, said", [
    ([], None),
    (["rnu"], "did you mean 'run'?"),
    (["frobnicate"], "`atoll help` lists all"),
    (["help", "langauges"], "did you mean 'languages'?"),
    (["run", "--memroy", "1g"], "did you mean '--memory'?"),
    (["run", "--frobnicate"], "unknown option '--frobnicate'"),
    (["run", "-x"], "unknown option '-x'"),
    (["run", "--memory"], "'--memory' needs a value"),
    (["run", "--json=yes"], "'--json' takes no value"),
    (["run", "--mem", "1g"], "unknown option '--mem'"),
    (["languages", "python"], "takes no argument"),
    (["run", "a.py", "b.py"], "after --"),
    (["run"], "nothing to run"),
    (["run", "-c", "1"], "-l"),
    (["run", "-l", "bash", "-c", ":", "x.sh"], "not both"),
    (["run", "-l", "bash", "--env", "X", "-c", ":"], "--env wants K=V"),
    (["run", "-l", "bash", "--params", "{}", "-c", ":"], "--params needs --invoke"),
    (["run", "-l", "python", "--invoke", "f", "-c", ":"], "CLASS.METHOD"),
    (["run", "-l", "python", "--invoke", "A.f", "--params", "[1]", "-c", ":"], "JSON object"),
])
def test_wrong_words(atoll, words, said):
    done = atoll.run(words)
    assert done.returncode == 125, done
    if said:
        assert done.stdout == b"" and done.err.startswith("atoll: ") and done.err.count("\n") == 1 and said in done.err, done


def test_messages_cannot_drive_a_terminal(atoll):
    done = atoll.run(["run", "-l", "\x1b[31mred\x07\u009b", "-c", ":"])
    assert done.returncode == 127 and not any(byte in done.stderr for byte in b"\x1b\x07") and b"\xc2\x9b" not in done.stderr, done
    done = atoll.run(["\x1b]0;title\x07"])
    assert b"\x1b" not in done.stderr and b"\\x1b" in done.stderr, done


def test_values_in_every_form(atoll):
    for words in (["-l", "bash", "-c", "echo $X", "--env", "X=1"], ["-lbash", "-cecho $X", "--env=X=1"],
                  ["--language=bash", "--code=echo $X", "--env", "X=1"]):
        assert atoll.run(["run", *words]).stdout == b"1\n", words


def test_last_flag_wins(atoll):
    result = atoll.result(["-l", "bash", "--timeout", "9", "--timeout", "1", "-c", "sleep 5"])
    assert result["status"] == "timeout" and result["cause"]["limit"] == 1
