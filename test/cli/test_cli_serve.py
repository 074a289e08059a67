# SPDX-License-Identifier: Apache-2.0
"""The command line and `atoll serve`: a program must look the same with and without a daemon; history, ps, cancel, input that goes on."""
import hashlib
import json
import os
import pty
import shutil
import signal
import socket
import subprocess
import time

import pytest

from daemon import Daemon
from program import Atoll
from resident import wait_until
from web import Served


@pytest.fixture
def daemon(atoll, work):
    one = Daemon(atoll, work)
    one.cli = atoll.variant(env={"ATOLL_URL": str(one.socket)})
    yield one
    one.end()


@pytest.fixture(scope="module")
def lasting(mode, stage):
    """A daemon for tests that do not mind what it did for others."""
    served = Served(Atoll(mode, stage), stage.scratch(mode, "lasting"))
    yield served.daemon.atoll.variant(env={"ATOLL_URL": str(served.daemon.socket)})
    served.end()


def history(daemon, *words):
    return daemon.cli.run(["history", "list", "--json", *words]).json()["executions"]


CASES = [
    (["-l", "python", "-c", "print(6 * 7)"], ""),
    (["-l", "bash", "-c", "echo out; echo err >&2; exit 3"], ""),
    (["-l", "bash", "-c", "cat; printf '\\377\\000\\303'; sleep 0.05; printf '\\244 end'"], "input\n"),
    (["-l", "bash", "-c", "kill -SEGV $$"], ""),
    (["-l", "bash", "--timeout", "900ms", "-c", "echo before; sleep 30"], ""),
    (["-l", "python", "-m", "64m", "-c", "print('x'); x = bytearray(300 << 20)"], ""),
    (["-l", "python", "-c", "1/0"], ""),
    (["-l", "c", "-c", "int main() { return x; }"], ""),
    (["-l", "nope", "-c", "x"], ""),
    (["-l", "python", "--timeout", "99h", "-c", "x"], ""),
    (["-l", "python", "--network", "host", "-c", "x"], ""),
    (["-l", "bash", "--file", "a/b=/etc/hostname", "--env", "X=1", "-c", "wc -l < a/b; echo $X $1", "--", "two"], ""),
    (["-l", "bash", "--stage", "one=echo 1", "--stage", "two=exit 4", "--stage", "three=echo 3"], ""),
    (["-l", "python", "--invoke", "A.f", "--params", '{"x": 2}', "-c", "class A:\n def f(self, x): return x * 21"], ""),
    (["-l", "python", "--invoke", "A.f", "-c", "class A:\n def f(self): raise ValueError('no')"], ""),
]


@pytest.mark.undisturbed
@pytest.mark.parametrize("words, data", CASES, ids=[str(i) for i in range(len(CASES))])
def test_same_with_and_without(lasting, atoll, words, data):
    here, there = (one.run(["run", *words], input=data) for one in (atoll, lasting))
    assert (here.returncode, here.stdout) == (there.returncode, there.stdout), (here, there)
    assert here.err == there.err, (here, there)
    here, there = (one.result(words, input=data) for one in (atoll, lasting))
    for key in ("_exit", "status", "exit_code", "signal", "stdout", "stderr", "stdout_binary", "value", "error", "language"):
        assert here[key] == there[key], (key, here, there)
    for key in ("kind", "detail", "limit"):
        assert here["cause"][key] == there["cause"][key], (here, there)
    assert set(here) == set(there)


@pytest.mark.quick
def test_commands_with_the_daemon(daemon):
    cli = daemon.cli
    assert cli.run(["run", "--label", "a=1", "-l", "python", "-c", "print('first')"]).returncode == 0
    assert cli.run(["run", "--label", "a=2", "-l", "python", "-c", "print('second'); 1/0"]).returncode == 1
    rows = history(daemon)
    assert [row["labels"]["a"] for row in rows] == ["2", "1"] and [row["status"] for row in rows] == ["error", "success"]
    assert [row["id"] for row in history(daemon, "--label", "a=1")] == [rows[1]["id"]]
    # Words are found a moment later.
    wait_until(lambda: [row["id"] for row in history(daemon, "--text", "second")] == [rows[0]["id"]], why="the text is not found")
    assert history(daemon, "--status", "timeout") == [] and len(history(daemon, "--since", "1h")) == 2
    done = cli.run(["history", "show", "last"])
    assert rows[0]["id"] in done.out and "second" in done.out and "ZeroDivisionError" in done.out, done
    assert cli.run(["history", "show", "--json", rows[1]["id"]]).json()["stdout"] == "first\n"
    assert cli.run(["history", "output", rows[1]["id"]]).out == "first\n"
    assert "ZeroDivisionError" in cli.run(["history", "output", "--stderr", "last"]).out
    assert json.loads(cli.run(["history", "output", "--json", rows[1]["id"]]).out) == {
        "id": rows[1]["id"], "stdout": "first\n", "stdout_bytes": 6, "stdout_binary": False, "complete": True}
    done = cli.run(["history", "diff", rows[1]["id"], rows[0]["id"]])
    assert done.returncode == 1 and "status: success → error" in done.out and "+second" in done.out, done
    assert cli.run(["history", "diff", "last", "last"]).returncode == 0
    assert cli.run(["history", "show", "--json", rows[1]["id"][:12]]).json()["stdout"] == "first\n"
    assert "at least the first 7" in cli.run(["history", "show", "ex_"]).err
    assert cli.run(["history", "show", "-1"]).out == cli.run(["history", "show", "last"]).out
    assert cli.run(["history", "diff", "-1", "-2"]).returncode == 1
    assert "fewer than 999 executions" in cli.run(["history", "show", "-999"]).err
    assert cli.run(["history", "show", "--code", "-1"]).out == "print('second'); 1/0"
    assert cli.run(["history", "show", "--code", "--json", "-1"]).json()["code"] == "print('second'); 1/0"
    done = cli.run(["history", "replay", rows[0]["id"]])
    assert done.returncode == 1 and done.out == "second\n" and "ZeroDivisionError" in done.err, done
    again = history(daemon)[0]
    assert again["id"] not in [row["id"] for row in rows] and again["labels"] == {"a": "2"}
    result = cli.run(["history", "replay", "--json", rows[1]["id"]])
    assert result.returncode == 0 and result.json()["stdout"] == "first\n", result
    assert cli.run(["history", "rm", result.json()["id"]]).returncode == 0
    identifier = cli.run(["history", "replay", "--detach", rows[1]["id"]]).out.strip()
    wait_until(lambda: cli.run(["history", "rm", identifier]).returncode == 0, why="does not end")
    done = cli.run(["debug", "last"])
    assert done.returncode == 0 and "\nZeroDivisionError: " in done.out and done.out.startswith("the program exited with 1\npython"), done
    done = cli.run(["debug", "--markdown", "last"])
    assert done.returncode == 0 and "ZeroDivisionError" in done.out and done.out.startswith("# "), done
    assert cli.run(["debug", "--json", "last"]).json()["analysis"]["exception"] == "ZeroDivisionError"
    stats = cli.run(["history", "stats", "--json"]).json()
    assert stats["total"] == 5 and stats["by_status"]["error"] == 2
    done = cli.run(["history", "stats"])
    assert [line.split()[:2] for line in done.out.splitlines()[1:3]] == [["all", "5"], ["python", "5"]], done
    assert cli.run(["history", "rm", again["id"], rows[0]["id"]]).returncode == 0
    assert [row["id"] for row in history(daemon)] == [rows[1]["id"]]
    assert cli.run(["cleanup"]).out == "0 ended, 1 removed, 0 sessions ended\n" and history(daemon) == []


def running(daemon):
    return daemon.cli.run(["ps", "--json"]).json()["executions"]


def test_socket_by_its_variable(daemon, atoll):
    """ATOLL_SOCKET leads the commands where it leads the daemon."""
    cli = atoll.variant(env={"ATOLL_SOCKET": str(daemon.socket), "ATOLL_URL": ""})
    assert cli.run(["run", "-l", "bash", "-c", "echo hi"]).stdout == b"hi\n"
    assert len(cli.run(["history", "list", "--json"]).json()["executions"]) == 1
    done = cli.variant(env={"ATOLL_SOCKET": "off"}).run(["ps"])
    assert done.returncode == 125 and "ATOLL_URL" in done.err, done


@pytest.mark.modes("rootless")  # the default place of root is the machine's
def test_a_daemon_that_was_named_has_no_substitute(daemon, atoll, work):
    """No daemon at a place that the user named is an error; at the default place, the program runs without one, and a note says so."""
    words = ["run", "-l", "bash", "-c", "echo ran"]
    gone = work / "gone.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(gone))  # a socket that its owner left behind
    os.chmod(gone, 0o777)
    for options, env in (([], {"ATOLL_URL": str(gone)}), ([], {"ATOLL_URL": "http://127.0.0.1:1"}), ([], {"ATOLL_URL": str(work / "no.sock")}),
                         ([], {"ATOLL_URL": "", "ATOLL_SOCKET": str(gone)}), (["--url", gone], {}), ([f"--url={gone}"], {"ATOLL_URL": str(daemon.socket)})):
        cli = atoll.variant(env=env)
        done = cli.run([*words, *options])
        assert done.returncode == 125 and done.stdout == b"" and done.err.count("\n") == 1, done
        assert "no daemon answers at" in done.err and "`atoll serve`" in done.err and "--no-daemon" in done.err, done
        done = cli.run([*words, *options, "--json"])
        assert done.returncode == 125 and done.json()["status"] == "internal_error", done
        assert cli.run([*words, *options, "--no-daemon"]).stdout == b"ran\n"
    done = atoll.run([*words, "--json", "--url", daemon.socket], env={"ATOLL_URL": str(gone)})
    assert done.returncode == 0 and done.json()["via"] == "daemon", done
    place = work / "run" / "atoll"
    place.mkdir(parents=True)
    usual = atoll.variant(env={"ATOLL_URL": None, "ATOLL_SOCKET": None, "XDG_RUNTIME_DIR": str(work / "run")})
    done = usual.run([*words, "--json"])
    assert done.json()["via"] == "direct" and done.stderr == b"", done
    gone.rename(place / "atoll.sock")
    work.chmod(0o755)
    done = usual.run([*words, "--json"])
    assert done.returncode == 0 and done.json()["via"] == "direct", done
    assert done.err.startswith(f"atoll: the program runs without the daemon: no daemon answers at {place}") and done.err.count("\n") == 1, done
    assert usual.run([*words, "--quiet"]).stderr == b""


def test_the_socket_takes_any_host(daemon):
    """No browser reaches it, so the name that a client's library makes up means nothing; a browser's headers still do."""
    def ask(fields):
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(str(daemon.socket))
            s.sendall(f"GET /v1/limits HTTP/1.1\r\n{fields}Connection: close\r\n\r\n".encode())
            return int(s.makefile("rb").readline().split()[1])

    assert ask("Host: docker\r\n") == 200
    assert ask("Host: evil.com\r\nOrigin: http://evil.com\r\n") == 421
    assert ask("Host: evil.com\r\nSec-Fetch-Site: same-origin\r\n") == 421
    assert ask("Host: localhost\r\nOrigin: http://evil.com\r\n") == 403


def test_several_filters(daemon):
    for words in (["--label", "a=1", "--label", "b=2", "-c", "true"], ["--label", "a=1", "--label", "b=3", "-c", "exit 1"]):
        daemon.cli.run(["run", "-l", "bash", *words])
    assert len(history(daemon, "--label", "a=1")) == 2
    assert [row["labels"]["b"] for row in history(daemon, "--label", "a=1", "--label", "b=3")] == ["3"]
    assert len(history(daemon, "--status", "success", "--status", "error")) == 2
    assert len(history(daemon, "--status", "success")) == 1 and len(history(daemon, "-l", "SH")) == 2
    stats = daemon.cli.run(["history", "stats", "--label", "b=3", "--json"]).json()
    assert stats["total"] == 1 and stats["by_status"]["error"] == 1
    assert daemon.cli.run(["history", "stats", "-l", "python", "--json"]).json()["total"] == 0
    done = daemon.cli.run(["history", "stats", "-l", "bash", "--label", "b=3"])
    assert done.returncode == 125 and "one of the two" in done.err, done


def test_ps_and_cancel(daemon):
    popen = daemon.cli.popen(["run", "-l", "bash", "-c", "echo on; sleep 60"], stdin=subprocess.DEVNULL)
    assert popen.stdout.readline() == b"on\n"
    (one,) = running(daemon)
    assert one["status"] == "running" and one["language"] == "bash"
    lines = daemon.cli.run(["ps"]).out.splitlines()
    assert len(lines) == 2 and one["id"] in lines[1] and "running" in lines[1]
    for words in ([], ["--dry-run"]):
        assert "not ended" in daemon.cli.run(["history", "rm", *words, one["id"]]).err
    assert daemon.cli.run(["cancel", one["id"]]).returncode == 0
    assert popen.wait(25) != 0 and b"cancelled" in popen.stderr.read()
    assert running(daemon) == [] and history(daemon)[0]["status"] == "cancelled"
    assert "has ended already" in daemon.cli.run(["cancel", one["id"]]).err and len(history(daemon)) == 1


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_signals_end_the_program(daemon, sig):
    popen = daemon.cli.popen(["run", "-l", "bash", "-c", "echo on; sleep 60"], stdin=subprocess.DEVNULL)
    assert popen.stdout.readline() == b"on\n"
    popen.send_signal(sig)
    assert popen.wait(25) == (-9 if sig == signal.SIGKILL else 128 + sig)
    wait_until(lambda: [row["status"] for row in history(daemon)] == ["cancelled"], why="not cancelled")


def test_signal_gives_the_result_as_json(daemon):
    popen = daemon.cli.popen(["run", "--json", "-l", "bash", "-c", "echo on; sleep 60"], stdin=subprocess.DEVNULL)
    wait_until(lambda: running(daemon), why="does not run")
    popen.send_signal(signal.SIGTERM)
    out, _ = popen.communicate(timeout=25)
    assert popen.returncode == 128 + signal.SIGTERM and json.loads(out)["status"] == "cancelled"


def test_large_output_is_whole(daemon):
    done = daemon.cli.run(["run", "-l", "python", "-c", "import os, hashlib\nb = os.urandom(5 << 20)\nos.write(2, "
                           "hashlib.sha256(b).hexdigest().encode())\nimport sys\nsys.stdout.buffer.write(b)"], timeout=60)
    assert len(done.stdout) == 5 << 20 and hashlib.sha256(done.stdout).hexdigest() == done.err
    done = daemon.cli.run(["run", "-l", "python", "-c", "print('ä' * (3 << 20), end='')"], timeout=60)
    assert done.out == "ä" * (3 << 20)


def test_full_daemon(daemon):
    """More runs at once than it takes: every one gets its answer."""
    popens = [daemon.cli.popen(["run", "-l", "bash", "-c", f"sleep 0.1; echo {i}"], stdin=subprocess.DEVNULL) for i in range(24)]
    assert [p.communicate(timeout=60) for p in popens] == [(f"{i}\n".encode(), b"") for i in range(24)]


# ------------------------------------------------------------------- input that goes on, with the real daemon


def test_conversation(daemon):
    popen = daemon.cli.popen(["run", "-l", "bash", "-c", "while read x; do echo got $x; echo $x >&2; done; echo end; exit 5"])
    time.sleep(0.2)
    for word in (b"one", b"two", b"\xff"):
        popen.stdin.write(word + b"\n")
        popen.stdin.flush()
        assert popen.stdout.readline() == b"got " + word + b"\n" and popen.stderr.readline() == word + b"\n"
    assert running(daemon)
    assert popen.communicate(timeout=25) == (b"end\n", b"") and popen.returncode == 5
    assert history(daemon)[0]["status"] == "error"


def test_terminal_as_input(daemon):
    ours, theirs = pty.openpty()
    popen = daemon.cli.popen(["run", "-l", "bash", "-c", "echo ready; read x; echo got $x"], stdin=theirs)
    os.close(theirs)
    assert popen.stdout.readline() == b"ready\n"
    assert running(daemon)
    os.write(ours, b"word\n")
    assert popen.communicate(timeout=25) == (b"got word\n", b"") and popen.returncode == 0
    os.close(ours)


def test_large_input(daemon):
    data = os.urandom(8 << 20)
    done = daemon.cli.run(["run", "-l", "bash", "-c", "sleep 0.2; cat"], input=data, timeout=60)
    assert done.returncode == 0 and done.stdout == data
    assert len(history(daemon)) == 1


def test_input_that_nobody_reads(daemon):
    with subprocess.Popen(["yes"], stdout=subprocess.PIPE) as yes:
        done = daemon.cli.run(["run", "-l", "bash", "-c", "sleep 0.5; echo done"], stdin=yes.stdout)
        yes.stdout.close()
        yes.kill()
    assert (done.returncode, done.out, done.err) == (0, "done\n", ""), done


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_signal_in_a_conversation(daemon, options):
    popen = daemon.cli.popen(["run", *options, "-l", "bash", "-c", "cat; sleep 60"])
    wait_until(lambda: running(daemon), why="does not run")
    popen.send_signal(signal.SIGTERM)
    assert popen.wait(25) == 128 + signal.SIGTERM
    out = popen.stdout.read()
    assert json.loads(out)["status"] == "cancelled" if options else out == b""
    wait_until(lambda: [row["status"] for row in history(daemon)] == ["cancelled"], why="not cancelled")


def test_killed_in_a_conversation(daemon):
    popen = daemon.cli.popen(["run", "-l", "bash", "-c", "cat; sleep 60"])
    wait_until(lambda: running(daemon), why="does not run")
    popen.kill()
    popen.wait(25)
    wait_until(lambda: [row["status"] for row in history(daemon)] == ["cancelled"], why="not cancelled")


def test_result_of_a_conversation(daemon):
    popen = daemon.cli.popen(["run", "--json", "-l", "bash", "-c", "cat; exit 2"])
    time.sleep(0.2)
    out, _ = popen.communicate(b"late", timeout=25)
    result = json.loads(out)
    assert popen.returncode == 2 and result["stdout"] == "late" and result["id"] == history(daemon)[0]["id"]


SLOW = """name: slow
title: Slow
extensions: [slow]
source: main.slow
runtime: /usr/bin/sh
package: dash
version: [/usr/bin/sh, -c, "echo 1"]
version_prefix: "Slow "
compile: [/usr/bin/sh, -c, 'sleep 1.2; cp "$1" "$0"', "{build}/program", "{source}"]
run: [/usr/bin/sh, "{build}/program"]
"""


@pytest.mark.modes("root")
def test_a_long_compile_is_told_on_a_terminal(atoll, stage, work):
    """By a command of its own, and by one that asks a daemon, with and without a terminal to read from; not of a build that is there."""
    data = work / "data"
    shutil.copytree(stage.data, data, symlinks=True)
    (data / "languages" / "slow.yaml").write_text(SLOW)
    daemon = Daemon(atoll, work, "--data-dir", data)

    def shown(url, code, *words, stdin=subprocess.DEVNULL):
        ours, theirs = pty.openpty()
        popen = atoll.variant(env={"ATOLL_URL": str(url), "ATOLL_DATA_DIR": str(data)}).popen(
            ["run", *words, "-l", "slow", "-c", code], stdin=theirs if stdin is None else stdin, stderr=theirs)
        os.close(theirs)
        out, _ = popen.communicate(timeout=25)
        text = b""
        try:
            while piece := os.read(ours, 4096):
                text += piece
        except OSError:
            os.close(ours)
        return out.decode(), text.decode()

    try:
        told = ("1\n", "atoll: compiling…\r\n")
        assert shown("off", "echo 1") == told
        assert shown(daemon.socket, "echo 1 #") == told and shown(daemon.socket, "echo 1 ##", stdin=None) == told
        assert shown(daemon.socket, "echo 1 #") == ("1\n", "") and shown(daemon.socket, "echo 1 ###", "-q") == ("1\n", "")
    finally:
        daemon.end()
