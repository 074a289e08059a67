# SPDX-License-Identifier: Apache-2.0
"""Turns this interpreter into one that was started with a program.

Anything that it cannot do in exactly the interpreter's way is refused with an exception; the caller then starts a new
interpreter, which has seen nothing of the attempt.
"""
import os
import sys
import warnings
from posix import O_CLOEXEC, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, close, fstat, listdir, open, read
from stat import S_ISREG

from warm import shelf, streams
from warm.ending import state

modules = sys.modules
module_type = type(sys)
function_type = type(lambda: None)
environ = os.environ._data
executable = os.fsencode(getattr(sys, "orig_argv", [sys.executable])[0])
coding = (sys.getfilesystemencoding(), sys.getfilesystemencodeerrors())
native = {}      # globals of a main program, in order
loader = None
PLACE = "/sandbox"
PROGRAM = "/sandbox/main.py"  # what most programs are called
SESSION = "/sandbox/.atoll-session.py"  # the program of sessions
session = None   # the program of sessions, and its code, compiled ahead
usual = b""      # how the launch text of most programs begins: all but the program


class Unusual(Exception):
    """A new interpreter has to do it."""


def learn(names, sessions):
    """Takes the globals that this interpreter gave to its main program, and the variables that most programs have; compiles the
    program of sessions, if there will be sessions."""
    global loader, session, usual
    variables = filter(None, os.environb.pop(b"ATOLL_USUAL", b"").split(b"\n"))
    usual = b"\0".join([streams.USUAL, b"2", executable, os.fsencode(PROGRAM), *variables, b""])
    native.update(names, __doc__=None)
    beside = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parts = [source_of(f"{beside}/{name}") for name in os.environ.pop("ATOLL_SESSION", "").split()]
    if parts and sessions:
        session = b"".join(parts), compile(b"".join(parts), SESSION, "exec", 0, True)
    loader = type(names["__loader__"])
    finder = sys.path_hooks[-1]("/")
    finder.path = PLACE  # there is no such directory yet
    sys.path_importer_cache[PLACE] = finder


def new_main(path):
    module = module_type("__main__")
    scope = module.__dict__
    scope.update(native)
    scope["__loader__"] = loader("__main__", path)
    scope["__file__"] = path
    if "__annotations__" in native:
        scope["__annotations__"] = {}
    return module


def set_environment(entries):
    environ.clear()
    environ.update([entry.split(b"=", 1) for entry in entries])


def source_of(path):
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
    info = fstat(fd)
    if not S_ISREG(info.st_mode):
        raise Unusual
    size = info.st_size
    text = read(fd, size + 1)
    while len(text) < size:
        more = read(fd, size)
        if not more:
            break
        text += more
    close(fd)
    return text


def compiled(text, path):
    """The code, and warnings to show once nothing can go wrong any more."""
    if path == SESSION and session and text == session[0]:
        return session[1], ()
    if b"unraisablehook" in text:  # it would see how its own end is found out
        raise Unusual
    if not text.isascii():  # compile() lets bad bytes in comments pass
        text.decode()
    show, held = warnings._showwarnmsg, []
    absent = "warnings" not in modules
    if absent:  # the interpreter would show them by itself
        modules["warnings"] = warnings
    warnings._showwarnmsg = held.append
    try:
        return compile(text, path, "exec", 0, True), held
    finally:
        warnings._showwarnmsg = show
        if absent:
            del modules["warnings"]


def set_up(words, at, places):
    """What programs can see of how their interpreter was started with the script words[at]; their globals."""
    main = modules["__main__"] = new_main(words[at])
    sys.argv = words[at:]
    if "orig_argv" in sys.__dict__:
        sys.orig_argv = words
    sys.path[:0] = places
    return main.__dict__


def become(words, at, places, text, kinds=streams.USUAL):
    """Everything that programs can see of their interpreter; the program as a function."""
    code, held = compiled(text, words[at])
    scope = set_up(words, at, places)
    if b"PYTHONUNBUFFERED" in environ:
        streams.unbuffer()
    elif kinds != streams.USUAL:
        streams.settle(kinds)
    for message in held:
        warnings._showwarnmsg(message)
    return function_type(code, scope)


def expect():
    """Most of it, ahead of time: for a launch text that begins as usual."""
    args, environment, _, _ = split(usual)
    set_environment(environment)
    set_up([word.decode(*coding) for word in args], 1, [PLACE])


def as_expected(text):
    """The program as a function; None: the text begins otherwise."""
    begins_so, text = text.startswith(usual), text[len(usual):]
    if not begins_so or not text or b"\0" in text:  # more variables
        del sys.path[0]
        return None
    state.finalizers = b"__del__" in text
    code, held = compiled(text, PROGRAM)
    for message in held:
        warnings._showwarnmsg(message)
    return function_type(code, modules["__main__"].__dict__)


def split(text):
    """Words, variables, what the streams are, and the program; nothing: there are other files beside it."""
    words = text.split(b"\0")
    kinds, code = words[0], words.pop()
    count = int(words[1]) + 2
    return words[2:count], words[count:], kinds, code


def places_of(words, script):
    """Where modules are looked for first: beside the program, or with -P where PYTHONPATH says."""
    if words[1] != "-P":
        return [os.path.realpath(script.rpartition("/")[0])]
    return os.fsdecode(environ[b"PYTHONPATH"]).split(":")


def prepare(args, environment, kinds, text):
    """text is empty: it is in its file, and others may lie beside it."""
    set_environment(environment)
    at = 2 if args[1:2] == [b"-P"] and b"PYTHONPATH" in environ else 1
    if len(args) <= at or args[0] != executable or args[at][:1] in b"-":
        raise Unusual
    if environ.get(b"PYTHONUNBUFFERED", b"1") != b"1":  # a number, which may be 0, or any text
        raise Unusual
    words = [word.decode(*coding) for word in args]
    script = words[at]
    places = places_of(words, script)
    if PLACE not in places:
        sys.path_importer_cache.pop(PLACE, None)
    if text and places == [PLACE]:
        names = (script.rpartition("/")[2],)
    else:
        names = [name for place in places for name in listdir(place)]
        text = text or source_of(script)
    # Files that come before a module loaded ahead.
    if not shelf.tops.isdisjoint([name.partition(".")[0] for name in names]):
        raise Unusual
    state.finalizers = b"__del__" in text
    return become(words, at, places, text, kinds)
