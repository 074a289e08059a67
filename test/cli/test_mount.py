# SPDX-License-Identifier: Apache-2.0
"""`--mount SRC:DEST[:ro]`: directories of the host that programs see, or change at their end, where the policy permits it."""
import json
import os
import shutil
import socket
import stat
import subprocess

import pytest

from oracle import IS_ROOT, NOBODY
from web import Served


@pytest.fixture
def shown(atoll, stage, work):
    """A directory that every user may read, and a command line under a policy that permits it."""
    top = stage.top / f"mounted-{atoll.mode}"
    (top / "sub").mkdir(parents=True, exist_ok=True)
    (top / "data").write_text("data")
    (top / "sub" / "more").write_text("more")
    policy = work / "mine.yaml"
    policy.write_text(f"name: mine\nfilesystem: {{usr: [/usr], mounts: [{top}]}}\n")
    policy.chmod(0o644)
    return top, lambda *words, **more: atoll.run(["run", "--policy", policy, *words], cwd=top, **more)


@pytest.mark.quick
def test_a_directory_is_shown(atoll, shown):
    """Its path may be relative and lead through links, which are resolved before the policy is asked."""
    top, run = shown
    (top / "link").symlink_to("sub") if not (top / "link").is_symlink() else None
    code = "cat /data/data /deep/er/more; echo; (echo x > /data/data) 2>/dev/null || echo kept; mkdir /data/new 2>/dev/null || echo refused"
    done = run("--mount", ".:/data:ro", "-v", "link:/deep/er:ro", "-l", "bash", "-c", code)
    assert (done.returncode, done.out) == (0, "datamore\nkept\nrefused\n"), done
    assert (top / "data").read_text() == "data" and not (top / "new").exists()
    assert "mounts" not in json.loads(run("--mount", ".:/data:ro", "--json", "-l", "bash", "-c", ":").out)["isolation"]["missing"]


@pytest.mark.parametrize("words, code, said", [
    (["--mount", "/etc:/data:ro"], 126, "policy 'mine' shows no '/etc'"),
    (["--explain", "--mount", "/etc:/data:ro"], 126, "policy 'mine' shows no '/etc'"),
    (["--mount", "sub:/usr/data:ro"], 125, "a place of the sandbox itself"),
    (["--mount", "sub:/sandbox/data:ro"], 125, "a place of the sandbox itself"),
    (["--mount", "sub:data:ro"], 125, "not an absolute path"),
    (["--mount", "sub:/a:ro", "--mount", "sub:/a/b:ro"], 125, "lie in each other"),
    (["--mount", "nope:/data:ro"], 125, "cannot open 'nope'"),
    (["--mount", "data:/data:ro"], 125, "it is no directory"),
    (["--mount", "sub:/data"], 126, "policy 'mine' lets no program write to"),
    (["-v", "sub:/data:rw"], 126, "/sub:rw', or only read it (:ro)"),
    (["-v", "sub"], 125, "wants SRC:DEST, or SRC:DEST:ro"),
    (["-v", "sub:/data:ro,z"], 125, "wants SRC:DEST, or SRC:DEST:ro"),
])
@pytest.mark.modes("rootless")
def test_refused(shown, words, code, said):
    done = shown[1](*words, "-l", "bash", "-c", "echo ran")
    assert (done.returncode, done.out) == (code, "") and said in done.err and done.err.count("\n") == 1, done


def test_what_a_mount_is_no_way_to(atoll, shown, work):
    """A link in the path that a request names, a socket that listens, what only its owner may read, another policy."""
    top, run = shown
    body = work / "body.json"
    (top / "out").symlink_to("/etc") if not (top / "out").is_symlink() else None
    body.write_text(json.dumps({"language": "bash", "code": "ls /data", "mounts": {"/data": f"{top}/out"}}))
    body.chmod(0o644)
    linked = run("--request", body)
    assert linked.returncode == 125 and "leads through a symbolic link" in linked.err, linked
    (top / "listening").unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(top / "listening"))
        os.chmod(top / "listening", 0o777)
        listening.listen()
        code = "import socket\ntry:\n socket.socket(socket.AF_UNIX).connect('/data/listening'); print('in')\nexcept OSError as e: print(type(e).__name__)"
        assert run("--mount", ".:/data:ro", "-l", "python", "-c", code).out == "ConnectionRefusedError\n"
    (top / "secret").write_text("secret")
    (top / "secret").chmod(0o600)
    if IS_ROOT:
        assert run("--mount", ".:/data:ro", "-l", "bash", "-c", "cat /data/secret 2>/dev/null || echo unread").out == "unread\n"
    usual = atoll.run(["run", "--mount", f"{top}:/data:ro", "-l", "bash", "-c", ":"])
    assert usual.returncode == 126 and "policy 'default' shows no" in usual.err
    minimal = atoll.run(["run", "--isolation", "minimal", "--mount", f"{top}:/data:ro", "-l", "bash", "-c", ":"])
    assert minimal.returncode == 126, minimal


@pytest.mark.modes("root")
def test_a_file_system_below_is_not_shown(atoll, shown):
    """A clone without it is refused by the kernel where it hides something."""
    top, _ = shown
    (top / "sub" / "fs").mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "tests", top / "sub" / "fs"], check=True)
    try:
        done = shown[1]("--mount", "sub:/data:ro", "-l", "bash", "-c", "ls /data")
        assert done.returncode == 125 and "a file system is mounted below it" in done.err, done
    finally:
        subprocess.run(["umount", top / "sub" / "fs"], check=True)


@pytest.mark.quick
def test_no_bind_mount_stands_in(atoll, shown):
    """Without overlay: it would lead to sockets that programs of the host listen on."""
    top, run = shown
    done = run("--mount", f"{top}:/data:ro", "-l", "bash", "-c", "ls /data", env={"ATOLL_FORCE_OFF": "overlay"})
    assert done.returncode == 125 and "has no overlay" in done.err, done


@pytest.mark.modes("root")
def test_f06_devices_and_setuid_files_of_a_mount_are_without_effect(shown):
    top, run = shown
    for name, minor in (("null", 3), ("zero", 5)):
        (top / name).unlink(missing_ok=True)
        os.mknod(top / name, 0o20666, os.makedev(1, minor))
        (top / name).chmod(0o666)
    shutil.copy("/usr/bin/id", top / "id")
    (top / "id").chmod(0o4755)
    done = run("--mount", ".:/data:ro", "-l", "bash", "-c", "cat /data/null /data/zero 2>&1 | grep -c 'Permission denied'; /data/id -u; /data/id -g")
    assert done.out == "2\n1000\n1000\n", done


# ------------------------------------------------------------------------------------ writable ones


def give(atoll, path):
    """To a user other than root: what a program writes there belongs to the directory's owner, and not to the uid it ran with."""
    if IS_ROOT:
        os.chown(path, NOBODY, NOBODY)


@pytest.fixture
def written(atoll, work):
    """A directory that programs may change, owned by another user than root, and a command line under a policy that permits it."""
    work.chmod(0o755)
    top = work / "place" / "out"
    top.mkdir(parents=True)
    (top / "old").write_text("old")
    for path in (work / "place", top, top / "old"):
        give(atoll, path)
    policy = work / "writes.yaml"
    policy.write_text(f"name: writes\nfilesystem: {{usr: [/usr], mounts: [/usr/share/doc, '{work}/place:rw']}}\n")
    policy.chmod(0o644)
    return top, lambda *words, **more: atoll.run(["run", "--policy", policy, *words], cwd=work, **more)


@pytest.mark.quick
def test_changes_are_applied_at_the_end(atoll, written, work):
    top, run = written
    code = "cat /deep/er/old; echo new >/deep/er/old; mkdir /deep/er/d; echo x >/deep/er/d/e; rm /deep/er/gone; stat -c %U /deep/er/old"
    (top / "gone").write_text("")
    give(atoll, top / "gone")
    done = run("--mount", "place/out:/deep/er", "-l", "bash", "-c", code)
    assert (done.returncode, done.out) == (0, "oldsandbox\n"), done
    assert sorted(os.listdir(top)) == ["d", "old"] and (top / "old").read_text() == "new\n" and (top / "d" / "e").read_text() == "x\n"
    assert {path.stat().st_uid for path in (top / "old", top / "d", top / "d" / "e")} == {top.stat().st_uid}
    result = json.loads(run("-v", "place/out:/o:rw", "-v", "/usr/share/doc:/doc:ro", "--json", "-l", "bash", "-c", "echo y >/o/more; ls /doc | head -1").out)
    assert [(c["path"], c["change"]) for c in result["changes"]] == [("more", "added")] and result["stdout"], result


@pytest.mark.quick
def test_when_changes_are_not_applied(atoll, written):
    top, run = written
    out = ("--mount", "place/out:/o:rw", "-l", "bash", "-c")
    assert run("--commit", "on_success", *out, "echo x >/o/a; exit 3").returncode == 3
    assert run("--commit", "never", *out, "echo x >/o/b").returncode == 0
    assert run("--read-only", *out, "echo x >/o/c").returncode != 0
    assert sorted(os.listdir(top)) == ["old"]


@pytest.mark.parametrize("words, code, said", [
    (["--mount", "place/out:/o:rw", "--mount", "place/out/d:/p:rw"], 125, "writes to one directory of the host"),
    (["--mount", "place/out:/o:rw", "--workspace", "w"], 125, "writes to one directory of the host"),
    (["--mount", "/usr/share/doc:/o:rw"], 126, "filesystem.mounts lists '/usr/share/doc:rw', or only read it (:ro)"),
    (["--mount", "/etc:/o"], 126, "filesystem.mounts lists '/etc:rw', or use a workspace"),
    (["--policy", "default", "--mount", "place/out:/o"], 126, "policy 'default' lets no program write to"),
    (["--isolation", "minimal", "--mount", "place/out:/o"], 125, "--policy"),
])
@pytest.mark.modes("rootless")
def test_writing_refused(written, words, code, said):
    (written[0] / "d").mkdir()
    done = written[1](*words, "-l", "bash", "-c", "echo ran")
    assert (done.returncode, done.out) == (code, "") and said in done.err, done


def test_what_a_writable_mount_is_no_way_to(atoll, written, work):
    """Set-id files, devices, pipes, sockets, links that lead out, stores of other directories: none of these comes to be on the host."""
    top, run = written
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(top / "listening"))
        os.chmod(top / "listening", 0o777)
        give(atoll, top / "listening")
        listening.listen()
        code = """
import os, socket
def tried(act, *words):
    try:
        act(*words)
        return "done"
    except OSError as e:
        return type(e).__name__
os.chdir("/o")
print(tried(socket.socket(socket.AF_UNIX).connect, "listening"), tried(os.mknod, "null", 0o20666, os.makedev(1, 3)), tried(os.chown, "old", 0, 0))
open("id", "w").write("#!/bin/sh"); os.chmod("id", 0o6777)
os.mkfifo("pipe"); os.symlink("/etc", "out"); os.symlink("../../..", "up"); socket.socket(socket.AF_UNIX).bind("own")
os.makedirs("d/.atoll-commit/x"); os.makedirs(".atoll-commit/y")
os.rename("old", "renamed"); os.link("renamed", "again")
"""
        done = run("--json", "--mount", "place/out:/o", "-l", "python", "-c", code)
        result = json.loads(done.out)
        assert result["stdout"] == "ConnectionRefusedError PermissionError OSError\n", result
    assert sorted(os.listdir(top)) == ["again", "d", "id", "listening", "renamed"] and os.listdir(top / "d") == [], result
    assert stat.S_IMODE((top / "id").stat().st_mode) == 0o777
    assert {"pipe", "out", "up", "own"} <= {entry["path"] for entry in result["skipped"]}, result


@pytest.mark.parametrize("swapped", ["place", "place/out"])
def test_a_link_in_its_path_leads_nowhere(atoll, written, work, swapped):
    """Neither at the beginning nor at the end of the run, when the changes are applied."""
    top, run = written
    (work / "other" / "out").mkdir(parents=True)
    aside = work / "aside"
    body = work / "body.json"
    body.write_text(json.dumps({"language": "bash", "code": "read line; echo x >/o/x", "mounts": {"/o": f"{top}:rw"}}))
    body.chmod(0o644)

    def swap():
        os.rename(work / swapped, aside)
        (work / swapped).symlink_to(work / "other" / swapped[len("place/"):])

    running = atoll.popen(["run", "--json", "--policy", work / "writes.yaml", "--request", body, "--stdin", "-"], cwd=work)
    running.stdin.write(b"")
    swap()
    out, _ = running.communicate(b"go\n", timeout=60)
    assert not list((work / "other").rglob("x")), out
    done = run("--request", body, input="go\n")
    assert done.returncode != 0 and not list((work / "other").rglob("x")), done


@pytest.mark.modes("root")
def test_rights_are_those_of_the_directorys_owner(atoll, written):
    """Another user's files in it stay as they are: one that only root may read is not read, and not changed."""
    top, run = written
    (top / "roots").write_text("secret")
    (top / "roots").chmod(0o600)
    done = run("--mount", "place/out:/o", "-l", "bash", "-c", "cat /o/roots; echo x >/o/roots; cat /o/old")
    assert done.out == "old" and (top / "roots").read_text() == "secret" and (top / "roots").stat().st_uid == 0, done


@pytest.mark.quick
def test_over_http(mode, stage, atoll, written, work):
    """A daemon whose front has a user of its own takes only what its setting lists, also where its policies permit more."""
    top, _ = written
    policies = work / "policies"
    policies.mkdir()
    (policies / "writes.yaml").write_text((work / "writes.yaml").read_text())
    policies.chmod(0o755)
    (policies / "writes.yaml").chmod(0o644)
    request = {"language": "bash", "code": "cat /o/old; echo http >/o/new", "policy": "writes", "mounts": {"/o": f"{top}:rw"}}
    served = Served(atoll, stage.scratch(mode, "mounts"), "--policies-dir", policies, "--set", f"mounts={top}:rw")
    try:
        result = served.web.post("/v1/execute", request).json()
        assert result["stdout"] == "old" and (top / "new").read_text() == "http\n", result
        assert (top / "new").stat().st_uid == top.stat().st_uid
        seen = served.web.post("/v1/execute", {**request, "code": "cat /o/new; : >/o/x", "mounts": {"/o": str(top)}}).json()
        assert seen["stdout"] == "http\n" and seen["exit_code"] != 0 and not (top / "x").exists(), seen
        refused = served.web.post("/v1/execute", {**request, "policy": "default"})
        assert refused.status == 403 and "filesystem.mounts lists" in refused.json()["detail"], refused
        (top.parent / "unlisted").mkdir()
        give(atoll, top.parent / "unlisted")
        result = served.web.post("/v1/execute", {**request, "mounts": {"/o": f"{top.parent}/unlisted:rw"}, "code": "echo x >/o/x"}).json()
        assert os.listdir(top.parent / "unlisted") == ([] if mode == "root" else ["x"]), result
        assert mode != "root" or "its setting `mounts` must list it" in result["cause"]["detail"], result
    finally:
        served.end()
