# SPDX-License-Identifier: Apache-2.0
"""The table as a picture: one group of bars a workload, time on a logarithmic scale; and three bars of it to scale. Light and dark."""

import math
from xml.sax.saxutils import escape

import stats

WIDTH, LABEL, RIGHT = 860, 170, 100  # pixels: all, names on the left, numbers on the right
ROW, BAR, HEAD = 20, 13, 34
TOP, BOTTOM = 64, 44

STYLE = """
text { font: 12px ui-sans-serif, system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1f2328 }
.title { font-size: 16px; font-weight: 600 } .head { font-weight: 600 } .small { font-size: 11px; fill: #59636e }
.number { font-variant-numeric: tabular-nums } .axis { stroke: #d1d9e0 } .range { stroke: #1f2328; stroke-width: 2; opacity: .55 }
.peer { fill: #8c959f } .bare { fill: #59636e } .cold { fill: #54aeff } .warm { fill: #1a7f37 }
.strong { font-weight: 600 } .paper { fill: #ffffff }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc } .small { fill: #9198a1 } .axis { stroke: #3d444d } .range { stroke: #f0f6fc } .paper { fill: #0d1117 }
  .peer { fill: #656c76 } .bare { fill: #9198a1 } .cold { fill: #388bfd } .warm { fill: #3fb950 }
}
"""


def scale(values):
    """Powers of ten that hold all values, and the function from a value to its pixel."""
    low = math.floor(math.log10(min(values)))
    high = max(math.ceil(math.log10(max(values))), low + 1)
    width = WIDTH - LABEL - RIGHT

    def x(value):
        return LABEL + width * (math.log10(value) - low) / (high - low)

    return [10.0 ** power for power in range(low, high + 1)], x


def unit(value):
    """A tick of the axis: 0.1 ms, 1 ms, 1 s."""
    return f"{value / 1000:g} s" if value >= 1000 else f"{value:g} ms"


def text(x, y, words, classes="", anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{classes}" text-anchor="{anchor}">{escape(words)}</text>'


def bar(x, y, row):
    """Name, bar up to p50, whisker from p25 to p75 … p90, number."""
    kind, d = row["kind"], row["latency"]
    strong = "strong" if kind in ("cold", "warm") else ""
    middle = y + BAR / 2
    yield text(LABEL - 8, y + BAR - 2, row["title"], strong, "end")
    yield f'<rect x="{LABEL}" y="{y:.1f}" width="{max(x(d["p50"]) - LABEL, 1):.1f}" height="{BAR}" rx="2" class="{kind}"/>'
    yield (f'<line x1="{x(d["p25"]):.1f}" x2="{x(d["p90"]):.1f}" y1="{middle:.1f}" y2="{middle:.1f}" '
           'class="range"/>')
    yield text(x(d["p90"]) + 8, y + BAR - 2, f"{stats.milliseconds(d['p50'])} ms", f"number {strong}")


def head(height):
    return [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
            'role="img" aria-label="Time to run a program, by sandbox">',
            f"<style>{STYLE}</style>", f'<rect class="paper" width="{WIDTH}" height="{height}" rx="6"/>']


def draw_three(rows, subtitle):
    """rows: as in a group of draw(); lengths are in proportion."""
    height = TOP + ROW * len(rows) + 16
    longest = max(row["latency"]["p50"] for row in rows)
    out = [*head(height), text(16, 28, "One Python program, from call to result", "title"), text(16, 48, subtitle, "small")]
    for number, row in enumerate(rows):
        y, p50 = TOP + ROW * number, row["latency"]["p50"]
        width = max((WIDTH - LABEL - RIGHT) * p50 / longest, 1)
        strong = "strong" if row["kind"] == "warm" else ""
        out.append(text(LABEL - 8, y + BAR - 2, row["title"], strong, "end"))
        out.append(f'<rect x="{LABEL}" y="{y}" width="{width:.1f}" height="{BAR}" rx="{min(width / 2, 2):g}" class="{row["kind"]}"/>')
        out.append(text(LABEL + width + 8, y + BAR - 2, f"{stats.milliseconds(p50)} ms", f"number {strong}"))
    return "\n".join(out + ["</svg>"]) + "\n"


def draw(groups, subtitle):
    """groups: [(title, [{"title", "kind", "latency"}, …]), …]; the kind is bare, peer, cold or warm."""
    values = [row["latency"][cut] for _, rows in groups for row in rows for cut in ("p25", "p50", "p90")]
    ticks, x = scale(values)
    height = TOP + sum(HEAD + ROW * len(rows) for _, rows in groups) + BOTTOM
    axis = height - BOTTOM + 8
    out = [*head(height),
           text(16, 28, "From call to result, one at a time", "title"), text(16, 48, subtitle, "small")]
    for tick in ticks:
        out.append(f'<line x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{TOP}" y2="{axis}" class="axis"/>')
        out.append(text(x(tick), axis + 16, unit(tick), "small", "middle"))
    y = TOP
    for title, rows in groups:
        out.append(text(16, y + HEAD - 12, title, "head"))
        y += HEAD
        for row in rows:
            out.extend(bar(x, y, row))
            y += ROW
    out.append(text(WIDTH - 16, height - 8, "bars: p50; lines: p25 to p90; logarithmic", "small", "end"))
    return "\n".join(out + ["</svg>"]) + "\n"
