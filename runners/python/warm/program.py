# SPDX-License-Identifier: Apache-2.0
"""Turns this interpreter into one that was started with a program.

Anything that it cannot do in exactly the interpreter's way is refused with an exception; the caller then starts a new
interpreter, which has seen nothing of the attempt.
"""
import os
import sys
import warnings
from posix import O_CLOEXEC, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, close, fstat, getcwd, listdir, open, read
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


class Unusual(Exception):
    """A new interpreter has to do it."""


def learn(names):
    """Takes the globals that this interpreter gave to its main program."""
    global loader
    native.update(names, __doc__=None)
    loader = type(names["__loader__"])


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


def become(words, place, text):
    """Everything that programs can see of their interpreter; the program as a function."""
    code, held = compiled(text, words[1])
    main = modules["__main__"] = new_main(words[1])
    sys.argv = words[1:]
    if "orig_argv" in sys.__dict__:
        sys.orig_argv = words
    sys.path.insert(0, place)
    streams.settle()
    for message in held:
        warnings._showwarnmsg(message)
    return function_type(code, main.__dict__)


def prepare(args):
    if len(args) < 2 or args[0] != executable or args[1][:1] in b"-":
        raise Unusual
    words = [word.decode(*coding) for word in args]
    place = words[1].rpartition("/")[0]
    if place != getcwd():
        place = os.path.realpath(place)
    # Files that come before a module loaded ahead.
    if not shelf.tops.isdisjoint([name.partition(".")[0] for name in listdir(place)]):
        raise Unusual
    text = source_of(words[1])
    state.finalizers = b"__del__" in text
    return become(words, place, text)
