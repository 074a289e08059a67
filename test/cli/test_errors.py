# SPDX-License-Identifier: Apache-2.0
"""Our own failures: one clear sentence on stderr, the right exit code, nothing left behind."""
import os
import shutil
import subprocess

import pytest

quick = pytest.mark.quick


def one_sentence(done, code, *words):
    assert done.returncode == code, done
    assert done.stdout == b"", done
    text = done.err.strip()
    assert text and "\n" not in text and len(text) < 500, done
    for word in words:
        assert word.lower() in text.lower(), f"{word!r} is not in: {text}"


@quick
def test_unknown_language(atoll):
    one_sentence(atoll.run(["run", "-l", "klingon", "-c", "x"]), 127, "klingon")


def test_unknown_language_as_json(atoll):
    done = atoll.run(["run", "--json", "-l", "klingon", "-c", "x"])
    result = done.json()
    assert done.returncode == 127 and result["status"] == "setup_error" and result["exit_code"] is None
    assert result["cause"]["kind"] == "setup" and "klingon" in result["cause"]["detail"]


def test_json_is_always_a_result(atoll, work):
    """Also where --json stands behind what could not be read."""
    (work / "mystery").write_text("???")
    (work / "prog.py").write_text("print(1)")
    (work / "folder").mkdir()
    prog, none = work / "prog.py", work / "none.py"
    cases = [([none], 125, "none.py"), ([work / "folder"], 125, "folder"), ([work / "mystery"], 127, "mystery"),
             ([work / "a\nb.py"], 125, "cannot read"), ([work / ("x" * 300)], 125, "cannot read"), (["-l", "klingon", prog], 127, "klingon"),
             (["--file", f"a={none}", prog], 125, "none.py"), (["--file", f"../a={prog}", prog], 125, "../a"), (["--bogus", prog], 125, "--bogus"),
             (["--tests", none, prog], 125, "none.py"), (["--request", none], 125, "none.py"), (["--env", "bad", prog], 125, "bad"),
             (["--memory", "nan", prog], 125, "limits.memory"), (["--image", none, prog], 125, "none.py"), ([], 125, "nothing to run")]
    if os.geteuid() != 0:
        (work / "closed.py").write_text("1")
        (work / "closed.py").chmod(0)
        cases.append(([work / "closed.py"], 125, "closed.py"))
    for words, code, text in cases:
        for line in (["run", "--json", *words], ["run", *words, "--json"]):
            done = atoll.run(line)
            result = done.json()
            assert (done.returncode, result["status"], result["exit_code"]) == (code, "setup_error", None), (line, done)
            assert text in result["cause"]["detail"] and done.err == "", (line, done)


def test_unknown_variables_are_named(atoll):
    done = atoll.run(["run", "-l", "bash", "-c", "echo fine"], env={"ATOLL_TOKN": "x", "ATOLL_LIMITS_DEFAULTS_TIMEOUT": "9", "ATOLL_XYZZY": ""})
    assert (done.returncode, done.out) == (0, "fine\n")
    assert sorted(done.err.splitlines()) == ["atoll: the variable ATOLL_TOKN means nothing to atoll; did you mean ATOLL_TOKEN?",
                                             "atoll: the variable ATOLL_XYZZY means nothing to atoll; unset it"]


def test_language_cannot_be_told(atoll, work):
    (work / "mystery").write_text("???")
    one_sentence(atoll.run(["run", work / "mystery"]), 127, "mystery", "-l")


@quick
def test_missing_runtime_names_the_package(atoll, work):
    """Runtimes are looked for in the sandbox's root: an image without Python has none."""
    image = work / "image"
    (image / "usr" / "bin").mkdir(parents=True)
    one_sentence(atoll.run(["run", "--image", image, "-l", "python", "-c", "1"]), 127, "python", "python3")


def test_missing_runtime_of_a_new_language(atoll, work):
    """A language file whose program does not exist."""
    data = work / "data"
    shutil.copytree(atoll.stage.data, data)
    text = (data / "languages" / "lua.yaml").read_text()
    changed = "\n".join(line for line in text.replace("/usr/bin/lua", "/usr/bin/nolua").splitlines())
    (data / "languages" / "lua.yaml").write_text(changed)
    subprocess.run(["chmod", "-R", "a+rX", data], check=True)
    done = atoll.run(["run", "-l", "lua", "-c", "print(1)"], env={"ATOLL_DATA_DIR": str(data)})
    one_sentence(done, 127, "lua")
    listed = atoll.run(["languages", "--json"], env={"ATOLL_DATA_DIR": str(data)})
    assert "lua" in listed.out


@quick
def test_missing_file(atoll):
    one_sentence(atoll.run(["run", "/nonexistent/file.py"]), 125, "/nonexistent/file.py")
    one_sentence(atoll.run(["run", "-l", "bash", "--file", "x=/nonexistent/file", "-c", ":"]), 125, "/nonexistent/file")


def test_file_is_a_directory(atoll, work):
    one_sentence(atoll.run(["run", "-l", "python", work]), 125, str(work))


@pytest.mark.modes("rootless")
def test_file_may_not_be_read(atoll, work, canary):
    done = atoll.run(["run", "-l", "python", canary.secret])
    one_sentence(done, 125, str(canary.secret))
    assert canary.text not in done.err


def test_source_too_large(atoll, work):
    with open(work / "big.py", "wb") as f:
        f.truncate(3 << 30)
    one_sentence(atoll.run(["run", work / "big.py"]), 125, "big.py")


@quick
def test_bad_limit(atoll):
    one_sentence(atoll.run(["run", "-l", "bash", "--memory", "lots", "-c", ":"]), 125, "memory", "lots")


def test_bad_limit_as_json(atoll):
    done = atoll.run(["run", "--json", "-l", "bash", "--memory", "lots", "-c", ":"])
    assert done.returncode == 125 and done.json()["status"] == "setup_error"


@pytest.mark.modes("rootless")
def test_unwritable_output_dir(atoll, canary):
    done = atoll.run(["run", "-l", "bash", "--output-dir", canary.dir, "-c", "echo ran; echo x > f"])
    assert done.returncode == 125 and str(canary.dir) in done.err, done
    assert done.stdout == b"", "refuse before the program runs, not after"


@quick
def test_missing_output_dir(atoll, work):
    done = atoll.run(["run", "-l", "bash", "--output-dir", work / "nope", "-c", "echo ran; echo x > f"])
    if done.returncode == 0:  # made for the caller
        assert (work / "nope" / "f").read_text() == "x\n"
    else:
        one_sentence(done, 125, "nope")


def test_output_dir_that_is_a_file(atoll, work):
    (work / "file").write_text("x")
    one_sentence(atoll.run(["run", "-l", "bash", "--output-dir", work / "file", "-c", "echo x > f"]), 125, "file")


def test_output_dir_with_a_trap_in_it(atoll, work, canary):
    """A link where a collected file goes must not be followed."""
    out = atoll.mkdir(work / "out")
    (out / "f").symlink_to(canary.public)
    (out / "d").symlink_to(canary.dir)
    atoll.run(["run", "-l", "bash", "--output-dir", out, "-c", "echo overwritten > f; mkdir d; echo new > d/new"])
    assert canary.untouched() and not (canary.dir / "new").exists()


@quick
def test_no_permission_for_namespaces(atoll, enosys):
    """As inside a container whose filter forbids them."""
    poor = atoll.variant(wrap=enosys("clone3", "clone-new=EPERM", "unshare=EPERM"))
    done = poor.run(["run", "-l", "bash", "-c", "echo ran"])
    assert done.returncode in (125, 126) and done.stdout == b"", done
    text = done.err.strip()
    assert "\n" not in text and "namespace" in text.lower(), done


def test_no_permission_for_mounts(atoll, enosys):
    poor = atoll.variant(wrap=enosys("mount=EPERM", "fsopen=EPERM", "open_tree=EPERM"))
    done = poor.run(["run", "-l", "bash", "-c", "echo ran"])
    assert done.returncode in (125, 126) and done.stdout == b"", done
    assert "\n" not in done.err.strip() and "mount" in done.err.lower(), done


def test_no_room_for_namespaces(atoll, enosys):
    """user.max_*_namespaces reached: the kernel says ENOSPC."""
    poor = atoll.variant(wrap=enosys("clone3=ENOSPC", "clone-new=ENOSPC", "unshare=ENOSPC"))
    done = poor.run(["run", "-l", "bash", "-c", "echo ran"])
    assert done.returncode in (125, 126) and done.stdout == b"" and "\n" not in done.err.strip(), done


def test_no_seccomp(atoll, enosys):
    """Without the filter nothing may run: the layer is required."""
    poor = atoll.variant(wrap=enosys("seccomp"))
    done = poor.run(["run", "-l", "bash", "-c", "echo ran"])
    assert done.stdout == b"ran\n" or done.returncode in (125, 126), done  # prctl is another door to it
    if done.returncode == 0:
        result = poor.bash("grep Seccomp: /proc/self/status")
        assert "2" in result["stdout"] and result["isolation"]["seccomp"].startswith("default@")


@pytest.mark.modes("root")
def test_required_layer_missing_is_a_refusal(atoll, work):
    """A policy that requires what this host lacks: 126, the layer and the fix are named, nothing ran."""
    policy = work / "p.yaml"
    policy.write_text((atoll.stage.data / "policies" / "default.yaml").read_text())
    text = policy.read_text()
    import re
    assert re.search(r"^require:", text, re.M), text
    text = re.sub(r"^require:.*?(?=^\S|\Z)", "require: [landlock]\n", text, flags=re.M | re.S)
    policy.write_text(text)
    poor = atoll.variant(env={"ATOLL_FORCE_OFF": "landlock"})
    one_sentence(poor.run(["run", "-l", "bash", "--policy", policy, "-c", "echo ran"]), 126, "landlock")
    result = poor.run(["run", "--json", "-l", "bash", "--policy", policy, "-c", "echo ran"]).json()
    assert result["status"] == "denied" and result["cause"]["kind"] == "policy" and result["exit_code"] is None
    assert atoll.run(["run", "-l", "bash", "--policy", policy, "-c", "echo ran"]).stdout == b"ran\n"


def test_unknown_policy(atoll):
    done = atoll.run(["run", "-l", "bash", "--policy", "nonesuch", "-c", "echo ran"])
    one_sentence(done, 125, "nonesuch")


@pytest.mark.parametrize("text", ["limits: {memory: lots}", "frobnicate: 1", "- a\n- b", "limits: [", "{", "a: &x 1\nb: *x",
                                  "require: [sunshine]", "limits:\n  memory: 1m\n  memory: 2m"])
def test_broken_policy(atoll, work, text):
    (work / "p.yaml").write_text(text)
    done = atoll.run(["run", "-l", "bash", "--policy", work / "p.yaml", "-c", "echo ran"])
    one_sentence(done, 125, "p.yaml")


@pytest.mark.modes("root")
def test_disk_full(atoll, work):
    """The build cache lies on a full file system: the run goes on, or says so; nothing half-written stays."""
    cache = work / "cache"
    cache.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=777", "tests", cache], check=True)
    try:
        with open(cache / "fill", "wb", 0) as f:
            try:
                while True:
                    f.write(b"x" * 4096)
            except OSError:
                pass
        done = atoll.run(["run", "-l", "c", "-c", "#include <stdio.h>\nint main(void) { puts(\"ok\"); }"],
                         env={"XDG_CACHE_HOME": str(cache)})
        if done.returncode == 0:
            assert done.stdout == b"ok\n"
        else:
            one_sentence(done, 125, "space")
        left = [os.path.join(top, n) for top, _, names in os.walk(cache) for n in names]
        assert left == [str(cache / "fill")], left
    finally:
        subprocess.run(["umount", cache], check=True)


@pytest.mark.modes("root")
def test_output_dir_on_a_full_disk(atoll, work):
    out = atoll.mkdir(work / "out")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=777", "tests", out], check=True)
    try:
        done = atoll.run(["run", "-l", "bash", "--output-dir", out, "-c", "head -c 1000000 /dev/zero > big"])
        assert done.returncode == 125 and "space" in done.err.lower() and done.err.count("\n") == 1, done
    finally:
        subprocess.run(["umount", out], check=True)


def test_few_descriptors(atoll):
    argv = atoll.command([atoll.binary, "run", "-l", "bash", "-c", "echo ran"])
    for most in (6, 8, 10, 12, 16):
        done = subprocess.run(["sh", "-c", f'ulimit -n {most}; exec "$@"', "sh", *argv], env=atoll.environment(),
                              cwd=atoll.home, capture_output=True, timeout=60, stdin=subprocess.DEVNULL)
        assert (done.returncode, done.stdout) == (0, b"ran\n") or \
            (done.returncode in (125, 126, 127) and done.stdout == b"" and done.stderr.count(b"\n") <= 1), (most, done)


def test_home_that_is_not_there(atoll):
    done = atoll.run(["run", "-l", "bash", "-c", "echo ran"],
                     env={"HOME": "/nonexistent", "XDG_CACHE_HOME": None}, cwd="/")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"ran\n", b"")
    done = atoll.run(["run", "-l", "bash", "-c", "echo ran"], env={"HOME": None, "XDG_CACHE_HOME": None}, cwd="/")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"ran\n", b"")


@pytest.mark.parametrize("closed", [[0], [1], [2], [0, 1, 2]])
def test_closed_standard_streams(atoll, closed):
    """Started without them: no file of ours may land on descriptor 1 or 2, and no hang."""
    argv = atoll.command([atoll.binary, "run", "-l", "bash", "-c", "echo ran; cat"])
    shut = " ".join(f"{fd}>&-" if fd else "<&-" for fd in closed)
    done = subprocess.run(["sh", "-c", f'exec "$@" {shut}', "sh", *argv], env=atoll.environment(), cwd=atoll.home,
                          capture_output=True, timeout=60, stdin=subprocess.DEVNULL)
    if 1 not in closed:
        assert done.stdout == b"ran\n"


def test_data_directory_missing(atoll):
    done = atoll.run(["run", "-l", "bash", "-c", "echo ran"], env={"ATOLL_DATA_DIR": "/nonexistent"})
    one_sentence(done, 125, "/nonexistent")


def test_broken_language_file(atoll, work):
    data = work / "data"
    shutil.copytree(atoll.stage.data, data)
    (data / "languages" / "zz.yaml").write_text("name: [")
    subprocess.run(["chmod", "-R", "a+rX", data], check=True)
    done = atoll.run(["languages"], env={"ATOLL_DATA_DIR": str(data)})
    assert "zz.yaml" in done.err + done.out, done
