# SPDX-License-Identifier: Apache-2.0
"""Holds one libatoll handle and runs the requests that come as JSON lines on standard input.

{"op": "run", "request": TEXT} -> {"rc", "result", "problem"}
{"op": "health"} -> fds of this process and of its children, and their peak memory
"""
import ctypes
import json
import os
import sys


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("data_dir", ctypes.c_char_p), ("cache_dir", ctypes.c_char_p)]


lib = ctypes.CDLL(sys.argv[1])
libc = ctypes.CDLL(None)
libc.free.argtypes = [ctypes.c_void_p]


def take(pointer):
    """The C string behind a char *, which is then freed."""
    if not pointer.value:
        return None
    text = ctypes.string_at(pointer.value).decode("utf-8", "surrogateescape")
    libc.free(pointer)
    return text


def children():
    with open(f"/proc/self/task/{os.getpid()}/children") as f:
        return [int(word) for word in f.read().split()]


def describe(pid):
    with open(f"/proc/{pid}/status") as f:
        fields = dict(line.split(":", 1) for line in f)
    return {"pid": pid, "fds": len(os.listdir(f"/proc/{pid}/fd")), "hwm_kib": int(fields["VmHWM"].split()[0]),
            "rss_kib": int(fields["VmRSS"].split()[0])}


def main():
    options = Options(ctypes.sizeof(Options), os.environb.get(b"ATOLL_DATA_DIR"), None)
    handle, problem = ctypes.c_void_p(), ctypes.c_void_p()
    rc = lib.atoll_new(ctypes.byref(options), ctypes.byref(handle), ctypes.byref(problem))
    if rc < 0:
        sys.exit(f"atoll_new: {take(problem)}")
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if message["op"] == "health":
            answer = {"self": describe(os.getpid()), "children": [describe(pid) for pid in children()]}
        else:
            result, problem = ctypes.c_void_p(), ctypes.c_void_p()
            text = message["request"].encode("utf-8", "surrogateescape")
            rc = lib.atoll_run(handle, ctypes.c_char_p(text), None, ctypes.byref(result), ctypes.byref(problem))
            answer = {"rc": rc, "result": take(result), "problem": take(problem)}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    lib.atoll_free.argtypes = [ctypes.c_void_p]
    lib.atoll_free(handle)


main()
