#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The time of a session's fork over HTTP keep-alive, for each child, in turn with a bare `python3 -c 'print(1)'`.

usage: bench/fork.py HOST:PORT     a running daemon that takes callers without a token
"""
import http.client
import json
import statistics
import subprocess
import sys
import time

ROUNDS, REST, MIB = 15, 0.05, 100


def timed(function):
    begin = time.perf_counter()
    answer = function()
    return (time.perf_counter() - begin) * 1e3, answer


def main():
    connection = http.client.HTTPConnection(sys.argv[1], timeout=60)

    def ask(method, path, body=None):
        connection.request(method, path, json.dumps(body) if body is not None else None, {"Content-Type": "application/json"})
        response = connection.getresponse()
        text = response.read()
        assert response.status < 300, text
        return json.loads(text) if text else None

    session = f"/v1/sessions/{ask('POST', '/v1/sessions', {'forkable': True})['id']}"
    ask("POST", f"{session}/execute", {"code": f"data = bytearray(b'x') * ({MIB} << 20)"})
    for count in (1, 4, 8):
        forks, bares = [], []
        for _ in range(ROUNDS):
            bares.append(timed(lambda: subprocess.run(["/usr/bin/python3", "-c", "print(1)"], stdout=subprocess.DEVNULL, check=True))[0])
            ms, answer = timed(lambda: ask("POST", f"{session}/fork", {"count": count}))
            forks.append(ms / count)
            for copy in answer["sessions"]:
                ask("DELETE", f"/v1/sessions/{copy['id']}")
            time.sleep(REST)
        fork, bare = statistics.median(forks), statistics.median(bares)
        print(f"{count} children, {MIB} MiB: {fork:.1f} ms each, bare python3 {bare:.1f} ms: {fork / bare:.2f} (at most 0.6)")
    ask("DELETE", session)


main()
