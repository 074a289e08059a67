# SPDX-License-Identifier: Apache-2.0
"""Settings of the daemon that decide how executions are run and how long they are known."""
import json
import secrets
import time

import pytest

from program import Atoll
from web import Served

MIB = 1 << 20


@pytest.fixture(scope="module")
def place(mode, stage):
    return stage.scratch(mode, "settings")


@pytest.fixture(scope="module")
def served(mode, stage, place):
    """Codomyrmex's file, an adaptive timeout of its own, keys that are soon forgotten, one directory of images."""
    languages = place / "languages.json"
    languages.write_text(json.dumps({
        "python": {"image": "python:3.11-slim", "seccomp_profile": "default.json", "default_memory_mb": 96},
        "python3.10": {"image": "python:3.10-slim", "default_memory_mb": 300, "allow_network": True},
        "python3.11": {"default_memory_mb": 200},
        "cobol": {"default_memory_mb": 16},
        "bash": {"limits": {"timeout": 0.5}},
    }))
    languages.chmod(0o644)
    (place / "images").mkdir()
    served = Served(Atoll(mode, stage), place, "--set", "adaptive.factor=1.5", "--set", "adaptive.min=750ms",
                    "--set", "idempotency=3s", "--set", f"images={place}/images",
                    env={"SANDBOX_LANGUAGE_CONFIG_FILE": str(languages)})
    yield served
    served.end()


def test_memory_of_a_language(served, mode):
    hungry = "b = bytearray(140 << 20); print(len(b))"
    result = served.web.execute("python", hungry)
    if mode == "rootless":  # without a cgroup Python itself finds that there is no more
        assert "MemoryError" in result["stderr"], result
    else:
        assert result["status"] == "limit" and result["cause"]["kind"] == "memory", result
        assert result["cause"]["limit"] == 96 * MIB, result["cause"]
    # What a request says goes before; other languages keep the default.
    assert served.web.execute("python", hungry, limits={"memory": "256m"})["status"] == "success"
    assert served.web.execute("perl", "my $b = 'x' x (140 << 20); print length $b")["status"] == "success"
    # A version's entry counts for who asks for that version.
    assert served.web.execute("python@3.11", hungry)["status"] == "success"
    served.daemon.wait_record("language_config: the entry counts for this version only, not for the language", language="python3.10",
                              of="python", version="3.10")
    served.daemon.wait_record("language_config: there is no such language; the entry has no effect", language="cobol")
    served.daemon.wait_record("language_config: allow_network has no effect, a request asks for its network itself",
                              language="python3.10")


@pytest.mark.undisturbed
def test_timeout_of_a_language(served):
    result = served.web.execute("bash", "sleep 30")
    assert result["status"] == "timeout" and result["duration"] < 10, result
    assert served.web.execute("bash", "sleep 0.7", limits={"timeout": 25})["status"] == "success"


@pytest.mark.undisturbed
def test_adaptive_rules(served):
    new = f"# {secrets.token_hex(8)}\n"  # a program without a past
    body = {"language": "python", "code": new + "import time; time.sleep(0.7)", "limits": {"timeout": "adaptive"}}
    first = served.web.post("/v1/execute", body).json()
    assert first["timeout_chosen"] == {"timeout": 30.0, "reason": "the default: no past runs"}
    second = served.web.post("/v1/execute", body).json()["timeout_chosen"]
    assert 1.05 <= second["timeout"] <= 5, second
    assert second["reason"].startswith("1.5 × the mean of 1 past run"), second
    quick = {"language": "python", "code": new + "print(1)", "limits": {"timeout": "adaptive"}}
    for _ in range(2):
        chosen = served.web.post("/v1/execute", quick).json()["timeout_chosen"]
    assert chosen["timeout"] == 0.75 and chosen["reason"].endswith("at least 0.75 s"), chosen


@pytest.mark.undisturbed
@pytest.mark.brief
def test_keys_are_forgotten(served):
    key = {"Idempotency-Key": f"soon-gone-{secrets.token_hex(8)}"}
    first = served.web.submit("python", "print(1)", headers=key)
    assert served.web.submit("python", "print(1)", headers=key) == first
    answer = served.web.post("/v1/executions", {"language": "python", "code": "print(2)"}, headers=key)
    assert answer.status == 422, answer
    time.sleep(3.1)
    second = served.web.submit("python", "print(2)", headers=key)
    assert second != first
    # The old one's end is not the end of the key.
    served.web.wait(first)
    assert served.web.delete(f"/v1/executions/{first}").status == 200
    assert served.web.submit("python", "print(2)", headers=key) == second


def test_images_from_one_place(served, place):
    for path in ("/etc", f"{place}/images2", f"{place}/images/../state", "/", "images"):
        answer = served.web.post("/v1/execute", {"language": "python", "code": "print(1)", "image": path})
        assert answer.status == 403 and answer.json()["field"] == "image", (path, answer)
        assert "from there" in answer.json()["detail"], answer
    # One that may be named is looked at: there is no runtime in it.
    answer = served.web.post("/v1/execute", {"language": "python", "code": "print(1)", "image": f"{place}/images"})
    assert answer.status == 200 and answer.json()["status"] == "setup_error", answer


@pytest.mark.parametrize("text, words", [
    ("{", "languages.json"),
    ('{"python": {"memory": 5}}', "python.memory"),
    ('{"python": {"default_memory_mb": 0}}', "python.default_memory_mb"),
])
def test_nonsense_is_refused(mode, stage, text, words):
    work = stage.scratch(mode, "nonsense")
    path = work / "languages.json"
    path.write_text(text)
    path.chmod(0o644)
    done = Atoll(mode, stage).run(["serve", "--state-dir", work / "state", "--socket", work / "d.sock", "--listen",
                                   "127.0.0.1:0", "--set", f"language_config={path}"])
    assert done.returncode != 0 and words in done.err and "language" in done.err, done


def test_variables_of_document_004(mode, stage):
    """Each SANDBOX_* variable replaces the matching default, that of execute_code too (doc/atoll.yaml.example)."""
    served = Served(Atoll(mode, stage), stage.scratch(mode, "settings-004"),
                    env={"SANDBOX_DEFAULT_TIMEOUT_SECONDS": "1", "SANDBOX_DEFAULT_MEMORY_LIMIT_MB": "97", "SANDBOX_PID_LIMIT": "7",
                         "SANDBOX_DEFAULT_CPU_QUOTA_PERCENT": "150"})

    def call(code, **more):
        return served.web.post("/v1/tools/execute_code", {"language": "python", "code": code, **more}).json()
    try:
        limits = served.web.get("/v1/limits").json()["limits"]
        shown = {row["key"]: row["default"] for row in limits}
        assert (shown["timeout"], shown["memory"], shown["pids"], shown["cpus"]) == (1, 97 * MIB, 7, 1.5)
        assert call("import time; time.sleep(30)")["error_message"] == "Execution timed out after 1 seconds."
        assert call("print(1)", timeout=20)["stdout"] == "1\n"
        answer = call("b = bytearray(140 << 20)")
        assert answer["status"] == "execution_error", answer
        if mode != "rootless":
            assert answer["cause"]["limit"] == 97 * MIB, answer
    finally:
        served.end()
