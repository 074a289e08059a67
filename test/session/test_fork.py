# SPDX-License-Identifier: Apache-2.0
"""POST /v1/sessions/{id}/fork: copies of a live Python session, each with a sandbox of its own."""
import os
import textwrap
import time

import pytest

from live import Asking, Copy, Session, ask_fork, fork
from program import Atoll
from resident import wait_until
from web import Served, problem, sse

quick = pytest.mark.quick
MiB = 1 << 20


def block(text):
    return textwrap.dedent(text)


@pytest.fixture
def session(web):
    with Session(web, forkable=True) as session:
        yield session
    for made in web.get("/v1/sessions").json()["sessions"]:
        web.delete(f"/v1/sessions/{made['id']}")


# ------------------------------------------------------------------------------------------- state


@quick
def test_state_is_copied(session):
    session.run(block("""
        import io
        def numbers():
            yield from range(10)
        half = numbers()
        taken = [next(half) for _ in range(4)]
        def counter():
            n = 5
            def count():
                nonlocal n
                n += 1
                return n
            return count
        count = counter()
        count()
        text = io.StringIO("first\\nsecond\\nthird")
        text.readline()
        class Point: pass
        p = Point(); p.self = p; p.x = 7
        """))
    first, second = fork(session, 2)
    for one in (first, second, session):
        assert one.value("next(half), next(half)") == {"$tuple": [4, 5]}
        assert one.value("count()") == 7
        assert one.value("text.tell(), text.readline()") == {"$tuple": [6, "second\n"]}
        assert one.value("p.self is p and type(p) is Point and p.x") == 7
    first.run("p.x = 'first'; count()")
    assert (second.value("p.x"), session.value("p.x"), session.value("count()")) == (7, 7, 8)


def test_numpy_views(session):
    session.run("import numpy; base = numpy.arange(12).reshape(3, 4); view = base[1:, ::2]")
    copy, = fork(session)
    copy.run("view[0, 0] = 99")
    assert copy.value("base[1].tolist(), view.base is base or view.base is base.base, view.tolist()") == \
        {"$tuple": [[99, 5, 6, 7], True, [[99, 6], [8, 10]]]}
    assert session.value("view.tolist()") == [[4, 6], [8, 10]]


def test_files_are_copied(session):
    session.run(block("""
        import os, tempfile
        os.makedirs("a/b"); open("a/b/c.txt", "w").write("c" * 3_000_000)
        os.symlink("a/b/c.txt", "link"); os.chmod("a/b", 0o750); os.utime("a/b/c.txt", (5, 5))
        opened = open("lines.txt", "w+"); opened.write("one\\ntwo\\n"); opened.flush(); opened.seek(4)
        unnamed = tempfile.TemporaryFile(); unnamed.write(b"nameless"); unnamed.flush()
        os.chdir("a")
        """))
    copy, = fork(session)
    assert copy.value("os.getcwd(), os.readlink('/sandbox/link'), oct(os.stat('b').st_mode), os.stat('b/c.txt').st_mtime, os.stat('b/c.txt').st_size") \
        == {"$tuple": ["/sandbox/a", "a/b/c.txt", "0o40750", 5.0, 3_000_000]}
    assert copy.value("opened.read()") == "two\n"
    copy.run("opened.write('three\\n'); opened.flush(); unnamed.seek(0); unnamed.write(b'N'); unnamed.flush(); open('b/new', 'w').write('1')")
    assert session.value("opened.read(), os.listdir('b'), unnamed.tell()") == {"$tuple": ["two\n", ["c.txt"], 8]}
    assert session.value("unnamed.seek(0) or unnamed.read()") == {"$bytes": "bmFtZWxlc3M="}
    assert copy.value("open('/sandbox/lines.txt').read()") == "one\ntwo\nthree\n"
    session.run("open('/sandbox/lines.txt', 'w').write('gone')")
    assert copy.value("open('/sandbox/lines.txt').read()") == "one\ntwo\nthree\n"


def test_a_library_closes_files_in_the_copy(session):
    """As matplotlib does with its fonts. The number is then another file's."""
    session.run("import os; kept = open('/etc/os-release'); open('own', 'w').write('own'); os.register_at_fork(after_in_child=kept.close)")
    copy, = fork(session)
    assert copy.value("kept.closed, open('/sandbox/own').read()") == {"$tuple": [True, "own"]}
    assert session.value("kept.closed") is False


def test_large_plans(web):
    """The worker encodes the plan of a session with large files, while its copies announce themselves."""
    with Session(web, files={"large": "x" * 600_000}) as session:
        for _ in range(4):
            assert [copy.value("len(open('large').read())") for copy in fork(session, 2)] == [600_000] * 2


def test_event_loop(session):
    session.run("import asyncio; lock = asyncio.Lock(); await lock.acquire()")
    copy, = fork(session)
    for one in (copy, session):
        assert one.value("lock.locked(), await asyncio.wait_for(asyncio.sleep(0.01, 'slept'), 5)") == {"$tuple": [True, "slept"]}


def test_random_numbers_differ(session):
    session.run("import random, ssl, tempfile, numpy, uuid; random.seed(1); numpy.random.seed(1); tempfile.mktemp(); ssl.RAND_bytes(4)")
    ask = "[random.random(), ssl.RAND_bytes(8).hex(), tempfile.mktemp(), float(numpy.random.random()), str(uuid.uuid4())]"
    seen = [one.value(ask) for one in [*fork(session, 2), session]]
    for column in zip(*seen):
        assert len(set(column)) == 3, column


def test_host_functions(session):
    def serve(one, code):
        with one.web.stream("POST", f"{one.path}/execute", {"code": code, "host_functions": ["double"]}) as response:
            for _, name, event in sse(response):
                data = event.get("data", event)
                if name == "host_call":
                    assert one.web.post(f"{one.path}/calls/{data['call_id']}", {"result": 2 * data["args"][0]}).status == 204
                elif name == "result":
                    return data
        raise AssertionError("no result")

    serve(session, "answer = double(4)")
    copy, = fork(session)
    assert serve(copy, "[answer, double(21)]")["value"] == [8, 42]
    assert serve(session, "[answer, double(5)]")["value"] == [8, 10]


# ---------------------------------------------------------------------------------------- isolation


@quick
def test_a_copy_is_a_session(session):
    copy, = fork(session)
    shown = copy.show()
    assert shown["parent"] == session.id and shown["forkable"] and shown["state"] == "idle" and shown["executions"] == 0
    assert shown["isolation"]["user"] == "shared with parent" and shown["isolation"]["tier"] == session.show()["isolation"]["tier"]
    result = copy.run("import os, sys; print('out'); print('err', file=sys.stderr); os.getpid()")
    assert (result["value"], result["stdout"], result["stderr"]) == (2, "out\n", "err\n")
    assert copy.run("raise ValueError('x')")["error"]["type"] == "ValueError"
    assert copy.web.get(f"{copy.path}/logs").json()["stdout"] == "out\n"
    assert session.web.get(f"{session.path}/logs").json()["stdout"] == ""
    again, = fork(copy)
    assert again.show()["parent"] == copy.id and again.value("os.getpid()") == 2
    assert copy.run("while True: pass", limits={"timeout": 0.5})["status"] == "timeout"
    assert copy.value("os.getpid()") == 2


def test_no_rights_are_left(session):
    copy, = fork(session)
    status = copy.value("{name: text.strip() for name, _, text in (line.partition(':') for line in open('/proc/self/status'))}")
    for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        assert int(status[name], 16) == 0, status
    assert (status["NoNewPrivs"], status["Seccomp"], status["Uid"].split()[0]) == ("1", "2", "1000")
    tried = copy.value(block("""
        import ctypes, os
        libc = ctypes.CDLL(None, use_errno=True)
        def call(name, *args):
            ctypes.set_errno(0)
            return [name, getattr(libc, name)(*args), ctypes.get_errno()]
        found = [call("setns", os.open(f"/proc/self/ns/{name}", 0), 0) for name in os.listdir("/proc/self/ns")]
        found += [call("unshare", flag) for flag in (0x10000000, 0x20000, 0x40000000)]
        found += [call("mount", b"none", b"/sandbox", b"tmpfs", 0, None), call("chroot", b"/sandbox"), call("ptrace", 0, 0, 0, 0),
                  call("sethostname", b"x", 1)]
        found"""))
    assert all(result == -1 and errno in (1, 38) for _, result, errno in tried), tried


def test_a_copy_sees_neither_parent_nor_siblings(session):
    session.run("import os, socket; r = open('/sandbox/secret', 'w').write('s')")
    first, second = fork(session, 2)
    for one in (first, second):
        assert one.value("[name for name in os.listdir('/proc') if name.isdigit()]") == ["2"]
        assert one.value(block("""
            s = socket.socket(); s.bind(("127.0.0.1", 4000)); s.listen()
            c = socket.create_connection(("127.0.0.1", 4000))
            c.getpeername()[1]""")) == 4000
        one.run("s.close(); c.close()")
    first.run("open('/sandbox/secret', 'w').write('first'); open('/tmp/mine', 'w')")
    assert second.value("open('/sandbox/secret').read(), os.path.exists('/tmp/mine')") == {"$tuple": ["s", False]}
    assert session.value("open('/sandbox/secret').read(), os.path.exists('/tmp/mine')") == {"$tuple": ["s", False]}


def test_read_only_places_stay_so(session):
    copy, = fork(session)
    assert copy.value(block("""
        import os
        found = []
        for path in ("/x", "/usr/x", "/etc/x", "/dev/x", "/proc/x", "/usr/lib/x"):
            try:
                open(path, "w"); found.append(path)
            except OSError as error:
                pass
        found""")) == []


def test_limits_are_its_own(web, mode):
    with Session(web, forkable=True, limits={"memory": 128 * MiB, "disk": 16 * MiB, "pids": 20}) as session:
        session.run("import os; data = bytearray(30 << 20)")
        first, second = fork(session, 2)
        result = first.run("more = b'x' * (400 << 20); len(more)")
        assert result["status"] != "success", result
        assert (second.value("len(data)"), session.value("len(data)")) == (30 << 20, 30 << 20)
        assert second.run("open('/sandbox/full', 'wb').write(bytes(20 << 20))")["error"]["type"] == "OSError"
        assert session.value("open('/sandbox/full', 'wb').write(bytes(10 << 20))") == 10 << 20
        many = block("""
            n = 0
            try:
                while True:
                    if os.fork() == 0:
                        import time; time.sleep(60); os._exit(0)
                    n += 1
            except OSError:
                pass
            n""")
        assert 15 <= second.value(many) <= 20
        one_more = "pid = os.fork() or os._exit(0); os.waitpid(pid, 0)[1]"
        if mode == "root":
            assert session.value(one_more) == 0
        else:  # without a cgroup, the processes of its copies count for the parent's limit, too
            assert session.run(one_more)["error"]["type"] == "BlockingIOError"
            second.web.delete(second.path)
            wait_until(lambda: session.run(one_more)["status"] == "success", 10, "the copy's processes count on")
        for one in (first, second):
            web.delete(one.path)


def test_memory_of_each_is_bounded(web):
    """Also that of several processes together, which no limit of a process holds; and the copies' memory does not count for their parent."""
    with Session(web, forkable=True, limits={"memory": 160 * MiB}) as session:
        session.run("import os, time; data = bytearray(b'x') * (50 << 20)")
        copies = fork(session, 3)
        for one in copies:
            assert one.value("more = bytearray(b'y') * (35 << 20); time.sleep(0.3); len(data)") == 50 << 20
        result = copies[0].run(block("""
            for _ in range(4):
                if os.fork() == 0:
                    mine = bytearray(b'z') * (50 << 20)
                    time.sleep(3)
                    os._exit(0)
            time.sleep(3)"""))
        # Where the kernel kills one of the processes, the program goes on.
        assert result["cause"]["kind"] == "memory" or "memory" in str(result["usage"]["limit_hits"]), result
        for one in (*copies[1:], session):
            assert one.value("len(data)") == 50 << 20
        for one in copies:
            web.delete(one.path)


def test_time_of_each_is_its_own(session):
    """A fork costs the next execution nothing, nor does the work of a copy, while it runs and when it has ended."""
    session.run("import time; data = bytearray(b'x') * (200 << 20)")
    copy, = fork(session)
    assert session.run("1")["cpu_time"] < 0.05
    assert copy.run("1")["cpu_time"] < 0.1
    spin = "end = time.process_time() + 1\nwhile time.process_time() < end: pass"
    assert 0.9 < copy.run(spin)["cpu_time"] < 2
    assert session.run("1")["cpu_time"] < 0.05
    with session.events("time.sleep(1.5)") as events:
        assert session.web.delete(copy.path).status == 204
        for name, data in events:
            if name == "result":
                assert data["cpu_time"] < 0.2, data


@quick
def test_kill_of_a_copy_leaves_the_others(session):
    session.run("x = 1")
    first, second = fork(session, 2)
    result = first.run("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert result["session"]["state"] == "lost" and result["status"] != "success", result
    assert (second.value("x"), session.value("x")) == (1, 1)
    assert first.run("x")["error"]["type"] == "NameError"  # a new interpreter
    assert session.web.delete(second.path).status == 204
    assert session.value("x") == 1


def test_copies_outlive_their_parent(session, web):
    session.run("x = [1]")
    first, second = fork(session, 2)
    assert web.post(f"{session.path}/reset").status == 200
    assert session.run("x")["error"]["type"] == "NameError"
    assert first.value("x.append(2) or x") == [1, 2]
    assert web.delete(session.path).status == 204
    assert (first.value("x"), second.value("x")) == ([1, 2], [1])
    deeper, = fork(first)
    assert web.delete(first.path).status == 204
    assert deeper.value("x") == [1, 2]


def test_nothing_of_a_closed_parent_runs_on(session, web):
    """Its sandbox stays for the copies, and every process in it but pid 1 is dead: also one that left the session's children behind, one
    that ignores what can be ignored, and those that fork all the time. A signal wakes none of them."""
    copy, = fork(session)
    word = f"spins-{os.urandom(8).hex()}"
    session.run(block(f"""
        import subprocess, sys, time
        subprocess.run(["/bin/sh", "-c", "setsid sh -c 'trap : TERM INT HUP; while :; do :; done' {word} >/dev/null 2>&1 </dev/null &"])
        subprocess.run(["/bin/sh", "-c", "setsid sh -c 'while :; do sh -c : {word}; done' {word} >/dev/null 2>&1 </dev/null &"])"""))

    def states():
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if word.encode() in open(f"/proc/{pid}/cmdline", "rb").read():
                    found.append(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0])
            except OSError:
                pass
        return found

    wait_until(lambda: len(states()) >= 2, 10, "they run")
    assert web.delete(session.path).status == 204
    wait_until(lambda: states() == [], 10, "they are dead")
    assert copy.value("1 + 1") == 2
    assert copy.run("import os; os.waitpid(os.fork() or os._exit(3), 0)")["status"] == "success"
    # A copy that is a parent is closed in the same way, and its own copy lives.
    deeper, = fork(copy)
    assert web.delete(copy.path).status == 204
    assert deeper.value("1 + 2") == 3
    assert web.delete(deeper.path).status == 204


# ----------------------------------------------------------------------------------------- refusals


def refused(session, words):
    detail = problem(ask_fork(session), 409, "conflict")
    assert words in detail, detail


@quick
def test_refusals(session, web):
    session.run("import threading; stop = threading.Event(); t = threading.Thread(target=stop.wait); t.start()")
    refused(session, "the session has 2 threads")
    session.run("stop.set(); t.join()")
    session.run("import subprocess; child = subprocess.Popen(['sleep', '60'])")
    refused(session, "child processes")
    session.run("child.kill(); child.wait()")
    session.run("import socket; s = socket.socket()")
    refused(session, "socket")
    session.run("s.close(); import mmap; m = mmap.mmap(-1, 4096)")
    refused(session, "shares memory")
    session.run("m.close(); import asyncio\nasync def f(): task = asyncio.create_task(asyncio.sleep(60))\nawait f()")
    refused(session, "unfinished asyncio")
    for count in (0, 33, -1):
        problem(ask_fork(session, count), 400, field="count")
    assert problem(web.post(f"{session.path}/fork", {"n": 2}), 400, field="n") == "n: a fork takes count, and no other key"
    for narrow in ({"forkable": False}, {"policy": "strict"}, {"read_only": True}):
        with Session(web, **narrow) as other:
            refused(other, "cannot be forked")
    with Session(web) as plain:
        assert web.get(f"/v1/sessions/{plain.id}").json()["forkable"]
    problem(web.post("/v1/sessions", {"language": "javascript", "forkable": True}), 400, field="forkable")
    problem(web.post("/v1/sessions", {"forkable": "yes"}), 400, field="forkable")
    problem(web.post("/v1/sessions/se_x/fork", {}), 404)


def test_fork_waits_for_its_turn(session):
    session.run("x = 1")
    with session.events("import time; time.sleep(1); x = 2"):
        copy, = fork(session)
        assert copy.value("x") == 2


def test_reset_and_delete_under_a_fork(session):
    """The copies end with their parent's sandbox; the answer says why, and is no failure of ours."""
    for end, status in ((session.reset, 409), (lambda: session.__exit__(), 404)):
        session.run("import sys, time; sys.modules['atoll_session'].Forker.fork = lambda *_: time.sleep(60)")
        waiting = Asking(lambda: ask_fork(session, 2))
        session.busy()
        end()
        problem(waiting.result(), status)


def quiet(served, seen):
    """What the program did is no failure of ours: the log has no error."""
    assert not [r for r in served.daemon.records[seen:] if r["level"] == "error"]


def test_copies_that_leave(session, served):
    """In a hook of the program, before they can be moved: that is the program's doing, and the session goes on."""
    seen = len(served.daemon.records)
    session.run("import os; leaves = True; os.register_at_fork(after_in_child=lambda: leaves and os._exit(3))")
    refused(session, "code that runs at a fork (os.register_at_fork) did that")
    session.run("leaves = False")
    assert fork(session)[0].value("1 + 1") == 2
    quiet(served, seen)


def test_the_depth_of_the_kernel(session, served):
    """Namespaces are nested at most 32 deep: the last copy of a copy says so, and lives."""
    seen, line = len(served.daemon.records), [session]
    while (answer := ask_fork(line[-1])).status == 201:
        line.append(Copy(session.web, answer.json()["sessions"][0]))
    assert "at most 32 user namespaces" in problem(answer, 409, "conflict"), answer
    began = time.monotonic()
    for _ in range(3):
        refused(line[-1], "at most 32 user namespaces")
    assert time.monotonic() - began < 20  # each process that was to be moved is ended, and not left to its alarm of 10 seconds
    assert 16 < len(line) <= 33 and line[-1].value("1 + 1") == 2
    for one in line[1:]:
        session.web.delete(one.path)
    quiet(served, seen)


def test_resets_race_with_forks(session, served, web):
    """Each fork has its copies, or says that the session ended; none is a failure of ours, and none waits long."""
    seen = len(served.daemon.records)
    for n in range(24):
        waiting = Asking(lambda: ask_fork(session, 2))
        if n % 2:
            wait_until(lambda: session.show()["state"] == "busy" or not waiting.is_alive(), 20, "the fork neither begins nor ends")
        assert web.post(f"{session.path}/reset").status == 200
        answer = waiting.result()
        if answer.status == 201:
            for made in answer.json()["sessions"]:
                web.delete(f"/v1/sessions/{made['id']}")
        else:
            problem(answer, 409, "conflict")
    quiet(served, seen)


@pytest.mark.modes("root")
def test_a_host_that_forbids(mode, stage):
    """Without a /proc in the sandbox, and without CAP_SYS_CHROOT, as in some containers: refused in words, and the session lives."""
    hosts = {"no /proc": ["unshare", "-m", "sh", "-c", 'mount --bind /dev/null /proc/uptime && exec "$@"', "sh"],
             "CAP_SYS_CHROOT": ["setpriv", "--bounding-set", "-sys_chroot", "--inh-caps", "-sys_chroot"]}
    for words, wrap in hosts.items():
        served = Served(Atoll(mode, stage), stage.scratch(mode, "forbids"), wrap=wrap)
        try:
            with Session(served.web) as session:
                answer = ask_fork(session)
                assert answer.status in (403, 409) and words in answer.json()["detail"], answer
                assert session.value("1 + 1") == 2
            quiet(served, 0)
        finally:
            served.end()


def test_a_lying_runner(session, served):
    """The code in a session is the runner's process: it can say that it forked, and fork what it wants."""
    session.run(block("""
        import os, sys
        runner = sys.modules["atoll_session"]
        runner.Forker.fork = lambda self, message: {"op": "file", "n": message["n"], "error": None}
        """))
    refused(session, "1 of 1 copies of the session ended before they were there")
    session.run(block("""
        def fork(self, message):
            channel = os.dup(self.session.channel.fd)
            pid = os.fork()
            if pid == 0:
                os.write(channel, b"x")
                while True:
                    pass
            os.close(channel)
            os.waitpid(pid, 0)
            return {"op": "file", "n": message["n"], "error": None}
        runner.Forker.fork = fork
        """))
    began = time.monotonic()
    problem(ask_fork(session), 409, "conflict")  # it never waits, and is killed
    assert time.monotonic() - began < 20
    assert session.value("1 + 1") == 2


# -------------------------------------------------------------------------------------------- whole


def test_keep_the_best(session, web):
    """Runs variants of a program from one state, and goes on with the best."""
    session.run("data = list(range(1000)); score = lambda k: abs(sum(data) // k - 777)")
    copies = fork(session, 4)
    scores = [copy.value(f"k = {k}; score(k)") for copy, k in zip(copies, (500, 600, 643, 700))]
    best = copies[scores.index(min(scores))]
    for copy in copies:
        if copy is not best:
            assert web.delete(copy.path).status == 204
    assert web.delete(session.path).status == 204
    assert best.value("k, len(data)") == {"$tuple": [643, 1000]}


def test_nothing_is_left(session, web, served):
    def processes():
        return len(served.daemon.processes())

    session.run("x = bytearray(10 << 20)")
    before = processes()
    for _ in range(5):
        for copy in fork(session, 3):
            assert copy.value("len(x)") == 10 << 20
            web.delete(copy.path)
    wait_until(lambda: processes() <= before + 2)
