# SPDX-License-Identifier: Apache-2.0
"""Numbers out of samples, tables out of numbers, and the bars that the numbers are held against."""

import math
import random

CUTS = {"p25": 0.25, "p50": 0.5, "p75": 0.75, "p90": 0.9, "p99": 0.99}


def quantile(ordered, q):
    """The value that a share q of a sorted list lies below; between two neighbours in proportion."""
    if not ordered:
        raise ValueError("no samples")
    position = q * (len(ordered) - 1)
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


def describe(nanoseconds):
    """Milliseconds: smallest, quartiles, p90 and p99 of durations in nanoseconds."""
    ordered = sorted(nanoseconds)
    row = {name: quantile(ordered, q) / 1e6 for name, q in CUTS.items()}
    return {"n": len(ordered), "min": ordered[0] / 1e6, **row}


def spread(jobs, rounds, wanted, seed):
    """
    `rounds` lists of jobs, each in another random order: each job runs next to a noisy one as rarely as all others.
    If a job wants fewer samples than there are rounds, they are spread evenly.
    """
    shuffle = random.Random(seed)
    plan = []
    for number in range(rounds):
        row = [job for job in jobs
               if (number + 1) * wanted(job) // rounds > number * wanted(job) // rounds]
        shuffle.shuffle(row)
        plan.append(row)
    return plan


def milliseconds(value):
    """Three digits that matter: 0.123, 1.23, 12.3, 123, 1,234."""
    if value is None:
        return "–"
    digits = 3 if value < 1 else 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:,.{digits}f}"


def number(value, digits=1):
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.{digits}f}"


def columns(rows, right=()):
    """Rows of text as aligned lines; columns in `right` are pushed to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        cells = [cell.rjust(width) if i in right else cell.ljust(width)
                 for i, (cell, width) in enumerate(zip(row, widths))]
        yield "  ".join(cells).rstrip()


def latency_table(rows, bare):
    """rows: (title, description, {concurrency: runs a second}); bare: the p50 that all rows are compared with."""
    levels = sorted({level for _, _, rates in rows for level in rates})
    text = [["", "p50", "p25–p75", "p90", "p99", "× bare", "n", *(f"runs/s at {level}" for level in levels)]]
    for title, d, rates in rows:
        text.append([title, milliseconds(d["p50"]), f"{milliseconds(d['p25'])}–{milliseconds(d['p75'])}",
                     milliseconds(d["p90"]), milliseconds(d["p99"]),
                     f"{d['p50'] / bare:.3g}" if bare else "–", str(d["n"]),
                     *(number(rates.get(level)) for level in levels)])
    return columns(text, right=range(1, len(text[0])))


def per_run(windows):
    """windows: (runs, seconds of CPU, page faults); what one run took of both, in milliseconds and faults."""
    runs, seconds, faults = (sum(column) for column in zip(*windows))
    return {"runs": runs, "cpu_ms": seconds * 1e3 / runs, "faults": faults / runs}


def cost_table(rows, bare):
    """rows: (title, {"p50": ms, "levels": {concurrency: per_run()}}); bare: the p50 that all rows are compared with."""
    levels = sorted({level for _, row in rows for level in row["levels"]}, key=int)
    heads = [f"{what} at {level}" for level in levels for what in ("CPU ms", "faults")]
    text = [["", "p50", "p90", "× bare", *heads]]
    for title, row in rows:
        cells = [cell for level in levels for cell in (milliseconds(row["levels"][level]["cpu_ms"]),
                                                       f"{row['levels'][level]['faults']:,.0f}")]
        text.append([title, milliseconds(row["p50"]), milliseconds(row["p90"]), f"{row['p50'] / bare:.3g}" if bare else "–", *cells])
    return columns(text, right=range(1, len(text[0])))


# --- bars ---------------------------------------------------------------------------------------------

def _p50(report, workload, method):
    return report["latency"][workload][method]["p50"]


def _ratio_p50(workload, method, other_workload, other):
    return lambda report: _p50(report, workload, method) / _p50(report, other_workload, other)


def _ratio_rate(workload, level):
    return lambda report: report["rate"][workload]["warm"][level] / report["rate"][workload]["bare"][level]


def _ratio_busy(workload):
    return lambda report: report["cost"][workload]["warm"]["p50"] / report["cost"][workload]["bare"]["p50"]


def _live(report):
    counts = sorted(report["live"], key=int)
    if not counts or int(counts[-1]) < 1000:
        raise KeyError("live")
    return report["live"][counts[-1]]["p50"] / report["live"][counts[0]]["p50"]


def _cold(workload):
    return lambda report: _p50(report, workload, "cold") / _p50(report, workload, "before")


# what, how it is computed, the sign, the bar, unit
BARS = (
    ("numpy+pandas ready, print(1), p50 ÷ bare python3 print(1)", _ratio_p50("ready", "warm", "python", "bare"), "≤", 0.05, "×"),
    ("  a sum of numpy's instead ÷ bare python3 print(1)", _ratio_p50("pandas", "warm", "python", "bare"), "≤", 0.05, "×"),
    ("numpy+pandas ready, print(1), p50 ÷ docker run print(1)", _ratio_p50("ready", "warm", "python", "docker-run"), "≤", 0.003, "×"),
    ("  a sum of numpy's instead ÷ docker run print(1)", _ratio_p50("pandas", "warm", "python", "docker-run"), "≤", 0.003, "×"),
    ("Python warm, runs/s at 8 ÷ bare", _ratio_rate("python", "8"), "≥", 2.5, "×"),
    ("Bash warm, runs/s at 8 ÷ bare", _ratio_rate("bash", "8"), "≥", 0.45, "×"),
    ("Python warm, back to back, p50 ÷ bare", _ratio_busy("python"), "≤", 0.17, "×"),
    ("Node warm, p50 ÷ bare node -e 1", _ratio_p50("node", "warm", "node", "bare"), "≤", 0.05, "×"),
    ("  the same, bare with the caller's environment", _ratio_p50("node", "warm", "node", "bare-env"), "≤", 0.05, "×"),
    ("parked numpy+pandas spare, Private_Dirty", lambda r: r["memory"]["spare"]["private_dirty_mib"], "≤", 6, "MiB"),
    ("parked numpy+pandas spare, kernel memory of its cell", lambda r: r["memory"]["spare"]["kernel_mib"], "≤", 0.5,
     "MiB"),
    ("  the same with its processes' page tables",
     lambda r: r["memory"]["spare"]["kernel_mib"] + r["memory"]["spare"]["page_tables_mib"], "≤", 0.5, "MiB"),
    ("Python warm, p50 with 1,000 live ÷ with 1", _live, "≤", 1.5, "×"),
    ("Python cold, p50 ÷ before (3 % is noise)", _cold("python"), "≤", 1.03, "×"),
    ("Bash cold, p50 ÷ before (3 % is noise)", _cold("bash"), "≤", 1.03, "×"),
)


def judge(report, bars=BARS):
    """One row a bar; measured and met are None where this run did not measure it."""
    rows = []
    for what, compute, sign, bar, unit in bars:
        try:
            value = compute(report)
        except (KeyError, TypeError, ZeroDivisionError):
            value = None
        met = None if value is None else value <= bar if sign == "≤" else value >= bar
        rows.append({"what": what, "measured": value, "sign": sign, "bar": bar, "unit": unit, "met": met})
    return rows


def bars_table(rows):
    text = [["bar", "measured", "must be", ""]]
    for row in rows:
        measured = "not measured" if row["measured"] is None else f"{row['measured']:.3g} {row['unit']}"
        verdict = {None: "", True: "met", False: "NOT MET"}[row["met"]]
        text.append([row["what"], measured, f"{row['sign']} {row['bar']} {row['unit']}", verdict])
    return columns(text, right=(1,))
