# SPDX-License-Identifier: Apache-2.0
"""What people type: directories, options of `docker run`, letters in one word, durations."""
import os
import shutil

import pytest

pytestmark = [pytest.mark.quick, pytest.mark.modes("rootless")]


@pytest.fixture
def folder(work):
    (work / "app").mkdir()
    return work / "app"


def write(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@pytest.mark.parametrize("files, out", [
    ({"main.py": "import part; print(part.x, open('d/t').read())", "part.py": "x = 5", "d/t": "text", ".git/config": "no"}, "5 text"),
    ({"__main__.py": "import os; print(sorted(os.listdir()))", ".git/config": "no"}, "['__main__.py']"),
    ({"package.json": '{"main": "./lib/start.js"}', "lib/start.js": "console.log(require('./part').x)", "lib/part.js": "exports.x = 6"}, "6"),
    ({"package.json": '{"main": "lib/start"}', "lib/start.js": "console.log(7)"}, "7"),
    ({"package.json": '{"main": "./lib/"}', "lib/index.js": "console.log(8)"}, "8"),
    ({"main.txt": "data", "main.sh": "cat main.txt"}, "data"),
])
def test_a_directory(atoll, folder, files, out):
    write(folder, files)
    done = atoll.run(["run", str(folder)])
    assert (done.returncode, done.out.strip()) == (0, out), done


def test_the_entry_of_a_directory(atoll, folder):
    write(folder, {"main.py": "print(1)", "main.js": "console.log(2)", "other.py": "import sys; print(sys.argv[1:])"})
    several = atoll.run(["run", str(folder)])
    assert several.returncode == 125 and "has several programs main.*; name one with --entry" in several.err
    assert atoll.run(["run", str(folder), "--entry", "main.js"]).out == "2\n"
    assert atoll.run(["run", str(folder), "--entry", "other.py", "--", "a"]).out == "['a']\n"
    long = "main." + 240 * "x" + ".py"
    write(folder, {"long/" + long: "", "long/" + long.replace("x", "y"): ""})
    assert "name one with --entry: main." in atoll.run(["run", str(folder / "long")]).err
    missing = atoll.run(["run", str(folder), "--entry", "nope.py"])
    assert missing.returncode == 125 and "is not among files" in missing.err
    single = atoll.run(["run", str(folder / "main.py"), "--entry", "x.py"])
    assert single.returncode == 125 and "--entry names a file of a directory" in single.err
    (folder / "main.py").unlink()
    (folder / "main.js").unlink()
    none = atoll.run(["run", str(folder)])
    assert none.returncode == 125 and "name its program with --entry" in none.err


LIST = "import os; print(sorted(os.path.relpath(os.path.join(d, f)) for d, _, fs in os.walk('.') for f in fs))"


def test_a_file_with_its_directory(atoll, folder):
    write(folder, {"tool.py": "import part; print(part.x)", "part.py": "x = 7", "main.py": "1/0"})
    assert atoll.run(["run", str(folder / "tool.py"), "--with-dir"]).out == "7\n"
    assert atoll.run(["run", "tool.py", "--with-dir"], cwd=folder).out == "7\n"
    for words, said in ((["-l", "bash", "-c", ":", "--with-dir"], "name one"), (["-", "--with-dir"], "name one"),
                        ([str(folder / "tool.py"), "--with-dir", "--entry", "x"], "names a file of a directory"),
                        ([str(folder / "tool.py"), "--all"], "--all is about a directory"),
                        ([str(folder / "nope"), "--with-dir"], f"cannot read '{folder}/nope'")):
        done = atoll.run(["run", *words])
        assert done.returncode == 125 and said in done.err and done.err.count("\n") == 1, done


def test_gitignore(atoll, folder):
    write(folder, {"main.py": LIST, ".gitignore": "*.log\n/out/\n*.secret\n", "a.log": "", "out/x": "", "d/out/x": "",
                   "d/.gitignore": "!keep.log\nd2\n", "d/keep.log": "", "d/no.log": "", "d/d2/y": "", "name.secret": "", ".git/x": ""})
    (folder / "s.secret").symlink_to("/etc/shadow")
    os.mkfifo(folder / "fifo.log")
    assert atoll.run(["run", str(folder)]).out == "['.gitignore', 'd/.gitignore', 'd/keep.log', 'd/out/x', 'main.py']\n"
    assert atoll.run(["run", str(folder), "--all"]).returncode == 125
    (folder / "fifo.log").unlink()
    (folder / "s.secret").unlink()
    everything = atoll.run(["run", str(folder), "--all"])
    assert "'a.log'" in everything.out and "'out/x'" in everything.out and "'d/d2/y'" in everything.out, everything
    # The program that is named comes, whatever the file says.
    (folder / ".gitignore").write_text("*\n")
    assert atoll.run(["run", str(folder / "main.py"), "--with-dir"]).out == "['main.py']\n"


BUILT = "bin/prog: part\n\t@mkdir -p bin; echo building; cp part bin/prog; chmod +x bin/prog\n"
PART = "#!/bin/sh\necho built: $*\n"


@pytest.mark.parametrize("files, words, code, out, err", [
    ({"Makefile": BUILT, "part": PART}, ["--", "a", "b c"], 0, "built: a b c\n", ""),
    ({"makefile": BUILT + "run: bin/prog\n\techo target run\n", "part": PART, "main.c": "int main() { return 9; }"}, [], 0, "target run\n", ""),
    ({"Makefile": BUILT, "main.py": "print('not built')"}, [], 0, "not built\n", ""),
    ({"Makefile": "run := x\n" + BUILT, "part": PART}, [], 0, "built:\n", ""),
    ({"Makefile": "x:\n\techo words; exit 3\n"}, [], 2, "", "words"),
    ({"Makefile": "x:\n\techo > x\n"}, [], 127, "", "make built no program, and the Makefile has no target run; name it: --stage build=make"),
    ({"Makefile": "x: part\n\tfor i in a b; do cp part $$i; chmod +x $$i; done\n", "part": PART}, [], 127, "", "several programs (./a ./b)"),
], ids=["program", "target", "python", "a variable run", "fails", "nothing", "several"])
def test_a_makefile(atoll, folder, files, words, code, out, err):
    """It is a stage: what make prints is shown only when it fails, and what it built runs."""
    if not os.path.exists("/usr/bin/make"):
        pytest.skip("make is not installed")
    write(folder, files)
    done = atoll.run(["run", folder, *words])
    assert (done.returncode, done.out) == (code, out) and err in done.err and bool(done.err) == bool(err), done


def test_stages_of_a_directory(atoll, folder):
    write(folder, {"Makefile": "x:\n\techo echo built > x\n", "a.txt": "data"})
    assert atoll.run(["run", str(folder), "--stage", "one=cat a.txt", "--stage", "two=exit 3"]).returncode == 3
    assert atoll.run(["run", folder, "--stage", "one=:", "--stage", 'two=echo $# "$2"', "--", "a", "b c"]).out == "2 b c\n"
    # A directory by way of a link: it was named.
    (folder.parent / "link").symlink_to("app")
    assert atoll.run(["run", folder.parent / "link", "--stage", "one=cat a.txt"]).out == "data"


def test_links_in_a_directory(atoll, folder):
    """Links that stay inside are replaced by what they lead to; others are refused, also by way of another link."""
    write(folder, {"main.py": "import os; print(open('near').read(), open('also/t').read(), os.path.islink('near'))", "d/t": "text"})
    (folder / "near").symlink_to("d/t")
    (folder / "also").symlink_to("d")
    assert atoll.run(["run", str(folder)]).out == "text text False\n"
    (folder / "out").symlink_to("/etc/hostname")
    refused = atoll.run(["run", str(folder)])
    assert refused.returncode == 125 and "a symbolic link that leads out of the directory" in refused.err
    (folder / "out").unlink()
    (folder / "up").symlink_to("../../../../etc/hostname")
    refused = atoll.run(["run", str(folder)])
    assert refused.returncode == 125 and "leads out of the directory" in refused.err
    (folder / "up").unlink()
    (folder / "loop").symlink_to(".")
    refused = atoll.run(["run", str(folder)])
    assert refused.returncode == 125 and ("deeper than" in refused.err or "too long" in refused.err or "more than" in refused.err), refused


def test_links_in_great_numbers(atoll, folder):
    """Each of 18 directories has four links to the next one: 4**18 ways. A directory from elsewhere must not keep the command busy for hours."""
    write(folder, {"main.py": "1"})
    for i in range(19):
        (folder / f"d{i}").mkdir()
    for i in range(18):
        for name in "abcd":
            (folder / f"d{i}" / name).symlink_to(f"../d{i + 1}")
    refused = atoll.run(["run", str(folder)], timeout=20)
    assert refused.returncode == 125 and "more than 4096 directories" in refused.err, refused


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
def test_links_upwards_while_others_rename(atoll, folder):
    """The kernel asks to try again when anything on the host is renamed or mounted while it follows `..`."""
    write(folder, {"main.py": LIST, "t": "", "d/x": ""})
    for name in "abc":
        (folder / "d" / name).symlink_to("../t")
    asks = ["strace", "-o", "/dev/null", "-e", "trace=openat2", "-e", "inject=openat2:error=EAGAIN:when=1+2"]
    assert atoll.variant(wrap=asks).run(["run", str(folder)]).out == "['d/a', 'd/b', 'd/c', 'd/x', 'main.py', 't']\n"


def test_a_file_keeps_its_name(atoll, folder):
    write(folder, {"notes.txt": "words", "deep/er/x": "y"})
    done = atoll.run(["run", "-l", "bash", "-c", "cat notes.txt; ls er", "--file", str(folder / "notes.txt"), "--file", f"{folder}/deep/er/"])
    assert done.out == "wordsx\n", done
    refused = atoll.run(["run", "-l", "bash", "-c", "ls", "--file", ".."])
    assert refused.returncode == 125 and "'..'" in refused.err


def test_habits_of_docker(atoll):
    run = ["run", "-l", "bash", "-c", 'read x; echo "$A $x"']
    assert atoll.run([*run, "--rm", "-i", "-e", "A=5", "--net", "none"], input=b"in\n").out == "5 in\n"
    assert atoll.run([*run, "-qieA=6"], input=b"in\n").out == "6 in\n"
    for words, way in [(["-w", "/tmp"], "--workdir: a program starts in /sandbox"), (["-v", "a:b"], "--volume: cannot open 'a'"),
                       (["-d"], "POST /v1/executions"), (["--privileged"], "no program gets a privilege")]:
        done = atoll.run([*run, *words])
        assert done.returncode == 125 and way in done.err and done.err.count("\n") == 1, done
    assert "--rm" not in atoll.run(["run", "--help"]).out
    unknown = atoll.run([*run, "-qZ"])
    assert unknown.returncode == 125 and "unknown option '-Z'" in unknown.err


def test_durations(atoll):
    assert atoll.run(["run", "-l", "bash", "-c", "echo on", "--timeout", "1m30s"]).out == "on\n"
    above = atoll.run(["run", "-l", "bash", "-c", "echo on", "--timeout", "1d"])
    assert above.returncode == 125 and "'1d' is above the ceiling" in above.err
    wrong = atoll.run(["run", "-l", "bash", "-c", "echo on", "--timeout", "30s1m"])
    assert wrong.returncode == 125 and "'30s1m' is not a time" in wrong.err


def test_version(atoll):
    assert atoll.run(["version"]).out == atoll.run(["--version"]).out != ""


def test_reduced_isolation_is_told(atoll):
    """Once a run, on a pipe as on a terminal: nothing is weakened silently."""
    weak = atoll.variant(env={"ATOLL_FORCE_OFF": "landlock"})
    (told,) = weak.run(["run", "-l", "bash", "-c", ":"]).reduced
    assert told.startswith("atoll: isolation is reduced: without ") and "landlock" in told, told
    for quiet in ("-q", "--json"):
        assert weak.run(["run", quiet, "-l", "bash", "-c", ":"]).reduced == []
