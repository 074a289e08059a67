# SPDX-License-Identifier: Apache-2.0
"""The zygote's life, and that of a child until its program begins."""
import gc
import os
import sys
from _thread import get_native_id

from warm import ending, pages, program, samples, shelf, streams
from warm.ending import Launch, Run, state

modules = sys.modules


def rehearse(text, path="/dev/null"):
    """Runs a sample the way a program is run, and ends it so."""
    before = {name: sys.__dict__[name] for name in (*ending.GONE, "orig_argv") if name in sys.__dict__}
    main, path_before = modules["__main__"], list(sys.path)
    Run(program.become([sys.executable, path], "/", text.encode()))
    ending.flush()
    ending.destroy(["__main__"])
    for name in ending.GONE:
        sys.__dict__.pop(name, None)
    sys.__dict__.update(before)
    sys.path[:] = path_before
    modules["__main__"] = main


def rehearse_all(names):
    for name in (None, *names):
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


def reseed():
    """Random states that no hook of their own renews after fork()."""
    loaded = shelf.everything
    if "numpy.random" in loaded:
        key = loaded["numpy"].frombuffer(os.urandom(2496), "u4")
        loaded["numpy.random"].set_state(("MT19937", key, 623))
    if "ssl" in loaded:
        loaded["ssl"].RAND_add(os.urandom(32), 32.0)
    if "multiprocessing.process" in loaded:
        loaded["multiprocessing.process"].current_process().authkey = os.urandom(32)


class ScratchDirectory:
    """A variable names a new directory for as long as modules are loaded."""

    def __init__(self, variable):
        self.variable, self.before = variable, os.environ.get(variable)
        self.place = f"/tmp/{os.urandom(8).hex()}"

    def __enter__(self):
        os.mkdir(self.place, 0o700)
        os.environ[self.variable] = self.place

    def __exit__(self, *_):
        del os.environ[self.variable]
        if self.before is not None:
            os.environ[self.variable] = self.before
        for where, _, files in os.walk(self.place, topdown=False):
            for name in files:
                os.unlink(os.path.join(where, name))
            os.rmdir(where)


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


def act(names, report):
    """In the probe: becomes a child that was sent a sample."""
    text = (samples.BASE + repeated(names) + samples.FAILING).encode()
    read_source = program.source_of

    def source_of(path):
        read_source(modules["genericpath"].__file__)
        return text

    program.source_of = source_of
    words = [b"2", program.executable, os.fsencode(os.getcwd()).rstrip(b"/") + b"/code.py"]
    words += [name + b"=" + value for name, value in program.environ.items()] + [b""]
    state.control, writer = os.pipe()
    os.write(writer, b"r" + b"\0".join(words))
    os.close(writer)
    state.done = report
    streams.Scratch().__enter__()
    os.dup(0)
    os.dup2(os.open("/dev/null", os.O_RDONLY), 0)  # most programs have no input


def learn_pages(names):
    loaded = shelf.everything
    if "ctypes" not in loaded or "mmap" not in loaded:  # a minimal Python
        return
    pages.tighten(loaded["ctypes"])
    for _ in range(2):  # the first changes what the second finds
        probe = pages.learn(loaded["mmap"])
        if probe is not None:
            act(names, lambda _: pages.tell(probe))
            child()
        gc.collect()


def receive():
    text = os.read(state.control, 1 << 16)
    while True:
        more = os.read(state.control, 1 << 16)
        if not more:
            break
        text += more
    words = text.split(b"\0")
    count = int(words[0]) + 1
    return words[1:count], words[count:-1]


def child():
    state.owner = os.getpid()
    reseed()
    main_thread = shelf.everything["threading"]._main_thread
    if hasattr(main_thread, "_native_id"):
        main_thread._native_id = get_native_id()
    state.inode = os.fstat(state.control).st_ino
    if os.read(state.control, 1) == b"w":
        pages.populate()
    gc.freeze()
    state.collections = ending.collections()
    args, environment = receive()
    program.set_environment(environment)
    try:
        state.program = program.prepare(args)
    except BaseException:
        os.execv(args[0], args)
    if "multiprocessing.process" in shelf.everything:
        shelf.everything["multiprocessing.process"].ORIGINAL_DIR = os.getcwd()
    sys.unraisablehook = ending.unraisable
    gc.enable()
    raise Launch(state.program)


def load(cold, names):
    """Modules that bring hundreds of others stay visible: to take these off a shelf would cost their programs too much."""
    own = set(modules) - cold
    with ScratchDirectory("MPLCONFIGDIR"):
        shelf.load(name for name in names if name in samples.REPEATED)
        shelf.visible.update(cold, set(modules) - own, *shelf.needs.values())
        shelf.load(name for name in names if name not in samples.REPEATED)
        shelf.load(extra for name in names for extra in samples.COMPANIONS.get(name, ()))
        shelf.load(samples.STOCK)


def main(native, cold, names):
    """Never returns: in children it raises Launch."""
    place = sys.path.pop(0)
    sys.argv = [""]  # modules that look there find no words of anybody
    for name in [name for name in modules if name.partition(".")[0] == "warm"]:
        del modules[name]
    for entry in [entry for entry in sys.path_importer_cache if entry.startswith(place)]:
        del sys.path_importer_cache[entry]
    shelf.system_path.discard(place)
    program.learn(native)
    gc.disable()
    with shelf.Recorder():
        load(cold, names)
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
    gc.collect()
    gc.freeze()
    learn_pages(names)
    os.fork()
    child()
