# SPDX-License-Identifier: Apache-2.0
"""The zygote's life, and that of a child until its program begins."""
import gc
import os
import sys
from _thread import get_native_id
from time import time, time_ns

from warm import ending, pages, program, samples, shelf, streams
from warm.ending import Launch, Run, state

modules = sys.modules
ROOM = 1 << 14
# Modules whose functions for after a fork children can do without: there is one thread and no lock is held, seeders() are for
# random, and forget() for the open fonts of matplotlib. They would copy about 75 pages that programs do not touch.
QUIET_FORKERS = {"concurrent.futures.thread", "logging", "matplotlib.font_manager", "random", "threading"}


def rehearse(text, path="/dev/null"):
    """Runs a sample the way a program is run, and ends it so."""
    before = {name: sys.__dict__[name] for name in (*ending.GONE, "orig_argv") if name in sys.__dict__}
    main, path_before = modules["__main__"], list(sys.path)
    Run(program.become([sys.executable, path], 1, ["/"], text.encode()))
    ending.flush()
    ending.destroy(["__main__"])
    for name in ending.GONE:
        sys.__dict__.pop(name, None)
    sys.__dict__.update(before)
    sys.path[:] = path_before
    modules["__main__"] = main


def rehearse_all(names):
    for name in (None, "json", *names):
        for text in samples.AHEAD.get(name, ()):
            if name is None or name in modules:
                rehearse(text)


def repeated(names):
    return "".join([samples.REPEATED[name] for name in names if name in samples.REPEATED and name in modules][-1:])


def rehearse_failure():
    def report(args):
        ending.end_of(args.exc_type, args.exc_value, args.exc_traceback)

    hook, sys.unraisablehook = sys.unraisablehook, report
    rehearse(samples.FAILING)
    sys.unraisablehook = hook


def numpy_seeder(numpy):
    """A function that puts random bytes where numpy's generator has its state. numpy's own functions would copy a hundred pages. None:
    the state lies elsewhere."""
    generator, ctypes = numpy.random.mtrand._rand, numpy.ctypeslib.ctypes
    generator.set_state(("MT19937", generator.get_state()[1], 623))  # as a new one is
    key = (ctypes.c_char * 2496).from_address(generator._bit_generator.ctypes.state_address.value)
    if key.raw != generator.get_state()[1].tobytes():
        return None
    place = memoryview(key).cast("B")
    return lambda: place.__setitem__(slice(2496), os.urandom(2496))


def seeders():
    """Functions that give the generators of all loaded modules new states. No program may see a state of the zygote, so every child
    calls all of them; they copy few pages."""
    loaded, found = shelf.everything, []
    if "random" in loaded:
        generator = loaded["random"]._inst
        generator.seed()  # drops what a sample left beside the state
        found.append(super(loaded["random"].Random, generator).seed)
    if "numpy.random" in loaded:
        numpy = loaded["numpy"]
        try:
            found.append(numpy_seeder(numpy) or numpy.random.seed)
        except AttributeError:  # another numpy
            found.append(numpy.random.seed)
    if "ssl" in loaded:
        found.append(lambda: loaded["ssl"].RAND_add(os.urandom(32), 32.0))
    if "multiprocessing.process" in loaded:
        process = loaded["multiprocessing.process"].current_process()
        found.append(lambda: setattr(process, "authkey", os.urandom(32)))
    return found


class ScratchDirectory:
    """A variable names a new directory for as long as modules are loaded. An ordinary user's is on the host, so another
    process removes it: the process waits for the end of a pipe, which comes also when the zygote is killed. If both were
    killed, the next zygote of this user removes the directory, because its lock is free."""

    PREFIX, DIGITS, OLD_NS, MOST = "atoll-", 16, 60 * 10**9, 50

    def __init__(self, variable):
        self.variable, self.before = variable, os.environ.get(variable)
        self.place = f"/tmp/{self.PREFIX}{os.urandom(self.DIGITS // 2).hex()}"

    def appoint(self):
        reader, self.writer = os.pipe()
        script = 'trap "" HUP INT TERM; while read -r left; do rm -rf "$left"; done; rm -rf "$0"'
        self.remover = os.posix_spawn("/bin/sh", ["sh", "-c", script, self.place], {},
                                      file_actions=[(os.POSIX_SPAWN_DUP2, reader, 0)])
        os.close(reader)

    def dismiss(self):
        """True: it has done its work."""
        os.close(self.writer)
        return os.waitpid(self.remover, 0)[1] == 0

    def is_left(self, place, now_ns):
        """Whether a zygote made it that is dead. One that is being made has no lock yet, but is not old either."""
        try:
            found = os.lstat(place)
            if found.st_mode & 0o170777 != 0o40700 or found.st_uid != os.geteuid() or found.st_mtime_ns > now_ns - self.OLD_NS:
                return False
            lock = os.open(f"{place}/lock", os.O_RDWR | os.O_NOFOLLOW)
        except OSError as trouble:
            return isinstance(trouble, FileNotFoundError) and os.path.isdir(place)
        try:
            os.lockf(lock, os.F_TEST, 0)
        except OSError:
            return False
        finally:
            os.close(lock)
        return True

    def left_behind(self):
        names = [name for name in os.listdir("/tmp") if name.startswith(self.PREFIX) and
                 len(name) == len(self.PREFIX) + self.DIGITS and not name[len(self.PREFIX):].strip("0123456789abcdef")]
        now_ns = os.lstat(self.place).st_mtime_ns
        return [place for place in map("/tmp/".__add__, names) if self.is_left(place, now_ns)][:self.MOST]

    def __enter__(self):
        self.appoint()
        os.mkdir(self.place, 0o700)
        self.lock = os.open(f"{self.place}/lock", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.lockf(self.lock, os.F_TLOCK, 0)
            os.write(self.writer, "".join(f"{place}\n" for place in self.left_behind()).encode())
        except OSError:  # no locks there; or the remover was killed, and another one follows
            pass
        os.environ[self.variable] = self.place

    def __exit__(self, *_):
        del os.environ[self.variable]
        if self.before is not None:
            os.environ[self.variable] = self.before
        if not self.dismiss():
            self.appoint()
            self.dismiss()
        os.close(self.lock)


def forget():
    """What modules remember of the host or of samples."""
    loaded = shelf.everything
    if "platform" in loaded:
        loaded["platform"]._uname_cache = None
        loaded["platform"]._platform_cache.clear()
    if "tempfile" in loaded:
        loaded["tempfile"].tempdir = loaded["tempfile"]._name_sequence = None
    if "linecache" in loaded:
        loaded["linecache"].clearcache()
    for function in (getattr(loaded.get("matplotlib"), name, None) for name in ("get_configdir", "get_cachedir")):
        code = getattr(function, "__code__", None)
        if code is not None and "called" in code.co_freevars:
            function.__closure__[code.co_freevars.index("called")].cell_contents = False
    get_font = getattr(loaded.get("matplotlib.font_manager"), "_get_font", None)
    if hasattr(get_font, "cache_clear"):
        get_font.cache_clear()
    pyplot = loaded.get("matplotlib.pyplot")
    if hasattr(pyplot, "_backend_mod"):  # a program may choose another before it imports pyplot
        pyplot._backend_mod = None
        pyplot._REPL_DISPLAYHOOK = type(pyplot._REPL_DISPLAYHOOK).NONE
        dict.__setitem__(pyplot.rcParamsDefault, "backend", loaded["matplotlib.rcsetup"]._auto_backend_sentinel)


def settle(names):
    """The zygote's last step: after it the zygote allocates and frees nothing, so that children find the memory that the probe found."""
    if "numpy" in shelf.everything:
        pages.fill_arrays(shelf.everything["numpy"])
    state.sample = program.usual + samples.usual(names).encode()
    state.seeders = seeders()
    gc.collect()
    Run(gc.isenabled)  # so that children know where its finalizer is
    pages.fill_pools()
    gc.freeze()
    state.collections = ending.collections()
    # After freeze(): a program's collections must see its main module.
    program.expect()
    sys.unraisablehook = ending.unraisable
    state.launch.append(Launch())


def receive():
    """The launch text."""
    text = more = os.read(state.control, ROOM)
    while len(more) == ROOM:
        more = os.read(state.control, ROOM)
        text += more
    return text


def begin(text):
    """The program as a function."""
    try:
        return program.as_expected(text) or program.prepare(*program.split(text))
    except BaseException:
        args = program.split(text)[0]
        os.execv(args[0], args)


def child():
    """The read, or fork(), returns only in children, each already in its sandbox, and in the agent's probe (agent.h)."""
    if shelf.forkers - QUIET_FORKERS:
        os.fork()
    kind = os.read(state.control, 1)
    state.owner = os.getpid()
    for seed in state.seeders:
        seed()
    threading = shelf.everything.get("threading")
    if threading is not None and hasattr(threading._main_thread, "_native_id"):
        threading._main_thread._native_id = get_native_id()
    state.inode = os.fstat(state.control).st_ino
    state.program_is(begin(state.sample if kind == b"p" else receive()))
    logging = shelf.everything.get("logging")
    if logging is not None:  # %(relativeCreated)d counts from there
        logging._startTime = time() if isinstance(logging._startTime, float) else time_ns()
    if "multiprocessing.process" in shelf.everything:
        shelf.everything["multiprocessing.process"].ORIGINAL_DIR = os.getcwd()
    gc.enable()
    raise state.launch.pop()


def wants_stock(cold, names):
    """Whether to load more than the names. Not if an interpreter has all of them anyway: then the programs import nothing else, and a
    small zygote is forked faster."""
    return not names or not cold.union(sys.builtin_module_names).issuperset(names)


def load(cold, names, stock):
    """Modules that bring hundreds of others stay visible: to take these off a shelf would cost their programs too much."""
    own = set(modules) - cold
    with ScratchDirectory("MPLCONFIGDIR"):
        shelf.load(name for name in names if name in samples.REPEATED)
        shelf.visible.update(cold, set(modules) - own, *shelf.needs.values())
        shelf.load(name for name in names if name not in samples.REPEATED)
        shelf.load(extra for name in names for extra in samples.COMPANIONS.get(name, ()))
        shelf.load(samples.STOCK if stock else ())


def main(native, cold, names):
    """Never returns: in children it raises Launch."""
    place = sys.path.pop(0)
    sys.argv = [""]  # modules that look there find no arguments
    for name in [name for name in modules if name.partition(".")[0] == "warm"]:
        del modules[name]
    for entry in [entry for entry in sys.path_importer_cache if entry.startswith(place)]:
        del sys.path_importer_cache[entry]
    shelf.system_path.discard(place)
    stock = wants_stock(cold, names)
    program.learn(native, stock)
    gc.disable()
    with shelf.Recorder():
        load(cold, names, stock)
        with streams.Scratch():
            streams.renew()
            for _ in range(3):
                rehearse_all(names)
            rehearse_failure()
    if len(os.listdir("/proc/self/task")) != 1:
        sys.exit("zygote.py: a module started a thread: " + " ".join(names))
    shelf.arrange(cold)
    with streams.Scratch():
        rehearse(samples.BASE + repeated(names))
    shelf.put_back()
    forget()
    settle(names)
    child()
