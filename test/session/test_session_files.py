# SPDX-License-Identifier: Apache-2.0
"""Files of a session's work directory are the caller's: they outlive the interpreter, and what was lost with it is told until an
execution has said so."""
import pytest

from live import Session
from resident import wait_until

TREE = """
import os, time
os.makedirs("deep/er/empty")
open("data.bin", "wb").write(bytes(range(256)) * 4096)
open("deep/run.sh", "w").write("#!/bin/sh\\necho ran\\n")
os.chmod("deep/run.sh", 0o750)
os.utime("deep/run.sh", (1000000000, 1000000000))
os.symlink("../data.bin", "deep/link")
open("deep/er/sparse", "w").truncate(200 << 20)
os.mkdir("closed", 0o700); open("closed/secret", "w").write("x"); os.chmod("closed", 0o500); os.chmod("closed/secret", 0o400)
os.remove("given.txt")
mark = 1
"""
LOOK = """
import os
[sorted(os.listdir(".")), sorted(os.listdir("deep")), os.listdir("deep/er/empty"), oct(os.stat("deep/run.sh").st_mode & 0o777),
 os.stat("deep/run.sh").st_mtime, os.readlink("deep/link"), open("deep/link", "rb").read() == bytes(range(256)) * 4096,
 os.stat("deep/er/sparse").st_size, oct(os.stat("closed").st_mode & 0o777), oct(os.stat("closed/secret").st_mode & 0o777),
 os.stat("deep/run.sh").st_uid == os.getuid()]
"""
SEEN = [["closed", "data.bin", "deep"], ["er", "link", "run.sh"], [], "0o750", 1000000000.0, "../data.bin", True, 200 << 20, "0o500", "0o400", True]

DEATHS = {
    "exit": ("import os; os._exit(3)", {}, ("exited with 3",)),
    "signal": ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", {}, ("SIGKILL",)),
    # Without a cgroup the interpreter is refused memory instead of being killed.
    "memory": ("import os\nb = []\ntry:\n    while True: b.append(bytearray(os.urandom(1 << 20)))\nexcept MemoryError: os._exit(3)", {}, ("memory", "exited with 3")),
    "deaf": ("import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})\nwhile True: pass", {"limits": {"timeout": 0.2}}, ("200 ms",)),
}


@pytest.mark.parametrize("death", sorted(DEATHS))
def test_files_outlive_the_interpreter(served, death):
    code, more, why = DEATHS[death]
    limits = {"memory": "128m"} if death == "memory" else {}
    with Session(served.web, files={"given.txt": "given"}, limits=limits) as session:
        assert session.run(TREE)["status"] == "success"
        died = session.run(code, **more)
        assert died["session"]["state"] == "lost", died
        assert any(word in died["session"]["lost"] for word in why) and "variables are lost, the files of its work directory are kept" in died["session"]["lost"], died["session"]
        assert session.show()["lost"] == died["session"]["lost"]
        assert "data.bin" in session.files() and session.get("deep/run.sh").body == b"#!/bin/sh\necho ran\n"
        after = session.run(LOOK)
        assert after["value"] == SEEN, after
        assert after["session"] == died["session"] and after["warnings"] == [died["session"]["lost"]]
        told = session.run("'mark' in globals()")
        assert told["session"]["state"] == "kept" and told["session"]["lost"] is None and not told.get("warnings") and told["value"] is False
        assert session.show()["lost"] is None


@pytest.mark.parametrize("language, write, die, read", [
    ("javascript", "require('fs').writeFileSync('a.txt', 'kept')", "process.kill(process.pid, 'SIGKILL'); while (true);", "require('fs').readFileSync('a.txt', 'utf8')"),
    ("ruby", "File.write('a.txt', 'kept')", "exit!(3)", "File.read('a.txt')"),
    ("bash", "printf kept >a.txt", "kill -9 $$", "cat a.txt"),
])
def test_files_outlive_other_interpreters(served, language, write, die, read):
    with Session(served.web, language=language) as session:
        assert session.run(write)["status"] == "success"
        assert session.run(die)["session"]["state"] == "lost"
        after = session.run(read)
        assert "kept" in (after["stdout"], after["value"]) and after["session"]["state"] == "lost", after


def test_files_outlive_many_interpreters(served):
    """Also when nothing ran between two deaths, and when the interpreter dies while no code of a turn runs."""
    with Session(served.web) as session:
        session.put("n.txt", b"0")
        for count in range(1, 6):
            died = session.run(f"import os; n = int(open('n.txt').read()); open('n.txt', 'w').write(str(n + 1)); os._exit({count})")
            assert f"exited with {count}" in died["session"]["lost"], died
        assert session.get("n.txt").body == b"5"
        session.run("import os, threading, time\nthreading.Thread(target=lambda: (time.sleep(0.05), os._exit(9))).start()")
        wait_until(lambda: "exited with 9" in (session.show()["lost"] or ""), 20, "the interpreter does not end")
        assert session.run("open('n.txt').read()")["value"] == "5"


def test_a_reset_is_no_loss(served):
    with Session(served.web, files={"given.txt": "given"}) as session:
        session.run("open('own.txt', 'w').write('x'); import os; os._exit(3)")
        session.reset()
        assert sorted(session.files()) == ["given.txt"] and session.show()["lost"] is None
        assert session.run("1")["session"]["state"] == "kept"


def test_files_of_a_full_disk_are_kept(served):
    with Session(served.web, limits={"disk": "16m", "memory": "64m"}) as session:
        session.run("f = open('big', 'wb')\ntry:\n    while True: f.write(bytes(1 << 16))\nexcept OSError: pass")
        size = session.files()["big"]["size"]
        assert size > 15 << 20
        assert session.run("import os; os._exit(1)")["session"]["state"] == "lost"
        after = session.run("import os; os.stat('big').st_size")
        assert after["value"] == size or "No space left" in after["session"]["lost"], after


def test_special_files_are_named(served):
    with Session(served.web) as session:
        session.run("import os, socket\nos.mkfifo('pipe'); s = socket.socket(socket.AF_UNIX); s.bind('sock'); open('file', 'w').write('x')")
        session.run("import os; os._exit(1)")
        after = session.run("import os; sorted(os.listdir('.'))")
        assert after["value"] == ["file"] and "2 pipes, sockets or devices" in after["session"]["lost"], after
