# SPDX-License-Identifier: Apache-2.0
"""run/executor.h: many runs at once in one process, one thread and over one link (test/service-drive.c is that process)."""
import hashlib
import json
import os
import shutil
import signal
import threading
import time
from collections import defaultdict

import pytest

import oracle
from oracle import parents
from program import BINARY
from resident import Pool, end_pools, sweep, wait_until

DRIVE = BINARY.parent / "test" / "service-drive"
NO_ERROR, INTERNAL, INPUT, POLICY, RUNTIME = range(5)
LOST = 16


class Drive:
    """The front, its events by key."""

    def __init__(self, atoll, program, pool=None, **env):
        self.popen = atoll.popen([str(pool.path)] if pool else [], program=program, env=env, stderr=None)
        self.events = defaultdict(list)
        self.changed = threading.Condition()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.popen.stdout:
            event = json.loads(line)
            with self.changed:
                self.events[event["key"]].append(event)
                self.changed.notify_all()

    def send(self, op, key, **more):
        self.write(op, key, **more)
        self.popen.stdin.flush()

    def write(self, op, key, **more):
        """Goes with the next that is sent: nothing happens between the two."""
        self.popen.stdin.write(json.dumps({"op": op, "key": key, **more}).encode() + b"\n")

    def start(self, key, request, **more):
        self.send("start", key, request=request, **more)

    def bash(self, key, code, limits=None, **more):
        self.start(key, {"language": "bash", "code": code, "limits": limits or {}}, **more)

    def names(self, key):
        return [e["event"] for e in self.events[key]]

    def all(self, key, name):
        return [e for e in self.events[key] if e["event"] == name]

    def wait(self, key, name="end", seconds=60, count=1):
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.all(key, name)) >= count, seconds), \
                (key, name, [str(e)[:300] for e in self.events[key]][-5:])
            return self.all(key, name)[count - 1]

    def result(self, key, seconds=60):
        return self.wait(key, "end", seconds)["result"]

    def text(self, key, stream="stdout"):
        return "".join(e["text"] for e in self.all(key, stream))

    def end(self, seconds=60):
        self.popen.stdin.close()
        assert self.popen.wait(seconds) == 0
        self.reader.join(25)
        self.popen.stdout.close()
        for key, events in self.events.items():
            ends = [e for e in events if e["event"] in ("end", "refused", "discarded", "answer", "too early")]
            assert key == "" or "state" in self.names(key) or len(ends) == 1, (key, self.names(key))
            assert not ends or ends[0]["event"] != "too early"
            assert not ends or ends[0] is events[-1], (key, self.names(key))

    def fds(self):
        return len(os.listdir(f"/proc/{self.popen.pid}/fd"))


@pytest.fixture(scope="session")
def program(stage):
    if not DRIVE.exists():
        pytest.fail(f"{DRIVE} is not built: run ./dev build", pytrace=False)
    place = stage.bin / DRIVE.name
    shutil.copy2(DRIVE, place)
    place.chmod(0o755)
    return place


@pytest.fixture
def start(work):
    pools = []

    def begin(atoll):
        for _ in range(400):
            try:
                pools.append(Pool(atoll, work / "run" / "pool.sock"))
                return pools[-1]
            except AssertionError:  # children of one that was killed hold its lock for a moment
                time.sleep(0.05)
        raise AssertionError("no pool can be started")

    yield begin
    if any(pool.popen.returncode == -signal.SIGKILL for pool in pools):
        time.sleep(1)  # what it had running dies now; groups are swept when they are empty
    end_pools(pools)


@pytest.fixture
def drives(atoll, program):
    begun = []

    def begin(pool=None, **env):
        begun.append(Drive(atoll, program, pool, **env))
        return begun[-1]

    yield begin
    for drive in begun:
        if drive.popen.poll() is None:
            drive.popen.kill()
            drive.popen.wait()


@pytest.fixture(params=["own", "pool"])
def drive(request, atoll, start, drives):
    return drives(start(atoll) if request.param == "pool" else None)


# ------------------------------------------------------------------------------------------- many


def scripts(n):
    """(request, what to expect) of n requests, all different."""
    for i in range(n):
        kind = i % 8
        if kind == 0:
            yield {"language": "bash", "code": f"echo out {i}; echo err {i} >&2"}, ("success", f"out {i}\n", 0)
        elif kind == 1:
            yield {"language": "python", "code": f"print({i} * 2)"}, ("success", f"{i * 2}\n", 0)
        elif kind == 2:
            yield {"language": "bash", "code": f"echo {i}; exit {i % 100 + 1}"}, ("error", f"{i}\n", i % 100 + 1)
        elif kind == 3:
            yield {"language": "perl", "code": f"print {i}; kill 9, $$"}, ("error", None, 137)
        elif kind == 4:
            yield {"language": "bash", "code": f"cat; echo {i}", "stdin": f"in {i} "}, ("success", f"in {i} {i}\n", 0)
        elif kind == 5:
            yield ({"stages": [{"name": "a", "code": f"echo {i} > f"}, {"name": "b", "code": "cat f; exit 3"}]},
                   ("error", f"{i}\n", 3))
        elif kind == 6:
            yield {"language": "lua", "code": f"print('x' .. {i})"}, ("success", f"x{i}\n", 0)
        else:
            yield ({"language": "bash", "code": f"echo {i}; sleep 30", "limits": {"timeout": 3}},
                   ("timeout", f"{i}\n", 124))


def check(result, expected):
    status, out, code = expected
    assert (result["status"], result["exit_code"]) == (status, code), result
    assert out is None or result["stdout"] == out, result


@pytest.mark.modes("root")
@pytest.mark.parametrize("drive", ["own"], indirect=True)
def test_two_hundred_at_once(drive):
    run_two_hundred(drive)


@pytest.mark.modes("rootless")
@pytest.mark.parametrize("drive", ["pool"], indirect=True)
def test_two_hundred_of_an_ordinary_user_at_once(drive):
    run_two_hundred(drive)


def run_two_hundred(drive):
    wanted = dict(enumerate(scripts(184)))
    source = f"#include <stdio.h>\nint main(void) {{ printf(\"hello %d\\n\", 5); return 5; }} /* {time.time_ns()} */\n"
    broken = "int main(void) { return nothing; }\n"
    for i, (request, _) in wanted.items():
        drive.start(f"r{i}", request, watch=i % 3 == 0, quiet=i % 2 == 0)
    for i in range(8):
        drive.start(f"c{i}", {"language": "c", "code": source}, watch=True)
        drive.start(f"e{i}", {"language": "c", "code": broken}, watch=True)
    for i in range(8):
        drive.bash(f"k{i}", f"echo {i}; sleep 60", watch=True)
    for i in range(8):
        drive.wait(f"k{i}", "stdout", 120)
        drive.send("kill", f"k{i}")
    for i, (request, expected) in wanted.items():
        check(drive.result(f"r{i}", 120), expected)
        if i % 3 == 0:
            assert drive.text(f"r{i}") == drive.result(f"r{i}")["stdout"]
    for i in range(8):
        check(drive.result(f"c{i}"), ("error", "hello 5\n", 5))
        check(drive.result(f"e{i}"), ("error", None, 1))
        assert "nothing" in drive.text(f"e{i}", "stderr")
        assert drive.result(f"k{i}")["status"] == "cancelled"
    # One of them compiled; those that waited took its product.
    assert sum(drive.result(f"c{i}")["cached_build"] for i in range(8)) == 7
    ids = {drive.result(key)["id"] for key in list(drive.events) if drive.all(key, "end")}
    assert len(ids) == 184 + 24
    drive.send("state", "s")
    state = drive.wait("s", "state")
    assert (state["ready"], state["runs"], state["fibers"]) == (True, 0, 0)
    assert drive.fds() < 30
    drive.end()


def test_tests_and_invoke(drive):
    drive.start("t", {"language": "python", "code": "print(int(input()) * 2)",
                      "tests": [{"stdin": "1", "expected": "2"}, {"stdin": "2", "expected": "5"}]}, watch=True)
    drive.start("i", {"language": "python", "code": "class A:\n    def f(self, x):\n        return x + 1\n",
                      "invoke": {"class": "A", "method": "f", "params": {"x": 41}}}, watch=True)
    assert [t["passed"] for t in drive.result("t")["tests"]] == [True, False]
    assert drive.result("i")["value"] == 42
    assert drive.names("t") == ["end"]
    drive.end()


# -------------------------------------------------------------------------------- streams and time


def test_events_come_in_order(drive):
    for key in "abc":
        drive.start(key, {"stages": [{"name": "one", "code": "echo 1"}, {"name": "two", "code": "sleep 0.1; echo 2; sleep 2.3"}]}, watch=True)
        result = drive.result(key)
        names = drive.names(key)
        assert [n for n in names if n != "usage"] == ["started", "stdout", "stage", "stdout", "stage", "end"]
        assert [e["name"] for e in drive.all(key, "stage")] == ["one", "two"]
        assert result["stdout"] == "1\n2\n"
        assert names.count("usage") <= result["duration"] + 1
        if "usage" in names:  # on a machine that stalls all may be over in one instant
            break
    assert "usage" in names
    drive.end()


def test_files(drive):
    code = "mkdir d; echo small > d/s; head -c 3000000 /dev/zero > large; echo no > skip"
    drive.start("f", {"language": "bash", "code": code, "collect": ["d/*", "large"]}, watch=True)
    result = drive.result("f")
    seen = {e["path"]: e for e in drive.all("f", "file")}
    assert set(seen) == {"d/s", "large"} == {f["path"] for f in result["files"]}
    assert seen["large"]["fiber"] and not seen["d/s"]["fiber"]
    assert seen["large"]["sha256"] == hashlib.sha256(bytes(3000000)).hexdigest()
    assert seen["d/s"]["first"] == "small\n"
    drive.end()


# ---------------------------------------------------------------------------------------- attached


def test_stdin_as_it_comes(drive):
    drive.bash("i", "while read -r line; do echo \"got $line\"; done; echo end", watch=True, interactive=True)
    drive.wait("i", "started")
    for word in ("one", "two"):
        drive.send("stdin", "i", text=word + "\n")
        wait_until(lambda: f"got {word}\n" in drive.text("i"))
    drive.send("close", "i")
    assert drive.result("i")["stdout"] == "got one\ngot two\nend\n"
    drive.end()


def test_stdin_is_bounded(drive):
    nap = f"25.{time.monotonic_ns() % 10**9:09d}"
    drive.bash("i", f"sleep {nap}; wc -c", watch=True, interactive=True)
    wait_until(lambda: oracle.who_runs(nap))
    drive.wait("i", "started")
    sent = 0
    for count in range(1, 20):
        drive.send("stdin", "i", text="x" * 65536)
        took = drive.wait("i", "took", count=count)["bytes"]
        sent += took
        if took < 65536:
            break
    assert took < 65536
    oracle.wake(nap)
    drive.wait("i", "room")
    drive.send("stdin", "i", text="last")
    assert drive.wait("i", "took", count=count + 1)["bytes"] == 4
    drive.send("close", "i")
    assert drive.result("i")["stdout"].strip() == str(sent + 4)
    drive.end()


def signalled(drive, key, signo):
    """How often it was sent until it was taken: output may come before the broker's word that it has begun."""
    for count in range(1, 500):
        drive.send("signal", key, signo=signo)
        if drive.wait(key, "signalled", count=count)["r"] == 0:
            return count
        time.sleep(0.05)
    raise AssertionError("it is never there to be signalled")


@pytest.mark.parametrize("language", ["bash", "python"])
def test_signals_reach_the_main_process(drive, language):
    code = {"bash": "trap 'echo usr1' USR1; trap 'echo int; exit 9' INT; echo ready; while :; do sleep 0.05; done",
            # Not by print(): a signal that comes while it writes finds its buffer in use.
            "python": "import os, signal, sys, time\n"
                      "signal.signal(signal.SIGUSR1, lambda *a: os.write(1, b'usr1\\n'))\n"
                      "signal.signal(signal.SIGINT, lambda *a: (os.write(1, b'int\\n'), sys.exit(9)))\n"
                      "os.write(1, b'ready\\n')\nwhile True:\n    time.sleep(0.05)\n"}[language]
    drive.start("s", {"language": language, "code": code}, watch=True)
    wait_until(lambda: "ready" in drive.text("s"), 25)
    drive.wait("s", "started")
    sent = signalled(drive, "s", signal.SIGUSR1)
    wait_until(lambda: "usr1" in drive.text("s"), 25)
    drive.send("signal", "s", signo=0)
    drive.send("signal", "s", signo=1000)
    assert drive.wait("s", "signalled", count=sent + 1)["r"] < 0 and drive.wait("s", "signalled", count=sent + 2)["r"] < 0
    drive.send("signal", "s", signo=signal.SIGINT)
    result = drive.result("s")
    assert result["exit_code"] == 9 and result["stdout"] == "ready\nusr1\nint\n"
    drive.end()


def test_a_signal_nobody_handles_is_an_end_of_the_programs_own(drive):
    drive.bash("s", "echo ready; sleep 60", watch=True)
    wait_until(lambda: "ready" in drive.text("s"), 25)
    drive.wait("s", "started")
    signalled(drive, "s", signal.SIGTERM)
    result = drive.result("s")
    assert (result["status"], result["signal"]) == ("error", signal.SIGTERM)
    drive.end()


def test_a_terminal_has_a_size(drive):
    code = "trap 'stty size' WINCH; stty size; for i in $(seq 500); do sleep 0.05; done"
    drive.start("t", {"language": "bash", "code": code, "tty": True}, watch=True, rows=33, columns=111)
    wait_until(lambda: "33 111" in drive.text("t"), 25)
    drive.send("resize", "t", rows=44, columns=122)
    wait_until(lambda: "44 122" in drive.text("t"), 25)
    drive.send("kill", "t")
    assert drive.result("t")["status"] == "cancelled"
    drive.end()


# ---------------------------------------------------------------------------------------- refusals


def test_refusals(drive):
    refused = {
        "language": {"language": "cobol", "code": "x"},
        "limits.memory": {"language": "bash", "code": "x", "limits": {"memory": "900g"}},
        "policy": {"language": "bash", "code": "x", "policy": "/etc/passwd"},
        "nonsense": {"language": "bash", "code": "x", "nonsense": 1},
        "image": {"language": "bash", "code": "x", "image": "/"},
    }
    for field, request in refused.items():
        drive.start(field, request)
    for field in refused:
        event = drive.wait(field, "refused")
        assert event["field"] == field and event["problem"], event
        assert "/work" not in event["problem"] and "tests-" not in event["problem"], event
    assert drive.wait("image", "refused")["code"] == POLICY
    assert drive.wait("nonsense", "refused")["code"] == INPUT
    drive.bash("d", "echo never", discard=True)
    drive.wait("d", "discarded")
    drive.end()


def test_policies_and_ceilings_of_the_service(drives, atoll, work):
    place = atoll.mkdir(work / "policies")
    (place / "mine.yaml").write_text("name: mine\nlimits:\n  ceilings:\n    timeout: 15\n")
    (place / "broken.yaml").write_text("name: [\n")
    drive = drives(SERVICE_POLICIES=str(place))
    for key, policy, seconds in (("a", "mine", 16), ("b", "default", 21), ("c", "mine", 15), ("d", "default", 20)):
        drive.start(key, {"language": "bash", "code": "echo x", "policy": policy, "limits": {"timeout": seconds}})
    assert drive.wait("a", "refused")["field"] == drive.wait("b", "refused")["field"] == "limits.timeout"
    assert drive.result("c")["policy"] == "mine" and drive.result("d")["policy"] == "default"
    drive.send("policies", "p")
    listed = {p["name"]: p for p in drive.wait("p", "answer")["tree"]}
    assert {"mine", "broken", "default"} <= set(listed)
    assert listed["mine"]["limits"]["ceilings"]["timeout"] == 15 and "error" in listed["broken"]
    drive.end()


def test_questions(drives):
    drive = drives()
    drive.send("ask", "l", what="languages")
    drive.send("ask", "d", what="doctor")
    drive.bash("r", "echo meanwhile")
    assert drive.result("r")["stdout"] == "meanwhile\n"
    names = {lang["name"] for lang in drive.wait("l", "answer", 120)["tree"]["languages"]}
    assert {"python", "c", "bash"} <= names
    assert "summary" in drive.wait("d", "answer", 120)["tree"]
    drive.end()


# ------------------------------------------------------------------------------------ brokers that go


def test_a_broker_killed_under_fifty_runs(atoll, start, drives):
    pool = start(atoll)
    drive = drives(pool)
    for i in range(50):
        drive.bash(f"k{i}", f"echo {i}; sleep 60", watch=True)
    for i in range(50):
        drive.wait(f"k{i}", "stdout", 120)
    pool.end(signal.SIGKILL)
    for i in range(50):
        end = drive.wait(f"k{i}")
        assert end["result"]["status"] == "interrupted" and end["result"]["stdout"] == f"{i}\n", end
        assert end["code"] == LOST
    drive.wait("", "lost")
    # Those that come meanwhile wait for the next one.
    for i in range(20):
        drive.bash(f"n{i}", f"echo {i}")
    drive.bash("x", "echo x")
    time.sleep(0.3)
    drive.send("kill", "x")
    assert drive.result("x")["status"] == "cancelled"
    start(atoll)
    for i in range(20):
        assert drive.result(f"n{i}")["stdout"] == f"{i}\n"
    assert len(drive.all("", "broker")) == 2
    assert drive.fds() < 30
    drive.end()


def test_a_pool_that_ends_hands_over(atoll, start, drives):
    pool = start(atoll)
    drive = drives(pool)
    for i in range(10):
        drive.bash(f"k{i}", f"echo {i}; sleep 60", watch=True)
    for i in range(10):
        drive.wait(f"k{i}", "stdout")
    pool.popen.send_signal(signal.SIGTERM)
    for i in range(20):
        drive.bash(f"n{i}", f"echo {i}")
    pool.end()
    start(atoll)
    for i in range(10):
        assert drive.result(f"k{i}")["status"] == "interrupted", drive.result(f"k{i}")
    for i in range(20):
        assert drive.result(f"n{i}")["stdout"] == f"{i}\n"
    drive.end()


def test_brokers_that_come_and_go_while_runs_do(atoll, start, drives):
    pool = start(atoll)
    drive = drives(pool)
    started = 0
    for turn in range(4):
        for i in range(30):
            drive.bash(f"r{turn}-{i}", f"sleep 0.0{i}; echo {turn} {i}")
            started += 1
        time.sleep(0.15 * turn)
        pool.end(signal.SIGKILL)
        pool = start(atoll)
    drive.bash("last", "echo last")
    assert drive.result("last")["stdout"] == "last\n"
    good = 0
    for turn in range(4):
        for i in range(30):
            result = drive.result(f"r{turn}-{i}")
            if result["status"] == "success":
                assert result["stdout"] == f"{turn} {i}\n"
                good += 1
            else:
                assert result["status"] == "interrupted", result
    assert good > 0
    drive.end()


def test_an_own_broker_is_replaced(atoll, drives):
    drive = drives()
    drive.bash("a", "echo a")
    drive.result("a")
    broker = [p for p, (parent, *_) in parents().items() if parent == drive.popen.pid]
    assert len(broker) == 1, broker
    drive.bash("k", "echo k; sleep 60", watch=True)
    drive.wait("k", "stdout")
    os.kill(broker[0], signal.SIGKILL)
    assert drive.result("k")["status"] == "interrupted"
    drive.bash("b", "echo b")
    assert drive.result("b")["stdout"] == "b\n"
    drive.end()
    sweep(atoll)


def test_a_front_that_dies_takes_its_runs_along(drive):
    for i in range(20):
        drive.bash(f"k{i}", "echo up; sleep 60", watch=True)
    for i in range(20):
        drive.wait(f"k{i}", "stdout")
    drive.popen.kill()
    drive.popen.wait()
