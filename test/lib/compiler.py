# SPDX-License-Identifier: Apache-2.0
"""C programs of the tests, compiled on the host once a session."""
import subprocess
from pathlib import Path

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
            argv = ["gcc", "-O1", "-x", "c", "-", "-o", out, *(["-static"] if static else []), *flags]
            subprocess.run(argv, input=text, text=True, check=True)
            out.chmod(0o755)
            self.made[key] = out
        return self.made[key]
