# SPDX-License-Identifier: Apache-2.0
"""`atoll serve` as processes: how it starts, what is refused, and what becomes of the rest when one of them dies."""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import time
from pathlib import Path

import pytest

import oracle
from daemon import Daemon
from oracle import IS_ROOT, NOBODY
from resident import sweep, wait_until
from web import Web

quick = pytest.mark.quick
FRONT_UID = 65520


@pytest.fixture
def start(atoll, work):
    daemons = []

    def begin(*options, **more):
        daemons.append(Daemon(atoll, work, *options, **more))
        return daemons[-1]

    before = oracle.list_cgroups()
    yield begin
    for daemon in daemons:
        daemon.end()
    if any(daemon.brokers() > 1 or daemon.popen.returncode for daemon in daemons):
        # Groups of a killed broker, once the last zombie in them is reaped.
        end = time.monotonic() + 30
        while oracle.list_cgroups() - before - oracle.list_empty_cgroups() and time.monotonic() < end:
            time.sleep(0.02)
        sweep(atoll)


def status_of(pid):
    return dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)


def is_alive(pid):
    """Not even as a zombie that only waits for its parent."""
    return oracle.parents().get(pid, (0, "Z"))[1] != "Z"


def refused(atoll, *options, env=None):
    """The one sentence that `atoll serve` ends with."""
    done = atoll.run(["serve", *options], env=env)
    assert done.returncode == 125 and done.stdout == b"", done
    lines = [line for line in done.err.splitlines() if line.startswith("atoll: ")]
    assert len(lines) == 1, done
    return lines[0]


def sleeper(daemon, seconds=60):
    """A sandbox that is busy, and what it is known by."""
    mark = f"{seconds + time.monotonic_ns() % 10**8 / 10**9:.9f}"
    popen = daemon.runner().popen(["run", "-l", "bash", "-c", f"sleep {mark}; true"], stdin=subprocess.DEVNULL)
    wait_until(lambda: runs(mark), why=f"no sleep {mark}")
    return popen, mark


def runs(mark):
    """Whether a sandboxed program with this word lives. `atoll run` itself has it on its command line, too."""
    return any(mark in oracle.command_line(pid) and oracle.has_own_pids(pid) and state != "Z"
               for pid, (_, state) in oracle.parents().items())


def finish(popen):
    code = popen.wait(25)
    popen.stdout.close()
    popen.stderr.close()
    return code


@quick
def test_start_and_end(start):
    daemon = start()
    record = daemon.wait_ready()
    assert record["state_dir"] == str(daemon.state) and str(daemon.socket) in record["listen"]
    mode = daemon.state.stat()
    assert stat.S_IMODE(mode.st_mode) == 0o700
    assert stat.S_IMODE(daemon.socket.stat().st_mode) == 0o600
    with socket.create_connection((daemon.host, daemon.port)):
        pass
    assert daemon.end() == 0
    assert not daemon.socket.exists() and not (daemon.state / "run" / "broker.sock").exists()
    assert [r["process"] for r in daemon.records if r["msg"] == "ended"] == ["front", "broker"]
    with pytest.raises(OSError):
        socket.create_connection((daemon.host, daemon.port))


@quick
@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_either_signal_ends_it(start, sig):
    daemon = start()
    assert daemon.end(sig) == 0


@quick
def test_the_front_has_no_privilege(start, mode):
    daemon = start()
    status = status_of(daemon.child("front"))
    uid = FRONT_UID if mode == "root" else NOBODY
    if not IS_ROOT:
        uid = os.geteuid()
    assert status["Uid"].split() == [str(uid)] * 4
    assert status["NoNewPrivs"] == "1"
    assert status["Groups"].split() == [] or mode == "rootless"
    for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        assert int(status[name], 16) == 0, name
    if mode == "root":
        assert int(status["CapBnd"], 16) == 0
        assert daemon.state.stat().st_uid == FRONT_UID
    # What it holds: its socket, log, audit, lock, directory and doors; nothing of the monitor's beside that.
    def links():
        place = f"/proc/{daemon.child('front')}/fd"
        return [link for fd in os.listdir(place) if (link := oracle.link(f"{place}/{fd}"))]  # some are closed meanwhile

    assert str(daemon.state / "lock") in links()
    # What it reads when it begins it does not keep.
    wait_until(lambda: not [link for link in links() if link.startswith("/") and not link.startswith((str(daemon.state), "/dev/null"))],
               why=str(links()))


@quick
def test_a_second_daemon_is_refused(start, atoll, work):
    daemon = start()
    said = refused(atoll, "--state-dir", daemon.state, "--socket", work / "other.sock", "--listen", "127.0.0.1:0")
    assert said == (f"atoll: the state directory '{daemon.state}' is in use by another daemon (pid {daemon.pid}); end that one "
                    "first, or give this one another with --state-dir")
    said = refused(atoll, "--state-dir", work / "else", "--socket", daemon.socket, "--listen", "127.0.0.1:0")
    assert said == (f"atoll: a daemon listens on '{daemon.socket}' already; end it first, or give another path with "
                    "--socket")
    assert daemon.popen.poll() is None


@quick
def test_ports_that_are_taken(start, atoll, work):
    daemon = start()
    taken = f"127.0.0.1:{daemon.port}"
    said = refused(atoll, "--state-dir", work / "else", "--socket", "off", "--listen", taken)
    holder = daemon.popen.pid
    told = re.fullmatch(r"atoll: (\S+) is taken by (\w+) \(process (\d+)\); end it, or give another address with --listen 127\.0\.0\.1:(\d+)", said)
    assert told and told[1] == taken and (told[2], int(told[3])) in {("atoll", holder), ("atolld", daemon.child("front"))}, said
    # The offered one is free.
    with socket.create_server(("127.0.0.1", int(told[4]))):
        pass


@pytest.mark.modes("rootless")
def test_the_usual_ports(atoll, work):
    """6000 taken is a warning, 8700 taken the end."""
    with socket.socket() as blocker:
        blocker.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            blocker.bind(("127.0.0.1", 6000))
        except OSError:
            pytest.skip("another process has port 6000")
        blocker.listen(1)
        daemon = Daemon(atoll, work, listen=())
        try:
            assert daemon.wait_record("another process listens there; clients of the NeMo Agent Toolkit will not find this daemon",
                                      address="127.0.0.1:6000")["level"] == "warning"
            assert daemon.address == "127.0.0.1:8700"
            said = refused(atoll, "--state-dir", work / "else", "--socket", "off")
            assert said.startswith("atoll: 127.0.0.1:8700 is taken by atoll"), said
        finally:
            assert daemon.end() == 0


@quick
@pytest.mark.modes("rootless")
def test_other_machines_need_a_token(atoll, work):
    place = ["--state-dir", work / "else", "--socket", "off", "--listen", "0.0.0.0:0"]
    assert refused(atoll, *place) == ("atoll: listening on 0.0.0.0:0 lets other machines run code here; give --token-file FILE, or "
                                      "--allow-unauthenticated to accept that")
    tokens = work / "tokens"
    tokens.write_text("correct horse\n")
    os.chown(tokens, NOBODY if IS_ROOT else -1, -1)
    for mode, can in ((0o664, "write to"), (0o644, "read")):
        tokens.chmod(mode)
        assert refused(atoll, *place, "--token-file", tokens) == f"atoll: token_file: other users can {can} '{tokens}'; run: chmod 600 {tokens}"
    tokens.chmod(0o600)
    assert "not visible ASCII" in refused(atoll, *place, "--token-file", tokens)
    assert not (work / "else").exists()


@quick
@pytest.mark.modes("rootless")
def test_short_token(start, atoll, work):
    """A short token opens the door; the log says what would be better."""
    tokens = work / "tokens"
    tokens.write_text("secret\n")
    tokens.chmod(0o600)
    os.chown(tokens, NOBODY if IS_ROOT else -1, -1)
    daemon = start("--token-file", tokens)
    daemon.wait_record("a token has fewer than 16 characters and may be guessed; use a longer one", level="warning")
    url = {"ATOLL_URL": f"http://{daemon.address}"}
    done = atoll.run(["ps"], env=url)
    assert done.returncode == 125 and "ATOLL_TOKEN" in done.err, done
    for more in ({"ATOLL_TOKEN": "secret"}, {"ATOLL_TOKEN_FILE": str(tokens)}):
        for words in (["ps"], ["history", "list"], ["run", "-l", "bash", "-c", "echo hi"]):
            done = atoll.run(words, env={**url, **more})
            assert done.returncode == 0, (words, more, done)
    assert len(atoll.run(["history", "list", "--json"], env={**url, "ATOLL_TOKEN": "secret"}).json()["executions"]) == 2
    done = atoll.run(["ps"], env={**url, "ATOLL_TOKEN": "wrong"})
    assert done.returncode == 125 and "does not know the token" in done.err, done


@quick
@pytest.mark.modes("rootless")
@pytest.mark.parametrize("uncommented", [False, True])
def test_the_example_of_settings(start, work, uncommented):
    """As it is shipped, and with every setting in it said aloud that has its place on any machine."""
    text = (Path(__file__).resolve().parents[2] / "doc" / "atoll.yaml.example").read_text()
    if uncommented:
        lines = [line[1:] for line in text.splitlines() if re.match(r"#(\w|  )", line)]
        elsewhere = r"(listen|socket|token_file|state_dir|data_dir|policies_dir|images|output_data_path|language_config|user|  file):"
        text = "".join(line + "\n" for line in lines if not re.match(elsewhere, line))
        assert text.count(":") > 30
    file = work / "atoll.yaml"
    file.write_text(text)
    file.chmod(0o644)
    daemon = start("--config", file)
    assert daemon.popen.poll() is None


@quick
@pytest.mark.modes("rootless")
def test_refused_settings(atoll, work):
    file = work / "atoll.yaml"
    file.write_text("queue:\n  max: many\n")
    file.chmod(0o644)
    assert refused(atoll, "--config", file) == \
        f"atoll: {file}:2:3: queue.max: 'many' is not a whole number (allowed: 1 to 100000)"
    assert refused(atoll, "--set", "queue.mx=1") == "atoll: --set: there is no setting 'queue.mx'; did you mean 'queue.max'?"
    assert refused(atoll, "--set", "queue") == "atoll: --set needs KEY=VALUE, such as queue.max=100, not 'queue'"
    assert refused(atoll, env={"ATOLL_LOG_LEVEL": "loud"}) == \
        "atoll: ATOLL_LOG_LEVEL: log.level: 'loud' is not one of: debug, info, warning, error"
    assert "did you mean '--listen'" in refused(atoll, "--lisen", "x")


@quick
@pytest.mark.modes("rootless")
def test_check(atoll, work):
    """All of the configuration is read and nothing is made."""
    file, tokens, policies = work / "atoll.yaml", work / "tokens", work / "policies"
    file.write_text(f"listen: ['127.0.0.1:1']\nstate_dir: {work}/made\ntoken_file: {tokens}\npolicies_dir: {policies}\n")
    tokens.write_text("first-secret-of-all\nsecond-secret-of-all operator\n")
    policies.mkdir()
    (policies / "mine.yaml").write_text("name: mine\nlimits: {ceilings: {timeout: 5s}}\n")
    for path in (file, tokens):
        path.chmod(0o600)
        os.chown(path, NOBODY if IS_ROOT else -1, -1)

    def check(*words):
        return atoll.run(["serve", "--check", "--config", file, "--socket", work / "d.sock", *words])

    done = check()
    told = dict(line.split(maxsplit=1) for line in done.out.splitlines())
    assert done.returncode == 0 and done.err == "", done
    assert told["settings"] == str(file) and told["listen"] == "127.0.0.1:1" and told["socket"] == str(work / "d.sock")
    assert told["tokens"] == f"2 in {tokens}" and "secret" not in done.out and "mine" in told["policies"].split()
    assert not (work / "made").exists() and not (work / "d.sock").exists()
    assert "none needed" in check("--allow-unauthenticated").out
    for text, words, said in (("x", ["--set", "queue.max=0"], "queue.max"), ("limits: {tiemout: 5s}", [], "policy mine"),
                              ("x: [", [], "policy mine"), ("x", ["--policies-dir", work / "none"], "cannot read"),
                              ("x", ["--token-file", work / "none"], "token_file")):
        (policies / "mine.yaml").write_text(text)
        done = check(*words)
        assert done.returncode == 1 and done.out == "" and said in done.err and done.err.count("\n") == 1, done


@quick
def test_a_foreign_state_directory(atoll, work):
    if not IS_ROOT:
        pytest.skip("needs to be started as root")
    state = work / "foreign"
    state.mkdir()
    os.chown(state, 12345, 12345)
    said = refused(atoll, "--state-dir", state, "--socket", "off", "--listen", "127.0.0.1:0")
    assert "foreign' belongs to uid 12345" in said or "Permission denied" in said, said
    link = work / "link"
    link.symlink_to("/etc")
    assert "'%s'" % link in refused(atoll, "--state-dir", link, "--socket", "off", "--listen", "127.0.0.1:0")
    assert stat.S_IMODE(os.stat("/etc").st_mode) == 0o755


@quick
def test_logs_in_the_state_directory(start, atoll, work):
    """It is the front's: nothing that it may have put there leads the monitor elsewhere."""
    daemon = start()
    assert daemon.end() == 0
    precious, state = work / "precious", daemon.state
    (work / "way").symlink_to(state.parent)
    precious.write_text("precious")
    precious.chmod(0o666)

    def opened(path, *more):
        return refused(atoll, "--state-dir", work / "way" / state.name, "--socket", "off", "--listen", "127.0.0.1:0", *more) \
            .startswith(f"atoll: cannot open the log '{path}'")

    (state / "audit.log").unlink()
    (state / "audit.log").symlink_to(precious)
    assert opened(work / "way" / state.name / "audit.log")
    (state / "audit.log").unlink()
    (state / "logs").symlink_to(work)
    assert opened(state / "logs" / "precious", "--audit-file", state / "logs" / "precious")
    os.link(precious, state / "second")
    assert opened(state / "second", "--log-file", state / "second")
    assert precious.read_text() == "precious"


@quick
def test_what_is_in_the_way_of_the_socket(start, atoll, work):
    daemon = start()
    daemon.end(signal.SIGKILL)
    assert daemon.socket.exists()
    wait_until(lambda: not is_alive(daemon.child("front")))
    again = start()
    assert again.end() == 0
    file = work / "file"
    file.write_text("precious")
    said = refused(atoll, "--state-dir", work / "else", "--socket", file, "--listen", "127.0.0.1:0")
    assert "is no socket" in said and file.read_text() == "precious"


@quick
def test_broker_killed(start):
    daemon = start()
    assert daemon.runner().bash("echo one")["stdout"] == "one\n"
    popen, mark = sleeper(daemon)
    broker, front = daemon.child("broker"), daemon.child("front")
    n = len(daemon.records)
    os.kill(broker, signal.SIGKILL)
    begin = time.monotonic()
    wait_until(lambda: not runs(mark), 10, "a sandbox outlived its broker")
    record = daemon.wait_record("a process died and is started again", n, process="broker")
    assert record["how"] == "signal 9 (Killed)" and record["after"] == 0
    daemon.wait_record("started", n, process="broker")
    daemon.wait_record("the broker is lost", n)
    daemon.wait_record("the broker answers", n)
    assert time.monotonic() - begin < 20
    assert daemon.child("front") == front and is_alive(front) and daemon.child("broker") != broker
    finish(popen)
    assert daemon.runner().bash("echo two")["stdout"] == "two\n"
    assert daemon.end() == 0


@quick
def test_front_killed(start):
    daemon = start()
    popen, mark = sleeper(daemon)
    broker, front = daemon.child("broker"), daemon.child("front")
    n = len(daemon.records)
    os.kill(front, signal.SIGKILL)
    daemon.wait_record("a process died and is started again", n, process="front")
    daemon.wait_ready(n)
    assert daemon.child("broker") == broker and is_alive(broker) and daemon.child("front") != front
    # What others run in the same broker is none of its business.
    assert runs(mark)
    # Who connects meanwhile waits: the doors stayed open.
    with socket.create_connection((daemon.host, daemon.port)):
        pass
    os.kill(daemon.popen.pid, signal.SIGTERM)
    finish(popen)


def test_monitor_killed(start):
    daemon = start()
    popen, mark = sleeper(daemon)
    family = daemon.processes()
    assert {daemon.child("broker"), daemon.child("front")} <= family
    os.kill(daemon.pid, signal.SIGKILL)
    wait_until(lambda: not runs(mark) and not is_alive(daemon.child("front")), 10, "something outlived the monitor")
    wait_until(lambda: not any(map(is_alive, family)), 10, "the broker outlived the monitor")
    finish(popen)
    assert daemon.end() == -signal.SIGKILL
    # Start is recovery: nothing is in the way.
    again = start()
    assert again.runner().bash("echo back")["stdout"] == "back\n"
    assert again.end() == 0


def test_monitor_killed_and_started_at_once(start):
    for _ in range(5):
        daemon = start()
        assert daemon.end(signal.SIGKILL) == -signal.SIGKILL
    daemon = start()
    assert daemon.end() == 0


def test_all_killed_at_once(start):
    daemon = start()
    popen, mark = sleeper(daemon)
    for pid in (daemon.pid, daemon.child("broker"), daemon.child("front")):
        with contextlib.suppress(ProcessLookupError):  # they end without the monitor
            os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not runs(mark), 10, "a sandbox outlived them all")
    finish(popen)
    assert daemon.end() == -signal.SIGKILL
    again = start()
    assert again.end() == 0


def test_restarts_slow_down(start):
    daemon = start()
    waits = []
    while len(waits) < 5 or waits[-1] <= 0.3 and len(waits) < 8:  # a front that takes long to get ready has waited already
        n = len(daemon.records)
        os.kill(daemon.child("front"), signal.SIGKILL)
        waits.append(daemon.wait_record("a process died and is started again", n)["after"])
        daemon.wait_ready(n)
    # What each had lived counts.
    assert waits[0] == 0 and all(0 <= wait <= most for wait, most in zip(waits, [0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4])), waits
    assert waits[-1] > 0.3, waits
    time.sleep(0.1 * 2 ** (len(waits) - 1) + 0.5)
    n = len(daemon.records)
    os.kill(daemon.child("front"), signal.SIGKILL)
    assert daemon.wait_record("a process died and is started again", n)["after"] == 0


@quick
def test_a_front_that_cannot_start(atoll, work, stage):
    """Before it was ever ready, a crash loop is the end, with a sentence."""
    place, broken = work / "bin", work / "bin" / "atolld"
    place.mkdir()
    shutil.copy(stage.bin / "atoll", place)
    shutil.copy("/bin/false", broken)
    place.chmod(0o755)
    words = ["serve", "--state-dir", work / "s", "--socket", "off", "--listen", "127.0.0.1:0"]
    done = atoll.run(words, program=place / "atoll")
    assert done.returncode == 125, done
    assert re.search(r"^atoll: the front ended 5 times before the daemon was ready \(exit code 1\)", done.err, re.M), done
    broken.write_text("not a program")
    done = atoll.run(words, program=place / "atoll")
    assert done.returncode == 125 and 'msg="the program atolld cannot be executed" why="Exec format error"' in done.err, done
    broken.unlink()
    done = atoll.run(words, program=place / "atoll")
    assert done.returncode == 125 and done.err.splitlines()[-1].startswith("atoll: cannot find the program atolld beside"), done


@quick
@pytest.mark.modes("rootless")
def test_the_front_alone_says_what_it_is(atoll, stage):
    done = atoll.run([], program=stage.bin / "atolld", close_fds=True)
    assert (done.returncode, done.err) == (125, "atolld: this is a part of the daemon; run: atoll serve\n")


@quick
@pytest.mark.parametrize("abstract", [False, True], ids=["path", "abstract"])
def test_service_manager(start, work, abstract):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        name = f"tests-notify-{os.getpid()}-{time.monotonic_ns()}" if abstract else str(work / "notify")
        manager.bind("\0" + name if abstract else name)
        if not abstract:
            os.chmod(name, 0o777)
        manager.settimeout(30)
        daemon = start(env={"NOTIFY_SOCKET": "@" + name if abstract else name, "WATCHDOG_USEC": "6000000"})
        said = []
        while b"READY=1\nSTATUS=serving" not in said or b"WATCHDOG=1" not in said:
            said.append(manager.recv(4096))
            assert len(said) < 20, said
        assert daemon.end() == 0
        manager.settimeout(10)
        while said[-1] != b"STOPPING=1":
            said.append(manager.recv(4096))


@quick
def test_reload(start, work, atoll):
    log, audit = work / "log", work / "audit"
    tokens = work / "tokens"
    tokens.write_text("0123456789abcdef\n")
    tokens.chmod(0o600)
    if atoll.rootless and IS_ROOT:
        os.chown(tokens, NOBODY, NOBODY)
    daemon = start("--log-file", log, "--audit-file", audit, "--token-file", tokens, ready=False)
    wait_until(lambda: log.exists() and '"msg":"ready"' in log.read_text())
    log.rename(work / "log.1")
    os.kill(daemon.pid, signal.SIGHUP)
    wait_until(lambda: log.exists() and "tokens were read and logs opened again" in log.read_text())
    wait_until(lambda: '"who":"front"' in log.read_text())
    # A file that is refused changes nothing.
    tokens.chmod(0o666)
    os.kill(daemon.pid, signal.SIGHUP)
    wait_until(lambda: "nothing was read again" in log.read_text())
    assert daemon.popen.poll() is None
    assert daemon.end() == 0
    for line in log.read_text().splitlines() + (work / "log.1").read_text().splitlines():
        assert {"time", "level", "who", "msg"} <= set(json.loads(line))


@quick
def test_nothing_of_the_terminal(start):
    """Keys typed at the monitor's terminal are signals to its group, which is not that of its children."""
    daemon = start()
    for name in ("broker", "front"):
        assert os.getpgid(daemon.child(name)) == daemon.child(name) != os.getpgid(daemon.pid)


def test_a_front_that_hangs(start):
    daemon = start(env={"WATCHDOG_USEC": "4000000"})
    front, n = daemon.child("front"), len(daemon.records)
    os.kill(front, signal.SIGSTOP)
    daemon.wait_record("the front does not answer and is killed", n, pid=front)
    daemon.wait_ready(n)
    assert daemon.end() == 0


def procs(group):
    """Who lives in it."""
    with contextlib.suppress(OSError):
        return oracle.read(f"{group}/cgroup.procs").split()
    return []


@pytest.mark.modes("root")
def test_root_without_the_right_to_signal(start):
    """As in a container that drops CAP_KILL: the front's user is another than root. A signal ends the daemon all the same, and so does
    a second one when the front hangs."""
    for hangs in (False, True):
        daemon = start(wrap=["setpriv", "--bounding-set=-kill", "--"])
        assert not int(status_of(daemon.pid)["CapEff"], 16) & 1 << 5
        front = daemon.child("front")
        assert int(status_of(front)["Uid"].split()[0]) == FRONT_UID
        assert Web(daemon.host, daemon.port).execute("bash", "echo on")["stdout"] == "on\n"
        family = daemon.processes()
        if hangs:
            os.kill(front, signal.SIGSTOP)
            os.kill(daemon.pid, signal.SIGTERM)
            daemon.wait_record("draining")
        assert daemon.end() == 0
        daemon.wait_record("ended", process="front", how="signal 9 (Killed)" if hangs else "exit code 0")
        wait_until(lambda: not any(map(is_alive, family)), 25, "processes of the daemon are left")


@pytest.mark.modes("root")
def test_groups_of_a_killed_broker(start):
    """They are removed once they are too old to belong to a run that has just begun."""
    daemon = start()
    popen, mark = sleeper(daemon)
    lives = {str(pid) for pid in oracle.who_runs(mark)}
    made = {group for group in oracle.list_cgroups() if lives & set(procs(group))}
    assert made, "it is in no group"
    os.kill(daemon.child("broker"), signal.SIGKILL)
    wait_until(lambda: not runs(mark), 10)
    finish(popen)
    # Those who lived there may be dying still.
    wait_until(lambda: made & oracle.list_empty_cgroups(), 25, "no group is empty")
    left = made & oracle.list_empty_cgroups()
    for group in left:
        with contextlib.suppress(FileNotFoundError):  # swept by then
            os.utime(group, (time.time() - 60, time.time() - 60))
    wait_until(lambda: not any(map(os.path.exists, left)), 25, f"left: {left}")
    assert left, "there was nothing to see"
    assert daemon.end() == 0


def hello(directory, uid):
    """How many bytes the broker says first to a process of this user, which is shown the way to it."""
    script = ("import socket, sys\nwith socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:\n"
              "    s.settimeout(25); s.connect(sys.argv[1]); print(len(s.recv(65536)))")
    fd = os.open(directory, os.O_RDONLY)
    argv = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--", oracle.PYTHON, "-c", script,
            f"/proc/self/fd/{fd}/broker.sock"]
    try:
        return int(subprocess.run(argv, stdout=subprocess.PIPE, text=True, timeout=60, check=True, pass_fds=[fd]).stdout)
    finally:
        os.close(fd)


@quick
@pytest.mark.modes("root")
def test_who_may_ask_the_broker(start):
    daemon = start()
    assert hello(daemon.state / "run", NOBODY) == 0
    assert hello(daemon.state / "run", FRONT_UID) > 0
    assert hello(daemon.state / "run", 0) > 0


@quick
@pytest.mark.modes("root")
def test_what_the_broker_shows(start, work):
    """A front that an attacker controls can have nothing of the host shown but the files that runs need."""
    (work / "image" / "usr" / "bin").mkdir(parents=True)
    shutil.copy("/usr/bin/bash", work / "image" / "usr" / "bin")
    daemon = start()
    done = daemon.runner().run(["run", "--image", work / "image", "-l", "bash", "-c", "echo shown"])
    assert done.returncode == 125 and b"shown\n" not in done.stdout and "may not be shown" in done.err, done
    assert daemon.runner().bash("echo usual")["stdout"] == "usual\n"


@quick
@pytest.mark.modes("root")
@pytest.mark.parametrize("bits", [0o700, 0o750])
def test_a_state_directory_out_of_reach(atoll, work, bits):
    """Below what only root (and its group) may enter: said with the directory's name, and nothing is made or changed."""
    closed = work / "closed"
    (closed / "inner").mkdir(parents=True)
    closed.chmod(bits)
    (work / "link").symlink_to(closed)
    for place in (closed / "inner" / "new" / "state", closed / "inner", work / "link" / "state"):
        said = refused(atoll, "--state-dir", place, "--socket", "off", "--listen", "127.0.0.1:0")
        assert said == (f"atoll: the state directory '{place}' cannot be reached by uid {FRONT_UID}, whom the front runs as: "
                        f"'{closed}' is closed to it; let it pass with chmod o+x, or name another place with --state-dir")
    assert list(closed.iterdir()) == [closed / "inner"] and not list((closed / "inner").iterdir())
    assert [(closed / "inner").stat().st_uid, stat.S_IMODE(closed.stat().st_mode)] == [0, bits]
    closed.chmod(0o711)
    own = work / "own"
    own.mkdir(mode=0o700)  # root's until it is handed to the front
    for place in (closed / "inner" / "state", f"{own}/"):
        daemon = Daemon(atoll, work, "--state-dir", place)
        assert daemon.end() == 0


@quick
@pytest.mark.modes("root")
def test_parents_are_made_for_the_front(atoll, work):
    """A shell with umask 077 must not make a daemon that cannot reach its own files."""
    daemon = Daemon(atoll, work / "a" / "b", wrap=["/bin/sh", "-c", 'umask 077; exec "$@"', "sh"])
    assert daemon.end() == 0
    assert stat.S_IMODE((work / "a").stat().st_mode) == 0o755
    assert stat.S_IMODE((work / "a" / "b" / "state").stat().st_mode) == 0o700


@quick
@pytest.mark.modes("root")
def test_data_that_the_front_cannot_read(atoll, work, stage):
    closed = work / "closed"
    closed.mkdir(mode=0o700)
    shutil.copytree(stage.data, closed / "data")
    said = refused(atoll, "--state-dir", work / "s", "--socket", "off", "--listen", "127.0.0.1:0", "--data-dir", closed / "data")
    assert said == (f"atoll: the data directory '{closed}/data' cannot be read by uid {FRONT_UID}, whom the front runs as; open it "
                    "with chmod a+rX, or name a copy with --data-dir")


def test_the_audit_log_is_rotated(start):
    """Within a size and a number of files; what comes afterwards is in the new one."""
    daemon = start("--set", "audit.size=64k", "--set", "audit.files=2")
    log = daemon.state / "audit.log"
    old = [daemon.state / f"audit.log.{n}" for n in (1, 2, 3)]
    web = Web(daemon.host, daemon.port)
    for n in range(3):
        with open(log, "a") as file:
            file.write(f"filled {n} " + "x" * (64 << 10) + "\n")
        wait_until(lambda: log.exists() and log.stat().st_size < 64 << 10, 30)
    assert [path.read_text()[:8] for path in old[:2]] == ["filled 2", "filled 1"] and not old[2].exists()
    wait_until(lambda: web.execute("bash", "true")["id"] in log.read_text(), 30)
    assert daemon.end() == 0
