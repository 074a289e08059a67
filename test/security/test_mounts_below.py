# SPDX-License-Identifier: Apache-2.0
"""Mounts of the host below /usr, as those of a GPU's driver: a root broker shows each by itself, and none is a way out."""
import os
import shutil
import socket
import subprocess

import pytest

from resident import own

pytestmark = [pytest.mark.modes("root"), pytest.mark.cold("it has cells of its own")]
quick = pytest.mark.quick

HOSTILE = r"""
import os, socket
def tried(act):
    try:
        return act()
    except OSError as e:
        return type(e).__name__
def connect(path):
    socket.socket(socket.AF_UNIX).connect(path)
    return "connected"
def write(path):
    open(path, "w")
    return "written"
print([tried(lambda: open(p).read().strip()) for p in ("/usr/games/data", "/usr/games/deep/er", "/usr/bin/arch", "/usr/bin/yes", "/usr/bin/tac")])
print([tried(lambda: connect(p)) for p in ("/usr/games/listening", "/usr/bin/tac")])
print([tried(lambda: open(p).read(1)) for p in ("/usr/games/zero", "/usr/games/secret")])
print([tried(lambda: write(p)) for p in ("/usr/games/data", "/usr/games/new", "/usr/games/deep/new", "/usr/bin/arch", "/usr/bin/yes")])
print(os.popen("/usr/games/id -u").read().strip(), os.path.exists("/usr/games/hidden"))
"""
OUTCOME = """['data', 'er', 'a library', '', '']
['ConnectionRefusedError', 'PermissionError']
['PermissionError', 'PermissionError']
['OSError', 'OSError', 'OSError', 'OSError', 'OSError']
1000 False
"""


@pytest.fixture
def host(work):
    """A command line's beginning that gives it such mounts: a directory with another in it, files, a device and a socket over files."""
    part = work / "part"
    (part / "deep").mkdir(parents=True)
    work.chmod(0o755)
    (part / "data").write_text("data\n")
    (part / "secret").write_text("secret\n")
    (part / "secret").chmod(0o600)
    os.mknod(part / "zero", 0o20666, os.makedev(1, 5))
    (part / "zero").chmod(0o666)
    shutil.copy("/usr/bin/id", part / "id")
    (part / "id").chmod(0o4755)
    (work / "library").write_text("a library\n")
    mounts = [f"mount --bind {part} /usr/games", "mount -t tmpfs tests /usr/games/deep", "echo er >/usr/games/deep/er",
              f"mount --bind {work}/library /usr/bin/arch", "mount --bind /dev/null /usr/bin/yes", f"mount --bind {work}/single /usr/bin/tac"]
    with socket.socket(socket.AF_UNIX) as listening, socket.socket(socket.AF_UNIX) as single:
        for each, path in ((listening, part / "listening"), (single, work / "single")):
            each.bind(str(path))
            path.chmod(0o777)
            each.listen()
        yield ["unshare", "--mount", "--propagation", "private", "sh", "-c", " && ".join([*mounts, 'exec "$@"']), "sh"]


def check(result, outcome=OUTCOME):
    assert (result["stdout"], result["isolation"]["tier"], result["isolation"]["missing"]) == (outcome, "full", []), result


@quick
def test_f05_each_is_shown_and_none_is_a_way_out(atoll, host):
    check(atoll.variant(wrap=host).python(HOSTILE))


def test_f05_the_same_in_warm_sandboxes(own, host):
    warm = own(wrap=host).front()
    check(warm.python(HOSTILE))
    assert warm.run(["run", "-l", "bash", "-c", "cat /usr/games/data /usr/games/deep/er"]).out == "data\ner\n"


def test_f05_one_that_comes_later(own, work):
    """Zygotes keep the mounts that they began with, so what is mounted later is shown or not, and nothing of it stands open."""
    pool = own(wrap=["unshare", "--mount", "--propagation", "private"])
    front = pool.any_front()
    cold = ["run", "--json", "--read-only", "-l", "bash", "-c", "cat /usr/games/data 2>/dev/null || echo none"]
    check(front.run(cold).json(), "none\n")
    mounts = "mount -t tmpfs tests /usr/games && echo later >/usr/games/data"
    subprocess.run(["nsenter", f"--mount=/proc/{pool.pid}/ns/mnt", "sh", "-c", mounts], check=True)
    result = front.run(cold).json()
    check(result, "later\n" if "later" in result["stdout"] else "none\n")


def test_f05_a_writable_root_has_them_read_only(atoll, host):
    code = "cat /usr/games/data /usr/games/deep/er /usr/bin/arch; (: >/usr/games/new) 2>/dev/null || echo kept; : >/usr/bin/new && echo made"
    done = atoll.variant(wrap=host).run(["run", "--writable-root", "-l", "bash", "-c", code])
    if "does not support it" in done.err:
        pytest.skip("/usr is on a file system without idmapped mounts")
    assert done.out == "data\ner\na library\nkept\nmade\n", done


@pytest.mark.modes("rootless")
def test_without_root_the_tree_is_bound_and_the_result_says_so(atoll, host):
    """What a user namespace cannot lay is not left out in silence; devices and setuid files are without effect nevertheless."""
    result = atoll.variant(wrap=host).python("import os; print(open('/usr/games/data').read().strip(), os.popen('/usr/games/id -u').read().strip())")
    assert result["stdout"] == "data 1000\n" and "overlay" in result["isolation"]["missing"], result
