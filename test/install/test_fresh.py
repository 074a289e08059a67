# SPDX-License-Identifier: Apache-2.0
"""A new Debian: README.md and doc/install.md from `git clone` on; the packages, in a chroot, after pivot_root and in Docker with the flags of doc/install.md, purged."""
import contextlib
import errno
import json
import os
import re
import shutil
import subprocess

import pytest

import dockerd
import pages
from dockerd import ENVIRONMENT, flags_of
from program import IS_ROOT, ROOT

TAR = ROOT / "build" / "fresh-root.tar"
PAGE = (ROOT / "doc" / "install.md").read_text()
RUN = ["atoll", "run", "--no-daemon", "-l", "python", "-c", "print(6*7)", "--json"]
C_CODE = re.search(r"```c\n(.*?)```", PAGE, re.S)[1]

README, PRINTED = pages.script(pages.blocks(ROOT / "README.md"), skip=r"^\./dev ")  # the packages stand for what ./dev installs

pytestmark = [
    pytest.mark.apart,
    pytest.mark.skipif(not os.environ.get("ATOLL_TEST_ALL"), reason="makes a new Debian: only ./dev test --all"),
    pytest.mark.skipif(not IS_ROOT, reason="root directories and dockerd need root"),
    pytest.mark.skipif(not TAR.exists(), reason="there is no build/fresh-root.tar: tools/fresh-root makes it"),
]


def command(*words, ok=True, timeout=180, **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=timeout, env=ENVIRONMENT, **more)
    assert done.returncode == 0 or not ok, f"{words}: {done.stdout}{done.stderr}"
    return done


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    """A root directory with the packages installed."""
    command(ROOT / "tools" / "deb", cwd=ROOT)
    place = tmp_path_factory.mktemp("tests-fresh") / "root"
    place.mkdir()
    command("tar", "-C", place, "-xf", TAR)
    place.chmod(0o755)
    for package in (ROOT / "build").glob("*.deb"):
        shutil.copy(package, place / "root")
    command("chroot", place, "sh", "-c", "dpkg -i /root/*.deb")
    (place / "root/hello.c").write_text(C_CODE)
    for folder in ("examples", "sdk"):
        shutil.copytree(ROOT / folder, place / "root/readme" / folder)
    (place / "root/readme/follow").write_text(README)
    yield place
    shutil.rmtree(place, ignore_errors=True)


def test_chroot_is_refused_with_its_cure(fresh):
    assert "atoll:x:" in (fresh / "etc/passwd").read_text()
    done = command("chroot", fresh, *RUN[:-1], ok=False)
    assert done.returncode == 126
    assert "the kernel refuses them in a chroot: enter the directory by pivot_root or systemd-nspawn" in done.stderr
    assert "sysctl" not in done.stderr


def entered(fresh, script):
    """As doc/install.md enters a root directory, with `script` in place of its shell."""
    recipe = re.search(r"unshare --mount sh -c '(.*?)'", PAGE, re.S)[1].replace("DIR", str(fresh))
    return command("unshare", "--mount", "sh", "-c", recipe.replace("exec bash", 'exec sh -c "$0"'), script)


def test_runs_after_pivot_root(fresh):
    result = json.loads(entered(fresh, "atoll run --no-daemon -l python -c 'print(6*7)' --json").stdout)
    assert result["stdout"] == "42\n" and result["isolation"]["tier"] == "full"
    compile_line = re.search(r"^cc hello.c .*$", PAGE, re.M)[0]
    done = entered(fresh, f"cd /root && {compile_line} && ./hello")
    assert '"stdout":"42\\n"' in done.stdout


@pytest.mark.parametrize("place", ["pivot_root", "docker"])
def test_pages_from_the_clone_on(place):
    """tools/newcomer followed them before the tests entered their room, which has no network."""
    status = ROOT / "build" / f"newcomer-{place}.status"
    if not status.exists():
        pytest.skip("tools/newcomer did not run")
    assert status.read_text() == "followed\n"


def test_readme_after_pivot_root(fresh):
    pages.assert_script_prints(PRINTED, entered(fresh, "cd /root/readme && bash follow 2>&1").stdout)


@pytest.fixture(scope="module")
def docker(fresh):
    """Runs in a container: docker(flags, command)."""
    with contextlib.ExitStack() as stack:
        try:
            run = stack.enter_context(dockerd.containers(fresh))
        except dockerd.Unavailable as error:
            pytest.skip(str(error))
        yield lambda flags, words: run(["--network", "none", *flags], words)


def test_docker_with_the_documented_flags_is_full(docker):
    done = docker(flags_of("Docker, as root"), RUN)
    result = json.loads(done.stdout)
    assert result["stdout"] == "42\n" and result["isolation"]["tier"] == "full", result


def test_readme_in_docker(docker):
    done = docker(flags_of("Docker, as root") + ["-w", "/root/readme"], ["bash", "-c", "bash follow 2>&1"])
    pages.assert_script_prints(PRINTED, done.stdout)


DAEMON = """
export XDG_RUNTIME_DIR=/tmp XDG_STATE_HOME=/tmp
atoll serve 2>/dev/null &
until curl -s -o /dev/null localhost:6000/; do sleep 0.1; done
curl -s localhost:6000/execute -H 'content-type: application/json' -d '{"generated_code": "print(6*7)", "timeout": 20}' | jq -r .stdout
id=$(atoll session new -l python)
atoll session exec "$id" -c 'a = 6'
copy=$(atoll session fork "$id") && atoll session exec "$copy" -c 'a * 7'
"""


@pytest.mark.parametrize("more", [["-v", "state:/var/lib/atoll"], ["--user", "1000", "-e", "HOME=/tmp"]], ids=["root", "user"])
def test_daemon_in_docker(docker, more):
    """Workspaces need a volume, and copies of sessions CAP_SYS_PTRACE."""
    row = "Docker, as root" if more[0] == "-v" else "Docker, no capability added (root or `--user`)"
    done = docker(flags_of(row) + more, ["bash", "-c", DAEMON])
    assert done.stdout.split() == ["42", "42"], done


def test_docker_without_a_capability_is_reduced(docker):
    flags = flags_of("Docker, no capability added (root or `--user`)")
    for more in ([], ["--user", "1000", "-e", "HOME=/tmp"]):
        result = json.loads(docker(flags + more, RUN).stdout)
        assert result["stdout"] == "42\n" and result["isolation"]["tier"] == "reduced", result
        assert "unique-uid" in result["isolation"]["missing"]


def test_docker_default_profile_is_refused_with_its_cure(docker):
    for flags in ([], ["--user", "1000", "-e", "HOME=/tmp"], ["--cap-add", "SYS_ADMIN", "-v", "/sys/fs/cgroup:/sys/fs/cgroup"]):
        done = docker(flags, RUN[:-1])
        assert done.returncode == 126, done
        assert "in Docker give --security-opt seccomp=unconfined" in done.stderr and "sysctl" not in done.stderr
        assert ("--isolation minimal" in done.stderr) == ("--user" not in flags)


MINIMAL = """
run() { atoll run --no-daemon --isolation minimal "$@"; }
run -l python -c 'print(6*7)' --json
run -l c -c 'int puts(const char *); int main(void) { return puts("compiled") < 0; }'
echo secret > /root/canary; echo public > /tmp/canary; sleep 300 & victim=$!
run -l python --timeout 20 - -- "$victim" <<'END'
import os, signal, socket, sys
def attempt(f, *args):
    try: f(*args)
    except OSError as e: return e.errno
    return 0
others = [1, os.getppid(), int(sys.argv[1])]
seen = {attempt(os.kill, p, 9) for p in others}                                                                    # P03
seen |= {attempt(open, f"/proc/{p}/{n}") for p in others for n in ("environ", "mem", "maps")}                     # P04
seen |= {attempt(open, p, m) for p, m in (("/root/canary", "r"), ("/tmp/canary", "r"), ("/etc/shadow", "r"), ("/usr/x", "w"), ("/tmp/x", "w"))}
seen |= {attempt(os.listdir, p) for p in ("/", "/root", "/proc", "/sys", "/dev", "/tmp")}                         # F01, F02, F03
seen |= {attempt(f) for f in (lambda: os.setuid(0), lambda: os.chroot("."), lambda: os.mknod("n", 0o20666, 259))}  # P02, F06, F12
seen |= {attempt(socket.socket, family) for family in (1, 2, 10, 16)}                                             # K04, N01
print("refused with", sorted(seen))
END
run -l python --timeout 1 --pids 30 -c '
import os
while True:
    try:
        if os.fork() == 0: os.setsid()
    except OSError: pass'
echo "bomb: $?"
run -l bash -c '(setsid sh -c "trap : TERM HUP INT; while :; do sleep 1; done" </dev/null >/dev/null 2>&1 &) ; true'
kill -0 $victim && echo "victim lives"
kill $victim
for _ in $(seq 100); do [ -e /tmp/atoll ] || break; sleep 0.1; done  # the broker removes it behind the result
echo "left: $(ls -d /tmp/atoll 2>&1 | grep -c '^/') $(grep -lsE '^Uid:.18[0-9]{8}' /proc/[0-9]*/status | wc -l)"
"""


def test_docker_default_profile_gives_the_minimal_tier(docker):
    """With the ids of test/security/cases.md that can hold there (P02 to P09, F01 to F12, K04, N01), as an attacker finds them."""
    done = docker(["--cap-add", "SYS_ADMIN"], [*RUN, "--isolation", "minimal"])
    assert json.loads(done.stdout)["isolation"]["tier"] == "minimal", done
    done = docker([], ["sh", "-c", MINIMAL])
    first, compiled, refused, bomb, lives, left = done.stdout.splitlines()
    result = json.loads(first)
    assert result["stdout"] == "42\n" and result["isolation"]["tier"] == "minimal" and result["isolation"]["user"] == "unique", result
    assert {"userns", "overlay", "proc", "cgroup-memory"} <= set(result["isolation"]["missing"]), result
    assert compiled == "compiled" and lives == "victim lives" and left == "left: 0 0", done
    assert refused == f"refused with {[errno.EPERM, errno.EACCES, errno.EAFNOSUPPORT]}" and bomb == "bomb: 124", done


def test_docker_minimal_tier_takes_root(docker):
    done = docker(["--user", "1000", "-e", "HOME=/tmp"], [*RUN[:-1], "--isolation", "minimal"])
    assert done.returncode == 126 and "takes root" in done.stderr, done


def test_remove_keeps_and_purge_removes(fresh):
    data = fresh / "var/lib/atoll/history"
    data.mkdir(parents=True, exist_ok=True)
    command("chroot", fresh, "dpkg", "-r", "libatoll-dev", "libatoll0", "atoll")
    assert data.exists() and (fresh / "etc/atoll/atoll.yaml").exists() and not (fresh / "usr/bin/atoll").exists()
    command("chroot", fresh, "dpkg", "-P", "atoll")
    assert not data.parent.exists() and not (fresh / "etc/atoll").exists()


@pytest.mark.skipif(not shutil.which("lintian"), reason="lintian is not installed")
def test_lintian_finds_no_error(fresh):
    done = command("lintian", "--allow-root", "--fail-on", "error", *(ROOT / "build").glob("*.deb"), ok=False)
    assert done.returncode == 0, done.stdout
