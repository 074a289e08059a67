# SPDX-License-Identifier: Apache-2.0
"""O01–O08: nothing that is said inside can change what is reported."""
import json
import time

import pytest

MIB = 1 << 20


@pytest.mark.quick
def test_O01_results_cannot_be_forged(box):
    code = r"""
import os, json, struct
fake = json.dumps({"id": "ex_00000000000000000000000000", "status": "success", "success": True, "exit_code": 0,
                   "cause": {"kind": "exit"}, "memory_peak": 1}).encode() + b"\n"
for fd in range(1024):
    for data in (fake, struct.pack("<IIiiqq", 5, 0, 0, 0, 0, 0) * 8, struct.pack("<II", 7, 0) * 300, b"\0" * 2048):
        try: os.write(fd, data)
        except OSError: pass
for p in ('/proc/1/fd/0', '/proc/1/fd/3', '/proc/1/fd/4', '/dev/stdout'):
    try: os.write(os.open(p, os.O_WRONLY), fake)
    except OSError: pass
os._exit(7)
"""
    result = box.python(code)
    assert (result["status"], result["exit_code"], result["success"]) == ("error", 7, False)
    assert result["id"] != "ex_" + "0" * 26 and (result["memory_peak"] is None or result["memory_peak"] != 1)
    assert result["_exit"] == 7


def test_O02_any_bytes_give_valid_json(box):
    for data in (r"b'\xff\xfe\xc3('", r"b'\xed\xa0\x80 lone surrogate'", r"b'a\0b'", r"'\u2028\u2029'.encode()", r"b'[' * 100000",
                 r"b'\xf4\x90\x80\x80\xc0\xaf'", r"b'9' * 400", r"b'\x7f\x80\x81'", r"b'\\\"\"\\u0000'"):
        result = box.python(f"import os; d = {data}; os.write(1, d); os.write(2, d[::-1])")
        raw = eval(data)
        assert result["status"] == "success" and result["stdout_bytes"] == result["stderr_bytes"] == len(raw)
        try:
            text = raw.decode()
            assert result["stdout"] == text and not result.get("stdout_binary"), data
        except UnicodeDecodeError:
            assert result["stdout_binary"] is True and "\ufffd" in result["stdout"], data
        json.dumps(result, ensure_ascii=False).encode()


def test_O03_escapes_do_not_reach_a_terminal_through_us(box):
    done = box.run(["run", "--json", "-l", "python", "-c", "print('\\x1b]0;evil\\x07\\x1b[2J\\x9b31m')"])
    assert b"\x1b" not in done.stdout and b"\x07" not in done.stdout
    assert "\x1b]0;evil" in done.json()["stdout"]
    done = box.run(["run", "-l", "\x1b[31mred", "-c", "1"])
    assert done.returncode == 127 and b"\x1b" not in done.stderr
    done = box.run(["run", "/nonexistent\x1b[2J\nsecond line.py"])
    assert b"\x1b" not in done.stderr and done.stderr.count(b"\n") == 1
    done = box.run(["run", "-l", "bash", "--memory", "1\x1b[2J", "-c", ":"])
    assert b"\x1b" not in done.stderr
    done = box.run(["run", "-l", "bash", "--file", "../\x1b[2J=/etc/passwd", "-c", ":"])
    assert b"\x1b" not in done.stderr


def test_O03_nor_do_they_through_a_value_a_verdict_or_a_plan(box, work):
    """Escape sequences, C1 controls and marks of direction, in each text of a program's that `atoll run` prints by itself."""
    hostile = "\x1b]0;evil\x07\x9b31m\u202eexe"

    def is_safe(done):
        return all(c == "\n" or c.isprintable() for c in done.out + done.err) and not done.returncode

    done = box.run(["run", "--eval", "-l", "python", "-c", f"[{hostile!a}]"])
    assert is_safe(done) and json.loads(done.stdout) == [hostile], done
    done = box.run(["run", "--invoke", "A.f", "-l", "python", "-c", f"class A:\n def f(self): return {hostile!a}"])
    assert is_safe(done) and json.loads(done.stdout) == hostile, done
    done = box.run(["run", "--json", "-l", "python", "-c", f"print({hostile!a})"])
    assert is_safe(done) and done.json()["stdout"] == hostile + "\n", done
    said = f"print({hostile!a} + chr(11) + 'test 2: passed')\n"
    (work / "tests.json").write_text(json.dumps([{"stdin": "", "expected": "1", "checker": {"language": "python", "code": said}}]))
    done = box.run(["run", "-l", "bash", "--tests", work / "tests.json", "-c", "echo 1"])
    assert is_safe(done) and done.out.startswith("test 1: passed: \\x1b]0;evil") and done.out.count("\n") == 2, done
    (work / "x").write_text("x")
    names = (f"a{hostile}", "b\" 0644\n  mount       \"here\" → \"there", "c → d optional")
    files = [word for name in names for word in ("--file", f"{name}={work}/x")]
    done = box.run(["run", "--explain", *files, "-l", "bash", "-c", ":"])
    rows = [line for line in done.out.splitlines() if line.startswith("  file ")]
    assert is_safe(done) and len(rows) == 4 and "  mount  " not in done.out.replace(rows[2], ""), done
    assert '→ "/sandbox/c → d optional" 0' in done.out and r'\x22 0644\x0a  mount' in rows[2], done


@pytest.mark.parametrize("total", [1023, 1024, 1025])
def test_O04_the_edge_of_the_limit(box, total):
    result = box.python(f"import os; os.write(1, b'a' * {total}); os.write(2, ('é' * 600).encode()[:{total}])",
                        options=["--output", "1024"])
    assert result["stdout_bytes"] == result["stderr_bytes"] == total
    assert result["stdout_truncated"] is result["stderr_truncated"] is (total > 1024)
    if total <= 1024:
        assert result["stdout"] == "a" * total


def test_O05_order_within_streams(box):
    code = ("import os\nfor i in range(3000):\n    os.write(1, b'o%d\\n' % i); os.write(2, b'e%d\\n' % i)")
    done = box.run(["run", "-l", "python", "-c", code])
    assert done.stdout == b"".join(b"o%d\n" % i for i in range(3000))
    assert done.stderr == b"".join(b"e%d\n" % i for i in range(3000))


@pytest.mark.undisturbed
@pytest.mark.parametrize("code", [
    "import os; os.close(1); os.close(2); os._exit(4)", "import os; os.closerange(0, 1024); os._exit(4)",
    "import os; os.dup2(1, 0); os.dup2(0, 2); os._exit(4)", "import os, time; os.close(1); time.sleep(0.3); os._exit(4)",
    "import os; os.dup2(os.open('/dev/null', 1), 1); print('lost'); os._exit(4)",
    "import os, fcntl; fcntl.fcntl(1, 1031, 4096); fcntl.fcntl(1, 4, os.O_NONBLOCK); os._exit(4)"])
def test_O06_closed_and_twisted_streams(box, code):
    result = box.python(code)
    assert (result["exit_code"], result["status"]) == (4, "error") and result["_elapsed"] < 8


def test_O07_names_with_newlines_and_formats(box):
    code = ("import ctypes, os\nl = ctypes.CDLL(None)\nl.prctl(15, b'%n%s\\n\\x1b[31m', 0, 0, 0)\n"
            "open('%n%s%x', 'w').write('x'); os.execv('/bin/sh', ['%s%n\\n', '-c', 'kill -SEGV $$'])")
    result = box.python(code)
    assert result["signal"] == 11 and [f["path"] for f in result["files"]] == ["%n%s%x"]
    done = box.run(["run", "-l", "bash", "-c", "echo %n%s%n%n >&2; exit 3", "--", "%s%n"])
    assert done.returncode == 3 and done.stderr == b"%n%s%n%n\n"


@pytest.mark.undisturbed
def test_O08_times_are_sane(box):
    for code in ("pass", "import time; time.sleep(0.1)", "import os; os.kill(os.getpid(), 9)"):
        begin = time.monotonic()
        result = box.python(code)
        wall = time.monotonic() - begin
        times = [result["duration"], result["cpu_time"], result["usage"]["start"], result["usage"]["user"],
                 result["usage"]["system"]] + [s["duration"] for s in result["stages"]]
        assert all(0 <= t <= wall + 0.1 for t in times), (times, wall)
        assert sum(s["duration"] for s in result["stages"]) <= result["duration"] + 0.01
        assert result["stdout_bytes"] >= 0
