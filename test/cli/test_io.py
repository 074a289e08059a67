# SPDX-License-Identifier: Apache-2.0
"""What goes in and what comes out: files, streams, terminal, truncation, collection."""
import base64
import hashlib
import json
import os
import pty
import select
import struct
import subprocess
import termios
import time

import pytest

quick = pytest.mark.quick
MIB = 1 << 20

# ----------------------------------------------------------------------------------------- files in

TREE = ("import os, json\nout = {}\n"
        "for top, dirs, names in os.walk('.'):\n"
        "    for n in names:\n"
        "        p = os.path.join(top, n)\n"
        "        if n != 'main.py': out[p[2:]] = open(p, 'rb').read().decode('latin1')\n"
        "    for d in dirs: out.setdefault(os.path.join(top, d)[2:] + '/', None)\n"
        "print(json.dumps(out))")


@quick
def test_file_in(atoll, work):
    (work / "a.txt").write_bytes(b"one\0two\xff")
    seen = atoll.probe(TREE, options=["--file", f"data/in.txt={work}/a.txt", "--file", f"b={work}/a.txt"])
    assert seen == {"data/in.txt": "one\0two\xff", "b": "one\0two\xff", "data/": None}


@quick
def test_directory_in(atoll, work):
    tree = work / "tree"
    (tree / "sub" / "deep").mkdir(parents=True)
    (tree / "x").write_text("x")
    (tree / "sub" / "deep" / "y").write_text("y")
    (tree / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (tree / "run.sh").chmod(0o755)
    seen = atoll.probe(TREE, options=["--file", f"d={tree}"])
    assert seen["d/x"] == "x" and seen["d/sub/deep/y"] == "y"
    assert atoll.bash("d/run.sh", options=["--file", f"d={tree}"])["stdout"] == "ran\n"


@quick
def test_content_of_a_directory_in(atoll, work):
    tree = work / "tree"
    (tree / "sub").mkdir(parents=True)
    (tree / "x").write_text("x")
    (tree / "sub" / "y").write_text("y")
    assert atoll.probe(TREE, options=["--file", f"{tree}/."]) == {"x": "x", "sub/": None, "sub/y": "y"}
    done = atoll.run(["run", "-l", "bash", "--file", ".", "-c", "cat x sub/y"], cwd=tree)
    assert done.returncode == 0 and done.out == "xy", done


def test_file_in_may_be_changed_inside_only(atoll, work):
    (work / "a").write_text("before")
    result = atoll.bash("cat a; echo after > a; cat a", options=["--file", f"a={work}/a"])
    assert result["stdout"] == "beforeafter\n" and (work / "a").read_text() == "before"


@quick
@pytest.mark.parametrize("name", ["../x", "/etc/x", "/sandbox/x", "a/../../x", "a/..", ".", "..", "", "a//../b/../../c",
                                  "./../x", "a/" * 200 + "x", "n" * 300])
def test_bad_destination(atoll, work, name):
    (work / "a").write_text("text")
    done = atoll.run(["run", "-l", "bash", "--file", f"{name}={work}/a", "-c", "echo ran"])
    assert done.returncode == 125 and done.stdout == b"" and done.err.count("\n") == 1, done


def test_symlink_in_is_refused(atoll, work, canary):
    (work / "link").symlink_to(canary.public)
    done = atoll.run(["run", "-l", "bash", "--file", f"x={work}/link", "-c", "cat x"])
    assert done.returncode == 125 and canary.text not in done.out and "link" in done.err, done
    tree = work / "tree"
    tree.mkdir()
    (tree / "inner").symlink_to(canary.public)
    done = atoll.run(["run", "-l", "bash", "--file", f"d={tree}", "-c", "cat d/inner"])
    assert done.returncode == 125 and canary.text not in done.out, done


def test_special_files_in_are_refused(atoll, work):
    os.mkfifo(work / "fifo")
    done = atoll.run(["run", "-l", "bash", "--file", f"x={work}/fifo", "-c", ":"])
    assert done.returncode == 125 and "fifo" in done.err
    assert atoll.run(["run", "-l", "bash", "--file", "x=/dev/zero", "-c", ":"]).returncode == 125


def test_duplicate_destination(atoll, work):
    (work / "a").write_text("a")
    done = atoll.run(["run", "-l", "bash", "--file", f"x={work}/a", "--file", f"x={work}/a", "-c", "echo ran"])
    assert done.returncode == 125 and done.stdout == b"" and "x" in done.err, done
    done = atoll.run(["run", "-l", "bash", "--file", f"x={work}/a", "--file", f"x/y={work}/a", "-c", "echo ran"])
    assert done.returncode == 125 and done.stdout == b"", done


@pytest.mark.modes("rootless")
@pytest.mark.parametrize("name", ["a\0b", "../a", "/a", "a/../b", "", "a/", ".", "a//b", "x\0"])
def test_bad_names_in_json(library, name):
    rc, result, problem = library.run({"language": "bash", "code": "ls -la", "files": {name: "text"}})
    if name in ("a/", "a//b") and rc == 0 and result["status"] == "success":
        return  # may be taken in their normal form
    assert rc < 0 or result["status"] == "setup_error", result
    assert problem or result["cause"]["detail"]


def test_files_in_json(library):
    data = bytes(range(256))
    rc, result, problem = library.run({
        "language": "python", "code": "print(open('t').read(), list(open('d/b', 'rb').read()) == list(range(256)))",
        "files": {"t": "text é", "d/b": {"base64": base64.b64encode(data).decode()}}})
    assert rc == 0, problem
    assert result["stdout"] == "text é True\n"
    rc, result, problem = library.run({"language": "python", "code": "1", "files": {"t": {"base64": "@@@"}}})
    assert rc < 0 or result["status"] == "setup_error"


def test_the_source_name_may_not_be_overwritten_silently(atoll, work):
    (work / "a").write_text("print('impostor')")
    done = atoll.run(["run", "-l", "python", "--file", f"main.py={work}/a", "-c", "print('real')"])
    assert done.returncode == 125 or done.out == "real\n", done


# -------------------------------------------------------------------------------------------- stdin


@quick
def test_stdin_from_a_pipe(atoll):
    done = atoll.run(["run", "-l", "bash", "-c", "read a; echo got $a; cat"], input=b"one\ntwo\nthree")
    assert done.stdout == b"got one\ntwo\nthree"


def test_stdin_from_a_file(atoll, work):
    (work / "in").write_bytes(b"line\n" * 100000)
    with open(work / "in", "rb") as f:
        done = atoll.run(["run", "-l", "bash", "-c", "wc -c"], stdin=f, input=None)
    assert int(done.stdout) == 500000


def test_stdin_from_nothing(atoll):
    done = atoll.run(["run", "-l", "bash", "-c", "cat; echo end"], stdin=subprocess.DEVNULL, input=None)
    assert done.stdout == b"end\n"


def test_stdin_closed(atoll):
    """Started with no descriptor 0 at all."""
    argv = atoll.command([atoll.binary, "run", "-l", "bash", "-c", "cat; echo end"])
    done = subprocess.run(["sh", "-c", 'exec "$@" <&-', "sh", *argv], env=atoll.environment(), cwd=atoll.home,
                          capture_output=True, timeout=60)
    assert done.stdout == b"end\n", done


def test_stdin_that_nobody_reads(atoll):
    done = atoll.run(["run", "-l", "bash", "-c", "echo out"], input=b"x" * (20 * MIB))
    assert (done.returncode, done.stdout) == (0, b"out\n")


def test_stdin_that_never_ends(atoll):
    popen = atoll.popen(["run", "-l", "bash", "-c", "read a; echo $a"])
    popen.stdin.write(b"hello\n")
    popen.stdin.flush()
    assert popen.stdout.read() == b"hello\n"
    assert popen.wait(25) == 0
    popen.stdin.close(), popen.stdout.close(), popen.stderr.close()


def test_stdin_large_and_binary(atoll):
    data = os.urandom(8 * MIB)
    done = atoll.run(["run", "-l", "bash", "-c", "sha256sum"], input=data)
    assert done.out.split()[0] == hashlib.sha256(data).hexdigest()


def test_stdin_in_json_result(atoll):
    assert atoll.python("print(input()[::-1])", input=b"abc\n")["stdout"] == "cba\n"


# ---------------------------------------------------------------------------------------- streaming


@quick
def test_output_is_live(atoll):
    """It is there while the program waits for us."""
    popen = atoll.popen(["run", "-l", "bash", "-c", "echo first; echo err >&2; read; echo second"])
    for stream, line in ((popen.stdout, b"first\n"), (popen.stderr, b"err\n")):
        assert select.select([stream], [], [], 25)[0] and stream.readline() == line
    assert popen.poll() is None
    popen.stdin.write(b"\n")
    popen.stdin.flush()
    assert popen.stdout.read() == b"second\n"
    assert popen.wait(25) == 0
    popen.stdin.close(), popen.stdout.close(), popen.stderr.close()


def test_conversation(atoll):
    popen = atoll.popen(["run", "-l", "python", "-c", "while True: print(int(input()) + 1, flush=True)"])
    for number in (1, 41, 999):
        popen.stdin.write(f"{number}\n".encode())
        popen.stdin.flush()
        assert popen.stdout.readline() == f"{number + 1}\n".encode()
    popen.stdin.close()
    assert popen.wait(25) == 1
    popen.stdout.close(), popen.stderr.close()


def test_slow_reader_loses_nothing(atoll):
    popen = atoll.popen(["run", "-l", "bash", "-c", "seq 1 200000"])
    time.sleep(0.5)
    data = popen.stdout.read()
    assert data == b"".join(b"%d\n" % i for i in range(1, 200001))
    assert popen.wait(25) == 0
    popen.stdin.close(), popen.stdout.close(), popen.stderr.close()


def test_reader_that_goes_away(atoll):
    """A closed pipe at our own output ends the run, without noise."""
    popen = atoll.popen(["run", "-l", "bash", "--timeout", "50", "-c", "yes"])
    popen.stdout.read(100)
    popen.stdout.close()
    begin = time.monotonic()
    code = popen.wait(25)
    assert time.monotonic() - begin < 20 and code != 0
    popen.stdin.close(), popen.stderr.close()


# --------------------------------------------------------------------------------------- truncation


@quick
@pytest.mark.parametrize("extra", [-1, 0, 1, 5000])
def test_truncation_is_exact(atoll, extra):
    limit, total = 4096, 4096 + extra
    code = f"import sys; sys.stdout.write(('0123456789' * 1000)[:{total}])"
    result = atoll.python(code, options=["--output", str(limit)])
    text = ("0123456789" * 1000)[:total]
    assert result["stdout_bytes"] == total and result["status"] == "success"
    if extra <= 0:
        assert result["stdout"] == text and result["stdout_truncated"] is False
        return
    assert result["stdout_truncated"] is True and result["stdout"] != text
    head = os.path.commonprefix([result["stdout"], text])
    tail = os.path.commonprefix([result["stdout"][::-1], text[::-1]])
    marker = result["stdout"][len(head):len(result["stdout"]) - len(tail)]
    assert len(head) > 1000 and len(tail) > 1000 and marker.strip()
    assert len(head) + len(tail) <= limit


def test_truncation_of_streams_is_separate(atoll):
    result = atoll.bash("head -c 10000 /dev/zero | tr '\\0' a; echo short >&2", options=["--output", "1k"])
    assert result["stdout_truncated"] and not result["stderr_truncated"]
    assert (result["stdout_bytes"], result["stderr"]) == (10000, "short\n")


def test_truncation_keeps_utf8_whole(atoll):
    result = atoll.python("print('é☃𝄞' * 5000, end='')", options=["--output", "1001"])
    assert result["stdout_truncated"] and "\ufffd" not in result["stdout"] and result["stdout_bytes"] == 45000
    assert not result.get("stdout_binary")


@quick
def test_binary_output(atoll):
    result = atoll.python("import os; os.write(1, bytes(range(256)))")
    assert result["stdout_bytes"] == 256 and result["stdout_binary"] is True
    assert "\ufffd" in result["stdout"] and "ABC" in result["stdout"] and "\0" in result["stdout"]
    done = atoll.run(["run", "-l", "python", "-c", "import os; os.write(1, bytes(range(256)))"])
    assert done.stdout == bytes(range(256))


# ---------------------------------------------------------------------------------------- terminal


class Terminal:
    """atoll run under a terminal of its own, as from an interactive shell."""

    def __init__(self, atoll, args, rows=31, cols=97):
        self.master, slave = pty.openpty()
        import fcntl
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
        argv = atoll.command([atoll.binary, *args])
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.popen = subprocess.Popen(["setsid", "-c", "-w", *argv], stdin=slave, stdout=slave, stderr=slave,
                                      env=atoll.environment({"TERM": "xterm"}), cwd=atoll.home)
        self.seen = b""

    def until(self, text, timeout=25):
        end = time.monotonic() + timeout
        while text not in self.seen:
            ready, _, _ = select.select([self.master], [], [], max(0, end - time.monotonic()))
            assert ready, f"no {text!r} in {self.seen!r}"
            try:
                self.seen += os.read(self.master, 4096)
            except OSError:
                assert text in self.seen, self.seen
        return self.seen

    def type(self, data):
        os.write(self.master, data)

    def close(self):
        code = self.popen.wait(25)
        after = termios.tcgetattr(self.slave)
        os.close(self.slave)
        os.close(self.master)
        assert after == self.before, "the terminal was not put back"
        return code


def test_tty_is_a_terminal(atoll):
    """--tty: own pty inside, our window's size, typing arrives, the exit code comes back."""
    code = "tty -s && echo yes; stty size; read -p 'name? ' n; echo hello $n; exit 6"
    term = Terminal(atoll, ["run", "--tty", "-l", "bash", "-c", code])
    assert b"yes" in term.until(b"name? ") and b"31 97" in term.seen
    term.type(b"toy\r")
    term.until(b"hello toy")
    assert term.close() == 6


def test_tty_interrupt_reaches_the_program(atoll):
    # A terminal sends the signal and then drops what it holds, which may be the answer already.
    code = "stty noflsh; trap 'echo caught; exit 9' INT; echo ready; while :; do sleep 0.1; done"
    term = Terminal(atoll, ["run", "--tty", "-l", "bash", "-c", code])
    term.until(b"ready")
    term.type(b"\x03")
    term.until(b"caught")
    assert term.close() == 9


def test_tty_resize(atoll):
    code = "trap 'stty size; exit 3' WINCH; echo ready; while :; do sleep 0.05; done"
    term = Terminal(atoll, ["run", "--tty", "-l", "bash", "-c", code])
    term.until(b"ready")
    import fcntl
    fcntl.ioctl(term.master, termios.TIOCSWINSZ, struct.pack("HHHH", 12, 34, 0, 0))
    term.until(b"12 34")
    assert term.close() == 3


def test_terminal_without_tty_stays_interactive(atoll):
    term = Terminal(atoll, ["run", "-l", "bash", "-c", "tty -s || echo pipe; echo ask; read n; echo got $n"])
    term.until(b"ask")
    term.type(b"line\r")
    term.until(b"got line")
    assert b"pipe" in term.seen
    assert term.close() == 0


def test_tty_without_a_terminal_outside(atoll):
    done = atoll.run(["run", "--tty", "-l", "bash", "-c", "tty -s && echo yes"])
    assert done.returncode == 0 and b"yes" in done.stdout, done


@pytest.mark.undisturbed
@pytest.mark.brief
def test_timeout_puts_the_terminal_back(atoll):
    term = Terminal(atoll, ["run", "--tty", "--timeout", "2", "-l", "bash", "-c", "echo ready; sleep 20"])
    term.until(b"ready")
    assert term.close() == 124


# ---------------------------------------------------------------------------------------- collection


@quick
def test_files_are_listed(atoll):
    result = atoll.bash("echo -n content > out.txt; mkdir -p a/b; echo x > a/b/c; : > empty")
    listed = {f["path"]: f for f in result["files"]}
    assert set(listed) == {"out.txt", "a/b/c", "empty"}
    assert listed["out.txt"] == {"path": "out.txt", "size": 7,
                                 "sha256": hashlib.sha256(b"content").hexdigest()}
    assert listed["empty"]["sha256"] == hashlib.sha256(b"").hexdigest()


@quick
def test_files_are_collected(atoll, work):
    out = atoll.mkdir(work / "out")
    data = bytes(range(256)) * 5000
    done = atoll.run(["run", "-l", "python", "--output-dir", out, "-c",
                      "import os\nos.makedirs('d/e')\nopen('d/e/f', 'wb').write(bytes(range(256)) * 5000)\n"
                      "open('x.sh', 'w').write('#!'); os.chmod('x.sh', 0o4755)"])
    assert done.returncode == 0, done
    assert (out / "d/e/f").read_bytes() == data
    assert sorted(p.name for p in out.iterdir()) == ["d", "x.sh"]
    assert (out / "x.sh").stat().st_mode & 0o7000 == 0, "a setuid bit came out"
    owner = (out / "x.sh").stat().st_uid
    assert owner == (65533 if atoll.rootless and os.geteuid() == 0 else os.geteuid())


def test_inputs_that_did_not_change_are_not_outputs(atoll, work):
    (work / "in").write_text("same")
    result = atoll.bash("echo new > fresh", options=["--file", f"in={work}/in"])
    assert {f["path"] for f in result["files"]} == {"fresh"}
    result = atoll.bash("echo new >> in", options=["--file", f"in={work}/in"])
    assert {f["path"] for f in result["files"]} == {"in"}


def test_only_regular_files_are_collected(atoll, work, canary):
    code = (f"ln -s {canary.public} link; ln -s /etc dir; mkfifo fifo; ln -s loop loop; echo real > real; "
            "ln real hard; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")'")
    out = atoll.mkdir(work / "out")
    done = atoll.run(["run", "--json", "-l", "bash", "--output-dir", out, "-c", code])
    result = done.json()
    assert {f["path"] for f in result["files"]} <= {"real", "hard"} and result["files"]
    assert canary.text not in done.out
    assert {p.name for p in out.iterdir()} <= {"real", "hard"}


@pytest.mark.undisturbed
@pytest.mark.brief
def test_files_are_kept_on_every_kind_of_end(atoll):
    for code, options in (("echo x > f; exit 3", []), ("echo x > f; kill -9 $$", []),
                          ("echo x > f; sleep 30", ["--timeout", "0.9"])):
        result = atoll.bash(code, options=options)
        assert [f["path"] for f in result["files"]] == ["f"], result


def test_collection_is_bounded(atoll):
    """Deep trees, many files, sparse giants: it comes to an end and says that it was cut."""
    code = ("import os\nfor i in range(6000): open(f'f{i:05}', 'w').close()\n")
    result = atoll.python(code)
    assert len(result["files"]) <= 5000 and result.get("files_truncated") is True, len(result["files"])
    code = "import os\nfor i in range(300):\n    os.mkdir('d'); os.chdir('d')\nopen('deep', 'w').write('x')"
    result = atoll.python(code)
    assert result["status"] == "success" and all(f["path"].count("/") < 300 for f in result["files"])


def test_background_writers_are_dead_before_collection(atoll):
    code = ("(setsid bash -c 'while :; do echo more >> grow; done' &); until [ -s grow ]; do sleep 0.02; done; echo end; exit 0")
    result = atoll.bash(code)
    listed = {f["path"]: f for f in result["files"]}
    assert "grow" in listed and result["status"] == "success"


def test_names_that_are_not_text(atoll):
    code = ("import os\nfor n in (b'\\xff' * 200, b'a\\nb', b'\\x1b[31m', b'-rf', b'\"q\"', 'é'.encode()):\n"
            "    open(n, 'w').write('x')")
    result = atoll.python(code)
    assert result["status"] == "success"
    json.dumps(result, ensure_ascii=False).encode("utf-8")
    assert {"-rf", '"q"', "é"} <= {f["path"] for f in result["files"]}


def test_locked_directories_do_not_stop_clean_up(atoll):
    result = atoll.bash("mkdir -p a/b; echo x > a/b/c; chmod 000 a/b/c a/b a; echo y > z")
    assert result["status"] == "success" and "z" in {f["path"] for f in result["files"]}


def test_output_that_cannot_be_written(atoll):
    with open("/dev/full", "wb") as full:
        popen = atoll.popen(["run", "-l", "bash", "-c", "echo x"], stdin=subprocess.DEVNULL, stdout=full)
    said = popen.communicate(timeout=30)[1]
    assert popen.returncode == 125 and said == b"atoll: cannot write what the program printed: No space left on device\n"
