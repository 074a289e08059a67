# SPDX-License-Identifier: Apache-2.0
"""What every suite of whole-program tests shares.

`atoll` runs the real binary, once as root and once as an unprivileged user, in a clean environment
with a home of its own and without a pool. The security suite runs a third time, through a pool of the
session's (`residents`), in warm cells; resident.py says how that is proved. `leaks` watches the host around
every test: whatever a run made must be gone a few seconds after it. `canary` is what a program inside must
never read or reach. Tests may run in several processes; those marked `alone` have the machine to
themselves, and those marked `apart` are the only test that runs (turns.py). What is marked `alone` or
`undisturbed` may promise a time: what fails there while processes outside of the session have much of the machine is skipped as
"too busy" (busy.py).

The binary is build/atoll, or $ATOLL_BIN. Temporary directories of the tests are named reef-*, so that
the leak oracle may treat everything named atoll as the product's.
"""
import json
import os
import re
import secrets
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import pytest

import busy
import oracle
import turns
from oracle import IS_ROOT, NOBODY, PYTHON, leaked_since, snapshot
from portions import pytest_collection_modifyitems, pytest_xdist_make_scheduler  # noqa: F401, hooks

ROOT = Path(__file__).resolve().parent.parent
BINARY = Path(os.environ.get("ATOLL_BIN", ROOT / "build" / "atoll"))
FRONT = BINARY.parent / "atolld"
LIBRARY = Path(os.environ.get("ATOLL_LIB", BINARY.parent / "libatoll.so"))
DATA = ["languages", "policies", "runners"]
MODES = ["root", "rootless"] if IS_ROOT else ["rootless"]


# ---------------------------------------------------------------------------------------- running


LAST = {}  # what the running test saw last, shown when it fails


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.failed and LAST:
        report.sections.append(("last command", repr(LAST["done"])))
    if call.when == "teardown":
        LAST.clear()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    with turns.alone() if item.get_closest_marker("alone") or item.get_closest_marker("apart") else turns.shared():
        yield


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    marks = {name for name in ("alone", "undisturbed") if pyfuncitem.get_closest_marker(name)}
    if not marks:
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    watch = busy.Watch()
    try:
        if "undisturbed" in marks:
            turns.undisturbed(lambda: pyfuncitem.obj(**arguments))
        else:
            pyfuncitem.obj(**arguments)
    except (AssertionError, TimeoutError, subprocess.TimeoutExpired) as error:
        watch.judge(error)
    return True


class Finished:
    """A process that ended: exit code, both streams, how long it took."""

    def __init__(self, argv, returncode, stdout, stderr, elapsed):
        self.argv, self.returncode = argv, returncode
        self.stdout, self.stderr = stdout, stderr
        self.elapsed = elapsed

    @property
    def out(self):
        return self.stdout.decode("utf-8", "replace")

    @property
    def err(self):
        return self.stderr.decode("utf-8", "replace")

    def json(self):
        try:
            return json.loads(self.stdout)
        except ValueError:
            raise AssertionError(f"not JSON: {self!r}") from None

    def __repr__(self):
        return (f"{' '.join(map(str, self.argv))[:600]}\n-> {self.returncode} after {self.elapsed:.2f} s"
                f"\nstdout: {self.out[:4000]}\nstderr: {self.err[:4000]}")


def has_ended(pid, timeout):
    """Whether this child of ours ends within so many seconds; it is not reaped."""
    fd = os.pidfd_open(pid)
    try:
        poller = select.poll()
        poller.register(fd, select.POLLIN)
        return bool(poller.poll(timeout * 1000))
    finally:
        os.close(fd)


def finish(argv, popen, data, timeout):
    """Feeds, drains and waits; ends the whole process group when time is up."""
    begin = time.monotonic()
    chunks = {1: [], 2: []}

    def drain(stream, key):
        for chunk in iter(lambda: stream.read1(1 << 16), b""):
            chunks[key].append(chunk)

    def feed():
        try:
            popen.stdin.write(data)
            popen.stdin.close()
        except OSError:
            pass

    threads = [threading.Thread(target=drain, args=pair, daemon=True)
               for pair in ((popen.stdout, 1), (popen.stderr, 2)) if pair[0]]
    if popen.stdin:
        threads.append(threading.Thread(target=feed, daemon=True))
    for thread in threads:
        thread.start()
    ended = has_ended(popen.pid, timeout)
    if not ended:
        os.killpg(popen.pid, signal.SIGKILL)
    status = os.waitpid(popen.pid, 0)[1]
    elapsed = time.monotonic() - begin
    popen.returncode = os.waitstatus_to_exitcode(status)
    if not ended:
        raise AssertionError(f"still running after {timeout} s: {' '.join(map(str, argv))[:600]}\n"
                             f"stdout: {b''.join(chunks[1])[-2000:]!r}\nstderr: {b''.join(chunks[2])[-2000:]!r}")
    for thread in threads:
        thread.join(25)
        assert not thread.is_alive(), f"a stream stayed open after the end of {argv}"
    for stream in (popen.stdin, popen.stdout, popen.stderr):
        if stream:
            try:
                stream.close()
            except OSError:
                pass
    LAST["done"] = Finished(argv, popen.returncode, b"".join(chunks[1]), b"".join(chunks[2]), elapsed)
    return LAST["done"]


class Atoll:
    """The binary in one mode. `wrap` goes before it (helpers that take features away)."""

    def __init__(self, mode, stage, wrap=(), env=None):
        self.mode, self.stage = plain_mode(mode), stage
        self.rootless = self.mode == "rootless"
        self.wrap, self.extra = list(wrap), dict(env or {})
        self.home = stage.home(self.mode)
        self.binary = stage.binary
        self.cgroup = None if self.rootless else "v1 or v2"

    def mkdir(self, path):
        """A directory that this mode's user may write to."""
        path.mkdir()
        if self.rootless and IS_ROOT:
            os.chown(path, NOBODY, NOBODY)
        return path

    def variant(self, wrap=(), env=None):
        return type(self)(self.mode, self.stage, list(wrap) + self.wrap, {**self.extra, **(env or {})})

    def environment(self, env=None):
        base = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8",
                "HOME": str(self.home), "XDG_CACHE_HOME": str(self.home / "cache"),
                "ATOLL_DATA_DIR": str(self.stage.data), "LD_LIBRARY_PATH": str(self.stage.bin),
                "ATOLL_KIT_DIR": "off", "ATOLL_POOL": "off", "ATOLL_URL": "off"}
        # How `./dev` has sanitizers behave. Looking for leaks takes ptrace, which a confined process has not.
        base.update({name: os.environ[name] for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS") if name in os.environ})
        base.update(self.extra)
        base.update(env or {})
        return {key: value for key, value in base.items() if value is not None}

    def command(self, argv):
        """argv as this mode's user."""
        drop = []
        if self.rootless and IS_ROOT:
            drop = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--"]
        return self.wrap + drop + [str(word) for word in argv]

    def popen(self, args, env=None, cwd=None, program=None, **more):
        argv = self.command([program or self.binary] + list(args))
        more.setdefault("stdin", subprocess.PIPE)
        more.setdefault("stdout", subprocess.PIPE)
        more.setdefault("stderr", subprocess.PIPE)
        return subprocess.Popen(argv, env=self.environment(env), cwd=cwd or self.home, start_new_session=True, **more)

    def run(self, args, input=b"", timeout=60, env=None, cwd=None, program=None, **more):
        popen = self.popen(args, env=env, cwd=cwd, program=program, **more)
        data = input.encode() if isinstance(input, str) else input
        return finish([program or "atoll"] + list(args), popen, data, timeout)

    def peak_kib(self, args, measure, **more):
        """(result, most memory that any process of the command ever held), seen by a small parent."""
        with tempfile.NamedTemporaryFile(prefix="reef-") as f:
            result = self.variant(wrap=[str(measure), f.name]).result(args, **more)
            return result, int(f.read())

    def result(self, args, **more):
        """`atoll run --json ARGS`: the result object; the process must have printed one."""
        done = self.run(["run", "--json"] + list(args), **more)
        result = done.json()
        result["_exit"], result["_stderr"], result["_elapsed"] = done.returncode, done.err, done.elapsed
        return result

    def python(self, code, *args, options=(), **more):
        words = ["-l", "python", *options, "-c", code]
        return self.result(words + (["--", *args] if args else []), **more)

    def bash(self, code, *args, options=(), **more):
        words = ["-l", "bash", *options, "-c", code]
        return self.result(words + (["--", *args] if args else []), **more)

    def probe(self, code, options=(), **more):
        """A Python program that prints one JSON value as its last line; that value."""
        result = self.python(code, options=options, **more)
        assert result["status"] == "success", result
        return json.loads(result["stdout"].strip().splitlines()[-1])


class Stage:
    """Where the binary and its data lie so that any user can reach them."""

    def __init__(self):
        # Not below /tmp or /var/tmp: zygotes have their own, and would not find their runners.
        self.top = Path(tempfile.mkdtemp(prefix="reef-", dir="/var/lib" if IS_ROOT else Path.home()))
        self.top.chmod(0o755)
        self.bin = self.top / "bin"
        self.bin.mkdir()
        self.binary = self.bin / BINARY.name
        shutil.copy2(BINARY, self.binary)
        if FRONT.exists():
            shutil.copy2(FRONT, self.bin / FRONT.name)
        self.library = None
        if LIBRARY.exists():
            self.library = self.bin / "libatoll.so"
            shutil.copy2(LIBRARY, self.library)
            soname = re.search(r"SONAME.*\[(.*)\]", subprocess.run(
                ["readelf", "-d", self.library], capture_output=True, text=True).stdout)
            if soname and soname[1] != "libatoll.so":
                (self.bin / soname[1]).symlink_to("libatoll.so")
        self.data = self.top / "data"
        self.data.mkdir()
        for name in DATA:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, self.data / name)
        self.driver = self.top / "drive.py"
        shutil.copy(ROOT / "test" / "lib" / "drive.py", self.driver)
        subprocess.run(["chmod", "-R", "a+rX", self.top], check=True)
        self.homes = {}

    def home(self, mode):
        mode = plain_mode(mode)
        if mode not in self.homes:
            path = self.top / f"home-{mode}"
            path.mkdir()
            path.chmod(0o711)  # root's daemon has a front that is somebody else
            if mode == "rootless" and IS_ROOT:
                os.chown(path, NOBODY, NOBODY)
            self.homes[mode] = path
        return self.homes[mode]

    def scratch(self, mode, name):
        """A fresh directory that the mode's user may write to."""
        path = self.home(mode) / f"{name}-{secrets.token_hex(4)}"
        path.mkdir()
        path.chmod(0o755)  # a daemon of root's runs its front as somebody else
        if plain_mode(mode) == "rootless" and IS_ROOT:
            os.chown(path, NOBODY, NOBODY)
        return path

    def remove(self):
        subprocess.run(["chmod", "-R", "u+rwX", self.top], check=False)
        shutil.rmtree(self.top, ignore_errors=True)


@pytest.fixture(scope="session")
def stage():
    if not BINARY.exists():
        pytest.fail(f"{BINARY} is not built: run ./dev build", pytrace=False)
    place = Stage()
    yield place
    place.remove()


def pytest_configure(config):
    if config.option.basetemp:  # named by the process that gives out the tests, which may live in another room than this one
        Path(config.option.basetemp).parent.mkdir(parents=True, exist_ok=True)
    config.addinivalue_line("markers", "cold(reason): a test of the security suite that says nothing new in a warm cell")
    config.addinivalue_line("markers", "any_landlock: what it shows does not depend on Landlock, so it does not run without it")
    config.addinivalue_line("markers", "foreign: sanitizers see nothing new in it: what differs is a compiler, a client or the user")


def plain_mode(mode):
    return mode.removesuffix("-warm")


def warm_ways(metafunc):
    """How a test of the security suite runs through a pool: in a cell; and, if it brings a program of its own,
    executed by a program that was warm."""
    names, own = set(metafunc.fixturenames), set(metafunc.definition._fixtureinfo.argnames)
    if metafunc.definition.path.parent.name != "security" or "poor" in names or \
            metafunc.definition.get_closest_marker("cold"):
        return []
    return ["warm", "warm-exec"] if own & {"compile_c", "syscall_table"} else ["warm"]


def is_foreign(mode, path):
    """The daemon's front is the same program for root and for an ordinary user; what it starts is not."""
    is_of_front = path.name.startswith("test_api_") or path.name in ("test_daemon_edges.py", "test_cli_daemon.py")
    return is_of_front and mode == "rootless" and "root" in MODES


def pytest_generate_tests(metafunc):
    has_landlock = "landlock" in metafunc.fixturenames
    if "mode" in metafunc.fixturenames:
        marker = metafunc.definition.get_closest_marker("modes")
        wanted = list(marker.args if marker else ("root", "rootless"))
        if not has_landlock and warm_ways(metafunc):
            wanted += [f"{m}-warm" for m in wanted]
        metafunc.parametrize("mode", [
            pytest.param(m, marks=[pytest.mark.foreign] if "root" in wanted and is_foreign(m, metafunc.definition.path)
                         else [] if plain_mode(m) in MODES else pytest.mark.skip(reason="needs to be started as root"))
            for m in wanted], scope="session")
    if has_landlock:
        without = [] if metafunc.definition.get_closest_marker("any_landlock") else ["no-landlock"]
        metafunc.parametrize("landlock", ["landlock", *without, *warm_ways(metafunc)], scope="session")


@pytest.fixture(scope="session")
def residents(stage):
    """A pool for each mode that asks for one; by the end they have nothing left that runs."""
    import resident
    pools = resident.Residents(stage)
    yield pools
    pools.end()


@pytest.fixture
def atoll(mode, stage, request):
    landlock = request.node.callspec.params.get("landlock", "")
    if not mode.endswith("-warm") and not landlock.startswith("warm"):
        return Atoll(mode, stage)
    residents = request.getfixturevalue("residents")
    return residents.front(plain_mode(mode), execs=landlock == "warm-exec")


@pytest.fixture
def box(atoll, landlock):
    """The security suite's matrix: each mode with Landlock and with the product told to do without it."""
    return atoll.variant(env={"ATOLL_FORCE_OFF": "landlock"} if landlock == "no-landlock" else None)


@pytest.fixture
def work(mode, stage):
    """A directory of the mode's user, removed afterwards."""
    path = stage.scratch(mode, "work")
    yield path
    subprocess.run(["chmod", "-R", "u+rwX", path], check=False)
    shutil.rmtree(path, ignore_errors=True)


# ------------------------------------------------------------------------------------- C helpers


class Compiler:
    def __init__(self, place):
        self.place, self.made = place, {}

    def __call__(self, source, name=None, static=True, flags=()):
        """Compiles C text or a file on the host; the program's path."""
        text = source.read_text() if isinstance(source, Path) else source
        key = (text, static, tuple(flags))
        if key not in self.made:
            out = self.place / (name or f"helper{len(self.made)}")
            if out.exists():
                out = self.place / f"{out.name}{len(self.made)}"
            argv = ["gcc", "-O1", "-x", "c", "-", "-o", out, *(["-static"] if static else []), *flags]
            subprocess.run(argv, input=text, text=True, check=True)
            out.chmod(0o755)
            self.made[key] = out
        return self.made[key]


@pytest.fixture(scope="session")
def compile_c(stage):
    place = stage.top / "helpers"
    place.mkdir(exist_ok=True)
    place.chmod(0o755)
    return Compiler(place)


@pytest.fixture(scope="session")
def measure(compile_c):
    """A parent so small that the peak wait4() tells is the command's: a fork of pytest would bring its own."""
    return compile_c("""
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	struct rusage usage;
	int status;
	pid_t pid = argc > 2 ? fork() : -1;
	if (pid == 0) {
		execvp(argv[2], argv + 2);
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &usage) < 0) return 126;
	dprintf(open(argv[1], O_WRONLY), "%ld", usage.ru_maxrss);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}""", "measure")


@pytest.fixture(scope="session")
def enosys(compile_c):
    """wrap=enosys("clone3", "openat2"): a command prefix that makes those calls fail."""
    program = compile_c(ROOT / "test" / "security" / "enosys.c", "enosys")

    def prefix(*rules):
        return [str(program), *rules, "--"]

    return prefix


# ------------------------------------------------------------------------------------ leak oracle


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef):
    if fixturedef.scope != "function":
        oracle.forget()
        fixturedef.addfinalizer(oracle.forget)


@pytest.fixture(autouse=True)
def leaks(request):
    if "stage" not in request.fixturenames:
        yield
        oracle.forget()  # it was not looked at what that one left
        return
    before = snapshot()
    yield
    found = leaked_since(before)
    if found:
        alone = "" if busy.IS_ROOM else " (or another Atoll's: only ./dev test ARGUMENTS and tools/room COMMAND keep it out of sight)"
        pytest.fail(f"left behind{alone}: " + json.dumps(found, indent=2), pytrace=False)


# ---------------------------------------------------------------------------------------- canary


class Canary:
    """Things outside that a program inside must neither read nor reach."""

    def __init__(self):
        self.text = "canary-" + secrets.token_hex(16)
        self.dir = Path(tempfile.mkdtemp(prefix="reef-canary-", dir="/var/tmp"))
        self.dir.chmod(0o755)
        self.public, self.secret = self.dir / "public", self.dir / "secret"
        for path, bits in ((self.public, 0o644), (self.secret, 0o600)):
            path.write_text(self.text)
            path.chmod(bits)
        self.reached = []
        self.sockets = []
        tcp = self.listen("tcp", socket.AF_INET, ("127.0.0.1", 0))
        self.port = tcp.getsockname()[1]
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", self.port))
        self.sockets.append(self.udp)
        threading.Thread(target=self.receive, daemon=True).start()
        self.abstract = "canary-" + secrets.token_hex(8)
        self.listen("abstract", socket.AF_UNIX, "\0" + self.abstract)
        self.path = str(self.dir / "socket")
        self.listen("path", socket.AF_UNIX, self.path)
        os.chmod(self.path, 0o777)

    def listen(self, name, family, address):
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.bind(address)
        sock.listen(16)
        self.sockets.append(sock)
        threading.Thread(target=self.accept, args=(name, sock), daemon=True).start()
        return sock

    def accept(self, name, sock):
        while True:
            try:
                peer, _ = sock.accept()
            except OSError:
                return
            self.reached.append(name)
            peer.close()

    def receive(self):
        while True:
            try:
                self.udp.recvfrom(1)
            except OSError:
                return
            self.reached.append("udp")

    def untouched(self):
        return self.public.read_text() == self.text == self.secret.read_text() and not self.reached

    def close(self):
        for sock in self.sockets:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            sock.close()
        shutil.rmtree(self.dir, ignore_errors=True)


@pytest.fixture(scope="session")
def canary():
    bird = Canary()
    yield bird
    bird.close()


# --------------------------------------------------------------------------- the library, by ctypes


class Library:
    """One process that holds one handle (so one broker) and runs requests on it in order."""

    def __init__(self, atoll):
        if b"__asan_init" in LIBRARY.read_bytes():
            pytest.skip("a sanitized libatoll.so cannot be loaded into a Python that is not sanitized")
        self.popen = atoll.popen([atoll.stage.driver, atoll.stage.library], program=PYTHON, stderr=None)

    def ask(self, **message):
        self.popen.stdin.write(json.dumps(message).encode() + b"\n")
        self.popen.stdin.flush()
        line = self.popen.stdout.readline()
        assert line, "the driver of libatoll died"
        return json.loads(line)

    def run(self, request, raw=None):
        """(return value, result or None, problem or None)."""
        answer = self.ask(op="run", request=json.dumps(request) if raw is None else raw)
        result = json.loads(answer["result"]) if answer["result"] else None
        return answer["rc"], result, answer["problem"]

    def health(self):
        return self.ask(op="health")

    def close(self):
        self.popen.stdin.close()
        self.popen.wait(25)
        self.popen.stdout.close()


@pytest.fixture
def library(atoll):
    if not atoll.stage.library:
        pytest.fail(f"{LIBRARY} is not built", pytrace=False)
    lib = Library(atoll)
    yield lib
    lib.close()
