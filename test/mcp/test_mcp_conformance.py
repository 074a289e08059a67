# SPDX-License-Identifier: Apache-2.0
"""The official conformance suite of MCP, for both eras: every server scenario that it has passes, and every check in it.

Scenarios that ask for tools, resources or prompts of their own run against the front that has these (conftest.py); those that ask for none run
against the product as it is, too.
"""
import json
import re
from pathlib import Path

import pytest

import npm
from mcp_served import serve, with_fixtures
from program import MODES

# The front is the same program for both users: one of them is enough.
pytestmark = [pytest.mark.modes(MODES[0]), pytest.mark.foreign]
SUITE = npm.MODULES / "@modelcontextprotocol" / "conformance"
VERSIONS = ["2025-11-25", "2026-07-28"]
# What needs no fixture.
PLAIN = ["server-initialize", "ping", "tools-list", "resources-list", "prompts-list", "dns-rebinding-protection", "server-session-lifecycle",
         "server-sse-multiple-streams", "logging-set-level", "caching", "sep-2164-resource-not-found", "http-header-validation"]
# Checks that may say something else than SUCCESS, by id, and why.
EXCUSED = {
    "tasks-status-notifications": "SKIPPED",  # the suite says that this scenario is to be written anew
}
# Scenarios of the tasks extension, which the suite runs and does not score: they want tasks that ask for input, and tools that refuse clients
# without tasks. No tool of Atoll does either.
UNSCORED = {"tasks-lifecycle", "tasks-mrtr-input", "tasks-mrtr-composition", "tasks-required-task-error", "tasks-dispatch-and-envelope"}
WANTED_TASKS = ("Unknown tool", "failing_job")


@pytest.fixture(scope="module")
def fixtures(mode, stage):
    npm.required()
    one = serve(mode, with_fixtures(stage))
    yield one
    one.end()


def run(served, out, version):
    """The checks of each server scenario of a version, by its name: those that are required, and those that are run but not scored."""
    url = f"http://127.0.0.1:{served.daemon.port}/mcp"
    done = npm.node(SUITE / "dist" / "index.js", "server", "--url", url, "-o", out, "--requirements", version, timeout=300)
    found = {re.fullmatch(r"server-(.*)-\d{4}-\d\d-\d\dT[\d-]+Z", file.parent.name)[1]: json.loads(file.read_text())
             for file in Path(out).glob("*/checks.json")}
    assert found, (done.stdout[-4000:], done.stderr[-4000:])
    return found


def is_excused(scenario, check):
    """A fixture that is not there, and nothing else."""
    return scenario in UNSCORED and any(word in check.get("errorMessage", "") for word in WANTED_TASKS)


def judge(found):
    wrong = [f"{scenario}: {check['id']}: {check['status']}: {check.get('errorMessage')}" for scenario, checks in sorted(found.items())
             for check in checks if check["status"] not in ("SUCCESS", "INFO", EXCUSED.get(check["id"])) and not is_excused(scenario, check)]
    assert not wrong, "\n".join(wrong)


def required(version):
    """The names in the suite's own frozen list."""
    done = npm.node(SUITE / "dist" / "index.js", "list", "--requirements", version)
    server = done.stdout.partition("Server scenarios")[2].partition("Client scenarios")[0]
    return set(re.findall(r"(?m)^  - (\S+)", server))


@pytest.mark.parametrize("version", VERSIONS)
def test_every_scenario(fixtures, tmp_path, version):
    found = run(fixtures, tmp_path, version)
    assert required(version) <= set(found) and len(required(version)) >= 30, required(version) - set(found)
    judge(found)


@pytest.mark.parametrize("version", VERSIONS)
def test_product_as_it_is(served, tmp_path, version):
    served.web.execute("python", "print(1)")  # so that there is a resource
    found = run(served, tmp_path, version)
    judge({name: checks for name, checks in found.items() if name in PLAIN})
    assert len(set(PLAIN) & set(found)) >= 8, sorted(found)
