#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""No reference leads nowhere: text cites files that this repository holds, and no page that a reader does not have.

A path that begins with a folder of this repository, or with a room of src/, must exist; a pattern must match something. Pages of
the engineers' own desks (SPEC §5, notes/…) are refused. Corpora, golden files and the changelog may say what they like.
"""

import re
import subprocess

import lint

TEXT = (".c", ".h", ".py", ".md", ".yaml", ".build", ".sh", ".example")
EXEMPT = ("test/corpus/", "test/golden/", "test/upgrade/", "test/languages/", "test/lint/", "test/sdk/seeds/", "CHANGELOG.md", "tools/check-references.py")
ABSENT = re.compile(r"\bSPEC(?:\.md)? ?§|\bSPEC\.md\b|\bDESIGN\.md\b|\bnotes/(?:security|style|house|scale|seeds|speed|peers\w*|ecosystem)\b")
FOLDERS = ("src", "test", "doc", "tools", "bench", "policies", "languages", "packaging", "include")
ROOMS = ("base", "spec", "plan", "box", "broker", "agent", "run", "engine", "session", "web", "mcp", "atoll")
PATH = re.compile(rf"(?<![\w./<>\"'~=@-])((?:(?:{'|'.join(FOLDERS + ROOMS)})/)[\w*?.{{}},\[\]/-]*[\w*\]}}])(?![\w/])")
BLANK = re.compile(r"[A-Z]{4,}|bench/out/")  # a word for any name; what a measurement writes
SUFFIX = re.compile(r"\.(?:c|h|py|md|yaml|json|build|\[ch\])$")


def tracked(root):
    """Text files that git holds; all below src/ where there is no git (a package's build)."""
    done = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True)
    names = done.stdout.split("\n") if done.returncode == 0 else [str(p.relative_to(root)) for p in (root / "src").rglob("*")]
    for name in sorted(names):
        if (name.endswith(TEXT) or name == "dev") and not name.startswith(EXEMPT) and (root / name).is_file():
            yield root / name


def comments(path, text):
    """The text with all but comments blanked: strings of programs name files of other worlds."""
    if path.suffix not in (".c", ".h"):
        return text
    code = lint.blank(text, keep_strings=True)
    return "".join("\n" if c == "\n" else " " if c == k else c for c, k in zip(text, code))


def exists(root, name):
    for pattern in (name, f"src/{name}", f"include/{name}"):
        for one in alternatives(pattern.replace("[ch]", "*")):
            if next(root.glob(one), None):
                return True
    return False


def alternatives(pattern):
    """a{b,c} as a shell reads it."""
    match = re.search(r"\{([^{}]*)\}", pattern)
    if not match:
        return [pattern]
    return [one for word in match.group(1).split(",") for one in alternatives(pattern[: match.start()] + word + pattern[match.end() :])]


def check(root):
    for path in tracked(root):
        text = path.read_text(errors="replace")
        seen = comments(path, text)
        for match in ABSENT.finditer(seen):
            yield path, lint.line_of(text, match.start()), f"'{match.group()}' is nothing that a reader has: say the fact"
        for match in PATH.finditer(seen):
            if SUFFIX.search(match.group(1)) and not BLANK.search(match.group(1)) and not exists(root, match.group(1)):
                yield path, lint.line_of(text, match.start()), f"there is no {match.group(1)}"


if __name__ == "__main__":
    lint.main(check)
