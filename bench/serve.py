#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The daemon held against its bars: a daemon, a pool and a state directory of its own, all bars in one run.

  bench/serve.py [--quick] [--parts latency,rate,overload,output,idle,stream,history] [--atoll PROGRAM] [--out DIR]

Prints tables and the bars, writes build-results/http.json; exit status 1 when something stopped it. README.md says how it
measures. bench-drive does the timing.
"""

import argparse
import json
import os
import pathlib
import resource
import signal
import socket
import subprocess
import sys
import threading
import time

import history
import memory
import peers
import stats
from bench import Driver, Wrong, conduct, machine
from dockerd import reap

PARTS = ("latency", "rate", "overload", "output", "idle", "stream", "history")
ROOT = peers.ROOT
PYTHON = next(w for w in peers.WORKLOADS if w.name == "python")
REST_US = {"bare": peers.Bare.rest_us, "http": peers.Warm.rest_us, "library": peers.Warm.rest_us}
GIB = 1 << 30
MIB = 1 << 20
STAMP = "import os, time\nos.write(1, b'at=%d.\\n' % time.clock_gettime_ns(time.CLOCK_MONOTONIC))"
WRITER = """import os
block = (b"x" * 1023 + b"\\n") * 64
for _ in range({times}):
    n = 0
    while n < len(block):
        n += os.write(1, block[n:])
"""
LIMIT_S = {"latency": 90, "rate": 90, "overload": 90, "output": 150, "idle": 60, "stream": 60,
           "history": history.LIMIT_S + 10}
LIMIT_ALL_S = 720


class Late(Wrong):
    """A part took longer than it ever should."""


class Daemon:
    """`atoll serve` on a free port, with its log as records."""

    def __init__(self, bench, *options):
        self.state, self.log = bench.folder / "state", bench.folder / "serve.log"
        command = [str(bench.atoll), "serve", "--state-dir", str(self.state), "--socket", str(bench.folder / "serve.sock"),
                   "--listen", "127.0.0.1:0", "--log-format", "json", "--log-level", "info", *options]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=bench.environment())
        self.port = int(self.await_record("ready")["listen"].split()[0].rpartition(":")[2])
        end = time.monotonic() + 20
        while self.ask("/readyz")[0] != 200:
            if time.monotonic() > end:
                raise Wrong(f"the daemon does not get ready: {self.log.read_text()[-500:]}")
            time.sleep(0.05)

    def records(self):
        found = []
        for line in self.log.read_text(errors="replace").splitlines():
            try:
                found.append(json.loads(line))
            except ValueError:
                pass
        return found

    def await_record(self, message, seconds=20):
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.process.poll() is None:
            for record in self.records():
                if record.get("msg") == message:
                    return record
            time.sleep(0.05)
        raise Wrong(f"the daemon does not start: {self.log.read_text(errors='replace')[-500:]}")

    def pids(self):
        """{name: pid} of monitor, broker and front as they are now."""
        found = {"monitor": self.process.pid}
        for record in self.records():
            if record.get("msg") == "started":
                found[record["process"]] = record["pid"]
        return found

    def request(self, method, path, body=None, **headers):
        """The text of a request, as it goes over the wire."""
        text = "" if body is None else json.dumps(body)
        lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{self.port}", *(f"{k}: {v}" for k, v in headers.items())]
        if body is not None:
            lines += ["Content-Type: application/json", f"Content-Length: {len(text)}"]
        return "\r\n".join(lines) + "\r\n\r\n" + text

    def connect(self, seconds=60):
        sock = socket.create_connection(("127.0.0.1", self.port), timeout=seconds)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock

    def ask(self, path, body=None, method=None, seconds=60):
        """(status, JSON or None) over a connection of its own."""
        with self.connect(seconds) as sock:
            sock.sendall(self.request(method or ("GET" if body is None else "POST"), path, body, Connection="close").encode())
            data = b"".join(iter(lambda: sock.recv(1 << 16), b""))
        head, _, rest = data.partition(b"\r\n\r\n")
        try:
            return int(head.split()[1]), json.loads(rest)
        except ValueError:
            return int(head.split()[1]), None

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            reap(self.process, 60)


class Run:
    def __init__(self, options):
        self.options = options
        self.bench = peers.Bench(options.atoll)
        self.program = self.bench.atoll.parent / "bench" / "bench-drive"
        self.daemon = self.pool = self.driver = None
        self.deadline = time.monotonic() + LIMIT_ALL_S
        self.report = {"machine": machine(), "options": {k: str(v) for k, v in vars(options).items()}}

    def say(self, words):
        print(f"bench: {words}", file=sys.stderr, flush=True)

    def start(self):
        self.daemon = Daemon(self.bench)
        self.pool = peers.Pool(self.bench)
        self.pool.await_ready()
        self.driver = Driver(self.bench, self.program, self.pool.socket)
        request = {"language": PYTHON.language, "code": PYTHON.code}
        limits = {"expected": PYTHON.expected, "memory_max": peers.MEMORY_MAX}
        self.define("bare", argv=list(PYTHON.bare), expected=PYTHON.expected)
        self.define("library", request=json.dumps(request), **limits)
        self.define("http", http=self.daemon.request("POST", "/v1/execute", request), **limits)
        self.define("health", http=self.daemon.request("GET", "/healthz"), any_body=True, expected="")
        self.define("health-fresh", http=self.daemon.request("GET", "/healthz"), any_body=True, fresh=True, expected="")
        stamp = {"language": "python", "code": STAMP}
        self.define("stamp", expected="", http=self.daemon.request("POST", "/v1/execute", stamp, Accept="text/event-stream",
                                                                   Connection="close"))
        for name in ("bare", "library", "http", "health"):
            self.driver.ask(do="round", jobs=[[name, 50000]] * 3)
        if self.driver.own_sandboxes():
            raise Wrong("library calls did not go to the pool")

    def define(self, job, **definition):
        self.driver.ask(do="define", job=job, port=self.daemon.port, **definition)

    def samples(self, name, count, rest_us):
        return [ns for _, ns, _ in self.driver.ask(do="round", jobs=[[name, rest_us]] * count)["samples"]]

    # --- parts ----------------------------------------------------------------------------------------

    def latency(self):
        """One client, sample by sample in turn with a bare process; then the same without a rest."""
        names, taken = ("bare", "http", "library"), {}
        for name in names:
            self.driver.ask(do="rate", job=name, threads=1, warm_up=0, seconds=self.options.warm_up)
        for row in stats.spread(names, self.options.samples, lambda _: self.options.samples, 1):
            for name, ns, _ in self.driver.ask(do="round", jobs=[[name, REST_US[name]] for name in row])["samples"]:
                taken.setdefault(name, []).append(ns)
        for name in ("http", "library"):
            taken[f"{name}, back to back"] = self.samples(name, self.options.samples, 0)
        self.report["latency"] = {name: stats.describe(ns) for name, ns in taken.items()}
        now = self.daemon.ask("/v1/stats")[1]["now"]
        self.report["warm"] = {name: now[name] for name in ("pool_hits", "pool_misses")}
        if now["pool_misses"] > now["pool_hits"]:
            self.say(f"latency: most runs were cold: {self.report['warm']}")

    def rate(self):
        """32 clients against 32 threads of the library, in turn."""
        sums = {}
        for _ in range(self.options.windows):
            for name in ("library", "http"):
                answer = self.driver.ask(do="rate", job=name, threads=32, warm_up=self.options.warm_up, seconds=self.options.seconds)
                runs, ns = sums.get(name, (0, 0))
                sums[name] = runs + answer["runs"], ns + answer["ns"]
                time.sleep(0.3)
        self.report["rate"] = {name: runs * 1e9 / ns for name, (runs, ns) in sums.items()}

    def overload(self):
        """As many clients as the daemon admits; then ten times the rate that they reached; then one again."""
        seconds = self.options.seconds * 2
        now = self.daemon.ask("/v1/stats")[1]["now"]
        admitted = 2 * now["running_max"]  # so many run, and as many may wait for their turn
        before = stats.describe(self.samples("http", 60, 5000)[10:])["p50"]
        loaded = self.driver.ask(do="offer", job="http", connections=admitted, rate=0, seconds=seconds)
        sustained = loaded["accepted"]["n"] * 1e9 / loaded["ns"]
        flood = self.driver.ask(do="offer", job="http", connections=self.options.connections, rate=10 * sustained, seconds=seconds)
        begin, p50s = time.monotonic(), []
        while True:
            p50 = stats.describe(self.samples("http", 10, 2000))["p50"]
            p50s.append(p50)
            recovery = time.monotonic() - begin
            if p50 <= 1.5 * before or recovery > 15:
                break
        self.report["overload"] = {
            "admitted": admitted, "sustained": sustained, "unloaded": in_ms(loaded["accepted"]),
            "offered": flood["sent"] * 1e9 / flood["ns"],
            "accepted": in_ms(flood["accepted"]), "refused": in_ms(flood["refused"]),
            **{k: flood[k] for k in ("missed", "lost", "other")}, "refused_unloaded": loaded["refused"]["n"],
            "p50_before": before, "p50_after": p50s, "recovery_s": recovery}
        if flood["lost"] or flood["other"]:
            self.say(f"overload: {flood['lost']} connections lost, {flood['other']} answers that are neither 200 nor 429")

    def output(self):
        """One program writes a lot; how much more memory the daemon's processes take at their peak. With and without a reader."""
        size = self.options.output_bytes
        code = WRITER.format(times=size >> 16)
        body = {"language": "python", "code": code, "limits": {"timeout": 100, "cpu_time": 100, "output_total": size}}
        self.report["output"] = {"bytes": size}
        for name, accept in (("kept", "application/json"), ("streamed", "text/event-stream")):
            pids = self.daemon.pids()
            before = {who: settle_peak(pid) for who, pid in pids.items()}
            begin = time.monotonic()
            read, tail = self.drain(body, accept)
            seconds = time.monotonic() - begin
            if self.daemon.pids() != pids:
                raise Wrong("a process of the daemon died")
            if b'"status":"success"' not in tail:
                raise Wrong(f"output: no success: {tail[-3000:].decode(errors='replace')}")
            grown = {who: (peak(pid) - before[who]) / MIB for who, pid in pids.items()}
            self.report["output"][name] = {"grown_mib": grown, "sum_mib": sum(grown.values()), "seconds": seconds, "read_bytes": read}

    def drain(self, body, accept):
        """Reads all of an answer: (bytes, the last of them)."""
        read, tail = 0, b""
        with self.daemon.connect(100) as sock:
            sock.sendall(self.daemon.request("POST", "/v1/execute", body, Accept=accept, Connection="close").encode())
            while data := sock.recv(1 << 20):
                read, tail = read + len(data), (tail + data)[-8192:]
        return read, tail

    def idle(self):
        """Connections that asked once and now say nothing; what /healthz takes beside them."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        socks, ask = [], self.daemon.request("GET", "/healthz").encode()
        try:
            for _ in range(self.options.idle_connections):
                sock = self.daemon.connect()
                sock.sendall(ask)
                if not sock.recv(4096).startswith(b"HTTP/1.1 200"):
                    raise Wrong("an idle connection was not served")
                socks.append(sock)
            row = {name: stats.describe(self.samples(name, self.options.samples, 1000)) for name in ("health", "health-fresh")}
            alive = sum(is_open(sock) for sock in socks)
        finally:
            for sock in socks:
                sock.close()
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        if alive != len(socks):
            raise Wrong(f"only {alive} of {len(socks)} idle connections were still open")
        self.report["idle"] = {"connections": alive, **row}

    def stream(self):
        """From the moment a program writes its first bytes until a client of its events has them."""
        self.driver.ask(do="first", job="stamp", count=10, rest=REST_US["http"])
        taken = self.driver.ask(do="first", job="stamp", count=self.options.samples, rest=REST_US["http"])["samples"]
        self.report["stream"] = stats.describe(taken)

    def history(self):
        """The store by itself, with ten thousand rows and with many."""
        self.report["history"] = history.compare(self.program.parent.parent, self.options.rows, self.bench.folder)

    # --- all of it ------------------------------------------------------------------------------------

    def part(self, name):
        """A part in a thread, so that one that hangs ends the run instead."""
        problem = []

        def work():
            try:
                getattr(self, name)()
            except Exception as p:
                problem.append(p)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        limit = max(1, min(LIMIT_S[name], self.deadline - time.monotonic()))
        thread.join(limit)
        if thread.is_alive():
            raise Late(f"{name} was not done after {limit:.0f} s")
        if problem:
            raise problem[0]

    def stop(self):
        """Ends all processes that were started, also in the middle of a part."""
        if self.driver:
            self.driver.process.kill()
            self.driver.process.wait()
        for thing in (self.daemon, self.pool):
            if thing:
                thing.stop()
        for pid in memory.descendants(os.getpid()) - {os.getpid()}:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.bench.close()


def in_ms(row):
    return {name: value if name == "n" else value / 1e6 for name, value in row.items()}


def is_open(sock):
    sock.setblocking(False)
    try:
        return sock.recv(1) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def status_field(pid, name):
    return memory.fields(pathlib.Path(f"/proc/{pid}/status").read_text())[name]


def settle_peak(pid):
    """Resident bytes now, and the peak is counted anew."""
    pathlib.Path(f"/proc/{pid}/clear_refs").write_text("5")
    return status_field(pid, "VmRSS")


def peak(pid):
    return status_field(pid, "VmHWM")


# what, how it is computed, the sign, the bar, unit
BARS = (
    ("POST /v1/execute, one client, p50 ÷ bare python3 print(1)",
     lambda r: r["latency"]["http"]["p50"] / r["latency"]["bare"]["p50"], "≤", 0.08, "×"),
    ("32 clients, runs/s ÷ the library's with 32 threads", lambda r: r["rate"]["http"] / r["rate"]["library"], "≥", 0.85, "×"),
    ("10 × overload: accepted p99 ÷ unloaded p99",
     lambda r: r["overload"]["accepted"]["p99"] / r["overload"]["unloaded"]["p99"], "≤", 2, "×"),
    ("10 × overload: 429 after, p99", lambda r: r["overload"]["refused"]["p99"], "≤", 50, "ms"),
    ("10 × overload: 429 after, slowest", lambda r: r["overload"]["refused"]["max"], "≤", 50, "ms"),
    ("10 × overload: was it ten times?", lambda r: r["overload"]["offered"] / r["overload"]["sustained"], "≥", 9, "×"),
    ("10 × overload: p50 of one client within 1.5 × again after", lambda r: r["overload"]["recovery_s"], "≤", 5, "s"),
    ("1 GiB of output kept, growth of resident memory", lambda r: full_output(r)["kept"]["sum_mib"], "≤", 32, "MiB"),
    ("1 GiB of output kept and streamed, the same", lambda r: full_output(r)["streamed"]["sum_mib"], "≤", 32, "MiB"),
    ("2,000 idle connections: /healthz, p99", lambda r: all_idle(r)["health"]["p99"], "≤", 50, "ms"),
    ("  the same over new connections", lambda r: all_idle(r)["health-fresh"]["p99"], "≤", 50, "ms"),
    ("first byte of output at an SSE client, p50", lambda r: r["stream"]["p50"], "≤", 1, "ms"),
)


def full_output(report):
    if report["output"]["bytes"] < GIB:
        raise KeyError("output")
    return report["output"]


def all_idle(report):
    if report["idle"]["connections"] < 2000:
        raise KeyError("idle")
    return report["idle"]


def judge(report):
    rows = stats.judge(report, BARS)
    return rows + judge_history(report["history"]) if "history" in report else rows


def judge_history(report):
    """Writes and pages without words by the ratio, the rest by a bound."""
    full = report["rows"] >= 1_000_000
    lines = [(name, "1,000,000 rows ÷ 10,000, p50", "×", row["ratio"], history.BAR) for name, row in report["costs"].items()]
    lines += [(name, "1,000,000 rows, p50", "µs", report["shown"][name]["large"], bound) for name, bound in history.BOUNDED.items()]
    return [{"what": f"history, {name.replace('_', ' ')}: {how}", "unit": unit, "measured": value if full else None, "sign": "≤",
             "bar": bar, "met": value <= bar if full else None} for name, how, unit, value, bar in lines]


def print_report(report):
    if "latency" in report:
        print("\nPython: print(1) (milliseconds)")
        rows = [(name, row, {}) for name, row in report["latency"].items()]
        print_lines(stats.latency_table(rows, report["latency"]["bare"]["p50"]))
    if "rate" in report:
        print("\nRuns a second at 32: " + ", ".join(f"{name} {stats.number(value)}" for name, value in report["rate"].items()))
    if "overload" in report:
        print_overload(report["overload"])
    if "output" in report:
        print(f"\n{report['output']['bytes'] / GIB:.2f} GiB of output, growth of resident memory (MiB)")
        rows = [["", "monitor", "broker", "front", "seconds"]]
        for name, row in report["output"].items():
            if name == "bytes":
                continue
            rows.append([name, *(f"{row['grown_mib'][who]:.1f}" for who in rows[0][1:4]), f"{row['seconds']:.1f}"])
        print_lines(stats.columns(rows, right=range(1, 5)))
    if "idle" in report:
        print(f"\nGET /healthz beside {report['idle']['connections']:,} idle connections (milliseconds)")
        rows = [("kept alive", report["idle"]["health"], {}), ("new connections", report["idle"]["health-fresh"], {})]
        print_lines(stats.latency_table(rows, None))
    if "stream" in report:
        print("\nFrom a program's write to an SSE client (milliseconds)")
        print_lines(stats.latency_table([("first byte", report["stream"], {})], None))
    if "history" in report:
        print()
        print_lines(history.table(report["history"]))
    print()
    print("\n".join(stats.bars_table(report["bars"])))


def print_overload(row):
    print(f"\nOverload: {stats.number(row['offered'])} requests a second offered, {row['admitted']} admitted at once (milliseconds)")
    lines = [["", "p50", "p99", "max", "n"]]
    for title, part in ((f"unloaded: {row['admitted']} clients", "unloaded"), ("accepted", "accepted"), ("refused with 429", "refused")):
        part = row[part]
        lines.append([title, *(stats.milliseconds(part.get(cut)) for cut in ("p50", "p99", "max")), f"{part['n']:,}"])
    print_lines(stats.columns(lines, right=range(1, 5)))
    print(f"  not sent because no connection was free: {row['missed']}; lost: {row['lost']}; other answers: {row['other']}")


def print_lines(lines):
    for line in lines:
        print("  " + line)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few samples, to see that everything runs")
    parser.add_argument("--parts", type=lambda text: text.split(","), default=list(PARTS), help=",".join(PARTS))
    parser.add_argument("--atoll", type=pathlib.Path, default=ROOT / "build" / "atoll")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build-results")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(unknown))}")
    settings = {"samples": 300, "warm_up": 1, "seconds": 3, "windows": 4, "connections": 512, "output_bytes": GIB,
                "idle_connections": 2000, "rows": 1_000_000}
    if options.quick:
        settings = {"samples": 20, "warm_up": 0.2, "seconds": 0.5, "windows": 1, "connections": 256, "output_bytes": 64 * MIB,
                    "idle_connections": 200, "rows": 20_000}
    vars(options).update(settings)
    return options


def main():
    options = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    run = Run(options)
    status = conduct(run, [part for part in PARTS if part in options.parts], run.part)
    run.report["bars"] = judge(run.report)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "http.json").write_text(json.dumps(run.report, indent=2, ensure_ascii=False, default=str) + "\n")
    print_report(run.report)
    if status:
        run.say(f"stopped: {run.report['stopped']}")
    sys.stdout.flush()
    # If a part hangs, its thread still runs: os._exit() ends it, too.
    os._exit(status)


if __name__ == "__main__":
    main()
