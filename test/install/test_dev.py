# SPDX-License-Identifier: Apache-2.0
"""What `./dev` says while it works: steps with a bar or lines, the time left also in a first run, and why no sandbox can be made."""
import os
import pty
import subprocess

import pytest

from program import BINARY, IS_ROOT, ROOT

STEPS = "for n in 1 2 3; do echo \"[$n/3] compiling\"; done"
APT = "echo dlstatus:1:50.2:Retrieving; echo pmstatus:gcc:20:Unpacking; echo 'pmstatus:gcc:100:Configured'"


def progress(code, **environment):
    done = subprocess.run([ROOT / "tools/progress", "[2/4] building", "bash", "-c", code], capture_output=True, text=True, timeout=60,
                          env={**os.environ, **environment}, check=False)
    assert done.stdout == ""
    return done.returncode, done.stderr


def on_terminal(code):
    leader, follower = pty.openpty()
    with subprocess.Popen([ROOT / "tools/progress", "[2/4] building", "bash", "-c", code], stdin=subprocess.DEVNULL, stdout=follower, stderr=follower):
        os.close(follower)
        said = b""
        while True:
            try:
                said += os.read(leader, 4096)
            except OSError:  # it has ended
                os.close(leader)
                return said.decode()


def test_steps_are_lines_with_the_time_left():
    assert progress(STEPS) == (0, "")  # faster than the first line
    status, said = progress(STEPS, PROGRESS_SECONDS="0")
    assert status == 0 and said.startswith("[2/4] building 1/3, about ") and said.endswith("[2/4] building 3/3, about 0 s left\n")


def test_installing_is_a_percentage():
    said = progress(APT, PROGRESS_SECONDS="0")[1]
    assert [line.split(",")[0] for line in said.splitlines()] == [f"[2/4] building {at}/100" for at in (25, 60, 100)]
    assert progress("echo Reading...", PROGRESS_SECONDS="0")[1].startswith("[2/4] building, since ")


def test_steps_are_a_bar_on_a_terminal():
    said = on_terminal(STEPS)
    assert "\r[2/4] building 1/3 [##########....................]" in said and "3/3 [##############################]\r\n" in said


def test_a_failure_is_shown():
    status, said = progress("echo pmstatus:gcc:20:Unpacking; seq 99; exit 7", PROGRESS_SECONDS="9")
    assert status == 7 and said.splitlines() == [str(n) for n in range(40, 100)]


def test_a_first_run_knows_each_step():
    """By its name in ./dev."""
    dev = (ROOT / "dev").read_text(encoding="utf-8")
    rows = [line.split("\t") for line in (ROOT / "tools/steps.tsv").read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    for plan in ("test_all", "test_quick"):
        seconds = [int(row[1]) for row in rows if row[0] == plan]
        assert seconds == sorted(seconds) and rows[-1][2] == "end"
    assert all(f"{plan}()" in dev and (name == "end" or name in dev) for plan, _, name in rows)


def in_chroot(*words):
    return subprocess.run(["unshare", "--mount", "sh", "-c", "mount --rbind / /mnt && exec chroot /mnt \"$0\" \"$@\"", ROOT / "dev", *words],
                          capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.skipif(not IS_ROOT, reason="chroot needs root")
def test_a_chroot_is_told_before_anything_is_installed():
    done = in_chroot("run", "examples/hello.py")
    assert done.returncode == 126 and "as in a chroot: enter the directory by pivot_root or systemd-nspawn" in done.stderr, done
    assert "installing" not in done.stderr and "sysctl" not in done.stderr


@pytest.mark.skipif(not IS_ROOT, reason="chroot needs root")
@pytest.mark.skipif(BINARY.parent != ROOT / "build", reason="./dev run runs build/atoll")
def test_the_minimal_tier_needs_no_namespaces():
    done = in_chroot("run", str(ROOT / "examples/hello.py"), "--isolation", "minimal", "--no-daemon")
    assert done.returncode == 0 and done.stdout.startswith("Hello from Python"), done
