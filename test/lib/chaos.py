# SPDX-License-Identifier: Apache-2.0
"""A daemon under load whose processes are killed, and what must hold all the same.

`Survivor` is the daemon over all its lives, `Load` the clients, `Ledger` what they were promised. A test that uses this is the
subreaper of everything below, so that nothing that outlives its parent can hide: `Survivor.strays()` is exact.

The promises: a killed process leaves no other behind for more than two seconds; all that was acknowledged (202, a stream's
first event, a result) has one result for ever; a key names one execution for ever, and that begins once at most; the database
is sound at every instant.
"""
import contextlib
import ctypes
import http.client
import json
import os
import random
import shutil
import signal
import sqlite3
import statistics
import tempfile
import threading
import time
from pathlib import Path

import pytest

import oracle
from daemon import Daemon
from oracle import who_runs
from resident import sweep
from web import Web, sse

PR_SET_CHILD_SUBREAPER = 36
ORPHANS_MAX_S = 10.0  # the promise is two, and most keep it (check_deaths); but dying needs a processor, which others may have
PROMISED_S = 2.0
PENDING_MAX = 16
BACK_MAX_S = 60.0  # restarts slow down to one in ten seconds
TARGETS = ("monitor", "front", "broker", "zygote", "init")
LOST = (OSError, http.client.HTTPException, ValueError)  # what a client sees of a server that dies


def become_subreaper(on=True):
    assert ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, int(on), 0, 0, 0) == 0


def wait_until(what, seconds, why):
    """How long it took."""
    begin = time.monotonic()
    while not what():
        assert time.monotonic() < begin + seconds, why() if callable(why) else why
        time.sleep(0.01)
    return time.monotonic() - begin


def is_init(pid):
    """Whether it is the first process of a pid namespace."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    numbers = next(line for line in text.splitlines() if line.startswith("NSpid:")).split()[1:]
    return len(numbers) > 1 and numbers[-1] == "1"


def describe(pids):
    table = oracle.parents()
    return [f"pid {p} {table[p][1]} below {table[p][0]}: {oracle.command_line(p)[:80]}" for p in pids if p in table]


class Survivor:
    """The daemon, over all its lives."""

    def __init__(self, atoll, work, *options, **more):
        self.atoll, self.work, self.options, self.more = atoll, work, options, more
        self.daemon = self.web = None
        self.state = work / "state"
        self.faults = []  # (time, target), realtime
        self.deaths = {target: [] for target in TARGETS}  # seconds until no process was left
        self.start()

    def start(self):
        self.daemon = Daemon(self.atoll, self.work, *self.options, ready=False, **self.more)
        oracle.KEPT.add(self.daemon.pid)
        self.daemon.wait_ready()
        self.web = Web(self.daemon.host, self.daemon.port)
        self.wait_ready()

    def wait_ready(self):
        wait_until(self.is_ready, BACK_MAX_S, lambda: f"not ready again: {self.said()}")

    def is_ready(self):
        try:
            return self.web.get("/readyz", timeout=30).status == 200
        except LOST:
            return False

    def said(self):
        return self.daemon.records[-12:] + self.daemon.other[-5:]

    def end(self, sig=signal.SIGTERM):
        code = self.daemon.end(sig, timeout=60)
        oracle.KEPT.discard(self.daemon.pid)
        return code

    # ---------------------------------------------------------------------------------- processes

    def strays(self):
        """Living processes whose parent has died: they hang below us, or below the monitor, which takes them in."""
        table = oracle.parents()
        here, monitor = os.getpid(), self.daemon.pid
        known = {monitor, self.daemon.child("broker"), self.daemon.child("front")}
        found = set()
        for pid, (parent, state) in table.items():
            if parent == here and state == "Z" and pid not in oracle.KEPT:
                self.bury(pid)
            elif pid not in known | oracle.KEPT and state != "Z" and parent in (here, monitor):
                found.add(pid)
        if table.get(monitor, (0, "Z"))[1] == "Z":
            found |= {p for p in known - {monitor} if p in table and table[p][1] != "Z"}
        return found | {p for top in found for p in oracle.below(top)}

    @staticmethod
    def bury(pid):
        try:
            os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            pass

    def pick(self, target):
        """A process of this kind that lives now, or None."""
        if target == "monitor":
            return self.daemon.pid
        if target in ("front", "broker"):
            return self.daemon.child(target)
        broker, table = self.daemon.child("broker"), oracle.parents()
        below = [p for p in oracle.below(broker) if table.get(p, (0, ""))[0] == broker]
        fit = [p for p in below if (is_init(p) if target == "init" else not oracle.has_own_pids(p))]
        # The newest, half of the time: it is being made, or has just begun.
        return random.choice([max(fit), random.choice(fit)]) if fit else None

    def strike(self, target, mark):
        """kill -9: the processes that must not outlive it. None if there was no such process."""
        pid = self.pick(target)
        if pid is None:
            return None
        family = oracle.below(pid) | {pid} | (who_runs(mark) if mark else set())
        try:
            fd = os.pidfd_open(pid)
        except ProcessLookupError:
            return None
        try:
            self.faults.append((time.time(), target))
            signal.pidfd_send_signal(fd, signal.SIGKILL)
        except ProcessLookupError:
            self.faults.pop()
            return None
        finally:
            os.close(fd)
        return family

    def sleeper(self, ledger):
        """A job that runs until it is ended; what its processes are known by. All see that it has begun: else
        a new broker would run it in the place of one that died."""
        mark = f"60.{random.randrange(10**9):09d}"
        program = Program("bash", f"echo begun; sleep {mark}", "begun\n", ("interrupted",), limits={"timeout": 100})
        body = {"language": "bash", "code": program.code, "limits": program.limits, "priority": 10}
        deadline, answer = time.monotonic() + 60, self.web.post("/v1/executions", body)
        while answer.status in (429, 503) and time.monotonic() < deadline:  # others fill the queue, or it has just been started
            time.sleep(0.1)
            answer = self.web.post("/v1/executions", body)
        assert answer.status == 202, answer
        id = answer.json()["id"]
        ledger.accept(id, program)
        wait_until(lambda: who_runs(mark) and self.web.get(f"/v1/executions/{id}/stdout").body, 60, "a job does not begin")
        return mark

    def kill(self, target, mark=None, seconds=ORPHANS_MAX_S):
        """Kills one, sees the rest of it die in time (also who has this mark), and has it all running again."""
        deadline = time.monotonic() + 60
        while (family := self.strike(target, mark)) is None:
            assert time.monotonic() < deadline, f"no {target} to be seen: {describe(self.daemon.processes())}"
            time.sleep(0.02)
        began = time.monotonic()

        def left():
            table = oracle.parents()
            return self.strays() | {p for p in family if table.get(p, (0, "Z"))[1] != "Z"}

        wait_until(lambda: not left(), seconds,
                   lambda: f"{seconds} s after the {target} was killed: {describe(left())}, load {os.getloadavg()}")
        self.deaths[target].append(time.monotonic() - began)
        if target == "monitor":
            assert self.end() == -signal.SIGKILL
            check_database(self.state)
            self.start()
        else:
            self.wait_ready()

    def was_disturbed(self, begin, end, slack=4.0):
        """Whether a fault was injected while this ran, or right before."""
        return any(begin - slack <= at <= end + slack for at, _ in list(self.faults))


@pytest.fixture
def start(atoll, work):
    """start(*options): a daemon whose orphans become ours."""
    survivors = []

    def begin(*options, place=work, **more):
        survivors.append(Survivor(atoll, place, *options, **more))
        return survivors[-1]

    before = oracle.list_cgroups()
    become_subreaper()
    yield begin
    for survivor in survivors:
        survivor.end()
        wait_until(lambda: not survivor.strays(), ORPHANS_MAX_S, "orphans")
    become_subreaper(False)
    if oracle.list_cgroups() - before:
        # Once the last zombie in them is reaped; others may have groups, too, which live on.
        end = time.monotonic() + 25
        while oracle.list_cgroups() - before - oracle.list_empty_cgroups() and time.monotonic() < end:
            time.sleep(0.02)
        sweep(atoll)


# ------------------------------------------------------------------------------------------- state


def read_database(state):
    """A copy of it, to look at; call it only while no front runs."""
    place = Path(tempfile.mkdtemp(prefix="tests-db-"))
    for name in ("history.db", "history.db-wal"):
        if (state / "history" / name).exists():
            shutil.copy(state / "history" / name, place)
    return place


def check_database(state, damaged=0):
    """Sound, with one result at most for each execution; {id: status}. So many databases were damaged and lie aside."""
    place = read_database(state)
    try:
        db = sqlite3.connect(place / "history.db")
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        rows = db.execute("SELECT id, state, status, (SELECT count(*) FROM result WHERE result.at = execution.at) "
                          "FROM execution").fetchall()
        bad = [row for row in rows if row[3] != (row[1] == 2)]
        assert not bad, f"results beside their executions: {bad[:5]}"
        assert len({row[0] for row in rows}) == len(rows)
        lone = db.execute("SELECT count(*) FROM result WHERE at NOT IN (SELECT at FROM execution)").fetchone()
        assert lone == (0,), "results without an execution"
        for (text,) in db.execute("SELECT text FROM result WHERE at IN (SELECT at FROM execution WHERE status = 'internal_error')"):
            print("our own failure:", text[:1000])  # for a reader who expected none
        db.close()
    finally:
        shutil.rmtree(place)
    assert len([p for p in (state / "history").glob("history.db.damaged-*") if p.name[-1].isdigit()]) == damaged
    return {row[0]: row[2] for row in rows}


def check_state(state, rows):
    """What a daemon that ended leaves: no socket, and no file that is no execution's."""
    assert not list((state / "run").iterdir()), list((state / "run").iterdir())
    known = {"history.db", "history.db-wal", "history.lock", "arrivals", "reserve", "outputs", "files"}
    assert {p.name for p in (state / "history").iterdir()} <= known
    for path in (state / "history" / "outputs").glob("*/*"):
        assert path.name.split(".")[0] in rows, f"{path} belongs to no row"
    for path in (state / "history" / "files").glob("*/*"):
        assert path.name in rows, f"{path} belongs to no row"
    # An id may spell anything.
    left = [p for p in state.rglob("*") if ("tmp" in p.name and not p.name.startswith("ex_")) or p.name.startswith(".#")]
    assert not left, left


# -------------------------------------------------------------------------------------------- load


class Program:
    """One thing to run, and what must come of it when nothing disturbs it."""

    def __init__(self, language, code, stdout=None, statuses=("success",), limits=None, weight=4, check=None):
        self.language, self.code, self.stdout, self.statuses = language, code, stdout, statuses
        self.limits, self.weight, self.check = limits or {}, weight, check

    def body(self):
        return {"language": self.language, "code": self.code, "limits": {"timeout": 60, **self.limits},
                "labels": {"kind": "hostile" if self.check else "good"}}

    def wrong(self, result):
        """What is not as it should be with this undisturbed result."""
        if result["status"] not in self.statuses:
            return f"status {result['status']} instead of {self.statuses}"
        if self.stdout is not None and result["stdout"] != self.stdout:
            return f"stdout {result['stdout'][:200]!r} instead of {self.stdout[:200]!r}"
        return self.check and self.check(result)


class Once(Program):
    """Leaves a file behind, another each time it runs. `code` has {0} where the execution's own word stands."""

    def body(self):
        return {**super().body(), "code": self.code.format(f"{random.getrandbits(64):016x}"), "workspace": "tally"}


LINES = "".join(f"line {i}\n" for i in range(30000))  # more than is kept in memory

GOOD = [
    Program("python", "print(6 * 7)", "42\n"),
    Program("python", "import time, json\ntime.sleep(0.4)\nprint(json.dumps([1, 2]))", "[1, 2]\n"),
    Program("python", "for i in range(30000): print('line', i)", LINES, limits={"output": "1m"}, weight=1),
    Program("python", "open('made.txt', 'w').write('x' * 5000)\nprint('made')", "made\n"),
    Program("bash", "echo $((6 * 7)); sleep 0.2", "42\n"),
    Program("bash", "for i in 1 2 3; do echo $i; sleep 0.3; done", "1\n2\n3\n"),
    Program("javascript", "console.log([1, 2, 3].map(x => x * 2).join())", "2,4,6\n", weight=2),
    Program("ruby", "puts (1..4).sum", "10\n", weight=2),
    Program("perl", "print join('-', 1 .. 3), \"\\n\"", "1-2-3\n", weight=2),
    Program("lua", "print(2 ^ 10)", "1024.0\n", weight=2),
    Program("c", "#include <stdio.h>\nint main(void) { puts(\"compiled\"); }", "compiled\n", weight=1),
    Program("python", "raise ValueError('no')", "", statuses=("error",), weight=1),
    Once("bash", "touch /workspace/{0}.$SRANDOM; sleep 0.1; echo {0}"),
    Once("python", "import os\nopen('/workspace/{0}.' + os.urandom(8).hex(), 'w').close()\nprint('{0}')"),
]


class Ledger:
    """What clients were told, and so may rely on."""

    def __init__(self):
        self.lock = threading.Lock()
        self.accepted = {}  # id -> (program, when)
        self.results = {}  # id -> the result that a client was given
        self.keys = {}  # key -> (id, body)
        self.wrong = []
        self.refused, self.lost, self.seconds = {}, 0, []

    def accept(self, id, program, key=None, body=None):
        with self.lock:
            self.accepted.setdefault(id, (program, time.time()))
            if key is None:
                return
            before = self.keys.setdefault(key, (id, body))
            if before[0] != id:
                self.wrong.append(f"the key {key} was {before[0]} and is {id}")

    def answer(self, result):
        with self.lock:
            before = self.results.setdefault(result["id"], result)
            if before != result:
                self.wrong.append(f"two results: {before} and {result}")

    def complain(self, text):
        with self.lock:
            self.wrong.append(text)

    def refuse(self, status):
        with self.lock:
            self.refused[status] = self.refused.get(status, 0) + 1

    def lose(self):
        with self.lock:
            self.lost += 1


class Load:
    """Clients in threads, each doing one thing after the other until they are stopped."""

    def __init__(self, survivor, ledger, programs, workers=4, seed=None):
        self.survivor, self.ledger = survivor, ledger
        self.programs, self.weights = programs, [p.weight for p in programs]
        self.over, self.pending = threading.Event(), {}
        seed = random.randrange(1 << 32) if seed is None else seed
        self.threads = [threading.Thread(target=self.work, args=(random.Random(seed + i),), daemon=True)
                        for i in range(workers)]
        for thread in self.threads:
            thread.start()

    def stop(self):
        self.over.set()
        for thread in self.threads:
            thread.join(90)
            assert not thread.is_alive(), "a client hangs"

    def work(self, rng):
        ways = (self.wait_for, self.wait_for, self.submit, self.submit, self.stream)
        while not self.over.is_set():
            program = rng.choices(self.programs, self.weights)[0]
            try:
                rng.choice(ways)(program, rng)
            except LOST:
                self.ledger.lose()
                self.over.wait(0.05)
            except Exception as trouble:  # a client must not die of what it finds
                self.ledger.complain(f"{type(trouble).__name__}: {trouble}")
                self.over.wait(0.5)

    def is_served(self, answer, status, program):
        """Refusals are for later; anything but a refusal that says what it is, is wrong."""
        if answer.status == status:
            return True
        self.ledger.refuse(answer.status)
        if answer.status == 400 and program.statuses == ("setup_error",):
            return False
        if answer.status not in (429, 503) or answer.headers.get("content-type") != "application/problem+json" or \
                "retry-after" not in answer.headers:
            self.ledger.complain(f"answered with {answer}")
        self.over.wait(0.1)
        return False

    def wait_for(self, program, rng):
        begin = time.monotonic()
        answer = self.survivor.web.post("/v1/execute", program.body(), timeout=60)
        if self.is_served(answer, 200, program):
            result = answer.json()
            self.ledger.seconds.append((program.language, time.monotonic() - begin))
            self.ledger.accept(result["id"], program)
            self.ledger.answer(result)

    def submit(self, program, rng):
        """With a key, as often as it takes to be acknowledged: it is one execution all the same."""
        key = f"key-{rng.getrandbits(64):x}" if rng.random() < 0.7 else None
        body = program.body()
        headers = {"Idempotency-Key": key} if key else {}
        tries = 0
        while not self.over.is_set() or tries == 0:
            tries += 1
            try:
                answer = self.survivor.web.post("/v1/executions", body, headers=headers, timeout=30)
            except LOST:
                self.ledger.lose()
                if key is None:
                    return
                self.over.wait(0.05)
                continue
            if answer.status == 409 and tries > 1:
                self.over.wait(0.01)
            elif self.is_served(answer, 202, program):
                self.ledger.accept(answer.json()["id"], program, key, body)
                self.keep_pace(answer.json()["id"])
                return

    def keep_pace(self, id):
        """No more jobs at a time than PENDING_MAX a client: what waits is not the queue's bound."""
        mine = self.pending.setdefault(threading.get_ident(), [])
        mine.append(id)
        while len(mine) > PENDING_MAX and not self.over.wait(0.05):
            answer = self.survivor.web.get(f"/v1/executions/{mine[0]}", timeout=30)
            if answer.status != 200 or answer.json()["status"] not in ("queued", "running"):
                mine.pop(0)

    def stream(self, program, rng):
        web = self.survivor.web
        connection = web.connect()
        try:
            response = web.begin(connection, "POST", "/v1/execute", program.body(), {"Accept": "text/event-stream"})
            if response.status != 200:
                self.ledger.refuse(response.status)
                self.over.wait(0.1)
                return
            for _, event, data in sse(response):
                if event == "start":
                    self.ledger.accept(data["data"]["id"], program)
                elif event == "result":
                    self.ledger.answer(data["data"])
        finally:
            connection.close()


def check_deaths(survivor):
    """Of those who were killed, what hung on them was gone in time."""
    seconds = [one for some in survivor.deaths.values() for one in some]
    assert statistics.median(seconds) < PROMISED_S, survivor.deaths


def read_results(survivor, ledger, seconds=180):
    """{id: result} of everything that was accepted; all of it must have ended by then."""
    found, waiting, deadline = {}, list(ledger.accepted), time.monotonic() + seconds
    connection = survivor.web.connect()
    while waiting:
        later = []
        for id in waiting:
            answer = survivor.web.get(f"/v1/executions/{id}", keep=connection)
            assert answer.status == 200, (id, ledger.accepted[id][0].code[:80], answer)
            result = answer.json()
            if result["status"] in ("queued", "running"):
                later.append(id)
            else:
                found[id] = result
        assert not later or time.monotonic() < deadline, f"not ended after {seconds} s: {later[:5]} {survivor.said()}"
        waiting = later
        time.sleep(0.05 if later else 0)
    connection.close()
    return found


def seconds_of(text):
    """RFC 3339 as seconds."""
    import datetime
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def check_once(survivor, ledger, results):
    """Whichever process died meanwhile, nothing was applied twice, and what succeeded was applied."""
    begun = [path.name.split(".")[0] for path in (survivor.state / "workspaces").glob("*-tally/*.*")]
    assert len(set(begun)) == len(begun), f"applied twice: {sorted(line for line in set(begun) if begun.count(line) > 1)[:5]}"
    done = {r["stdout"].strip() for id, r in results.items() if isinstance(ledger.accepted[id][0], Once) and r["status"] == "success"}
    assert done <= set(begun), f"never applied, and yet a success: {sorted(done - set(begun))[:5]}"


def check_results(survivor, ledger):
    """Each accepted execution has the one result that its client was given; an undisturbed one did what it should."""
    results, interrupted = read_results(survivor, ledger), 0
    for id, result in results.items():
        program, _ = ledger.accepted[id]
        given = ledger.results.get(id)
        assert given is None or given == result, f"given: {given}\nkept: {result}"
        wrong = program.wrong(result)
        if not wrong:
            continue
        begin = seconds_of(result["created_at"])
        end = time.time() if given is None else begin + max(result["duration"] or 0, 0) + 5
        assert survivor.was_disturbed(begin, end), f"undisturbed, and yet {wrong}: {json.dumps(result)[:1500]}"
        assert result["status"] in DISTURBED, f"{wrong}: {json.dumps(result)[:1500]}"
        interrupted += 1
    assert not ledger.wrong, ledger.wrong[:5]
    check_once(survivor, ledger, results)
    return results, interrupted


# What a program may end as whose processes, or whose daemon's, were killed under it.
DISTURBED = ("interrupted", "error")


def check_keys(survivor, ledger, most=40):
    """Every key still names its execution, and no other body."""
    for key, (id, body) in random.sample(sorted(ledger.keys.items()), min(most, len(ledger.keys))):
        answer = survivor.web.post("/v1/executions", body, headers={"Idempotency-Key": key})
        assert answer.status == 202 and answer.json()["id"] == id, (key, id, answer)
        answer = survivor.web.post("/v1/executions", {**body, "code": "another"}, headers={"Idempotency-Key": key})
        assert answer.status == 422, (key, answer)


# ------------------------------------------------------------------------------------------ one client


@contextlib.contextmanager
def in_background(work):
    """Runs `work` in a thread; its value or its exception comes out of the function this gives."""
    box = {}

    def run():
        try:
            box["value"] = work()
        except Exception as trouble:
            box["trouble"] = trouble

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def result(timeout=60):
        thread.join(timeout)
        assert not thread.is_alive(), "it hangs"
        if "trouble" in box:
            raise box["trouble"]
        return box["value"]

    yield result
    thread.join(60)
