# SPDX-License-Identifier: Apache-2.0
"""The program under test: where it lies, and running it as root and as an unprivileged user.

The binary is build/atoll, or $ATOLL_BIN. `Stage` copies it with its data to a place that every user can read. `Atoll` runs it in one
mode, in a clean environment with a home of its own and without a pool. Temporary directories of the tests are named tests-*, so
that the leak oracle may treat everything named atoll as the product's.
"""
import json
import os
import re
import secrets
import select
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from oracle import IS_ROOT, NOBODY

ROOT = Path(__file__).resolve().parents[2]
BINARY = Path(os.environ.get("ATOLL_BIN", ROOT / "build" / "atoll"))
FRONT = BINARY.parent / "atolld"
LIBRARY = Path(os.environ.get("ATOLL_LIB", BINARY.parent / "libatoll.so"))
DATA = ["languages", "policies", "runners"]
MODES = ["root", "rootless"] if IS_ROOT else ["rootless"]
LAST = {}  # "done": the command that the current test finished last, shown when the test fails


def plain_mode(mode):
    return mode.removesuffix("-warm")


# What `atoll run` says of reduced isolation, which rootless always is: tests get it apart from standard error.
REDUCED = re.compile(rb"^atoll: isolation is (?:reduced|minimal): without .*\n", re.M)


class Process(subprocess.Popen):
    def communicate(self, *args, **more):
        out, err = super().communicate(*args, **more)
        return out, err and REDUCED.sub(b"", err)


class Finished:
    """A process that ended: exit code, both streams, how long it took."""

    def __init__(self, argv, returncode, stdout, stderr, elapsed):
        self.argv, self.returncode = argv, returncode
        self.stdout, self.stderr = stdout, REDUCED.sub(b"", stderr)
        self.reduced = [line.decode() for line in REDUCED.findall(stderr)]
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
        return Process(argv, env=self.environment(env), cwd=cwd or self.home, start_new_session=True, **more)

    def run(self, args, input=b"", timeout=60, env=None, cwd=None, program=None, **more):
        popen = self.popen(args, env=env, cwd=cwd, program=program, **more)
        data = input.encode() if isinstance(input, str) else input
        return finish([program or "atoll"] + list(args), popen, data, timeout)

    def peak_kib(self, args, measure, **more):
        """(result, most memory that any process of the command ever held), seen by a small parent."""
        with tempfile.NamedTemporaryFile(prefix="tests-") as f:
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
        # Where the root is an overlay, a room has /srv (tools/room).
        place = "/srv" if os.path.ismount("/srv") else "/var/lib"
        self.top = Path(tempfile.mkdtemp(prefix="tests-", dir=place if IS_ROOT else Path.home()))
        self.top.chmod(0o755)
        self.bin = self.top / "bin"
        self.bin.mkdir()
        self.binary = self.bin / BINARY.name
        shutil.copy2(BINARY, self.binary)
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
        self.homes, self.has_java_kit = {}, False

    def java_kit(self):
        """A place with Java's kit, made once for all test processes: with it a first compile takes half as long."""
        place = str(BINARY.parent / "test-kits")
        if not self.has_java_kit:
            self.has_java_kit = Atoll(MODES[0], self, env={"ATOLL_KIT_DIR": place}).run(["prepare", "java"]).returncode == 0
        return place

    def home(self, mode):
        mode = plain_mode(mode)
        if mode not in self.homes:
            path = self.top / f"home-{mode}"
            path.mkdir()
            path.chmod(0o711)  # the front of root's daemon is another user
            if mode == "rootless" and IS_ROOT:
                os.chown(path, NOBODY, NOBODY)
            self.homes[mode] = path
        return self.homes[mode]

    def scratch(self, mode, name):
        """A fresh directory that the mode's user may write to."""
        path = self.home(mode) / f"{name}-{secrets.token_hex(4)}"
        path.mkdir()
        path.chmod(0o755)  # the front of root's daemon is another user
        if plain_mode(mode) == "rootless" and IS_ROOT:
            os.chown(path, NOBODY, NOBODY)
        return path

    def remove(self):
        subprocess.run(["chmod", "-R", "u+rwX", self.top], check=False)
        shutil.rmtree(self.top, ignore_errors=True)
