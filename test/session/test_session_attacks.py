# SPDX-License-Identifier: Apache-2.0
"""Hostile code in a session: on its channel, with processes that stay, with files that move (F09, F21, M07, A16).

Each attack may spoil its own session. The front answers /healthz meanwhile, and another session keeps its state and its result.
"""
import os
import time

import pytest

from live import HEALTH_MOST, Asking, Health, Session
from program import MODES
from resident import wait_until

quick = pytest.mark.quick
once = pytest.mark.modes(MODES[0])  # the front is the same program in both modes

# The channel, as code finds it; say() writes a whole line.
CHANNEL = """
import json, os, socket, stat, threading, time
def is_socket(fd):
    try: return stat.S_ISSOCK(os.fstat(fd).st_mode)
    except OSError: return False
fd = [fd for fd in range(3, 1024) if is_socket(fd)][-1]
def say(text, fd=fd):
    data = memoryview(text.encode('utf-8', 'surrogateescape') + b'\\n')
    while data:
        data = data[os.write(fd, data):]
"""


@pytest.fixture(scope="module")
def bystander(served):
    with Session(served.web) as session:
        session.run("mark = 'mine'; open('own', 'w').write('own')")
        yield session
        assert session.value("[mark, open('own').read()]") == ["mine", "own"]
        assert session.logs()["stdout"] == ""


def attack(web, bystander, code, timeout=2, **more):
    """The result of code with CHANNEL before it, in a session of its own, while others are looked after; and the session's next value."""
    with Session(web, **more) as session, Health(web) as health:
        result = session.run(CHANNEL + code, limits={"timeout": timeout})
        assert bystander.value("mark") == "mine"
        following = session.run("6 * 7", limits={"timeout": 5})
        assert following["status"] == "success" and following["value"] == 42, following
        assert following["outputs"] == [] and following.get("host_calls", []) == [], following
    assert health.count > 0 and (health.worst < HEALTH_MOST), f"{health.worst:.3f} s of {health.count}"
    return result


# ------------------------------------------------------------------------------------- the channel


NOTHING = [
    "nonsense", "", "null", "[]", "{}", '{"op":7}', '{"op":"ready"}', '{"op":"done"}', '{"op":"done","n":1000000}', '{"op":"done","n":-1}',
    '{"op":"done","n":1e300}', '{"op":"file","n":99,"entries":[]}', '{"op":"output","n":55,"data":{}}', '{"op":"call","call":1,"name":"none"}',
    '{"op":"call"}', '{"op":"call","call":"x","name":7,"args":{}}', '{"op":"return","call":1,"result":1}', '{"op":"run","n":9,"code":"1"}',
    "[" * 100000, '{"op":"done","n":77,"value":' + "[" * 70 + "]" * 70 + "}", '{"op":"\\u0000"}', '{"op":"done","op":"done","n":1000}', "\udcff\udcfe"]


@quick
@pytest.mark.undisturbed
@once
def test_lines_that_mean_nothing(web, bystander):
    result = attack(web, bystander, f"for line in {NOTHING!r}:\n    say(line)\n    say(line * 3)\ntime.sleep(.05)\n'mine'")
    assert (result["status"], result["value"], result["session"]["state"]) == ("success", "mine", "kept"), {**result["error"], **result["cause"]}
    assert "host_calls" not in result and result["outputs"] == [], result


@pytest.mark.undisturbed
@once
def test_a_forged_end_is_about_itself(web, bystander):
    """An early `done` ends the execution; the state stays what it is, and the real `done` that follows ends no other execution."""
    forged = {"value": "forged", "value_type": "x" * 100, "exit_code": 9999, "error": {"type": 5, "message": ["x"]}, "duration": 1, "usage": {}}
    result = attack(web, bystander, "say(json.dumps({'op': 'done', 'n': 1, **%r}))\ntime.sleep(.3)\n'real'" % forged)
    assert (result["value"], result["exit_code"], result["session"]["state"]) == ("forged", 255, "kept"), result
    assert result["duration"] < 0.3 and result["error"]["type"] is None, result


@once
def test_forged_ends_of_later_executions(web):
    """A line that waits for the number of the next execution is told before that one begins."""
    with Session(web) as session:
        session.run(CHANNEL + "for n in range(2, 60): say(json.dumps({'op': 'done', 'n': n, 'value': 'forged'}))")
        assert session.value("'real'") == "real"
        session.run("def late():\n    for n in range(1, 200):\n        time.sleep(.002)\n        say(json.dumps({'op': 'done', 'n': n, 'value': 'forged'}))\n"
                    "threading.Thread(target=late, daemon=True).start()")
        for _ in range(5):  # its own thread speaks for it: what it says is of this session
            assert session.run("'real'")["session"]["state"] == "kept"


@once
def test_forged_calls_and_outputs(web, bystander):
    lines = ("for i in range(3000): say(json.dumps({'op': 'call', 'call': i % 7, 'name': 'f', 'args': [1]}))\n"
             "for i in range(3000): say(json.dumps({'op': 'output', 'n': 1, 'data': {'a/b': i}}))\n'end'")
    result = attack(web, bystander, lines, host_functions=["f"])
    assert len(result["host_calls"]) == 100 and len(result["outputs"]) == 100, (result["status"], len(result["host_calls"]))


@pytest.mark.undisturbed
@pytest.mark.parametrize("code, state", [
    ("os.close(fd); time.sleep(60)", "lost"),
    ("socket.socket(fileno=fd).shutdown(2); time.sleep(60)", "lost"),
    ("os.dup2(os.open('/dev/null', 2), fd); time.sleep(60)", "lost"),
    # Nothing but newlines, short lines, one endless line, lines of 60 MB.
    ("while True: os.write(fd, b'\\n' * 65536)", "lost"),
    ("while True: os.write(fd, b'{}\\n' * 20000)", "lost"),
    ("while True: os.write(fd, b'{\"op\":\"call\",\"call\":1,\"name\":\"f\"}\\n' * 2000)", "any"),
    ("while True: os.write(fd, b'x' * 65536)", "lost"),
    ("for _ in range(2): say('{\"op\":\"output\",\"n\":1,\"data\":{\"a/b\":\"' + 'x' * (30 << 20) + '\"}}')\ntime.sleep(60)", "any"),
    ("say('[' + '1,' * (20 << 20) + '1]')\ntime.sleep(60)", "any"),
    ("say('x' * (60 << 20))\ntime.sleep(60)", "lost"),
    ("say('[' * (30 << 20))\ntime.sleep(60)", "any"),
])
@once
def test_a_channel_that_is_broken_or_flooded(web, bystander, code, state):
    result = attack(web, bystander, code, timeout=0.7, limits={"memory": "1g"})
    assert result["status"] in ("timeout", "error"), result
    assert state in ("any", result["session"]["state"]), result


def test_descriptors_that_are_passed(web, bystander, served):
    code = ("s = socket.socket(fileno=os.dup(fd))\nfor _ in range(200):\n    f = os.open('/dev/null', 0)\n"
            "    socket.send_fds(s, [b'{}\\n'], [f, 0, 1, 2])\n    os.close(f)\n'end'")
    front = served.daemon.child("front")
    before = len(os.listdir(f"/proc/{front}/fd"))
    assert attack(web, bystander, code)["value"] == "end"
    wait_until(lambda: len(os.listdir(f"/proc/{front}/fd")) <= before, why="the front keeps descriptors")


def test_processes_that_speak(web, bystander):
    """Children of the code, also after it has ended, are not heard."""
    code = ("keep = os.dup(fd)\nif os.fork() == 0:\n    for n in range(1, 400):\n        say(json.dumps({'op': 'done', 'n': n % 9, 'value': 'child'}), keep)\n"
            "        time.sleep(.001)\n    os._exit(0)\ntime.sleep(.1)\n'parent'")
    assert attack(web, bystander, code)["value"] == "parent"
    # One that is executed with the channel as its descriptor 1.
    code = ("import subprocess\nsubprocess.run(['/bin/sh', '-c', 'for n in 1 2 3; do echo \\'{\"op\":\"done\",\"n\":\\'$n\\',\"value\":\"sh\"}\\'; done'], stdout=fd)\n'parent'")
    assert attack(web, bystander, code)["value"] == "parent"


@once
def test_code_that_reads_the_channel(web, bystander):
    """It takes the lines of its own session, which is stuck then, and ends at its timeouts."""
    with Session(web) as session:
        session.run(CHANNEL + "def steal():\n    while True:\n        try: os.read(fd, 65536)\n        except OSError: break\n"
                    "for _ in range(4): threading.Thread(target=steal, daemon=True).start()")
        for _ in range(3):
            result = session.run("'heard'", limits={"timeout": 0.3})
            if result["session"]["state"] == "lost":
                break
        assert session.run("6 * 7", limits={"timeout": 5})["session"]["id"]
    assert bystander.value("mark") == "mine"


# ------------------------------------------------------------------------------------ what stays behind


@once
def test_output_after_the_end(session_of, web):
    session = session_of()
    session.run("import threading, time, os\ndef late():\n    time.sleep(.15)\n    os.write(1, b'late thread\\n')\nthreading.Thread(target=late).start()\n"
                "if os.fork() == 0:\n    time.sleep(.15); os.write(2, b'late process\\n'); os._exit(0)")
    result = session.run("1")
    assert (result["stdout"], result["stderr"]) == ("", ""), result
    wait_until(lambda: "late thread" in session.logs()["stdout"] and "late process" in session.logs()["stderr"], why="it is not in the log")
    assert session.value("5") == 5


@once
def test_processes_that_fill_the_pipes(session_of, web):
    """A process that prints without end neither stops the front nor later executions for longer than their limits."""
    session = session_of()
    session.run("import os\nif os.fork() == 0:\n    while True: os.write(1, b'y' * 65536)")
    with Health(web) as health:
        result = session.run("7", limits={"timeout": 3})
    assert result["value"] == 7 or result["cause"]["kind"] == "output", {**result, "stdout": ""}
    assert health.worst < HEALTH_MOST, health.worst
    session.reset()
    assert session.value("8") == 8


@pytest.fixture
def session_of(web):
    made = []

    def make(**body):
        made.append(Session(web, **body))
        return made[-1]
    yield make
    for session in made:
        web.delete(session.path)


@pytest.mark.parametrize("code", [
    "os.rename('/sandbox', '/tmp/x')", "shutil.rmtree('/sandbox', True); os.rmdir('/sandbox')", "os.remove('/dev/null')",
    "os.rename('/dev/null', '/dev/zero')", "os.symlink('/etc/passwd', '/dev/null2'); os.rename('/dev/null2', '/dev/null')",
    "os.rename('/tmp', '/sandbox/tmp')", "os.mkdir('/sandbox/dev'); os.rename('/sandbox/dev', '/dev')",
    "ctypes.CDLL(None).mount(b'/', b'/sandbox', None, 4096, None)", "os.symlink('/proc/self/root', '/sandbox/out')",
    "os.chdir('/'); [shutil.rmtree(p, True) for p in ('/sandbox', '/tmp', '/dev')]", "os.chmod('/sandbox', 0); os.chmod('/tmp', 0)",
    "open('/sandbox/.atoll-session.py', 'w').write('raise SystemExit(9)')"])
def test_f09_places_that_are_replaced(session_of, code):
    """F09: a second execution, files and a reset after /sandbox, /tmp or /dev/null were replaced as far as that is possible."""
    session = session_of()
    session.run(f"import ctypes, os, shutil\n{code}")
    assert session.value("import os; os.system('true') == 0 and 6 * 7") == 42
    answers = [session.put("a", b"1"), session.get("a"), session.web.get(f"{session.path}/files"), session.get("out/etc/passwd")]
    assert all(answer.status in (200, 204, 400, 404) for answer in answers), answers
    session.reset()
    assert session.value("import os; [os.getcwd(), os.listdir(), open('/dev/null').read()]") == ["/sandbox", [], ""]


def test_f21_files_that_change_while_they_are_read(session_of):
    """F21: lists and contents are of some moment, or an error; the front opens none of these files."""
    session = session_of()
    session.run("import os\nos.makedirs('d/e')\nif os.fork() == 0:\n    end = __import__('time').monotonic() + 4\n"
                "    n = 0\n    while __import__('time').monotonic() < end:\n        n += 1\n        try:\n"
                "            open('t', 'w').write('A' * 100000); os.rename('t', 'f')\n"
                "            os.unlink('f'); os.symlink('/proc/self/environ', 'f'); os.unlink('f'); os.mkfifo('f'); os.unlink('f'); os.mkdir('f'); os.rmdir('f')\n"
                "            os.rename('d', 'g'); os.symlink('/etc', 'd'); os.unlink('d'); os.rename('g', 'd')\n        except OSError: pass\n    os._exit(0)")
    end, seen = time.monotonic() + 0.8, set()
    while time.monotonic() < end:
        answer = session.get("f")
        assert answer.status in (200, 400, 404), answer
        seen.add(answer.status)
        assert answer.status != 200 or set(answer.body) <= {65} or b"=" in answer.body, answer
        for answer in (session.get("d/passwd"), session.web.get(f"{session.path}/files"), session.put("d/e/x", b"1")):
            assert answer.status in (200, 204, 400, 404), answer
    assert session.value("1") == 1
    assert len(seen) > 1, seen


def test_m07_nothing_of_another_session(session_of, served):
    """M07: neither the files nor the processes nor the history of another session are in reach from inside."""
    one, two = session_of(), session_of()
    one.run("secret = 'c0ffee-of-one'; open('/sandbox/s', 'w').write(secret); open('/tmp/s', 'w').write(secret); import time, os\n"
            "if os.fork() == 0: time.sleep(30)")
    found = two.value("""
import os, glob
found = [os.listdir('/sandbox'), glob.glob('/tmp/s'), glob.glob('/dev/shm/*')]
found.append([pid for pid in os.listdir('/proc') if pid.isdigit() and b'c0ffee' in open(f'/proc/{pid}/environ', 'rb').read()])
found.append(len([pid for pid in os.listdir('/proc') if pid.isdigit()]) < 4)
found.append([p for p in ('/var/lib/atoll', %r, '/run/atoll') if os.path.exists(p)])
found""" % str(served.daemon.state))
    assert found == [[], [], [], [], True, []], found
    assert two.logs()["stdout"] == "" and two.files() == {}


@once
def test_a16_many_requests_for_one_session(session_of, web):
    """A16: two requests that delete and execute the same session; none is left without an answer."""
    for _ in range(8):
        session = Session(web)
        asked = [session.begin("1"), Asking(lambda: web.delete(session.path)), session.begin("2"), Asking(lambda: web.delete(session.path))]
        statuses = [one.result().status for one in asked]
        assert all(status in (200, 204, 404) for status in statuses) and statuses.count(204) >= 1, statuses


def test_a_fork_bomb_stays_inside(session_of, bystander):
    session = session_of(limits={"pids": 30})
    result = session.run("import os, time\nwhile True:\n    try: os.fork()\n    except OSError: time.sleep(.01)", limits={"timeout": 0.5})
    assert result["status"] == "timeout", result
    assert bystander.value("mark") == "mine"
    session.reset()
    assert session.value("1") == 1
