#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A local with a cleanup attribute is initialised where it is declared.

Its destructor runs on every return, also on one that stands above the first assignment. gcc is told to
zero locals, which hides such a bug; clang 14 is not, and crashes.
"""

import re

import lint

DECLARATION = re.compile(r"^[ \t]+(?:static )?_cleanup_\w*(?:\([^)]*\))?[ \t]+([^;]*?);", re.M)


def check(root):
    for path in lint.files(root, "src", "test"):
        text = lint.blank(path.read_text())
        for match in DECLARATION.finditer(text):
            declarators = lint.split_arguments(match.group(1))
            if any("=" not in one for one in declarators):
                yield path, lint.line_of(text, match.start()), "a _cleanup_ variable without an initial value"


if __name__ == "__main__":
    lint.main(check)
