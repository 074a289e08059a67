#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Cold start of the whole command line against bubblewrap with the equivalent namespaces.

Both run `bash -c :` in fresh user, mount, pid, ipc, uts, net and cgroup namespaces over the host's /usr.
Atoll also sets up cgroups, Landlock, the seccomp filter and an init. The runs are interleaved, once back
to back and once with idle gaps (which is when kernels are slow). Writes bench/out/cold.json.

  bench/cold.py [--pairs 200] [--atoll build/atoll] [--max-ratio 0.95]
"""

import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
GAPS_MS = (0, 30)
WARM_UP = 5


def bubblewrap():
    binds = ["--ro-bind", "/usr", "/usr"]
    for name in ("bin", "lib", "lib64", "sbin"):
        binds += ["--symlink", f"usr/{name}", f"/{name}"]
    return [shutil.which("bwrap"), "--unshare-all", *binds, "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp",
            "--dir", "/sandbox", "--chdir", "/sandbox", "--die-with-parent", "--new-session", "/usr/bin/bash", "-c", ":"]


def compile_timer(folder):
    timer = pathlib.Path(folder) / "spawn-timer"
    subprocess.run(["gcc", "-O2", "-o", timer, HERE / "spawn-timer.c"], check=True)
    return timer


def measure(timer, pairs, gap_ms, ours, theirs):
    command = [timer, str(pairs + WARM_UP), str(gap_ms), *ours, "--", *theirs]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    rows = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    return list(zip(*rows[WARM_UP:]))


def describe(values):
    cuts = statistics.quantiles(values, n=20)
    return {"p50_ms": statistics.median(values) / 1e6, "p95_ms": cuts[18] / 1e6, "min_ms": min(values) / 1e6}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--atoll", default=str(HERE.parent / "build" / "atoll"))
    parser.add_argument("--max-ratio", type=float, help="exit with 1 when a p50 ratio is above this")
    options = parser.parse_args()
    ours = [options.atoll, "run", "-l", "bash", "-c", ":"]
    report = {}
    print(f"{'':14}{'atoll p50':>12}{'p95':>8}{'bwrap p50':>12}{'p95':>8}{'ratio':>8}   (ms, {options.pairs} pairs)")
    with tempfile.TemporaryDirectory() as folder:
        timer = compile_timer(folder)
        for gap in GAPS_MS:
            a, b = map(describe, measure(timer, options.pairs, gap, ours, bubblewrap()))
            ratio = a["p50_ms"] / b["p50_ms"]
            name = f"gap {gap} ms" if gap else "back to back"
            report[name] = {"atoll": a, "bubblewrap": b, "ratio": ratio}
            print(f"{name:14}{a['p50_ms']:12.2f}{a['p95_ms']:8.2f}{b['p50_ms']:12.2f}{b['p95_ms']:8.2f}{ratio:8.2f}")
    (HERE / "out").mkdir(exist_ok=True)
    (HERE / "out" / "cold.json").write_text(json.dumps({"pairs": options.pairs, "runs": report}, indent=2) + "\n")
    worst = max(row["ratio"] for row in report.values())
    return 1 if options.max_ratio and worst > options.max_ratio else 0


if __name__ == "__main__":
    sys.exit(main())
