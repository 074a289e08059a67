# SPDX-License-Identifier: Apache-2.0
"""Keeps `import code` from finding the program, /sandbox/code.py.

A new interpreter finds this file, in a folder that stands first in PYTHONPATH, as the first module that it imports by path,
`encodings`. Folder and name are given back at once: nothing that is imported later passes by, and programs see nothing of it.
The zygote (warm/) uses hide() only. startup.cpython-311.bin is this file compiled: see make-startup.py.
"""
import sys

PLACE = "/sandbox"
PROGRAM = "/sandbox/code.py"


def hide(finder):
    """Makes the finder of PLACE pass the program by."""
    find = finder.find_spec

    def find_spec(fullname, target=None):
        spec = find(fullname, target)
        # pytest imports the file it tests by that name.
        return None if spec is not None and spec.origin == PROGRAM and "pytest" not in sys.modules else spec

    # The interpreter cuts frames of this file out of tracebacks.
    find_spec.__code__ = find_spec.__code__.replace(co_filename="<frozen importlib._bootstrap_external>")
    finder.find_spec = find_spec
    sys.path_importer_cache[PLACE] = finder


if __name__ == "encodings":
    import posix  # which os takes its environment from, later
    place = sys.path.pop(0)
    del sys.path_importer_cache[place], sys.modules["encodings"]
    others = posix.environ[b"PYTHONPATH"][len(place) + 1:]
    if others:
        posix.environ[b"PYTHONPATH"] = others
        posix.putenv(b"PYTHONPATH", others)
    else:
        del posix.environ[b"PYTHONPATH"]
        posix.unsetenv(b"PYTHONPATH")
    if PROGRAM in sys.argv[:2]:  # the second word: the tool of invoke.py
        hide(sys.path_hooks[-1](PLACE))
    import encodings
