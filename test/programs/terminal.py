# SPDX-License-Identifier: Apache-2.0
import os
import pty
import sys

pid, master = pty.fork()
if pid == 0:
    print("inside", os.isatty(0), flush=True)
    sys.exit(3)
text = b""
while True:
    try:
        piece = os.read(master, 100)
    except OSError:
        break
    if not piece:
        break
    text += piece
print(text, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
