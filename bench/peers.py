# SPDX-License-Identifier: Apache-2.0
"""What is run (workloads) and in what (methods): the commands and requests, and how each is started and stopped."""

import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import memory
from dockerd import HELLO, Docker, Unavailable, call, reap, tail

ROOT = pathlib.Path(__file__).resolve().parent.parent
MEMORY_MAX = 512 << 20  # a sandbox's limit unless it asks for another

HELLO_C = '#include <stdio.h>\nint main(void)\n{\n\tputs("hello");\n\treturn 0;\n}\n'
READY = "import numpy, pandas\nprint(1)\n"
PANDAS = "import numpy, pandas\nprint(int(numpy.arange(4).sum()), pandas.DataFrame.__name__)\n"


@dataclasses.dataclass(frozen=True)
class Workload:
    name: str
    title: str
    language: str
    code: str
    bare: tuple  # the command without a sandbox; empty: the compiled program
    expected: str
    methods: tuple = ()  # names, if not all: what others need for it another workload shows

    def argv(self, hello):
        return list(self.bare) or [str(hello)]


WORKLOADS = (
    Workload("python", "Python: print(1)", "python", "print(1)", ("/usr/bin/python3", "-c", "print(1)"), "1\n"),
    Workload("ready", "Python: print(1), numpy and pandas imported", "python", READY, ("/usr/bin/python3", "-c", READY), "1\n",
             ("bare", "warm")),
    Workload("pandas", "Python: a sum, numpy and pandas imported", "python", PANDAS, ("/usr/bin/python3", "-c", PANDAS),
             "6 DataFrame\n"),
    Workload("node", "Node: 1", "javascript", "1", ("/usr/bin/node", "-e", "1"), ""),
    Workload("bash", "Bash: :", "bash", ":", ("/usr/bin/bash", "-c", ":"), ""),
    Workload("c", "C: puts(\"hello\"), compiled before", "c", HELLO_C, (), "hello\n"),
)


# Not timed: shows that the peak of memory in a result is that of the program.
HUNGRY_BYTES = 40 << 20
HUNGRY = Workload("hungry", "", "python", f"print(len(bytearray(b'x') * {HUNGRY_BYTES}))", (), f"{HUNGRY_BYTES}\n")


class Bench:
    """The folder, program and settings that all methods of one run share."""

    def __init__(self, atoll, before=None):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="atoll-bench-", dir="/var/lib" if not os.geteuid() else None))
        self.atoll = pathlib.Path(atoll).resolve()
        self.before = before
        self.hello = self.folder / "hello"
        (self.folder / "hello.c").write_text(HELLO_C)
        call(["gcc", "-O2", "-o", self.hello, self.folder / "hello.c", "-lm"])
        os.chmod(self.folder, 0o755)

    def environment(self, data_dir=ROOT):
        """All that programs get: nothing of the caller's that would change how an interpreter starts."""
        return {"PATH": "/usr/bin:/bin", "HOME": os.environ.get("HOME", "/"), "LANG": "C.UTF-8", "ATOLL_POOL": "off",
                "XDG_CACHE_HOME": str(self.folder / "cache"), "ATOLL_DATA_DIR": str(data_dir)}

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)


class Method:
    name = title = ""
    kind = "peer"
    rest_us = 2000  # after a sample, until what it left behind has gone
    all_rates = False  # runs per second for every workload, not only for the cheap ones
    only = ()  # names of workloads, if not all

    def __init__(self, bench):
        self.bench = bench

    def start(self):
        """Gets ready and returns the version; raises Unavailable."""
        return ""

    def command(self, workload):
        raise NotImplementedError

    def job(self, workload):
        return {"argv": [str(word) for word in self.command(workload)]}

    def processes(self, pids):
        """For each of these started commands the processes that are there for its sake."""
        return [memory.descendants(pid) for pid in pids]

    def end(self, processes):
        """Ends such commands."""
        for process in processes:
            process.terminate()
        for process in processes:
            reap(process, 10)
            process.stdout.close()

    def stop(self):
        pass


class Bare(Method):
    name, title, kind, all_rates = "bare", "bare process", "bare", True

    def start(self):
        return call(["/usr/bin/python3", "--version"])

    def command(self, workload):
        return workload.argv(self.bench.hello)


class BareAsCalled(Method):
    """
    Node as it starts in the shell that called the bench. NODE_EXTRA_CA_CERTS and the like can double its time; all
    other methods run with an environment that has no such variable.
    """

    name, title, kind, only = "bare-env", "bare, caller's environment", "bare", ("node",)

    def start(self):
        found = [name for name in os.environ if name.startswith("NODE_")]
        if not found:
            raise Unavailable("the caller's environment has nothing for Node")
        return " ".join(found)

    def job(self, workload):
        return {"argv": workload.argv(self.bench.hello), "env": [f"{name}={value}" for name, value in os.environ.items()]}


class Bubblewrap(Method):
    name, title, all_rates = "bubblewrap", "bubblewrap", True

    def start(self):
        if not shutil.which("bwrap"):
            raise Unavailable("not installed (Debian: bubblewrap)")
        return call(["bwrap", "--version"])

    def command(self, workload):
        binds = ["--ro-bind", "/usr", "/usr", "--ro-bind", "/etc/alternatives", "/etc/alternatives",
                 "--ro-bind", "/etc/ld.so.cache", "/etc/ld.so.cache", "--ro-bind", self.bench.hello, "/hello"]
        for name in ("bin", "lib", "lib64", "sbin"):
            binds += ["--symlink", f"usr/{name}", f"/{name}"]
        return ["/usr/bin/bwrap", "--unshare-all", *binds, "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp",
                "--dir", "/sandbox", "--chdir", "/sandbox", "--die-with-parent", "--new-session", "--cap-drop", "ALL",
                *workload.argv("/hello")]


class Firejail(Method):
    name, title, rest_us = "firejail", "firejail", 5000

    def start(self):
        if not shutil.which("firejail"):
            raise Unavailable("not installed (Debian: firejail)")
        return call(["firejail", "--version"]).splitlines()[0]

    def command(self, workload):
        return ["/usr/bin/firejail", "--quiet", "--noprofile", "--net=none", "--private", "--private-dev",
                "--private-tmp", "--ipc-namespace", "--caps.drop=all", "--nonewprivs", "--nogroups", "--seccomp",
                *workload.argv(self.bench.hello)]


class DockerRun(Method):
    name, title, rest_us = "docker-run", "docker run --rm", 100000

    def __init__(self, bench):
        super().__init__(bench)
        self.docker = Docker(bench.folder / "docker")

    def start(self):
        self.docker.start(self.bench.hello)
        return "Docker " + self.docker.version()

    def command(self, workload):
        return self.docker.run_command(workload.argv(HELLO))

    def processes(self, pids):
        """Each container with its shim; the client and the daemon are not counted."""
        table = memory.parents()
        return [memory.descendants(table[main]) for main in self.docker.guests().values()]

    def end(self, processes):
        self.docker.remove(self.docker.guests())
        super().end(processes)

    def stop(self):
        self.docker.stop()


class DockerExec(Method):
    """Into a container that runs already: no new sandbox at all, only a process in an old one."""

    name, title, rest_us = "docker-exec", "docker exec (warm)", 15000

    def __init__(self, bench, run):
        super().__init__(bench)
        self.run = run

    def start(self):
        if not self.run.docker.daemon:
            raise Unavailable("no dockerd, see docker run")
        return "Docker " + self.run.docker.version()

    def command(self, workload):
        return self.run.docker.exec_command(workload.argv(HELLO))


class Runsc(Method):
    name, title, rest_us = "runsc", "gVisor runsc do", 15000

    def start(self):
        if not shutil.which("runsc"):
            raise Unavailable("not installed (Debian: runsc)")
        return call(["runsc", "--version"]).splitlines()[0]

    def command(self, workload):
        return ["/usr/bin/runsc", "--root", self.bench.folder / "runsc", "--network=none", "do",
                *workload.argv(self.bench.hello)]


class Cold(Method):
    name, title, kind, all_rates = "cold", "atoll run (cold)", "cold", True

    def start(self):
        if not self.bench.atoll.exists():
            raise Unavailable(f"{self.bench.atoll} is not there")
        return call([self.bench.atoll, "--version"])

    def job(self, workload):
        """With --json, though it takes longer: so that every sample's peak of memory can be checked."""
        argv = [str(self.bench.atoll), "run", "--json", "-l", workload.language, "-c", workload.code]
        return {"argv": argv, "prints_result": True, "memory_max": MEMORY_MAX}


class Before(Method):
    """The cold path of an earlier commit, built for the comparison."""

    name, title, only = "before", "atoll run before", ("python", "bash")

    def start(self):
        self.tree = self.bench.folder / "before"
        self.tree.mkdir()
        archive = subprocess.Popen(["git", "-C", ROOT, "archive", self.bench.before], stdout=subprocess.PIPE)
        call(["tar", "-x", "-C", self.tree], stdin=archive.stdout)
        if archive.wait():
            raise Unavailable(f"git knows no {self.bench.before}")
        call(["meson", "setup", self.tree / "build", self.tree], env={**os.environ, "CC": "gcc"})
        call(["ninja", "-C", self.tree / "build", "atoll"])
        return self.bench.before

    def job(self, workload):
        env = self.bench.environment(self.tree)
        argv = [str(self.tree / "build" / "atoll"), "run", "--json", "-l", workload.language, "-c", workload.code]
        return {"argv": argv, "prints_result": True, "memory_max": MEMORY_MAX,
                "env": [f"{name}={value}" for name, value in env.items()]}


class Pool:
    """A resident `atoll pool` on a socket of its own."""

    def __init__(self, bench, name="pool", options=()):
        self.socket = bench.folder / f"{name}.sock"
        self.log = bench.folder / f"{name}.log"
        command = [str(bench.atoll), "pool", "--socket", str(self.socket), *options]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env=bench.environment())

    def await_ready(self, seconds=20):
        for _ in range(seconds * 20):
            if "ready on" in tail(self.log):
                return
            try:
                self.process.wait(0.05)
                break
            except subprocess.TimeoutExpired:
                pass
        raise Unavailable(f"atoll pool did not start: {tail(self.log)}")

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            reap(self.process, 20)


class Warm(Method):
    name, title, kind, rest_us, all_rates = "warm", "Atoll warm", "warm", 25000, True

    def __init__(self, bench):
        super().__init__(bench)
        self.pool = None

    def start(self):
        if not self.bench.atoll.exists():
            raise Unavailable(f"{self.bench.atoll} is not there")
        self.pool = Pool(self.bench)
        self.pool.await_ready()
        return call([self.bench.atoll, "--version"])

    def job(self, workload):
        request = {"language": workload.language, "code": workload.code}
        return {"request": json.dumps(request), "memory_max": MEMORY_MAX}

    def stop(self):
        if self.pool:
            self.pool.stop()


def methods(bench):
    run = DockerRun(bench)
    found = [Bare(bench), BareAsCalled(bench), Bubblewrap(bench), Firejail(bench), run, DockerExec(bench, run), Runsc(bench), Cold(bench),
             Warm(bench)]
    return found + [Before(bench)] if bench.before else found
