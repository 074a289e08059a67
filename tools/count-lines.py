#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Counts what a reader has to read: lines of C by room, and the habits that make a line cost more.

  tools/count-lines.py             the numbers of the working tree
  tools/count-lines.py df9aa16     those of a commit, beside it
  tools/count-lines.py --list      and the places: short statics that are called once, large structs

C outside tests is src/ and include/ without test-*, fuzz-* and *-fixture files. A short static has fewer than eight lines between
its braces; one that is used once is named at one place of its file, which calls it or, as a table of functions does, takes its address.
"""

import argparse
import collections
import pathlib
import re
import subprocess
import tempfile

import lint

SHORT_LINES = 8
MEMBERS = 25
_check_size = __import__("check-size")
_STRUCT = re.compile(r"^(?:struct|union) (\w+) \{$", re.M)
_ASSERT = re.compile(r"(?<!_)\bassert\(")


def is_test(path):
    return path.name.startswith(("test-", "fuzz-")) or path.stem.endswith("-fixture")


def sources(root):
    for path in lint.files(root, "src", "include"):
        if not is_test(path):
            yield path


def used_once(text):
    """(line, name, lines, whether it is a call) of short static functions that one place of their file names."""
    blank = lint.blank(text)
    for line, name, lines, _ in _check_size.functions(text):
        if lines >= SHORT_LINES or not re.search(rf"^static (?!inline)[^;={{]*\b{name}\(", blank, re.M):
            continue
        uses = re.findall(rf"\b{name}\b(\(?)", blank)
        declared = len(re.findall(rf"^static [^;{{]*\b{name}\([^;{{]*\);", blank, re.M))
        if len(uses) - declared == 2:
            yield line, name, lines, uses.count("(") == len(uses)


def members(body):
    """Declared names between a struct's braces; those of a nested struct count as its."""
    return sum(part.count(",") + 1 for part in re.sub(r"\[[^]]*\]|\([^)]*\)|\{[^{}]*\}", "", body).split(";") if part.strip())


def large_structs(text):
    blank = lint.blank(text)
    for match in _STRUCT.finditer(blank):
        end = blank.find("\n}", match.end())
        count = members(blank[match.end() : end])
        if count > MEMBERS:
            yield lint.line_of(text, match.start()), match.group(1), count


def measure(root):
    rooms, found = collections.Counter(), collections.defaultdict(list)
    total = collections.Counter()
    for path in sources(root):
        text = path.read_text()
        relative = path.relative_to(root)
        rooms[relative.parts[1] if relative.parts[0] == "src" else relative.parts[0]] += text.count("\n")
        total["files"] += 1
        total["assertions"] += len(_ASSERT.findall(lint.blank(text)))
        once = list(used_once(text))
        found["short statics used once"] += [(relative, *place[:3]) for place in once]
        found["short statics used once, by a call"] += [(relative, *place[:3]) for place in once if place[3]]
        found[f"structs above {MEMBERS} members"] += [(relative, *place) for place in large_structs(text)]
    total["lines"] = sum(rooms.values())
    total["folders under src"] = sum(1 for path in (root / "src").iterdir() if path.is_dir())
    for name, places in found.items():
        total[name] = len(places)
    return rooms, total, found


def checkout(commit, folder):
    archive = subprocess.run(["git", "-C", lint.ROOT, "archive", commit, "src", "include"], check=True, stdout=subprocess.PIPE)
    subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
    return pathlib.Path(folder)


def show(title, now, before):
    print(title)
    for name in sorted({*now, *(before or ())}, key=lambda name: -now.get(name, 0)):
        old = f" {before.get(name, 0):8,}" if before is not None else ""
        print(f"  {now.get(name, 0):8,}{old}  {name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", nargs="?", help="a commit to count beside the working tree")
    parser.add_argument("--list", action="store_true", help="print the places, too")
    options = parser.parse_args()
    rooms, total, found = measure(lint.ROOT)
    old_rooms = old_total = None
    if options.commit:
        with tempfile.TemporaryDirectory() as folder:
            old_rooms, old_total, _ = measure(checkout(options.commit, folder))
    show("lines of C outside tests, by room", rooms, old_rooms)
    show("in all", total, old_total)
    if old_total:
        print(f"lines: {total['lines'] / old_total['lines']:.3f} x those of {options.commit}")
    if options.list:
        for name, places in found.items():
            for path, line, what, count in places:
                print(f"{path}:{line}: {what}: {count} ({name})")


if __name__ == "__main__":
    main()
