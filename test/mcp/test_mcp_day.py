# SPDX-License-Identifier: Apache-2.0
"""A model's day: ten transcripts of an agent, played over MCP without a model. Each follows what the answers say (ids, suggestions, lines,
pages) and is asserted to its end. No answer puts more than 16 KiB before the model."""
import base64
import json
import time

import pytest

from mcp import LEGACY, HttpDoor, StdioDoor, images_of, model_bytes, text_of
from program import MODES

# What agents see does not depend on the user; forks need root.
pytestmark = pytest.mark.modes(MODES[0])
BUDGET = 16 << 10
TASKS = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
WAYS = {"http-modern": lambda served, bridge: HttpDoor(served.web), "http-legacy": lambda served, bridge: HttpDoor(served.web, LEGACY[0]),
        "stdio-modern": lambda served, bridge: StdioDoor(bridge), "stdio-legacy": lambda served, bridge: StdioDoor(bridge, LEGACY[0])}


class Agent:
    """What a model does: it calls tools and reads what they answer, within its budget."""

    def __init__(self, door):
        self.door = door

    def call(self, name, **arguments):
        result = self.door.check(name, self.door.request("tools/call", {"name": name, "arguments": arguments}, timeout=90))
        assert model_bytes(result) <= BUDGET, (name, arguments, model_bytes(result))
        return result

    def do(self, name, **arguments):
        """What a call that must succeed has to say."""
        result = self.call(name, **arguments)
        assert not result.get("isError"), (name, arguments, result)
        return result["structuredContent"]

    def fails(self, name, **arguments):
        """What a run that must fail says about it."""
        result = self.call(name, **arguments)
        assert result["isError"] is True and text_of(result), result
        return result.get("structuredContent")

    def session(self, language="python", **more):
        return self.do("create_session", language=language, **more)["session_id"]

    def run(self, session, code, **more):
        return self.do("run_in_session", session_id=session, code=code, **more)


@pytest.fixture
def agent(request, served, bridge):
    door = WAYS[request.param](served, bridge)
    yield Agent(door)
    door.close()


def over(*ways):
    return pytest.mark.parametrize("agent", ways, indirect=True)


CSV = "city,month,rain\n" + "".join(f"{city},{month},{20 + 7 * month % 50 + bonus}\n" for city, bonus in (("Oslo", 5), ("Lima", 0), ("Pune", 60))
                                    for month in range(1, 13))


@over("http-modern", "stdio-legacy")
def test_explore_a_csv(agent):
    session = agent.session(files={"data/rain.csv": CSV})
    listed = agent.do("list_files", session_id=session)
    assert [f["path"] for f in listed["files"]] == ["data/rain.csv"] and listed["files"][0]["size"] == len(CSV), listed
    head = agent.do("read_file", session_id=session, path="data/rain.csv", max_lines=3)
    assert "city,month,rain" in head["text"] and head["total_lines"] == 37 and head["next_line"] == 4, head
    wrong = agent.fails("run_in_session", session_id=session, code="import csv\nrows = list(csv.DictReader(open('rain.csv')))")
    assert wrong["error"]["type"] == "FileNotFoundError" and wrong["error"]["line"] == 2, wrong
    agent.run(session, "import csv\nrows = list(csv.DictReader(open('data/rain.csv')))")
    wettest = agent.run(session, "totals = {}\nfor r in rows:\n    totals[r['city']] = totals.get(r['city'], 0) + int(r['rain'])\nmax(totals, key=totals.get)")
    assert wettest["value"] in ("'Pune'", '"Pune"', "Pune"), wettest
    found = agent.do("read_file", session_id=session, path="data/rain.csv", grep="^Oslo,1,", context=1)
    assert found["matches"] == 1 and "Oslo,1," in found["text"], found
    assert agent.do("close_session", session_id=session)["closed"] is True


@over("http-legacy")
def test_plot_it(agent):
    pytest.importorskip("matplotlib")
    session = agent.session(files={"rain.csv": CSV}, limits={"memory": "1g"})
    result = agent.call("run_in_session", session_id=session, timeout=60, code=(
        "import csv, matplotlib\nmatplotlib.use('agg')\nimport matplotlib.pyplot as plt\n"
        "rows = list(csv.DictReader(open('rain.csv')))\n"
        "for city in ('Oslo', 'Pune'):\n    plt.plot([int(r['rain']) for r in rows if r['city'] == city], label=city)\n"
        "plt.legend()\nplt.savefig('rain.png')\nplt.show()"))
    assert not result.get("isError"), text_of(result)
    pictures = images_of(result)
    assert pictures and pictures[0]["mimeType"] == "image/png" and base64.b64decode(pictures[0]["data"])[:8] == b"\x89PNG\r\n\x1a\n", result
    assert result["structuredContent"]["images"] == len(pictures)
    again = agent.call("read_file", session_id=session, path="rain.png")
    assert images_of(again) and base64.b64decode(images_of(again)[0]["data"])[:4] == b"\x89PNG", again
    agent.do("close_session", session_id=session)


@over("http-modern", "stdio-modern")
def test_fix_a_failing_test(agent):
    module = "def mean(values):\n    return sum(values) / len(values)\n"
    tests = ("import unittest\nfrom stats import mean\n\nclass Test(unittest.TestCase):\n    def test_some(self):\n        self.assertEqual(mean([1, 3]), 2)\n"
             "    def test_none(self):\n        self.assertEqual(mean([]), 0)\n\nunittest.main()\n")
    session = agent.session("bash", files={"stats.py": module, "test_stats.py": tests})
    failed = agent.fails("run_in_session", session_id=session, code="python3 test_stats.py")
    assert failed["exit_code"] == 1 and "ZeroDivisionError" in failed["stderr"]["text"] and failed["suggestion"] is not None or failed["summary"], failed
    source = agent.do("read_file", session_id=session, path="stats.py", grep="return")
    assert source["matches"] == 1 and source["first_line"] == 2, source
    written = agent.do("write_file", session_id=session, path="stats.py", content=module.replace("sum(values) /", "values and sum(values) /").replace(
        "return values and sum(values) / len(values)", "return sum(values) / len(values) if values else 0"))
    assert written["size"] > len(module)
    passed = agent.run(session, "python3 test_stats.py")
    assert passed["status"] == "success" and "OK" in passed["stderr"]["text"], passed
    agent.do("close_session", session_id=session)


@over("http-modern", "http-legacy")
def test_hit_a_memory_limit_and_follow_the_suggestion(agent):
    code = "data = bytearray(700 << 20)\nprint(len(data) >> 20)"
    first = agent.fails("execute_code", language="python", code=code)
    assert first["status"] == "execution_error" and first["cause"]["kind"] == "memory", first
    session = agent.session(limits={"memory": "256m"})
    hit = agent.fails("run_in_session", session_id=session, code=code)
    assert hit["status"] in ("limit", "error") and "memory" in (hit["summary"] + hit["suggestion"]).lower() and hit["suggestion"], hit
    asked = agent.do("explain_policy", limits={"memory": "1g"})
    assert asked["allowed"] is True and any(rule["field"] == "limits.memory" for rule in asked["rules"]), asked
    refused = agent.do("explain_policy", limits={"memory": "900g"})
    assert refused["allowed"] is False and "memory" in refused["refusal"], refused
    agent.call("close_session", session_id=session)
    larger = agent.session(limits={"memory": "1g"})
    assert agent.run(larger, code)["stdout"]["text"] == "700\n"
    agent.do("close_session", session_id=larger)


@over("http-modern", "http-legacy", "stdio-modern", "stdio-legacy")
def test_long_job_with_progress_and_cancel(agent):
    door = agent.door
    code = "import time\nfor i in range(600):\n    print('step', i, flush=True)\n    time.sleep(0.1)"
    id = door.start("tools/call", {"name": "execute_code", "arguments": {"language": "python", "code": code, "timeout": 120}}, progress="job")
    first = door.note("notifications/progress", progressToken="job")
    steps = door.until(lambda: [n["params"] for n in door.notes if n["method"] == "notifications/progress"][2:] and
                       [n["params"] for n in door.notes if n["method"] == "notifications/progress"])
    assert all(a["progress"] < b["progress"] for a, b in zip(steps, steps[1:])) and any("step" in s.get("message", "") for s in steps), (first, steps)
    assert all(len(json.dumps(s)) < 2048 for s in steps)
    if isinstance(door, HttpDoor) and door.modern:
        door.hang_up(id)
    else:
        door.notify("notifications/cancelled", {"requestId": id, "reason": "takes too long"})
    newest = agent.do("search_history", limit=1, language="python")["executions"][0]
    end = time.monotonic() + 20
    while (state := agent.call("get_execution", execution_id=newest["execution_id"])["structuredContent"])["status"] in ("running", "queued"):
        assert time.monotonic() < end
        time.sleep(0.05)
    assert state["status"] == "cancelled" and "step 0" in state["stdout"]["text"], state
    assert id not in door.answers


@over("http-modern")
def test_long_job_as_a_task(served, agent):
    """A client that knows tasks gets one instead of waiting, and looks after it."""
    door = agent.door
    arguments = {"language": "bash", "code": "for i in 1 2 3 4; do echo part $i; sleep 0.5; done; echo done", "timeout": 60}
    begun = door.request("tools/call", {"name": "execute_code", "arguments": arguments}, capabilities=TASKS)
    if begun["resultType"] == "complete":  # it ended before it was worth a task
        pytest.fail("a run of two seconds was no task")
    assert begun["resultType"] == "task" and begun["status"] == "working" and "content" not in begun, begun
    end = time.monotonic() + 30
    while (task := door.request("tasks/get", {"taskId": begun["taskId"]}, capabilities=TASKS))["status"] == "working":
        assert time.monotonic() < end, task
        time.sleep(min(task.get("pollIntervalMs", 200), 300) / 1000)
    assert task["status"] == "completed" and task["result"]["structuredContent"]["stdout"].endswith("part 4\ndone\n"), task
    agent.door.check("execute_code", task["result"])
    slow = door.request("tools/call", {"name": "execute_code", "arguments": {**arguments, "code": "sleep 60"}}, capabilities=TASKS)
    door.request("tasks/cancel", {"taskId": slow["taskId"]}, capabilities=TASKS)
    while (task := door.request("tasks/get", {"taskId": slow["taskId"]}, capabilities=TASKS))["status"] == "working":
        assert time.monotonic() < end + 30, task
        time.sleep(0.1)
    assert task["status"] == "cancelled", task


@pytest.mark.skipif(MODES[0] != "root", reason="sessions are forked by root only")
@over("http-modern", "stdio-legacy")
def test_fork_a_session_to_try_three_fixes(agent):
    session = agent.session()
    agent.run(session, "def slug(text):\n    return text.replace(' ', '-')\ncases = {'A b': 'a-b', ' x ': 'x', 'a  b': 'a-b'}")
    bad = agent.run(session, "[k for k, v in cases.items() if slug(k) != v]")
    assert "' x '" in bad["value"] or '" x "' in bad["value"], bad
    copies = [c["session_id"] for c in agent.do("fork_session", session_id=session, count=3)["sessions"]]
    fixes = ["text.strip().replace(' ', '-')", "text.lower().replace(' ', '-')", "'-'.join(text.lower().split())"]
    left = {}
    for copy, fix in zip(copies, fixes):
        left[copy] = agent.run(copy, f"slug = lambda text: {fix}\nlen([k for k, v in cases.items() if slug(k) != v])")["value"]
    good = [copy for copy, n in left.items() if n == "0"]
    assert good == copies[2:], left
    for copy in copies[:2]:
        agent.do("close_session", session_id=copy)
    assert agent.run(good[0], "slug('Hello  World')")["value"].strip("'\"") == "hello-world"
    assert agent.run(session, "slug('A b')")["value"].strip("'\"") == "A-b"  # the original has not changed
    for one in (good[0], session):
        agent.do("close_session", session_id=one)


@over("http-legacy", "stdio-modern")
def test_read_a_50_mb_log_by_grep(agent):
    session = agent.session(limits={"disk": "512m"})
    ran = agent.run(session, timeout=60, code=(
        "import sys\nfor i in range(620000):\n    sys.stdout.write(f'{i:07d} INFO worker {i % 17} handled request in 0.{i % 1000:03d} s, all is well with it here and now\\n')\n"
        "    if i == 314159: sys.stdout.write('0314159 ERROR worker 3: connection reset by peer\\n')"))
    size = ran["stdout"]["bytes"]
    assert size > 50_000_000 and ran["stdout"]["truncated"] is True and "read_output" in ran["stdout"]["text"], ran
    id = ran["execution_id"]
    found = agent.do("read_output", execution_id=id, grep="ERROR", context=2)
    assert found["matches"] == 1 and "connection reset by peer" in found["text"] and "0314158 INFO" in found["text"] and "0314160 INFO" in found["text"], found
    tail = agent.do("read_output", execution_id=id, start_line=-3)
    assert "0619999 INFO" in tail["text"] and tail["next_line"] is None, tail
    middle = agent.do("read_output", execution_id=id, start_line=314160, max_lines=2)
    assert "ERROR" in middle["text"] and middle["first_line"] == 314160, middle
    many = agent.do("read_output", execution_id=id, grep="worker 5 ")
    assert many["matches"] == 36471 and many["next_line"], many
    more = agent.do("read_output", execution_id=id, grep="worker 5 ", start_line=many["next_line"])
    assert more["first_line"] > many["last_line"], (many, more)
    agent.do("close_session", session_id=session)


@over("http-modern", "http-legacy")
def test_find_what_broke_yesterday(agent):
    """From words to an execution, its report as a resource, its files, and a fix."""
    broken = agent.fails("execute_code", language="python", code=(
        "import json\nopen('state.json', 'w').write(json.dumps({'walrus': 3}))\nprint('walrus count')\nstate = {'walrus': 3}\nprint(state['otter'])"))
    assert broken["exit_code"] == 1
    found = agent.do("search_history", text="walrus otter", status="error", limit=5)
    id = found["executions"][0]["execution_id"]
    assert id == broken["execution_id"] and "walrus" in found["executions"][0]["code"], found
    seen = agent.do("get_execution", execution_id=id)
    assert seen["error"]["type"] == "KeyError" and seen["error"]["line"] == 5 and "otter" in seen["error"]["message"], seen
    assert "state['otter']" in json.dumps(seen["error"]), seen
    assert [f["path"] for f in agent.do("list_files", execution_id=id)["files"]] == ["state.json"]
    assert "walrus" in agent.do("read_file", execution_id=id, path="state.json")["text"]
    door = agent.door
    report = door.request("resources/read", {"uri": f"atoll://executions/{id}/report"})["contents"][0]
    assert "KeyError" in report["text"] and len(report["text"]) <= BUDGET, report
    assert door.request("resources/read", {"uri": f"atoll://executions/{id}/stdout"})["contents"][0]["text"] == "walrus count\n"
    prompt = door.request("prompts/get", {"name": "explain_failure", "arguments": {"execution_id": id}})
    assert id in json.dumps(prompt["messages"]) and len(json.dumps(prompt)) <= BUDGET
    completed = door.request("completion/complete", {"ref": {"type": "ref/prompt", "name": "explain_failure"}, "argument": {"name": "execution_id", "value": id[:8]}})
    assert id in completed["completion"]["values"], completed
    assert agent.do("execute_code", language="python", code="print({'walrus': 3}.get('otter', 0))")["stdout"] == "0\n"


@over("http-modern", "stdio-legacy")
def test_learn_what_is_allowed(agent):
    """No network: the refusal names itself, and asking says what would be needed. Then the languages that are there."""
    session = agent.session()
    blocked = agent.fails("run_in_session", session_id=session, code="import socket\nsocket.create_connection(('93.184.216.34', 80), timeout=2)")
    assert blocked["error"]["type"] in ("OSError", "PermissionError", "ConnectionRefusedError", "TimeoutError"), blocked
    asked = agent.do("explain_policy", network="allow:example.com:80")
    assert asked["allowed"] is False and asked["field"] == "network" and asked["refusal"], asked
    unknown = agent.fails("execute_code", language="cobol", code="x")
    assert unknown["stderr"] == "Unsupported language: cobol" and "Supported languages: python" in unknown["error_message"], unknown
    languages = agent.do("list_languages")["languages"]
    by_name = {one["name"]: one for one in languages}
    assert by_name["python"]["available"] and by_name["python"]["sessions"] and len(languages) >= 14, languages
    missing = agent.fails("run_in_session", session_id="se_" + "a" * 26, code="1")
    assert missing is None
    agent.do("close_session", session_id=session)
    after = agent.call("run_in_session", session_id=session, code="1")
    assert after["isError"] and session in text_of(after) or "session" in text_of(after), after
