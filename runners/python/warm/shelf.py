# SPDX-License-Identifier: Apache-2.0
"""Modules that are loaded, but enter sys.modules only when they are imported.

While modules are loaded ahead, a Recorder notes which module imports which. Then they go to the shelf. An import of one takes back
everything it reaches. Three things that an import leaves elsewhere are kept off as well and come back with it: attributes of
packages (`import urllib; urllib.parse` fails unless the latter was imported), functions for atexit, warning filters.
"""
import atexit
import builtins
import os
import sys
import warnings
from posix import listdir

__builtins__ = dict(builtins.__dict__)  # programs may change theirs
modules = sys.modules
bootstrap = modules["_frozen_importlib"]
find_and_load = bootstrap._find_and_load
import_statement = builtins.__import__
register = atexit.register
register_at_fork = os.register_at_fork

visible = set()  # names that stay in sys.modules
stored = {}      # name -> module, the shelf
taken = set()    # names that the program has had of it
everything = {}  # name -> module, of both kinds
known = everything.keys()
newest = None    # the last name in sys.modules when a program begins
tops = set()     # those without a dot
needs = {}       # name -> names it imported
closures = {}    # name -> Pack, for names likely to be asked for
accidents = {}   # name -> (package, attribute) that only an import of the submodule sets
exits = {}       # name -> [(function, args, kwargs)]
filters = {}     # name -> warning filters
forkers = set()  # names that want to be called after a fork
system_path = set(sys.path)


class Recorder:
    """Notes what the execution of which module imports, and what goes to atexit and to os.register_at_fork.

    An import inside a function that is called later is not recorded: the program may make that call, or not."""

    def __init__(self):
        self.stack = ["__main__"]
        self.hooks = (self.statement, self.load, self.exit, self.fork)

    def statement(self, name, globals=None, locals=None, fromlist=(), level=0):
        module = import_statement(name, globals, locals, fromlist, level)
        full = module.__name__ if level else name
        wanted = needs.setdefault(self.stack[-1], set())
        wanted.add(full)
        wanted.update(f"{full}.{item}" for item in fromlist or () if f"{full}.{item}" in modules)
        return module

    def load(self, name, import_):
        needs.setdefault(self.stack[-1], set()).add(name)
        self.stack.append(name)
        try:
            return find_and_load(name, import_)
        finally:
            self.stack.pop()

    def exit(self, function, *args, **kwargs):
        owner = getattr(function, "__module__", None)
        if atexit.register is register or owner not in modules:
            return register(function, *args, **kwargs)
        exits.setdefault(owner, []).append((function, args, kwargs))
        return function

    def fork(self, **functions):
        forkers.add(self.stack[-1])
        register_at_fork(**functions)

    def __enter__(self):
        builtins.__import__, bootstrap._find_and_load, atexit.register, os.register_at_fork = self.hooks

    def __exit__(self, *_):
        builtins.__import__, bootstrap._find_and_load, atexit.register = import_statement, find_and_load, register
        os.register_at_fork = register_at_fork


def load(names):
    """Imports the modules, as far as they can be imported; the rest will fail in the program as well."""
    for name in names:
        before = list(warnings.filters)
        try:
            builtins.__import__(name)
        except Exception as error:
            sys.stderr.write(f"zygote.py: {name} is left out: {error!r}\n")
        added = [item for item in warnings.filters if item not in before]
        if added:
            filters[name] = added
            warnings.filters[:] = before
            warnings._filters_mutated()


def reach(name):
    found, todo = {name: None}, [name]
    while todo:
        name = todo.pop()
        parent = name.rpartition(".")[0]
        for other in (*needs.get(name, ()), *([parent] if parent else ())):
            if other not in found and other in stored:
                found[other] = None
                todo.append(other)
    return tuple(found)


def arrange(cold):
    """Puts all away but what is to be visible; finds out what must come back with what."""
    global newest
    everything.update(modules)
    stored.update((name, modules[name]) for name in modules if name not in visible)
    for name, module in [*stored.items()]:
        del modules[name]
        package, _, attribute = name.rpartition(".")
        owner = stored.get(package) or modules.get(package)
        if owner is not None and owner.__dict__.get(attribute) is module and name not in reach(package):
            accidents[name] = (owner, attribute)
            delattr(owner, attribute)
    same = {}
    for name in stored:
        if name.count(".") < 2:
            pack = reach(name)
            closures[name] = same.setdefault(frozenset(pack), Pack(pack))
    for name in filters:
        if name in visible:
            warnings.filters[:0] = filters[name]
            warnings._filters_mutated()
    for name in exits:
        if name in visible:
            for function, args, kwargs in exits[name]:
                register(function, *args, **kwargs)
    newest = next(reversed(modules))
    tops.update(name.partition(".")[0] for name in known - cold)
    bootstrap._find_and_load = _find_and_load


class Pack:
    """What comes back together."""

    def __init__(self, names):
        self.modules = {name: stored[name] for name in names}
        self.effects = [name for name in names if name in accidents or name in exits or name in filters]


def put_back():
    """After samples ran: what they took goes back to the shelf."""
    taken.clear()
    for name in [name for name in modules if name not in visible]:
        del modules[name]
        if name in accidents:
            delattr(*accidents[name])
        for function, _, _ in exits.get(name, ()):
            atexit.unregister(function)
        if name in filters:
            warnings.filters[:] = [item for item in warnings.filters if item not in filters[name]]
            warnings._filters_mutated()


def close():
    bootstrap._find_and_load = find_and_load


def foreign():
    """Names of modules that are the program's own. Only new names are looked at: to look at one is to copy its page."""
    found = []
    for name in reversed(modules):
        if name == newest:
            break
        if name not in known:
            found.append(name)
    return found[::-1]


def shadowed(name):
    """True if a file of the program's would be found before the module."""
    top = name.partition(".")[0]
    for place in sys.path:
        if place in system_path:
            return False
        try:
            if any(entry.partition(".")[0] == top for entry in listdir(place or ".")):
                return True
        except (OSError, TypeError, AttributeError):
            continue
    return False


def take(name):
    pack = closures.get(name) or Pack(reach(name))
    fresh = pack.modules
    if not taken.isdisjoint(fresh) or not modules.keys().isdisjoint(fresh):
        fresh = {name: module for name, module in fresh.items() if name not in taken and name not in modules}
    modules.update(fresh)
    taken.update(pack.modules)
    for name in pack.effects:
        if name not in fresh:
            continue
        if name in accidents:
            setattr(*accidents[name], stored[name])
        for function, args, kwargs in exits.get(name, ()):
            register(function, *args, **kwargs)
        if name in filters:
            warnings.filters[:0] = filters[name]
            warnings._filters_mutated()


def _find_and_load(name, import_):
    if name in stored and name not in taken and sys.modules is modules and not shadowed(name):
        take(name)
        if name in modules:
            return modules[name]
    return find_and_load(name, import_)


# The interpreter cuts frames of this file out of tracebacks.
for function in (_find_and_load, take, shadowed, reach, Pack.__init__):
    function.__code__ = function.__code__.replace(co_filename="<frozen importlib._bootstrap>")
