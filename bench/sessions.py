# SPDX-License-Identifier: Apache-2.0
"""What a live session costs: an execution in it, a host call, a reset, a fork, and hundreds of idle ones.

Every figure is a ratio to a bare `/usr/bin/python3 -c 'print(1)'` that was run between the samples of the same minute.
    bench/sessions.py [--binary build/atoll] [--samples 200] [--idle 500] [--only execute,call,reset,fork,idle]
"""
import argparse
import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

BARE = ["/usr/bin/python3", "-c", "print(1)"]
READY = ["numpy", "pandas", "matplotlib"]


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)

    def ask(self, method, target, body=None):
        headers = {"Content-Type": "application/json"} if body is not None else {}
        self.request(method, target, None if body is None else json.dumps(body), headers)
        answer = self.getresponse()
        text = answer.read()
        if answer.status >= 300:
            sys.exit(f"{method} {target}: {answer.status} {text.decode()}")
        return json.loads(text) if text else None


class Daemon:
    def __init__(self, binary):
        self.place = tempfile.TemporaryDirectory(prefix="atoll-bench-")
        os.chmod(self.place.name, 0o711)  # the front runs as another user
        self.socket = f"{self.place.name}/socket"
        settings = f"{self.place.name}/atoll.yaml"
        with open(settings, "w", encoding="utf-8") as f:
            f.write("sessions:\n  max: 2000\n  per_caller: 2000\n")
        self.process = subprocess.Popen([binary, "serve", "--config", settings, "--state-dir", f"{self.place.name}/state", "--socket", self.socket,
                                         "--listen", "127.0.0.1:0"], stderr=subprocess.DEVNULL)
        for _ in range(400):
            try:
                connection = Connection(self.socket)
                connection.request("GET", "/readyz")
                if connection.getresponse().status == 200:
                    return self.rest()
            except OSError:
                pass
            time.sleep(0.05)
        sys.exit("the daemon does not get ready")

    def rest(self):
        """The first daemon on a host prepares compilers behind its back, which takes a minute."""
        while any(word in names(self.process.pid) for word in ("go", "javac", "tsc", "rustc", "compile")):
            time.sleep(1)

    def close(self):
        self.process.terminate()
        self.process.wait()
        self.place.cleanup()


def timed(work):
    begin = time.perf_counter()
    work()
    return (time.perf_counter() - begin) * 1000


def bare():
    return timed(lambda: subprocess.run(BARE, stdout=subprocess.DEVNULL, check=True))


def compare(name, work, samples, per=1, pause_s=0.0, after=lambda: None):
    """Medians of both, one bare sample after every tenth of ours."""
    ours, theirs = [], []
    for i in range(samples):
        time.sleep(pause_s)
        ours.append(timed(work) / per)
        after()
        if i % 10 == 0:
            theirs.append(bare())
    ours_ms, bare_ms = statistics.median(ours), statistics.median(theirs)
    print(f"{name:36} p50 {ours_ms:8.3f} ms   bare {bare_ms:6.2f} ms   ratio {ours_ms / bare_ms:.4f}", flush=True)
    return ours_ms


def new_session(connection, **body):
    return "/v1/sessions/" + connection.ask("POST", "/v1/sessions", body)["id"]


def measure_execute(connection, o):
    at = new_session(connection)
    connection.ask("POST", f"{at}/execute", {"code": "print(1)"})
    compare("execution in a session", lambda: connection.ask("POST", f"{at}/execute", {"code": "print(1)"}), o.samples)
    connection.ask("DELETE", at)


def measure_call(connection, o):
    """From the call in the sandbox to its answer there: a client that reads events and answers on a second connection."""
    at, answers, count = new_session(connection), Connection(connection.path), 100
    times = []
    for _ in range(max(o.samples // count, 2)):
        stream = Connection(connection.path)
        code = f"import time\nt = []\nfor _ in range({count}):\n    b = time.perf_counter()\n    f(1)\n    t.append(time.perf_counter() - b)\nt"
        stream.request("POST", f"{at}/execute", json.dumps({"code": code, "host_functions": ["f"]}),
                       {"Content-Type": "application/json", "Accept": "application/x-ndjson"})
        for line in stream.getresponse():
            event = json.loads(line)
            if event["event"] == "host_call":
                answers.ask("POST", f"{at}/calls/{event['data']['call_id']}", {"result": 1})
            elif event["event"] == "result":
                times += event["data"]["value"]
    print(f"{'host function, round trip':36} p50 {statistics.median(times) * 1000:8.3f} ms", flush=True)
    connection.ask("DELETE", at)


def measure_reset(connection, o):
    at = new_session(connection, preload=READY)
    for _ in range(100):  # until the runtime with these modules is there
        if timed(lambda: connection.ask("POST", f"{at}/reset")) < bare() * 0.7:
            break
        time.sleep(0.3)
    compare("reset, numpy and pandas ready", lambda: connection.ask("POST", f"{at}/reset"), max(o.samples // 4, 20), pause_s=0.1)
    connection.ask("DELETE", at)


def measure_fork(connection, o):
    at = new_session(connection)
    connection.ask("POST", f"{at}/execute", {"code": "data = bytearray(b'x') * (100 << 20)"})

    def fork(count):
        made[:] = ["/v1/sessions/" + child["id"] for child in connection.ask("POST", f"{at}/fork", {"count": count})["sessions"]]

    def end():
        for child in made:
            connection.ask("DELETE", child)
        time.sleep(0.2)

    made = []
    for count in (1, 4, 8):
        compare(f"fork with 100 MiB, each of {count}", lambda n=count: fork(n), max(o.samples // 10, 8), per=count, after=end)
    connection.ask("DELETE", at)


def private_kib(pid):
    """Memory of one process that no other process shares."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
            return sum(int(line.split()[1]) for line in f if line.startswith(("Private_Clean", "Private_Dirty")))
    except OSError:
        return 0


def below(pid):
    found, stack = set(), [pid]
    while stack:
        at = stack.pop()
        try:
            for task in os.listdir(f"/proc/{at}/task"):
                with open(f"/proc/{at}/task/{task}/children", encoding="ascii") as f:
                    children = [int(word) for word in f.read().split()]
                found.update(children)
                stack += children
        except OSError:
            pass
    return found


def names(pid):
    found = set()
    for one in below(pid):
        try:
            with open(f"/proc/{one}/comm", encoding="utf-8", errors="replace") as f:
                found.add(f.read().strip())
        except OSError:
            pass
    return found


def measure_idle(connection, daemon, o):
    at = new_session(connection)
    alone = compare("one session", lambda: connection.ask("POST", f"{at}/execute", {"code": "print(1)"}), o.samples)
    before = sum(private_kib(pid) for pid in below(daemon.process.pid))
    begin, made = time.monotonic(), [at]
    for _ in range(o.idle - 1):
        made.append(new_session(connection))
    print(f"{o.idle} sessions made in {time.monotonic() - begin:.1f} s", flush=True)
    time.sleep(2)
    after = sum(private_kib(pid) for pid in below(daemon.process.pid))
    print(f"{'each idle session':36} {(after - before) / 1024 / (o.idle - 1):8.2f} MiB beyond shared pages", flush=True)
    crowd = compare(f"one of {o.idle} sessions", lambda: connection.ask("POST", f"{made[o.idle // 2]}/execute", {"code": "print(1)"}), o.samples)
    print(f"{'crowd / alone':36} {crowd / alone:.2f}", flush=True)
    closers = [threading.Thread(target=lambda part: [Connection(connection.path).ask("DELETE", one) for one in part], args=(made[i::4],))
               for i in range(4)]
    for closer in closers:
        closer.start()
    for closer in closers:
        closer.join()


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--binary", default="build/atoll")
    p.add_argument("--samples", type=int, default=200)
    p.add_argument("--idle", type=int, default=500)
    p.add_argument("--only", default="execute,call,reset,fork,idle")
    o = p.parse_args()
    daemon = Daemon(o.binary)
    try:
        connection = Connection(daemon.socket)
        phases = {"execute": lambda: measure_execute(connection, o), "call": lambda: measure_call(connection, o),
                  "reset": lambda: measure_reset(connection, o), "fork": lambda: measure_fork(connection, o),
                  "idle": lambda: measure_idle(connection, daemon, o)}
        for name in o.only.split(","):
            phases[name]()
    finally:
        daemon.close()


if __name__ == "__main__":
    main()
