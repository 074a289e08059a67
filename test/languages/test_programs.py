# SPDX-License-Identifier: Apache-2.0
"""The programs of test/programs, each in a sandbox and outside with the plain toolchain: the same output, the same exit code.

They are what agents, students and judges write: servers on loopback, threads, processes, pipes, terminals, files, dates, failures. All
get the same arguments and the same input. Outside they run in an empty directory with the variables a sandbox has.
"""
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from resident import front

PROGRAMS = Path(__file__).resolve().parent.parent / "programs"
ARGS = ["one", "two words"]
GIVEN = "10\n20\n12\n"

# How a program is run by hand: what builds it, if anything does, and what runs it. {f} is its file, {n} that without its suffix.
OUTSIDE = {
    ".py": (None, "/usr/bin/python3 {f}"), ".js": (None, "/usr/bin/node {f}"), ".mjs": (None, "/usr/bin/node {f}"),
    ".ts": ("/usr/bin/esbuild {f} --log-level=error --format=esm --outfile={n}.mjs", "/usr/bin/node {n}.mjs"),
    ".sh": (None, "/bin/bash {f}"), ".rb": (None, "/usr/bin/ruby {f}"), ".php": (None, "/usr/bin/php {f}"), ".pl": (None, "/usr/bin/perl {f}"),
    ".lua": (None, "/usr/bin/lua5.4 {f}"), ".r": (None, "/usr/bin/Rscript {f}"), ".c": ("/usr/bin/gcc -w {f} -lm -o program", "./program"),
    ".cpp": ("/usr/bin/g++ -w -std=gnu++20 {f} -o program", "./program"), ".go": ("/usr/bin/go build -o program {f}", "./program"),
    ".rs": ("/usr/bin/rustc --edition=2021 {f} -o program", "./program"), ".java": ("/usr/bin/javac -J-XX:TieredStopAtLevel=1 {f}", "/usr/bin/java -cp . {n}"),
}

# Where a sandbox is another place than the host, and why.
EXCEPTIONS = {}

FILES = sorted(p.name for p in PROGRAMS.iterdir())
SLOW_TO_COMPILE = (".cpp", ".go", ".java", ".rs")
LOOPBACK = [name for name in FILES if name.lower().startswith("net")]


def outside(name, place):
    """(standard output, exit code, standard error) without a sandbox."""
    build, run = (words and words.format(f=name, n=Path(name).stem).split() for words in OUTSIDE[Path(name).suffix])
    missing = [words[0] for words in (build, run) if words and words[0].startswith("/") and not os.path.exists(words[0])]
    if missing:
        pytest.skip(f"{missing[0]} is not installed")
    shutil.copy(PROGRAMS / name, place)
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(place), "USER": "sandbox", "LC_CTYPE": "C.UTF-8", "TMPDIR": "/tmp",
           "GOCACHE": str(place.parent / "go-cache"), "GO111MODULE": "off", "MPLCONFIGDIR": str(place)}
    if build:
        subprocess.run(build, cwd=place, env=env, check=True)
        made = [p for p in place.iterdir() if p.is_file() and p.name not in (name, "program") and p.suffix not in (".class", ".mjs")]
        assert made == []
    done = subprocess.run(run + ARGS, cwd=place, env=env, input=GIVEN.encode(), capture_output=True, timeout=60)
    code = done.returncode if done.returncode >= 0 else 128 - done.returncode
    return done.stdout.decode(errors="replace"), code, done.stderr.decode(errors="replace")


def inside(box, name):
    result = box.result(["--output", "4m", str(PROGRAMS / name), "--", *ARGS], input=GIVEN, timeout=120)
    return result["stdout"], result["exit_code"], result["stderr"]


def compare(box, name, tmp_path, known={}):
    if name in EXCEPTIONS:
        pytest.skip(EXCEPTIONS[name])
    if name not in known:
        place = tmp_path / "place"
        place.mkdir()
        known[name] = outside(name, place)
    got = inside(box, name)
    assert got[:2] == known[name][:2], (got, known[name])


def test_there_are_a_hundred():
    assert len(FILES) >= 100 and len({Path(name).suffix for name in FILES}) >= 14
    assert {Path(name).suffix for name in FILES} <= set(OUTSIDE)


@pytest.mark.matrix(3)
@pytest.mark.modes("root")
@pytest.mark.parametrize("name", FILES)
def test_warm(front, tmp_path, name):
    compare(front.pool.any_front(), name, tmp_path)


@pytest.mark.matrix(3)
@pytest.mark.modes("root")
@pytest.mark.parametrize("name", LOOPBACK)
def test_loopback_cold(atoll, tmp_path, name):
    """Every language's servers, without anything made ahead."""
    compare(atoll, name, tmp_path)


@pytest.mark.modes("rootless")
@pytest.mark.parametrize("name", [name for name in LOOPBACK if not name.endswith(SLOW_TO_COMPILE)])
def test_loopback_of_an_ordinary_user(atoll, tmp_path, name):
    """Interpreters, and C for all compilers: these are the same for every user."""
    compare(atoll, name, tmp_path)
