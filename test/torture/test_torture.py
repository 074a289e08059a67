# SPDX-License-Identifier: Apache-2.0
"""The n-th wrapped system call fails, for n = 1, 2, 3… until the scenario runs through.

The program is atoll-faults (test/meson.build). ATOLL_FAULT=N[:ERRNO] (a number) picks the call, ATOLL_FAULT_PROCESS the process that counts, and
ATOLL_FAULT_LOG gets a line when it was reached. After each fault: a clean error or the right
result, no hang, nothing left behind.
"""
import errno
import shutil
import tempfile

import pytest

from oracle import IS_ROOT, leaked_since, snapshot
from program import BINARY, Atoll

QUIET = 6  # so many calls in a row that were not reached: the scenario is over
MOST = 600


@pytest.fixture(scope="session")
def faulty(stage):
    place = stage.top / "faulty"
    place.mkdir()
    place.chmod(0o755)
    shutil.copy2(BINARY.parent / "test" / "atoll-faults", place / "atoll")
    (place / "atoll").chmod(0o755)
    return place / "atoll"


@pytest.fixture
def host_secret():
    """A file of the host's /usr that only root may read."""
    with tempfile.NamedTemporaryFile("w", prefix="reef-", dir="/usr/local/share") as file:
        file.write("SECRET")
        file.flush()
        yield file.name


SCENARIOS = {
    "run": (["-l", "bash", "-c", "cat; echo out; echo err >&2; exit 3"], b"in\n", 3, b"in\nout\n", b"err\n"),
    "files": (["-l", "bash", "--file", "d/x={file}", "--output-dir", "{out}", "-c", "cat d/x; echo y > z"], b"", 0, b"data", b""),
    "timeout": (["-l", "bash", "--timeout", "{seconds}", "-c", "echo up; sleep 20"], b"", 124, b"up\n", None),
    "network": (["--policy", "trusted", "--network", "allow:*", "-l", "bash", "-c", "echo out"], b"", 0, b"out\n", b""),
    "stages": (["--stage", "a=echo 1", "--stage", "b=echo 2"], b"", 0, b"1\n2\n", b""),
}
# Faults the program itself may notice: its own streams are cut or its limits are not what was asked. What becomes of one stage when a call
# of its child fails, test_no_fault_weakens_a_sandbox shows with three errors.
PAIRS = [("run", "front", "EIO"), ("run", "broker", "EIO"), ("run", "broker", "ENOMEM"), ("run", "front", "EMFILE"),
         ("files", "front", "ENOSPC"), ("files", "broker", "EIO"), ("timeout", "broker", "EIO"), ("stages", "broker", "EAGAIN"),
         ("stages", "child", "ENOSPC"), ("network", "broker", "EIO")]


@pytest.mark.matrix(2)
@pytest.mark.parametrize("scenario,process,error", PAIRS, ids=["-".join(p) for p in PAIRS])
def test_every_call_may_fail(mode, stage, faulty, work, scenario, process, error):
    args, data, code, out, err = SCENARIOS[scenario]
    (work / "file").write_text("data")
    atoll = Atoll(mode, stage)
    atoll.binary = faulty
    log = work / "log"
    quiet, reached, wrong = 0, 0, []
    for n in range(1, MOST):
        target = stage.scratch(mode, "out")
        before = snapshot()
        try:
            for seconds in (0.1, 5):  # most say a word in a tenth of a second; where that is all that is missing, there is more time
                log.unlink(missing_ok=True)
                words = ["run"] + [w.format(file=work / "file", out=target, seconds=seconds) for w in args]
                done = atoll.run(words, input=data, timeout=40,
                                 env={"ATOLL_FAULT": f"{n}:{getattr(errno, error)}", "ATOLL_FAULT_PROCESS": process,
                                      "ATOLL_FAULT_LOG": str(log)})
                if scenario != "timeout" or done.returncode != code or done.stdout == out:
                    break
        except AssertionError as hang:
            wrong.append((n, "hang", str(hang)[:300]))
            continue
        finally:
            shutil.rmtree(target, ignore_errors=True)
        left = leaked_since(before)
        if left:
            wrong.append((n, "left", left))
        right = done.returncode == code and done.stdout == out and (err is None or done.stderr == err)
        # Some faults only cost the program its output; then the result must not claim success.
        clean = done.returncode in (125, 126, 127) and done.err.strip() and \
            done.err.strip().splitlines()[-1].count(" ") > 2 and done.returncode != 0
        if not right and not clean:
            wrong.append((n, done.returncode, done.out[-200:], done.err[-300:]))
        if log.exists() or not right:
            quiet, reached = 0, reached + 1
        else:
            quiet += 1
            if quiet >= QUIET:
                break
    assert wrong == [], "\n".join(map(str, wrong))
    assert reached > 0, "no fault point was reached"
    assert quiet >= QUIET, f"still reaching fault points after {MOST} calls"


LOCKS = """
grep -E '^(Cap|NoNewPrivs|Seccomp:|Groups|Uid|Gid)' /proc/self/status
ls / /dev
for p in {canary} /sys /home /root /proc/1/environ /proc/1/exe; do test -r $p && echo $p; done
touch /usr/x /etc/x /x 2>&1 | sort
ulimit -a
perl -MSocket - <<'END'
socket(my $s, PF_INET, SOCK_STREAM, 0);
print bind($s, sockaddr_in(0, INADDR_LOOPBACK)) ? "bound\\n" : "bind " . ($! + 0) . "\\n";
sub words {{ open(my $f, "<", shift) or die $!; map {{ [split] }} <$f> }}
print join(" ", (grep {{ -e "/proc/self/fd/$_" }} 0 .. 63)[0 .. 3], (words("/proc/self/stat"))[0][5] > 0), "\\n";
# /dev comes ready-made or as six binds: as good when it is read-only.
print sort map {{ "$$_[4] $$_[5]\\n" }} grep {{
    $$_[4] !~ m#^/dev(/(null|zero|full|random|urandom|tty))?\\z# or $$_[5] !~ /^ro,nosuid,noexec/ }} words("/proc/self/mountinfo");
END
exit 0
"""


@pytest.mark.matrix(2)
@pytest.mark.parametrize("process,error", [("child", "EIO"), ("child", "EPERM"), ("child", "ENOSYS"), ("broker", "EPERM"),
                                           ("broker", "EINVAL")])
def test_no_fault_weakens_a_sandbox(mode, stage, faulty, work, canary, process, error):
    """If the program runs at all it finds every lock closed, or the result names the layer that is missing."""
    atoll = Atoll(mode, stage)
    atoll.binary = faulty
    words = ["-l", "bash", "-c", LOCKS.format(canary=canary.public)]
    clean = atoll.result(words)
    assert clean["status"] == "success" and "Seccomp:\t2" in clean["stdout"], clean
    quiet, ran = 0, 0
    for n in range(1, MOST):
        log = work / "log"
        log.unlink(missing_ok=True)
        done = atoll.run(["run", "--json", *words], timeout=40,
                         env={"ATOLL_FAULT": f"{n}:{getattr(errno, error)}", "ATOLL_FAULT_PROCESS": process, "ATOLL_FAULT_LOG": str(log)})
        result = done.json() if done.stdout else {"status": None}
        if result["status"] == "success":
            ran += log.exists()
            missing = set(result["isolation"]["missing"]) - set(clean["isolation"]["missing"])
            assert result["stdout"] == clean["stdout"] or missing, (n, done)
            if "proc" not in missing:
                assert "CapBnd:\t0000000000000000" in result["stdout"] and "Seccomp:\t2" in result["stdout"], (n, done)
            assert str(canary.public) not in result["stdout"], (n, done)
        else:
            assert done.returncode in (125, 126, 127) and (result["cause"]["detail"] if result["status"] else done.err.strip()), (n, done)
        if log.exists() or result["status"] != "success":
            quiet = 0
        else:
            quiet += 1
            if quiet >= QUIET:
                break
    assert quiet >= QUIET


@pytest.mark.skipif(not IS_ROOT, reason="needs to be started as root")
@pytest.mark.modes("root")
@pytest.mark.parametrize("process,error", [("child", "EIO"), ("broker", "EPERM")])
def test_no_fault_weakens_a_writable_root(mode, stage, faulty, host_secret, work, process, error):
    """The broker's mounter counts its calls as the broker. A program that runs can write, and reads no more than any user of the host."""
    atoll = Atoll(mode, stage)
    atoll.binary = faulty
    quiet = 0
    for n in range(1, MOST):
        log = work / "log"
        log.unlink(missing_ok=True)
        result = atoll.bash(f"echo x > /usr/new; cat /usr/new; cat {host_secret}; true", options=["--writable-root"], timeout=40,
                            env={"ATOLL_FAULT": f"{n}:{getattr(errno, error)}", "ATOLL_FAULT_PROCESS": process, "ATOLL_FAULT_LOG": str(log)})
        assert "SECRET" not in result["stdout"], (n, result)
        assert result["stdout"] == "x\n" or result["status"] != "success", (n, result)
        quiet = 0 if log.exists() or result["status"] != "success" else quiet + 1
        if quiet >= QUIET:
            break
    assert quiet >= QUIET and n > 2 * QUIET
