# SPDX-License-Identifier: Apache-2.0
"""`python@3.11`: versions that a language's file defines, and those that the runtime itself says it is."""
import json
import os
import secrets
import shutil
import signal
import socket
import struct
import subprocess
import time

import pytest

import oracle
from program import Atoll
from resident import wait_until
from web import Served

quick = pytest.mark.quick
WHOLE = subprocess.run(["/usr/bin/python3", "-c", "import platform; print(platform.python_version())"], capture_output=True, text=True,
                       check=True).stdout.strip()
MAJOR, MINOR = WHOLE.split(".")[:2]

# Two shells that say they are versions of one language; the third is not there.
DEFINED = """
name: toy
title: Toy
aliases: [rf]
source: code.toy
runtime: /bin/sh
package: dash
version: [/bin/sh, -c, echo toy 1.2.3]
version_prefix: "Toy "
run: [/bin/sh, "{source}"]
env: {KIND: plain}
versions:
  "2.0":
    runtime: /bin/bash
    version: [/bin/bash, -c, echo toy 2.0.7]
    run: [/bin/bash, "{source}"]
    env: {KIND: two}
  "9":
    runtime: /usr/bin/nothing-like-this
    package: toy9
"""


def define(atoll, place, text):
    """Runs with a data directory that has that language too."""
    data = place / "data"
    shutil.copytree(atoll.stage.data, data)
    (data / "languages" / "toy.yaml").write_text(text)
    subprocess.run(["chmod", "-R", "a+rX", data], check=True)
    return atoll.variant(env={"ATOLL_DATA_DIR": str(data)})


@pytest.fixture
def toy(atoll, work):
    return define(atoll, work, DEFINED)


@quick
@pytest.mark.modes("rootless")
@pytest.mark.parametrize("language", [f"python@{MAJOR}", f"python@{MAJOR}.{MINOR}", f"python@{WHOLE}", f"PY@{MAJOR}.{MINOR}",
                                      f"Python3@{MAJOR}.{MINOR}"])
def test_what_is_installed(atoll, language):
    result = atoll.result(["-l", language, "-c", "import platform; print(platform.python_version())"])
    assert result["stdout"].strip() == WHOLE and result["language"] == "python", result
    assert result["runtime"] == f"Python {WHOLE}"


@pytest.mark.modes("rootless")
@pytest.mark.parametrize("version", [f"{MAJOR}.{MINOR[:-1]}" if len(MINOR) > 1 else "9", "2.7", f"{WHOLE}1", f"{MAJOR}.", "x"])
def test_what_is_not(atoll, version):
    done = atoll.run(["run", "-l", f"python@{version}", "-c", "print(1)"])
    assert done.returncode == 127 and done.stdout == b"", done
    assert done.err == f"atoll: 'python@{version}': no Python {version} is installed; installed: {WHOLE}\n"


@pytest.mark.modes("rootless")
def test_no_language_at_all(atoll):
    for name in ("python@", "@3", "nobody@3"):
        done = atoll.run(["run", "-l", name, "-c", "print(1)"])
        assert done.returncode == 127 and f"unknown language '{name}'; " in done.err, done


@pytest.mark.modes("rootless")
@pytest.mark.parametrize("language,kind,runtime", [
    ("toy", "plain", "Toy 1.2.3"), ("rf@1", "plain", "Toy 1.2.3"), ("Toy@2.0", "two", "Toy 2.0.7"), ("RF@2.0", "two", "Toy 2.0.7"),
    ("toy@2", "two", "Toy 2.0.7"), ("toy@2.0.7", "two", "Toy 2.0.7")])
def test_defined(toy, language, kind, runtime):
    result = toy.result(["-l", language, "-c", 'echo $KIND ${BASH_VERSION:+bash}'])
    assert result["stdout"].split() == [kind] + ["bash"] * (kind == "two"), result
    assert (result["language"], result["runtime"]) == ("toy", runtime)


@pytest.mark.modes("rootless")
def test_defined_but_not_there(toy):
    done = toy.run(["run", "-l", "toy@9", "-c", "true"])
    assert done.returncode == 127 and "Toy 9 is not installed" in done.err and "apt install toy9" in done.err, done
    done = toy.run(["run", "-l", "toy@3", "-c", "true"])
    assert done.returncode == 127 and done.err == "atoll: 'toy@3': no Toy 3 is installed; installed: 1.2.3, 2.0\n", done


@pytest.mark.modes("rootless")
def test_they_are_listed(toy):
    entry, = (e for e in toy.run(["languages", "--json"]).json()["languages"] if e["name"] == "toy")
    assert entry["version"] == "Toy 1.2.3"
    assert [(v["name"], v["available"], v["version"], v["package"]) for v in entry["versions"]] == [
        ("2.0", True, "Toy 2.0.7", "dash"), ("9", False, None, "toy9")]
    short, whole = ([" ".join(line.split()) for line in toy.run(["languages", *more]).out.splitlines()] for more in ((), ("-v",)))
    for begin in ("toy Toy 1.2.3 rf ", "toy@2.0 Toy 2.0.7 "):
        assert all(any(row.startswith(begin) for row in rows) for rows in (short, whole)), short
    assert "toy@9 not installed - -" in whole and not any("toy@9" in row or "toy9" in row for row in short), whole
    assert any(row.startswith("apt install ") and "toy9" in row.split() for row in whole), whole


@pytest.fixture
def fresh(mode, stage):
    """A daemon that has asked no runtime for its version yet."""
    served = Served(Atoll(mode, stage), stage.scratch(mode, "versions"))
    yield served.web
    served.end()


@quick
def test_a_daemons_first_request(fresh):
    answer = fresh.post("/v1/execute", {"language": "python@2.7", "code": "print(1)"})
    assert answer.status == 400 and answer.json()["code"] == "unknown_language" and answer.json()["field"] == "language", answer
    assert WHOLE in answer.json()["detail"]
    result = fresh.post("/v1/execute", {"language": f"Py@{MAJOR}.{MINOR}", "code": "print(1)"}).json()
    assert (result["status"], result["stdout"], result["language"]) == ("success", "1\n", "python"), result
    body = {"language": f"python@{MAJOR}", "code": "print(2)"}
    with fresh.stream("POST", "/v1/execute", body, accept="application/x-ndjson") as response:
        assert json.loads(list(response)[-1])["data"]["stdout"] == "2\n"
    job = fresh.post("/v1/executions", {"language": "python@2", "code": "print(1)"}).json()["id"]
    assert fresh.wait(job)["status"] == "setup_error"
    stages = {"language": "python@3", "stages": [{"code": "open('x', 'w').write('5')"}, {"code": "print(open('x').read())"}]}
    assert fresh.post("/v1/execute", stages).json()["stdout"] == "5\n"


@pytest.fixture
def serve(mode, stage):
    """Starts a daemon whose languages have that one among them."""
    served = []

    def start(text, *options):
        place = stage.scratch(mode, "versions")
        served.append(Served(define(Atoll(mode, stage), place, text), place, *options))
        return served[-1]

    yield start
    for each in served:
        each.end()


@pytest.mark.modes("root")
def test_a_job_that_waited_runs_what_it_named(serve):
    """Also when it is forgotten which version is which: it is found out again, and nothing else is run."""
    served = serve(DEFINED, "--running", "1")
    web, daemon = served.web, served.daemon
    first = web.submit("bash", "sleep 60")
    web.wait(first, "running")
    jobs = [web.submit("toy@2.0.7", "echo $KIND"), web.submit("toy@1.2", "echo $KIND")]
    for known in daemon.state.rglob("versions"):
        shutil.rmtree(known)
    after = len(daemon.records)
    os.kill(daemon.child("front"), signal.SIGKILL)
    daemon.wait_ready(after)
    assert [web.wait(job)["stdout"] for job in jobs] == ["two\n", "plain\n"]


@pytest.mark.modes("root")
def test_a_runtime_that_does_not_answer(serve):
    """What cannot be found out now is no fault of the caller's."""
    web = serve(DEFINED.replace("echo toy", "exit 1; echo toy")).web
    answer = web.post("/v1/execute", {"language": "toy@1", "code": "echo"})
    assert answer.status == 503 and answer.json()["code"] == "not_ready" and "Retry-After".lower() in answer.headers, answer
    assert answer.json()["detail"] == "Toy cannot be asked for its version now; try again"
    state = web.wait(web.submit("toy@1", "echo $KIND"))
    assert state["status"] == "internal_error" and state["stdout"] == "" and "its version" in state["cause"]["detail"], state
    assert state["cause"]["retryable"] is True, state
    # Who names none does not need to know.
    assert web.execute("toy", "echo $KIND")["stdout"] == "plain\n"


@pytest.mark.undisturbed
@pytest.mark.modes("root")
def test_a_job_cancelled_while_its_version_is_asked_for(serve):
    """It ends at once, before the runtime has answered; and the late answer changes nothing."""
    served = serve(DEFINED.replace("echo toy 1", "sleep 2; echo toy 1"), "--running", "1")
    web, daemon = served.web, served.daemon
    web.wait(web.submit("bash", "sleep 60"), "running")
    job = web.submit("toy@1.2", "echo $KIND")
    for known in daemon.state.rglob("versions"):
        shutil.rmtree(known)
    after = len(daemon.records)
    os.kill(daemon.child("front"), signal.SIGKILL)
    daemon.wait_ready(after)
    while not [row for row in web.get("/v1/executions?status=running").json()["executions"] if row["id"] == job]:
        assert web.state(job)["status"] == "queued"
    begun = time.monotonic()
    assert web.delete(f"/v1/executions/{job}").status in (200, 202)
    assert web.wait(job)["status"] == "cancelled" and time.monotonic() - begun < 1.7
    # The place is another's meanwhile.
    assert web.execute("bash", "echo next")["stdout"] == "next\n" and time.monotonic() - begun < 1.7
    time.sleep(2)
    assert web.state(job)["status"] == "cancelled" and web.state(job)["stdout"] == ""
    assert web.execute("toy@1.2", "echo $KIND")["stdout"] == "plain\n"


@pytest.mark.undisturbed
@pytest.mark.modes("root")
@pytest.mark.parametrize("query,accept,reset,status", [
    ("?disconnect=cancel", "application/json", False, "cancelled"), ("?disconnect=cancel", "application/json", True, "cancelled"),
    ("?disconnect=cancel", "text/event-stream", False, "cancelled"), ("?disconnect=cancel", "text/event-stream", True, "cancelled"),
    ("", "application/json", True, "success"), ("", "text/event-stream", True, "success")])
def test_a_client_that_goes_while_its_version_is_asked_for(serve, query, accept, reset, status):
    """O10: its run goes on, or not, as if it had gone a moment later."""
    nap = f"9.{secrets.randbelow(10**9):09d}"
    # The shell's own command line does not hold the word.
    web = serve(DEFINED.replace("echo toy 1", f"sleep ''{nap[0]}''{nap[1:]}; echo toy 1")).web
    body = json.dumps({"language": "toy@1.2", "code": "sleep 20" if status == "cancelled" else "echo $KIND"})
    with socket.create_connection((web.host, web.port), timeout=60) as client:
        client.sendall((f"POST /v1/execute{query} HTTP/1.1\r\nHost: {web.host}:{web.port}\r\nContent-Type: application/json\r\n"
                        f"Accept: {accept}\r\nContent-Length: {len(body)}\r\n\r\n{body}").encode())
        wait_until(lambda: oracle.who_runs(nap))
        if reset:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    # The server has seen that when it answers a later request.
    assert web.get("/healthz").status == 200
    oracle.wake(nap)
    wait_until(lambda: web.get("/v1/executions").json()["executions"], why="it was not taken")
    row, = web.get("/v1/executions").json()["executions"]
    began = time.monotonic()
    result = web.wait(row["id"])
    assert result["status"] == status and time.monotonic() - began < 15, result
    assert result["stdout"] == ("plain\n" if status == "success" else ""), result
