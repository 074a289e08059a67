# SPDX-License-Identifier: Apache-2.0
"""The build cache: a second run of the same source needs no compiler; no program inside and no other user can poison it."""
import os
import secrets
from pathlib import Path

import pytest

quick = pytest.mark.quick


def source():
    return f'#include <stdio.h>\nint main(void) {{ puts("{secrets.token_hex(6)}"); return 0; }}\n'


@quick
@pytest.mark.undisturbed
def test_second_run_is_cached(atoll):
    code = source()
    first, second = (atoll.result(["-l", "c", "-c", code]) for _ in range(2))
    assert first["stdout"] == second["stdout"] and first["status"] == second["status"] == "success"
    assert not first.get("cached_build") and second["cached_build"] is True
    assert [s["name"] for s in first["stages"]] == ["compile", "run"]
    assert second["_elapsed"] < first["_elapsed"]


def test_other_source_is_not_cached(atoll):
    code = source()
    atoll.result(["-l", "c", "-c", code])
    assert not atoll.result(["-l", "c", "-c", code + "\n"]).get("cached_build")


def test_extra_files_count(atoll, work):
    """A header that changes must not give the old program."""
    code = '#include <stdio.h>\n#include "v.h"\nint main(void) { printf("%d\\n", V); }'
    for value in (1, 2):
        (work / "v.h").write_text(f"#define V {value}\n")
        result = atoll.result(["-l", "c", "--file", f"v.h={work}/v.h", "-c", code])
        assert result["stdout"] == f"{value}\n", result


def test_failed_builds_are_not_cached(atoll):
    code = "int main(void) { return missing; } // " + secrets.token_hex(4)
    for _ in range(2):
        result = atoll.result(["-l", "c", "-c", code])
        assert result["status"] == "error" and not result.get("cached_build") and "missing" in result["stderr"]


def test_cut_builds_are_not_cached(atoll):
    """An object file that is mostly a hole is left out of what is collected: the program runs, the next run builds again."""
    words = [w for arg in ("-save-temps=obj", "-fdata-sections", "-Wl,--gc-sections") for w in ("--compiler-arg", arg)]
    code = "char unused[1] __attribute__((aligned(0x4000000))) = {1};\n" + source()
    for _ in range(2):
        result = atoll.result(["-l", "c", *words, "-c", code])
        assert result["status"] == "success" and not result.get("cached_build"), result


def test_cache_is_private(atoll):
    atoll.result(["-l", "c", "-c", source()])
    cache = Path(atoll.home) / "cache" / "atoll"
    assert cache.is_dir()
    owner = 65533 if atoll.rootless and os.geteuid() == 0 else os.geteuid()
    for top, dirs, names in os.walk(cache):
        for path in [top] + [os.path.join(top, n) for n in names]:
            info = os.lstat(path)
            assert info.st_uid == owner and info.st_mode & 0o077 == 0, (path, oct(info.st_mode))


@pytest.mark.modes("root")
def test_users_do_not_share(stage):
    """What root built is not taken by another user, nor the other way round."""
    from program import Atoll
    code = source()
    root, other = Atoll("root", stage), Atoll("rootless", stage)
    assert not root.result(["-l", "c", "-c", code]).get("cached_build")
    assert not other.result(["-l", "c", "-c", code]).get("cached_build")
    assert other.result(["-l", "c", "-c", code])["cached_build"] is True


def test_a_cache_somebody_else_wrote_is_not_used(atoll, work):
    """A cache directory that others may write to is ignored or refused, never trusted."""
    if not (os.geteuid() == 0 and atoll.rootless):
        pytest.skip("needs a second user to plant the directory")
    cache = work / "cache"
    cache.mkdir()
    (cache / "atoll").mkdir(mode=0o777)
    (cache / "atoll").chmod(0o777)  # root's, world-writable
    code = source()
    env = {"XDG_CACHE_HOME": str(cache)}
    results = [atoll.result(["-l", "c", "-c", code], env=env) for _ in range(2)]
    assert all(r["status"] == "success" for r in results) and not results[1].get("cached_build"), results[1]


def test_not_writable_and_not_there_inside(atoll, work):
    """Neither at compile time nor at run time does the sandbox see the cache."""
    code = "#include <stdio.h>\nint main(void) { return 0; }"
    atoll.result(["-l", "c", "-c", code])
    cache = str(Path(atoll.home) / "cache")
    assert atoll.bash(f"ls {cache} {atoll.home}; touch {cache}/x")["stdout"] == ""
    result = atoll.result(["-l", "c", "-c", f'#include "{cache}/atoll/x"\nint main(void) {{ return 0; }}'])
    assert result["status"] == "error" and "No such file" in result["stderr"]


def test_the_build_is_not_writable_at_run_time(atoll):
    """The program cannot change what the next cached run starts."""
    code = ('#include <stdio.h>\n#include <fcntl.h>\n#include <unistd.h>\n#include <stdlib.h>\n'
            'int main(int argc, char **argv) { char p[4096]; ssize_t n = readlink("/proc/self/exe", p, 4095);\n'
            'p[n > 0 ? n : 0] = 0; chmod(p, 0777);\n'
            'int fd = open(p, O_WRONLY | O_TRUNC); unlink(p); int g = open(p, O_CREAT | O_WRONLY, 0755);\n'
            'if (g >= 0) write(g, "#!/bin/sh\\necho evil\\n", 20); printf("%s\\n", n > 0 ? "own" : "?"); return 0; }\n'
            "// " + secrets.token_hex(4)).replace("#include <unistd.h>", "#include <unistd.h>\n#include <sys/stat.h>")
    first = atoll.result(["-l", "c", "-c", code])
    second = atoll.result(["-l", "c", "-c", code])
    assert first["stdout"] == second["stdout"] == "own\n" and second["cached_build"] is True


def test_damaged_entries_are_rebuilt(atoll):
    """Cut or overwritten files in the cache are noticed."""
    code = source()
    good = atoll.result(["-l", "c", "-c", code])["stdout"]
    cache = Path(atoll.home) / "cache" / "atoll"
    files = [Path(top) / n for top, _, names in os.walk(cache) for n in names]
    newest = max(files, key=lambda p: p.stat().st_mtime_ns)
    for path in files:
        if path.parent == newest.parent or path == newest:
            mode = path.stat().st_mode
            path.chmod(0o600)
            path.write_bytes(path.read_bytes()[:64])
            path.chmod(mode & 0o777)
    result = atoll.result(["-l", "c", "-c", code])
    assert result["status"] == "success" and result["stdout"] == good, result


def test_concurrent_builds(atoll):
    code = source()
    popens = [atoll.popen(["run", "-l", "c", "-c", code]) for _ in range(4)]
    outs = {popen.communicate(timeout=60)[0] for popen in popens}
    assert len(outs) == 1 and outs != {b""}
