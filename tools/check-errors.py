#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Errors have one vocabulary (src/base/error.h), and each interface maps it.

Only HTTP's own folders know an HTTP status: a status elsewhere would be a second vocabulary. A failed allocation has one
sentence, error_oom().
"""

import re

import lint

# http, api and compat answer; codec parses; remote asks. callback.c posts results with libcurl, as a client.
HTTP = ("src/web/http/", "src/web/routes/", "src/web/compat/", "src/web/codec/", "src/atoll/remote/", "src/engine/callback.c")
# Tables of numbers that are not statuses (system calls).
NUMBERS = ("src/plan/filter-table.c",)

# Numbers that mean nothing else in this tree; 200, 400 and 500 are also sizes and times.
STATUS = re.compile(r"(?<![\w.])(40[1345689]|41[1345679]|42[1-9]|431|50[1-5])(?![\w.])")
COMPARED = re.compile(r"\b\w*status\w*(?:\(\w*\))?\s*(?:[=!<>]=|[<>=/])\s*([1-5]\d\d)\b(?!\s*<<)")
STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')  # help texts may tell users of statuses
OOM = re.compile(r'\berror_set\(\s*[^,]*,\s*\w+,\s*[^,]*,\s*"out of memory"')


def check(root):
    for path in lint.files(root, "src"):
        name = path.relative_to(root).as_posix()
        text = path.read_text()
        if path.name.startswith(("test-", "fuzz-")):
            continue
        if name != "src/base/error.c":
            for match in OOM.finditer(text):
                yield path, lint.line_of(text, match.start()), 'error_set(…, "out of memory"): use error_oom()'
        if name.startswith(HTTP) or name in NUMBERS:
            continue
        text = STRING.sub(lambda match: " " * len(match.group()), text)
        found = {match.start(1): match.group(1) for rule in (STATUS, COMPARED) for match in rule.finditer(text)}
        for start, number in sorted(found.items()):
            yield path, lint.line_of(text, start), f"{number} is an HTTP status: name a code of base/error.h"


if __name__ == "__main__":
    lint.main(check)
