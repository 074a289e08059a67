# SPDX-License-Identifier: Apache-2.0
import os
import sys

print(sys.argv[1:], sys.stdin.isatty())
numbers = [int(line) for line in sys.stdin]
print(sum(numbers), max(numbers))
print(os.environ.get("HOME") is not None, "PATH" in os.environ, os.environ.get("NO_SUCH"))
os.environ["MINE"] = "1"
print(os.popen("echo $MINE").read().strip())
sys.exit(5)
