# SPDX-License-Identifier: Apache-2.0
"""Workspaces: directories that stay. What is shared through them, and what is not; what they may hold; who owns it."""
import json
import os
import shutil
import stat
import subprocess
import threading

import pytest

import oracle
from resident import own  # noqa: F401 (a fixture)

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
    # On disk all of it belongs to whoever has the directory, and can be read by others.
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
    assert sorted(p.name for p in place.iterdir()) == ["one", "two"]
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
    assert [p.name for p in place.iterdir()] == ["x" * 63]


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
    """A link is resolved in the sandbox's own root, by the sandbox; what it was made for on the host is out of reach."""
    box.bash(f"ln -s {canary_file} /workspace/file; ln -s / /workspace/root; ln -s .. /workspace/up", options=W)
    (place / "w" / "host").symlink_to(canary_file)
    seen = box.bash("cd /workspace; cat file host root/etc/shadow; ls root/; ls /; ls up/; ls /workspace/../..", options=W)
    assert canary_file.read_text() not in seen["stdout"] + seen["stderr"]
    names = seen["stdout"].split()
    assert names == names[:len(names) // 4] * 4 and "sandbox" in names and "var" not in names, seen


@pytest.fixture
def canary_file(work):
    path = work / "canary"
    path.write_text("canary of the host's")
    path.chmod(0o644)
    return path


def test_a_link_is_no_workspace(box, work, place, canary_file):
    """Whoever can write beside workspaces, and so exchange one, gets no other directory shown by that."""
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
    """Nothing that runs as somebody else, and nothing that another sandbox could be reached through."""
    result = box.python("""
import os, socket, stat
def attempt(what, call):
    try:
        call()
        print("made", what)
    except OSError as e:
        print("no", what)
os.chdir("/workspace")
open("f", "w").close()
attempt("suid", lambda: os.chmod("f", 0o4755))
attempt("sgid", lambda: os.chmod("f", 0o2755))
attempt("born suid", lambda: os.open("g", os.O_CREAT | os.O_WRONLY, 0o4755))
attempt("nameless suid", lambda: os.open(".", os.O_TMPFILE | os.O_WRONLY, 0o4755))
attempt("nameless sgid", lambda: os.open(".", os.O_TMPFILE | os.O_WRONLY, 0o2755))
attempt("node suid", lambda: os.mknod("h", stat.S_IFREG | 0o4755))
attempt("pipe", lambda: os.mkfifo("p"))
attempt("socket", lambda: socket.socket(socket.AF_UNIX).bind("s"))
attempt("device", lambda: os.mknod("n", stat.S_IFCHR | 0o666, os.makedev(1, 3)))
attempt("hidden", lambda: os.setxattr("f", "security.capability", b"x" * 20))
attempt("given away", lambda: os.chown("f", 0, 0))
""", options=W)
    made = [line for line in result["stdout"].splitlines() if line.startswith("made")]
    # Without Landlock or on a kernel without it pipes and sockets are files like others.
    assert made == [] and len(result["stdout"].splitlines()) == 11, result
    for path in (place / "w").iterdir():
        assert not path.stat().st_mode & 0o6000


SET_ID = """
import ctypes, errno, os, stat, struct
libc = ctypes.CDLL(None, use_errno=True)
def sc(nr, *args):
    ctypes.set_errno(0)
    r = libc.syscall(nr, *(ctypes.c_long(a) if isinstance(a, int) else a for a in args))
    return "made" if r >= 0 else errno.errorcode[ctypes.get_errno()]
AT, C, MODES = -100, os.O_CREAT | os.O_WRONLY, (0o4755, 0o2755, 0o6755)
open("f", "w").close(); os.chmod("f", 0o755)
fd = os.open("f", os.O_RDWR)
out = {}
for mode in MODES:
    how = ctypes.create_string_buffer(struct.pack("QQQ", C, mode, 0))
    out[oct(mode)] = [
        sc(2, b"open", C, mode), sc(257, AT, b"openat", C, mode), sc(257, AT, b".", os.O_TMPFILE | os.O_RDWR, mode),
        sc(2, b".", os.O_TMPFILE | os.O_RDWR, mode), sc(85, b"creat", mode), sc(90, b"f", mode), sc(91, fd, mode),
        sc(268, AT, b"f", mode), sc(452, AT, b"f", mode, 0), sc(452, fd, b"", mode, 0x1000), sc(133, b"mknod", stat.S_IFREG | mode, 0),
        sc(259, AT, b"mknodat", stat.S_IFREG | mode, 0), sc(257, AT, b"high", C | 0xabc << 32, mode | 0xabc << 32),
        sc(437, AT, b"openat2", how, 24), sc(425, 8, how)]
"""


@quick
def test_no_call_makes_a_file_set_id(box, place):
    """Each call that takes a mode, with each of the bits; openat2 and io_uring hide theirs, so there are none."""
    seen = box.probe("import os; os.chdir('/workspace')" + SET_ID + "import json; print(json.dumps(out))", options=W)
    assert seen == {oct(mode): ["EPERM"] * 13 + ["ENOSYS"] * 2 for mode in (0o4755, 0o2755, 0o6755)}
    assert [(p.name, stat.S_IMODE(p.stat().st_mode)) for p in (place / "w").iterdir()] == [("f", 0o755)]


@quick
def test_set_id_files_cannot_be_brought_in(box, place):
    """Neither made elsewhere in the sandbox nor taken from the host's: what has the bits is on other mounts, and copies lose them."""
    seen = box.probe("""
import errno, json, os, shutil, subprocess
def attempt(call, *args):
    try:
        call(*args)
        return "made"
    except OSError as e:
        return errno.errorcode[e.errno]
su = next(p for p in ("/usr/bin/su", "/usr/bin/passwd", "/usr/bin/chsh") if os.stat(p).st_mode & 0o4000)
out = []
for d in ("/sandbox", "/tmp", "/dev/shm"):
    open(d + "/f", "w").close()
    out.append([attempt(os.chmod, d + "/f", 0o4755), attempt(os.link, d + "/f", "/workspace/l"), attempt(os.rename, d + "/f", "/workspace/r")])
out.append([attempt(os.link, su, "/workspace/l"), attempt(os.rename, su, "/workspace/r"), attempt(shutil.copy, su, "/workspace/copy")])
subprocess.run(["cp", "-a", su, "/workspace/cp"], stderr=subprocess.DEVNULL)
subprocess.run(["install", "-m", "4755", su, "/workspace/install"], stderr=subprocess.DEVNULL)
subprocess.run("tar -C /usr/bin -cf - $(basename %s) | tar -C /workspace -xpf -" % su, shell=True, stderr=subprocess.DEVNULL)
print(json.dumps(out))
""", options=W)
    assert seen[:3] == [["EPERM", "EXDEV", "EXDEV"]] * 3, seen
    assert seen[3][0] in ("EXDEV", "EPERM", "EACCES") and seen[3][1] in ("EXDEV", "EROFS", "EACCES"), seen
    left = {p.name: p.stat().st_mode for p in (place / "w").iterdir()}
    assert "cp" in left and not [name for name, mode in left.items() if mode & 0o6000], left


@quick
def test_set_group_id_is_inherited_by_directories_only(box, place):
    """A workspace whose owner has made it set-group-id: what is made there has its group, and programs do not run as it."""
    box.bash("true", options=W)
    os.chmod(place / "w", 0o2755)
    seen = box.probe("""
import json, os
os.chdir("/workspace")
os.mkdir("d", 0o6777)
os.mkdir("d/e", 0o2777)
for path in ("f", "d/f", "d/e/f"):
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o777))
os.mknod("d/n", 0o100777)
print(json.dumps([os.stat(p).st_mode & 0o6000 for p in ("d", "d/e", "f", "d/f", "d/e/f", "d/n")]))
""", options=W)
    assert seen == [0o2000, 0o2000, 0, 0, 0, 0]
    os.chmod(place / "w", 0o755)
    plain = box.probe("import json, os; os.mkdir('/workspace/p', 0o6777); print(json.dumps(os.stat('/workspace/p').st_mode & 0o6000))",
                      options=W)
    assert plain == 0


@quick
def test_filter_is_named(box):
    """What is refused for the sake of workspaces is refused where one can be written to, and nowhere else."""
    code = "touch f; chmod 4755 f; stat -c %a f"
    for options, label, mode in (((), "default@", "4755\n"), (W, "workspace@", "644\n"), ((*W, "--read-only"), "default@", None)):
        result = box.bash(code, options=options)
        assert result["isolation"]["seccomp"].startswith(label), result
        assert mode is None or result["stdout"] == mode, result


@quick
def test_nothing_runs_as_its_owner(box, place):
    """A file that the host has made set-uid is an ordinary one in a sandbox."""
    box.bash("cp /usr/bin/id /workspace/id; chmod 755 /workspace/id", options=W)
    os.chmod(place / "w" / "id", 0o6755)
    assert box.bash("/workspace/id -u; grep -c ' /workspace rw,nosuid,nodev' /proc/self/mountinfo", options=W)["stdout"] == "1000\n1\n"


@pytest.mark.undisturbed
def test_bytes_are_counted(box, place):
    shutil.rmtree(place / "w", ignore_errors=True)
    result = box.python("""
import time
print("begun", flush=True)
with open("/workspace/big", "wb") as f:
    for _ in range(400):
        f.write(b"x" * (1 << 20))
        f.flush()
        time.sleep(0.03)
print("never")
""", options=(*W, "--disk", "8m", "--timeout", "40"))
    assert (result["status"], result["cause"]["kind"], result["cause"]["limit_key"]) == ("limit", "disk", "disk"), result
    assert result["stdout"] == "begun\n" and result["exit_code"] == 137
    assert (place / "w" / "big").stat().st_size < 300 << 20
    # What is full already ends nobody, unless it grows: how else could one make room?
    assert box.bash("sleep 0.5", options=(*W, "--disk", "8m"))["status"] == "success"
    more = box.bash("sleep 1.5; head -c 1m /dev/zero > /workspace/more; sleep 20", options=(*W, "--disk", "8m"))
    assert (more["status"], more["cause"]["kind"], more["cause"]["limit_key"]) == ("limit", "disk", "disk"), more
    assert box.bash("rm /workspace/*; sleep 0.5", options=(*W, "--disk", "8m"))["status"] == "success"
    assert box.bash("head -c 20m /dev/zero > /workspace/more; sleep 20", options=(*W, "--disk", "8m"))["cause"]["kind"] == "disk"


@pytest.mark.undisturbed
def test_files_are_counted(box, place):
    shutil.rmtree(place / "w", ignore_errors=True)
    result = box.python("import os, time\nfor i in range(2000):\n    open(f'/workspace/{i}', 'w').close()\n    time.sleep(0.004)",
                        options=(*W, "--files", "100"))
    assert (result["status"], result["cause"]["kind"], result["cause"]["limit_key"]) == ("limit", "disk", "files"), result
    more = box.bash("sleep 1.5; touch /workspace/more; sleep 20", options=(*W, "--files", "100"))
    assert (more["status"], more["cause"]["limit_key"]) == ("limit", "files"), more
    assert box.bash("rm /workspace/*; sleep 0.5", options=(*W, "--files", "100"))["status"] == "success"


@pytest.mark.undisturbed
def test_depth_hides_nothing(box, place):
    shutil.rmtree(place / "w" / "d", ignore_errors=True)
    result = box.python("import os, time\nos.chdir('/workspace')\nfor i in range(200):\n    os.mkdir('d')\n    os.chdir('d')\n"
                        "open('big', 'wb').truncate(1)\ntime.sleep(20)", options=W)
    assert (result["status"], result["cause"]["kind"]) == ("limit", "disk"), result
    # The next ones have a moment to tidy up, and no more than that to write where nobody counts.
    assert box.bash("sleep 20", options=W)["cause"]["kind"] == "disk"
    assert box.bash("rm -r /workspace/d; sleep 2", options=W)["status"] == "success"


def test_closed_directories_hide_nothing(box, place):
    result = box.bash("cd /workspace; mkdir d; head -c 20m /dev/zero > d/big; chmod 0 d; sleep 20; echo late; chmod 700 d",
                      options=(*W, "--disk", "8m"))
    assert (result["status"], result["cause"]["kind"]) == ("limit", "disk"), result
    subprocess.run(["chmod", "-R", "u+rwX", place], check=True)


def test_many_at_once(box, place):
    """Runs share it as programs of one user share a directory: every append is there."""
    results = []

    def run(n):
        results.append(box.bash(f"for i in $(seq 20); do echo {n} >> /workspace/all; done; echo {n} > /workspace/own{n}", options=W))

    threads = [threading.Thread(target=run, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [r["status"] for r in results] == ["success"] * 8, results
    lines = (place / "w" / "all").read_text().split()
    assert sorted(lines) == sorted(str(n) for n in range(8) for _ in range(20))
    assert len(list((place / "w").iterdir())) == 9


def test_rest_is_private(box):
    """A workspace in common opens nothing else: neither /tmp, /dev/shm and /sandbox nor System V memory."""
    box.python("import os\nfor d in ('/tmp', '/dev/shm', '/sandbox'):\n    open(d + '/mark', 'w').write('x')", options=W)
    assert box.bash("ls /tmp /dev/shm /sandbox", options=W)["stdout"].split() == ["/dev/shm:", "/sandbox:", "main.sh", "/tmp:"]


def test_through_a_pool(own, work):
    """Where the broker stays it is the broker's workspaces that count, whoever asks; without privilege such runs are cold."""
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
    for options, label, answer in ((W, "workspace@", "EPERM\n"), ((), "default@", "made\n")) * 3:
        result = front.python(SET_ID + "print(*{answer for row in out.values() for answer in row[:8]})", options=options)
        assert (result["isolation"]["seccomp"].split("@")[0] + "@", result["stdout"]) == (label, answer), result
    full = front.python("import time\nwith open('/workspace/big', 'wb') as f:\n    while True:\n        f.write(b'x' * 65536)\n"
                        "        f.flush()\n        time.sleep(0.001)", options=(*W, "--disk", "8m"))
    assert full["cause"]["kind"] == "disk", full
