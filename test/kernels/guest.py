# SPDX-License-Identifier: Apache-2.0
"""Runs inside the VM: every case once, one JSON line each, for test_kernel61.py to judge.

guest.py ROOT BUILD [sample]: the repository and the build tree, both seen through the read-only view of the host. A sample leaves out
what another case shows in less time, or another kernel as well.
"""
import errno
import glob
import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import time

ROOT, BUILD = sys.argv[1:3]
IS_SAMPLE = sys.argv[3:] == ["sample"]
ATOLL = f"{BUILD}/atoll"
TEST_CGROUP = f"{BUILD}/src/box/test-cgroup"
USER = 65533
GROUP = "/sys/fs/cgroup/user.slice"
TESTS = "/tmp/tests.json"
ENV = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8", "CMOCKA_MESSAGE_OUTPUT": "TAP",
       "ATOLL_DATA_DIR": "/tmp/tests-data", "XDG_CACHE_HOME": "/tmp/tests-cache"}

DAEMONS = r"""
import os, signal, sys, time
for _ in range(8):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            while True:
                time.sleep(1)
        os._exit(0)
print("left them", flush=True)
"""
FORKS = r"""
import os, time
n = 0
try:
    while n < 500:
        if os.fork() == 0:
            time.sleep(60)
        n += 1
except OSError as e:
    print(n, e.errno, flush=True)
    os._exit(3)
"""
CHILD_EATS = r"""
import os, sys
pid = os.fork()
if pid == 0:
    x = bytearray(300 << 20)
    os._exit(0)
os.waitpid(pid, 0)
sys.exit(42)
"""

LEFT_OUT = ("memory_within", "memory_child", "pids", "minimal_daemons", "waited", "timeout", "network")

# Nothing of this may work but the last line.
OUTSIDE = r"""
echo top > /tmp/mine 2>/dev/null && echo written
for f in /tmp/open /tmp/public /etc/shadow; do cat $f >/dev/null 2>&1 && echo read $f; : 2>/dev/null >$f && echo emptied $f; ln $f . 2>/dev/null && echo linked $f; done
/usr/bin/perl -e 'truncate("/tmp/open", 0) and print "truncated\n"' 2>/dev/null
mkdir d && echo x > f && mv f d/ && cat d/f
"""

# Emulated, Python takes seconds to start: where the language does not matter it is bash.
BASH = {
    "cpu_time": ("while :; do :; done", ["--cpu-time", "1", "--timeout", "100"]),
    "timeout": ("echo begun; sleep 200", ["--timeout", "4"]),
    "cpus": ("end=$((SECONDS + 4)); while [ $SECONDS -lt $end ]; do :; done", ["--cpus", "0.25", "--timeout", "100"]),
    "exit": ("exit 7", []),
    "waited": ("while :; do :; done", ["--tests", TESTS, "--timeout", "3"]),
    "throttled": ("while :; do :; done", ["--tests", TESTS, "--timeout", "3", "--cpus", "0.25"]),
    "true": ("echo 42", []),
    "network": ("getent hosts other.test; exec 3<>/dev/tcp/127.0.0.1/443 && read -t 60 -u 3; echo end",
                ["--policy", "trusted", "--network", "allow:pypi.org:443", "--timeout", "100"]),
    "minimal": (OUTSIDE, ["--isolation", "minimal"]),
}
PYTHON = {
    "hello": ("print('hello', 6 * 7)", []),
    "memory": ("x = bytearray(300 << 20)", ["-m", "64m"]),
    "memory_within": ("x = bytearray(32 << 20); print(len(x))", ["-m", "128m"]),
    "memory_child": (CHILD_EATS, ["-m", "64m"]),
    "tmpfs": ("open('/tmp/x', 'wb').write(bytes(1 << 20) * 200)", ["-m", "64m", "--disk", "1g"]),
    "pids": (FORKS, ["--pids", "20"]),
    "daemons": (DAEMONS, []),
    "minimal_daemons": (DAEMONS, ["--isolation", "minimal"]),
}


def make_data():
    """Atoll's files with two languages: asking all fourteen for their version takes minutes in emulation."""
    data = ENV["ATOLL_DATA_DIR"]
    for name in ("policies", "runners"):
        shutil.copytree(f"{ROOT}/{name}", f"{data}/{name}")
    os.mkdir(f"{data}/languages")
    for name in ("bash", "python"):
        shutil.copy(f"{ROOT}/languages/{name}.yaml", f"{data}/languages")
    subprocess.run(["chmod", "-R", "a+rX", data], check=True)


def emit(name, **more):
    print(json.dumps({"case": name, **more}), flush=True)


def call(argv, prefix=(), timeout=240):
    begin = time.monotonic()
    try:
        done = subprocess.run([*prefix, *argv], env=ENV, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              errors="replace", timeout=timeout)
        code, out, err = done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired:
        code, out, err = "never ended", "", ""
    try:
        result = json.loads(out)
    except ValueError:
        result = None
    return {"exit": code, "result": result, "stdout": out if result is None else "", "stderr": err,
            "elapsed": time.monotonic() - begin}


def sandbox_processes():
    """Processes with an id of a sandbox: none may outlive its run."""
    found = []
    for status in glob.glob("/proc/[0-9]*/status"):
        try:
            with open(status) as f:
                text = f.read()
        except OSError:
            continue
        uid = int(text.split("Uid:")[1].split()[0])
        if 0x70000000 <= uid < 0x80000000:
            found.append(f"{status} uid {uid} {text.splitlines()[0]}")
    return found


def groups():
    return [d for d in glob.glob("/sys/fs/cgroup/**/", recursive=True) if "atoll" in d]


def gone(look):
    """What look() still finds when it has had some time: who is dead may be listed for a moment more."""
    end = time.monotonic() + 20
    while (found := look()) and time.monotonic() < end:
        time.sleep(0.2)
    return found


def case(name, prefix=()):
    language, (code, options) = ("bash", BASH[name]) if name in BASH else ("python", PYTHON[name])
    record = call([ATOLL, "run", "--json", "-l", language, *options, "-c", code], prefix)
    if name == "timeout" and record["result"] and record["result"]["stdout"] == "":  # where all is emulated, on a busy host, it takes long
        record = call([ATOLL, "run", "--json", "-l", language, "--timeout", "40", "-c", code], prefix)
    return record


def as_user(group):
    """A command prefix: into that cgroup as root, then USER for good."""
    into = f"echo $$ > {group}/cgroup.procs && " if group else ""
    return ["bash", "-c", f'{into}exec setpriv --reuid {USER} --regid {USER} --clear-groups -- "$@"', "x"]


def remove_group(path):
    """The broker of a run that has ended may take a moment more to be gone."""
    for _ in range(100):
        try:
            return os.rmdir(path)
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
        time.sleep(0.1)
    raise TimeoutError(path)


def delegate():
    """What `systemd-run --user --scope -p Delegate=yes` gives: a group whose files are the user's."""
    os.makedirs(GROUP, exist_ok=True)
    for place in ("/sys/fs/cgroup", GROUP):
        for controller in ("memory", "pids", "cpu"):
            with open(f"{place}/cgroup.subtree_control", "w") as f:
                f.write(f"+{controller}")
    for name in os.listdir(GROUP):
        if name.endswith(".scope"):
            for leaf in os.listdir(f"{GROUP}/{name}"):
                if os.path.isdir(f"{GROUP}/{name}/{leaf}"):
                    remove_group(f"{GROUP}/{name}/{leaf}")
            remove_group(f"{GROUP}/{name}")
    scope = f"{GROUP}/run-{time.monotonic_ns()}.scope"
    os.mkdir(scope)
    for name in ("", "/cgroup.procs", "/cgroup.subtree_control", "/cgroup.threads"):
        os.chown(scope + name, USER, USER)
    return scope


def rootless_cases():
    ENV["HOME"], ENV["XDG_CACHE_HOME"] = "/tmp/tests-user", "/tmp/tests-user/cache"
    os.mkdir(ENV["HOME"])
    os.chown(ENV["HOME"], USER, USER)
    emit("rootless_plain", **case("true", as_user(None)))
    if not IS_SAMPLE:
        emit("rootless_network", **case("network", as_user(None)))
    for name in ("true", "memory") if IS_SAMPLE else ("true", "memory", "pids", "timeout"):
        emit(f"delegated_{name}", **case(name, as_user(delegate())))
    emit("delegated_unit", **call([TEST_CGROUP], as_user(delegate())))


def writable_root_cases(disk):
    """The same disk has an image. The guest's own root, an overlay, cannot be shown to another user."""
    os.makedirs(f"{disk}/image/bin")
    os.makedirs(f"{disk}/image/usr/dir")
    shutil.copy("/bin/busybox", f"{disk}/image/bin/sh")
    with open(f"{disk}/image/usr/secret", "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        file.write("SECRET")
    code = "cd /usr; echo new > new; rmdir dir; mkdir dir; cat secret; cat new; echo top > /top; ls -d dir /top"
    for name in ("writable_root", "writable_root_again"):
        emit(name, **call([ATOLL, "run", "--json", "--writable-root", "--image", f"{disk}/image", "--stage", "run=" + code]))
    emit("writable_root_left", found=sorted(os.listdir(f"{disk}/image/usr")))
    emit("writable_root_refused", **call([ATOLL, "run", "--json", "--writable-root", "-l", "bash", "-c", "true"]))


def workspace_cases():
    """On a disk of its own: neither 9p nor tmpfs can be shown to another user here."""
    disk = "/run/tests-disk"
    os.mkdir(disk)
    for command in (["modprobe", "loop"], ["modprobe", "ext4"], ["truncate", "-s", "64M", disk + ".img"], ["mkfs.ext4", "-q", disk + ".img"],
                    ["mount", "-o", "loop", disk + ".img", disk]):
        subprocess.run(command, check=True)
    ENV["ATOLL_STATE_DIR"] = disk
    for name, code in (("workspace_first", "cd /workspace; mkdir -p t/u; echo a > t/u/a; echo b > b"),
                       ("workspace_second", "cd /workspace; rm -rf t; mkdir t; echo n > t/n; echo more >> b; find . | sort")):
        emit(name, **call([ATOLL, "run", "--json", "--workspace", "w", "-l", "bash", "-c", code]))
    emit("workspace_left", found=sorted(os.path.relpath(os.path.join(top, n), f"{disk}/workspaces/w")
                                        for top, dirs, files in os.walk(f"{disk}/workspaces/w") for n in dirs + files))
    writable_root_cases(disk)
    del ENV["ATOLL_STATE_DIR"]


class Asking(http.client.HTTPConnection):
    """A daemon on a UNIX socket."""

    def __init__(self, path):
        super().__init__("localhost", timeout=120)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)

    def ask(self, method, target, body=None):
        self.request(method, target, body and json.dumps(body), {"Content-Type": "application/json"})
        answer = self.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text else None


def is_ready(path):
    try:
        return Asking(path).ask("GET", "/readyz")[0] == 200
    except OSError:
        return False


def fork_case(name, prefix=()):
    """A session with a variable and a file, two copies of it, and a copy of a copy. One copy runs out of memory, one is closed."""
    place = f"/run/tests-{name}"
    os.mkdir(place)
    if prefix:
        os.chown(place, USER, USER)
    path = f"{place}/socket"
    daemon = subprocess.Popen([*prefix, ATOLL, "serve", "--state-dir", f"{place}/state", "--socket", path, "--listen", "127.0.0.1:0"], env=ENV,
                              stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    record, said = {}, []
    try:
        if gone(lambda: not is_ready(path)):
            raise TimeoutError("the daemon does not get ready")
        asking = Asking(path)

        def value(session, code):
            return asking.ask("POST", f"/v1/sessions/{session['id']}/execute", {"code": code})[1]

        parent = asking.ask("POST", "/v1/sessions", {"limits": {"memory": 64 << 20}})[1]
        value(parent, "import os; x = [1]; data = bytes(10 << 20); n = open('file', 'w').write('text')")
        record["fork"] = asking.ask("POST", f"/v1/sessions/{parent['id']}/fork", {"count": 2})
        if record["fork"][0] == 201:
            first, second = record["fork"][1]["sessions"]
            look = "x.append(2); [x, open('file').read(), os.getpid(), len(data), [n for n in os.listdir('/proc') if n.isdigit()]]"
            record["seen"] = [value(one, look)["value"] for one in (first, second)]
            record["again"] = asking.ask("POST", f"/v1/sessions/{second['id']}/fork", {})[0]
            record["full"] = value(first, "more = b'x' * (200 << 20)")
            record["after"] = [value(one, "x")["value"] for one in (second, parent)]
            record["processes"] = len(groups()), len(sandbox_processes())
            record["closed"] = [asking.ask("DELETE", f"/v1/sessions/{one['id']}")[0] for one in (parent, first)]
            record["orphan"] = value(second, "x")["value"]
    except (OSError, ValueError, TimeoutError, http.client.HTTPException) as error:
        said.append(repr(error))
    daemon.terminate()
    said.append(daemon.communicate(timeout=120)[1])
    emit(name, **record, stderr=said, left=[gone(sandbox_processes), gone(groups) if not prefix else []])


def killed_case():
    """Front and broker of a run are killed; the kernel forgets what it knew of the group's directory. The next run removes the group."""
    run = subprocess.Popen([ATOLL, "run", "--no-daemon", "-l", "bash", "-c", "sleep 600"], env=ENV, stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    held = []
    if gone(lambda: not sandbox_processes()):
        return emit("killed", error="the run did not begin")
    held.append(len(groups()))
    other = call([ATOLL, "run", "--json", "-l", "bash", "-c", "true"])  # its sweep leaves the group of a live run alone
    held.append(len(groups()))
    brokers = subprocess.run(["pgrep", "-P", str(run.pid)], capture_output=True, text=True).stdout.split()
    run.kill()
    for pid in brokers:
        try:
            os.kill(int(pid), 9)
        except ProcessLookupError:
            pass
    run.wait()
    alive = gone(sandbox_processes)
    with open("/proc/sys/vm/drop_caches", "w") as f:
        f.write("2")
    left = [g for g in groups() if g.rstrip("/") != "/sys/fs/cgroup/atoll"]
    after = call([ATOLL, "run", "--json", "-l", "bash", "-c", "true"])
    emit("killed", held=held, brokers=len(brokers), alive=alive, left=left, other=other, result=after["result"],
         after=gone(lambda: [g for g in groups() if g in left]))


def main():
    make_data()
    emit("kernel", release=os.uname().release)
    emit("doctor", **call([ATOLL, "doctor", "--json"], timeout=300))
    emit("unit_cgroup", **call([TEST_CGROUP]))
    emit("unit_probe", **call([f"{BUILD}/src/base/sys/test-probe"]))
    for path in ("/tmp/open", "/tmp/public"):
        with open(path, "w") as f:
            f.write("public\n")
        os.chmod(path, 0o666 if path == "/tmp/open" else 0o644)
    with open(TESTS, "w") as f:
        json.dump([{"expected": "never"}], f)
    for name in (*PYTHON, *BASH):
        if IS_SAMPLE and name in LEFT_OUT:
            continue
        beside = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(4 * os.cpu_count() if name == "waited" else 0)]
        emit(name, **case(name))
        for process in beside:
            process.kill()
            process.wait()
        if "daemons" in name:
            emit(f"survivors of {name}", found=gone(sandbox_processes))
    with open("/tmp/open") as f:
        emit("untouched", text=f.read())
    emit("bash", **call([ATOLL, "run", "-l", "bash", "-c", "echo out; echo err >&2; exit 5"]))
    killed_case()
    workspace_cases()
    fork_case("fork")
    emit("left", processes=gone(sandbox_processes), groups=gone(groups))
    rootless_cases()
    if not IS_SAMPLE:
        fork_case("fork_rootless", as_user(None))
    emit("end")


main()
