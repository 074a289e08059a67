#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""One word for one thing: each struct, enum and file name exists once in src/, each noun once in the glossary; static helpers carry their noun."""

import collections
import re

import lint

# One noun with several back ends behind one header: box/cgroup.h.
OPAQUE = {"cgroup", "cgroup_root"}
STATICS_MAX = 2  # files that may define a static function of the same name
TAG = re.compile(r"\b(struct|enum)\s+(\w+)\s*(?:_\w+_\s*)?\{")
STATIC = re.compile(r"^static\s+[^;{}=()]*?\b(\w+)\s*\([^;{}]*?\)\s*(?:_\w+_\s*)*\{", re.M)
NOUN = re.compile(r"^\| ([\w ]+) \| .* \| `\S+` \|$", re.M)


def twice(path):
    """Nouns that the glossary explains again."""
    seen = set()
    text = path.read_text()
    for match in NOUN.finditer(text, max(0, text.find("## Glossary"))):
        if match[1] in seen:
            yield path, lint.line_of(text, match.start()), f"the glossary has '{match[1]}' twice"
        seen.add(match[1])


def check(root):
    for path in root.glob("ARCHITECTURE.md"):
        yield from twice(path)
    tags, names, statics = (collections.defaultdict(dict) for _ in range(3))
    for path in lint.files(root, "src"):
        text = lint.blank(path.read_text())
        is_test = path.name.startswith(("test-", "fuzz-"))
        for match in TAG.finditer(text):
            tags[match.group(1, 2)].setdefault(path, lint.line_of(text, match.start()))
        for match in STATIC.finditer(text):
            if not is_test:
                statics[match.group(1)].setdefault(path, lint.line_of(text, match.start()))
        if not path.name.startswith("test-"):
            names[path.stem].setdefault(path.parent, path)
    for (kind, name), found in tags.items():
        for path, line in list(found.items())[1:] if name not in OPAQUE else ():
            yield path, line, f"{kind} {name} is also in {next(iter(found)).relative_to(root)}"
    for found in names.values():
        for path in list(found.values())[1:]:
            yield path, 1, f"a file of that name is also {next(iter(found.values())).relative_to(root)}"
    for name, found in statics.items():
        for path, line in list(found.items())[STATICS_MAX:]:
            yield path, line, f"static {name}() is in {len(found)} files: name what it is about"


if __name__ == "__main__":
    lint.main(check)
