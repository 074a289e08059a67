# SPDX-License-Identifier: Apache-2.0
"""The daemon's HTTP interface and the command line beside it: answers that say what to do next."""
import pytest

from web import problem, sse

quick = pytest.mark.quick


@quick
def test_nothing_follows_a_result(web):
    """204: an EventSource that has the result stops. Other clients, and one that lacks the result, get a stream."""
    id = web.submit("bash", "echo one")
    path = f"/v1/executions/{id}/events"
    with web.stream("GET", path) as response:
        events = list(sse(response))
    last, number = events[-1][0], events[-1][2]["seq"]
    for asked in (last, str(number)):
        answer = web.get(path, headers={"Last-Event-ID": asked, "Accept": "text/event-stream"})
        assert (answer.status, answer.body) == (204, b""), answer
        assert web.get(f"{path}?after={asked}").status == 204
        answer = web.get(path, headers={"Last-Event-ID": asked, "Accept": "application/x-ndjson"})
        assert (answer.status, answer.body) == (200, b""), answer
    # The one before it, one that never was, and none.
    for asked, n in ((str(number - 1), 1), ("999", 1), ("", number)):
        with web.stream("GET", path, headers={"Last-Event-ID": asked}) as response:
            got = [data for _, _, data in sse(response)]
        assert len(got) == n and got[-1]["event"] == "result", (asked, got)
    # An execution that runs has an end to come, after any number.
    id = web.submit("bash", "sleep 0.5")
    with web.stream("GET", f"/v1/executions/{id}/events", headers={"Last-Event-ID": "999"}) as response:
        assert [event for _, event, _ in sse(response)][-1] == "result"
    described = web.get("/openapi.json").json()["paths"]["/v1/executions/{id}/events"]["get"]["responses"]
    assert "content" not in described["204"] and "result" in described["204"]["description"]


@quick
@pytest.mark.parametrize("number, code, words", [
    ("NaN", "invalid_field", "limits.timeout: 'NaN' is not a time, in seconds or like \"500ms\" (allowed: 1 ms to 300 s)"),
    ("Infinity", "invalid_field", "limits.timeout: 'Infinity' is not a time, in seconds or like \"500ms\" (allowed: 1 ms to 300 s)"),
    ("NaNs", "invalid_json", "request:1:54: it is not JSON: invalid token near 'NaNs'"),
    ("1e400", "invalid_json", "request:1:55: no number is that large: real number overflow near '1e400'")])
def test_numbers_that_are_none(web, number, code, words):
    body = '{"language":"bash","code":":","limits":{"timeout":%s}}' % number
    answer = web.ask("POST", "/v1/execute", body.encode(), {"Content-Type": "application/json"})
    assert problem(answer, 400, code) == words


@quick
def test_policies_by_name_on_the_command_line(served):
    """A person at a terminal has no use for the name of a route."""
    env = {"ATOLL_URL": f"http://{served.web.host}:{served.web.port}"}
    done = served.daemon.atoll.run(["run", "--policy", "nope", "-l", "bash", "-c", ":"], env=env)
    assert done.returncode == 125 and done.err.count("\n") == 1, done
    assert done.err.startswith("atoll: policy: there is none named 'nope'; the daemon has: ") and "default" in done.err, done
    assert "/v1/" not in done.err and "--policy FILE" in done.err, done
    answer = served.web.post("/v1/execute", {"language": "bash", "code": ":", "policy": "nope"})
    assert "GET /v1/policies" in problem(answer, 400, field="policy")


@quick
def test_an_image_that_is_not_there(served):
    done = served.daemon.atoll.run(["run", "--image", "/nope", "-l", "bash", "-c", ":"])
    assert done.returncode == 125 and done.err == "atoll: --image '/nope' cannot be opened (No such file or directory); " \
        "give a directory that holds a root file system (usr, bin, lib)\n", done
