# SPDX-License-Identifier: Apache-2.0
"""The packages in a new Debian: installed, used in a chroot, after pivot_root and in Docker with the flags of doc/install.md, purged."""
import contextlib
import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from program import IS_ROOT, ROOT

TAR = ROOT / "build" / "fresh-root.tar"
PAGE = (ROOT / "doc" / "install.md").read_text()
RUN = ["atoll", "run", "--no-daemon", "-l", "python", "-c", "print(6*7)", "--json"]
C_CODE = re.search(r"```c\n(.*?)```", PAGE, re.S)[1]

pytestmark = [
    pytest.mark.apart,
    pytest.mark.skipif(not os.environ.get("ATOLL_TEST_LONG"), reason="makes a new Debian: only ./dev test --long"),
    pytest.mark.skipif(not IS_ROOT, reason="root directories and dockerd need root"),
    pytest.mark.skipif(not TAR.exists(), reason="there is no build/fresh-root.tar: tools/fresh-root makes it"),
]


ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/root", "LANG": "C.UTF-8"}  # the new root has no TMPDIR of the session


def command(*words, ok=True, timeout=180, **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=timeout, env=ENVIRONMENT, **more)
    assert done.returncode == 0 or not ok, f"{words}: {done.stdout}{done.stderr}"
    return done


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    """A root directory with the packages installed."""
    command(ROOT / "tools" / "deb", cwd=ROOT)
    place = tmp_path_factory.mktemp("reef-fresh") / "root"
    place.mkdir()
    command("tar", "-C", place, "-xf", TAR)
    place.chmod(0o755)
    for package in (ROOT / "build").glob("*.deb"):
        shutil.copy(package, place / "root")
    command("chroot", place, "sh", "-c", "dpkg -i /root/*.deb")
    (place / "root/hello.c").write_text(C_CODE)
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


@pytest.fixture(scope="module")
def docker(fresh):
    """Runs in a container: docker(flags, command). A dockerd of its own, without a network."""
    if not Path("/usr/sbin/dockerd").exists():
        pytest.skip("dockerd is not installed")
    place = Path(os.path.realpath("/var/tmp")) / f"reef-docker-{os.getpid()}"
    place.mkdir()
    host = f"unix://{place}/docker.sock"
    with open(place / "log", "wb") as log, contextlib.ExitStack() as stack:
        daemon = subprocess.Popen(["/usr/sbin/dockerd", "--iptables=false", "--bridge=none", "--data-root", place / "data", "--exec-root",
                                   place / "exec", "--pidfile", place / "pid", "-H", host], stdout=log, stderr=log)
        stack.callback(lambda: shutil.rmtree(place, ignore_errors=True))
        stack.callback(daemon.wait)
        stack.callback(daemon.terminate)
        end = time.monotonic() + 60
        while not (place / "docker.sock").exists() and time.monotonic() < end and daemon.poll() is None:
            time.sleep(0.1)
        if daemon.poll() is not None or not (place / "docker.sock").exists():
            pytest.skip(f"dockerd does not start here: {(place / 'log').read_text()[-300:]}")
        command("sh", "-c", f"tar -C {fresh} --exclude=./proc/* --exclude=./sys/* -c . | /usr/bin/docker -H {host} import - fresh")
        yield lambda flags, words: command("/usr/bin/docker", "-H", host, "run", "--rm", "--network", "none", *flags, "fresh", *words, ok=False)


def flags_of(row):
    """The flags in the second column of the row of doc/install.md that begins so."""
    return re.search(r"^\| " + re.escape(row) + r" \| `([^`]*)`", PAGE, re.M)[1].split()


def test_docker_with_the_documented_flags_is_full(docker):
    done = docker(flags_of("Docker, as root"), RUN)
    result = json.loads(done.stdout)
    assert result["stdout"] == "42\n" and result["isolation"]["tier"] == "full", result


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


def test_remove_keeps_and_purge_removes(fresh):
    data = fresh / "var/lib/atoll/history"
    data.mkdir(parents=True)
    command("chroot", fresh, "dpkg", "-r", "libatoll-dev", "libatoll0", "atoll")
    assert data.exists() and (fresh / "etc/atoll/atoll.yaml").exists() and not (fresh / "usr/bin/atoll").exists()
    command("chroot", fresh, "dpkg", "-P", "atoll")
    assert not data.parent.exists() and not (fresh / "etc/atoll").exists()


@pytest.mark.skipif(not shutil.which("lintian"), reason="lintian is not installed")
def test_lintian_finds_no_error(fresh):
    done = command("lintian", "--allow-root", "--fail-on", "error", *(ROOT / "build").glob("*.deb"), ok=False)
    assert done.returncode == 0, done.stdout
