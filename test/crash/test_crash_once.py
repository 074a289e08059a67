# SPDX-License-Identifier: Apache-2.0
"""A run whose broker dies is begun once: if it had not begun, another broker begins it; else none does.

`Between` stands between a front and a pool and is the broker that dies: at an instant that a test picks, and no other.
"""
import array
import os
import select
import socket
import struct
import subprocess
import threading

import pytest

from resident import Pool, end_pools

# Both ends let in their own user only, and that is who runs the tests.
pytestmark = pytest.mark.modes("root" if os.geteuid() == 0 else "rootless")
RUN, TICKET, STDOUT = 2, 3, 1  # the record's kind; places of its descriptors
RECORD_MAX, FDS_MAX = 65536, 8
PATIENCE_S = 60
LANGUAGES = {"python": "print('begun', flush=True)", "bash": "echo begun"}


def receive(sock):
    """(bytes, descriptors); no bytes: it was closed."""
    data, extra, _, _ = sock.recvmsg(RECORD_MAX, socket.CMSG_SPACE(FDS_MAX * 4), socket.MSG_CMSG_CLOEXEC)
    fds = array.array("i")
    for _, _, raw in extra:
        fds.frombytes(raw)
    return data, list(fds)


def send(sock, data, fds):
    sock.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else [])


def close(fds):
    for fd in fds:
        os.close(fd)


def until_taken(fds):
    """Waits until the program has begun."""
    poll = select.poll()
    poll.register(fds[TICKET], select.POLLIN)
    for _ in range(PATIENCE_S * 1000):
        if not poll.poll(0):
            return
        threading.Event().wait(0.001)
    raise AssertionError("it has not begun")


class Between:
    """on_run(number, bytes, descriptors, pool's socket): what becomes of each RUN. True: it is passed on, and so is all else; False:
    the front is hung up on."""

    def __init__(self, place, pool, on_run):
        self.path, self.pool, self.on_run, self.runs, self.wrong = place, pool, on_run, 0, None
        self.door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.door.bind(str(place))
        self.door.listen(8)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                front, _ = self.door.accept()
            except OSError:
                return
            try:
                with front, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as far:
                    far.connect(str(self.pool.path))
                    self.join(front, far)
            except (OSError, AssertionError) as trouble:
                self.wrong = trouble

    def join(self, front, far):
        while True:
            ready, _, _ = select.select([front, far], [], [])
            data, fds = receive(ready[0])
            if not data:
                return
            is_run = ready[0] is front and struct.unpack_from("I", data)[0] == RUN
            self.runs += is_run
            if is_run and not self.on_run(self.runs, data, fds, far):
                front.close()
                close(fds)
                return
            send(far if ready[0] is front else front, data, fds)
            close(fds)

    def end(self):
        self.door.shutdown(socket.SHUT_RDWR)
        self.door.close()
        self.thread.join(PATIENCE_S)
        assert not self.thread.is_alive() and self.wrong is None, self.wrong


@pytest.fixture
def pool(atoll, work):
    pools = [Pool(atoll, work / "run" / "pool.sock")]
    yield pools[0]
    end_pools(pools)


@pytest.fixture(params=[(language, warm) for language in LANGUAGES for warm in (False, True)],
                ids=lambda p: f"{p[0]}-{'warm' if p[1] else 'cold'}")
def run(request, work, pool):
    """run(on_run): (how it ended, how many RUN records were sent)."""
    language, warm = request.param
    if warm:  # what is kept ready is made by what was asked for
        assert pool.front().run(["run", "-l", language, "-c", LANGUAGES[language]]).returncode == 0
    place = work / "between.sock"

    def begin(on_run):
        between = Between(place, pool, on_run)
        front = pool.atoll.variant(env={"ATOLL_POOL": str(place)})
        done = front.run(["run", "-l", language, "-c", LANGUAGES[language]], stdin=subprocess.DEVNULL, timeout=60)
        between.end()
        place.unlink()
        return done, between.runs

    return begin


def test_lost_before_it_began(run):
    """The broker had not begun it: another broker does it."""
    done, runs = run(lambda number, data, fds, far: number > 1)
    assert (done.returncode, done.stdout, runs) == (0, b"begun\n", 2), (done, runs)


def test_lost_after_it_began(run):
    """It has begun, and that was never told: it must not begin again."""
    def die(number, data, fds, far):
        send(far, data, fds)
        until_taken(fds)
        return False
    done, runs = run(die)
    assert (done.returncode, runs) == (125, 1) and done.stdout in (b"", b"begun\n"), (done, runs)


def test_what_comes_too_late_does_not_begin(run):
    """The dead broker's sandbox is told to begin when another broker has the run already."""
    late, end = os.pipe()
    kept = []

    def wait(number, data, fds, far):
        if number == 1:
            kept.extend([data, [os.dup(fd) for fd in fds], far.dup()])
            return False
        fds_before = kept[1]
        fds_before[STDOUT:STDOUT + 1], gone = [end], fds_before[STDOUT]
        # It is still the front's to take: the second RUN says that it was.
        assert select.select([fds_before[TICKET]], [], [], 0)[0] == []
        send(kept[2], kept[0], fds_before)
        os.close(gone)
        return True

    done, runs = run(wait)
    assert (done.returncode, done.stdout, runs) == (0, b"begun\n", 2), (done, runs)
    with kept[2]:
        kept[2].settimeout(PATIENCE_S)
        close(kept[1])
        # Every process that could have printed is gone then.
        assert os.read(late, 100) == b""
    os.close(late)
