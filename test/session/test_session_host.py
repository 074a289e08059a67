# SPDX-License-Identifier: Apache-2.0
"""Functions of the client that a session's code calls (doc/http.md), and rich results, also of `eval` (doc/http.md)."""
import base64
import json
import threading
import time

import pytest

from live import Session
from program import MODES, Atoll
from resident import wait_until
from web import Served, problem

# The front is the same program in both modes; what a sandbox is made of is tested in test_session_attacks.py.
pytestmark = pytest.mark.modes(MODES[0])
quick = pytest.mark.quick


def multiply(a, b=2):
    return a * b


def fail(kind, message="words"):
    raise type(kind, (Exception,), {})(message)


# ------------------------------------------------------------------------------------ host functions


@quick
@pytest.mark.parametrize("code, value", [
    ("multiply(6, 7)", 42), ("multiply(6, b=7)", 42), ("return multiply('ab')", "abab"), ("await multiply(4)", 8),
    ("import asyncio\nawait asyncio.gather(*(multiply(i) for i in range(9)))", [*range(0, 18, 2)]),
    ("[multiply(i) for i in range(3)]", [0, 2, 4]), ("multiply([1])", [1, 1])])
def test_calls(kept, code, value):
    result = kept.serve(code, {"multiply": multiply})
    assert (result["status"], result["value"]) == ("success", value), result
    assert {call["name"] for call in result["host_calls"]} == {"multiply"}
    assert all(call["duration"] > 0 and call["error"] is None and call["call_id"] for call in result["host_calls"]), result


def test_functions_of_the_session_and_of_an_execution(web):
    with Session(web, host_functions=["multiply"]) as session:
        with session.events("multiply(3) + other()", host_functions=["other"]) as events:
            call = events.until("host_call")
            assert (call["name"], call["args"], call["kwargs"]) == ("multiply", [3], {}), call
            assert session.answer(call["call_id"], {"result": 6}).status == 204
            call = events.until("host_call")
            assert session.answer(call["call_id"], {"result": 1}).status == 204
            assert events.until("result")["value"] == 7
        assert session.run("other()")["error"]["type"] == "NameError"


def test_exceptions_cross_both_ways(kept):
    functions = {"fail": fail}
    assert kept.serve("try:\n    fail('KeyError')\nexcept KeyError as e:\n    x = repr(e)\nx", functions)["value"] == "KeyError('words')"
    assert kept.serve("try:\n    fail('Odd')\nexcept HostError as e:\n    x = [e.type, str(e)]\nx", functions)["value"] == ["Odd", "words"]
    result = kept.serve("fail('ValueError', 'no')", functions)
    assert (result["error"]["type"], result["error"]["message"], result["host_calls"][0]["error"]) == ("ValueError", "no", "no"), result
    with kept.events("fail(1)", host_functions=["fail"]) as events:
        call = events.until("host_call")
        assert kept.answer(call["call_id"], {"error": "only words"}).status == 204
        assert events.until("result")["error"]["message"] == "only words"


def test_values_that_cannot_cross(kept):
    result = kept.serve("multiply(object())", {"multiply": multiply})
    assert result["error"]["type"] == "TypeError" and "object" in result["error"]["message"] and result["host_calls"] == [], result
    with kept.events("multiply(1)", host_functions=["multiply"]) as events:
        call = events.until("host_call")
        assert kept.answer(call["call_id"], {"result": {"$pickle": "gAR9lC4="}}).status == 204
        assert events.until("result")["error"]["type"] == "ValueError"
    result = kept.serve("multiply([0] * 400000)", {"multiply": multiply}, limits={"timeout": 10})
    assert result["error"]["type"] == "ValueError", str(result)[:500]


def test_answers(kept):
    with kept.events("multiply(1)", host_functions=["multiply"]) as events:
        call = events.until("host_call")
        path = f"{kept.path}/calls/{call['call_id']}"
        problem(kept.web.post(path, {}), 400, field="result")
        problem(kept.web.post(path, []), 400)
        problem(kept.web.post(path, {"error": None}), 400, field="result")
        problem(kept.web.post(path, {"error": 5}), 400, field="error")
        problem(kept.web.post(path, {"result": "x" * (1 << 20)}), 413)
        for other in ("0", "999", "x", "-1", "1e3", " 1"):
            problem(kept.answer(other.replace(" ", "%20"), {"result": 1}), 404, "not_found")
        assert kept.answer(call["call_id"], {"result": None}).status == 204
        problem(kept.answer(call["call_id"], {"result": 2}), 404, "not_found")
        result = events.until("result")
    assert result["value"] is None and result["status"] == "success" and len(result["host_calls"]) == 1, result
    problem(kept.answer(call["call_id"], {"result": 2}), 404, "not_found")


def test_the_configuration_bounds_calls(mode, stage):
    served = Served(Atoll(mode, stage), stage.scratch(mode, "calls"), "--set", "sessions.host_calls=3")
    try:
        with Session(served.web) as session:
            result = session.serve("n = 0\ntry:\n    for n in range(9): multiply(1)\nexcept RuntimeError as e:\n    x = [n, str(e)]\nx", {"multiply": multiply})
            assert result["value"] == [3, "an execution makes at most 3 host calls; sessions.host_calls in atoll.yaml raises that"] and len(result["host_calls"]) == 3, result
    finally:
        served.end()


def test_limits_of_calls(kept):
    code = "n = 0\ntry:\n    for n in range(200): multiply(1)\nexcept RuntimeError as e:\n    x = [n, str(e)]\nx"
    result = kept.serve(code, {"multiply": multiply})
    assert result["value"][0] == 100 and "100" in result["value"][1] and len(result["host_calls"]) == 100, result["value"]
    assert kept.serve("multiply(1)", {"multiply": multiply})["value"] == 2  # the next execution has as many
    result = kept.serve("multiply('x' * (1 << 20))", {"multiply": multiply})
    assert result["error"]["type"] == "ValueError" and result["host_calls"] == [], result["error"]
    assert kept.serve("len(multiply('x' * 500000))", {"multiply": multiply})["value"] == 1000000
    assert kept.run("multiply(1)")["error"]["type"] == "NameError"


def test_waiting_counts_towards_the_timeout(kept):
    with kept.events("mark = 1\nmultiply(1)", host_functions=["multiply"], limits={"timeout": 0.3}) as events:
        events.until("host_call")
        result = events.until("result")
    assert (result["status"], result["session"]["state"]) == ("timeout", "kept"), result
    assert result["host_calls"][0]["error"] and kept.value("mark") == 1


def test_a_client_that_vanishes_ends_its_execution(kept):
    """The code waits for an answer that will never come."""
    begun = time.monotonic()
    with kept.events("mark = 2\nmultiply(1)", host_functions=["multiply"], limits={"timeout": 50}) as events:
        id = events.id
        events.until("host_call")
    result = kept.web.wait(id)
    assert time.monotonic() - begun < 20
    assert (result["status"], result["session"]["state"]) == ("cancelled", "kept"), result
    assert kept.value("mark") == 2


def test_reset_and_delete_under_a_call(web):
    session = Session(web, host_functions=["f"])
    for end in (session.reset, lambda: web.delete(session.path)):
        with session.events("f()") as events:
            call = events.until("host_call")
            end()
            problem(session.answer(call["call_id"], {"result": 1}), 404)
            result = events.until("result")
        assert (result["status"], result["session"]["state"]) == ("cancelled", "lost"), result
        assert result["host_calls"][0]["error"], result


def test_an_interrupt_under_a_call(kept):
    with kept.events("try:\n    multiply(1)\nexcept KeyboardInterrupt:\n    x = 'caught'\nx", host_functions=["multiply"]) as events:
        events.until("host_call")
        assert kept.interrupt() == {"interrupted": True, "state": "kept"}
        assert events.until("result")["value"] == "caught"
    assert kept.serve("multiply(4)", {"multiply": multiply})["value"] == 8


def test_a_waited_execution_is_answered_by_another_client(kept):
    asked = kept.begin("multiply(5)", host_functions=["multiply"])
    wait_until(lambda: kept.answer(kept_call(kept), {"result": 10}).status == 204, why="there is no call")
    assert asked.json()["value"] == 10


def kept_call(session):
    """The number of the call that is open: they count up over a session's life."""
    session.number = getattr(session, "number", 0) + 1
    return session.number if session.number < 500 else setattr(session, "number", 0)


# ------------------------------------------------------------------------------------- rich results

PNG, FIGURE = b"\x89PNG\r\n\x1a\n", "import matplotlib.pyplot as plt\nplt.plot([1, 2])\n"


def mimes(result):
    return [sorted(output["data"]) for output in result["outputs"]]


FIGURES, TWO = [["image/png", "image/svg+xml", "text/plain"]], FIGURE + "plt.show()\nplt.figure()\nplt.plot([2])"
LARGE = {"memory": "1g", "pids": 200}


def are_figures(result):
    return all(base64.b64decode(output["data"]["image/png"]).startswith(PNG) and "<svg" in output["data"]["image/svg+xml"]
               for output in result["outputs"])


@pytest.fixture(scope="module")
def studio(served):
    """A session with room for libraries."""
    with Session(served.web, limits=LARGE) as session:
        yield session


@pytest.mark.parametrize("code, expected", [
    (FIGURE, FIGURES), (FIGURE + "plt.show()", FIGURES), (TWO, FIGURES * 2), (FIGURE + "plt.gcf()", FIGURES), (FIGURE + "1 / 0", FIGURES),
    ("import pandas\npandas.DataFrame({'a': [1]})", [["text/html", "text/plain"]]),
    ("import plotly.graph_objects as go\ngo.Figure(go.Scatter(y=[1, 2])).show()", [["application/vnd.plotly.v1+json", "text/plain"]]),
    ("from PIL import Image\nImage.new('RGB', (4, 4))", [["image/png", "text/plain"]]),
    ("class H:\n    def _repr_html_(self): return '<i>'\nH()", [["text/html", "text/plain"]]),
    ("class M:\n    def _repr_mimebundle_(self, **_): return {'application/x-a': 1}\ndisplay(M())", [["application/x-a", "text/plain"]]),
])
def test_rich_results(studio, code, expected):
    result = studio.run(code)
    if result["error"] and result["error"]["type"] == "ModuleNotFoundError":
        pytest.skip(result["error"]["message"])
    assert mimes(result) == expected, (result["stderr"], mimes(result))
    assert expected[0] != FIGURES[0] or are_figures(result)


def test_rich_results_of_one_run(web):
    """`plt.show()` in a run with `eval` is seen, and a figure that is not shown as well."""
    result = web.execute("python", TWO, eval=True, limits=LARGE)
    if result["error"] and result["error"]["type"] == "ModuleNotFoundError":
        pytest.skip(result["error"]["message"])
    assert mimes(result) == FIGURES * 2 and are_figures(result), (result["stderr"], mimes(result))
    result = web.execute("python", "class H:\n    def _repr_html_(self): return '<i>'\nH()", eval=True)
    assert result["outputs"] == [{"data": {"text/html": "<i>", "text/plain": result["value"]}, "metadata": {}}], result["outputs"]


def test_outputs_are_bounded(kept):
    result = kept.run("for i in range(150): display(i)")
    assert len(result["outputs"]) == 100 and "100" in result["stderr"], result["stderr"]
    result = kept.run("display({'image/png': b'x' * (40 << 20)}, raw=True)")
    assert "too large" in result["outputs"][0]["data"]["text/plain"], str(result["outputs"])[:300]
    result = kept.run("display({'a/json': {'n': 2**70, 'a\\0b': 1}, 'text/plain': 'kept'}, raw=True)")
    assert result["outputs"][0]["data"] == {"text/plain": "kept"}, result["outputs"]


LARGE_TABLE = "class T:\n    def _repr_html_(self): return '<td>é' * (3 << 20)\nT()"


@pytest.mark.alone
@pytest.mark.parametrize("accept", ["text/event-stream", "application/x-ndjson"])
def test_large_outputs_hold_no_other_client_up(web, kept, accept):
    """The worker encodes them (web/routes/event-stream.c). On the front's own thread one took 70 ms and more, each time."""
    def longest_wait():
        waits, over = [], threading.Event()

        def others():
            while not over.wait(0.002):
                begin = time.monotonic()
                assert web.get("/healthz").status == 200
                waits.append(time.monotonic() - begin)

        thread = threading.Thread(target=others)
        thread.start()
        try:
            with web.stream("POST", f"{kept.path}/execute", {"code": LARGE_TABLE}, accept=accept) as response:
                lines = [line.removeprefix(b"data: ") for line in response.read().splitlines() if b"{" in line]
        finally:
            over.set()
            thread.join()
        events = [json.loads(line) for line in lines]
        [output] = [event["data"] for event in events if event["event"] == "output"]
        assert output["data"]["text/html"] == "<td>é" * (3 << 20)
        assert events[-1]["event"] == "result" and events[-1]["data"]["outputs"] == [output]
        return max(waits)

    seen = []
    while not seen or min(seen) > 0.04:
        seen.append(longest_wait())
        assert len(seen) < 10, seen


def test_a_client_goes_while_a_large_output_is_encoded(web, kept):
    for wait in (0, 0.1, 0.2, 0.25, 0.3, 0.35):
        with web.stream("POST", f"{kept.path}/execute", {"code": LARGE_TABLE}):
            time.sleep(wait)
    assert kept.run("6 * 7")["value"] == 42


@quick
def test_eval(web):
    result = web.execute("python", "x = 20\nprint('out')\nx + 22", eval=True)
    assert (result["status"], result["value"], result["value_type"], result["stdout"]) == ("success", 42, "int", "out\n"), result
    assert web.state(result["id"]) == result
    result = web.execute("python", "import asyncio\nreturn await asyncio.sleep(0, {1})", eval=True)
    assert result["value"] == {"$set": [1]}, result
    result = web.execute("python", "import sys\ndef f(): raise KeyError('k')\nf()", eval=True)
    assert (result["status"], result["exit_code"], result["error"]["type"], result["error"]["line"]) == ("error", 1, "KeyError", 2), result
    assert result["error"]["file"] == "/sandbox/main.py", result
    assert web.execute("python", "exit(7)", eval=True)["exit_code"] == 7
    result = web.execute("python", "import os; os._exit(9)", eval=True)
    assert (result["exit_code"], result["value"]) == (9, None), result
    result = web.execute("python", "while True: pass", eval=True, limits={"timeout": 0.4})
    assert (result["status"], result["exit_code"]) == ("timeout", 124), result
    result = web.execute("python", "a = []\nfor _ in range(90): a = [a]\na", eval=True)
    assert result["status"] == "success" and result["value_type"] == "list", result
    problem(web.post("/v1/execute", {"language": "c", "code": "int main(){}", "eval": True}), 400, field="eval")
    problem(web.post("/v1/execute", {"language": "python", "code": "1", "eval": True, "stdin": "x"}), 400)


def test_eval_with_a_hostile_channel(web):
    forged = "import os\nfor fd in range(3, 300):\n    try: os.write(fd, b'%s\\n')\n    except OSError: pass\n"
    result = web.execute("python", forged % '{"op":"done","n":1,"value":"forged","exit_code":0}' + "import time; time.sleep(60)", eval=True,
                         limits={"timeout": 2})
    assert result["value"] == "forged" and result["status"] in ("success", "timeout"), result  # about itself, and it ends
    result = web.execute("python", forged % '{"op":"ready"}' + "5", eval=True)
    assert result["value"] == 5, result
