# SPDX-License-Identifier: Apache-2.0
"""The code blocks of README.md and doc/: found, and run one page at a time, as a reader would from the first line to the last.

A comment before a block says what a test cannot see:

    <!-- file: NAME -->        the block is the content of that file, which a later block uses
    <!-- fresh: REASON -->     not run here, but in a new Debian by ./dev test --all (tools/newcomer, test/install/test_fresh.py)
    <!-- nginx: REASON -->     run by test_nginx, with the page's configuration
    <!-- not run: REASON -->   never run

Each of them speaks of the next block; before the page's first heading, of every block of the page. A block `text` after a block that
runs is what that prints; `…` in it stands for anything. In a block `console` a line with `$ ` is a command, and what follows is what it prints.
"""
import contextlib
import io
import json
import os
import re
import select
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path

import yaml

from program import ROOT

PAGES = [ROOT / "README.md", ROOT / "sdk" / "python" / "README.md", *sorted((ROOT / "doc").rglob("*.md"))]
FENCE = re.compile(r"(?:^<!-- (file|fresh|nginx|not run): (.+?) -->\n\n?)?^```(\w*)\n(.*?)^```\n(?:\n?```text\n(.*?)^```\n)?", re.S | re.M)
MARK_OF_PAGE = re.compile(r"\A<!-- (fresh|not run): (.+?) -->\n")


@dataclass
class Block:
    """One block. `mark` is the first word of its comment, or empty; `word` is what the comment says behind it."""
    page: Path
    line: int
    mark: str
    word: str
    language: str
    text: str
    printed: str | None

    def __str__(self):
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page):
    return blocks_of(page, page.read_text(encoding="utf-8"))


def blocks_of(page, text):
    whole = MARK_OF_PAGE.match(text)
    for found in FENCE.finditer(text):
        mark, word = (found[1], found[2]) if found[1] else (whole[1], whole[2]) if whole else ("", "")
        yield Block(page, text[:found.start(4)].count("\n"), mark, word, *found.groups()[2:])


def assert_prints(where, wanted, printed):
    """`…` on a line of its own stands for any lines, within a line for any words."""
    pattern = "".join(r"(?:.*\n)*?" if line == "…" else ".*".join(map(re.escape, line.rstrip().split("…"))) + "\n"
                      for line in wanted.rstrip("\n").split("\n"))
    printed = "".join(line.rstrip() + "\n" for line in printed.rstrip("\n").split("\n"))
    assert re.fullmatch(pattern, printed), f"{where} prints:\n{printed}\nand not:\n{wanted}"


def dialogue(text):
    """(command, what it prints) of a block `console`."""
    for said in re.split(r"^(?=\$ )", text, flags=re.M):
        command, _, printed = said.removeprefix("$ ").partition("\n")
        if command:
            yield command, printed


class Shell:
    """One bash for a page: variables, functions and directories of a block are there for the next one."""

    def __init__(self, work, environment):
        self.work = work
        self.done, end = os.pipe()
        self.popen = subprocess.Popen(["bash", "-euo", "pipefail"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, cwd=work,
                                      env=environment, pass_fds=[end], start_new_session=True)
        self.end = end
        os.close(end)

    def run(self, where, text, fails=False):
        """What it prints on both streams. fails: a command may; otherwise bash ends at the first that does."""
        (self.work / ".block").write_text(text, encoding="utf-8")
        # The block does not hold our end of the pipe: a job that it leaves behind would keep it open.
        out = f">{self.work}/.out 2>&1 </dev/null {self.end}>&-"
        self.popen.stdin.write(f"set {'+' if fails else '-'}e; . {self.work}/.block {out}; echo >&{self.end}\n".encode())
        self.popen.stdin.flush()
        ready = select.select([self.done], [], [], 60)[0]
        printed = (self.work / ".out").read_text(encoding="utf-8", errors="replace")
        assert ready and os.read(self.done, 1), f"{where} {'failed' if ready else 'goes on for a minute'}:\n{text}\n{printed}"
        return printed

    def close(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.popen.pid, 9)
        self.popen.stdin.close()
        self.popen.wait()
        os.close(self.done)


class Reader:
    """Follows pages: has a directory, a shell and an interpreter. `places`: what a page names, and where that is here."""

    def __init__(self, work, environment, places=()):
        self.work, self.places = work, dict(places)
        self.shell = Shell(work, environment)
        self.scope = {"__name__": "page"}

    def follow(self, block):
        text = block.text
        for named, here in self.places.items():
            text = text.replace(named, here)
        if block.mark == "file":
            path = self.work / block.word
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        else:
            printed = FOLLOW[block.language](self, block, text)
            if block.printed is not None:
                assert_prints(block, block.printed, printed)

    def commands(self, block, text):
        return self.shell.run(block, text)

    def dialogue(self, block, text):
        """Each command is compared with what stands below it."""
        for command, wanted in dialogue(text):
            assert_prints(f"{block} `{command}`", wanted, self.shell.run(block, command, fails=True))

    def program(self, block, text):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(text, str(block), "exec"), self.scope)  # pylint: disable=exec-used; the page is ours
        return printed.getvalue()

    def close(self):
        self.shell.close()


def parsed_by(parse):
    def follow(reader, block, text):
        parse(text)
    return follow


def script(found, skip):
    """Blocks as one program of bash for another machine, and what it prints: [(block, text)]. skip: lines that are left out."""
    lines, wanted = ["trap 'kill $(jobs -p) 2>/dev/null || true' EXIT"], []

    def add(block, text, printed, options="-e"):
        pause = "\nsleep 2" if text.rstrip().endswith("&") else ""  # a person, too, takes a moment after such a line
        lines.append(f"set {options}; printf '\\n@@@ %s\\n' {len(wanted)}\n{text}{pause}")
        wanted.append((block, printed))

    for block in found:
        text = "".join(line for line in block.text.splitlines(keepends=True) if not re.search(skip, line))
        if block.mark == "file":
            add(block, f"cat >{block.word} <<'END_OF_BLOCK'\n{text}END_OF_BLOCK", None)
        elif block.language == "console":
            for command, printed in dialogue(text):
                add(block, command, printed, "+e")
        elif block.language == "python":
            add(block, f"python3 - <<'END_OF_BLOCK'\n{text}END_OF_BLOCK", block.printed)
        elif block.language == "sh" and block.mark in ("", "fresh") and text.strip():
            add(block, text, block.printed)
    return "\n".join(lines) + "\n", wanted


def assert_script_prints(wanted, printed):
    parts = re.split(r"^@@@ \d+\n", printed, flags=re.M)[1:]
    assert len(parts) == len(wanted), f"it ended after {len(parts)} of {len(wanted)} blocks:\n{printed[-2000:]}"
    for (block, text), part in zip(wanted, parts):
        if text is not None:
            assert_prints(block, text, part)


#: What is done with a block of each language. Others need a mark.
FOLLOW = {"sh": Reader.commands, "console": Reader.dialogue, "python": Reader.program, "json": parsed_by(json.loads),
          "yaml": parsed_by(yaml.safe_load), "toml": parsed_by(tomllib.loads), "text": parsed_by(str)}
