# SPDX-License-Identifier: Apache-2.0
"""C programs of the tests, compiled on the host once for all test processes."""
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from program import BINARY

# Runs a command and writes the most memory that a process of it held to a file. This parent is small: wait4() counts the forked copy
# of the parent too, and that of pytest would be larger than the command.
MEASURE = r"""
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	struct rusage usage;
	int status;
	pid_t pid = argc > 2 ? fork() : -1;
	if (pid == 0) {
		execvp(argv[2], argv + 2);
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &usage) < 0) return 126;
	dprintf(open(argv[1], O_WRONLY), "%ld", usage.ru_maxrss);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}"""


# What was compiled, by the digest of its source and flags: in the build tree, which all test processes share.
STORE = BINARY.parent / "test-helpers"


def compiled(argv, text):
    """The stored program; compiled if there is none. Two processes may do so at once: the later one's takes the place of the other's."""
    program = STORE / hashlib.sha256("\0".join([*argv, text]).encode()).hexdigest()
    if not program.exists():
        STORE.mkdir(exist_ok=True)
        made = program.with_suffix(f".{os.getpid()}")
        subprocess.run([*argv, "-o", made], input=text, text=True, check=True)
        made.rename(program)
    return program


class Compiler:
    def __init__(self, place):
        self.place, self.made = place, {}

    def __call__(self, source, name=None, static=True, flags=()):
        """Compiles C text or a file on the host; the program's path."""
        text = source.read_text() if isinstance(source, Path) else source
        key = (text, static, tuple(flags))
        if key not in self.made:
            out = self.place / (name or f"helper{len(self.made)}")
            if out.exists():
                out = self.place / f"{out.name}{len(self.made)}"
            argv = ["gcc", "-O1", "-x", "c", "-", *(["-static"] if static else []), *flags]
            if any("/" in flag for flag in flags):  # a path of this session is in no other
                subprocess.run([*argv, "-o", out], input=text, text=True, check=True)
            else:
                shutil.copy(compiled(argv, text), out)
            out.chmod(0o755)
            self.made[key] = out
        return self.made[key]
