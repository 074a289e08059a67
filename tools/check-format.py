#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""clang-format decides the layout of C; shellcheck reads the shell scripts where it is installed."""

import re
import shutil
import subprocess

import lint

MESSAGE = re.compile(r"^([^:\n]+):(\d+):\d+: (?:error|warning|note): (.*)$", re.M)


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    for path, line, message in MESSAGE.findall(done.stdout + done.stderr):
        yield path, line, message
    if done.returncode and not MESSAGE.search(done.stdout + done.stderr):
        yield command[0], 0, (done.stdout + done.stderr).strip()


def check(root):
    sources = [str(p) for p in lint.files(root, "src", "include", "test", "bench")]
    if sources:
        style = f"--style=file:{root / '.clang-format'}"
        yield from run(["clang-format", style, "--dry-run", "-Werror", *sources])
    scripts = [str(p) for p in (root / "dev", root / ".ci/run") if p.exists()]
    if scripts and shutil.which("shellcheck"):
        yield from run(["shellcheck", "--format=gcc", *scripts])


if __name__ == "__main__":
    lint.main(check)
