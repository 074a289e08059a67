# SPDX-License-Identifier: Apache-2.0
"""Output while the program runs, in any language; standard input, arguments, and the files that it wrote.

Prints:

    live: line 1
    live: line 2
    live: line 3
    kept: b'ADA'
"""
import atoll

CODE = """
import sys, time
for number in range(1, 4):
    print("line", number, flush=True)
    time.sleep(0.02)
open("name.txt", "w").write(sys.stdin.read().upper())
"""


def show(text: str) -> None:
    for line in text.splitlines():
        print("live:", line)


with atoll.Client() as client:
    result = client.run(CODE, stdin="ada", on_stdout=show)
    print("kept:", client.file(result.id, "name.txt"))
