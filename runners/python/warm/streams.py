# SPDX-License-Identifier: Apache-2.0
"""sys.stdin, sys.stdout and sys.stderr as an interpreter makes them when it starts (create_stdio in pylifecycle.c)."""
import io
import os
import sys
from posix import fstat

NAMES = ("stdin", "stdout", "stderr")
NULL = os.makedev(1, 3)
TYPE, PIPE = 0o170000, 0o010000  # of st_mode


def stream(fd, like):
    """A stream on the descriptor, with the encoding of another one."""
    binary = io.open(fd, "wb" if fd else "rb", -1, closefd=False)
    binary.raw.name = f"<{NAMES[fd]}>"
    text = io.TextIOWrapper(binary, like.encoding, like.errors, "\n", fd == 2 or binary.raw.isatty())
    text.mode = "w" if fd else "r"
    return text


class Scratch:
    """Makes the three descriptors a pipe that nobody reads, of the kind that a program's are, for a while."""

    def __enter__(self):
        self.kept = [os.dup(fd) for fd in range(3)]
        reader, writer = os.pipe()
        os.dup2(reader, 0)
        os.dup2(writer, 1)
        os.dup2(writer, 2)
        os.close(reader)
        os.close(writer)

    def __exit__(self, *_):
        for fd, kept in enumerate(self.kept):
            os.dup2(kept, fd)
            os.close(kept)


null_input = None  # sys.stdin of a program that has no input


def renew():
    """Makes all three anew, on whatever the descriptors are now."""
    global null_input
    for fd, name in enumerate(NAMES):
        made = stream(fd, getattr(sys, name))
        setattr(sys, name, made)
        setattr(sys, f"__{name}__", made)
    null = os.open("/dev/null", os.O_RDONLY)
    kept = os.dup(0)
    os.dup2(null, 0)
    null_input = stream(0, sys.stdin)
    os.dup2(kept, 0)
    os.close(null)
    os.close(kept)


def settle():
    """Puts others in the place of those that were made on a pipe and are something else now."""
    kind = fstat(0)
    if kind.st_mode & TYPE != PIPE:
        sys.stdin = sys.__stdin__ = null_input if kind.st_rdev == NULL else stream(0, sys.stdin)
    if fstat(1).st_mode & TYPE != PIPE:
        sys.stdout = sys.__stdout__ = stream(1, sys.stdout)
    if fstat(2).st_mode & TYPE != PIPE:
        sys.stderr = sys.__stderr__ = stream(2, sys.stderr)
