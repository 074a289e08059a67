# SPDX-License-Identifier: Apache-2.0
"""Whether verdicts depend on load: 400 submissions whose verdicts are known, at 1 and 8 callers, on a quiet machine and beside two busy processes.

    bench/judge.py [--atoll build/atoll] [--quick] [--repeats 10] [--callers 1,8] [--neighbours 0,2]

Four languages, ten kinds of submissions, ten of each, each with a text of its own, so that it is compiled. Half of them have only a
`timeout`, the others `cpu_time`, too. A right program computes for RIGHT_CPU seconds of CPU time, so that a machine that is shared badly
fails it. Bar: no verdict is wrong, and none of what is too slow is so by the wrong clock.
"""
import argparse
import collections
import json
import pathlib
import random
import subprocess
import sys
import threading
import time

from sessions import Connection, Daemon

RIGHT_CPU = 0.4
TIMEOUT, CPU_TIME = 2, 1.2
LIMITS = {"timeout": TIMEOUT, "memory": "256m", "output_total": "1m", "output": "16k"}
ROOT = pathlib.Path(__file__).resolve().parents[1]
SHOWN = 20  # wrong verdicts

# Each reads two numbers into a and b. `busy` computes for RIGHT_CPU seconds.
LANGUAGES = {
    "python": """
import sys, time
a, b = map(int, sys.stdin.readline().split())
def busy():
    while time.process_time() < RIGHT_CPU: sum(range(20000))
BODY
""",
    "cpp": """
#include <cstdio>
#include <cstring>
#include <ctime>
#include <iostream>
#include <unistd.h>
long a, b; volatile long sink;
void busy() { while (clock() < RIGHT_CPU * CLOCKS_PER_SEC) for (int i = 0; i < 100000; i++) sink += i; }
int main() { std::cin >> a >> b; BODY }
""",
    "java": """
import java.util.*;
public class Main {
  static volatile long sink;
  static void busy() {
    var bean = java.lang.management.ManagementFactory.getThreadMXBean();
    while (bean.getCurrentThreadCpuTime() < RIGHT_CPU * 1e9) for (int i = 0; i < 100000; i++) sink += i;
  }
  public static void main(String[] args) throws Exception {
    Scanner in = new Scanner(System.in); long a = in.nextLong(), b = in.nextLong();
    BODY
  }
}
""",
    "javascript": """
const [a, b] = require("fs").readFileSync(0, "utf8").split(" ").map(Number);
function busy() { let x = 0; while (process.cpuUsage().user + process.cpuUsage().system < RIGHT_CPU * 1e6) for (let i = 0; i < 100000; i++) x += i; return x; }
BODY
""",
}
PRINTS = {"python": "print({})", "cpp": "std::cout << {} << std::endl;", "java": "System.out.println({});", "javascript": "console.log({});"}
SPINS = {"python": "while True: pass", "cpp": "for (;;) sink++;", "java": "while (true) sink++;", "javascript": "while (true);"}
SLEEPS = {"python": "time.sleep(60)", "cpp": "sleep(60);", "java": "Thread.sleep(60000);", "javascript": "setTimeout(() => 0, 60000);"}
HOGS = {"python": "all = []\nwhile True: all.append(bytearray(b'x') * 1000000)",
        "cpp": "for (;;) { char *p = new char[1 << 20]; memset(p, 1, 1 << 20); }",
        "java": "List<byte[]> all = new ArrayList<>(); while (true) { byte[] one = new byte[1 << 20]; Arrays.fill(one, (byte) 1); all.add(one); }",
        "javascript": "const all = []; while (true) all.push(new Array(10000).fill(a + all.length / 2));"}
FLOODS = {"python": "while True: print('x' * 1000)", "cpp": 'for (;;) puts("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");',
          "java": 'while (true) System.out.println("x".repeat(1000));', "javascript": "while (true) require('fs').writeSync(1, 'x'.repeat(1000));"}
CRASHES = {"python": "[][1]", "cpp": "*(volatile int *)0 = 1;", "java": "Object o = null; o.hashCode();", "javascript": "null.x;"}
SYNTAX = {"python": "print(1", "cpp": "int x = ;", "java": "int x = ;", "javascript": "let x = ;"}

STRICT = {"language": "python", "code": """
import sys
printed, expected = open(sys.argv[2]).read(), open(sys.argv[3]).read()
sys.exit(0 if printed == expected else 2 if printed.split() == expected.split() else 1)
"""}
BROKEN = ({"language": "python", "code": "import os\nos.kill(os.getpid(), 11)"},
          {"language": "python", "code": "raise RuntimeError('no answer file')"})


def body_of(kind, language):
    """The program's own lines."""
    say = PRINTS[language]
    return {"right": ("busy()\n" if language == "python" else "busy(); ") + say.format("a + b"),
            "wrong": say.format("a - b"),
            "presentation": {"python": "print(a + b, '\\n')", "cpp": 'std::cout << a + b << " \\n\\n";', "java": 'System.out.println((a + b) + " \\n");',
                             "javascript": "console.log(a + b, '\\n');"}[language],
            "slow": SPINS[language], "sleeping": SLEEPS[language], "memory": HOGS[language], "flood": FLOODS[language],
            "crash": CRASHES[language], "compile": SYNTAX[language], "checker": say.format("a + b")}[kind]


CODES = {"right": "AC", "wrong": "WA", "presentation": "PE", "slow": "TLE", "sleeping": "TLE", "memory": "MLE", "flood": "OLE", "crash": "RE",
         "compile": "CE", "checker": "IE"}


def submission(kind, language, number):
    """(kind, language, what the clock must be, body of the request)"""
    limits = dict(LIMITS, **({"cpu_time": CPU_TIME} if number % 2 else {}))
    code = LANGUAGES[language].replace("BODY", body_of(kind, language)).replace("RIGHT_CPU", str(RIGHT_CPU))
    mark = "#" if language == "python" else "//"
    test = {"stdin": f"{number} 7\n", "expected": f"{number + 7}\n"}
    if kind == "presentation":
        test["checker"] = STRICT
    if kind == "checker":
        test["checker"] = BROKEN[number % len(BROKEN)]
    clock = {"slow": "cpu" if number % 2 else "wall", "sleeping": "wall"}.get(kind)
    return kind, language, clock, {"language": language, "code": f"{mark} {number} {random.random()}\n{code}", "tests": [test], "limits": limits,
                                   "history": False}


class Condition:
    """All submissions once, in a random order, by so many callers beside so many busy processes."""

    def __init__(self, daemon, callers, neighbours, repeats):
        self.daemon, self.callers, self.neighbours = daemon, callers, neighbours
        self.waiting = [submission(kind, language, number) for kind in CODES for language in LANGUAGES for number in range(repeats)]
        random.shuffle(self.waiting)
        self.total, self.wrong, self.lock = len(self.waiting), [], threading.Lock()
        self.waited, self.extended = 0.0, 0

    def judge(self, kind, language, clock, result):
        test = result["tests"][0]
        self.waited, self.extended = max(self.waited, test["waited"]), self.extended + (test["waited"] > 0)
        if test["code"] != CODES[kind] or test["clock"] != clock:
            self.wrong.append({"kind": kind, "language": language, "expected": [CODES[kind], clock], "got": [test["code"], test["clock"]],
                               "cause": test["cause"]["detail"], "duration": test["duration"], "cpu_time": test["cpu_time"], "waited": test["waited"],
                               "stderr": test["stderr"][-300:]})

    def call(self):
        connection = Connection(self.daemon.socket)
        while True:
            with self.lock:
                if not self.waiting:
                    return
                kind, language, clock, body = self.waiting.pop()
            result = connection.ask("POST", "/v1/execute", body)
            with self.lock:
                self.judge(kind, language, clock, result)

    def run(self):
        busy = [subprocess.Popen(["/bin/sh", "-c", "while :; do :; done"]) for _ in range(self.neighbours)]
        threads = [threading.Thread(target=self.call) for _ in range(self.callers)]
        begun = time.monotonic()
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            for process in busy:
                process.kill()
                process.wait()
        if self.waiting:
            sys.exit("a caller stopped")
        return {"callers": self.callers, "neighbours": self.neighbours, "submissions": self.total, "wrong": len(self.wrong),
                "seconds": round(time.monotonic() - begun, 1), "extended": self.extended, "most_waited": self.waited, "verdicts": self.wrong}


def numbers(text):
    return [int(word) for word in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--atoll", type=pathlib.Path, default=ROOT / "build" / "atoll")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build-results")
    parser.add_argument("--quick", action="store_true", help="one submission of each kind and language")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--callers", type=numbers, default=[1, 8])
    parser.add_argument("--neighbours", type=numbers, default=[0, 2])
    options = parser.parse_args()
    daemon = Daemon(options.atoll)
    rows = []
    try:
        for neighbours in options.neighbours:
            for callers in options.callers:
                row = Condition(daemon, callers, neighbours, 1 if options.quick else options.repeats).run()
                rows.append(row)
                print(f"{callers} callers, {neighbours} busy neighbours: {row['wrong']} wrong verdicts of {row['submissions']}, {row['seconds']} s, "
                      f"{row['extended']} clocks extended by up to {row['most_waited']} s", flush=True)
                for kind, count in collections.Counter((w["kind"], w["language"], *map(str, w["got"])) for w in row["verdicts"]).most_common(SHOWN):
                    print("   ", count, *kind)
    finally:
        daemon.close()
        options.out.mkdir(exist_ok=True)
        (options.out / "judge.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")
    wrong = sum(row["wrong"] for row in rows)
    print(f"{'ok  ' if wrong == 0 else 'MISS'} judge: {wrong} wrong verdicts (bar: 0)")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
