# SPDX-License-Identifier: Apache-2.0
"""Clients that others' generators make of /openapi.json, compiled strictly and run against a daemon; and the linter of Redocly. The TypeScript
client and the commands are those of doc/http.md."""
import json
import re
import shutil
import subprocess
import sys

import pytest

import npm
from program import MODES, ROOT, Atoll
from web import Served

# The front is the same program for both users.
pytestmark = [pytest.mark.modes(MODES[0]), pytest.mark.foreign]
GENERATOR = npm.MODULES / "@openapitools" / "openapi-generator-cli" / "bin" / "openapi-generator.jar"


@pytest.fixture(scope="module")
def served(mode, stage):
    npm.required()
    served = Served(Atoll(mode, stage), stage.scratch(mode, "generated"))
    yield served
    served.end()


@pytest.fixture
def url(served):
    return f"http://{served.web.host}:{served.web.port}"


@pytest.fixture
def document(served, tmp_path):
    path = tmp_path / "openapi.json"
    path.write_bytes(served.web.get("/openapi.json").body)
    return path


def test_lint(document):
    done = npm.node(npm.MODULES / "@redocly" / "cli" / "bin" / "cli.js", "lint", "--format", "json", document, cwd=document.parent,
                    env={"REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true"})
    found = json.loads(done.stdout)
    assert found["totals"] == {"errors": 0, "warnings": 0, "ignored": 0}, found["problems"]


def test_lint_can_fail(document):
    broken = json.loads(document.read_text())
    del broken["paths"]["/v1/execute"]["post"]["operationId"]
    broken["paths"]["/v1/stats"]["get"]["responses"]["200"]["content"]["application/json"]["schema"] = {"$ref": "#/components/schemas/None"}
    document.write_text(json.dumps(broken))
    done = npm.node(npm.MODULES / "@redocly" / "cli" / "bin" / "cli.js", "lint", "--format", "json", document, cwd=document.parent,
                    env={"REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true"})
    assert done.returncode != 0 and json.loads(done.stdout)["totals"]["errors"] > 0, done.stdout[:2000]


def page():
    """Of doc/http.md: the commands, the program, and what it prints."""
    text = (ROOT / "doc" / "http.md").read_text()
    commands, program, printed = re.search(r"^```sh\n(npm install .*?)^```\n.*?^```ts\n(.*?)^```\n```text\n(.*?)^```\n", text, re.S | re.M).groups()
    return commands.partition("\n")[2], program, printed  # the packages are installed


@pytest.fixture(scope="module")
def made(served, tmp_path_factory):
    """A folder, and what the commands of the page did in it. npx runs what is installed in node_modules, and so does this."""
    folder = tmp_path_factory.mktemp("client")
    commands, program, _ = page()
    (folder / "node_modules").symlink_to(npm.MODULES)
    (folder / "client.mts").write_text(program)

    def run(commands):
        env = {"PATH": f"{npm.NODE.parent}:{npm.MODULES}/.bin:/usr/bin:/bin", "HOME": str(folder), "NO_COLOR": "1",
               "ATOLL_URL": f"http://{served.web.host}:{served.web.port}"}
        return subprocess.run(["bash", "-euc", 'npx() { "$@" >&2; }\n' + commands], cwd=folder, env=env, capture_output=True, text=True, timeout=90)

    return folder, run, run(commands)


def test_typescript(made):
    folder, _, done = made
    assert (done.returncode, done.stdout) == (0, page()[2]), done
    types = (folder / "atoll.d.ts").read_text()
    # All of a request may be left out, and a default of a limit makes no key that is needed.
    for key in ("language", "code", "limits", "timeout", "memory"):
        assert re.search(rf"^ +{key}\?:", types, re.M), key


WRONG = """run.data.stdot;
run.data.exit_code.toFixed();
await atoll.POST("/v1/execute", { body: { code: 1 } });
await atoll.GET("/v1/executions/{id}");
((event: Event) => event.event === "stage" && event.offset)
"""


def test_typescript_finds_mistakes(made):
    folder, run, _ = made
    commands, program, _ = page()
    (folder / "wrong.mts").write_text(program + WRONG)
    done = run(next(line for line in commands.splitlines() if " tsc " in line).replace("client.mts", "wrong.mts"))
    first = program.count("\n") + 1
    found = {int(line) for line in re.findall(r"^wrong\.mts\((\d+),\d+\): error TS", done.stderr, re.M)}
    assert done.returncode != 0 and found == set(range(first, first + WRONG.count("\n"))), done


def older(node):
    """OpenAPI 3.0, as generators of 2020 read it: "or null" is a mark, and a union is any value."""
    if isinstance(node, list):
        return [older(one) for one in node]
    if not isinstance(node, dict):
        return node
    forms = [one for one in node.get("anyOf", ()) if one != {"type": "null"}]
    dropped = {"examples", "identifier", "anyOf", "oneOf", "discriminator"} | ({"type"} if node.get("type") == "null" else set())
    made = {key: older(value) for key, value in node.items() if key not in dropped}
    if len(forms) == 1:
        made.update({"allOf": forms} if "$ref" in forms[0] else older(forms[0]))
    if "type" in dropped or len(forms) < len(node.get("anyOf", ())):
        made["nullable"] = True
    return {"$ref": made["$ref"]} if "$ref" in made else made


PYTHON_CLIENT = """
import os
import atoll_client as made

where = made.Configuration(host=os.environ["ATOLL_URL"])
where.access_token = None
with made.ApiClient(where) as client:
    executions, sessions, host = made.ExecutionsApi(client), made.SessionsApi(client), made.HostApi(client)
    result = executions.execute(made.ExecuteRequest(language="python", code="print(6 * 7)"))
    print(result.status, result.cause.kind, result.stdout.strip(), result.isolation.missing, result.created_at.year > 2000)
    job = executions.create_execution(made.ExecuteRequest(language="bash", code="echo job"))
    print(executions.get_execution(job.id, wait=30)["stdout"].strip())
    print(executions.get_stats(language="python").total > 0, executions.list_execution_files(result.id).files)
    session = sessions.create_session(session_request=made.SessionRequest(language="python"))
    print(sessions.execute_in_session(session.id, made.TurnRequest(code="6 * 7")).value)
    sessions.delete_session(session.id)
    print("python" in [language.name for language in host.list_languages().languages])
    try:
        executions.execute(made.ExecuteRequest(language="cobol", code=""))
    except made.ApiException as refused:
        print(refused.status)
"""


def test_python(url, document, tmp_path):
    if not shutil.which("java"):
        pytest.skip("java is not installed: the generator of Python clients needs it")
    document.write_text(json.dumps({**older(json.loads(document.read_text())), "openapi": "3.0.3"}))
    words = ["generate", "-g", "python", "-i", document, "-o", tmp_path, "--package-name", "atoll_client",
             "--global-property", "apiDocs=false,modelDocs=false,apiTests=false,modelTests=false"]
    done = subprocess.run(["java", "-XX:TieredStopAtLevel=1", "-jar", str(GENERATOR), *map(str, words)], capture_output=True, text=True, timeout=90)
    assert done.returncode == 0, done
    env = {"PATH": "/usr/bin:/bin", "ATOLL_URL": url, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", PYTHON_CLIENT], env=env, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.split()) == (0, "success exit 42 [] True job True [] 42 True 400".split()), done
