# SPDX-License-Identifier: Apache-2.0
"""Two hundred programs, cold and warm: both results tell the same end. The programs leave processes and threads behind, change their
descriptors, and write to the socket that only warm programs have. Only times and memory may differ in a result.

Programs are made of what is done first and how it ends. Each writes ^ to its standard error first where it is warm, ~ where it is cold.
"""
import itertools
import json
import re
import threading
import time

from library import Library
from resident import own

HEAD = """import atexit, ctypes, os, signal, socket, subprocess, sys, threading, time
os.write(2, b'^' if os.path.exists('/proc/self/fd/100') else b'~')
libc = ctypes.CDLL(None)
def say(*words):
    for word in words:
        try: os.write(100, word)
        except OSError: pass
def child(act):
    if (pid := os.fork()) == 0:
        act()
        os._exit(0)
    return pid
"""

DEEDS = {
    "nothing": "",
    "output without an end of line": "sys.stdout.write('no newline'); sys.stderr.write('none here')",
    "a child that is waited for": "os.waitpid(child(lambda: os.write(1, b'child\\n')), 0)",
    "a child that failed": "print(os.waitstatus_to_exitcode(os.waitpid(child(lambda: os._exit(33)), 0)[1]))",
    "a child that was killed": "print(os.waitstatus_to_exitcode(os.waitpid(child(lambda: os.kill(os.getpid(), 9)), 0)[1]))",
    "a child that stays": "child(lambda: time.sleep(60))",
    "a zombie": "os.waitid(os.P_PID, child(lambda: None), os.WEXITED | os.WNOWAIT)",
    "a daemon": "os.waitpid(child(lambda: (os.setsid(), child(lambda: time.sleep(60)))), 0)",
    "a daemon of libc's": "os.waitpid(child(lambda: (libc.daemon(1, 1), time.sleep(60))), 0)",
    "five generations": "def deeper(n):\n    if n: os.waitpid(child(lambda: deeper(n - 1)), 0)\n    else: os.write(1, b'deep\\n')\ndeeper(5)",
    "a command": "print(subprocess.run(['sh', '-c', 'echo run; exit 3'], capture_output=True))",
    "a raw fork": "libc.syscall(57) == 0 and libc._exit(3)\nos.wait()",
    "a thread that has ended": "thread = threading.Thread(target=print, args=('thread',)); thread.start(); thread.join()",
    "a thread that is waited for": "threading.Thread(target=lambda: (threading.main_thread().join(), print('late'))).start()",
    "a daemon thread": "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
    "an exit in a thread": "thread = threading.Thread(target=sys.exit, args=(5,)); thread.start(); thread.join()",
    "an exception in a thread": "threading.excepthook = lambda args: print(args.exc_type)\nthread = threading.Thread(target=lambda: 1 / 0); "
                                "thread.start(); thread.join()",
    "exit functions": "atexit.register(print, 'last'); atexit.register(print, 'first')",
    "a child of an exit function": "atexit.register(lambda: os.waitpid(child(lambda: os.write(1, b'late child\\n')), 0))",
    "a signal that is handled": "signal.signal(signal.SIGUSR1, lambda *_: print('handled')); os.kill(os.getpid(), signal.SIGUSR1)",
    "a file": "open('made', 'w').write('x' * 5000)",
    "a child's file": "os.waitpid(child(lambda: open('made', 'w').write('y')), 0)",
    "a child that speaks": "os.waitpid(child(lambda: say(b'0', b'1', b'')), 0)",
    "a raw child that speaks": "if libc.syscall(57) == 0:\n    say(b'0', b'0')\n    libc._exit(0)\nos.wait()",
    "a raw child that floods": "if libc.syscall(57) == 0:\n    say(*[b'0'] * 2000)\n    libc._exit(0)\nos.wait()",
    "a command that speaks": "try: os.set_inheritable(100, True)\nexcept OSError: pass\n"
                             "subprocess.run([sys.executable, '-c', 'import os\\ntry: os.write(100, b\"0\")\\nexcept OSError: pass'], close_fds=False)",
    "nonsense": "say(b'x', b'999', b'-1', b'0' * 300, b'')",
    "much nonsense": "say(*[b'nonsense'] * 300)",
    "a closed socket": "try: os.close(100)\nexcept OSError: pass",
    "all descriptors closed": "os.closerange(3, 1024)",
    "a socket that was shut": "try: socket.socket(fileno=os.dup(100)).shutdown(2)\nexcept OSError: pass",
    "another file in its place": "os.dup2(1, 100)",
    "no output": "os.dup2(os.open('/dev/null', os.O_RDWR), 1)",
    "input": "print(sys.stdin.read() == '', os.isatty(0))",
}

ENDS = {
    "falls off": "",
    "exit": "print('end'); sys.exit(7)",
    "text": "sys.exit('why')",
    "at once": "os.write(1, b'end\\n'); os._exit(9)",
    "exception": "raise ValueError('this')",
    "signal": "sys.stdout.flush(); os.kill(os.getpid(), 15); time.sleep(60)",
    "killed": "sys.stdout.flush(); os.kill(os.getpid(), 9); time.sleep(60)",
    "crash": "sys.stdout.flush(); libc.raise_ = None; ctypes.string_at(0)",
    "abort": "sys.stdout.flush(); os.abort()",
    "executed": "sys.stdout.flush(); os.execv('/bin/sh', ['sh', '-c', 'echo executed; exit 4'])",
    "late": "atexit.register(os._exit, 5)",
    "large": "sys.exit(256 + 3)",
    "interrupt": "raise KeyboardInterrupt",
}
COUNT = 200
TIMES = {"id", "created_at", "duration", "cpu_time", "memory_peak", "user", "system", "start", "io_read", "io_write", "labels", "node", "via"}
TRIES = 200


def programs():
    """Each deed with as many ends as there is room for, each end about as often."""
    deeds, ends = list(DEEDS.items()), list(ENDS.items())
    pairs = [(deeds[i], ends[(i + k) % len(ends)]) for k in range(len(ends)) for i in range(len(deeds))]
    return {f"{deed}, then {end}": f"{HEAD}{act}\n{leave}\n" for (deed, act), (end, leave) in pairs[:COUNT]}


def told(value):
    if isinstance(value, dict):
        return {key: told(inner) for key, inner in value.items() if key not in TIMES}
    return [told(inner) for inner in value] if isinstance(value, list) else value


def outcome(library, code, warm):
    """All that is told of a run, warm or cold; a spare may not be there yet."""
    for _ in range(TRIES if warm else 1):
        rc, result, problem = library.run({"language": "python", "code": code, "limits": {"timeout": 20}})
        assert rc == 0, problem
        if result["stderr"][0] == "~^"[warm]:
            break
        time.sleep(0.01)
    assert result["stderr"][0] == "~^"[warm], result
    seen = told(result)
    seen["stderr"] = re.sub("0x[0-9a-f]+", "0x", seen["stderr"][1:])
    if seen["error"]:  # what it says may be what was printed last
        seen["error"]["message"] = seen["error"]["message"].lstrip("~^")
    return seen


def differing(cold, warm, items, found):
    for name, code in items:
        one, other = outcome(cold, code, False), outcome(warm, code, True)
        if one != other:
            found[name] = {key: (one[key], other[key]) for key in one if one[key] != other.get(key)}


def test_ends_are_told_alike(own):
    pool = own("--spares", "4")
    found, items = {}, list(programs().items())
    if pool.atoll.rootless:
        items = items[::8]
    libraries = [(Library(pool.atoll), Library(pool.any_front())) for _ in range(2)]
    queue = iter(items)
    lock = threading.Lock()

    def locked():
        while True:
            with lock:
                item = next(queue, None)
            if item is None:
                return
            yield item

    threads = [threading.Thread(target=differing, args=(*pair, locked(), found)) for pair in libraries]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        for library in itertools.chain(*libraries):
            library.close()
    assert next(queue, None) is None, "a thread has failed"
    assert len(items) == (COUNT if not pool.atoll.rootless else COUNT // 8)
    assert not found, json.dumps(found, indent=1)
