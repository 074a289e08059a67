# SPDX-License-Identifier: Apache-2.0
"""The state directory, the settings, the policies and the tokens of an older daemon, which was killed under load, serve today's one.

df9aa16.tar.xz was made by make.py from commit df9aa16; `told.json` in it has what clients were told then. An answer may have more
fields now, and what it had, it still has.
"""
import hashlib
import json
import shutil
import subprocess
from pathlib import Path

import pytest

import contract
import oracle
from daemon import Daemon
from oracle import IS_ROOT, NOBODY
from program import Atoll, plain_mode
from web import Web

HERE = Path(__file__).resolve().parent
OPERATOR = "operator-token-of-the-fixture"
# An explanation is made when it is asked for: of an answer that is wrong, today's says more.
EXPLAINED = ("error_type", "error_message", "message", "category", "suggestion", "analysis")


class Upgraded:
    """Today's daemon over that state directory."""

    def __init__(self, mode, stage):
        self.place = stage.scratch(mode, "upgraded")
        keep = ["--same-owner"] if plain_mode(mode) == "root" else ["--no-same-owner"]
        subprocess.run(["tar", "-C", self.place, *keep, "-xJf", HERE / "df9aa16.tar.xz"], check=True)
        self.told = json.loads((self.place / "told.json").read_text())
        for name in ("languages.json", "tokens", "secrets"):
            shutil.copy(HERE / name, self.place)
            (self.place / name).chmod(0o600)
        (self.place / "languages.json").chmod(0o644)
        (self.place / "images").mkdir()
        (self.place / "atoll.yaml").write_text((HERE / "atoll.yaml").read_text().replace("HERE", str(self.place)))
        shutil.copytree(HERE / "policies", self.place / "policies", dirs_exist_ok=True)
        if mode == "rootless" and IS_ROOT:
            subprocess.run(["chown", "-hR", f"{NOBODY}:{NOBODY}", self.place], check=True)
        self.atoll = Atoll(mode, stage)
        # As the old one had it, but for the slots: what waits shall not take long.
        self.daemon = Daemon(self.atoll, self.place, "--config", self.place / "atoll.yaml", "--running", "6")
        oracle.KEPT.add(self.daemon.pid)

    def web(self, token):
        return Web(self.daemon.host, self.daemon.port, token)

    def end(self):
        oracle.KEPT.discard(self.daemon.pid)
        assert self.daemon.end() == 0


@pytest.fixture(scope="module")
def upgraded(mode, stage):
    """Results are kept as they were written: one of then lacks fields that /openapi.json promises of today's."""
    learned, contract.learned = contract.learned, None
    upgraded = Upgraded(mode, stage)
    yield upgraded
    contract.learned = learned
    upgraded.end()
    shutil.rmtree(upgraded.place)


def missing(old, new, at=""):
    """Where `new` lacks or changes what `old` has; new fields are fine."""
    if isinstance(old, dict) and isinstance(new, dict):
        return [row for key in old for row in (missing(old[key], new[key], f"{at}.{key}") if key in new else [f"{at}.{key} is gone"])]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [row for i, (a, b) in enumerate(zip(old, new)) for row in missing(a, b, f"{at}[{i}]")]
    return [] if old == new else [f"{at}: {old!r} is {new!r}"]


def digest(data):
    return hashlib.sha256(data if isinstance(data, bytes) else data.encode()).hexdigest()


def ask_again(upgraded, row):
    """What today's answer lacks of one of then."""
    answer = upgraded.web(row["token"]).get(row["path"], headers={"Accept": row["accept"]} if row["accept"] else {})
    if answer.status != row["status"]:
        return [repr(answer)]
    if "json" in row:
        old, new = row["json"], answer.json()
        if row["path"].endswith(("/analysis", "/debug-report")) and new.get("error_type") == "wrong_answer":
            assert new.get("message", new.get("error_message")) == "test 2: wrong_answer", new
            old = {key: old[key] for key in old if key not in EXPLAINED}
        return missing(old, new)
    if "sha256" in row:
        return missing([row["sha256"], row["size"]], [digest(answer.body), len(answer.body)])
    lines = [json.loads(line) for line in answer.body.splitlines()]
    for line in lines:
        if line["event"] in ("stdout", "stderr"):
            line["data"] = digest(line["data"])
    return missing(row["lines"], lines)


def test_all_answers_are_as_they_were(upgraded):
    """Results, requests, outputs, files, events, analyses, reports, lists, comparisons, limits."""
    wrong = {row["path"]: found for row in upgraded.told["answers"] if (found := ask_again(upgraded, row))}
    assert not wrong, json.dumps(wrong, indent=1)[:20000]


def test_each_result_that_a_client_has_is_the_result(upgraded):
    for id, row in upgraded.told["results"].items():
        assert not missing(row["json"], upgraded.web(row["token"]).state(id))


def test_what_was_accepted_ends(upgraded):
    """The queue of then is run now; what ran then is interrupted, and is not run twice."""
    told, ended, counted = upgraded.told, {}, {}
    for id, row in told["accepted"].items():
        result = ended[id] = upgraded.web(row["token"]).wait(id)
        assert result["status"] == "interrupted" or "labels" not in row["body"] or result["status"] == "success", result
    for id, row in list(told["accepted"].items()) + list(told["results"].items()):
        result = ended.get(id) or row["json"]
        if "counted" in (row.get("body") or {}).get("code", "") or result["stdout"] == "counted\n":
            counted.setdefault(row["token"], []).append(result["status"])
    statuses = [result["status"] for result in ended.values()]
    assert statuses.count("interrupted") <= 8, statuses  # it had two slots
    for row in told["running"]:
        assert upgraded.web(row["token"]).state(row["id"])["status"] == "interrupted"
    for token, statuses in counted.items():
        files = int(upgraded.web(token).execute("bash", "ls /workspace | wc -l", workspace="tally")["stdout"])
        assert statuses.count("success") <= files <= statuses.count("success") + statuses.count("interrupted"), (files, statuses)


def test_keys_name_what_they_named(upgraded):
    for row in upgraded.told["keys"]:
        web, headers = upgraded.web(row["token"]), {"Idempotency-Key": row["key"]}
        again = web.post("/v1/executions", row["body"], headers=headers)
        assert again.status == 202 and again.json()["id"] == row["id"], (row, again)
        assert web.post("/v1/executions", {**row["body"], "args": ["another"]}, headers=headers).status == 422


def test_workspaces_have_their_files(upgraded):
    for token in {row["token"] for row in upgraded.told["keys"]}:
        code = "cat /workspace/kept.txt /workspace/d/two; echo now >/workspace/now"
        result = upgraded.web(token).execute("bash", code, workspace="course")
        assert (result["status"], result["stdout"]) == ("success", "one\nthree\ntwo\n"), result
        answer = upgraded.web(token).post("/execute", {"generated_code": "print(open('nemo.txt').read())", "timeout": 20})
        assert answer.json() == {"process_status": "completed", "stdout": "nemo\n", "stderr": ""}, answer


def test_callers_are_who_they_were(upgraded):
    alice, bob = ({row["id"] for row in upgraded.told["keys"] if row["token"].startswith(name)} for name in ("alice", "bob"))
    assert alice and bob
    by_bob = upgraded.web(upgraded.told["running"][0]["token"].replace("alice", "bob"))
    assert {by_bob.get(f"/v1/executions/{id}").status for id in alice} == {404}
    assert upgraded.web("of nobody").get("/v1/executions").status == upgraded.web(None).get("/v1/executions").status == 401
    assert by_bob.get("/metrics").status == 403 and upgraded.web(OPERATOR).get("/metrics").status == 200


def test_policies_apply_as_they_did(upgraded):
    web = upgraded.web(upgraded.told["running"][0]["token"])
    listed = {policy["name"]: policy for policy in web.get("/v1/policies").json()["policies"]}
    assert listed["team"]["limits"]["defaults"]["memory"] == 96 << 20, listed["team"]
    for name, then in upgraded.told["policies"].items():
        answer = web.post("/v1/execute", {"language": "python", "code": "print(6 * 7)", "policy": name})
        assert not missing(then, {"status": answer.status, **{key: answer.json().get(key) for key in ("code", "stdout")}}), (name, answer)


def test_sessions_begin_anew(upgraded):
    """A live interpreter does not outlive its daemon. What its executions printed does (see above)."""
    for row in upgraded.told["sessions"]:
        web = upgraded.web(row["token"])
        assert web.get(f"/v1/sessions/{row['id']}").status == 404
    session = web.post("/v1/sessions", {"language": "python", "name": "alice-session"}).json()["id"]
    assert web.post(f"/v1/sessions/{session}/execute", {"code": "6 * 7"}).json()["value"] == 42
    assert web.delete(f"/v1/sessions/{session}").status == 204


def test_nothing_was_put_aside_or_complained_about(upgraded):
    assert not list((upgraded.place / "state" / "history").glob("*damaged*"))
    loud = [record for record in upgraded.daemon.records if record.get("level") in ("warning", "error")]
    assert not loud and not upgraded.daemon.other, (loud, upgraded.daemon.other)


def test_settings_are_accepted_as_they_are(upgraded):
    done = upgraded.atoll.run(["serve", "--config", upgraded.place / "atoll.yaml", "--state-dir", upgraded.place / "other",
                               "--socket", upgraded.place / "other.sock", "--check"])
    assert done.returncode == 0, done
    shown = done.out + done.err
    for word in ("team", "df9aa16-pure"):
        assert word in shown, shown
