# SPDX-License-Identifier: Apache-2.0
import sys

for i in range(20000):
    print(i, "x" * 20)
sys.stdout.buffer.write(bytes(range(32, 127)) * 100 + b"\n")
print("done", file=sys.stderr)
