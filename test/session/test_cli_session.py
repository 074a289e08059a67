# SPDX-License-Identifier: Apache-2.0
"""`atoll session …`: one daemon, the commands as a person types them, and a REPL on a terminal."""
import contextlib
import json
import os
import pty
import re
import select
import signal
import time

import pytest

from resident import wait_until

quick = pytest.mark.quick


class Commands:
    """`atoll session` against the daemon."""

    def __init__(self, served, atoll):
        self.atoll, self.web = atoll.variant(env={"ATOLL_URL": str(served.daemon.socket)}), served.web.operator

    def __call__(self, *words, code=0, **more):
        done = self.atoll.run(["session", *words], **more)
        assert done.returncode == code, done
        return done

    def refused(self, *words, code=125):
        done = self(*words, code=code)
        assert done.out == "" and done.err.startswith("atoll: ") and done.err.count("\n") == 1, done
        return done.err

    def listed(self):
        return self("list", "--json").json()["sessions"]

    @contextlib.contextmanager
    def new(self, *words):
        id = self("new", *words).out.strip()
        try:
            yield id
        finally:
            self.atoll.run(["session", "rm", id])


@pytest.fixture
def session(served, atoll):
    commands = Commands(served, atoll)
    yield commands
    assert commands.listed() == []


# ------------------------------------------------------------------------------------------- commands


@quick
def test_state_between_commands(session):
    with session.new() as id:
        assert re.fullmatch(r"se_\w+", id)
        assert session("exec", id, "x = 20").stdout == b""
        done = session("exec", id, "import sys; print('out'); print('err', file=sys.stderr); x + 1")
        assert (done.out, done.err) == ("out\n21\n", "err\n")
        assert session("exec", id, "'text', [1], {'a': None}, True").out == "('text', [1], {'a': None}, True)\n"
        assert session("exec", id, "None").out == ""
        [only] = session.listed()
        assert only["id"] == id and only["executions"] == 4
    session.refused("exec", id, "1")


def test_names(session):
    with session.new("--name", "work", "--label", "k=v") as id, session.new() as other:
        session("exec", "work", "x = 1")
        assert session("exec", id, "x").out == "1\n" and session("exec", "last", "y = 2").out == ""
        assert session("exec", other, "y").out == "2\n"
        rows = session("list").out.splitlines()
        assert rows[0].split()[:3] == ["SESSION", "NAME", "STATE"]
        assert [row for row in rows if id in row and " work " in row and "k=v" in row]
        assert "no session 'none'" in session.refused("show", "none") and "session list" in session.refused("rm", "none")
        assert session("show", "work", "--json").json()["id"] == id
        shown = session("show", "work").out
        assert re.search(rf"(?m)^id +{id}$", shown) and re.search(r"(?m)^language +python$", shown)


def test_exec_takes_code_from_anywhere(session, work):
    (work / "code.py").write_text("print('from a file')\n7")
    (work / "bytes.py").write_bytes(b"'\xff'")
    with session.new() as id:
        assert session("exec", id, work / "code.py").out == "from a file\n7\n"
        assert session("exec", id, "-", input="1\n2").out == "2\n"
        assert session("exec", id, input="3").out == "3\n"
        assert session("exec", id, "-c", "4").out == "4\n"
        assert "not both" in session.refused("exec", id, "-c", "4", "5")
        assert "between quotes" in session.refused("exec", id, "4", "5")
        assert "takes ID" in session.refused("exec")
        assert "UTF-8" in session.refused("exec", id, work / "bytes.py")


@quick
def test_exec_ends_as_run_does(session):
    with session.new() as id:
        done = session("exec", id, "1/0", code=1)
        assert "ZeroDivisionError" in done.err and done.out == "" and "atoll:" not in done.err
        assert session("exec", id, "exit(3)", code=3).out == ""
        session("exec", id, "x = 1")
        done = session("exec", id, "--timeout", "200ms", "import time; time.sleep(9)", code=124)
        assert "did not end within" in done.err.splitlines()[-1]
        assert session("exec", id, "x").out == "1\n"
        assert "memory" in session("exec", id, "--memory", "1", "x", code=125).err
        done = session("exec", id, "import os; os.kill(os.getpid(), 9)", code=137)
        assert "variables are lost" in done.err
        assert "NameError" in session("exec", id, "x", code=1).err


def test_exec_offers_the_limits_that_it_has(session):
    limits = re.findall(r"(?m)^ +(--[a-z-]+) (?:TIME|SIZE|N) ", session("exec", "--help").out)
    assert limits == ["--timeout", "--cpu-time", "--idle-timeout", "--output", "--output-total"]


def test_exec_as_json(session):
    with session.new() as id:
        result = session("exec", id, "--json", "print(1); 2").json()
        assert (result["stdout"], result["value"], result["value_repr"]) == ("1\n", 2, "2")
        assert result["session"] == {"id": id, "state": "kept", "lost": None}
        assert session("exec", id, "--json", "1/0", code=1).json()["error"]["type"] == "ZeroDivisionError"


def test_rich_outputs_are_shown_once(session):
    code = "class A:\n def _repr_html_(self): return '<a>'\n def __repr__(self): return 'an A'\n"
    with session.new() as id:
        assert session("exec", id, code + "A()").out == "an A\n"
        assert session("exec", id, "display(A()); 5").out == "an A\n5\n"


def test_interrupting_exec(session):
    with session.new() as id:
        session("exec", id, "x = 1")
        popen = session.atoll.popen(["session", "exec", id, "print('now', flush=True)\nwhile True: pass"])
        assert popen.stdout.readline() == b"now\n"
        popen.send_signal(signal.SIGINT)
        _, errors = popen.communicate(timeout=30)
        assert popen.returncode == 130, errors
        assert session("exec", id, "x").out == "1\n"


def test_interrupt_and_reset(session):
    with session.new() as id:
        session("exec", id, "x = 1")
        assert "no code was running" in session("interrupt", id).err
        popen = session.atoll.popen(["session", "exec", id, "print('now', flush=True)\nwhile True: pass"])
        assert popen.stdout.readline() == b"now\n"
        assert session("interrupt", id, "--json").json() == {"interrupted": True, "state": "kept"}
        _, errors = popen.communicate(timeout=30)
        assert popen.returncode == 1 and b"KeyboardInterrupt" in errors
        assert session("exec", id, "x").out == "1\n"
        session("reset", id)
        assert "NameError" in session("exec", id, "x", code=1).err


def test_fork(session):
    id = session("new").out.strip()
    if not session("show", id, "--json").json()["forkable"]:
        assert "cannot be forked" in session.refused("fork", id)
        session("rm", id)
        pytest.skip("this host has no cgroups or no Landlock")
    session("exec", id, "g = iter(range(9)); next(g); x = [1]")
    copies = session("fork", id, "-n", "2").out.split()
    assert len(copies) == 2 and all(re.fullmatch(r"se_\w+", copy) for copy in copies)
    assert session("exec", copies[0], "x.append(2); next(g), x").out == "(1, [1, 2])\n"
    for other in (id, copies[1]):
        assert session("exec", other, "next(g), x").out == "(1, [1])\n"
    [made] = session("fork", id, "--json").json()["sessions"]
    assert made["parent"] == id
    assert "wants a number" in session.refused("fork", id, "-n", "many")
    session("rm", id, made["id"], *copies)
    with session.new("--no-fork") as plain:
        assert "fork" in session.refused("fork", plain)


def test_logs(session):
    with session.new() as id:
        session("exec", id, "print('one')")
        session("exec", id, "import sys; print('two', file=sys.stderr)")
        done = session("logs", id)
        assert (done.out, done.err) == ("one\n", "two\n")
        assert session("logs", id, "--json").json() == {"stdout": "one\n", "stderr": "two\n", "truncated": False}
        session("exec", id, "print('x' * (2 << 20)); print('last')")
        done = session("logs", id)
        assert done.out.startswith("one\nxxx") and done.out.endswith("xxx\nlast\n") and "the middle was left out" in done.err


def test_files(session, work):
    (work / "in.bin").write_bytes(bytes(range(256)))
    with session.new() as id:
        session("put", id, work / "in.bin")
        session("put", id, "-", "a dir/b%c.txt", input="text")
        assert session("exec", id, "open('in.bin', 'rb').read() == bytes(range(256)), open('a dir/b%c.txt').read()").out == \
            "(True, 'text')\n"
        listed = {f["path"]: f for f in session("files", id, "--json").json()["files"]}
        assert listed["in.bin"]["size"] == 256 and listed["a dir/b%c.txt"]["type"] == "file"
        assert session("ls", id).stdout == session("files", id).stdout and "256 B  in.bin" in session("files", id).out
        assert session("get", id, "in.bin", "-").stdout == bytes(range(256))
        session("get", id, "a dir/b%c.txt", cwd=work)
        assert (work / "b%c.txt").read_text() == "text"
        session("get", id, "in.bin", work / "copy")
        assert (work / "copy").read_bytes() == bytes(range(256))
        assert "no file 'none'" in session.refused("get", id, "none", "-")
        assert "No such file" in session.refused("put", id, work / "none")
        assert "has no name" in session.refused("put", id, "-")
        assert "takes ID FILE" in session.refused("put", id)
        assert "cannot write" in session.refused("get", id, "in.bin", work / "no" / "place")


def test_what_a_session_is_made_with(session, work):
    (work / "data.txt").write_text("data")
    with session.new("--env", "K=V", "--file", f"d.txt={work / 'data.txt'}", "--memory", "200m", "--expire", "2m") as id:
        assert session("exec", id, "import os; os.environ['K'], open('d.txt').read()").out == "('V', 'data')\n"
        shown = session("show", id, "--json").json()
        assert shown["limits"]["memory"] == 200 << 20 and shown["idle_timeout"] == 120
    assert "cobol" in session.refused("new", "-l", "cobol", code=127)
    assert "has no sessions" in session.refused("new", "-l", "perl")
    assert "--expire wants" in session.refused("new", "--expire", "soon")
    assert "memory" in session.refused("new", "--memory", "1")
    assert session("new", "--json").json()["state"] == "idle"
    session("rm", "last")


def test_rm_goes_on(session):
    with session.new() as one, session.new() as two:
        done = session("rm", one, "se_none", two, code=125)
        assert "no session 'se_none'" in done.err and session.listed() == []
    with session.new() as one:
        assert session("rm", "--json", one).json() == {"id": one, "ended": True}


def test_ps_and_cleanup(session, atoll):
    with session.new("--name", "shown") as id:
        assert [s["id"] for s in session.atoll.run(["ps", "--json"]).json()["sessions"]] == [id]
        assert re.search(rf"(?m)^{id} +shown +idle +python", session.atoll.run(["ps"]).out)
        session("exec", id, "1")
        done = session.atoll.run(["cleanup"])
        assert re.fullmatch(r"0 ended, \d+ removed, 1 session ended\n", done.out), done
        assert session.listed() == []
        assert session.atoll.run(["cleanup", "--json"]).json()["sessions"] == 0


def test_metrics(session):
    def counts():
        text = session.web.get("/metrics").body.decode()
        return [int(float(re.search(rf"(?m)^{name} (\S+)$", text)[1]))
                for name in ("atoll_sessions", "atoll_sessions_created_total", "atoll_session_executions_total")]

    _, created, executions = counts()
    with session.new() as id:
        session("exec", id, "1")
        assert counts() == [1, created + 1, executions + 1]
    assert counts() == [0, created + 1, executions + 1]


@quick
def test_without_a_daemon(atoll, work):
    for words in (["new"], ["list"], ["show", "se_x"], ["exec", "se_x", "1"], ["repl"], ["attach", "se_x"], ["interrupt", "se_x"],
                  ["reset", "se_x"], ["logs", "se_x"], ["files", "se_x"], ["put", "se_x", "/dev/null"], ["get", "se_x", "f"],
                  ["rm", "se_x"], ["fork", "se_x"]):
        done = atoll.run(["session", *words], env={"ATOLL_URL": str(work / "no.sock")})
        assert done.returncode == 125 and done.out == "", done
        assert done.err.count("\n") == 1 and "start one with `atoll serve`" in done.err, done


def test_wrong_words(session):
    assert "needs a command" in session.atoll.run(["session"]).err
    assert "did you mean 'exec'?" in session.atoll.run(["session", "exce"]).err
    for words in (["show"], ["reset", "a", "b"], ["logs"], ["rm"]):
        assert "`atoll session list` shows ids" in session.refused(*words)
    assert "takes an ID" in session.refused("attach")
    assert "leave out ID" in session.refused("repl", "se_x", "-l", "python")


# ----------------------------------------------------------------------------------------------- REPL


class Repl:
    """`atoll session repl` on a terminal."""

    def __init__(self, session, *words, env=None):
        self.master, slave = pty.openpty()
        self.popen = session.atoll.popen(["session", *words], stdin=slave, stdout=slave, stderr=slave, env=env,
                                         preexec_fn=lambda: __import__("fcntl").ioctl(0, __import__("termios").TIOCSCTTY, 0))
        os.close(slave)
        self.seen = ""

    def until(self, text, timeout=20):
        """What is shown up to the text, with it; the rest stays for later."""
        end = time.monotonic() + timeout
        while text not in self.seen:
            assert select.select([self.master], [], [], max(end - time.monotonic(), 0))[0], (text, self.seen)
            try:
                self.seen += os.read(self.master, 4096).decode().replace("\r\n", "\n")
            except OSError:
                raise AssertionError(f"no {text!r} before the end: {self.seen!r}") from None
        shown, found, self.seen = self.seen.partition(text)
        return shown + found

    def type(self, text):
        os.write(self.master, text.encode())

    def ask(self, line, prompt=">>> "):
        """Types a line; what is shown before the next prompt, without the echo."""
        self.type(line + "\n")
        return self.until(prompt).removeprefix(line + "\n").removesuffix(prompt)

    def end(self):
        code = self.popen.wait(20)
        os.close(self.master)
        return code


@quick
def test_repl(session):
    repl = Repl(session, "repl")
    greeting = repl.until(">>> ")
    assert greeting.startswith("python session se_") and "^D ends it" in greeting
    [only] = session.listed()
    assert repl.ask("x = 6 * 7") == "" and repl.ask("x") == "42\n" and repl.ask("'a'") == "'a'\n"
    assert repl.ask("print('out')") == "out\n" and repl.ask("") == ""
    assert repl.ask("def f(n):", "... ") == "" and repl.ask("    return n + 1", "... ") == "" and repl.ask("") == ""
    assert repl.ask("f(1)") == "2\n"
    assert repl.ask("[1,", "... ") == "" and repl.ask("2]") == "[1, 2]\n"
    assert "ZeroDivisionError: division by zero\n" in repl.ask("1/0")
    assert repl.ask("x") == "42\n"
    repl.type("\x04")
    assert repl.end() == 0 and only["id"] not in [s["id"] for s in session.listed()]


@quick
def test_repl_is_interrupted(session):
    repl = Repl(session, "repl")
    repl.until(">>> ")
    repl.ask("x = 5")
    repl.type("while True: print('loop') or __import__('time').sleep(60)\n")
    repl.until("\nloop\n")
    repl.type("\x03")
    assert "KeyboardInterrupt\n" in repl.until(">>> ")
    assert repl.ask("x") == "5\n"
    repl.type("if x:\n")  # ^C at the prompt drops what was typed
    repl.until("... ")
    repl.type("\x03")
    repl.until(">>> ")
    assert repl.ask("x") == "5\n"
    repl.type("\x04")
    assert repl.end() == 0


def test_repl_ends_with_exit(session):
    repl = Repl(session, "repl")
    repl.until(">>> ")
    assert repl.ask("if True:", "... ") == "" and repl.ask("    exit(3)", "... ") == "" and repl.ask("") == ""  # ends an execution
    assert [one["executions"] for one in session.listed()] == [1]
    assert repl.ask("") == ""
    assert [one["executions"] for one in session.listed()] == [1]
    repl.type("exit()\n")
    assert repl.end() == 0 and session.listed() == []


def test_repl_begins_a_line_after_an_interrupt(session):
    repl = Repl(session, "repl", "-l", "bash")
    repl.until("$ ")
    repl.type("echo on; sleep 60\n")
    repl.until("\non\n")
    repl.type("\x03")
    assert repl.until("$ ") == "^C\n$ "
    repl.type("\x04")
    assert repl.end() == 0


@quick
def test_repl_edits_lines(session):
    """On a terminal that can show it: keys change the line and bring back earlier ones; input() of the code asks."""
    repl = Repl(session, "repl", env={"TERM": "xterm"})
    repl.until(">>> ")
    repl.ask("x = 41")

    def result(keys):
        """What is printed for a line that is typed with these keys; the line is shown anew at each."""
        repl.type(keys + "\n")
        return repl.until("\n>>> ").split("\n", 1)[1].removesuffix("\n>>> ")

    assert result("y\x7fx +2\x1b[D1") == "53"
    assert result("\x1b[A\x1b[Dx\x1b[3~\x7f") == "42"  # the line before, changed
    assert result("'日x本'\x1b[D\x1b[D\x7f") == "'日本'"
    repl.type("name = input('who\\nare you? ')\n")
    repl.until("who\nare you? ")
    repl.type("Ann\x1b[Da\n")
    repl.until("\n>>> ")
    assert result("name") == "'Anan'"
    for key, error in (("\x04", "EOFError: EOF when reading a line"), ("\x03", "KeyboardInterrupt")):
        repl.type("print('on', end=''); input('e? ')\n")
        repl.until("one? ")
        repl.type(key)
        assert error in repl.until(">>> ")
    repl.type("def f():\n\treturn 7\n\nf()\n")  # typed ahead of the answers
    repl.until("\n7\n>>> ")
    repl.type("dropped\x03")
    repl.until("\n>>> ")
    assert result("x") == "41"
    repl.type("\x04")
    assert repl.end() == 0


def test_repl_in_a_session_that_stays(session):
    with session.new() as id:
        session("exec", id, "x = 1")
        repl = Repl(session, "attach", id)
        assert "leaves it running" in repl.until(">>> ") and repl.ask("x; y = 2; x") == "1\n"
        session("exec", id, "print('not shown there')")
        assert repl.ask("y") == "2\n"
        repl.type("\x04")
        assert repl.end() == 0 and session("exec", id, "y").out == "2\n"


def test_repl_ends_with_its_session(session):
    with session.new() as id:
        repl = Repl(session, "repl", id)
        repl.until(">>> ")
        session("rm", id)
        repl.until("atoll: the session has ended; start one with `atoll session new`\n")
        assert repl.end() == 125


def test_repl_leaves_nothing_when_it_is_killed(session):
    for number in (signal.SIGTERM, signal.SIGHUP):
        repl = Repl(session, "repl")
        repl.until(">>> ")
        repl.popen.send_signal(number)
        assert repl.end() == 128 + number and session.listed() == []
    repl = Repl(session, "repl", "--expire", "1s")
    repl.until(">>> ")
    repl.popen.kill()
    repl.end()
    wait_until(lambda: session.listed() == [])


def test_repl_reads_a_pipe(session):
    done = session("repl", input="x = 1\nfor i in range(2):\n    print(i)\n\nx + 1\nprint('end')")
    assert (done.out, done.err) == ("0\n1\n2\nend\n", "")
    assert session("repl", input="def f():\n    return 3\n\nf()\n1/0\n", code=1).out == "3\n"
    assert session("repl", input="").out == ""


@pytest.mark.parametrize("language, typed, printed", [
    ("bash", "x=5\necho $x\nfor i in 1 2; do\n  echo $i\ndone\nf() {\n  echo $((x + $1))\n}\nf 1\ncat <<E\nif $x\nE\n", "5\n1\n2\n6\nif 5\n"),
    ("ruby", "x = 6 * 7\ndef f(a)\n  a + 1\nend\nf(x)\n[1, nil]\nputs 'hi'\n", "42\n:f\n43\n[1, nil]\nhi\n"),
    ("javascript", "let x = 6 * 7\nfunction f(a) {\n  return a + x\n}\nf(1)\n's'\nawait Promise.resolve([1])\nconsole.log('hi')\n",
     "43\n's'\n[ 1 ]\nhi\n")], ids=["bash", "ruby", "javascript"])
def test_repl_of_other_languages(session, language, typed, printed):
    done = session("repl", "-l", language, input=typed)
    assert (done.out, done.err) == (printed, "")


def test_large_code_and_output(session):
    with session.new() as id:
        done = session("exec", id, "-", input=f"x = '{'y' * 900_000}'\nprint(x)\nlen(x)")
        assert done.out == "y" * 900_000 + "\n900000\n"
        done = session("repl", id, input=f"x = '{'z' * 200_000}'\nprint(x)\n")
        assert done.out == "z" * 200_000 + "\n"
        assert json.loads(session("exec", id, "--json", "len(x)").out)["value"] == 200_000
