#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Text of programs reaches a terminal escaped: commands write through src/atoll/commands/printer.c and nothing else.

print_out(), print_text() and print_json() escape what they write. A call that writes by itself, and print_raw(), which changes
nothing, stand only in the files below, each for the reason beside it.
"""

import re

import lint

FOLDERS = ("src/atoll/commands", "src/atoll/remote")

WRITES = re.compile(
    r"(?<![\w.>])(write|writev|pwrite|fd_write_all|printf|vprintf|fprintf|vfprintf|dprintf|vdprintf|puts|fputs|putchar|fputc|putc"
    r"|fwrite|perror|psignal|sendfile|splice|print_raw)\s*\("
)

OWN = {
    "src/atoll/commands/printer.c": "it is the way",
    "src/atoll/commands/cmd-run.c": "run_output(): the program's own output, live",
    "src/atoll/commands/remote-events.c": "remote_output_plain(): the program's own output, live",
    "src/atoll/commands/repl.c": "the session's output, live, and the screen of the line editor",
    "src/atoll/commands/cmd-history.c": "`history output` into a file or with --raw",
    "src/atoll/commands/cmd-history-show.c": "`history show --code` into a file",
    "src/atoll/commands/cmd-session.c": "`session get`: the bytes of a file",
    "src/atoll/commands/cmd-mcp.c": "messages of a protocol",
    "src/atoll/commands/cmd-pool.c": "a byte that says that the pool is ready",
    "src/atoll/commands/cmd-mcp-install.c": "install_write(): a file of another program",
    "src/atoll/commands/run-remote.c": "a text of its own, in a signal handler",
}


def check(root):
    for path in lint.files(root, *FOLDERS, suffixes=(".c",)):
        if path.name.startswith(("test-", "fuzz-")) or path.relative_to(root).as_posix() in OWN:
            continue
        code = lint.blank(path.read_text())
        for match in WRITES.finditer(code):
            yield path, lint.line_of(code, match.start()), f"{match.group(1)}() does not escape: use print_out() or print_text() of atoll/commands/printer.h"


if __name__ == "__main__":
    lint.main(check)
