#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every src/ folder has a README.md of at most a page: purpose, structs, owners, what it may not touch."""

import lint

LINES = 60


def check(root):
    for folder in sorted(p for p in (root / "src").iterdir() if p.is_dir()):
        path = folder / "README.md"
        if not path.exists():
            yield path, 1, "missing"
            continue
        lines = path.read_text().count("\n")
        if lines > LINES:
            yield path, lines, f"{lines} lines; at most {LINES}"
        if lines < 3:
            yield path, lines, "says nothing"


if __name__ == "__main__":
    lint.main(check)
