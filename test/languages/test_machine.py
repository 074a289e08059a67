# SPDX-License-Identifier: Apache-2.0
"""What programs are told about the machine: the processors and the memory of their limits, and one locale.

The same in a cold run, in a warm one and in a session, and in every language. A program that no file of ours tells anything
sees the host's processors, so these tests prove something on hosts with two or more.
"""
import os

import pytest

from live import Session
from resident import wait_until

quick = pytest.mark.quick
# Printed by a shell that the program starts: its variables are those of the program.
SHELL = r'echo "LANG=$LANG LC_ALL=$LC_ALL LC_CTYPE=$LC_CTYPE OMP=$OMP_NUM_THREADS GO=$GOMAXPROCS cpus=$(nproc)"'
QUOTED = '"' + SHELL.replace('"', '\\"') + '"'
TOLD = "LANG= LC_ALL= LC_CTYPE=C.UTF-8 OMP={cpus} GO={cpus} cpus={cpus}\n"
CALL = {
    "python": f"import os\nos.system({SHELL!r})",
    "javascript": f"require('child_process').execSync({SHELL!r}, {{stdio: 'inherit'}})",
    "typescript": f"import {{execSync}} from 'child_process'\nexecSync({SHELL!r}, {{stdio: 'inherit'}})",
    "bash": SHELL,
    "ruby": f"system(<<'END')\n{SHELL}\nEND",
    "perl": f"system(<<'END');\n{SHELL}\nEND",
    "php": f"<?php passthru(<<<'END'\n{SHELL}\nEND);",
    "lua": f"os.execute([[{SHELL}]])",
    "r": f"invisible(system(r\"---({SHELL})---\"))",
    "c": f"#include <stdlib.h>\nint main(void) {{ return system({QUOTED}); }}",
    "cpp": f"#include <cstdlib>\nint main() {{ return system({QUOTED}); }}",
    "go": "package main\nimport (\"os\"; \"os/exec\")\nfunc main() { c := exec.Command(\"/bin/sh\", \"-c\", `" + SHELL +
          "`); c.Stdout = os.Stdout; c.Run() }",
    "rust": "fn main() { std::process::Command::new(\"/bin/sh\").args([\"-c\", r#\"" + SHELL + "\"#]).status().unwrap(); }",
    "java": "public class Main { public static void main(String[] a) throws Exception { new ProcessBuilder(\"/bin/sh\", \"-c\", "
            + QUOTED + ").inheritIO().start().waitFor(); } }",
}
# What the language itself says: processors, and where it can, MiB of memory that it may use.
OWN = {
    "python": "import os, multiprocessing\nprint(os.cpu_count(), multiprocessing.cpu_count())",
    "javascript": "const os = require('os'), v8 = require('v8');\n"
                  "console.log(os.cpus().length, os.availableParallelism(), os.totalmem() / 2 ** 20, os.freemem() < os.totalmem(),"
                  " v8.getHeapStatistics().heap_size_limit / 2 ** 20 < 400)",
    "typescript": "import * as os from 'os';\nimport { cpus } from 'os';\nconsole.log(os.cpus().length, cpus().length)",
    "bash": "nproc\ngetconf _NPROCESSORS_ONLN\ngetconf _NPROCESSORS_CONF",
    "c": "#include <stdio.h>\n#include <unistd.h>\nint main(void) { printf(\"%ld %ld\\n\", sysconf(_SC_NPROCESSORS_ONLN), sysconf(_SC_NPROCESSORS_CONF)); }",
    "cpp": "#include <cstdio>\n#include <thread>\nint main() { printf(\"%u\\n\", std::thread::hardware_concurrency()); }",
    "go": "package main\nimport (\"fmt\"; \"runtime\"; \"runtime/debug\")\n"
          "func main() { fmt.Println(runtime.GOMAXPROCS(0), debug.SetMemoryLimit(-1) >> 20) }",
    "java": "public class Main { public static void main(String[] a) { System.out.println(Runtime.getRuntime().availableProcessors()); } }",
    "r": "library(parallel)\ncat(getOption('mc.cores'), '\\n')",
}
SAID = {"python": "1 1", "javascript": "1 1 256 true true", "typescript": "1 1", "bash": "1 1 1", "c": "1 1", "cpp": "1", "go": "1 230",
        "java": "1", "r": "1"}


@pytest.mark.parametrize("language", CALL)
def test_variables_and_locale(atoll, language):
    done = atoll.run(["run", "-l", language, "--cpus", "0.3", "-c", CALL[language]], timeout=120)
    assert done.out == TOLD.format(cpus=1), done


@quick
@pytest.mark.parametrize("language", OWN)
def test_what_the_language_says(atoll, language):
    done = atoll.run(["run", "-l", language, "--cpus", "1", "-m", "256m", "-c", OWN[language]], timeout=120)
    assert done.out.split() == SAID[language].split(), done


def test_node_and_its_children(atoll):
    """Workers, forked and started programs; no word of Atoll's in a worker."""
    code = "const { Worker, isMainThread } = require('worker_threads'), { fork } = require('child_process'), os = require('os');\n" \
           "console.log(os.cpus().length, os.cpus()[0].model, process.argv[2] || 'main', process.execArgv.length);\n" \
           "if (!process.argv[2] && isMainThread) {\n" \
           "  new Worker(__filename, { argv: ['worker'] }).on('exit', () => fork(__filename, ['child']));\n}"
    done = atoll.run(["run", "-l", "javascript", "--cpus", "1", "-c", code])
    assert done.out == "1 unknown main 2\n1 unknown worker 0\n1 unknown child 2\n", done


@quick
def test_part_of_a_processor_counts_whole(atoll):
    if os.cpu_count() < 2:
        pytest.skip("this host has one processor")
    code = "import os\nprint(os.cpu_count(), os.environ['OMP_NUM_THREADS'], *(open(f'/sys/devices/system/cpu/{n}').read().strip() " \
           "for n in ('online', 'possible', 'present')), os.listdir('/sys'), os.listdir('/sys/devices/system'))"
    assert atoll.python(code, options=["--cpus", "1.2"])["stdout"] == "2 2 0-1 0-1 0-1 ['devices'] ['cpu']\n"


def test_files_of_the_machine_are_not_the_programs(atoll):
    code = "for path in ('/sys/devices/system/cpu/online', '/sys/x'):\n" \
           "    try:\n        open(path, 'w')\n    except OSError as e:\n        print(e.errno in (13, 30))"
    assert atoll.python(code)["stdout"] == "True\nTrue\n"


@pytest.mark.parametrize("language, variable, code, said", [
    ("javascript", "NODE_OPTIONS=--max-old-space-size=64", "console.log(require('v8').getHeapStatistics().heap_size_limit / 2 ** 20 < 120, "
                                                           "require('os').cpus().length)", "true 1"),
    ("go", "GOMEMLIMIT=10MiB", OWN["go"], "1 10"),
    ("go", "GOMAXPROCS=3", OWN["go"], "3 460"),
    ("bash", "OMP_NUM_THREADS=5", "nproc; echo $GOMAXPROCS", "5 1")])
def test_the_callers_variable_wins(atoll, language, variable, code, said):
    done = atoll.run(["run", "-l", language, "--env", variable, "-c", code], timeout=120)
    assert done.out.split() == said.split(), done


@pytest.mark.modes("root")
@pytest.mark.parametrize("policy", ["strict", "minimal"])
def test_node_under_other_policies(atoll, policy):
    done = atoll.run(["run", "-l", "javascript", "--policy", policy, "--cpus", "1", "-c", "console.log(require('os').cpus().length)"])
    assert done.out == "1\n", done


# A warm program has descriptor 100.
WARM = {"python": "import os\nprint(os.path.exists('/proc/self/fd/100'))\n", "javascript": "console.log(require('fs').existsSync('/proc/self/fd/100'));\n",
        "bash": "test -e /proc/self/fd/100 && echo True || echo False\n", "ruby": "puts File.exist?('/proc/self/fd/100')\n"}


@pytest.mark.parametrize("language", WARM)
def test_warm_as_cold(served, language):
    """Limits that a pool had not seen before: its first runs are cold, the others warm, and all of them are told the same."""
    seen = set()

    def ask(code, start):
        answer = served.web.post("/v1/execute", {"language": language, "code": start + code, "limits": {"cpus": 0.7, "memory": "256m"}})
        lines = answer.json()["stdout"].splitlines(True)  # Python prints its own behind those of its shell
        seen.update(line.strip().lower() for line in lines)
        return "".join(line for line in lines if line.strip().lower() not in ("true", "false"))

    def both():
        assert ask(CALL[language], WARM[language]) == TOLD.format(cpus=1)
        if language in OWN:
            assert ask(OWN[language], WARM[language]).split() == SAID[language].split()
        return "true" in seen

    wait_until(both, 60, "no run was warm")


@pytest.mark.parametrize("language", ["python", "javascript", "bash", "ruby"])
def test_session(served, language):
    with Session(served.web, language=language, limits={"cpus": 1, "memory": "256m"}) as session:
        assert session.run(CALL[language])["stdout"] == TOLD.format(cpus=1)
        if language in OWN:
            assert session.run(OWN[language])["stdout"].split()[:1] == ["1"]
