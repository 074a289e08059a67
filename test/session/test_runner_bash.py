# SPDX-License-Identifier: Apache-2.0
"""The Bash session runner by itself (test/lib/runner_driver.py drives it)."""
import base64
import os
import resource
import time

import pytest

from runner_driver import Runner, RunnerGone, moments

NOTHING = {"error": None, "exit_code": 0, "interrupted": False}
INTERRUPTED = {"error": {"type": "KeyboardInterrupt", "message": "", "file": None, "line": None, "traceback": ""}, "exit_code": 130, "interrupted": True}


@pytest.fixture
def runner():
    with Runner("bash") as runner:
        yield runner


def prints(runner, code):
    """What code prints that ends with 0."""
    assert runner.done(code) == NOTHING, runner.stderr
    return runner.stdout.decode()


def test_state(runner):
    assert prints(runner, "x=5; f() { echo f $1; }; cd /tmp; arr=(1 '2 3'); declare -A m=([k]=v); export E=e; alias a=b; shopt -s extglob") == ""
    assert prints(runner, "echo $x; f a; pwd; echo ${arr[1]} ${m[k]}; env | grep ^E=; alias a; shopt -p extglob") == (
        "5\nf a\n/tmp\n2 3 v\nE=e\nalias a='b'\nshopt -s extglob\n")
    assert os.listdir(runner.work) == []
    assert prints(runner, "cat; read z || echo eof; readlink /proc/$$/fd/0") == "eof\n/dev/null\n"
    assert prints(runner, "ls -l /proc/self/fd | grep -c socket || :") == "0\n"


@pytest.mark.parametrize("text", ['a"b\\c', "tab\there", "é😀", "\\n \\x41 \\u0041 \\\\", "$x `y` $(z)", "'", "line\nbreak", "\x01\x1f\x7f", "%s %b", '"}', '","code":"'])
def test_code_is_taken_literally(runner, text):
    assert prints(runner, f"cat <<'END'\n{text}\nEND") == f"{text}\n"


def test_large_code_and_output(runner):
    line = 'echo "0123456789 \\"quoted\\" 0123456789"\n'
    assert prints(runner, line * 3000) == '0123456789 "quoted" 0123456789\n' * 3000
    assert prints(runner, "for i in {1..20000}; do echo $i; done") == "".join(f"{i}\n" for i in range(1, 20_001))


@pytest.mark.parametrize("code,number", [
    ("false", 1), ("return 3", 3), ("exit 4", 4), ("f() { exit 5; }; f; echo no", 5), ("f() { (exit 6); }; f; g() { local x=$(exit 9; echo no); exit 7; }; g", 7),
    ("set -e; false; echo no", 1), ("set -u; echo $none; echo no", 1), ("echo ${none:?bad}; echo no", 1), ("foo-bar-baz", 127), ("if then", 2),
    ("exit 300", 44), ("(exit 3)", 3), ("x=$(exit 4)", 4), ("break; echo no", 0), ("while :; do break 9; done; echo no", 0), ("continue; echo no", 0),
    ("while :; do exit 8; done | cat; exit 9", 9)])
def test_ends_of_an_execution_keep_the_session(runner, code, number):
    prints(runner, "kept=1; arr=(a 'b c'); IFS=:; f0() { echo f0; }; set -- p 'q r'; cd /; umask 027; trap 'echo usr1' USR1; readonly R=2; exec 7>/dev/null")
    assert runner.done(code) == {**NOTHING, "exit_code": number}
    assert b"no\n" not in runner.stdout
    assert prints(runner, "set +eu; echo $kept ${arr[1]} $2 $#; f0; pwd; umask; kill -USR1 $$; echo $R; echo x >&7; [[ $IFS == : ]]; echo $?") == (
        "1 b c q r 2\nf0\n/\n0027\nusr1\n2\n0\n")
    assert "locals" not in prints(runner, "compgen -v").split()


def test_options_persist(runner):
    prints(runner, "set -euo pipefail; set -o noclobber; set +o braceexpand; shopt -s nullglob")
    for code in ("true", "false; echo no", "false | true", "echo $none"):
        runner.done(code)
        assert runner.stdout == b""
    assert prints(runner, "echo {a,b}; shopt -p nullglob; echo $SHELLOPTS") .split() == [
        "{a,b}", "shopt", "-s", "nullglob", "errexit:hashall:interactive-comments:noclobber:nounset:pipefail"]


def test_errors_are_printed_with_their_line(runner):
    assert runner.done("\nfoo-bar") == {**NOTHING, "exit_code": 127}
    assert runner.stderr == b"/tmp/.cell.sh: line 2: foo-bar: command not found\n"
    assert runner.done("f() { nothing-there; }\nf; rm /tmp/.cell.sh") == NOTHING
    assert runner.stderr == b"/tmp/.cell.sh: line 1: nothing-there: command not found\n"
    assert runner.done("foo-bar") == {**NOTHING, "exit_code": 127}, "the link is gone"
    assert b"foo-bar: command not found" in runner.stderr


def test_exit_traps(runner):
    assert runner.done("trap 'echo bye' EXIT; echo first; exit 2") == {**NOTHING, "exit_code": 2}
    assert runner.stdout == b"first\nbye\n"
    assert prints(runner, "trap 'echo gone' EXIT; trap - EXIT; (trap 'echo sub' EXIT); trap 'echo end' 0") == "sub\n"
    runner.done("(exit 6)")
    runner.stdout = b""
    assert runner.end() == 6
    runner.drain()
    assert runner.stdout == b"end\n"


def test_a_state_that_cannot_be_written_ends_the_session():
    with Runner("bash", limits=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))) as runner:
        prints(runner, "x=5; trap '' XFSZ")
        with pytest.raises((RunnerGone, ConnectionResetError)):
            runner.done("exit 3")


def test_children_and_jobs(runner):
    assert prints(runner, "sleep 60 & pid=$!; kill -0 $pid && echo alive") == "alive\n"
    assert runner.done("exit 1")["exit_code"] == 1
    assert prints(runner, "kill -0 $pid && echo alive; kill $pid") == "alive\n"
    with pytest.raises((RunnerGone, ConnectionResetError)):
        runner.done("exec true")


def test_interrupts(runner):
    prints(runner, "kept=1; f() { while :; do :; done; }; g() { sleep 60; echo no; }")
    for code in ("while :; do :; done", "sleep 60; echo no", "f", "g", "x=$(sleep 60); echo no", "sleep 60 | cat; echo no", "(sleep 60); echo no", "wait; sleep 60 & wait"):
        number = runner.start(f"kept=$((kept + 1)); {code}")
        time.sleep(0.15)
        runner.interrupt()
        assert runner.receive() == {"op": "done", "n": number, **INTERRUPTED}, code
        assert runner.stdout == b""
        runner.interrupt()
    assert prints(runner, "echo $kept") == "9\n"
    runner.start("trap 'echo caught' INT; sleep 60; trap - INT")
    time.sleep(0.15)
    runner.interrupt()
    assert runner.receive()["exit_code"] == 0 and runner.stdout == b"caught\n"


def test_interrupts_at_any_moment_leave_the_stream_sound(runner):
    seen = set()
    for wait in moments(seen, 60, 5e-5):
        number = runner.start("for i in {1..3000}; do :; done")
        wait()
        runner.interrupt()
        message = runner.receive()
        assert message == {"op": "done", "n": number, **(INTERRUPTED if message["interrupted"] else NOTHING)}
        seen.add(message["interrupted"])
        time.sleep(0.002)
    assert True in seen
    assert prints(runner, "echo fine") == "fine\n"


def b64(data):
    return base64.b64encode(data).decode()


def test_files(runner):
    assert runner.file("write", 'a/b "c\\d\n', base64=b64(b"\0\xff")) == {"error": None}
    assert runner.file("read", 'a/b "c\\d\n') == {"error": None, "base64": b64(b"\0\xff"), "size": 2}
    os.utime(f'{runner.work}/a/b "c\\d\n', (5, 5))
    os.symlink("/etc", f"{runner.work}/link")
    os.mkfifo(f"{runner.work}/pipe")
    entries = runner.file("list", ".")["entries"]
    assert [(e["path"], e["type"]) for e in entries] == [("a", "directory"), ('a/b "c\\d\n', "file"), ("link", "link")]
    assert entries[1] == {"path": 'a/b "c\\d\n', "size": 2, "type": "file", "mtime": 5.0}
    assert [e["path"] for e in runner.file("list", "a")["entries"]] == ['a/b "c\\d\n']
    assert [e["path"] for e in runner.file("list", "link")["entries"]] == ["link"]
    assert runner.file("read", "none") == {"error": "ENOENT", "message": "No such file or directory"}
    assert runner.file("list", "none") == {"error": "ENOENT", "message": "No such file or directory"}
    assert runner.file("read", "a") == {"error": "EISDIR", "message": "Is a directory"}
    assert runner.file("read", "pipe") == {"error": "EINVAL", "message": "Invalid argument"}
    assert runner.file("write", "a", base64="") == {"error": "EISDIR", "message": "Is a directory"}
    assert runner.file("write", 'a/b "c\\d\n/e', base64="")["error"] == "ENOTDIR"
    assert [runner.file("remove", path)["error"] for path in ("link", "a", "a")] == [None, None, "ENOENT"]
    assert os.path.isdir("/etc") and runner.file("list", ".") == {"error": None, "entries": []}
    data = os.urandom(1 << 20) * 3
    assert runner.file("write", "large", base64=b64(data)) == {"error": None}
    assert runner.file("read", "large")["base64"] == b64(data)
    with open(f"{runner.work}/huge", "wb") as file:
        file.truncate((32 << 20) + 1)
    piece = runner.file("read", "huge", offset=32 << 20, size=5)
    assert piece == {"error": None, "base64": b64(b"\0"), "size": (32 << 20) + 1}
    assert runner.file("write", "huge", offset=32 << 20, base64=b64(b"xyz"))["error"] is None
    assert runner.file("read", "huge", offset=(32 << 20) - 1) == {"error": None, "base64": b64(b"\0xyz"), "size": (32 << 20) + 3}
    os.mkdir(os.fsencode(runner.work) + b"/bad\xff")
    assert [e["path"] for e in runner.file("list", ".")["entries"]] == ["bad", "huge", "large"]


def test_a_thousand_executions_do_not_grow(runner):
    size = "read -r _ pages _ </proc/$$/statm; echo $pages"
    for n in range(200):
        runner.done(f"x={n}; y=$((x + 1))")
    before = int(prints(runner, size))
    for n in range(1000):
        runner.done(f"x={n}; y=$((x + 1))")
    assert int(prints(runner, size)) - before < 100
    assert runner.end() == 0
