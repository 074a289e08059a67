#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Atoll beside what it is compared with, in one interleaved run.

  bench/bench.py [--quick] [--samples 300] [--workloads python,bash] [--methods bare,warm] [--phases latency,rate]
                 [--before COMMIT]

Prints tables and the bars, writes build-results/bench.json, bench.svg and bench-three.svg; a full run also writes the pictures to doc/.
bench/README.md says how it measures. bench-drive does the timing, this decides what comes next.
"""

import argparse
import json
import os
import pathlib
import platform
import signal
import subprocess
import sys
import time

import memory
import peers
import picture
import stats
from dockerd import Unavailable, reap

ROOT = peers.ROOT
PHASES = ("latency", "rate", "cost", "live", "memory")
# Bars of the daemon, by programs of their own.
PROGRAMS = {"http": "serve.py", "judge": "judge.py", "starve": "starve.py"}
LEVELS = (2, 8, 32)  # concurrency
# Sleeps, and has a library mapped that nothing else loads: by that its sandbox is found among the spares.
SLEEPER_CODE = "import _crypt, time\nprint(1, flush=True)\ntime.sleep(280)"
SLEEPER_MARK = "/_crypt."
SLEEPER = {"language": "python", "code": SLEEPER_CODE, "limits": {"timeout": 290}}
# Two seconds and more a sample: fewer, and the table says how many.
FEWER = {("runsc", "pandas"): 60, ("runsc", "node"): 100, ("runsc", "bash"): 100, ("runsc", "c"): 100}
# Runs per second are measured for every workload only where that is cheap.
CHEAP = ("python", "bash")
BARRED = {("python", 8), ("bash", 8)}  # ratios that are held against a bar: more windows
# What a run costs when no pause follows it: of these workloads, at these levels.
COSTED, COST_LEVELS = ("python", "ready", "bash"), (1, 8)


class Wrong(Exception):
    """A sample that is not what it must be."""


class Driver:
    """A bench-drive process."""

    def __init__(self, bench, program, pool=""):
        self.process = subprocess.Popen([str(program), str(ROOT), str(pool)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, env=bench.environment())

    def ask(self, **command):
        try:
            self.process.stdin.write(json.dumps(command) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise Wrong(f"bench-drive ended during {command['do']}")
        answer = json.loads(line)
        if "wrong" in answer:
            raise Wrong(answer["wrong"])
        return answer

    def own_sandboxes(self):
        """A driver whose calls reach the pool has no children: a broker of its own would be one."""
        return memory.descendants(self.process.pid) - {self.process.pid}

    def close(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        reap(self.process, 60)


class Run:
    """One whole benchmark: what takes part, the settings, and the report as it grows."""

    def __init__(self, options):
        self.options = options
        self.bench = peers.Bench(options.atoll, options.before)
        wanted = options.methods
        self.methods = [m for m in peers.methods(self.bench) if not wanted or m.name in wanted or
                        (m.name == "docker-run" and "docker-exec" in wanted)]
        self.workloads = [w for w in peers.WORKLOADS if not options.workloads or w.name in options.workloads]
        self.ready, self.driver, self.jobs = [], None, {}
        self.report = {"machine": machine(), "options": {k: v for k, v in vars(options).items() if k != "atoll"},
                       "methods": {}, "latency": {}, "rate": {}, "cost": {}, "live": {}, "memory": {}}

    def say(self, words):
        print(f"bench: {words}", file=sys.stderr, flush=True)

    def start(self):
        """Starts every method; one that cannot is left out with its reason."""
        for method in self.methods:
            try:
                version = method.start()
                self.ready.append(method)
                self.report["methods"][method.name] = {"title": method.title, "version": version}
            except (Unavailable, OSError) as problem:
                self.leave_out(method, problem)
        warm = self.method("warm")
        self.driver = Driver(self.bench, self.program(), warm.pool.socket if warm else "")
        for method in list(self.ready):
            try:
                self.define(method)
            except Wrong as problem:
                if method.kind != "peer":
                    raise
                self.leave_out(method, problem)
        for method in self.ready:
            if method.kind in ("cold", "warm"):
                self.check_memory(method)
        if warm and self.driver.own_sandboxes():
            raise Wrong("library calls did not go to the pool")

    def define(self, method):
        """Tells the driver about a method's jobs and tries each once: the first compiles and fills caches."""
        for workload in self.workloads:
            if method.name not in (workload.methods or [method.name]) or workload.name not in (method.only or [workload.name]):
                continue
            name = f"{workload.name}/{method.name}"
            self.driver.ask(do="define", job=name, expected=workload.expected, **method.job(workload))
            self.driver.ask(do="round", jobs=[[name, method.rest_us]])
            self.jobs[name] = (workload, method)

    def check_memory(self, method):
        """The method must report the peak of a program that takes 40 MiB, not a constant or another process's peak."""
        job = {**method.job(peers.HUNGRY), "memory_min": peers.HUNGRY_BYTES, "memory_max": 2 * peers.HUNGRY_BYTES}
        self.driver.ask(do="define", job=f"hungry/{method.name}", expected=peers.HUNGRY.expected, **job)
        self.driver.ask(do="round", jobs=[[f"hungry/{method.name}", 0]] * 3)

    def leave_out(self, method, problem):
        self.say(f"without {method.title}: {problem}")
        self.report["methods"][method.name] = {"title": method.title, "reason": str(problem)}
        self.ready = [m for m in self.ready if m is not method]
        self.jobs = {name: pair for name, pair in self.jobs.items() if pair[1] is not method}

    def program(self):
        return self.bench.atoll.parent / "bench" / "bench-drive"

    def method(self, name):
        return next((m for m in self.ready if m.name == name), None)

    def latency(self):
        """All methods and workloads in turn, sample by sample, each round in another order."""
        options = self.options

        def wanted(name):
            workload, method = self.jobs[name]
            fewer = FEWER.get((method.name, workload.name), options.samples)
            return min(options.samples, fewer, options.slow_samples if method.rest_us >= 5000 and
                       method.kind == "peer" else options.samples)

        self.warm_up()
        taken = {name: [] for name in self.jobs}
        begin = time.monotonic()
        for number, row in enumerate(stats.spread(list(self.jobs), options.samples, wanted, options.seed)):
            jobs = [[name, self.jobs[name][1].rest_us] for name in row]
            for name, ns, peak in self.driver.ask(do="round", jobs=jobs)["samples"]:
                taken[name].append((ns, peak))
            if number % 20 == 4:
                left = (time.monotonic() - begin) / (number + 1) * (options.samples - number - 1)
                self.say(f"latency: round {number + 1} of {options.samples}, about {left / 60:.0f} min left")
        for name, samples in taken.items():
            workload, method = self.jobs[name]
            row = stats.describe([ns for ns, _ in samples])
            if method.kind in ("cold", "warm"):
                row["memory_peak_mib"] = stats.quantile(sorted(peak for _, peak in samples), 0.5) / 2**20
            self.report["latency"].setdefault(workload.name, {})[method.name] = row

    def warm_up(self):
        """A second of each workload's cheap methods, so that caches, clocks and pools are as in daily work."""
        for name, (_, method) in self.jobs.items():
            if method.all_rates:
                self.driver.ask(do="rate", job=name, threads=1, warm_up=0, seconds=self.options.warm_up)

    def rate(self):
        """Windows of a few seconds, one method after the other, several times over."""
        options, sums = self.options, {}
        for window in range(options.windows):
            for name, (workload, method) in self.jobs.items():
                for level in LEVELS:
                    if window and (workload.name, level) not in BARRED:
                        continue
                    if method.name == "before" or not (method.all_rates or workload.name in CHEAP):
                        continue
                    answer = self.driver.ask(do="rate", job=name, threads=level, warm_up=options.warm_up,
                                             seconds=options.seconds)
                    runs, ns = sums.get((name, level), (0, 0))
                    sums[name, level] = runs + answer["runs"], ns + answer["ns"]
                    time.sleep(0.3 if method.kind != "bare" else 0)
            self.say(f"rate: pass {window + 1} of {options.windows}")
        for (name, level), (runs, ns) in sums.items():
            workload, method = self.jobs[name]
            rates = self.report["rate"].setdefault(workload.name, {}).setdefault(method.name, {})
            rates[str(level)] = runs * 1e9 / ns

    def cost(self):
        """Runs without pauses, of bare processes and Atoll in turn: p50 of one caller; CPU and page faults of a run."""
        options, taken, spent = self.options, {}, {}
        jobs = {name: pair for name, pair in self.jobs.items() if pair[1].name in ("bare", "warm") and pair[0].name in COSTED}
        for window in range(options.windows):
            for name in jobs:
                samples = self.driver.ask(do="round", jobs=[[name, 0]] * (options.back_to_back + 30))["samples"][30:]
                taken.setdefault(name, []).extend(ns for _, ns, _ in samples)
                for level in COST_LEVELS:
                    spent.setdefault((name, level), []).append(self.spend(name, level))
            self.say(f"cost: pass {window + 1} of {options.windows}")
        for name, (workload, method) in jobs.items():
            rows = {str(level): stats.per_run(spent[name, level]) for level in COST_LEVELS}
            self.report["cost"].setdefault(workload.name, {})[method.name] = {**stats.describe(taken[name]), "levels": rows}

    def spend(self, name, level):
        """(runs, seconds of CPU, page faults) of a window."""
        self.driver.ask(do="rate", job=name, threads=level, warm_up=0, seconds=self.options.warm_up)
        before = memory.spent()
        runs = self.driver.ask(do="rate", job=name, threads=level, warm_up=0, seconds=self.options.seconds)["runs"]
        after = memory.spent()
        return (runs, *(b - a for a, b in zip(before, after)))

    def live(self):
        """A warm call beside 1, 100 and 1,000 sandboxes whose programs sleep; in turn, several times."""
        if "python/warm" not in self.jobs:
            return
        options, taken = self.options, {}
        for block in range(options.blocks):
            for count in options.live:
                self.driver.ask(do="idle", request=json.dumps(SLEEPER), count=count)
                time.sleep(2)
                jobs = [["python/warm", 5000]] * (options.samples // options.blocks + 10)
                samples = self.driver.ask(do="round", jobs=jobs)["samples"][10:]
                taken.setdefault(count, []).extend(ns for _, ns, _ in samples)
                self.driver.ask(do="release")
                time.sleep(1)
                self.say(f"live: block {block + 1} of {options.blocks}, {count} done")
        self.report["live"] = {str(count): stats.describe(ns) for count, ns in taken.items()}

    def memory(self):
        """What a parked spare and a running sandbox take."""
        if self.method("warm"):
            spare = measure_spares(self)
            self.report["memory"]["spare"] = spare
        running = self.report["memory"].setdefault("running", {})
        for method in self.ready:
            if method.name not in ("bare-env", "docker-exec", "before", "warm"):
                running[method.name] = measure_running(method)
                self.say(f"memory: {method.title}")
        if self.method("warm"):
            running["warm"] = self.measure_warm()

    def measure_warm(self):
        pool = self.method("warm").pool.process.pid
        self.driver.ask(do="idle", request=json.dumps(SLEEPER), count=self.options.sleepers)
        time.sleep(2)
        row = per_sandbox([memory.total(pids) for pids in memory.cells(pool, SLEEPER_MARK)])
        self.driver.ask(do="release")
        if row["n"] != self.options.sleepers:
            raise Wrong(f"found {row['n']} of {self.options.sleepers} sleeping sandboxes")
        return row

    def stop(self):
        """Ends all that was started, also when one of them does not want to."""
        ends = [self.driver.close] if self.driver else []
        for end in [*ends, *(method.stop for method in reversed(self.methods)), self.bench.close]:
            try:
                end()
            except (OSError, Unavailable) as problem:
                self.say(f"cleaning up: {problem}")


def machine():
    info = memory.fields(pathlib.Path("/proc/meminfo").read_text())
    model = [line.partition(":")[2].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
             if line.startswith("model name")]
    return {"kernel": platform.release(), "cpus": os.cpu_count(), "cpu": model[0] if model else "",
            "memory_gib": round(info["MemTotal"] / 2**30, 1), "date": time.strftime("%Y-%m-%d", time.gmtime()),
            "load_before": os.getloadavg()[0]}


# --- memory -------------------------------------------------------------------------------------------

def per_sandbox(totals):
    """Medians in MiB."""
    row = {"n": len(totals)}
    for name in ("private_dirty", "pss"):
        row[f"{name}_mib"] = stats.quantile(sorted(t[name] for t in totals), 0.5) / 2**20 if totals else None
    return row


def measure_running(method, count=3):
    """Some sandboxes whose program sleeps: all processes that are there for the sake of one of them."""
    sleeper = peers.Workload("sleeper", "", "python", SLEEPER_CODE, ("/usr/bin/python3", "-c", SLEEPER_CODE), "")
    command = [word for word in method.job(sleeper)["argv"] if word != "--json"]
    started = [subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                env=method.bench.environment()) for _ in range(count)]
    try:
        for process in started:
            if process.stdout.readline() != b"1\n":
                raise Wrong(f"{method.title}: the sleeping program did not start")
        time.sleep(0.5)
        return per_sandbox([memory.total(pids) for pids in method.processes([p.pid for p in started])])
    finally:
        method.end(started)


def parked(pool, wanted, seconds=30):
    """The parked numpy+pandas spares, once there are as many as wanted and all have warmed up."""
    last, deadline = [], time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = memory.cells(pool.process.pid, "/pandas/")
        if len(found) == len(last) >= wanted:
            return found
        last = found
        time.sleep(1)
    raise Wrong(f"{len(last)} numpy+pandas spares after {seconds} s, not {wanted}")


def park(run, count):
    """A pool that keeps so many spares ready is asked by many at once until it does: (their memory, the kernel's)."""
    pandas = next(w for w in peers.WORKLOADS if w.name == "pandas")
    pool = peers.Pool(run.bench, f"spares-{count}", ("--memory", "12g", "--spares", str(count)))
    driver = None
    try:
        pool.await_ready()
        driver = Driver(run.bench, run.program(), pool.socket)
        driver.ask(do="define", job="pandas", expected=pandas.expected, **run.method("warm").job(pandas))
        driver.ask(do="round", jobs=[["pandas", 500000]] * 3)
        driver.ask(do="rate", job="pandas", threads=32, warm_up=0, seconds=run.options.burst)
        cells = parked(pool, count)
        return [memory.total(pids) for pids in cells], memory.kernel_settled()
    finally:
        if driver:
            driver.close()
        pool.stop()


def measure_spares(run):
    """Processes say what is private and shared; the kernel's own is the difference between few spares and many."""
    few, kernel_few = park(run, 4)
    many, kernel_many = park(run, run.options.spares)
    more = len(many) - len(few)
    parts = {name: (kernel_many[name] - kernel_few[name]) / more / 2**20 for name in kernel_many}
    return {**per_sandbox(many), "kernel_mib": sum(parts.values()) - parts["PageTables"],
            "page_tables_mib": parts["PageTables"], "kernel_parts_mib": parts}


# --- the report ---------------------------------------------------------------------------------------

def print_report(run):
    report, titles = run.report, {m.name: m.title for m in run.methods}
    for workload in run.workloads:
        found = report["latency"].get(workload.name, {})
        if not found:
            continue
        rates = report["rate"].get(workload.name, {})
        rows = [(titles[name], row, {int(k): v for k, v in rates.get(name, {}).items()}) for name, row in found.items()]
        bare = found.get("bare", {}).get("p50")
        print(f"\n{workload.title} (milliseconds)")
        for line in stats.latency_table(rows, bare):
            print("  " + line)
    print_cost(run, titles)
    print_live(report)
    print_memory(report, titles)
    missing = {m["title"]: m["reason"] for m in report["methods"].values() if "reason" in m}
    for title, reason in missing.items():
        print(f"\n{title} did not run: {reason}")
    print()
    for line in stats.bars_table(report["bars"]):
        print(line)


def print_cost(run, titles):
    for workload in run.workloads:
        found = run.report["cost"].get(workload.name, {})
        if found:
            print(f"\n{workload.title}, back to back: p50 of one caller in milliseconds; CPU and page faults of a run")
            for line in stats.cost_table([(titles[name], row) for name, row in found.items()], found.get("bare", {}).get("p50")):
                print("  " + line)


def print_live(report):
    if report["live"]:
        print("\nPython warm beside live idle sandboxes (milliseconds)")
        rows = [(f"{int(count):,} live", row, {}) for count, row in report["live"].items()]
        for line in stats.latency_table(rows, None):
            print("  " + line)


def print_memory(report, titles):
    found = report["memory"]
    rows = [["MiB", "Private_Dirty", "PSS", "kernel", "page tables", "n"]]
    if "spare" in found:
        rows.append(["parked numpy+pandas spare", found["spare"]])
    rows += [[f"running, Python asleep: {titles[name]}", row] for name, row in found.get("running", {}).items()]
    if len(rows) == 1:
        return
    lines = [rows[0]] + [[title, stats.number(row["private_dirty_mib"], 2), stats.number(row["pss_mib"], 2),
                          stats.number(row.get("kernel_mib"), 2), stats.number(row.get("page_tables_mib"), 2),
                          str(row["n"])] for title, row in rows[1:]]
    print("\nMemory of one sandbox")
    for line in stats.columns(lines, right=range(1, 6)):
        print("  " + line)


def draw(run):
    """The picture of everything that was measured one at a time."""
    groups = []
    for workload in (w for w in run.workloads if not w.methods):
        found = run.report["latency"].get(workload.name, {})
        rows = [{"title": m.title, "kind": m.kind, "latency": found[m.name]} for m in run.methods
                if m.name in found and m.name != "before"]
        if rows:
            groups.append((workload.title, rows))
    if not groups:
        return None
    return picture.draw(groups, subtitle(run, [row for _, rows in groups for row in rows]))


def subtitle(run, rows):
    host = run.report["machine"]
    least = min(row["latency"]["n"] for row in rows)
    return f"{host['cpus']} cores, Linux {host['kernel']}, {host['date']}; interleaved, at least {least} samples each"


def draw_three(run):
    """The picture of README.md: `print(1)` in a container, without a sandbox, and warm."""
    found = run.report["latency"].get("python", {})
    rows = [{"title": m.title, "kind": m.kind, "latency": found[m.name]}
            for name in ("docker-run", "bare", "warm") for m in run.methods if m.name == name and name in found]
    return picture.draw_three(rows, subtitle(run, rows)) if len(rows) == 3 else None


def write_results(run):
    run.options.out.mkdir(parents=True, exist_ok=True)
    (run.options.out / "bench.json").write_text(json.dumps(run.report, indent=2, ensure_ascii=False, default=str) + "\n")
    for name, drawing in (("bench.svg", draw(run)), ("bench-three.svg", draw_three(run))):
        if drawing:
            (run.options.out / name).write_text(drawing)
            if run.options.full and "stopped" not in run.report:
                (ROOT / "doc" / name).write_text(drawing)


def parse_arguments():
    def words(text):
        return text.split(",")

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few samples, to see that everything runs")
    parser.add_argument("--samples", type=int, default=300)
    parser.add_argument("--workloads", type=words, default=[], help=",".join(w.name for w in peers.WORKLOADS))
    parser.add_argument("--methods", type=words, default=[],
                        help="bare,bubblewrap,firejail,docker-run,docker-exec,runsc,cold,warm")
    parser.add_argument("--phases", type=words, default=[*PHASES, *PROGRAMS], help=",".join([*PHASES, *PROGRAMS]))
    parser.add_argument("--before", metavar="COMMIT", help="also the cold path of that commit, built here")
    parser.add_argument("--atoll", type=pathlib.Path, default=ROOT / "build" / "atoll")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build-results")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.full = not (options.quick or options.workloads or options.methods or options.samples < 300 or
                        "latency" not in options.phases)
    settings = {"slow_samples": options.samples, "warm_up": 1, "seconds": 2, "windows": 3, "blocks": 3, "back_to_back": 200,
                "live": (1, 100, 1000), "sleepers": 100, "spares": 100, "burst": 6}
    if options.quick:
        settings = {"slow_samples": 3, "warm_up": 0.2, "seconds": 0.5, "windows": 1, "blocks": 1, "back_to_back": 20,
                    "live": (1, 10, 50), "sleepers": 10, "spares": 24, "burst": 3}
        options.samples = min(options.samples, 12)
    vars(options).update(settings)
    return options


def run_program(name, options):
    words = ["--atoll", str(options.atoll), "--out", str(options.out), *(["--quick"] if options.quick else [])]
    return subprocess.run([sys.executable, str(ROOT / "bench" / PROGRAMS[name]), *words]).returncode


def conduct(run, parts, do):
    """Starts the run, does its parts one after the other, and stops it; the exit status. What stopped it early is in its report."""
    status = 0
    try:
        run.start()
        for part in parts:
            run.say(part)
            do(part)
    except (Wrong, OSError, Unavailable) as problem:
        run.report["stopped"] = str(problem)
        status = 1
    except KeyboardInterrupt:
        run.report["stopped"] = "interrupted"
        status = 130
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        run.stop()
    return status


def run_phases(options):
    run = Run(options)
    status = conduct(run, [phase for phase in PHASES if phase in options.phases], lambda phase: getattr(run, phase)())
    run.report["bars"] = stats.judge(run.report)
    write_results(run)
    print_report(run)
    if status:
        run.say(f"stopped: {run.report['stopped']}")
    return status


def main():
    options = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    status = run_phases(options) if set(options.phases) & set(PHASES) else 0
    for name in PROGRAMS:
        if name in options.phases and not status:
            status = run_program(name, options)
    return status


if __name__ == "__main__":
    sys.exit(main())
