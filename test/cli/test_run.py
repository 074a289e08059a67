# SPDX-License-Identifier: Apache-2.0
"""`atoll run`: the command line's contract (doc/cli.md) and the result object (doc/result.md)."""
import datetime
import json
import re
import socket

import pytest

from oracle import IS_ROOT
from resident import sweep

quick = pytest.mark.quick

NUMBER = (int, float)
# Every key of doc/result.md with the type its value has in a successful run.
RESULT = {
    "id": str, "language": str, "status": str, "success": bool, "exit_code": int, "signal": type(None),
    "cause": dict, "stdout": str, "stderr": str, "stdout_bytes": int, "stderr_bytes": int,
    "stdout_truncated": bool, "stderr_truncated": bool, "value": type(None), "files": list,
    "duration": NUMBER, "cpu_time": NUMBER, "memory_peak": (int, type(None)), "usage": dict, "stages": list,
    "error": type(None), "denials": list, "isolation": dict, "timeout_chosen": type(None), "labels": dict, "runtime": str, "policy": str,
    "via": str, "created_at": str, "node": str,
}
CAUSE = {"kind": str, "detail": str, "limit": object, "peak": object, "retryable": bool, "suggest": object}
USAGE = {"user": NUMBER, "system": NUMBER, "pids_peak": (int, type(None)), "io_read": (int, type(None)),
         "io_write": (int, type(None)), "start": NUMBER}
ISOLATION = {"tier": str, "user": str, "cgroup": str, "seccomp": str, "landlock": int, "proc": str, "net": str,
             "broker": str, "front": str, "missing": list}


def check_shape(thing, shape, where):
    for key, kind in shape.items():
        assert key in thing, f"{where}.{key} is missing"
        assert isinstance(thing[key], kind), f"{where}.{key} is {thing[key]!r}"


@quick
def test_result_has_every_key_of_the_spec(atoll):
    result = atoll.python("print('hello')")
    check_shape(result, RESULT, "result")
    check_shape(result["cause"], CAUSE, "cause")
    check_shape(result["usage"], USAGE, "usage")
    check_shape(result["isolation"], ISOLATION, "isolation")
    assert re.fullmatch(r"ex_[0-9A-Za-z]{26}", result["id"])
    assert (result["language"], result["status"], result["success"]) == ("python", "success", True)
    assert result["exit_code"] == 0 and result["_exit"] == 0
    assert {key: result["cause"][key] for key in CAUSE} == {
        "kind": "exit", "detail": "exited with 0", "limit": None, "peak": None, "retryable": False, "suggest": None}
    assert (result["stdout"], result["stderr"]) == ("hello\n", "")
    assert (result["stdout_bytes"], result["stderr_bytes"]) == (6, 0)
    assert result["files"] == [] and result["labels"] == {}
    assert not {"outputs", "network", "changes", "host_calls"} & result.keys(), "keys that this run cannot fill"
    assert result["policy"] == "default" and result["node"] == socket.gethostname() and result["via"] == "direct"
    assert re.match(r"Python 3\.\d+", result["runtime"])
    assert 0 < result["duration"] < 25 and 0 <= result["usage"]["start"] < 25
    assert [stage["name"] for stage in result["stages"]] == ["run"]
    stage = result["stages"][0]
    assert (stage["status"], stage["exit_code"]) == ("success", 0) and stage["duration"] > 0
    when = datetime.datetime.strptime(result["created_at"], "%Y-%m-%dT%H:%M:%S.%fZ")
    assert abs((datetime.datetime.utcnow() - when).total_seconds()) < 60


@quick
def test_isolation_says_what_held(atoll):
    isolation = atoll.python("pass")["isolation"]
    assert re.fullmatch(r"default@[0-9a-f]{8}", isolation["seccomp"])
    assert isolation["net"] == "none"
    assert isolation["proc"] in ("pid", "none")
    assert (isolation["broker"], isolation["front"]) == ("confined", "caller")
    if atoll.rootless:
        assert isolation["user"] == "shared" and isolation["cgroup"] in ("none", "v2")
        if isolation["cgroup"] == "none":
            assert {"cgroup-memory", "cgroup-pids", "cgroup-cpu"} <= set(isolation["missing"])
            assert isolation["tier"] == "reduced"
    else:
        assert isolation["user"] == "unique" and isolation["cgroup"] in ("v1", "v2")
        if isolation["landlock"] and isolation["proc"] == "pid":
            assert isolation["missing"] == [] and isolation["tier"] == "full"


def test_ids_are_unguessable(atoll):
    ids = [atoll.bash(":")["id"] for _ in range(4)]
    assert len(set(ids)) == 4
    for position in (5, 12, 20, 27):
        assert len({i[position:] for i in ids}) > 1


@pytest.mark.undisturbed
def test_usage_comes_from_the_kernel(atoll):
    result = atoll.python("import time\nx = bytearray(40 << 20)\nend = time.process_time() + 0.3\n"
                          "while time.process_time() < end: pass")
    assert 0.25 < result["cpu_time"] < 2
    assert abs(result["cpu_time"] - result["usage"]["user"] - result["usage"]["system"]) < 0.05
    if not atoll.rootless:
        assert 40 << 20 < result["memory_peak"] < 90 << 20
        assert result["usage"]["pids_peak"] >= 1


# ------------------------------------------------------------------------------------- exit codes


@quick
@pytest.mark.parametrize("code", [0, 1, 7, 42, 255])
def test_exit_code_is_the_programs(atoll, code):
    done = atoll.run(["run", "-l", "bash", "-c", f"exit {code}"])
    assert done.returncode == code and done.stdout == b"" and done.stderr == b""


@quick
@pytest.mark.parametrize("name,number", [("TERM", 15), ("KILL", 9), ("SEGV", 11), ("ABRT", 6)])
def test_signal_is_128_plus_n(atoll, name, number):
    result = atoll.bash(f"kill -{name} $$")
    assert result["_exit"] == result["exit_code"] == 128 + number
    assert (result["status"], result["success"], result["signal"]) == ("error", False, number)
    assert result["cause"]["kind"] == "signal" and result["cause"]["detail"]


@quick
def test_failure_is_a_result(atoll):
    result = atoll.bash("echo out; echo err >&2; exit 7")
    assert (result["status"], result["success"], result["exit_code"]) == ("error", False, 7)
    assert (result["stdout"], result["stderr"]) == ("out\n", "err\n")
    assert result["cause"]["kind"] == "exit" and "7" in result["cause"]["detail"]
    assert result["_exit"] == 7 and result["_stderr"] == ""


@quick
@pytest.mark.undisturbed
def test_timeout_exits_with_124(atoll):
    done = atoll.run(["run", "-l", "bash", "--timeout", "0.9", "-c", "echo before; sleep 30"])
    assert done.returncode == 124 and done.stdout == b"before\n" and done.elapsed < 10
    assert len(done.err.strip().splitlines()) == 1 and "0.9" in done.err or "900" in done.err


@quick
def test_python_exception_is_named(atoll):
    result = atoll.python("\n\nprint(1 / 0)")
    assert result["status"] == "error" and result["exit_code"] == 1
    assert result["error"] == {"type": "ZeroDivisionError", "message": "division by zero",
                               "file": "/sandbox/main.py", "line": 3}
    assert 'File "/sandbox/main.py", line 3' in result["stderr"]


# ------------------------------------------------------------------------ ways to give the program


@quick
def test_code_on_the_command_line(atoll):
    done = atoll.run(["run", "-l", "python", "-c", "print(6 * 7)"])
    assert (done.returncode, done.stdout, done.stderr) == (0, b"42\n", b"")


@quick
def test_code_from_standard_input(atoll):
    done = atoll.run(["run", "-l", "python", "-"], input="print('from stdin')")
    assert (done.returncode, done.stdout) == (0, b"from stdin\n"), done


@pytest.mark.parametrize("name,text", [
    ("a.py", "print('hi')"), ("a.js", "console.log('hi')"), ("a.sh", "echo hi"), ("a.rb", "puts 'hi'"),
    ("a.pl", "print \"hi\\n\""), ("a.lua", "print('hi')"), ("a.php", "<?php echo \"hi\\n\";")])
def test_language_by_extension(atoll, work, name, text):
    (work / name).write_text(text)
    done = atoll.run(["run", work / name])
    assert (done.returncode, done.stdout) == (0, b"hi\n"), done


@quick
@pytest.mark.parametrize("line,text,expected", [
    ("#!/usr/bin/env python3", "print('hi')", "hi"), ("#!/bin/bash", "echo ${BASH_VERSION:0:1}", "5"),
    ("#!/usr/bin/perl -w", "print 'hi'", "hi")])
def test_language_by_first_line(atoll, work, line, text, expected):
    (work / "program").write_text(f"{line}\n{text}\n")
    done = atoll.run(["run", work / "program"])
    assert (done.returncode, done.out.strip()) == (0, expected), done


def test_option_beats_extension(atoll, work):
    (work / "a.py").write_text("echo from bash")
    assert atoll.run(["run", "-l", "bash", work / "a.py"]).stdout == b"from bash\n"


@pytest.mark.parametrize("name", ["python", "PYTHON", "Py", "python3", "js", "Node", "SH", "rb", "PL"])
def test_names_and_aliases_ignore_case(atoll, name):
    code = {"p": "print(3)", "j": "console.log(3)", "n": "console.log(3)", "s": "echo 3", "r": "puts 3"}
    text = "print 3" if name == "PL" else code[name[0].lower()]
    result = atoll.result(["-l", name, "-c", text])
    assert result["stdout"].strip() == "3"
    assert result["language"] in ("python", "javascript", "bash", "ruby", "perl")


@quick
def test_arguments_follow_the_dashes(atoll):
    args = ["one", "two words", "--json", "-c", "", "é\n$x"]
    result = atoll.python("import sys, json; print(json.dumps(sys.argv[1:]))", *args)
    assert json.loads(result["stdout"]) == args


@quick
def test_environment_is_only_what_was_given(atoll):
    code = "import os, json; print(json.dumps(dict(os.environ)))"
    done = atoll.run(["run", "-l", "python", "--env", "A=1", "--env", "B=x=y z", "--env", "EMPTY=", "-c", code],
                     env={"SECRET_TOKEN": "hush", "AWS_KEY": "hush"})
    inside = json.loads(done.out)
    assert (inside["A"], inside["B"], inside["EMPTY"]) == ("1", "x=y z", "")
    assert "hush" not in done.out and "ATOLL_DATA_DIR" not in inside and "LD_LIBRARY_PATH" not in inside
    assert "PATH" in inside and inside.get("HOME", "").startswith(("/sandbox", "/tmp"))


@quick
def test_the_work_directory(atoll):
    result = atoll.probe("import os, json; print(json.dumps([os.getcwd(), __file__, os.listdir('/sandbox')]))")
    assert result == ["/sandbox", "/sandbox/main.py", ["main.py"]]


def test_read_only_leaves_only_tmp(atoll):
    code = ("import json\nout = []\n"
            "for p in ('/sandbox/x', '/tmp/x'):\n"
            "    try: open(p, 'w').close(); out.append('ok')\n"
            "    except OSError as e: out.append(e.errno)\n"
            "print(json.dumps(out))")
    assert atoll.probe(code) == ["ok", "ok"]
    first, second = atoll.probe(code, options=["--read-only"])
    assert first in (13, 30) and second == "ok"


def test_network_is_a_loopback(atoll):
    code = ("import socket\ns = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen()\n"
            "c = socket.create_connection(s.getsockname(), 1); print('joined')")
    joined = atoll.python(code)
    assert joined["stdout"] == "joined\n" and joined["isolation"]["net"] == "none"
    assert "Address family not supported" in atoll.python(code, options=["--network", "off"])["stderr"]


@pytest.fixture
def image(stage, compile_c):
    """A tree with nothing in it but a static stand-in for bash."""
    import shutil
    top = stage.top / "image"
    (top / "usr" / "bin").mkdir(parents=True)
    program = compile_c('#include <stdio.h>\n#include <unistd.h>\n'
                        'int main(void) { printf("image %d\\n", access("/usr/bin/python3", F_OK)); return 0; }')
    shutil.copy(program, top / "usr" / "bin" / "bash")
    (top / "marker").write_text("x")
    for path in (top, top / "usr", top / "usr" / "bin"):
        path.chmod(0o755)
    yield top
    shutil.rmtree(top)


def test_image_directory_is_the_root(atoll, image):
    done = atoll.run(["run", "--image", image, "-l", "bash", "-c", ":"])
    assert (done.returncode, done.stdout) == (0, b"image -1\n"), done


@pytest.mark.modes("root")
def test_image_that_the_sandbox_may_not_read(atoll, image, work):
    """Below a private directory of root's: it works, or the message says what is wrong with the image."""
    image.rename(work / "image")
    done = atoll.run(["run", "--image", work / "image", "-l", "bash", "-c", ":"])
    (work / "image").rename(image)
    if done.returncode:
        assert done.returncode == 125 and "image" in done.err and done.err.count("\n") == 1, done
    else:
        assert done.stdout == b"image -1\n"


# ------------------------------------------------------------------------------- --explain, --help


@quick
def test_explain_runs_nothing(atoll, work):
    out = atoll.mkdir(work / "out")
    done = atoll.run(["run", "--explain", "--memory", "77m", "-l", "bash", "--output-dir", out, "-c",
                      "echo ran; touch f"])
    assert done.returncode == 0 and b"\nran\n" not in done.stdout and done.stderr == b""
    assert list(out.iterdir()) == []
    for word in ("77", "overlay", "landlock", "seccomp", "/sandbox"):
        assert word in done.out.lower(), word


def test_explain_as_json(atoll):
    words = ["--memory", "77m", "--read-only", "-l", "c", "-c", "int main(void) { return 0; }"]
    done = atoll.run(["run", "--explain", "--json", *words])
    told = json.loads(done.out)
    assert done.returncode == 0 and set(told) == {"decision", "plans"}
    decision = told["decision"]
    assert decision["limits.memory"] == {"value": 77 << 20, "rule": "request"}
    assert decision["limits.timeout"]["value"] == 30 and decision["limits.cpu_time"]["value"] is None
    assert decision["read_only"] == {"value": True, "rule": "request"} and decision["language"]["value"] == "c"
    assert [plan["name"] for plan in told["plans"]] == ["compile", "run"]
    for plan in told["plans"]:
        assert {op["phase"] for op in plan["operations"]} == {"prepare", "launch"}
    assert any(op["name"] == "arg" and "gcc" in op["text"] for op in told["plans"][0]["operations"])
    text = atoll.run(["run", "--explain", *words]).out
    assert sum(len(plan["operations"]) for plan in told["plans"]) + len(decision) == len(re.findall("(?m)^  ", text))


@quick
def test_explain_refuses_what_run_refuses(atoll):
    for words in (["-l", "bash", "--memory", "900g"], ["-l", "nope"], ["-l", "bash", "--policy", "strict", "--writable-root"],
                  ["-l", "c", "--policy", "pure"], ["-l", "bash", "--network", "allow:a.test:80"]):
        explained, run = (atoll.run(["run", *explain, *words, "-c", ":"]) for explain in (["--explain"], []))
        assert explained.returncode == run.returncode in (125, 126, 127) and explained.err == run.err, (explained, run)


@quick
@pytest.mark.modes("rootless")
def test_help_names_what_works(atoll):
    top = atoll.run(["--help"])
    assert top.returncode == 0 and top.stderr == b""
    for word in ("run", "languages", "doctor", "mcp"):
        assert word in top.out
    for word in ("attach",):
        assert not re.search(rf"^\s+{word}\b", top.out, re.M), f"{word} is of a later step"
    run = atoll.run(["run", "--help"])
    assert run.returncode == 0
    for flag in ("--timeout", "--cpu-time", "--idle-timeout", "--memory", "--swap", "--cpus", "--pids", "--output",
                 "--output-total", "--disk", "--files", "--file-size", "--open-files", "--stack", "--json", "--env",
                 "--file", "--output-dir", "--read-only", "--workspace", "--commit", "--discard", "--network", "--policy", "--image", "--stage", "--invoke",
                 "--params", "--preload", "--explain", "--tty", "--no-daemon"):
        assert re.search(rf"{flag}\b", run.out), flag
    for flag in ("--learn",):
        assert flag not in run.out, f"{flag} is of a later step"


@pytest.mark.modes("rootless")
@pytest.mark.parametrize("words", [["doctor", "--help"], ["languages", "--help"], ["--version"]])
def test_help_and_version_of_commands(atoll, words):
    done = atoll.run(words)
    assert done.returncode == 0 and done.stdout and not done.stderr


@quick
@pytest.mark.modes("rootless")
@pytest.mark.parametrize("words", [
    ["frobnicate"], ["run"], ["run", "--frobnicate", "-c", ":"], ["run", "-l", "bash"], ["run", "-l"],
    ["run", "-l", "bash", "-c", ":", "a.py"], ["run", "-l", "bash", "--env", "NOEQUALS", "-c", ":"],
    ["run", "-l", "bash", "--env", "=x", "-c", ":"], ["run", "-l", "bash", "--file", "x", "-c", ":"],
    ["run", "-l", "bash", "--network", "sideways", "-c", ":"], ["run", "-c", "echo no language"],
    ["run", "-l", "c", "--preload", "numpy", "-c", ":"], ["run", "-l", "python", "--preload", "a b", "-c", "0"]])
def test_wrong_usage(atoll, words):
    done = atoll.run(words)
    assert done.returncode in (125, 127), done
    assert done.stdout == b"" and done.stderr.strip(), done
    assert b"ran" not in done.stdout


@pytest.mark.modes("rootless")
def test_preload_is_the_policys_to_permit(atoll, work):
    words = ["run", "-l", "python", "--preload", "numpy,this", "-c", "print(1)"]
    done = atoll.run(words)
    assert done.returncode == 126 and done.err == (
        "atoll: preload: 'this' is not permitted by policy 'default' (permitted: numpy, pandas, matplotlib); leave it out, "
        "or name it in the policy's preload\n"), done
    assert json.loads(atoll.run([*words, "--json"]).stdout)["status"] == "denied"
    (work / "mine.yaml").write_text("name: mine\nfilesystem: {usr: [/usr]}\npreload: [numpy, this]\n")
    (work / "mine.yaml").chmod(0o644)
    assert atoll.run([*words, "--policy", work / "mine.yaml"]).out == "1\n"


def test_preload_of_a_module_that_is_not_there(atoll, work):
    """A typing error has no effect on the run, and is not silent either."""
    (work / "any.yaml").write_text("name: any\nfilesystem: {usr: [/usr]}\npreload: any\n")
    (work / "any.yaml").chmod(0o644)
    words = ["run", "-l", "python", "--policy", work / "any.yaml", "-c", "print(1)", "--preload"]
    done = atoll.run([*words, "wave,wavve,xml.nothing"])
    assert (done.returncode, done.out) == (0, "1\n")
    assert done.err == "atoll: preload: Python has no module 'wavve': nothing was loaded ahead for it\n", done
    result = json.loads(atoll.run([*words, "wave,wavve,xml.nothing", "--json"]).out)
    assert [text.split("'")[1] for text in result["warnings"]] == ["wavve", "xml.nothing"]
    assert "warnings" not in json.loads(atoll.run([*words, "wave,xml.dom", "--json"]).out)


@pytest.mark.modes("rootless")
def test_no_words_at_all(atoll):
    done = atoll.run([])
    assert done.returncode == 125 and b"run" in done.stdout + done.stderr


# ----------------------------------------------------------------------------------------- streams


@quick
def test_stdout_and_stderr_stay_apart(atoll):
    done = atoll.run(["run", "-l", "bash", "-c", "echo a; echo b >&2; echo c"])
    assert (done.stdout, done.stderr) == (b"a\nc\n", b"b\n")


def test_no_daemon_process_is_needed_or_left(atoll):
    for _ in range(3):
        assert atoll.bash(":")["status"] == "success"


def test_several_at_once(atoll):
    popens = [atoll.popen(["run", "-l", "python", "-c", f"import time; time.sleep(0.3); print({n})"]) for n in range(8)]
    for n, popen in enumerate(popens):
        out, err = popen.communicate(timeout=25)
        assert (popen.returncode, out, err) == (0, f"{n}\n".encode(), b"")


def test_cancel_by_interrupt(atoll):
    """Ctrl-C ends the run and everything in it, and says so."""
    import signal
    import time
    popen = atoll.popen(["run", "-l", "bash", "-c", "echo up; trap '' INT TERM; sleep 30"])
    assert popen.stdout.readline() == b"up\n"
    begin = time.monotonic()
    popen.send_signal(signal.SIGINT)
    popen.communicate(timeout=25)
    assert time.monotonic() - begin < 15
    assert popen.returncode in (130, -2)


def children(pid):
    return [int(word) for word in open(f"/proc/{pid}/task/{pid}/children").read().split()]


def test_death_of_the_broker(atoll):
    """kill -9 of the process that holds the sandbox: an error at once, everything inside dies, and the groups it
    could not remove any more are swept by a later run, once they are too old to be in use."""
    import os
    import signal
    import time
    popen = atoll.popen(["run", "-l", "bash", "-c", "echo up; trap '' TERM HUP; (setsid sleep 30 &); sleep 30"])
    assert popen.stdout.readline() == b"up\n"
    begin = time.monotonic()
    for pid in children(popen.pid):
        os.kill(pid, signal.SIGKILL)
    _, err = popen.communicate(timeout=25)
    assert popen.returncode == 125 and err.count(b"\n") == 1 and time.monotonic() - begin < 15, (popen.returncode, err)
    sweep(atoll)


@pytest.mark.parametrize("name", ["KILL", "TERM", "HUP"])
def test_death_of_the_front_takes_all_with_it(atoll, name):
    """kill -9 of the command line: the oracle must find nothing a little later."""
    import signal
    popen = atoll.popen(["run", "-l", "bash", "-c", "echo up; trap '' TERM HUP; (setsid sleep 30 &); sleep 30"])
    assert popen.stdout.readline() == b"up\n"
    popen.send_signal(getattr(signal, f"SIG{name}"))
    popen.wait(25)
    popen.stdout.close(), popen.stderr.close(), popen.stdin.close()


def test_a_policy_shows_directories_of_the_host(atoll, stage, work):
    """Read-only, at their own paths; links in them lead nowhere that the sandbox does not have, and what only an owner may read stays unread."""
    shown = stage.top / f"shown-{atoll.mode}" / "deep"
    shown.mkdir(parents=True)
    for name in ("data", "secret"):
        (shown / name).write_text(name)
    (shown / "secret").chmod(0o600)
    (shown / "out").symlink_to(stage.driver)
    policy = work / "mine.yaml"
    policy.write_text(f"name: mine\nfilesystem: {{usr: [/usr, {shown}]}}\n")
    policy.chmod(0o644)
    code = (f"cd {shown}; cat data; (echo more > data) 2>/dev/null || echo ' kept'; mkdir new 2>/dev/null || echo refused; "
            f"cat out 2>/dev/null || echo nowhere; cat secret 2>/dev/null || echo unread; ls {stage.top}")
    unread = "unread\n" if IS_ROOT else "secret"  # else it is the user's own
    done = atoll.run(["run", "--policy", policy, "-l", "bash", "-c", code])
    assert done.out == f"data kept\nrefused\nnowhere\n{unread}shown-{atoll.mode}\n", done
    policy.write_text("name: mine\nfilesystem: {usr: [/usr, /srv/../etc]}\n")
    refused = atoll.run(["run", "--policy", policy, "-l", "bash", "-c", ":"])
    assert refused.returncode == 125 and "'/srv/../etc' is not an absolute directory name" in refused.err, refused
    assert "filesystem.mounts" in atoll.run(["run", "--mount", "/srv:/b", "-l", "bash", "-c", ":"]).err
