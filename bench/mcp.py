# SPDX-License-Identifier: Apache-2.0
"""What the Model Context Protocol costs beside Atoll's own HTTP, and how soon `atoll mcp` answers.

    bench/mcp.py [--binary build/atoll] [--samples 300]

HTTP: a Python one-liner over one kept connection to one daemon, as `POST /v1/execute` and as `tools/call` of both eras, with the same limits,
in turn. Bar: tools/call at most 1.3 times as long. Stdio: from the start of `atoll mcp` without a daemon to its first answer, in turn with
/bin/true and with a cold sandbox. Bar: at most three times /bin/true and one cold sandbox.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

from sessions import Connection, Daemon, timed

MODERN, LEGACY = "2026-07-28", "2025-11-25"
META = "io.modelcontextprotocol/"
CODE = "print(1)"
LIMITS = {"memory": "256m", "cpus": 0.5, "pids": 50, "timeout": 30}  # of the tool
HELLO = {"jsonrpc": "2.0", "id": 0, "method": "initialize",
         "params": {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}}
HTTP_BAR, TRUE_TIMES = 1.3, 3


class Way:
    """A request on a connection of its own, which stays open."""

    def __init__(self, daemon, path, body, headers=None):
        self.connection, self.path, self.body = Connection(daemon.socket), path, json.dumps(body)
        self.headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **(headers or {})}

    def ask(self):
        self.connection.request("POST", self.path, self.body, self.headers)
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status != 200 or b"1\\n" not in text or answer.getheader("Content-Type") != "application/json":
            sys.exit(f"{self.path}: {answer.status} {text.decode()}")
        self.session = answer.getheader("Mcp-Session-Id")


def tool_call(meta=None):
    params = {"name": "execute_code", "arguments": {"language": "python", "code": CODE}}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {**params, **({"_meta": meta} if meta else {})}}


def legacy_session(daemon):
    connection = Connection(daemon.socket)
    connection.request("POST", "/mcp", json.dumps(HELLO), {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.getheader("Mcp-Session-Id")


def percentile(times, part):
    return sorted(times)[int(len(times) * part)]


def measure_http(o):
    daemon = Daemon(o.binary)
    modern = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": "execute_code"}
    ways = {
        "POST /v1/execute": Way(daemon, "/v1/execute", {"language": "python", "code": CODE, "limits": LIMITS}),
        "tools/call, modern": Way(daemon, "/mcp", tool_call({META + "protocolVersion": MODERN, META + "clientCapabilities": {}}), modern),
        "tools/call, legacy": Way(daemon, "/mcp", tool_call(), {"MCP-Protocol-Version": LEGACY, "Mcp-Session-Id": legacy_session(daemon)}),
        "POST /v1/tools/execute_code": Way(daemon, "/v1/tools/execute_code", {"language": "python", "code": CODE}),
    }
    times = {name: [] for name in ways}
    for name, way in ways.items():
        for _ in range(30):
            way.ask()
    for _ in range(o.samples):
        for name, way in ways.items():
            times[name].append(timed(way.ask))
    daemon.close()
    base = statistics.median(times["POST /v1/execute"])
    worst = 0.0
    for name, own in times.items():
        p50 = statistics.median(own)
        if name.startswith("tools/call"):
            worst = max(worst, p50 / base)
        print(f"{name:30} p50 {p50:8.3f} ms   p90 {percentile(own, 0.9):8.3f} ms   ratio {p50 / base:.3f}", flush=True)
    print(f"bar: tools/call <= {HTTP_BAR} x POST /v1/execute: {worst:.3f} {'ok' if worst <= HTTP_BAR else 'MISSED'}")


def first_answer(binary, env):
    """From the start to the first answer; the rest is not timed."""
    process = None

    def begin():
        nonlocal process
        process = subprocess.Popen([binary, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
        process.stdin.write(json.dumps(HELLO).encode() + b"\n")
        process.stdin.flush()
        if b'"serverInfo"' not in process.stdout.readline():
            sys.exit("atoll mcp did not answer")

    elapsed = timed(begin)
    process.stdin.close()
    process.stdout.close()
    process.wait()
    return elapsed


def measure_stdio(o):
    with tempfile.TemporaryDirectory(prefix="atoll-bench-") as home:
        os.chmod(home, 0o711)  # the front runs as another user
        env = {"PATH": "/usr/bin:/bin", "HOME": home, "XDG_RUNTIME_DIR": home, "ATOLL_URL": "off", "ATOLL_POOL": "off"}
        env.update({key: os.environ[key] for key in ("ATOLL_DATA_DIR", "LD_LIBRARY_PATH") if key in os.environ})
        cold = [o.binary, "run", "--no-daemon", "-l", "bash", "-c", ":"]
        ways = {"/bin/true": lambda: timed(lambda: subprocess.run(["/bin/true"], check=True, env=env)),
                "cold sandbox": lambda: timed(lambda: subprocess.run(cold, check=True, env=env)),
                "atoll mcp, first answer": lambda: first_answer(o.binary, env)}
        times = {name: [] for name in ways}
        for i in range(max(o.samples // 5, 20)):
            for name, way in ways.items():
                elapsed = way()
                if i > 1:
                    times[name].append(elapsed)
    p50 = {name: statistics.median(own) for name, own in times.items()}
    for name, own in times.items():
        print(f"{name:30} p50 {p50[name]:8.3f} ms   p90 {percentile(own, 0.9):8.3f} ms", flush=True)
    bar, found = TRUE_TIMES * p50["/bin/true"] + p50["cold sandbox"], p50["atoll mcp, first answer"]
    print(f"bar: first answer <= {TRUE_TIMES} x /bin/true + a cold sandbox = {bar:.2f} ms: {found:.2f} {'ok' if found <= bar else 'MISSED'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="build/atoll")
    parser.add_argument("--samples", type=int, default=300)
    parser.add_argument("--only", choices=["http", "stdio"])
    o = parser.parse_args()
    o.binary = os.path.abspath(o.binary)
    if o.only != "stdio":
        measure_http(o)
    if o.only != "http":
        measure_stdio(o)


if __name__ == "__main__":
    main()
