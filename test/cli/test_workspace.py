# SPDX-License-Identifier: Apache-2.0
"""Workspaces: directories that stay. A run writes to a layer of its own, which is applied when every process of it is dead."""
import hashlib
import json
import os
import signal
import stat
import subprocess
import threading

import pytest

import oracle
from resident import gone, own, sweep, wait_until  # noqa: F401 (a fixture)

quick = pytest.mark.quick
needs_root = pytest.mark.skipif(not oracle.IS_ROOT, reason="needs to be started as root")


@pytest.fixture
def place(work):
    return work / "state" / "workspaces"


@pytest.fixture
def box(atoll, work):
    """Runs whose workspaces lie in a directory of the test's own."""
    return atoll.variant(env={"ATOLL_STATE_DIR": str(work / "state")})


def request_of(work, **body):
    path = work / "request.json"
    path.write_text(json.dumps(body))
    path.chmod(0o644)
    return ["--request", path]


W = ("--workspace", "w")


@quick
def test_two_runs_see_each_others_files(box, place):
    first = box.python("import os\nos.mkdir('/workspace/d')\nopen('/workspace/d/a.txt', 'w').write('from one')\n"
                       "print(os.getcwd())", options=W)
    assert (first["status"], first["stdout"]) == ("success", "/sandbox\n")
    second = box.bash("cat /workspace/d/a.txt; echo ' and two' >> /workspace/d/a.txt; id -u; stat -c %u /workspace/d/a.txt",
                      options=W)
    assert second["stdout"] == "from one1000\n1000\n"
    assert box.probe("import json; print(json.dumps(open('/workspace/d/a.txt').read()))", options=W) == "from one and two\n"
    # On disk all of it belongs to the owner of the directory, and can be read by others.
    owner = place.stat().st_uid
    for path, mode in ((place / "w", 0o755), (place / "w" / "d", 0o755), (place / "w" / "d" / "a.txt", 0o644)):
        assert (path.stat().st_uid, path.stat().st_gid, stat.S_IMODE(path.stat().st_mode)) == (owner, place.stat().st_gid, mode)


@quick
def test_owner_may_put_files_there(box, place):
    box.bash("true", options=W)
    (place / "w" / "given.txt").write_text("given")
    os.chown(place / "w" / "given.txt", place.stat().st_uid, place.stat().st_gid)
    result = box.bash("cat /workspace/given.txt; echo more >> /workspace/given.txt; rm /workspace/given.txt", options=W)
    assert (result["status"], result["stdout"]) == ("success", "given")
    assert not list((place / "w").iterdir())


def test_others_files_are_theirs(box, place):
    """What another user of the host has put there is as readable as it is to others, and not more."""
    if box.rootless:
        pytest.skip("needs files of another user")
    box.bash("true", options=W)
    for name, mode in (("public", 0o644), ("private", 0o600)):
        (place / "w" / name).write_text(name)
        os.chmod(place / "w" / name, mode)
        os.chown(place / "w" / name, 12345, 12345)
    seen = box.bash("cd /workspace; cat public; cat private; echo x >> public; stat -c %u public", options=W)
    assert seen["stdout"] == "public65534\n"
    assert (place / "w" / "public").read_text() == "public"


@quick
def test_names_are_apart(box, place):
    box.bash("echo one > /workspace/a", options=("--workspace", "one"))
    assert box.bash("ls -A /workspace", options=("--workspace", "two"))["stdout"] == ""
    assert sorted(p.name for p in place.glob("[!.]*")) == ["one", "two"]
    none = box.bash("ls -d /workspace")
    assert none["status"] == "error" and "No such file" in none["stderr"]


@quick
@pytest.mark.parametrize("name", ["", ".", "..", "../w", "a/b", "/etc", "-x", ".hidden", "a b", "a\nb", "ä", "x" * 64])
def test_bad_names_are_refused(box, work, name):
    result = box.result(request_of(work, language="bash", code="ls /workspace", workspace=name))
    assert result["status"] == "setup_error", result
    assert result["cause"]["detail"].startswith("workspace: "), result


def test_longest_name(box, place):
    assert box.bash("pwd", options=("--workspace", "x" * 63))["status"] == "success"
    assert [p.name for p in place.glob("[!.]*")] == ["x" * 63]


@quick
def test_working_directory(box, work, place):
    body = {"language": "python", "workspace": {"name": "w", "cwd": True},
            "code": "import os; print(os.getcwd(), os.path.abspath(__file__)); open('here', 'w').close()"}
    result = box.result(request_of(work, **body))
    assert result["stdout"] == "/workspace /sandbox/main.py\n"
    assert result["files"] == [], "what is in a workspace is not collected"
    assert [p.name for p in (place / "w").iterdir()] == ["here"]


def test_compilers_do_not_see_it(box, work, place):
    """A product is kept by its source: it must not depend on what lies in a workspace."""
    box.bash("echo '#define X 1' > /workspace/x.h", options=W)
    code = '#include "/workspace/x.h"\nint main(void) { return X; }'
    result = box.result(request_of(work, language="c", code=code, workspace="w"))
    assert result["status"] == "error" and "/workspace/x.h" in result["stderr"], result
    good = '#include <stdio.h>\nint main(void) { fputs("hi", fopen("/workspace/y", "w")); }'
    assert box.result(request_of(work, language="c", code=good, workspace="w"))["status"] == "success"
    assert (place / "w" / "y").read_text() == "hi"


@quick
def test_read_only(box, place):
    box.bash("echo kept > /workspace/a", options=W)
    result = box.bash("cat /workspace/a; echo x > /workspace/b; echo x >> /workspace/a; rm /workspace/a; chmod 777 /workspace/a",
                      options=(*W, "--read-only"))
    assert result["stdout"] == "kept\n"
    assert result["stderr"].count("Read-only file system") + result["stderr"].count("Permission denied") == 4, result
    assert (place / "w" / "a").read_text() == "kept\n"


@quick
def test_links_lead_nowhere_outside(box, place, canary_file):
    """A link is resolved in the sandbox's own root; one that leaves the workspace is not kept, one that stays inside is."""
    seen = box.bash(f"cd /workspace; mkdir d; echo in > a; ln -s {canary_file} file; ln -s / root; ln -s .. up; ln -s d/../.. climb; "
                    "ln -s ../a d/a; ln -s gone dangling; cat file root/etc/shadow; ls root/; ls /; ls up/; ls climb/", options=W)
    assert canary_file.read_text() not in seen["stdout"] + seen["stderr"]
    names = seen["stdout"].split()
    assert names == names[:len(names) // 4] * 4 and "sandbox" in names and "boot" not in names, seen
    assert sorted(p.name for p in (place / "w").iterdir()) == ["a", "d", "dangling"]
    assert (place / "w" / "d" / "a").read_text() == "in\n"
    assert {row["path"] for row in seen["skipped"]} == {"file", "root", "up", "climb"}, seen
    assert all("leads out" in row["reason"] for row in seen["skipped"])
    (place / "w" / "host").symlink_to(canary_file)
    assert canary_file.read_text() not in box.bash("cat /workspace/host", options=W)["stdout"]


@pytest.fixture
def canary_file(work):
    path = work / "canary"
    path.write_text("canary of the host's")
    path.chmod(0o644)
    return path


def test_a_link_is_no_workspace(box, work, place, canary_file):
    """A user who can write beside workspaces, and so exchange one, gets no other directory shown by that."""
    box.bash("true", options=W)
    (place / "trap").symlink_to(work)
    result = box.bash("ls /workspace", options=("--workspace", "trap"))
    assert result["status"] == "internal_error" and "canary" not in result["stdout"], result


@needs_root
@pytest.mark.modes("root")
def test_another_users_directory_is_no_workspace(box, place):
    box.bash("true", options=W)
    other = place / "other"
    other.mkdir()
    os.chown(other, 12345, 12345)
    result = box.bash("ls /workspace", options=("--workspace", "other"))
    assert result["status"] == "internal_error" and "Operation not permitted" in result["cause"]["detail"], result


@quick
def test_what_cannot_be_left_behind(box, place):
    """Nothing that runs as another user, and nothing that another sandbox could be reached through."""
    result = box.python("""
import os, socket, stat, shutil
os.chdir("/workspace")
for name, mode in (("suid", 0o4755), ("sgid", 0o2755), ("sticky", 0o1755)):
    open(name, "w").close()
    os.chmod(name, mode)
os.close(os.open("born", os.O_CREAT | os.O_WRONLY, 0o4755))
os.mknod("node", stat.S_IFREG | 0o4755)
os.mkdir("dir")
os.chmod("dir", 0o7777)
shutil.copy("/usr/bin/su", "su")
os.chmod("su", 0o6755)
os.mkfifo("dir/pipe")
socket.socket(socket.AF_UNIX).bind("socket")
print(oct(os.stat("suid").st_mode))
""", options=W)
    assert (result["status"], result["stdout"], result["applied"]) == ("success", "0o104755\n", True), result
    left = {str(p.relative_to(place / "w")): stat.S_IMODE(p.lstat().st_mode) for p in (place / "w").rglob("*")}
    assert left == {"suid": 0o755, "sgid": 0o755, "sticky": 0o755, "born": 0o755, "node": 0o755, "dir": 0o777, "su": 0o755}
    assert {row["path"] for row in result["skipped"]} == {"dir/pipe", "socket"}, result


@quick
def test_nothing_runs_as_its_owner(box, place):
    """A file that the host has made set-uid is an ordinary one in a sandbox."""
    box.bash("cp /usr/bin/id /workspace/id; chmod 755 /workspace/id", options=W)
    os.chmod(place / "w" / "id", 0o6755)
    assert box.bash("/workspace/id -u; grep -c ' /workspace rw,nosuid,nodev' /proc/self/mountinfo", options=W)["stdout"] == "1000\n1\n"


def fill(path, mib):
    return f"f = open('{path}', 'wb')\nfor _ in range({mib}): f.write(b'x' * (1 << 20)); f.flush()\n"


def test_bytes_are_exact(box, place):
    """What is written quickly, what has no name any more, what was there before and is written to: all of it counts at once."""
    disk = (*W, "--disk", "16m")
    unlinked = box.probe("""
import errno, json, os
f = open("/workspace/nameless", "wb", buffering=0)
os.unlink("/workspace/nameless")
held = 0
try:
    while held < 64 << 20:
        held += f.write(bytes(1 << 20))
except OSError as e:
    print(json.dumps([held, e.errno == errno.ENOSPC]))
""", options=disk)
    assert unlinked[0] <= 16 << 20 and unlinked[1], unlinked
    quick_one = box.python(fill("/workspace/big", 200), options=disk)
    assert (quick_one["status"], quick_one["cause"]["kind"], quick_one["cause"]["limit_key"]) == ("limit", "disk", "disk"), quick_one
    assert quick_one["applied"] and (place / "w" / "big").stat().st_size <= 16 << 20
    # What is over already may be read, and made less; a copy of it that does not fit is refused when it would be made.
    (place / "w" / "big").write_bytes(bytes(20 << 20))
    os.chown(place / "w" / "big", place.stat().st_uid, place.stat().st_gid)
    seen = box.probe("""
import errno, json, os
try:
    open("/workspace/big", "ab")
    print(json.dumps("opened"))
except OSError as e:
    print(json.dumps([e.errno == errno.ENOSPC, os.path.getsize("/workspace/big")]))
""", options=disk)
    assert seen == [True, 20 << 20]
    only_deletes = box.bash("rm /workspace/*", options=(*W, "--disk", "1m"))
    assert (only_deletes["status"], only_deletes["applied"]) == ("success", True), only_deletes
    assert [(c["path"], c["change"]) for c in only_deletes["changes"]] == [("big", "removed")]
    assert not list((place / "w").iterdir())


def test_files_are_exact(box, place):
    result = box.python("for i in range(2000): open(f'/workspace/{i}', 'w').close()", options=(*W, "--files", "100"))
    assert (result["status"], result["cause"]["kind"], result["cause"]["limit_key"]) == ("limit", "disk", "files"), result
    n = len(list((place / "w").iterdir()))
    assert 80 < n <= 100 and len(result["changes"]) == n
    # Removing what was there takes a mark each.
    assert box.bash("rm /workspace/*", options=(*W, "--files", "150"))["status"] == "success"
    assert not list((place / "w").iterdir())


def test_file_size(box, place):
    result = box.python(fill("/workspace/big", 8), options=(*W, "--file-size", "2m"))
    elsewhere = box.python(fill("/tmp/big", 8), options=("--file-size", "2m"))
    for key in ("status", "exit_code", "cause"):
        assert result[key] == elsewhere[key], (key, result, elsewhere)
    assert result["cause"]["limit_key"] == "file_size"


def test_leases_are_private(box, place):
    """A lease, a lock and a watch of one run are nothing to another, which has inodes of its own."""
    box.bash("echo old > /workspace/f", options=W)
    holder = box.popen(["run", "--json", *W, "-l", "python", "-c", """
import fcntl, sys, time
f = open("/workspace/f", "r+")
try:
    fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_WRLCK)
except OSError:
    pass
fcntl.flock(f, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        seen = box.probe("""
import fcntl, json
f = open("/workspace/f", "r+")
fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
f.write("new")
print(json.dumps("locked"))
""", options=W)
        assert seen == "locked" and (place / "w" / "f").read_text() == "new\n"
    finally:
        holder.stdin.close()
        assert holder.wait(60) == 0
        holder.stdout.close()


CHANGES = """
import os
os.chdir("/workspace")
open("same", "r+").write("same")
open("changed", "w").write("new")
os.chmod("mode", 0o755)
os.remove("removed")
os.rename("moved", "moved-to")
os.makedirs("new/dir")
open("new/dir/file", "w").write("x")
open("gone", "w").close(); os.remove("gone")
import shutil; shutil.rmtree("tree"); os.mkdir("tree"); open("tree/only", "w").write("y")
open("sparse", "wb").truncate(1 << 20)
os.link("new/dir/file", "new/link")
os.symlink("changed", "symlink")
"""


def test_changes(box, place, work):
    """Each path, how it changed, its size and its hash; what was only read or written as it was is no change."""
    box.bash("cd /workspace; for f in same changed mode removed moved; do printf $f > $f; done; mkdir tree; echo a > tree/a; echo b > tree/b", options=W)
    result = box.python(CHANGES, options=W)
    assert (result["status"], result["applied"]) == ("success", True), result
    assert {c["path"]: c["change"] for c in result["changes"]} == {
        "changed": "changed", "mode": "changed", "removed": "removed", "moved": "removed", "moved-to": "added", "new": "added",
        "new/dir": "added", "new/dir/file": "added", "new/link": "added", "tree/a": "removed", "tree/b": "removed",
        "tree/only": "added", "sparse": "added", "symlink": "added"}, result["changes"]
    space = place / "w"
    for c in result["changes"]:
        if c["change"] != "removed" and c["type"] == "file":
            data = (space / c["path"]).read_bytes()
            assert (c["size"], c["sha256"]) == (len(data), hashlib.sha256(data).hexdigest()), c
        assert "conflict" not in c
    assert (space / "same").read_text() == "same" and sorted(p.name for p in (space / "tree").iterdir()) == ["only"]
    assert (space / "new" / "link").stat().st_ino == (space / "new" / "dir" / "file").stat().st_ino
    assert (space / "sparse").stat().st_blocks * 512 < 1 << 20
    nothing = box.bash("cat /workspace/changed", options=W)
    assert (nothing["changes"], nothing["applied"]) == ([], True)
    assert not {"changes", "applied"} & set(box.bash("true"))
    read_only = box.bash("ls /workspace", options=(*W, "--read-only"))
    assert not {"changes", "applied"} & set(read_only)


def test_when_to_apply(box, place, work):
    """always also behind a limit; on_success behind an end with 0 alone; never only lists."""
    code = "echo {0} > /workspace/f; echo $(cat /workspace/f); {1}"
    ends = {"true": "success", "exit 3": "error", "kill -9 $$": "error", "sleep 30": "timeout"}
    n = 0
    for end, status in ends.items():
        for when in ("always", "on_success", "never"):
            n += 1
            before = (place / "w" / "f").read_text() if n > 1 else None
            options = (*W, "--timeout", "1", "--commit", when) if end == "sleep 30" else (*W, "--commit", when)
            result = box.bash(code.format(n, end), options=options)
            applied = when == "always" or (when == "on_success" and status == "success")
            assert (result["status"], result["stdout"], result["applied"]) == (status, f"{n}\n", applied), result
            assert [(c["path"], c["size"]) for c in result["changes"]] == [("f", len(f"{n}\n"))]
            assert "apply_error" not in result
            assert (place / "w" / "f").read_text() == (f"{n}\n" if applied else before)
    assert box.bash("rm /workspace/f", options=(*W, "--discard"))["applied"] is False
    assert (place / "w" / "f").exists()
    body = {"language": "bash", "code": "rm /workspace/f", "workspace": "w", "commit": "never"}
    assert box.result(request_of(work, **body))["applied"] is False
    bad = box.result(request_of(work, **{**body, "commit": "later"}))
    assert bad["cause"]["detail"] == "commit: 'later' is not always, on_success or never", bad


def test_stages_share_it(box, place):
    """The layer is the run's: a later stage sees what an earlier one wrote, and it is applied once."""
    result = box.result([*W, "--commit", "on_success", "--stage", "one=echo 1 > /workspace/a", "--stage", "two=cat /workspace/a; exit 1"])
    assert (result["stdout"], result["applied"]) == ("1\n", False) and not (place / "w" / "a").exists(), result
    assert box.result([*W, "--stage", "one=echo 1 > /workspace/a", "--stage", "two=rm /workspace/a"])["changes"] == []


def test_depth_and_closed_directories(box, place):
    """A program can hide nothing by depth or by mode, and can leave nothing that the next one cannot remove."""
    deep = box.python("import os\nos.chdir('/workspace')\nfor i in range(200):\n    os.mkdir('d'); os.chdir('d')\nopen('f', 'w').close()", options=W)
    assert deep["applied"] and any("deep" in row["reason"] for row in deep["skipped"]), deep
    closed = box.bash("cd /workspace; mkdir c; echo x > c/f; chmod 0 c/f c", options=W)
    assert closed["applied"], closed
    assert box.bash("cd /workspace; chmod 700 c; chmod 600 c/f; cat c/f; rm -r c d", options=W)["stdout"] == "x\n"
    assert not list((place / "w").iterdir())


def test_directories_move(box, place):
    """A directory that was there before cannot be renamed there (EXDEV): programs copy it, as between two disks."""
    box.bash("mkdir -p /workspace/a/b; echo x > /workspace/a/b/f", options=W)
    assert box.bash("mv /workspace/a /workspace/z; cat /workspace/z/b/f", options=W)["stdout"] == "x\n"
    assert [p.name for p in (place / "w").iterdir()] == ["z"]


def test_two_at_once(box, place):
    """Runs at once merge by path; of what both wrote the later end wins, and says so."""
    box.bash("echo 0 > /workspace/both", options=W)
    slow = box.popen(["run", "--json", *W, "-l", "bash", "-c", "echo slow > /workspace/both; echo slow > /workspace/slow; cat"],
                     stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    seen = False
    try:
        # It has begun when its process is there: until then it may not see what it will overwrite.
        while not seen:
            seen = slow.poll() is None and any(b"cat" in line for line in subprocess.run(
                ["ps", "-e", "-o", "args="], capture_output=True, check=True).stdout.splitlines() if line == b"cat")
        quick_one = box.bash("cat /workspace/both; echo quick > /workspace/both; echo quick > /workspace/quick", options=W)
        assert quick_one["stdout"] == "0\n" and not [c for c in quick_one["changes"] if "conflict" in c], quick_one
    finally:
        out = slow.communicate(b"")[0]
    result = json.loads(out)
    assert {c["path"]: c.get("conflict", False) for c in result["changes"]} == {"both": True, "slow": False}, result
    assert {p.name: p.read_text() for p in (place / "w").iterdir()} == {"both": "slow\n", "slow": "slow\n", "quick": "quick\n"}


def test_many_at_once(box, place):
    results = []

    def run(n):
        results.append(box.bash(f"for i in $(seq 20); do echo {n} >> /workspace/all; done; echo {n} > /workspace/own{n}", options=W))

    threads = [threading.Thread(target=run, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [(r["status"], r["applied"]) for r in results] == [("success", True)] * 8, results
    lines = (place / "w" / "all").read_text().split()
    assert len(lines) % 20 == 0 and all(lines.count(n) in (0, 20) for n in "01234567"), "each run's file is there whole"
    assert len(list((place / "w").iterdir())) == 9


def test_quota(box, place):
    """A workspace has a bound of its own; a run that would exceed it applies nothing, and one that makes room may."""
    small = box.variant(env={"ATOLL_WORKSPACES_BYTES": "8m", "ATOLL_WORKSPACES_FILES": "40"})
    assert small.python(fill("/workspace/a", 6), options=W)["applied"]
    full = small.python(fill("/workspace/b", 6), options=W)
    assert (full["status"], full["applied"]) == ("success", False) and "workspaces.bytes" in full["apply_error"], full
    assert "disk" in full["usage"]["limit_hits"] and [c["path"] for c in full["changes"]] == ["b"]
    assert [p.name for p in (place / "w").iterdir()] == ["a"]
    many = small.bash("cd /workspace; touch $(seq 60)", options=W)
    assert not many["applied"] and "workspaces.files" in many["apply_error"], many
    assert small.bash("rm /workspace/a; head -c 6m /dev/zero > /workspace/b", options=W)["applied"]
    assert [p.name for p in (place / "w").iterdir()] == ["b"]


def test_large_trees(box, place):
    result = box.python("""
import os
os.chdir("/workspace")
for d in range(30):
    os.makedirs(f"t/{d}")
    for f in range(100):
        with open(f"t/{d}/{f}", "w") as file: file.write(f"{d} {f}")
""", options=W)
    assert result["applied"] and len(result["changes"]) + result.get("changes_omitted", 0) == 3031, result["status"]
    assert len(list((place / "w").rglob("*"))) == 3031
    assert box.bash("rm -r /workspace/t", options=W)["applied"] and not list((place / "w").iterdir())


def test_killed_while_it_is_applied(box, place):
    """kill -9 of all that is at work: the next run finds all of it or none, and what was being prepared goes with the next commit."""
    n, store = 500, place / ".atoll-commit" / "w"
    code = f"import os\nos.chdir('/workspace')\nfor i in range({n}):\n    with open(str(i), 'w') as f: f.write(str(i))\nprint('written')"
    for moment in ("stage/1", "journal"):
        for _ in range(20):  # the moment is short, and a run may end before this process sees it
            box.bash("rm -f /workspace/*", options=W)
            run = box.popen(["run", "--json", *W, "-l", "python", "-c", code], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            while run.poll() is None and not (store / moment).exists():
                pass
            if run.poll() is None:
                break
            run.communicate()
        journalled = (store / "journal").exists()
        pids = [run.pid, *oracle.below(run.pid)]
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        run.communicate()
        wait_until(lambda: gone(pids), why="something survived kill -9")
        left = box.bash("cd /workspace; ls | wc -l; cat * | wc -c", options=W)["stdout"]
        assert left in ("0\n0\n", f"{n}\n{sum(len(str(i)) for i in range(n))}\n"), (moment, left)
        assert not journalled or left.startswith(str(n)), "what was journalled is applied"
        assert not (store / "journal").exists()
        box.bash("echo > /workspace/next", options=W)
        wait_until(lambda: not any((store / name).exists() and any((store / name).iterdir()) for name in ("stage", "trash")),
                   why="what a commit needs no more goes behind its answer")
    sweep(box)


@needs_root
@pytest.mark.modes("root")
def test_full_disk(box, work):
    """A host without room for the changes keeps what it had, and the result says so."""
    state = work / "state"
    state.mkdir()
    small = box.variant(wrap=["unshare", "--mount", "sh", "-c", f'mount -t tmpfs -o size=4m tmpfs {state} && exec "$@"', "sh"])
    result = small.python(fill("/workspace/big", 8), options=W)
    assert (result["status"], result["applied"]) == ("success", False) and "disk" in result["apply_error"], result
    assert [(c["path"], c["size"]) for c in result["changes"]] == [("big", 8 << 20)]


def test_rest_is_private(box):
    """A workspace in common opens nothing else: neither /tmp, /dev/shm and /sandbox nor System V memory."""
    box.python("import os\nfor d in ('/tmp', '/dev/shm', '/sandbox'):\n    open(d + '/mark', 'w').write('x')", options=W)
    assert box.bash("ls /tmp /dev/shm /sandbox", options=W)["stdout"].split() == ["/dev/shm:", "/sandbox:", "main.sh", "/tmp:"]


def test_through_a_pool(own, work):
    """With a pool, the broker's workspaces count, not the caller's; without privilege such runs are cold."""
    front = own(env={"ATOLL_STATE_DIR": str(work / "state")}).any_front()
    for n in range(3):
        assert front.bash(f"ls /workspace | wc -l; echo x > /workspace/{n}", options=W)["stdout"] == f"{n}\n"
    assert len(list((work / "state" / "workspaces" / "w").iterdir())) == 3


@needs_root
@pytest.mark.modes("root")
def test_warm(own, work):
    """Cells made ahead have it mounted already."""
    pool = own(env={"ATOLL_STATE_DIR": str(work / "state")})
    front = pool.front()
    for n in range(6):
        result = front.python("import os\nprint(len(os.listdir('/workspace')), os.stat('/workspace').st_uid)\n"
                              f"open('/workspace/{n}', 'w').write('x')", options=W)
        assert (result["status"], result["stdout"]) == ("success", f"{n} 1000\n"), result
    other = front.python("import os; print(os.listdir('/workspace'))", options=("--workspace", "v"))
    assert other["stdout"] == "[]\n"
    assert front.python("import os; print(os.path.exists('/workspace'))")["stdout"] == "False\n"
    assert front.python("open('/workspace/9', 'w').write('x')", options=(*W, "--discard"))["applied"] is False
    assert not (work / "state" / "workspaces" / "w" / "9").exists()
    # What runs beside it meanwhile is no conflict with a cell that was made before.
    for n in range(3):
        result = front.python(f"open('/workspace/0', 'w').write('{n}')", options=W)
        assert [(c["path"], c["change"], c.get("conflict")) for c in result["changes"]] == [("0", "changed", None)], result
