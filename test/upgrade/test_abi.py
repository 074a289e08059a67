# SPDX-License-Identifier: Apache-2.0
"""A program that was compiled against libatoll of df9aa16 runs with today's, or the name that it asks the linker for has changed."""
import re
import subprocess
from pathlib import Path

import pytest

from program import LIBRARY, ROOT

HERE = Path(__file__).resolve().parent
OLD, NEW = HERE / "df9aa16.h", ROOT / "include" / "atoll" / "atoll.h"
SONAME = "libatoll.so.0"
# As `nm -D` listed them at df9aa16.
FUNCTIONS = {"atoll_detect", "atoll_doctor", "atoll_explain", "atoll_explain_json", "atoll_free", "atoll_languages", "atoll_new",
             "atoll_pool", "atoll_run"}
PROGRAM = """
#include "df9aa16.h"
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
    struct atoll_options options = { .size = sizeof(options), .pool = "" };
    int code = -1;
    struct atoll_run_options how = { .size = sizeof(how), .exit_code = &code };
    struct atoll *a;
    char *json = NULL, *problem = NULL;
    if (atoll_new(&options, &a, &problem) < 0 ||
        atoll_run(a, "{\\"language\\":\\"bash\\",\\"code\\":\\"echo $((6*7)); exit 5\\"}", &how, &json, &problem) < 0)
        return puts(problem), 1;
    printf("%d %s\\n", code, json);
    free(json);
    atoll_free(a);
    return 0;
}
"""


def command(*words, **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=120, **more)
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module", autouse=True)
def same_name():
    found = re.search(r"SONAME.*\[(.*)\]", command("readelf", "-d", LIBRARY))[1]
    if found != SONAME:
        pytest.skip(f"the library is {found} now: programs of {SONAME} do not find it")


def layout(header, names, place):
    """{expression: value} of sizes, offsets and constants."""
    lines = "".join(f'printf("%s %lld\\n", "{name}", (long long)({name}));' for name in names)
    source = place / "layout.c"
    source.write_text(f'#include "{header}"\n#include <stdio.h>\nint main(void) {{ {lines} }}\n')
    command("cc", source, "-o", place / "layout")
    return {line.rsplit(" ", 1)[0]: int(line.rsplit(" ", 1)[1]) for line in command(place / "layout").splitlines()}


def test_structs_and_constants_are_where_they_were(tmp_path):
    text = re.sub(r"/\*.*?\*/", "", OLD.read_text(), flags=re.S)
    structs = dict(re.findall(r"struct (\w+) \{(.*?)\n\};", text, re.S))
    assert set(structs) == {"atoll_options", "atoll_run_options", "atoll_sample", "atoll_pool_options"}
    members = [f"offsetof(struct {name}, {member})" for name, body in structs.items()
               for member in re.findall(r"\(\*(\w+)\)\(|(?<!\))\b(\w+);", body) for member in member if member]
    assert len(members) > 30, members
    constants = re.findall(r"(ATOLL_[A-Z]+) = ", text)
    assert layout(OLD, members + constants, tmp_path) == layout(NEW, members + constants, tmp_path)
    # A struct says its size, so it may grow.
    sizes = [f"sizeof(struct {name})" for name in structs]
    old, new = layout(OLD, sizes, tmp_path), layout(NEW, sizes, tmp_path)
    assert all(old[size] <= new[size] for size in sizes), (old, new)


def test_functions_are_there():
    exported = {line.split()[-1] for line in command("nm", "-D", "--defined-only", LIBRARY).splitlines()}
    assert FUNCTIONS <= exported, FUNCTIONS - exported


def test_program_of_then_runs(mode, stage, work, atoll):
    (work / "then.c").write_text(PROGRAM)
    command("cc", "-I", HERE, work / "then.c", "-o", work / "then", stage.library, "-Wl,-rpath," + str(stage.bin))
    done = atoll.run([], program=work / "then")
    assert done.returncode == 0 and done.out.startswith("5 {") and '"stdout":"42\\n"' in done.out, done
