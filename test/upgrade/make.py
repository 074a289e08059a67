#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the fixture of test_upgrade.py: the state directory of an older daemon that was killed under load.

  git worktree add ../old df9aa16 && (cd ../old && ./dev build)
  tools/room test/upgrade/make.py ../old              (as root; writes test/upgrade/df9aa16.tar.xz)

The daemon, the files of its languages and the clients are those of the older checkout. First, two callers make one execution of each
kind and ask for all of it; then clients that never wait fill the queue, and every process of the daemon is killed in one instant. The
archive has the state directory as it was found then, the policies of that checkout under other names, and `told.json`: all that clients
were told before the kill, which is what a newer daemon must still say.
"""
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
OLD = Path(sys.argv[1]).resolve()
os.environ["ATOLL_BIN"] = str(OLD / "build" / "atoll")
sys.path.insert(0, str(OLD / "test" / "lib"))

from daemon import Daemon  # noqa: E402
from program import Atoll, Stage  # noqa: E402
from web import Web  # noqa: E402

ALICE, BOB = "alice-token-of-the-fixture", "bob-token-of-the-fixture"
QUEUED = 20
LONG = "for i in range(20000): print('line', i)"
KINDS = [
    {"language": "python", "code": "print(6 * 7)", "labels": {"kind": "plain", "lesson": "one"}},
    {"language": "python", "code": "raise ValueError('of the fixture')"},
    {"language": "python", "code": LONG, "limits": {"output": "16k", "output_total": "1m"}},
    {"language": "python", "code": "open('made.txt', 'w').write('x' * 5000)\nimport os\nos.makedirs('d/e')\nopen('d/e/f.bin', 'wb').write(bytes(range(256)))"},
    {"language": "python", "code": "import sys\nprint(sys.stdin.read().upper())", "stdin": "typed in"},
    {"language": "python", "code": "print(int(input()) * 2)", "tests": [{"stdin": "2", "expected": "4"}, {"stdin": "3", "expected": "9"}]},
    {"language": "bash", "code": "echo out; echo err >&2; exit 3", "env": {"NAME": "reef"}},
    {"language": "bash", "code": "sleep 60", "limits": {"timeout": 1}},
    {"language": "bash", "code": "cat data/a.txt; printf '\\001\\377\\n'", "files": {"data/a.txt": "a file of the request\n"}},
    {"language": "bash", "code": "echo one > /workspace/kept.txt; mkdir -p /workspace/d; echo two > /workspace/d/two; echo stored",
     "workspace": "course"},
    {"language": "bash", "code": "cat /workspace/kept.txt; echo three >> /workspace/kept.txt", "workspace": "course"},
    {"language": "bash", "code": "echo of the policy", "policy": "team"},
    {"language": "python", "stages": [{"name": "write", "code": "open('n.txt', 'w').write('5')"}, {"name": "count", "argv": ["wc", "-c", "n.txt"]}]},
    {"language": "c", "code": "#include <stdio.h>\nint main(void) { puts(\"compiled\"); }"},
    {"language": "c", "code": "int main("},
]
LOAD = [
    {"language": "python", "code": "import time\ntime.sleep(0.3)\nprint('waited')", "labels": {"kind": "load"}},
    {"language": "bash", "code": "echo $((6 * 7)); sleep 0.2; echo done", "labels": {"kind": "load"}},
    {"language": "bash", "code": "touch /workspace/$SRANDOM; echo counted", "workspace": "tally", "labels": {"kind": "load"}},
    {"language": "python", "code": "for i in range(3000): print('line', i)", "labels": {"kind": "load"}},
]
told = {"answers": [], "results": {}, "accepted": {}, "keys": [], "sessions": []}
lock = threading.Lock()


def note(web, path, accept=None):
    """What the daemon answers to this question."""
    answer = web.get(path, headers={"Accept": accept} if accept else {})
    kind = answer.headers.get("content-type", "").split(";")[0]
    row = {"token": web.token, "path": path, "accept": accept, "status": answer.status}
    if kind == "application/json":
        row["json"] = answer.json()
    elif kind == "application/x-ndjson":
        row["lines"] = [json.loads(line) for line in answer.body.splitlines()]
        for line in row["lines"]:
            if line["event"] in ("stdout", "stderr"):
                line["data"] = hashlib.sha256(line["data"].encode()).hexdigest()
    else:
        row["sha256"], row["size"] = hashlib.sha256(answer.body).hexdigest(), len(answer.body)
    told["answers"].append(row)
    return answer


def note_all(web, id):
    at = f"/v1/executions/{id}"
    for path in ("", "/request", "/stdout", "/stderr", "/files", "/analysis", "/debug-report"):
        note(web, at + path)
    note(web, at + "/events", "application/x-ndjson")
    for file in web.get(at + "/files").json().get("files", []):
        note(web, f"{at}/files/{file['path']}")


def submit(web, body, key):
    answer = web.post("/v1/executions", body, headers={"Idempotency-Key": key})
    if answer.status == 202:
        with lock:
            told["accepted"][answer.json()["id"]] = {"token": web.token, "body": body}
            told["keys"].append({"token": web.token, "key": key, "body": body, "id": answer.json()["id"]})
    return answer


def execute(web, body):
    answer = web.post("/v1/execute", body)
    if answer.status == 200:
        with lock:
            told["results"][answer.json()["id"]] = {"token": web.token, "json": answer.json()}
    return answer


def calm(web, name):
    """One of each kind, its caller's sessions, and all that is kept of them."""
    ids = []
    for number, body in enumerate(KINDS):
        if number % 2:
            answer = submit(web, body, f"calm-{number}")
            assert answer.status == 202, answer
            id = answer.json()["id"]
        else:
            answer = execute(web, body)
            assert answer.status == 200, (body, answer)
            id = answer.json()["id"]
        web.wait(id)
        assert web.state(id)["status"] not in ("internal_error", "setup_error"), web.state(id)
        ids.append(id)
    batch = web.post("/v1/executions:batch", {"executions": [KINDS[0], KINDS[6]]}, headers={"Idempotency-Key": "batch"}).json()
    for row in batch["executions"]:
        web.wait(row["id"])
        ids.append(row["id"])
    told.setdefault("batches", []).append({"token": web.token, "ids": [row["id"] for row in batch["executions"]]})
    session = web.post("/v1/sessions", {"language": "python", "name": f"{name}-session"})
    assert session.status == 201, session
    session = session.json()["id"]
    told["sessions"].append({"token": web.token, "id": session})
    for code in ("a = 6", "a * 7", "open('of-the-session.txt', 'w').write('kept')", "1 / 0"):
        answer = web.post(f"/v1/sessions/{session}/execute", {"code": code})
        assert answer.status == 200, answer
        ids.append(answer.json()["id"])
    nemo = web.post("/execute", {"generated_code": "open('nemo.txt', 'w').write('nemo')\nprint(1 + 1)", "timeout": 20})
    assert nemo.json()["stdout"] == "2\n", nemo
    for id in ids:
        note_all(web, id)
    note(web, f"/v1/executions/{ids[0]}/diff/{ids[1]}")
    for query in ("status=error", "label=lesson=one", "text=reef", "language=c", "status=timeout"):
        note(web, f"/v1/executions?limit=50&{query}")


def press(web, seed):
    """A client that never waits, until the daemon dies."""
    rng = random.Random(seed)
    while True:
        body = rng.choice(LOAD)
        try:
            answer = execute(web, body) if rng.random() < 0.2 else submit(web, body, f"load-{rng.getrandbits(48):x}")
            if answer.status == 429:
                time.sleep(0.02)
        except (OSError, ValueError):
            return
        except Exception as problem:  # noqa: BLE001: http.client has many of its own
            print(type(problem).__name__, problem)
            return


def main():
    stage, place = Stage(), Path(tempfile.mkdtemp(prefix="tests-make-", dir="/srv" if os.path.ismount("/srv") else "/var/lib"))
    place.chmod(0o755)
    shutil.copytree(HERE / "policies", place / "policies")
    for file in (OLD / "policies").glob("*.yaml"):
        text = re.sub(r"^name: .*", f"name: df9aa16-{file.stem}", file.read_text(), flags=re.M)
        (place / "policies" / f"df9aa16-{file.name}").write_text(text)
    for name in ("languages.json", "tokens", "secrets"):
        shutil.copy(HERE / name, place)
        (place / name).chmod(0o600)
    (place / "languages.json").chmod(0o644)
    (place / "images").mkdir()
    (place / "atoll.yaml").write_text((HERE / "atoll.yaml").read_text().replace("HERE", str(place)))
    daemon = Daemon(Atoll("root", stage), place, "--config", place / "atoll.yaml")
    alice, bob = (Web(daemon.host, daemon.port, token) for token in (ALICE, BOB))
    while alice.get("/readyz").status != 200:
        time.sleep(0.1)
    calm(alice, "alice")
    calm(bob, "bob")
    note(alice, "/v1/limits")
    told["policies"] = {}
    for name in sorted(path.stem for path in (place / "policies").iterdir()):
        answer = execute(alice, {"language": "python", "code": "print(6 * 7)", "policy": name})
        told["policies"][name] = {"status": answer.status, **{key: answer.json().get(key) for key in ("code", "stdout")}}
    clients = [threading.Thread(target=press, args=(web, seed), daemon=True) for seed, web in enumerate((alice, bob, alice, bob))]
    sleeper = alice.submit("bash", "echo begun; sleep 90", limits={"timeout": 100}, priority=10)
    while alice.state(sleeper)["status"] != "running":
        time.sleep(0.02)
    told["running"] = [{"token": ALICE, "id": sleeper}]
    for thread in clients:
        thread.start()
    turn = alice.post("/v1/sessions", {"language": "bash"}).json()["id"]
    told["sessions"].append({"token": ALICE, "id": turn})

    def is_loaded():
        queued = alice.get(f"/v1/executions?status=queued&limit={QUEUED}").json()["executions"]
        return len(queued) == QUEUED and sum(row["json"].get("labels") == {"kind": "load"} for row in told["results"].values()) >= 4

    while not is_loaded():
        time.sleep(0.02)
    processes = [daemon.pid, daemon.child("broker"), daemon.child("front"), *daemon.processes()]
    for pid in (daemon.pid, daemon.child("front"), daemon.child("broker")):
        os.kill(pid, signal.SIGKILL)
    for thread in clients:
        thread.join(60)
    daemon.popen.wait(30)
    end = time.monotonic() + 30
    while any(os.path.exists(f"/proc/{pid}") and " Z " not in Path(f"/proc/{pid}/stat").read_text() for pid in processes):
        assert time.monotonic() < end
        time.sleep(0.05)
    print({key: len(value) for key, value in told.items()})
    (place / "told.json").write_text(json.dumps(told, separators=(",", ":")))
    names = ["state", "policies", "told.json"]
    subprocess.run(["tar", "-C", place, "--numeric-owner", "--sort=name", "--sparse", "-cJf", HERE / "df9aa16.tar.xz", *names],
                   check=True, env={**os.environ, "XZ_OPT": "-9e"})
    subprocess.run(["du", "-sh", HERE / "df9aa16.tar.xz", place / "state"], check=True)
    subprocess.run(["find", place / "state", "-maxdepth", "2", "-ls"], check=True)
    stage.remove()
    shutil.rmtree(place)


main()
