# SPDX-License-Identifier: Apache-2.0
"""A new Debian: README.md and doc/install.md from `git clone` on; the packages, in a chroot, after pivot_root and in Docker with the flags of doc/install.md, purged."""
import contextlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

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
    pytest.mark.skipif(not os.environ.get("ATOLL_TEST_LONG"), reason="makes a new Debian: only ./dev test --long"),
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
    data.mkdir(parents=True, exist_ok=True)
    command("chroot", fresh, "dpkg", "-r", "libatoll-dev", "libatoll0", "atoll")
    assert data.exists() and (fresh / "etc/atoll/atoll.yaml").exists() and not (fresh / "usr/bin/atoll").exists()
    command("chroot", fresh, "dpkg", "-P", "atoll")
    assert not data.parent.exists() and not (fresh / "etc/atoll").exists()


@pytest.mark.skipif(not shutil.which("lintian"), reason="lintian is not installed")
def test_lintian_finds_no_error(fresh):
    done = command("lintian", "--allow-root", "--fail-on", "error", *(ROOT / "build").glob("*.deb"), ok=False)
    assert done.returncode == 0, done.stdout
