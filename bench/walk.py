#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Which source files does one warm `POST /v1/execute` cross in the front and in the broker?

    bench/walk.py [--build DIR] [--functions]

Starts a daemon on a Unix socket, makes it warm, puts a uprobe on every function of `atolld` and `atoll`, sends one request and prints the files
of the functions that front and broker entered until the answer was read and the sandbox was removed. --functions also names these. A function
that the compiler inlined counts as part of its caller. The sandbox's own processes and the monitor are not counted. Needs root and
a kernel with uprobes; tracing goes to a trace instance of its own, and nothing stays behind. Takes some minutes, nearly all of them to remove
the probes.
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
GROUP = "atoll_walk"
WARM_UP = 20
PAUSE_S = 0.1  # longer than it takes to remove a sandbox and to make the next spare
READY_S = 30


def text_of(*command, given=None):
    return subprocess.run(command, check=True, capture_output=True, text=True, input=given).stdout


def functions(program):
    """(offset in the file, function, source file below src/) of each function of the project."""
    loads = [[int(word, 16) for word in found.groups()] for found in
             re.finditer(r"LOAD\s+0x(\w+)\s+0x(\w+)\s+0x\w+\s+0x(\w+)", text_of("readelf", "-lW", program))]
    symbols = {int(address, 16): name for address, name in
               re.findall(r"^(\w+) [tT] (\S+)$", text_of("nm", "--defined-only", program), re.M)}
    places = text_of("addr2line", "-e", program, given="\n".join(map(hex, symbols))).splitlines()
    for (address, name), place in zip(symbols.items(), places):
        path = place.partition(":")[0]
        for start, virtual, size in loads:
            if "/src/" in path and virtual <= address < virtual + size:
                yield address - virtual + start, name, path.rpartition("/src/")[2]


@contextlib.contextmanager
def tracing():
    """The directory of tracefs, mounted for as long as it is needed."""
    with tempfile.TemporaryDirectory(prefix="atoll-walk-") as folder:
        text_of("mount", "-t", "tracefs", "nodev", folder)
        try:
            yield pathlib.Path(folder)
        finally:
            text_of("umount", folder)


def tell(trace, lines):
    """One write a line. A function whose first instruction cannot be probed is left out."""
    events = os.open(trace / "uprobe_events", os.O_WRONLY | os.O_APPEND)
    for line in lines:
        with contextlib.suppress(OSError):
            os.write(events, line.encode())
    os.close(events)


@contextlib.contextmanager
def probes(trace, programs):
    """(a trace instance, {event: (function, source file)})"""
    table, lines = {}, []
    for program in programs:
        for offset, name, path in functions(program):
            event = f"f{len(table)}"
            table[event] = (name, path)
            lines.append(f"p:{GROUP}/{event} {program}:{offset:#x}\n")
    instance = trace / "instances" / GROUP
    instance.mkdir()
    try:
        tell(trace, lines)
        yield instance, table
    finally:
        instance.rmdir()
        tell(trace, [f"-:{GROUP}/{event}\n" for event in table])


class Daemon:
    def __init__(self, program, folder):
        self.socket, self.log = f"{folder}/socket", pathlib.Path(folder, "log")
        command = [program, "serve", "--state-dir", f"{folder}/state", "--socket", self.socket, "--log-format", "json"]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def post(self):
        body = json.dumps({"language": "python", "code": "print(1)"})
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(self.socket)
            connection.sendall((f"POST /v1/execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                                f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n{body}").encode())
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        return json.loads(answer.partition(b"\r\n\r\n")[2])

    def run(self):
        result = self.post()
        if result.get("stdout") != "1\n":
            sys.exit(f"bench/walk.py: unexpected answer: {result}")

    def warm_up(self):
        end = time.monotonic() + READY_S
        while time.monotonic() < end and self.process.poll() is None:
            with contextlib.suppress(OSError):
                if "stdout" in self.post():
                    break
            time.sleep(0.1)
        else:
            sys.exit(f"bench/walk.py: the daemon does not get ready: {self.log.read_text()[-500:]}")
        for _ in range(WARM_UP):
            time.sleep(PAUSE_S)
            self.run()

    def pids(self):
        """{"front": [its threads], "broker": [its threads]}"""
        records = [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]
        return {record["process"]: os.listdir(f"/proc/{record['pid']}/task") for record in records if record["msg"] == "started"}

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)


def walk(build):
    """{"front": {source file: {function}}, "broker": …}"""
    programs = [str(build / name) for name in ("atolld", "atoll")]
    with tempfile.TemporaryDirectory(prefix="atoll-walk-") as folder, tracing() as trace:
        os.chmod(folder, 0o711)  # for the front's user
        daemon = Daemon(programs[1], folder)
        try:
            daemon.warm_up()
            owners = {thread: name for name, threads in daemon.pids().items() for thread in threads}
            with probes(trace, programs) as (instance, table):
                (instance / "set_event_pid").write_text(" ".join(owners))
                (instance / "events" / GROUP / "enable").write_text("1")
                daemon.run()
                time.sleep(PAUSE_S)
                (instance / "trace").write_text("")
                daemon.run()
                time.sleep(PAUSE_S)
                (instance / "events" / GROUP / "enable").write_text("0")
                lines = (instance / "trace").read_text().splitlines()
        finally:
            daemon.end()
    found = {"front": {}, "broker": {}}
    for line in lines:
        hit = re.match(r".*-(\d+)\s.*?: (f\d+): \(", line)
        if hit and hit[1] in owners:
            function, path = table[hit[2]]
            found[owners[hit[1]]].setdefault(path, set()).add(function)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--functions", action="store_true")
    options = parser.parse_args()
    found = walk(options.build.resolve())
    for process, files in found.items():
        folders = sorted({path.partition("/")[0] for path in files})
        print(f"{process}: {len(files)} files, {len(folders)} folders, {sum(map(len, files.values()))} functions")
        for folder in folders:
            own = [path for path in sorted(files) if path.startswith(folder + "/")]
            print(f"  {folder}/ " + " ".join(path.partition("/")[2] for path in own))
            for path in own if options.functions else ():
                print(f"    {path}: " + " ".join(sorted(files[path])))
    both = set().union(*found.values())
    print(f"both: {len(both)} files, {len({path.partition('/')[0] for path in both})} folders")


if __name__ == "__main__":
    main()
