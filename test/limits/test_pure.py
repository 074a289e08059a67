# SPDX-License-Identifier: Apache-2.0
"""The policy `pure`: code that computes, without files and processes. The kernel holds it, so ctypes does not get round it."""
import json

import pytest

CODE = """
import ctypes, errno, json, os, subprocess, threading
libc = ctypes.CDLL(None, use_errno=True)

def word(call, *args):
    if call(*args) >= 0:
        return "done"
    return errno.errorcode[ctypes.get_errno()]

def name(call, *args):
    try:
        call(*args)
        return "done"
    except OSError as error:
        return errno.errorcode[error.errno]
    except RuntimeError as error:
        return str(error)

print(json.dumps({
    "passwd": name(open, "/etc/passwd"), "passwd by libc": word(libc.open, b"/etc/passwd", 0),
    "work": name(open, "/sandbox/x", "w"), "tmp": name(open, "/tmp/x", "w"), "shm": name(open, "/dev/shm/x", "w"),
    "root": name(os.listdir, "/"), "proc": name(open, "/proc/self/environ"),
    "fork": word(libc.fork), "run": name(subprocess.run, ["/bin/true"]), "thread": name(threading.Thread(target=print).start),
    "library": name(open, os.__file__), "null": name(open, "/dev/null", "w")}))
"""
EXPECTED = {"passwd": "EACCES", "passwd by libc": "EACCES", "work": "EACCES", "tmp": "EACCES", "shm": "EACCES", "root": "EACCES", "proc": "EACCES",
            "fork": "EAGAIN", "run": "EAGAIN", "thread": "can't start new thread", "library": "done", "null": "done"}


def test_no_files_and_no_processes(atoll):
    result = atoll.result(["--policy", "pure", "-l", "python", "-"], input=CODE)
    assert json.loads(result["stdout"]) == EXPECTED, result


@pytest.mark.parametrize("language, code", [("c", "int main(){}"), ("go", "package main\nfunc main(){}")])
def test_no_compilers(atoll, language, code):
    result = atoll.result(["--policy", "pure", "-l", language, "-"], input=code)
    assert result["status"] == "denied" and "runs no compilers" in result["cause"]["detail"], result
