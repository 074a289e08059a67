# SPDX-License-Identifier: Apache-2.0
"""Hosts that lack clone3, openat2 or Landlock: the sandbox still holds, or the result says what does not.

Two ways: a real seccomp filter around the product (enosys.c), and the product's own ATOLL_FORCE_OFF,
which can only take features away.
"""
import os

import pytest

from probe import NR, probe

LANDLOCK = ("landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self")
LACKS = {"clone3": ("clone3",), "openat2": ("openat2",), "landlock": LANDLOCK,
         "all": ("clone3", "openat2", *LANDLOCK), "pidfd_open": ("pidfd_open",), "close_range": ("close_range",),
         "mount api": ("fsopen", "open_tree", "mount_setattr")}
FORCED = {"clone3": "clone3", "openat2": "openat2", "landlock": "landlock", "all": "landlock,clone3,openat2"}


@pytest.fixture(params=[f"filter:{n}" for n in LACKS] + [f"forced:{n}" for n in FORCED])
def poor(request, atoll, enosys):
    kind, name = request.param.split(":")
    box = atoll.variant(wrap=enosys(*LACKS[name])) if kind == "filter" else atoll.variant(env={"ATOLL_FORCE_OFF": FORCED[name]})
    box.lacks = name
    return box


@pytest.mark.matrix(3)
def test_runs_and_reports(poor):
    result = poor.python("print('hello')")
    if poor.lacks in ("pidfd_open", "close_range", "mount api") and result["status"] != "success":
        assert result["status"] in ("denied", "internal_error") and result["cause"]["detail"], result
        return
    assert (result["status"], result["stdout"]) == ("success", "hello\n"), result
    isolation = result["isolation"]
    if poor.lacks in ("landlock", "all"):
        assert isolation["landlock"] == 0 and "landlock" in isolation["missing"] and isolation["tier"] == "reduced"
    else:
        assert isolation["landlock"] > 0
    if not poor.rootless:
        assert isolation["cgroup"] in ("v1", "v2") and isolation["user"] == "unique"


def enough(poor):
    if poor.bash(":")["status"] != "success":
        pytest.skip("this host lacks what is required, and the product says so")


@pytest.mark.matrix(3)
def test_P01_privileges(poor):
    enough(poor)
    text = poor.bash("cat /proc/self/status")["stdout"]
    for line in text.splitlines():
        if line.startswith("Cap"):
            assert int(line.split()[1], 16) == 0, line
    assert "NoNewPrivs:\t1" in text and "Seccomp:\t2" in text


@pytest.mark.matrix(3)
def test_F02_F03_host_files(poor, canary):
    enough(poor)
    seen = probe(poor, f"""
t = {str(canary.public)!r}
say([attempt(open, p) for p in (t, '../' * 30 + t[1:], '/proc/1/root' + t, '/proc/self/root' + t)] +
    [attempt(open, '/usr/bin/env', 'ab'), attempt(os.truncate, '/etc/passwd', 0), attempt(open, '/planted', 'w')])
""")
    assert "ok" not in seen, seen


@pytest.mark.matrix(3)
def test_F05_descriptors(poor):
    enough(poor)
    seen = probe(poor, """
import fcntl
say([fd for fd in range(1024) if attempt(fcntl.fcntl, fd, fcntl.F_GETFD) == 'ok'])
""")
    assert seen == [0, 1, 2]


@pytest.mark.matrix(3)
def test_P14_namespaces(poor):
    enough(poor)
    seen = probe(poor, f"say([sc({NR['unshare']}, 0x10000000), sc({NR['setns']}, -1, 0), sc({NR['clone3']}, 1, 88)])")
    assert seen in (["EPERM", "ENOSYS", "ENOSYS"], ["EPERM", "ENOSYS", "EPERM"]), seen


@pytest.mark.matrix(3)
def test_F18_collection(poor, work, canary):
    """Without openat2 the walk over what was written must be as safe."""
    enough(poor)
    out = poor.mkdir(work / "out")
    result = poor.bash(f"mkdir -p a/b; echo x > a/b/f; ln -s {canary.public} l; ln -s {canary.dir} d; ln -s /etc e; mkfifo p; "
                       "(setsid bash -c 'while :; do mv a c; ln -s /etc a; rm a; mv c a; done' 2>&- &); sleep 0.1",
                       options=["--output-dir", out])
    assert {f["path"] for f in result["files"]} <= {"a/b/f", "c/b/f"}, result["files"]
    for top, dirs, names in os.walk(out):
        for name in dirs + names:
            path = os.path.join(top, name)
            assert not os.path.islink(path)
            assert os.path.isdir(path) or open(path).read() == "x\n"


@pytest.mark.matrix(3)
def test_N01_N02_network(poor, canary):
    enough(poor)
    seen = probe(poor, f"""
import socket
def unix(a): socket.socket(socket.AF_UNIX).connect(a)
say([attempt(socket.create_connection, ('127.0.0.1', {canary.port}), 0.5), attempt(unix, '\\0' + {canary.abstract!r}),
     attempt(unix, {canary.path!r})])
""")
    assert "ok" not in seen and not canary.reached, seen


@pytest.mark.undisturbed
@pytest.mark.matrix(3)
def test_limits_and_daemons(poor):
    enough(poor)
    result = poor.bash("(setsid sleep 30 &); echo up; sleep 30", options=["--timeout", "0.9"])
    assert (result["status"], result["stdout"]) == ("timeout", "up\n") and result["_elapsed"] < 10
    result = poor.python("x = bytearray(300 << 20)", options=["-m", "64m"])
    if result["isolation"]["cgroup"] != "none":
        assert result["cause"]["kind"] == "memory", result
    else:
        assert result["status"] == "error"


def test_force_off_only_takes_away(atoll):
    """Unknown words are no way to switch the filter or the user namespace off."""
    weak = atoll.variant(env={"ATOLL_FORCE_OFF": "seccomp,userns,nnp,caps,pidns,netns"})
    done = weak.run(["run", "--json", "-l", "bash", "-c", "grep -E 'Seccomp:|NoNewPrivs|CapEff' /proc/self/status"])
    result = done.json()
    if result["status"] == "success":
        text = " ".join(result["stdout"].split())
        assert "Seccomp: 2" in text and "NoNewPrivs: 1" in text and "CapEff: 0000000000000000" in text
