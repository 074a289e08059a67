# SPDX-License-Identifier: Apache-2.0
"""Many executions in one request: POST /v1/executions:batch, GET /v1/executions?ids=."""
import pytest

from program import Atoll
from web import GROWTH, Served, Web, problem


@pytest.fixture(scope="module")
def served(mode, stage):
    served = Served(Atoll(mode, stage), stage.scratch(mode, "served"), env={"ATOLL_QUEUE_PER_CALLER": "5"},
                    listen=("127.0.0.1:0", "127.0.0.2:6000"))
    yield served
    served.end()


def batch(web, requests, **headers):
    return web.post("/v1/executions:batch", {"executions": requests}, headers=headers)


def test_each_job_is_accepted_on_its_own(web):
    answer = batch(web, [{"language": "python", "code": "print(6 * 7)"}, {"language": "nonesuch", "code": ""}, {"code": 3}])
    assert answer.status == 202 and len(answer.json()["executions"]) == 3, answer
    ids = [item["id"] for item in answer.json()["executions"]]
    assert web.wait(ids[0])["stdout"] == "42\n"
    # A request that is wrong is a result of its job, as it is for a single one.
    assert [web.wait(id)["status"] for id in ids[1:]] == ["setup_error", "setup_error"]

    many = web.get("/v1/executions?ids=" + ",".join([ids[1], "ex_" + "a" * 26, ids[0]])).json()["executions"]
    assert many[0] == web.state(ids[1]) and many[2] == web.state(ids[0])
    assert many[1]["id"] == "ex_" + "a" * 26 and many[1]["problem"]["status"] == 404, many[1]
    problem(web.get("/v1/executions?ids=a&limit=1"), 400, "invalid_field", "ids")
    problem(web.get("/v1/executions?ids=" + ",".join("a" * 101)), 400, "invalid_field", "ids")


def test_large_results_are_read_alone(web, served):
    ids = [web.execute("bash", "head -c 6000000 /dev/zero | tr '\\0' x", limits={"output": "8m"})["id"] for _ in range(3)]
    many = web.get("/v1/executions?ids=" + ",".join(ids)).json()["executions"]
    assert [item.get("stdout_bytes") for item in many] == [6000000, 6000000, None]
    assert many[2]["id"] == ids[2] and many[2]["problem"]["code"] == "too_large"

    before = served.daemon.memory("front")
    for _ in range(10):
        assert web.get("/v1/executions?ids=" + ",".join(ids)).status == 200
    assert served.daemon.memory("front") - before < GROWTH


def test_a_repeated_batch(web):
    jobs = [{"language": "bash", "code": f"echo {i}"} for i in range(3)]
    key = {"Idempotency-Key": "k" * 255}
    first = [item["id"] for item in batch(web, jobs, **key).json()["executions"]]
    again = batch(web, [*jobs[:2], {"language": "bash", "code": "echo other"}], **key).json()["executions"]
    assert [item.get("id") for item in again] == [*first[:2], None]
    assert again[2]["problem"]["code"] == "idempotency_mismatch", again
    # Jobs of a batch have keys of their own: none of them is the key that was sent.
    alone = web.post("/v1/executions", jobs[0], headers=key)
    assert alone.status == 202 and alone.json()["id"] not in first
    for id in [*first, alone.json()["id"]]:
        web.wait(id)


def test_the_queue_takes_a_part(web):
    answer = batch(web, [{"language": "bash", "code": "sleep 0.1"}] * 100)
    items = answer.json()["executions"]
    accepted = [item["id"] for item in items if "id" in item]
    refused = [item["problem"]["code"] for item in items if "id" not in item]
    assert answer.status == 202 and 5 <= len(accepted) < 100 and set(refused) == {"queue_full"}, items
    assert int(answer.headers["retry-after"]) >= 1
    for id in accepted:
        web.delete(f"/v1/executions/{id}")


@pytest.mark.parametrize("body", [[], {}, {"executions": []}, {"executions": {}}, {"executions": [{}], "key": 1},
                                  {"executions": [{"language": "bash", "code": ""}] * 101}])
def test_bodies_that_are_no_batch(web, body):
    problem(web.post("/v1/executions:batch", body), 400, "invalid_field", "executions")


def test_what_is_no_request_is_no_job(web):
    """A job that is wrong ends in a result; there is none about a number."""
    items = batch(web, [7, None, [], "x", {"language": "bash", "code": "echo 1"}]).json()["executions"]
    said = [item["problem"]["detail"] for item in items[:4]]
    assert said == [f"the request is {what}, not an object" for what in ("7", "null", "a list", "'x'")], items
    assert web.wait(items[4]["id"])["stdout"] == "1\n"
    problem(web.post("/v1/executions", []), 400, "invalid_request")


def test_a_batch_that_is_too_large(web):
    body = b'{"executions": [{"language": "bash", "code": "' + b"x" * (80 << 20) + b'"}]}'
    problem(web.ask("POST", "/v1/executions:batch", body, {"Content-Type": "application/json"}), 413, "body_too_large")


def test_both_streams_in_one_pipe(web):
    code = "import sys\nfor i in range(3):\n    print(i, flush=True)\n    print(-i, file=sys.stderr)\n1 / 0"
    result = web.execute("python", code, merge_stderr=True)
    assert result["stdout"].startswith("0\n0\n1\n-1\n2\n-2\nTraceback") and result["stderr"] == "", result
    assert result["stderr_bytes"] == 0 and result["error"]["type"] == "ZeroDivisionError", result
    assert web.get(f"/v1/executions/{result['id']}/analysis").json()["exception"] == "ZeroDivisionError"
    compiled = web.execute("c", "int main(", merge_stderr=True)
    assert "error" in compiled["stdout"] and compiled["stderr"] == "" and compiled["error"]["line"] == 1, compiled


def test_the_port_of_document_002(served):
    """Its clients look for these headers in every answer; other ports send them with /execute only."""
    for path in ("/", "/nowhere", "/v1/limits"):
        answer = Web("127.0.0.2", 6000).get(path)
        assert answer.headers["strict-transport-security"] and answer.headers["x-xss-protection"] == "1; mode=block", answer
        assert "strict-transport-security" not in served.web.get(path).headers
