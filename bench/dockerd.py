# SPDX-License-Identifier: Apache-2.0
"""A Docker daemon of the bench's own, with an image that holds the host's runtimes, and nothing left behind.

It shares no directory, socket, network or control group with another daemon: everything lies below one temporary
folder, containers below one control group with that folder's name. The image (Debian with the same Python packages,
and the host's Node) is made once and kept as a tar file in ~/.cache/atoll-bench.
"""

import glob
import hashlib
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

# Debian's, not a client of another origin that stands earlier on PATH.
CLIENT, DAEMON = "/usr/bin/docker", "/usr/sbin/dockerd"
PACKAGES = ("python3", "python3-numpy", "python3-pandas", "bash")
SUITE, MIRROR = "bookworm", "http://deb.debian.org/debian"
HELLO = "/opt/hello"
IMAGE = "atoll-bench"
START_SECONDS = 60


class Unavailable(Exception):
    """Something to compare with that does not run here; the text says why."""


def reap(process, seconds):
    """Waits for one that was told to end, and ends it if it does not."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def tail(path, lines=4):
    try:
        return " | ".join(pathlib.Path(path).read_text(errors="replace").splitlines()[-lines:])
    except OSError:
        return ""


def call(command, **more):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **more)
    if done.returncode:
        words = (done.stderr + done.stdout).strip().splitlines()
        raise Unavailable(f"{pathlib.Path(command[0]).name} {command[1]}: {' | '.join(words[-3:])}")
    return done.stdout.strip()


def _add_program(root, program):
    """Copies a program of the host and those of its libraries that the image lacks."""
    names = [program]
    for line in call(["ldd", program]).splitlines():
        names += [word for word in line.split() if word.startswith("/")]
    for name in names:
        target = root / name.lstrip("/")
        if name == program or not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(name, target)


def _build_image(tar, hello):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="image-", dir=tar.parent))
    root = folder / "root"
    try:
        call(["debootstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", SUITE, root, MIRROR])
        for waste in ("var/cache/apt/archives", "var/lib/apt/lists", "usr/share/doc", "usr/share/locale"):
            shutil.rmtree(root / waste, ignore_errors=True)
        _add_program(root, "/usr/bin/node")
        shutil.copy2(hello, root / HELLO.lstrip("/"))
        call(["tar", "-C", root, "--numeric-owner", "-cf", folder / "image.tar", "."])
        os.replace(folder / "image.tar", tar)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def image_tar(hello):
    """The image's file, made when it is missing or its recipe has changed."""
    recipe = "\n".join([*PACKAGES, SUITE, call(["/usr/bin/node", "--version"])]).encode()
    key = hashlib.sha256(recipe + pathlib.Path(hello).read_bytes()).hexdigest()[:16]
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "atoll-bench"
    cache.mkdir(parents=True, exist_ok=True)
    tar = cache / f"image-{key}.tar"
    if not tar.exists():
        print("bench: making the Docker image (a minute, once)", flush=True)
        for old in cache.glob("image-*.tar"):
            old.unlink()
        _build_image(tar, hello)
    return tar


class Docker:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.group = self.folder.parent.name
        self.daemon = None
        self.client = [CLIENT, "--config", str(self.folder), "-H", f"unix://{self.folder}/sock"]

    def run_command(self, words):
        return [*self.client, "run", "--rm", "--network", "none", IMAGE, *words]

    def exec_command(self, words):
        return [*self.client, "exec", "resident", *words]

    def call(self, *words):
        return call([*self.client, *words])

    def _await(self):
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self.daemon.poll() is not None:
                break
            if subprocess.run([*self.client, "version"], capture_output=True).returncode == 0:
                return
            time.sleep(0.2)
        raise Unavailable(f"dockerd did not start: {tail(self.folder / 'log')}")

    def start(self, hello):
        if not (os.path.exists(DAEMON) and os.path.exists(CLIENT)):
            raise Unavailable("dockerd is not installed (Debian: docker.io)")
        if os.geteuid():
            raise Unavailable("dockerd needs root")
        tar = image_tar(hello)
        self.folder.mkdir()
        (self.folder / "daemon.json").write_text("{}\n")
        command = [DAEMON, "--config-file", self.folder / "daemon.json", "--data-root", self.folder / "data",
                   "--exec-root", self.folder / "exec", "--pidfile", self.folder / "pid",
                   "-H", f"unix://{self.folder}/sock", "--cgroup-parent", f"/{self.group}",
                   "--iptables=false", "--ip6tables=false", "--ip-forward=false", "--bridge=none"]
        with open(self.folder / "log", "wb") as log:
            self.daemon = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=log,
                                           stderr=log, start_new_session=True)
        self._await()
        self.call("import", str(tar), IMAGE)
        self.call("run", "-d", "--network", "none", "--name", "resident", IMAGE, "sleep", "1d")

    def version(self):
        return self.call("version", "--format", "{{.Server.Version}}")

    def guests(self):
        """{name: pid of the first process} of containers other than the resident one."""
        done = subprocess.run([*self.client, "ps", "-q", "--no-trunc"], capture_output=True, text=True)
        found = {}
        for name in done.stdout.split():
            line = self.call("inspect", "--format", "{{.Name}} {{.State.Pid}}", name).split()
            if line[0] != "/resident":
                found[name] = int(line[1])
        return found

    def remove(self, names):
        if names:
            subprocess.run([*self.client, "rm", "-f", *names], capture_output=True)

    def stop(self):
        """Containers, daemon, its mounts, its control groups, its folder, in this order."""
        if self.daemon and self.daemon.poll() is None:
            subprocess.run([*self.client, "rm", "-f", "resident"], capture_output=True)
            self.remove(self.guests())
            self.daemon.terminate()
            try:
                self.daemon.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(self.daemon.pid, signal.SIGKILL)
                self.daemon.wait()
        with open("/proc/self/mounts") as mounts:
            below = [line.split()[1] for line in mounts if line.split()[1].startswith(f"{self.folder}/")]
        for mount in reversed(below):
            subprocess.run(["umount", "-l", mount], capture_output=True)
        for group in glob.glob(f"/sys/fs/cgroup/*/{self.group}") + glob.glob(f"/sys/fs/cgroup/{self.group}"):
            try:
                os.rmdir(group)
            except OSError:
                pass
        shutil.rmtree(self.folder, ignore_errors=True)
