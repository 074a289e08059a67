# SPDX-License-Identifier: Apache-2.0
"""Every language of languages/ with the same five programs, cases/<name>/<case>.<extension>.

hello, given (arguments, input, variables, files, exit code), error, loop (a timeout), alloc (64 MiB, within and beyond the
limit). The language is told from the extension, so detection is tested on the way.
"""
import re
from pathlib import Path

import pytest

from program import ROOT

PROGRAMS = Path(__file__).parent / "cases"
quick = pytest.mark.quick
MIB = 1 << 20

# name: (extension, what an uncaught error leaves on stderr, its exit code)
LANGUAGES = {
    "python": ("py", r"File \"/sandbox/error.py\", line 1.*RuntimeError: boom", 1),
    "javascript": ("js", r"/sandbox/error.js:1.*Error: boom", 1),
    "typescript": ("ts", r"/sandbox/error.ts:2.*Error: boom", 1),
    "bash": ("sh", r"/sandbox/error.sh: line 2: boom: unbound variable", 1),
    "ruby": ("rb", r"/sandbox/error.rb:1:.*boom \(RuntimeError\)", 1),
    "go": ("go", r"panic: boom.*/sandbox/error.go:4", 2),
    "c": ("c", r"boom", 134),
    "cpp": ("cpp", r"what\(\):  boom", 134),
    "rust": ("rs", r"panicked at 'boom', .*error.rs:2:5", 101),
    "java": ("java", r"IllegalStateException: boom.*Failing.main\(Failing.java:3\)", 1),
    "php": ("php", r"Uncaught RuntimeException: boom in .*/sandbox/error.php", 255),
    "perl": ("pl", r"boom", 255),
    "lua": ("lua", r"/sandbox/error.lua:1: boom", 1),
    "r": ("R", r"Error: boom", 1),
}
CASES = ("hello", "given", "error", "loop", "alloc")
COMPILED = ("typescript", "go", "c", "cpp", "rust", "java")
ALIASES = {"py": "python", "python3": "python", "js": "javascript", "node": "javascript", "ts": "typescript", "sh": "bash",
           "rb": "ruby", "golang": "go", "c++": "cpp", "rs": "rust", "pl": "perl"}

each = pytest.mark.parametrize("language", LANGUAGES)


def program(language, case):
    return PROGRAMS / language / f"{case}.{LANGUAGES[language][0]}"


@pytest.fixture
def run(atoll, work):
    """run(language, case, option, …): the result object of that program."""
    if atoll.mode == "root":
        atoll = atoll.variant(env={"ATOLL_KIT_DIR": atoll.stage.java_kit()})

    def run(language, case, *options, **more):
        words = more.pop("words", [])
        # The tests' own directory may not be readable by the rootless user.
        source = work / program(language, case).name
        source.write_bytes(program(language, case).read_bytes())
        return atoll.result([*options, source, *(["--", *words] if words else [])], timeout=120, **more)
    return run


def test_each_language_has_its_programs():
    """A file of languages/ that is new is asked for its programs here, its errors and its row of the analysis."""
    known = {path.stem for path in (ROOT / "languages").glob("*.yaml")}
    assert known == set(LANGUAGES), "add a row to LANGUAGES, and programs below test/languages/cases/"
    for language in known:
        for case in CASES:
            assert program(language, case).is_file(), f"{program(language, case)} is missing"
        assert (ROOT / "test" / "analysis" / f"{language}.yaml").is_file(), f"test/analysis/{language}.yaml is missing: programs that fail"


@quick
@pytest.mark.parametrize("language", [
    pytest.param(name, marks=[] if name in ("python", "c", "java") else pytest.mark.foreign) for name in LANGUAGES])
def test_hello(run, language):
    result = run(language, "hello")
    assert result["status"] == "success", result
    assert (result["stdout"], result["stderr"], result["_exit"]) == (f"hello from {language}\n", "", 0)
    assert result["language"] == language
    assert re.search(r"\d+\.\d+", result["runtime"]), result["runtime"]
    names = [stage["name"] for stage in result["stages"]]
    assert names == (["compile", "run"] if language in COMPILED else ["run"])


@each
@pytest.mark.modes("root")
def test_what_a_program_is_given(run, work, language):
    """Arguments, input, a variable and a file come in; output and exit code come out."""
    words = ["a b", "--x", "ünïcode", "*"]
    (work / "input.txt").write_text("first\nsecond\n")
    result = run(language, "given", "--env", "GREETING=good day", "--file", f"data/input.txt={work}/input.txt", words=words, input="one line\n")
    assert result["stdout"] == "".join(word + "\n" for word in [*words, "got: one line", "good day", "first", "second"]), result
    assert (result["status"], result["exit_code"], result["_exit"]) == ("error", 7, 7), result


@each
@pytest.mark.modes("root")
def test_uncaught_error(run, language):
    _, pattern, code = LANGUAGES[language]
    result = run(language, "error")
    assert result["status"] == "error" and result["_exit"] == code, result
    assert re.search(pattern, result["stderr"], re.S), result["stderr"]


@pytest.mark.undisturbed
@each
@pytest.mark.modes("root")
def test_endless_loop(run, language):
    result = run(language, "loop", "--timeout", "0.3")
    assert (result["status"], result["cause"]["kind"], result["_exit"]) == ("timeout", "timeout", 124), result
    assert result["stages"][-1]["name"] == "run" and 0.27 < result["stages"][-1]["duration"] < 10, result["stages"]


@each
@pytest.mark.modes("rootless")
def test_allocation_within_the_limit(run, language):
    """Where no group counts memory, what a runtime reserves and does not use must not count either."""
    result = run(language, "alloc")
    assert (result["status"], result["stdout"].split()) == ("success", ["allocated", str(64 * MIB)]), result


@each
@pytest.mark.modes("root")
def test_allocation_beyond_the_limit(run, language):
    result = run(language, "alloc", "--memory", "48m")
    assert "allocated" not in result["stdout"], result
    if language == "java" and result["status"] == "error":  # its heap is sized to the limit and it says so itself
        assert "OutOfMemoryError" in result["stderr"], result
        return
    assert (result["status"], result["cause"]["kind"]) == ("limit", "memory"), result
    assert result["cause"]["limit"] == 48 * MIB


@quick
@pytest.mark.foreign
@pytest.mark.modes("root")
@pytest.mark.parametrize("alias", [*ALIASES, "PYTHON", "Js", "C++"])
def test_alias(atoll, alias):
    language = ALIASES.get(alias.lower(), alias.lower())
    done = atoll.run(["run", "--explain", "-l", alias, "-c", program(language, "hello").read_text()])
    assert done.returncode == 0 and done.out, done


@pytest.mark.modes("root")
@pytest.mark.parametrize("line, language", [("#!/usr/bin/env python3", "python"), ("#!/bin/sh", "bash"), ("#!/usr/bin/perl -w", "perl"),
                                            ("#! /usr/bin/env -S node --x", "javascript"), ("#!/usr/bin/ruby3.1", "ruby")])
def test_shebang(atoll, work, line, language):
    (work / "tool").write_text(line + "\n")
    assert atoll.result([work / "tool"], timeout=60)["language"] == language


@pytest.mark.modes("root")
def test_java_names_the_file_after_the_public_class(atoll):
    code = ("// public class Wrong\nclass Helper {}\npublic final class Main2 {\n\tpublic static void main(String[] a) {\n"
            "\t\tSystem.out.println(Main2.class.getName());\n\t}\n}\n")
    result = atoll.result(["-l", "java", "-c", code], timeout=60)
    assert result["stdout"] == "Main2\n", result


@pytest.mark.modes("root")
@pytest.mark.parametrize("language, code", [("c", "int main(void) { return oops; }"), ("cpp", "int main() { return oops; }"),
                                            ("go", "package main\nfunc main() { oops }"), ("rust", "fn main() { oops }"),
                                            ("java", "public class A { oops }"), ("typescript", "let x: = oops")])
def test_compile_error(atoll, language, code):
    """The compiler's words are what a user sees, and nothing is run."""
    result = atoll.result(["-l", language, "-c", code], timeout=60)
    assert result["status"] == "error" and [s["name"] for s in result["stages"]] == ["compile"], result
    done = atoll.run(["run", "-l", language, "-c", code], timeout=60)
    assert done.returncode not in (0, 125) and re.search("oops|expected", done.err), done


@pytest.mark.modes("root")
@pytest.mark.parametrize("language, names, code", [
    ("python", {"util.py": "def f(): return 'from util'"}, "import util; print(util.f())"),
    ("javascript", {"util.js": "exports.f = () => 'from util'"}, "console.log(require('./util').f())"),
    ("typescript", {"util.ts": "export const f = (): string => 'from util'"}, "import { f } from './util'; console.log(f())"),
    ("c", {"util.h": "#define F \"from util\""}, "#include <stdio.h>\n#include \"util.h\"\nint main(void) { puts(F); }"),
    ("java", {"Util.java": "class Util { static String f() { return \"from util\"; } }"},
     "public class A { public static void main(String[] a) { System.out.println(Util.f()); } }"),
    ("ruby", {"util.rb": "def f = 'from util'"}, "require_relative 'util'; puts f"),
    ("bash", {"util.sh": "f() { echo from util; }"}, ". ./util.sh; f"),
    ("go", {"go.mod": "module m\n", "util/util.go": "package util\nfunc F() string { return \"from util\" }"},
     "package main\nimport (\"fmt\"; \"m/util\")\nfunc main() { fmt.Println(util.F()) }"),
])
def test_programs_of_several_files(atoll, work, language, names, code):
    options = []
    for name, text in names.items():
        (work / name.replace("/", "_")).write_text(text)
        options += ["--file", f"{name}={work / name.replace('/', '_')}"]
    result = atoll.result([*options, "-l", language, "-c", code], timeout=60)
    assert result["stdout"] == "from util\n", result


GO = 'package main\nimport ("fmt"; "m/util")\nfunc main() { fmt.Println(util.F(), own()) }\n'
OWN = 'package main\nfunc own() string { return "own" }\n'
MODULE = {"go.mod": "module m\n\ngo 1.19\n", "util/util.go": 'package util\nfunc F() string { return "util" }\n'}
PACKAGE = "[package]\nname = \"my-app\"\nversion = \"0.1.0\"\nedition = \"2018\"\n"


@pytest.mark.modes("root")
@pytest.mark.parametrize("files, out", [
    ({**MODULE, "main.go": GO, "own.go": OWN}, "util own"),
    ({**MODULE, "cmd/app/app.go": GO, "cmd/app/own.go": OWN, "cmd/app/app_test.go": "package main\nfunc main() {}\n"}, "util own"),
    ({"go.mod": "module m\n\ngo 1.19\n\nrequire d.example/d v1.0.0\n", "a.go": 'package main\nimport "d.example/d"\nfunc main() { println(d.D) }\n',
      "vendor/modules.txt": "# d.example/d v1.0.0\n## explicit\nd.example/d\n", "vendor/d.example/d/d.go": 'package d\nconst D = "vendored"\n'}, "vendored"),
    ({"Cargo.toml": PACKAGE, "src/main.rs": 'mod own;\nfn main() { println!("{} {}", my_app::f(), own::f()); }\n',
      "src/own.rs": 'pub fn f() -> &\'static str { "own" }\n', "src/lib.rs": 'pub fn f() -> &\'static str { "lib" }\n'}, "lib own"),
    ({"Cargo.toml": PACKAGE + '\n[[bin]]\nname = "tool"\npath = "tools/tool.rs"\n', "tools/tool.rs": 'fn main() { println!("tool"); }\n'}, "tool"),
], ids=["go", "go-cmd", "go-vendor", "cargo", "cargo-bin"])
def test_projects(atoll, work, files, out):
    """A Go module is compiled by packages, a Cargo package with its library."""
    for name, text in files.items():
        (work / "app" / name).parent.mkdir(parents=True, exist_ok=True)
        (work / "app" / name).write_text(text)
    done = atoll.run(["run", work / "app"], timeout=60)
    assert done.returncode == 0 and (done.out + done.err).strip() == out, done


@pytest.mark.modes("root")
def test_python_libraries(atoll):
    """Those that `atoll languages` lists can be imported; a figure can be drawn without a display."""
    listed = {e["name"]: e for e in atoll.run(["languages", "--json"]).json()["languages"]}["python"]["libraries"]
    if not {"numpy", "pandas", "matplotlib", "plotly"} <= set(listed):
        pytest.skip("install python3-numpy, python3-pandas, python3-matplotlib and python3-plotly")
    code = ("import numpy, pandas, plotly.graph_objects, matplotlib.pyplot as plt\n"
            "plt.plot(numpy.arange(3)); plt.savefig('figure.png')\n"
            "print(pandas.DataFrame({'a': [1, 2]}).a.sum(), len(plotly.graph_objects.Figure().to_json()) > 10)\n")
    result = atoll.result(["-l", "python", "-c", code], timeout=60)
    assert result["stdout"] == "3 True\n", result
    assert [f["path"] for f in result["files"]] == ["figure.png"]


TOOLS = {
    "javascript": "class Tool {\n  async add({ a, b }) { console.log('adding'); return { sum: a + b }; }\n"
                  "  bad() { return () => 1; }\n  boom() { throw new TypeError('no'); }\n}\n",
    "ruby": "class Tool\n  def add(a:, b:)\n    puts 'adding'\n    { sum: a + b }\n  end\n\n"
            "  def bad = Object.new\n\n  def boom = raise(TypeError, 'no')\nend\n",
}


@pytest.mark.modes("root")
@pytest.mark.parametrize("language", TOOLS)
def test_invoke(atoll, language):
    """Runners other than Python's (test_stages.py has that one)."""
    def call(method, params="{}"):
        return atoll.result(["-l", language, "--invoke", f"Tool.{method}", "--params", params, "-c", TOOLS[language]])
    result = call("add", '{"a": 1, "b": 2}')
    assert (result["value"], result["error"], result["stdout"]) == ({"sum": 3}, None, "adding\n"), result
    result = call("boom")
    assert (result["value"], result["error"]["type"], result["error"]["message"], result["_exit"]) == (None, "TypeError", "no", 1)
    assert "is not JSON serializable" in call("bad")["value"]
    assert "nope" in call("nope")["error"]["message"]


def test_a_tool_is_no_module(atoll):
    """What pdb imports is Python's own."""
    tool = "print(__name__ != 'code')\nimport pdb\nclass Tool:\n    def where(self): return pdb.code.__file__\n"
    result = atoll.result(["-l", "python", "--invoke", "Tool.where", "-c", tool])
    assert result["stdout"] == "True\n" and result["value"].startswith("/usr/lib/python3"), result


@each
def test_a_byte_order_mark_is_no_part_of_a_program(atoll, work, language):
    """Editors of Windows write one before UTF-8. Java, Bash, Lua, PHP and R would refuse or print it."""
    source = work / program(language, "hello").name
    source.write_bytes(b"\xef\xbb\xbf" + program(language, "hello").read_bytes())
    plain = atoll.result([program(language, "hello")] if atoll.mode == "root" else ["--language", language, "-c", program(language, "hello").read_text()],
                         timeout=120)
    marked = atoll.result([source], timeout=120)
    assert marked["status"] == plain["status"] == "success" and marked["stdout"] == plain["stdout"], marked
    source.write_text(program(language, "hello").read_text(), encoding="utf-16")
    refused = atoll.result([source])
    assert refused["_exit"] == 125 and "UTF-16" in refused["cause"]["detail"] and "UTF-8" in refused["cause"]["detail"], refused


def test_a_byte_order_mark_of_an_entry(atoll, work):
    (work / "app").mkdir()
    (work / "app" / "main.sh").write_bytes(b"\xef\xbb\xbf#!/bin/bash\necho hi\n")
    (work / "app" / "data").write_bytes(b"\xef\xbb\xbfx")
    result = atoll.result([work / "app"])
    assert result["stdout"] == "hi\n" and result["stderr"] == "", result
    assert atoll.bash("wc -c < app/data", options=["--file", f"app={work}/app"])["stdout"].strip() == "4"
