#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs commands and draws doc/terminal.svg, the picture of README.md: what was typed, and what came back, light and dark."""

import os
import pathlib
import subprocess
import sys
import textwrap
from xml.sax.saxutils import escape

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMMANDS = ["atoll run examples/hello.py",
            "atoll run -l python -c 'x = bytearray(10**9)' --memory 64m; echo \"exit code $?\"",
            "atoll run -l python -c 'x = bytearray(10**9)' --memory 64m --json | jq -c .cause",
            "atoll doctor | head -n 1"]
COLUMNS = 104
WIDTH, ROW, SIDE = 860, 19, 16  # pixels
HEAD = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img"
  aria-label="A terminal: atoll runs a program, ends one that uses too much memory and says why, and checks the host">
<style>
text {{ font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #1f2328; white-space: pre }}
.paper {{ fill: #f6f8fa; stroke: #d1d9e0 }} .typed {{ font-weight: 600 }} .sign {{ fill: #1a7f37 }}
@media (prefers-color-scheme: dark) {{
  text {{ fill: #f0f6fc }} .paper {{ fill: #0d1117; stroke: #3d444d }} .sign {{ fill: #3fb950 }}
}}
</style>
<rect class="paper" x=".5" y=".5" width="{inner}" height="{height_inner}" rx="6"/>
"""


def folded(line):
    return textwrap.wrap(line, COLUMNS, subsequent_indent="    ", replace_whitespace=False, drop_whitespace=False) or [""]


def session(environment):
    """(words of the line, whether it was typed)"""
    for number, command in enumerate(COMMANDS):
        if number:
            yield "", False
        for line in folded(f"$ {command}"):
            yield line, True
        done = subprocess.run(["bash", "-c", command], cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False)
        for line in done.stdout.splitlines():
            for part in folded(line):
                yield part, False


def draw(lines):
    height = ROW * len(lines) + 2 * SIDE
    out = [HEAD.format(width=WIDTH, height=height, inner=WIDTH - 1, height_inner=height - 1)]
    for number, (words, typed) in enumerate(lines):
        y = SIDE + ROW * (number + 1) - 6
        text = escape(words)
        if typed and words.startswith("$ "):
            text = f'<tspan class="sign">$</tspan>{text[1:]}'
        out.append(f'<text x="{SIDE}" y="{y}"{" class=" + chr(34) + "typed" + chr(34) if typed else ""}>{text}</text>\n')
    return "".join(out) + "</svg>\n"


def main():
    target = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "doc" / "terminal.svg"
    environment = {"PATH": f"{ROOT}/build:{os.environ['PATH']}", "HOME": "/", "LANG": "C.UTF-8", "ATOLL_URL": "off", "ATOLL_POOL": "off"}
    target.write_text(draw(list(session(environment))), encoding="utf-8")


if __name__ == "__main__":
    main()
