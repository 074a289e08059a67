# SPDX-License-Identifier: Apache-2.0
"""Sample programs with common operations.

The zygote runs all of them, so that caches are filled and bytecode is specialised before the fork. The agent's probe runs
usual() (src/agent/agent-pages.c).
"""

BASE = """
import sys
class Point:
    '''A point.'''
    def __init__(self, x, y=0):
        self.x, self.y = x, y
    def __repr__(self):
        return f"Point({self.x!r}, {self.y:>4})"
def walk(n):
    for i in range(n):
        yield i * 2
names = {"a": 1, "b": [2.5, "x"], "c": (None, True)}
total = sum(x for x in walk(5))
text = ", ".join(sorted(str(k) + "=" + str(v) for k, v in names.items())).upper().split("=")
try:
    [1][total]
except (IndexError, KeyError) as error:
    problem = f"{type(error).__name__}: {error}"
print(1)
print(total, Point(1), "%d %s %.2f" % (1, "x", 2.0), "{:>8}".format("y"), problem, sep="|", end="\\n")
"""

STANDARD = """
import collections, datetime, functools, itertools, json, math, random, re, string
json.loads(json.dumps({"a": [1, 2.5, None, "é"]}, indent=1))
re.sub(r"(\\w+)@(\\w+)\\.com", r"\\2", "me@example.com")
collections.Counter("hello").most_common(2)
collections.defaultdict(list)["k"].append(1)
datetime.datetime(2024, 1, 2).strftime("%Y-%m-%d"); datetime.date.fromisoformat("2024-02-29") + datetime.timedelta(days=1)
random.shuffle([random.randint(1, 6), random.random()])
list(itertools.combinations(range(4), 2)); math.sqrt(2) ** 0.5
@functools.lru_cache(maxsize=None)
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
fib(20); sorted("hello", key=str.lower, reverse=True); [[i * j for j in range(3)] for i in range(3)]
with open("/dev/null") as file:
    lines = [line.strip() for line in file]
f"{2 ** 70:,}"
"""

NUMPY = """
import numpy as np
a = np.arange(12, dtype=float).reshape(3, 4)
print(a.sum(), a.mean(axis=0))
"""

NUMPY_MORE = """
import numpy as np
b = np.random.default_rng(1).normal(size=(3, 3)); np.random.rand(3)
np.linalg.inv(b); np.linalg.svd(b); np.linalg.eigh(b + b.T); np.linalg.solve(b, np.ones(3)); np.fft.fft(np.ones(8)); np.dot(b, b)
str(b), repr(np.array(["x", "y"])), np.concatenate([b, b]), np.where(b > 0, 1, 0), np.unique([1, 1, 2]), np.linspace(0, 1, 5)
"""

PANDAS = """
import numpy as np
import pandas as pd
np.arange(10, dtype=float).sum()
d = pd.DataFrame({"a": [1, 2, 3], "b": [0.5, 1.5, 2.5], "c": ["x", "y", "x"]})
print(d["a"].sum())
"""

PANDAS_MORE = """
import io
import pandas as pd
d = pd.DataFrame({"a": [1, 2, 3], "b": [0.5, 1.5, 2.5], "c": ["x", "y", "x"]})
str(d.groupby("c").sum(numeric_only=True)), str(d.describe()), str(d.merge(d, on="a")), str(d[d["a"] > 1].sort_values("b"))
str(d["b"]), repr(d.dtypes); d.apply(lambda s: s, axis=1); d.pivot_table(index="c", values="b"); d.head().to_dict()
pd.read_csv(io.StringIO(d.to_csv(index=False))); d.to_json(); str(pd.Series([1, None]).fillna(0))
str(pd.to_datetime(["2024-01-02"])); str(pd.date_range("2024-01-01", periods=3).month)
"""

FIGURE = """
import io
import matplotlib.pyplot as plt
figure, axes = plt.subplots()
axes.plot([1, 2, 3], label="l"); axes.bar([1, 2], [3, 4]); axes.set_title("t"); axes.set_xlabel("x")
axes.legend(); axes.grid(True)
figure.savefig(io.BytesIO(), format="png"); plt.close("all"); plt.figure(); plt.scatter([1], [2]); plt.close("all")
"""

FAILING = """
def inner(): return {}["missing"]
def outer():
    try: inner()
    except KeyError as error: raise ValueError("sample") from error
outer()
"""

# What many programs import and what costs children little.
STOCK = """re json math random datetime time collections.abc itertools functools typing dataclasses enum string copy
statistics heapq bisect traceback textwrap pathlib threading queue logging csv argparse struct subprocess tempfile shutil
base64 decimal fractions operator inspect hashlib uuid pprint urllib.parse calendar zlib glob cmath numbers secrets timeit
signal errno contextlib ast types html difflib unicodedata ctypes mmap""".split()


def usual(names):
    """The sample of the agent's probe: a child made ahead gets the pages that this touches before it does anything else."""
    return "".join([f"import {name}\n" for name in names if name in REPEATED]) + "print(1)\n"


# Programs that use the first usually use the others.
COMPANIONS = {"matplotlib": ["matplotlib.pyplot", "matplotlib.backends.backend_agg"]}

AHEAD = {None: [BASE], "json": [STANDARD], "numpy": [NUMPY_MORE, NUMPY], "pandas": [PANDAS_MORE, PANDAS], "matplotlib": [FIGURE]}
REPEATED = {"numpy": NUMPY, "pandas": PANDAS}  # of a tier the last one: each page costs every child memory
