# SPDX-License-Identifier: Apache-2.0
"""Each lint finds a planted violation, and is silent on the same code without it."""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"
OPENING = "/* SPDX-License-Identifier: Apache-2.0 */\n/* A file for a test. */\n"


def lint(name, root, *arguments):
    return subprocess.run([sys.executable, TOOLS / f"check-{name}.py", root, *arguments],
                          capture_output=True, text=True)


def plant(root, path, text):
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def function(lines=1, parameters="void", name="probe"):
    return f"int {name}({parameters})\n{{\n" + "\treturn 0;\n" * lines + "}\n"


# check, file, text that passes, text that does not, words of the complaint
PLANTED = [
    ("layers", "src/spec/a.c", '#include "base/buf.h"\n', '#include "plan/plan.h"\n', 'spec/ may not include "plan/plan.h"'),
    ("layers", "src/run/link/a.c", '#include "broker/broker-proto.h"\n', '#include "box/cgroup.h"\n', "run/link/ may not"),
    ("layers", "src/web/compat/a/a.c", '#include "web/compat/a/a.h"\n', '#include "web/compat/b/b.h"\n', "compat/a/ may not"),
    ("layers", "src/plan/policy/a.c", '#include "base/sys/host-facts.h"\n', '#include "box/cgroup.h"\n', "plan/policy/ may not"),
    ("layers", "src/broker/a.c", '#include "box/cgroup.h"\n', "#include <jansson.h>\n", "<jansson.h>"),
    ("layers", "src/plan/policy/b.c", "#include <jansson.h>\n", "#include <yaml.h>\n", "<yaml.h>"),
    ("layers", "src/base/a.c", '#include "base/buf.h"\n', '#include "buf.h"\n', "name the folder"),
    ("layers", "src/base/b.c", '/* #include "run/x.h" */\n', '#include "run/x.h"\n', "base/ may not"),
    ("layers", "src/engine/b.c", "int a;\n", "#include <pthread.h>\n", "<pthread.h>"),
    ("size", "src/base/a.c", function(120), function(121), "probe() has 121 lines"),
    ("size", "src/base/a.c", "int a;\n" * 1000, "int a;\n" * 1001, "1001 lines"),
    ("size", "src/base/a.c", function(1, "int a, int b,\n\tint c, int d, int e, int f, int g"),
     function(1, "int a, int b,\n\tint c, int d, int e, int f, int g, int h"), "probe() has 8 parameters"),
    ("size", "src/base/a.c", function(1, "int (*f)(int, int), int b, int c, int d, int e, int g, int h"),
     function(1, "int (*f)(int, int), int b, int c, int d, int e, int g, int h, int i"), "8 parameters"),
    ("banned", "src/base/a.c", "snprintf(a, n, b);\n", "sprintf(a, b);\n", "sprintf() is banned"),
    ("banned", "src/base/a.c", "/* strcpy(a, b) */ x.system(1); y->gets(2);\n", "strcpy (a, b);\n", "strcpy()"),
    ("banned", "src/base/a.c", 'p("atoi(x)");\n', "atoi(x);\n", "atoi()"),
    ("banned", "src/base/a.c", "open(p, O_RDONLY | O_CLOEXEC);\n", "open(p, O_RDONLY);\n", "open() without O_CLOEXEC"),
    ("banned", "src/base/a.c", "openat(f(a), p,\n\tO_CLOEXEC);\n", "openat(f(O_X), p,\n\t0);\n", "openat() without"),
    ("banned", "src/base/a.c", "socket(a, b | SOCK_CLOEXEC, 0);\n", "socket(a, b, 0);\n", "socket() without"),
    ("banned", "src/base/a.c", "recvmsg(fd, &m, MSG_CMSG_CLOEXEC);\n", "recvmsg(fd, &m, 0);\n", "recvmsg() without"),
    ("banned", "src/base/a.c", 'fopen(p, "re");\n', 'fopen("e", "r");\n', "fopen()"),
    ("banned", "src/base/a.c", "pipe2(p, O_CLOEXEC);\n", "pipe(p);\n", "pipe() is banned"),
    ("banned", "src/base/a.c", "_exit(1);\n", "exit(1);\n", "exit() outside"),
    ("cleanup", "src/base/a.c", "\t_cleanup_close_ int fd = -EBADF;\n", "\t_cleanup_close_ int fd;\n", "initial value"),
    ("cleanup", "src/base/a.c", "\t_cleanup_free_ char *a = NULL, *b = f(1, 2);\n",
     "\t_cleanup_free_ char *a = NULL, *b;\n", "initial value"),
    ("cleanup", "src/base/a.c", "\t_cleanup_(done) struct x x = {\n\t\t1, 2\n\t};\n", "\t_cleanup_(done) struct x x;\n", "initial"),
    ("opening", "src/base/a.c", OPENING, "/* A file. */\n", "first line"),
    ("opening", "src/base/a.c", OPENING, "/* SPDX-License-Identifier: Apache-2.0 */\nint a;\n", "how does"),
    ("banned", "src/base/test-a.c", "dup(fd); open(p, 0);\n", "gets(p);\n", "gets() is banned"),
    ("opening", "src/base/test-a.c", OPENING.split("\n")[0] + "\nint a;\n", "int a;\n", "first line"),
    ("opening", "tools/a.py", "#!/usr/bin/python3\n# SPDX-License-Identifier: Apache-2.0\n", "#!/usr/bin/python3\n", "SPDX"),
    ("readme", "src/base/README.md", "# base\n\nWords.\n", "word\n" * 61, "61 lines"),
    ("readme", "src/base/README.md", "# base\n\nWords.\n", "# base\n", "says nothing"),
    ("prose", "src/base/a.c", "/* The caller waits. */\n", "/* Whoever calls waits. */\n", '"Whoever" is no subject'),
    ("prose", "src/base/a.h", 'char a[] = "nobody:x:65534:";\n', "/* Nobody reads it. */\n", '"Nobody"'),
    ("prose", "include/atoll/atoll.h", "/* The account nobody. */\n", "/* Frees whatever is left. */\n", '"whatever"'),
    ("prose", "doc/a.md", 'Never write "somebody".\n', "Somebody writes.\n", '"Somebody"'),
    ("prose", "README.md", "Each caller.\n", "For everybody.\n", '"everybody"'),
    ("references", "src/base/a.c", "/* src/base/a.c, base/*.c, plan/NAME.h */\n", "/* See base/b.h. */\n", "there is no base/b.h"),
    ("references", "src/base/a.c", 'p("plan/x.c");\n', "/* The rules of SPEC §3. */\n", "'SPEC §' is nothing that a reader has"),
    ("foreign", "src/atoll/commands/a.c", 'return print_out(&out); /* write(1) */\n', "return fd_write_all(STDOUT_FILENO, a, n);\n", "fd_write_all() does not escape"),
    ("foreign", "src/atoll/commands/a.c", 'p("puts(x)"); x->write(1);\n', 'printf("%s", repr);\n', "use print_out()"),
    ("foreign", "src/atoll/remote/a.c", "print_text(1, a);\n", "print_raw(1, a, n);\n", "print_raw() does not escape"),
    ("errors", "src/engine/a.c", 'p("429"); n = 429u; m = x.429;\n', "return 429;\n", "429 is an HTTP status"),
    ("errors", "src/atoll/commands/a.c", "n = 400 * 500;\n", "if (c->status == 400)\n", "400 is an HTTP status"),
    ("errors", "src/atoll/commands/a.c", "status = 200 << 10;\n", "ok = r.status / 100 == 2;\n", "100 is an HTTP status"),
    ("errors", "src/base/a.h", "/* BUSY */\n", "/* BUSY: 429 */\n", "429 is an HTTP status"),
    ("errors", "src/base/a.c", "return error_oom(err);\n",
     'return error_set(err, ERROR_INTERNAL, ENOMEM,\n\t"out of memory");\n', "use error_oom()"),
    ("format", "src/base/a.c", "int a;\n", "int  a;\n", "clang-formatted"),
    ("format", "dev", "#!/bin/bash\necho hi\n", "#!/bin/bash\necho $1\n", "quote"),
    ("words", "ARCHITECTURE.md", "| ant | an insect | `base/ant.h` |\n", "| ant | an insect | `base/ant.h` |\n" * 2, "has 'ant' twice"),
]


@pytest.mark.parametrize("name, path, good, bad, words", PLANTED)
def test_planted(tmp_path, name, path, good, bad, words):
    (tmp_path / "src" / "base").mkdir(parents=True)
    if name != "readme":
        plant(tmp_path, "src/base/buf.h", OPENING)
    (tmp_path / ".clang-format").write_text((TOOLS.parent / ".clang-format").read_text())
    plant(tmp_path, path, good)
    clean = lint(name, tmp_path)
    assert (clean.returncode, clean.stdout) == (0, ""), clean
    plant(tmp_path, path, bad)
    found = lint(name, tmp_path)
    assert found.returncode == 1 and words in found.stdout and found.stdout.startswith(path), found


SUBJECTS = [
    ("http: close what has ended", None), ("test, tools/room: pass", None), ("src: bring things back", None), ("spec: need a name", None),
    ("Close what has ended", "`module: what the commit does`"), ("http: " + "a" * 67, "73 columns, at most 72"),
    ("http: closes what has ended", "'closes' is no imperative"), ("http: closed", "'closed' is no"), ("http: closing", "'closing' is no"),
    ("http: the end of a connection", "'the' is no imperative"),
]


@pytest.mark.parametrize("subject, words", SUBJECTS)
def test_subjects_of_commits(tmp_path, subject, words):
    def git(*arguments):
        subprocess.run(["git", "-C", tmp_path, "-c", "user.name=a", "-c", "user.email=a", *arguments], check=True, capture_output=True)

    assert lint("subjects", tmp_path).returncode == 0  # no repository
    git("init")
    git("-c", "core.hooksPath=/dev/null", "commit", "--allow-empty", "-m", subject)
    found = lint("subjects", tmp_path)
    assert (found.returncode, words is None or words in found.stdout) == (0 if words is None else 1, True), found


def test_subjects_from_before_the_rule_are_passed_over(tmp_path):
    for words in (["init"], ["-c", "user.name=a", "-c", "user.email=a", "commit", "--allow-empty", "-m", "Long ago."]):
        subprocess.run(["git", "-C", tmp_path, *words], check=True, capture_output=True, env={**os.environ, "GIT_COMMITTER_DATE": "2026-11-01T00:00:00Z"})
    assert lint("subjects", tmp_path).returncode == 0


def test_statuses_where_they_belong(tmp_path):
    for path in ("src/web/http/a.c", "src/web/routes/a.c", "src/web/compat/a/a.c", "src/web/codec/a.c", "src/atoll/remote/a.c", "src/engine/callback.c"):
        plant(tmp_path, path, "status = 404;\n")
    assert lint("errors", tmp_path).returncode == 0


def test_exit_in_main_file(tmp_path):
    plant(tmp_path, "src/atoll/commands/main.c", "exit(1);\n")
    assert lint("banned", tmp_path).returncode == 0


def test_folder_without_readme(tmp_path):
    (tmp_path / "src" / "base").mkdir(parents=True)
    assert "src/base/README.md:1: missing" in lint("readme", tmp_path).stdout


def test_folder_without_row(tmp_path):
    plant(tmp_path, "src/novel/a.c", "int a;\n")
    assert "no row" in lint("layers", tmp_path).stdout


def test_row_that_no_file_uses(tmp_path):
    shutil.copytree(TOOLS.parent / "src", tmp_path / "src")
    assert lint("layers", tmp_path).stdout == ""
    for path in (tmp_path / "src" / "box" / "init").glob("*.[ch]"):
        path.write_text(re.sub(r'#include "plan/.*', "", path.read_text()))
    assert "the row of box/init/ lists plan/" in lint("layers", tmp_path).stdout


def test_rooms_in_a_circle(tmp_path):
    (tmp_path / "src").mkdir()
    tools = tmp_path / "tools"
    shutil.copytree(TOOLS, tools)
    table = tools / "check-layers.py"
    table.write_text(table.read_text().replace('"spec": {"base"}', '"spec": {"base", "plan/policy"}'))
    done = subprocess.run(["/usr/bin/python3", table, tmp_path], capture_output=True, text=True)
    assert "the rooms include each other: " in done.stdout


# first file, second file, words of the complaint about the second (or None)
@pytest.mark.parametrize("first, second, words", [
    (("src/base/a.c", "struct ant {\n};\n"), ("src/base/sys/b.c", "struct ant;\n/* struct ant { */\n"), None),
    (("src/base/a.c", "struct ant {\n};\n"), ("src/base/sys/b.c", "struct ant {\n};\n"), "struct ant is also in src/base/a.c"),
    (("src/base/a.c", "struct ant {\n};\n"), ("src/base/sys/test-b.c", "struct ant {\n};\n"), "struct ant is also in"),
    (("src/base/a.c", "enum ant {\n\tX,\n};\n"), ("src/base/sys/b.h", "enum ant {\n\tX,\n};\n"), "enum ant is also in"),
    (("src/base/a.c", ""), ("src/base/a.h", ""), None),
    (("src/base/a.c", ""), ("src/base/sys/a.h", ""), "a file of that name is also src/base/a.c"),
])
def test_word_twice(tmp_path, first, second, words):
    plant(tmp_path, *first)
    plant(tmp_path, *second)
    done = lint("words", tmp_path)
    if words:
        assert done.returncode == 1 and words in done.stdout and done.stdout.startswith(second[0]), done
    else:
        assert (done.returncode, done.stdout) == (0, ""), done


def test_static_in_three_files(tmp_path):
    for folder in ("base", "codec"):
        plant(tmp_path, f"src/{folder}/{folder}.c", "static " + function())
    assert lint("words", tmp_path).returncode == 0
    plant(tmp_path, "src/sys/test-sys.c", "static " + function())
    assert lint("words", tmp_path).returncode == 0
    plant(tmp_path, "src/sys/sys.c", "static " + function())
    assert "src/sys/sys.c:1: static probe() is in 3 files" in lint("words", tmp_path).stdout


def archive(folder, name, text):
    source, library = folder / f"{name}.c", folder / f"lib{name}.a"
    source.write_text(text)
    subprocess.run(["gcc", "-O1", "-w", "-c", source, "-o", folder / f"{name}.o"], check=True)
    subprocess.run(["ar", "rcs", library, folder / f"{name}.o"], check=True)
    return library


BASE = "int parse_i64(const char *t) { return *t; }\nlong clock_now_ns(void) { return 1; }\n"


@pytest.mark.parametrize("body, words", [
    ("return parse_i64(s) + strlen(s) + !malloc(9)", None),
    ("return json_integer(1)", None),
    ("return clock_now_ns()", "calls clock_now_ns()"),
    ("return open(s, 0)", "calls open()"),
    ("return getenv(s) != 0", "calls getenv()"),
    ("return clock_gettime(0, s)", "calls clock_gettime()"),
    ("return syscall(1)", "calls syscall()"),
    ("return printf(s)", "calls printf()"),
])
def test_purity(tmp_path, body, words):
    base = archive(tmp_path, "base", BASE)
    spec = archive(tmp_path, "spec", f"int spec_probe(const char *s) {{ {body}; }}\n")
    done = lint("symbols", tmp_path, "pure", spec, "--", base)
    assert (words in done.stdout and done.returncode == 1) if words else done.returncode == 0, done


@pytest.mark.parametrize("body, words", [
    ("return open(s, 0)", None),
    ("return json_loads(s)", "calls json_loads()"),
    ("return yaml_parser_load(s)", "calls yaml_parser_load()"),
    ("return pthread_create(s)", "calls pthread_create()"),
])
def test_trusted_side(tmp_path, body, words):
    broker = archive(tmp_path, "broker", f"int broker_probe(const char *s) {{ {body}; }}\n")
    done = lint("symbols", tmp_path, "trusted", broker)
    assert (words in done.stdout and done.returncode == 1) if words else done.returncode == 0, done
