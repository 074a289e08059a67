# SPDX-License-Identifier: Apache-2.0
"""What `./dev install` lays out works below any prefix: the command, a C program, completions; what `./dev deb` packs."""
import os
import re
import shutil
import subprocess

import pytest

from program import BINARY, IS_ROOT, ROOT

TREE = BINARY.parent
CODE = """
#include <atoll/atoll.h>
#include <stdio.h>
int main(void) { struct atoll *a; char *json = 0, *problem = 0; return atoll_new(0, &a, &problem) ||
    atoll_run(a, "{\\"language\\":\\"bash\\",\\"code\\":\\"echo $((6*7))\\"}", 0, &json, &problem) ? !!puts(problem) : !puts(json); }
"""


def command(*words, **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=120, **more)
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


def clean(home, **more):
    """Nothing in the environment says where the data is."""
    return {"PATH": os.environ["PATH"], "HOME": str(home), "ATOLL_POOL": "off", "ATOLL_URL": "off", **more}


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    place = tmp_path_factory.mktemp("tests-install") / "prefix"
    command(ROOT / "tools" / "install", "--prefix", place, "--tree", TREE, cwd=ROOT)
    return place


@pytest.fixture(scope="module")
def libraries(prefix):
    return next(prefix.glob("lib/*/pkgconfig/atoll.pc")).parent.parent


def test_command_runs_also_after_the_prefix_was_moved(prefix, tmp_path):
    words = ["run", "--no-daemon", "-l", "bash", "-c", "echo hello"]
    assert command(prefix / "bin/atoll", *words, env=clean(tmp_path)) == "hello\n"
    moved = tmp_path / "elsewhere"
    shutil.copytree(prefix, moved, symlinks=True)
    prefix.rename(prefix.with_name("hidden"))
    try:
        assert command(moved / "bin/atoll", *words, env=clean(tmp_path)) == "hello\n"
    finally:
        prefix.with_name("hidden").rename(prefix)


def test_c_program_compiles_and_finds_the_data(prefix, libraries, tmp_path):
    (tmp_path / "three.c").write_text(CODE)
    env = clean(tmp_path, PKG_CONFIG_PATH=str(libraries / "pkgconfig"))
    flags = command("pkg-config", "--cflags", "--libs", "atoll", env=env).split()
    assert f"-I{prefix}/include" in flags
    command("cc", "three.c", *flags, f"-Wl,-rpath,{libraries}", "-o", "three", cwd=tmp_path)
    assert '"stdout":"42\\n"' in command(tmp_path / "three", env=env)


def test_unit_and_manual_name_the_prefix(prefix):
    unit = (prefix / "lib/systemd/system/atoll.service").read_text()
    assert set(re.findall(r"^Exec\w+=(\S+)", unit, re.M)) == {f"{prefix}/bin/atoll", "/bin/sh"}  # what each Debian has
    assert "\nListenStream=127.0.0.1:8700\n" in (prefix / "lib/systemd/system/atoll.socket").read_text()
    assert (prefix / "share/man/man1/atoll.1").read_text().startswith(".TH ATOLL 1")


def test_completions_of_bash(prefix):
    script = prefix / "share/bash-completion/completions/atoll"
    ask = f'source {script}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _atoll; echo "${{COMPREPLY[*]}}"'

    def complete(*words):
        return command("bash", "-c", ask, "bash", "atoll", *words).split()

    assert complete("hist") == ["history"]
    assert {"list", "show", "replay"} <= set(complete("history", ""))
    assert complete("run", "--mem") == ["--memory"]
    assert complete("history", "list", "--lab") == ["--label"]
    assert complete("run", "") == [] and complete("run", "--", "--mem") == []  # then bash completes files


@pytest.mark.skipif(not shutil.which("zsh"), reason="zsh is not installed")
def test_completions_of_zsh(prefix):
    script = prefix / "share/zsh/site-functions/_atoll"
    ask = (f'compdef() {{ :; }}; _files() {{ echo FILES; }}; _describe() {{ print -l -- "${{(@P)2}}"; }}; source {script}; '
           'words=("$@"); CURRENT=$#; PREFIX=${@[-1]}; _atoll')

    def complete(*words):
        return command("zsh", "-fc", ask, "zsh", "atoll", *words).splitlines()

    assert "run:run a program in a sandbox" in complete("ru")
    assert any(row.startswith("list:") for row in complete("history", ""))
    assert any(row.startswith("--memory:") for row in complete("run", "--mem"))
    assert complete("run", "") == ["FILES"]


@pytest.mark.skipif(not shutil.which("fish"), reason="fish is not installed")
def test_completions_of_fish(prefix, tmp_path):
    script = prefix / "share/fish/vendor_completions.d/atoll.fish"

    def complete(line):
        asked = command("fish", "-N", "-c", f"source {script}; complete -C '{line}'", env=clean(tmp_path))
        return [row.split("\t")[0] for row in asked.splitlines()]

    assert complete("atoll hist") == ["history"]
    assert {"list", "show", "replay"} <= set(complete("atoll history "))
    assert complete("atoll run --mem") == ["--memory"]


@pytest.fixture(scope="module")
def packages():
    if not shutil.which("dh"):
        pytest.skip("debhelper is not installed")
    command(ROOT / "tools" / "deb", cwd=ROOT)
    return {path.name.split("_")[0]: path for path in (ROOT / "build").glob("*.deb")}


def contents(package):
    return set(re.findall(r" \./(\S*[^/\s])(?: ->.*)?$", command("dpkg-deb", "-c", package), re.M))


@pytest.mark.skipif(TREE != ROOT / "build", reason="packages hold the tree `build`")
def test_packages(packages, tmp_path):
    assert set(packages) == {"atoll", "libatoll0", "libatoll-dev"}
    assert {"usr/bin/atoll", "usr/libexec/atoll/atolld", "usr/share/atoll/languages/python.yaml", "etc/atoll/atoll.yaml",
            "usr/share/man/man1/atoll.1.gz", "usr/share/doc/atoll/doc/install.md", "lib/systemd/system/atoll.service",
            "lib/systemd/system/atoll.socket", "usr/lib/sysusers.d/atoll.conf"} <= contents(packages["atoll"])
    assert any(path.endswith("/pkgconfig/atoll.pc") for path in contents(packages["libatoll-dev"]))
    assert any(path.endswith("/libatoll.so.0") for path in contents(packages["libatoll0"]))
    command("dpkg-deb", "-e", packages["atoll"], tmp_path)
    assert (tmp_path / "conffiles").read_text() == "/etc/atoll/atoll.yaml\n"
    assert "systemd-sysusers" in (tmp_path / "postinst").read_text()
    assert not (tmp_path / "preinst").exists()  # it would stop the daemon before an upgrade
    assert 'if [ "$1" = purge ]; then\n\trm -rf /var/lib/atoll ' in (tmp_path / "postrm").read_text()
    version = re.search(r"^ *version: '(.*)',$", (ROOT / "meson.build").read_text(), re.M)[1]
    assert command("dpkg-deb", "-f", packages["atoll"], "Version").startswith(version)


# A copy of this machine's root, which ends with the process; systemd's part is played by $0/systemctl.
ENTER = """
set -e
mount --make-rprivate /
mount -t tmpfs room "$0/machine"
mkdir "$0/machine/upper" "$0/machine/work" "$0/machine/root"
mount -t overlay room -o "lowerdir=/,upperdir=$0/machine/upper,workdir=$0/machine/work" "$0/machine/root"
cd "$0/machine/root"
cp "$0"/*.deb "$0"/upgrade root/
rm -f var/lib/man-db/auto-update
for name in systemctl deb-systemd-invoke; do cp --remove-destination "$0/systemctl" usr/bin/$name; done
for place in proc sys dev; do mount --rbind /$place $place; done
mkdir -p var/lib/atoll
for place in run tmp var/lib/atoll; do mount -t tmpfs room $place; done
mkdir -p run/systemd/system
pivot_root . mnt
umount -l mnt
exec bash /root/upgrade
"""
ASK = """
ask() { curl -s localhost:8700"$@"; }
job() { ask /v1/executions -H 'content-type: application/json' -H "idempotency-key: $1" -d "{\\"language\\": \\"bash\\", \\"code\\": \\"$2\\"}" | jq -r .id; }
"""
SYSTEMCTL = "#!/bin/bash" + ASK + """
echo "systemd: $*"
case "$*" in
*daemon-reload)
	# The old daemon runs on beside the new files.
	readlink /proc/$(cat /run/atoll.pid)/exe
	ask /v1/execute -H 'content-type: application/json' -d '{"language": "python", "code": "print(6 * 7)"}' | jq -r .stdout
	job first 'sleep 1; echo drained' >/tmp/first
	until [ "$(ask /v1/executions/$(cat /tmp/first) | jq -r .status)" = running ]; do sleep 0.05; done
	job second 'echo waited' >/tmp/second
	;;
try-restart*)
	pid=$(cat /run/atoll.pid)
	kill $pid
	while kill -0 $pid 2>/dev/null; do sleep 0.05; done
	setsid atoll serve </dev/null >>/tmp/log 2>&1 &
	echo $! >/run/atoll.pid
	;;
esac
"""
UPGRADE = "set -e" + ASK + """
install() { dpkg --force-unsafe-io -i "$@" 2>&1 | grep -E '^systemd|^/usr|^42|rror' || true; }
ready() { until [ "$(ask /readyz -o /dev/null -w '%{http_code}')" = 200 ]; do sleep 0.05; done; }
echo "installs 0.0.1"
install /root/*_0.0.1_*.deb
echo "queue: {running: 1}" >>/etc/atoll/atoll.yaml
setsid atoll serve </dev/null >>/tmp/log 2>&1 &
echo $! >/run/atoll.pid
ready
echo "upgrades"
rm /root/*_0.0.1_*.deb
install /root/*.deb
ready
readlink /proc/$(cat /run/atoll.pid)/exe
for id in $(cat /tmp/first /tmp/second); do ask "/v1/executions/$id?wait=30" | jq -r '.status + " " + (.stdout | rtrimstr("\\n"))'; done
[ "$(job first 'sleep 1; echo drained')" = $(cat /tmp/first) ] && echo "keys are known"
tail -1 /etc/atoll/atoll.yaml
grep -c 'started.*process=front' /tmp/log
pid=$(cat /run/atoll.pid)
kill $pid
while kill -0 $pid 2>/dev/null; do sleep 0.05; done
"""
UPGRADED = """installs 0.0.1
upgrades
systemd: --system daemon-reload
/usr/bin/atoll (deleted)
42
systemd: try-restart atoll.service
/usr/bin/atoll
success drained
success waited
keys are known
queue: {running: 1}
2
"""


@pytest.mark.skipif(not IS_ROOT, reason="a root directory of its own needs root")
@pytest.mark.skipif(TREE != ROOT / "build", reason="packages hold the tree `build`")
def test_packages_upgrade_over_a_running_daemon(packages, tmp_path):
    """The old one is the same packed again as version 0.0.1: this is about the packages, and test/upgrade about what they hold."""
    for package in (packages["atoll"], packages["libatoll0"]):
        shutil.copy(package, tmp_path)
        command("dpkg-deb", "-R", package, tmp_path / "old")
        control = tmp_path / "old" / "DEBIAN" / "control"
        version = re.search(r"^Version: (.*)$", control.read_text(), re.M)[1]
        control.write_text(control.read_text().replace(version, "0.0.1"))
        command("dpkg-deb", "-Znone", "--root-owner-group", "-b", tmp_path / "old", tmp_path)
        shutil.rmtree(tmp_path / "old")
    (tmp_path / "machine").mkdir()
    (tmp_path / "upgrade").write_text(UPGRADE)
    (tmp_path / "systemctl").write_text(SYSTEMCTL)
    (tmp_path / "systemctl").chmod(0o755)
    assert command("unshare", "--mount", "sh", "-c", ENTER, tmp_path, env=clean("/root")) == UPGRADED
