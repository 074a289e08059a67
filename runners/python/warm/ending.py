# SPDX-License-Identifier: Apache-2.0
"""How an interpreter ends, without freeing what the kernel frees faster.

The order is that of Py_FinalizeEx and finalize_modules (pylifecycle.c): threads joined, exit functions, streams flushed, the
program's modules dropped, cycles collected, what is left emptied. Modules that were loaded ahead stay as they are.
"""
import atexit
import builtins
import sys
from _functools import partial
from _signal import SIG_DFL, SIGINT, signal
from _weakref import ref
from gc import collect, get_stats, isenabled
from posix import _exit, fstat, getpid, kill, read, write

from warm import shelf

__builtins__ = dict(builtins.__dict__)  # programs may change theirs, and any attribute of any module
BY_SIGINT = -1
GONE = {name: None for name in ("path", "argv", "ps1", "ps2", "last_type", "last_value", "last_traceback", "path_hooks",
                                "path_importer_cache", "meta_path", "__interactivehook__",
                                *(["last_exc"] if sys.version_info >= (3, 12) else []))}
FLUSHING = (None, "Exception ignored on flushing sys.stdout") if sys.version_info >= (3, 13) else ()
modules = sys.modules
module_type = type(sys)
builtin_count = len(builtins.__dict__)


class Run:
    """Runs a function that it has in its slot when it is freed, below no frame: the program, and what follows it. It is of one
    kind because the interpreter remembers where it found a finalizer by kind: a child that looked for others would write to the
    names that were remembered before, and copy a page for each."""
    __slots__ = ("__del__",)

    def __init__(self, function):
        self.__del__ = function


untrace = partial(sys.settrace, None)
unprofile = partial(sys.setprofile, None)
call_exits = atexit._run_exitfuncs


def join():
    """Waits for the program's threads."""
    threading = modules.get("threading")
    if threading is not None:
        try:
            threading._shutdown()
        except BaseException as error:
            complain(error, threading)


def flush_io():
    """flush_io (pythonrun.c), once the program's file has run: exit functions may leave at once. A failure is reported later.
    It is below no tracer, as in pythonrun.c."""
    for name in ("stderr", "stdout"):
        try:
            getattr(sys, name).flush()
        except BaseException:
            pass


def end():
    """Ends the process."""
    try:
        finish()
    except BaseException:  # the program has broken the interpreter
        pass
    leave(state.code)


def tell(code):
    """The broker reads the code and kills this process."""
    try:
        read(state.control, 0)  # the agent flushes libc's streams
    except OSError:
        pass
    try:
        if getpid() == state.owner and fstat(state.control).st_ino == state.inode:  # the program may have replaced the descriptor
            write(state.control, b"%d" % code)
            read(state.control, 1)
    except OSError:  # the program closed it: the wait status says the same
        pass


class Launch(SystemExit):
    """Raised to leave all frames. The interpreter asks for its code and frees it, and with it its arguments, last first."""
    code = None

    def __init__(self):
        super().__init__(Run(end), Run(call_exits), Run(join), Run(flush_io), Run(untrace), Run(unprofile), Run(None))


class State:
    def __init__(self):
        self.control = 100       # the agent's descriptor
        self.inode = None
        self.owner = None        # the process that reports the end
        self.sample = b""        # the launch text of the agent's probe
        self.seeders = []        # functions that seed random generators
        self.launch = []         # raised once, and never given to the program
        self.program = None      # the function that is running
        self.finalizers = False  # it may have some
        self.exit = None         # that of libc, for a program that may have used Fortran
        self.collections = -1    # of garbage, before it began
        self.code = 0            # how it ended

    def program_is(self, function):
        self.program = self.launch[0].args[-1].__del__ = function


state = State()


def unraisable(args):
    """sys.unraisablehook of a program: its own end comes here as well."""
    if args.object is state.program and args.object is not None:
        state.code = end_of(args.exc_type, args.exc_value, args.exc_traceback)
    elif args.object is not call_exits:  # 3.9 has reported it already
        sys.__unraisablehook__(args)


def end_of(kind, value, trace):
    """Handles an uncaught exception as the interpreter does; returns the exit code."""
    if issubclass(kind, SystemExit):
        return exit_code(value)
    sys.last_type, sys.last_value, sys.last_traceback = kind, value, trace
    if sys.version_info >= (3, 12):
        sys.last_exc = value
    hook = getattr(sys, "excepthook", None)
    try:
        if hook is None:
            sys.stderr.write("sys.excepthook is missing, printing exception\n")
            hook = sys.__excepthook__
        hook(kind, value, trace)
    except SystemExit as error:
        return exit_code(error)
    except BaseException as error:
        sys.stderr.write("Error in sys.excepthook:\n")
        sys.__excepthook__(type(error), error.with_traceback(error.__traceback__.tb_next), error.__traceback__)
        sys.stderr.write("\nOriginal exception was:\n")
        sys.__excepthook__(kind, value, trace)
    return BY_SIGINT if kind is KeyboardInterrupt else 1


def exit_code(value):
    """The exit code of a SystemExit."""
    try:
        code = value.code
    except BaseException:
        code = value
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 255 if -1 << 63 <= code < 1 << 63 else 255
    for text in (code, "\n"):
        try:
            sys.stderr.write(str(text))
        except BaseException:
            pass
    return 1


def hook_args_type():
    """The type of what sys.unraisablehook gets has no name."""
    seen = []
    hook, sys.unraisablehook = sys.unraisablehook, lambda args: seen.append(type(args))
    type("Fails", (), {"__del__": lambda self: self.nothing})()
    sys.unraisablehook = hook
    return seen[0]


hook_args = hook_args_type()


def complain(error, thing, message=None):
    trace = error.__traceback__ and error.__traceback__.tb_next
    sys.unraisablehook(hook_args((type(error), error.with_traceback(trace), trace, message, thing)))


def flush():
    """False if a stream could not be flushed."""
    good = True
    for name in ("stdout", "stderr"):
        file = getattr(sys, name, None)
        try:
            if file is not None and not getattr(file, "closed", False):
                file.flush()
        except BaseException as error:
            good = False
            if name == "stdout":
                complain(error, *FLUSHING or (file,))
    return good


def flush_quietly():
    for name in ("__stdout__", "__stderr__"):
        try:
            getattr(sys, name).flush()
        except BaseException:
            pass


def empty(scope):
    """_PyModule_ClearDict: names with one underscore first."""
    for name in list(scope):
        if isinstance(name, str) and name[:1] == "_" and name[1:2] != "_":
            scope[name] = None
    for name in list(scope):
        if name != "__builtins__":
            scope[name] = None


def collections():
    return sum([generation["collections"] for generation in get_stats()])


def destroy(names, finalizers=False):
    """Ends the modules and with them their objects. With finalizers: these can import nothing and show no source lines."""
    state.program = None
    scope = sys.__dict__
    if (finalizers or len(names) > 1) and isenabled():
        collect()
    if "_" in builtins.__dict__:
        builtins._ = None
    scope.update(GONE)
    scope["stdin"], scope["stdout"], scope["stderr"] = scope.get("__stdin__"), scope.get("__stdout__"), scope.get("__stderr__")
    alive = []
    for name in names:
        module = modules[name]
        modules[name] = None
        if isinstance(module, module_type):
            alive.append(ref(module))
        module = None
    if finalizers:
        modules.clear()
        shelf.close()
    if len(builtins.__dict__) != builtin_count:
        for name in builtins.__dict__.keys() - __builtins__.keys():
            del builtins.__dict__[name]
    # All that is new is still young: the rest of a full collection would only empty caches.
    collect(2 if collections() != state.collections else 0)
    alive = [reference for reference in alive if reference() is not None]
    for reference in reversed(alive):
        empty(reference().__dict__)
    if alive:
        collect()


def finish():
    if "scipy" in modules:
        state.exit = modules["ctypes"].PyDLL(None).exit
    if not flush():
        state.code = 120
    destroy(["__main__", *shelf.foreign()], state.finalizers)
    flush_quietly()


def leave(code):
    if code == BY_SIGINT:
        signal(SIGINT, SIG_DFL)
        kill(getpid(), SIGINT)
    if state.exit is not None:  # Fortran's library writes what is left in its buffers when the process calls exit()
        state.exit(code)
    tell(code)
    _exit(code)
