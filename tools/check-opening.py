#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Each source file opens with its licence line, and C files (but unit tests) with a few lines on how they work."""

import lint

LICENCE = "SPDX-License-Identifier: Apache-2.0"


def c_opening(path):
    lines = path.read_text().split("\n")
    if lines[0] != f"/* {LICENCE} */":
        yield path, 1, f"the first line must be /* {LICENCE} */"
    elif not path.name.startswith("test-") and not lines[1].startswith("/*"):
        yield path, 2, "the second line must open a comment: how does this file work?"


def script_files(root):
    yield from lint.files(root, "tools", "test", "bench", "runners", suffixes=(".py", ".sh"))
    yield from (p for p in (root / "dev", root / ".ci/run") if p.exists())


def check(root):
    for path in lint.files(root, "src", "test", "bench"):
        yield from c_opening(path)
    for path in script_files(root):
        if f"# {LICENCE}" not in path.read_text().split("\n")[:2]:
            yield path, 1, f"one of the first two lines must be # {LICENCE}"


if __name__ == "__main__":
    lint.main(check)
