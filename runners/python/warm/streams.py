# SPDX-License-Identifier: Apache-2.0
"""sys.stdin, sys.stdout and sys.stderr as an interpreter makes them when it starts (create_stdio in pylifecycle.c)."""
import io
import os
import sys

NAMES = ("stdin", "stdout", "stderr")
# What the descriptors are, as a launch's note says: pipes, the null device, others.
USUAL = b"npp"


def stream(fd, like, buffered=True):
    """A stream on the descriptor, with the encoding of another one."""
    binary = io.open(fd, "wb" if fd else "rb", -1 if buffered or fd == 0 else 0, closefd=False)
    raw = getattr(binary, "raw", binary)
    raw.name = f"<{NAMES[fd]}>"
    text = io.TextIOWrapper(binary, like.encoding, like.errors, "\n", buffered and (fd == 2 or raw.isatty()), not buffered)
    text.mode = "w" if fd else "r"
    return text


class Scratch:
    """Replaces the three descriptors for a while by a pipe without a reader, of the kind that programs have."""

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


pipe_input = None  # sys.stdin of a program that has input


def replace(fd, made):
    setattr(sys, NAMES[fd], made)
    setattr(sys, f"__{NAMES[fd]}__", made)


def renew():
    """Makes all three anew, on pipes; and the first on the null device, which most programs have there."""
    global pipe_input
    for fd, name in enumerate(NAMES):
        replace(fd, stream(fd, getattr(sys, name)))
    pipe_input = sys.stdin
    null = os.open("/dev/null", os.O_RDONLY)
    kept = os.dup(0)
    os.dup2(null, 0)
    replace(0, stream(0, pipe_input))
    os.dup2(kept, 0)
    os.close(null)
    os.close(kept)


def settle(kinds):
    """Puts others in the place of those that were made on something else."""
    for fd, kind in enumerate(kinds):
        if kind != USUAL[fd]:
            replace(fd, pipe_input if fd == 0 and kind == 0x70 else stream(fd, getattr(sys, NAMES[fd])))


def unbuffer():
    """As PYTHONUNBUFFERED has them."""
    for fd, name in enumerate(NAMES):
        replace(fd, stream(fd, getattr(sys, name), False))
