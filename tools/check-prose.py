#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Sentences name their subject: none of the words below in comments, messages and documents.

A word in double quotes is quoted, not used; `nobody` may also be the account of that name.
"""

import re

import lint

VAGUE = re.compile(r'(?<!")\b(whoever|whatever|nobody|somebody|everybody)\b(?!")', re.I)
ACCOUNT = re.compile(r"\bnobody:|:nobody\b|\baccount nobody\b|\bNOBODY\b")
SUFFIXES = (".c", ".h", ".md", ".build", ".py", ".js", ".rb", ".pl", ".yaml")
FOLDERS = ("src", "include", "doc", "languages", "policies", "runners", "examples", "tools", "bench", "sdk")


def documents(root):
    yield from sorted(root.glob("*.md"))
    for path in lint.files(root, *FOLDERS, suffixes=SUFFIXES):
        if path.name != "check-prose.py":
            yield path


def check(root):
    for path in documents(root):
        for number, line in enumerate(path.read_text().split("\n"), 1):
            for word in VAGUE.findall(ACCOUNT.sub("", line)):
                yield path, number, f'"{word}" is no subject: name the process, the caller, the file or the row'


if __name__ == "__main__":
    lint.main(check)
