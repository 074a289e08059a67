# SPDX-License-Identifier: Apache-2.0
"""`--mount SRC:DEST:ro`: directories of the host, read-only, where the policy permits them."""
import json
import os
import shutil
import socket
import subprocess

import pytest

from oracle import IS_ROOT


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
    (["--mount", "sub:/data"], 125, "read-only: add :ro"),
    (["-v", "sub:/data:rw"], 125, "--file DEST=SRC"),
    (["-v", "sub"], 125, "wants SRC:DEST:ro"),
    (["-v", "sub:/data:ro,z"], 125, "wants SRC:DEST:ro"),
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
