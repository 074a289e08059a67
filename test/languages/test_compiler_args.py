# SPDX-License-Identifier: Apache-2.0
"""Words for the compiler (`compiler_args`, `--compiler-arg`): they reach the compile stage, count in the build cache, are bounded."""
import secrets

import pytest

OPENMP = """
#include <omp.h>
#include <cstdio>
int main() {
    int sum = 0;
    #pragma omp parallel for reduction(+:sum)
    for (int i = 0; i < 100; i++)
        sum += i;
    std::printf("%d %d %ld %d\\n", sum, omp_get_max_threads() > 0, __cplusplus, VALUE);
}
"""


def args(*words):
    return [f"--compiler-arg={word}" for word in words]


def cpp(atoll, code, *words):
    return atoll.result(["-l", "cpp", *args(*words), "-c", code], timeout=90)


def test_standards_and_libraries(atoll):
    """C++20 without a word, another standard and OpenMP, which is linked, with one."""
    concept = "#include <concepts>\n#include <cstdio>\nint main() { std::printf(\"%d %ld\", std::integral<int>, __cplusplus); }"
    assert cpp(atoll, concept)["stdout"] == "1 202002"
    result = cpp(atoll, OPENMP, "-std=c++17", "-O3", "-fopenmp", "-DVALUE=6")
    assert result["stdout"] == "4950 1 201703 6\n", result
    assert cpp(atoll, concept, "-std=c++11")["status"] == "error"


@pytest.mark.modes("root")
def test_part_of_the_key(atoll):
    code = f'#include <stdio.h>\nint main(void) {{ printf("{secrets.token_hex(4)} %d\\n", V); }}'
    seen = [atoll.result(["-l", "c", *args(f"-DV={value}"), "-c", code]) for value in (1, 2, 1)]
    assert [r["stdout"][-2] for r in seen] == ["1", "2", "1"]
    assert [bool(r.get("cached_build")) for r in seen] == [False, False, True]


@pytest.mark.modes("root")
def test_words_stand_where_each_compiler_wants_them(atoll):
    programs = [
        ("go", "package main\nfunc main() { panic(7) }", ["-gcflags=-N"], 2, ""),
        ("rust", 'fn main() { println!("{}", cfg!(atoll)); }', ["--cfg=atoll"], 0, "true\n"),
        ("java", "public class Main { public static void main(String[] a) { System.out.println(1); } }", ["--release=11"], 0, "1\n"),
        ("typescript", "declare const WORD: string; console.log(WORD)", ['--define:WORD="seven"'], 0, "seven\n"),
    ]
    for language, code, words, status, stdout in programs:
        result = atoll.result(["-l", language, *args(*words), "-c", code], timeout=120)
        assert (result["stages"][-1]["name"], result["exit_code"], result["stdout"]) == ("run", status, stdout), result


@pytest.mark.modes("root")
def test_refused(atoll):
    for words, said in [(["-l", "python", *args("-O3"), "-c", "1"], "compiler_args: Python has no compile stage; leave them out"),
                        (["-l", "c", *args(*["-O"] * 65), "-c", "1"], "compiler_args: it has 65 entries, more than the 64 allowed"),
                        (["-l", "c", *args("-D" + "x" * 4095), "-c", "1"], "compiler_args[0]: it has 4097 bytes, more than the 4096 allowed")]:
        done = atoll.run(["run", *words])
        assert done.returncode == 125 and said in done.stderr.decode(), done
    bad = atoll.result(["-l", "c", *args("-no-such-flag"), "-c", "int main(void) { return 0; }"])
    assert bad["status"] == "error" and "no-such-flag" in bad["stderr"] and bad["stages"][-1]["name"] == "compile", bad
