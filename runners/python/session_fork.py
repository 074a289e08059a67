# SPDX-License-Identifier: Apache-2.0
"""Forks a live session. The process forks; each copy announces itself on the channel, where the kernel names it, and waits in pause(). From
outside it is moved into a sandbox of its own and finds there: pid 2, empty /sandbox and /tmp, and as descriptors 0, 1 and 2 its new channel
and streams. The copy then fills the directories with copies of its parent's files, opens again what was open, draws new random
numbers, and is a session. The process that forked waits until its copies are moved, and answers.

A copy would share with its parent: threads, processes, sockets, pipes, memory mapped as shared. A session that has them is not forked.
"""
COPY_SECONDS = 10  # a copy that is not moved until then ends
WARM_SOCKET = 100  # of a program that was started ahead; its children lose it
IGNORED = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}


class Forker:
    def __init__(self, session):
        self.session = session

    def obstacle(self):
        """Why the process cannot be forked, or None."""
        if (threads := len(os.listdir("/proc/self/task"))) > 1:
            return f"the session has {threads} threads"
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            return "the session has child processes"
        except ChildProcessError:
            pass
        loop = self.session.loop
        if loop is not None and not loop.is_closed():
            from asyncio import all_tasks
            if tasks := len(all_tasks(loop)):
                return f"the session has {tasks} unfinished asyncio tasks"
        with open("/proc/self/maps") as maps:
            for line in maps:
                if line.split(" ", 2)[1][1:] in ("w-s", "wxs"):
                    return f"the session shares memory: {line.split(maxsplit=5)[-1].strip()}"
        return next((f"descriptor {fd} of the session is {place}" for fd, place in self.descriptors() if place[0] != "/"
                     or place.startswith("/memfd:")), None)

    def descriptors(self):
        """(number, place) of all but our own."""
        ours, loop = {0, 1, 2, self.session.channel.fd}, self.session.loop
        if loop is not None and not loop.is_closed():
            ours |= {loop._selector.fileno(), loop._ssock.fileno(), loop._csock.fileno()}
        for name in os.listdir("/proc/self/fd"):
            try:
                place = os.readlink(f"/proc/self/fd/{name}")
            except OSError:  # the one of the list itself
                continue
            fd = int(name)
            if fd not in ours and place not in IGNORED and not (fd == WARM_SOCKET and place.startswith("socket:")):
                yield fd, place

    def fork(self, message):
        answer = {"op": "file", "n": message["n"], "error": None}
        try:
            reason = self.obstacle()
        except OSError as error:  # it may have no descriptor left, or no /proc
            reason = f"what the session has open cannot be listed: {error.filename or '/proc'}: {error.strerror}"
        if reason:
            answer.update(error="EBUSY", message=reason)
            return answer
        flush()
        copies, channel = [], os.dup(self.session.channel.fd)
        for _ in range(message["count"]):
            try:
                pid = os.fork()
            except OSError as error:
                answer.update(error="EAGAIN", message=f"fork: {error.strerror}")
                break
            if pid == 0:
                try:
                    self.become(channel)
                    return None
                except BaseException as error:
                    report(error)
                    os._exit(1)
            copies.append(pid)
        os.close(channel)
        for pid in copies:
            os.waitpid(pid, 0)
        return answer

    def become(self, channel):
        session, own, here = self.session, os.getpid(), os.getcwd()
        opened = [fd for fd, _ in self.descriptors() if fd != channel]  # a library may have closed some of its own after the fork
        places = [(path, os.open(path, os.O_RDONLY | os.O_DIRECTORY)) for path in (session.work, "/tmp")]
        on_alarm = _signal.signal(_signal.SIGALRM, _signal.SIG_DFL)
        _signal.alarm(COPY_SECONDS)
        os.write(channel, b"\n")
        os.close(channel)
        while os.getpid() == own:
            _signal.pause()
        if on_alarm is not None:
            _signal.signal(_signal.SIGALRM, on_alarm)
        os.setsid()
        for path, source in places:
            target = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            copy_tree(source, target)
            os.close(target)
            os.close(source)
        for fd in opened:
            reopen(fd)
        os.chdir(here if os.path.isdir(here) else session.work)
        renew_loop(session.loop)
        renew_chance()
        session.pid = own = os.getpid()
        session.host.queue.clear()
        session.channel.take()


def copy_tree(source, target):
    """From one directory to another, given as descriptors. Pipes and sockets are left out."""
    with os.scandir(source) as found:
        for item in found:
            name, info = item.name, item.stat(follow_symlinks=False)
            kind = info.st_mode & 0o170000
            if kind == 0o120000:
                os.symlink(os.readlink(name, dir_fd=source), name, dir_fd=target)
            elif kind == 0o040000:
                os.mkdir(name, 0o700, dir_fd=target)
                inner = [os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=fd) for fd in (source, target)]
                copy_tree(*inner)
                for fd in inner:
                    os.close(fd)
            elif kind == 0o100000:
                inner = [os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=source),
                         os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=target)]
                copy_bytes(*inner)
                for fd in inner:
                    os.close(fd)
            else:
                continue
            if kind != 0o120000:
                os.chmod(name, info.st_mode & 0o7777, dir_fd=target)
            os.utime(name, ns=(info.st_atime_ns, info.st_mtime_ns), dir_fd=target, follow_symlinks=False)


def copy_bytes(source, target):
    at = 0
    while data := os.pread(source, 1 << 20, at):
        at += len(data)
        while data:
            data = data[os.write(target, data):]


def reopen(fd):
    """The open file is the parent's, with a position that both would move. A file without a name becomes another one without a name."""
    import fcntl
    place, at = os.readlink(f"/proc/self/fd/{fd}"), None
    flags, kept = fcntl.fcntl(fd, fcntl.F_GETFL), fcntl.fcntl(fd, fcntl.F_GETFD)
    kind = os.fstat(fd).st_mode & 0o170000
    if kind == 0o100000:
        at = os.lseek(fd, 0, os.SEEK_CUR)
    if kind == 0o100000 and os.fstat(fd).st_nlink == 0:
        new = os.open("/tmp", os.O_TMPFILE | os.O_RDWR | flags & os.O_APPEND, 0o600)
        with open(f"/proc/self/fd/{fd}", "rb") as source:
            copy_bytes(source.fileno(), new)
    else:
        new = os.open(place, flags & ~(os.O_CREAT | os.O_EXCL | os.O_TRUNC))
    if at is not None:
        os.lseek(new, at, os.SEEK_SET)
    os.dup2(new, fd, inheritable=not kept & fcntl.FD_CLOEXEC)
    os.close(new)


def renew_loop(loop):
    """The set of watched descriptors is the parent's, too."""
    if loop is None or loop.is_closed():
        return
    old, loop._selector = loop._selector, type(loop._selector)()
    old.close()
    loop._ssock.close()
    loop._csock.close()
    loop._internal_fds -= 1
    loop._make_self_pipe()


def renew_chance():
    """Parent and copies have the same pid, by which libraries notice a fork. The module random has noticed it."""
    if "ssl" in sys.modules:
        sys.modules["ssl"].RAND_add(os.urandom(32), 32.0)
    if "tempfile" in sys.modules:
        sys.modules["tempfile"]._name_sequence = None
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed(int.from_bytes(os.urandom(4), "little"))


