# SPDX-License-Identifier: Apache-2.0
"""Attacks of a hostile tenant that go beyond the catalogue of test/security/cases.md, each one tried against the product.

Probes are benign: what they would damage is looked at, and put back where it was touched.
"""
import json
import os
import signal
import subprocess
import sys
import time

import pytest

import oracle
from probe import probe

DEVICES = ["null", "zero", "full", "random", "urandom"]
HOST_INOTIFY = "import ctypes; raise SystemExit(ctypes.CDLL(None).inotify_init1(0) < 0)"


def finish(popen):
    """Lets a program that waits for a line go on; what it still said."""
    popen.stdin.write(b"\n")
    popen.stdin.close()
    popen.stdin = None
    return popen.communicate(timeout=25)[0]


# ------------------------------------------------------------------------------- things of the host


@pytest.fixture
def devices():
    """Owner and mode of the host's device nodes; they are put right again if a test finds them changed."""
    def look():
        return {name: (s.st_uid, s.st_gid, s.st_mode) for name in DEVICES for s in [os.stat(f"/dev/{name}")]}

    before = look()
    yield look
    for name, (uid, gid, mode) in before.items():
        if os.geteuid() == 0 and look()[name] != (uid, gid, mode):
            os.chown(f"/dev/{name}", uid, gid)
            os.chmod(f"/dev/{name}", mode & 0o7777)


def test_host_devices_keep_owner_and_mode(atoll, devices):
    """A stage's standard input is the sandbox's own null device, which it cannot change, or rootless a file of the run's own."""
    before = devices()
    code = "import os; os.fchmod(0, 0o600)"
    result = atoll.result(["--stage", "a=true", "--stage", f"b=stat -L -c %u /dev/null; python3 -c '{code}'"])
    assert devices() == before
    assert result["stdout"].strip() != "1000" and result["exit_code"] == (0 if atoll.rootless else 1), result
    built = atoll.result(["-l", "c", "-c", f"int main(void) {{ return 0; }} /* {time.time_ns()} */"])
    assert built["status"] == "success", built
    assert devices() == before


def test_device_nodes_cannot_be_changed(atoll, devices):
    before = devices()
    seen = probe(atoll, f"say([attempt(os.chmod, '/dev/' + n, 0o666) for n in {DEVICES!r}]"
                        f" + [attempt(os.utime, '/dev/' + n) for n in {DEVICES!r}])")
    assert "ok" not in seen, seen
    assert devices() == before


@pytest.mark.modes("root")
def test_devices_are_no_channel(atoll):
    """Locks and watches on device nodes: neither another sandbox nor the host may be felt through them."""
    holder = f"""
import ctypes, fcntl, os, sys
libc = ctypes.CDLL(None)
watch = libc.inotify_init1(os.O_NONBLOCK)
held = []
for name in {DEVICES!r}:
    held.append(os.open('/dev/' + name, os.O_RDONLY))
    fcntl.flock(held[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
    libc.inotify_add_watch(watch, ('/dev/' + name).encode(), 0xfff)
print('ready', flush=True)
os.read(0, 1)
try:
    print('events', len(os.read(watch, 65536)))
except OSError:
    print('quiet')
"""
    popen = atoll.popen(["run", "-l", "python", "-c", holder])
    assert popen.stdout.readline() == b"ready\n", popen.stderr.read()
    felt = probe(atoll, f"import fcntl\nsay([attempt(fcntl.flock, os.open('/dev/' + n, 0), 6) for n in {DEVICES!r}])")
    assert finish(popen) == b"quiet\n"
    assert felt == ["ok"] * len(DEVICES)


@pytest.mark.modes("root")
def test_inotify_of_host_and_neighbours_stays_usable(atoll):
    """The kernel counts inotify instances of a sandbox against the user who made its user namespace, too."""
    hog = """
import ctypes, os
libc = ctypes.CDLL(None)
while libc.inotify_init1(0) >= 0:
    pass
print('full', flush=True)
os.read(0, 1)
"""
    popen = atoll.popen(["run", "-l", "python", "-c", hog])
    assert popen.stdout.readline() == b"full\n", popen.stderr.read()
    host = subprocess.run(["/usr/bin/python3", "-c", HOST_INOTIFY], check=False).returncode
    neighbour = probe(atoll, "say(libc.inotify_init1(0) >= 0)")
    finish(popen)
    assert host == 0, "the host's root cannot make an inotify instance"
    assert neighbour, "another sandbox cannot make an inotify instance"


@pytest.mark.cold("nothing runs")
def test_request_does_not_choose_host_paths_through_proc(atoll, work):
    """An image below /proc/self/root is the host itself."""
    body = work / "request.json"
    body.write_text(json.dumps({"language": "bash", "code": "cat /etc/passwd", "image": "/proc/self/root"}))
    body.chmod(0o644)
    result = atoll.result(["--request", str(body)])
    assert result["status"] != "success" and "daemon" not in result["stdout"], result


@pytest.mark.cold("nothing runs")
def test_errors_do_not_quote_files_named_by_a_request(atoll, work):
    secret = work / "secret"
    secret.write_text("hunter2:canary\n")
    body = work / "request.json"
    body.write_text(json.dumps({"language": "bash", "code": "true", "policy": str(secret)}))
    done = atoll.run(["run", "--json", "--request", str(body)])
    assert done.returncode != 0
    assert "hunter2" not in done.out + done.err, done


# ------------------------------------------------------------------------------------ life and death


def test_init_cannot_be_slowed_down(atoll):
    """pid 1 has the program's uid; a program that could renice it would outlive its deadline."""
    seen = probe(atoll, """
idle = os.sched_param(0)
tries = [attempt(os.setpriority, os.PRIO_PROCESS, 1, 19), attempt(os.setpriority, os.PRIO_USER, 0, 19),
         attempt(os.setpriority, os.PRIO_USER, 1000, 19), attempt(os.sched_setscheduler, 1, os.SCHED_IDLE, idle),
         attempt(os.sched_setscheduler, 1, os.SCHED_BATCH, idle), attempt(os.sched_setparam, 1, idle),
         attempt(os.sched_setaffinity, 1, {min(os.sched_getaffinity(0))})]
say([os.getpriority(os.PRIO_PROCESS, 1), os.sched_getscheduler(1) & ~os.SCHED_RESET_ON_FORK, os.sched_getaffinity(1) == os.sched_getaffinity(0), tries])
""")
    assert seen[:3] == [os.nice(0), 0, True], seen


@pytest.mark.undisturbed
@pytest.mark.alone  # about who gets the processor
def test_deadline_holds_against_a_starved_init(atoll):
    """Everything on one processor, init last in the queue. The hogs end by themselves, in case they outlive us."""
    code = """
import os, time
end = time.monotonic() + 9
for call in (lambda: os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0)), lambda: os.sched_setaffinity(1, {0}),
             lambda: os.sched_setaffinity(0, {0})):
    try:
        call()
    except OSError:
        pass
for _ in range(90):
    if os.fork() == 0:
        break
while time.monotonic() < end:
    pass
"""
    # Without a cgroup, pages that the ninety share are counted ninety times.
    result = atoll.python(code, options=["--timeout", "1s", "-m", "1g"])
    assert result["status"] == "timeout", result
    assert result["_elapsed"] < 7, result["_elapsed"]


@pytest.mark.apart  # the storm has every processor
def test_fork_storm_at_the_moment_of_death(atoll, compile_c):
    """Every process forks and leaves at random while the main one exits: the code is right, nothing stays."""
    storm = compile_c("""
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
int main(void)
{
	signal(SIGCHLD, SIG_IGN);
	for (int i = 0; i < 40; i++)
		if (fork() == 0)
			for (srand(i);;) {
				pid_t pid = fork();
				if (pid == 0)
					setsid();
				else if (pid > 0 && rand() % 2)
					_exit(0);
			}
	usleep(100000);
	return 7;
}""")
    for _ in range(3):  # bounded, as without a cgroup the kernel may need seconds to end thousands
        result = atoll.result(["--file", f"storm={storm}", "--stage", "x=./storm", "--timeout", "25s", "--pids", "80"])
        assert result["exit_code"] == 7 and result["cause"]["kind"] in ("exit", "pids"), result


def test_signals_do_not_reach_init(atoll):
    result = atoll.python("""
import os
for sig in range(1, 65):
    try:
        os.kill(1, sig)
    except OSError:
        pass
for _ in range(2000):
    os.kill(1, 17)
os._exit(5)
""")
    assert result["exit_code"] == 5 and result["cause"]["kind"] == "exit", result


@pytest.mark.undisturbed
def test_descriptors_in_flight_do_not_outlive_the_run(atoll):
    """A cycle of sockets that carry each other, standard output and a file of the work directory."""
    result = atoll.python("""
import array, os, socket
a, b = socket.socketpair()
fds = array.array('i', [a.fileno(), b.fileno(), 1, 2, os.open('/tmp/kept', os.O_RDWR | os.O_CREAT), os.open('/sandbox', 0)])
for s in (a, b):
    s.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
print('hi')
""")
    assert result["stdout"] == "hi\n" and result["_elapsed"] < 8, result


@pytest.mark.modes("rootless")
def test_descriptors_in_flight_are_nobody_elses_failure(atoll):
    """The kernel counts them by user, and without privilege all sandboxes are one user's."""
    fill = """
import array, os, socket, sys
a, b = socket.socketpair()
for _ in range(2): a.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [a.fileno()] * 100))])
print('full', flush=True)
sys.stdin.read()
"""
    user = {"user": oracle.NOBODY} if os.geteuid() == 0 else {}
    with subprocess.Popen([sys.executable, "-c", fill], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/", **user) as other:
        assert other.stdout.readline() == b"full\n"
        result = atoll.python("import resource\nprint(resource.getrlimit(resource.RLIMIT_NOFILE))", options=["--open-files", "64"])
        other.stdin.close()
    assert (result["status"], result["stdout"]) == ("success", "(64, 64)\n"), result


def test_standard_streams_turned_around(atoll):
    """The program fills its own standard input, makes both pipes as large as it may and closed to all users."""
    result = atoll.python("""
import fcntl, os
w = os.open('/proc/self/fd/0', os.O_WRONLY | os.O_NONBLOCK)
for fd in (0, 1):
    fcntl.fcntl(fd, 1031, 1 << 16)
try:
    while True:
        os.write(w, bytes(65536))
except BlockingIOError:
    pass
os.fchmod(1, 0)
os.write(1, b'end')
""", input=bytes(3 << 20))
    assert result["status"] == "success" and result["stdout"] == "end", result


# ------------------------------------------------------------------------------- results and collection


def test_answer_of_an_invoked_method_is_bounded(atoll, work, measure):
    """Twenty megabytes of `[],` are a gigabyte for the process that parses them outside of the sandbox."""
    tool = work / "tool.py"
    tool.write_text("import os\nclass T:\n    def m(self):\n"
                    "        with open('/sandbox/.atoll-invoke.json', 'w') as f:\n"
                    "            f.write('{\"result\": [' + '[],' * 7000000 + '[]]}')\n        os._exit(0)\n")
    tool.chmod(0o644)
    _, peak = atoll.peak_kib([str(tool), "--invoke", "T.m"], measure)
    assert peak < 256 << 10, f"{peak >> 10} MiB outside"


@pytest.mark.undisturbed
def test_sparse_files_cost_their_reader_little(atoll):
    """A file of holes takes the program nothing; reading it for the result must not take seconds or lose the result."""
    code = "for i in range(150):\n    open(f'f{i}', 'w').write('x')\nopen('huge', 'w').truncate(1500 << 20)\n"
    result = atoll.python(code, options=["--disk", "2g", "--file-size", "2g", "--timeout", "20s"])
    assert result["status"] == "success", result
    assert len([f for f in result["files"] if f["size"] == 1]) == 150
    assert result["_elapsed"] < 6, result["_elapsed"]


@pytest.mark.modes("root")
def test_peak_is_that_of_the_hungriest_stage(atoll):
    result = atoll.result(["--stage", "a=python3 -c 'bytearray(100 << 20)'", "--stage", "b=true"])
    assert result["memory_peak"] >= 100 << 20, result["memory_peak"]


@pytest.mark.undisturbed
@pytest.mark.brief
def test_busy_is_not_idle(atoll):
    """Also where no cgroup counts the processor time."""
    result = atoll.python("import time\nend = time.monotonic() + 1.2\nwhile time.monotonic() < end: pass",
                          options=["--idle-timeout", "700ms"])
    assert result["status"] == "success", result["cause"]


def test_output_directory_with_planted_links(atoll, work):
    """Links that lie in the output directory are replaced or refused, never followed."""
    out, outside = atoll.mkdir(work / "out"), atoll.mkdir(work / "outside")
    (outside / "file").write_text("mine")
    (out / "link").symlink_to(outside / "file")
    (out / "dir").symlink_to(outside)
    atoll.run(["run", "-l", "bash", "--output-dir", str(out), "-c", "echo x > link; mkdir dir; echo x > dir/file; ln -s / root"])
    assert (outside / "file").read_text() == "mine" and os.listdir(outside) == ["file"]
    assert not (out / "root").exists()


@pytest.mark.cold("nothing runs")
def test_reserved_names_are_the_products(atoll, work):
    (work / "x").write_text("x")
    for name in (".atoll-build/main", ".atoll-runner.py", ".atoll-invoke.json"):
        done = atoll.run(["run", "-l", "python", "-c", "1", "--file", f"{name}={work}/x"])
        assert done.returncode == 125 and b"reserved" in done.stderr, done


@pytest.mark.undisturbed
@pytest.mark.cold("nothing runs")
@pytest.mark.parametrize("text", [
    "a: &a [x, x]\nb: [*a, *a]\nlanguage: bash\ncode: 'true'\n",
    "language: bash\ncode: 'true'\nlabels: " + "[" * 50000 + "]" * 50000,
    '{"language": "bash", "code": "true", "labels": ' + '{"a":' * 50000 + "1" + "}" * 50001,
    '{"language": "bash", "code": "true", "env": {"A": "b\\u0000LD_PRELOAD=x"}}',
    '{"language": "bash", "code": "true", "files": {"a\\u0000/../../x": "1"}}',
    '{"language": "bash", "code": "true", "limits": {"timeout": 1e400}}',
], ids=["anchors", "deep-yaml", "deep-json", "nul-env", "nul-path", "infinite"])
def test_hostile_requests_are_refused_quickly(atoll, work, text):
    body = work / "request"
    body.write_text(text)
    body.chmod(0o644)
    done = atoll.run(["run", "--request", str(body)])
    assert done.returncode == 125 and done.stderr.startswith(b"atoll: ") and done.elapsed < 10, done


def test_killed_front_takes_everything_along(atoll):
    popen = atoll.popen(["run", "-l", "bash", "-c", "setsid sleep 1000 & trap '' TERM INT HUP; echo up; sleep 1000"])
    assert popen.stdout.readline() == b"up\n"
    os.kill(popen.pid, signal.SIGKILL)
    popen.wait()  # the leak oracle looks for what is left
