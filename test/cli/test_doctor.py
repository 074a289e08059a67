# SPDX-License-Identifier: Apache-2.0
"""`atoll doctor`: what this host can enforce, what is missing, the command that fixes it."""
import json
import os
import platform

import pytest

quick = pytest.mark.quick


def flatten(thing):
    return json.dumps(thing).lower()


@quick
@pytest.mark.skipif(os.geteuid() != 0, reason="to mount takes root")
def test_mount_below_usr_is_named(atoll):
    """Without root the kernel lays no overlay over a directory with mounts below it: the run says so, and doctor names the mount."""
    with_mount = ["unshare", "--mount", "--propagation", "private", "sh", "-c", 'mount -t tmpfs tmpfs /usr/games && exec "$@"', "sh"]
    host = atoll.variant(wrap=with_mount)
    assert ("overlay" in host.bash("echo out")["isolation"]["missing"]) == atoll.rootless
    checks = {check["name"]: check for section in host.run(["doctor", "--json"]).json()["sections"] for check in section["checks"]}
    assert checks["overlay"]["verdict"] == ("missing" if atoll.rootless else "ok"), checks["overlay"]
    if atoll.rootless:
        assert "/usr/games" in checks["overlay"]["fix"] and "modprobe" not in checks["overlay"]["fix"]


@quick
def test_table(atoll):
    done = atoll.run(["doctor"])
    for word in ("kernel", platform.release(), "cgroup", "landlock", "seccomp", "overlay", "namespace"):
        assert word.lower() in done.out.lower(), word
    assert done.stderr == b""


def test_verdict_first_and_what_is_in_order_folded(atoll):
    report = atoll.run(["doctor", "--json"]).json()
    checks = [check for section in report["sections"] for check in section["checks"]]
    short, whole = atoll.run(["doctor"]).out.splitlines(), atoll.run(["doctor", "-v"]).out.splitlines()
    assert short[0] == whole[0] == report["summary"]
    warnings = [check for check in checks if check["verdict"] == "warn"]
    if warnings:
        weak = sum(check["weakens"] for check in warnings)
        assert short[1] == f"Warnings: {len(warnings)}, " + (f"of which {weak} weaken{'s' * (weak == 1)} Atoll." if weak else "none of which weakens Atoll.")
    for lines, listed in ((short, [c for c in checks if c["verdict"] != "ok"]), (whole, checks)):
        rows = [line.split()[1] for line in lines if line.startswith("  ") and line.split()[0] in ("ok", "warn", "missing", "?")]
        assert rows == [check["name"] for check in listed], lines
    assert all(check["weakens"] for check in checks if check["verdict"] == "missing")
    assert not any(check["weakens"] or check["fix"] for check in checks if check["verdict"] == "ok")
    assert len(short) < len(whole)


@quick
def test_json_and_exit_code(atoll):
    done = atoll.run(["doctor", "--json"])
    report = done.json()
    text = flatten(report)
    for word in ("kernel", "landlock", "seccomp", "cgroup", "overlay", "userns"):
        assert word in text, word
    assert platform.release() in text
    isolation = atoll.bash(":")["isolation"]
    assert (done.returncode == 0) == (isolation["missing"] == []), (done.returncode, isolation)


def test_languages_are_in_it(atoll):
    text = atoll.run(["doctor"]).out.lower()
    assert "python" in text


@pytest.mark.modes("rootless")
def test_missing_cgroup_comes_with_a_command(atoll):
    done = atoll.run(["doctor"])
    if atoll.bash(":")["isolation"]["cgroup"] == "none":
        assert done.returncode != 0
        assert "sudo" in done.out or "systemd" in done.out or "root" in done.out, done


def test_says_what_was_taken_away(atoll, enosys):
    poor = atoll.variant(wrap=enosys("landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"))
    done = poor.run(["doctor"])
    line = next(line for line in done.out.lower().splitlines() if "landlock" in line)
    assert "no" in line or "missing" in line or "off" in line or "0" in line or "✗" in line, line
    assert done.returncode != 0


def test_no_namespaces(atoll, enosys):
    poor = atoll.variant(wrap=enosys("clone3", "clone-new=EPERM", "unshare=EPERM"))
    done = poor.run(["doctor"])
    assert done.returncode != 0 and "namespace" in done.out.lower(), done


@pytest.mark.modes("root")
@pytest.mark.parametrize("capability", ["sys_admin", "sys_ptrace", "kill"])
def test_root_without_a_capability_is_rootless(atoll, capability):
    """Without these a run seemed to be full, but could not be ended (kill), or workspaces and copies of sessions failed (sys_ptrace)."""
    poor = atoll.variant(wrap=["setpriv", f"--bounding-set=-{capability}", "--"])
    assert "docker run --cap-add SYS_ADMIN --cap-add SYS_PTRACE" in poor.run(["doctor"]).out
    result = poor.bash("while :; do :; done", options=("--timeout", "200ms"))
    assert (result["status"], result["isolation"]["missing"]) == ("timeout", ["unique-uid"]), result
    if capability == "kill":
        done = poor.run(["run", "--isolation", "minimal", "-l", "bash", "-c", ":"])
        assert done.returncode == 126 and "CAP_KILL" in done.err, done


def test_agrees_with_a_run(atoll):
    """The report and a result name the same cgroup mode and Landlock version."""
    isolation = atoll.bash(":")["isolation"]
    text = atoll.run(["doctor"]).out
    assert isolation["cgroup"] in text
    if isolation["landlock"]:
        assert str(isolation["landlock"]) in next(line for line in text.splitlines() if "andlock" in line)


def test_recommends(atoll):
    """What a program could use against its host: its own name in the kernel's log, and nodes that it shares with the host."""
    checks = {check["name"]: check for section in atoll.run(["doctor", "--json"]).json()["sections"] for check in section["checks"]}
    trace = checks["debug.exception-trace"]
    assert (trace["verdict"], "echo debug.exception-trace=0 |" in (trace["fix"] or "")) in (("ok", False), ("warn", True)), trace
    assert ("host" in checks["devices"]["value"]) is atoll.rootless, checks["devices"]
