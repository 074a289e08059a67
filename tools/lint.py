# SPDX-License-Identifier: Apache-2.0
"""What the check-*.py scripts share: finding C sources, blanking comments and strings, reporting.

A check is a generator of (path, line, message). `main` prints them as path:line: message and exits
with 1 when there was any, so that an editor can jump to them and meson sees a failure.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


# Programs that the tests run inside the sandbox: users write them, so our rules do not apply.
GUESTS = "test/languages/cases"


def files(root, *folders, suffixes=(".c", ".h")):
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in suffixes and path.is_file() and not path.is_relative_to(root / GUESTS):
                yield path


def blank(text, keep_strings=False):
    """Text of the same length and lines, with comments (and strings) turned into spaces."""

    def spaces(match):
        token = match.group()
        if keep_strings and not token.startswith("/"):
            return token
        return re.sub(r"[^\n]", " ", token)

    return _TOKEN.sub(spaces, text)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def call_arguments(text, open_paren):
    """The text between a call's parentheses, given the offset of the opening one."""
    depth = 0
    for i in range(open_paren, len(text)):
        if text[i] == "(":
            depth += 1
        elif text[i] == ")":
            depth -= 1
            if depth == 0:
                return text[open_paren + 1 : i]
    return text[open_paren + 1 :]


def split_arguments(text):
    """Splits at commas that stand outside parentheses and braces."""
    parts, depth, start = [], 0, 0
    for i, char in enumerate(text):
        if char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    parts.append(text[start:])
    return [part.strip() for part in parts]


def main(check):
    """Runs check(root, *arguments) for `check-x.py [ROOT [ARGUMENTS…]]`."""
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT
    found = 0
    for path, line, message in check(root, *sys.argv[2:]):
        path = pathlib.Path(path)
        shown = path.relative_to(root) if path.is_relative_to(root) else path
        print(f"{shown}:{line}: {message}")
        found += 1
    sys.exit(1 if found else 0)
