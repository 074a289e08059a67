# SPDX-License-Identifier: Apache-2.0
"""Values that are too large for a result: null there, said so, and whole at GET /v1/executions/{id}/value."""
import json

import pytest

from live import Session
from web import problem

LARGE = 9_000_000  # characters; up to 8 MiB are in the result


@pytest.mark.parametrize("language, code, value", [
    ("python", f"'ä' * {LARGE}", "ä" * LARGE),
    ("python", "list(range(400_000))", list(range(400_000))),
    ("javascript", f"'ä'.repeat({LARGE})", "ä" * LARGE),
    ("javascript", "Array.from({length: 400000}, (_, i) => i)", list(range(400_000))),
    ("ruby", f"'ä' * {LARGE}", "ä" * LARGE),
    ("ruby", "(0...400_000).to_a", list(range(400_000))),
], ids=["python-text", "python-list", "javascript-text", "javascript-list", "ruby-text", "ruby-list"])
def test_a_large_value(served, language, code, value):
    with Session(served.web, language=language) as session:
        result = session.run(code)
        assert result["status"] == "success" and result["value"] is None and result["value_truncated"] is True, str(result)[:2000]
        answer = served.web.get(f"/v1/executions/{result['id']}/value")
        assert answer.status == 200 and answer.headers["content-type"] == "application/json"
        assert len(answer.body) == result["value_bytes"] and json.loads(answer.body) == value
        part = served.web.get(f"/v1/executions/{result['id']}/value", headers={"Range": "bytes=3-7"})
        assert part.status == 206 and part.body == answer.body[3:8]
        # The session goes on, and the value is the execution's.
        assert session.value("1") == 1
    assert served.web.get(f"/v1/executions/{result['id']}/value").body == answer.body


def test_small_values_are_there_too(served):
    with Session(served.web) as session:
        result = session.run("{'a': [1, 2.5, None]}")
        assert result["value_truncated"] is False and "value_bytes" not in result
        assert served.web.get(f"/v1/executions/{result['id']}/value").json() == {"a": [1, 2.5, None]}
        nothing = session.run("None")
        assert served.web.get(f"/v1/executions/{nothing['id']}/value").json() is None
    problem(served.web.get("/v1/executions/ex_aaaaaaaaaaaaaaaaaaaaaaaaaa/value"), 404)


def test_a_text_that_stands_for_a_value(served):
    """What JSON cannot hold is told as its repr; a long one is whole elsewhere."""
    with Session(served.web) as session:
        session.run("class Loud:\n    def __init__(self, n): self.n = n\n    def __repr__(self): return 'loud ' * self.n")
        assert session.run("Loud(2)")["value"] == "loud loud "
        result = session.run("Loud(500_000)")
        assert result["value"] is None and result["value_truncated"] and result["value_repr"].startswith("loud loud"), str(result)[:500]
        assert served.web.get(f"/v1/executions/{result['id']}/value").json() == "loud " * 500_000


def test_a_value_beyond_every_bound(served):
    with Session(served.web, limits={"output_total": "10m"}) as session:
        result = session.run("'x' * 12_000_000")
        assert result["value_truncated"] and result["value"] is None and result["value_bytes"] > 12_000_000, str(result)[:500]
        refused = served.web.get(f"/v1/executions/{result['id']}/value")
        assert refused.status == 404 and "output_total" in refused.json()["detail"], refused
        assert session.value("2") == 2


def test_eval_of_one_program(served):
    result = served.web.post("/v1/execute", {"language": "python", "code": f"'x' * {LARGE}", "eval": True}).json()
    assert result["value"] is None and result["value_truncated"], str(result)[:500]
    assert served.web.get(f"/v1/executions/{result['id']}/value").json() == "x" * LARGE


def test_a_value_goes_with_its_execution(served):
    with Session(served.web) as session:
        id = session.run(f"'x' * {LARGE}")["id"]
    assert served.web.delete(f"/v1/executions/{id}").status in (200, 204)
    problem(served.web.get(f"/v1/executions/{id}/value"), 404)
