# SPDX-License-Identifier: Apache-2.0
"""Analysis of programs that really fail (doc/http.md): test/analysis/LANGUAGE.yaml.

Each program is run by `atoll run --json`; build/test/analyse-lines makes the analysis and the debug report of
request and result. A case gives every field it expects exactly; a text that ends with * is a beginning, `excerpt` is one
line of the excerpt.
"""
import json
import subprocess
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from portions import IS_SAMPLE
from program import BINARY, MODES, Atoll

quick = pytest.mark.quick
CASES = Path(__file__).parent.parent / "analysis"
LINES = BINARY.parent / "test" / "analyse-lines"
LANGUAGES = ["python", "javascript", "typescript", "bash", "ruby", "go", "c", "cpp", "rust", "java", "php", "perl", "lua", "r"]
FIELDS = ["is_error", "error_type", "exception", "message", "file", "line", "frames", "excerpt", "category", "suggestion"]
AT_ONCE = 2
SAMPLED = 3  # a sample has every third program of a language, by its name


@pytest.fixture(scope="session")
def front(stage):
    """With a kit, which only saves time."""
    return Atoll(MODES[0], stage, env={"ATOLL_KIT_DIR": stage.java_kit()})


@pytest.fixture
def run(front, stage):
    """run([request, …]): each request with its result, analysis, report and Markdown."""
    def one(numbered):
        place, number, request = numbered
        path = place / f"{number}.json"
        path.write_text(json.dumps(request))
        return front.result(["--request", path], timeout=60)

    def run(requests):
        place = stage.scratch(front.mode, "analysis")
        with ThreadPoolExecutor(AT_ONCE) as pool:
            results = list(pool.map(one, [(place, *pair) for pair in enumerate(requests)]))
        return analyse([{"request": q, "result": r} for q, r in zip(requests, results)])
    return run


def analyse(pairs):
    text = "".join(json.dumps(pair) + "\n" for pair in pairs)
    done = subprocess.run([LINES], input=text.encode(), capture_output=True, check=True)
    answers = [json.loads(line) for line in done.stdout.decode().split("\n")[:-1]]
    assert len(answers) == len(pairs)
    return [{**pair, **answer} for pair, answer in zip(pairs, answers)]


def same(want, got, field):
    if field == "excerpt":
        return want in (got or "").split("\n")
    if isinstance(want, str) and want.endswith("*") and isinstance(got, str):
        return got.startswith(want[:-1])
    return want == got


def differences(case, answer):
    analysis = answer["analysis"]
    for field, want in case["expect"].items():
        if not same(want, analysis[field], field):
            yield f"{case['name']}: {field} is {analysis[field]!r}, not {want!r}"
    if sorted(analysis) != sorted(FIELDS):
        yield f"{case['name']}: fields are {list(analysis)}"


def error_differences(case, answer):
    """result.error has what the analysis knows of each program that ended by itself."""
    analysis, result = answer["analysis"], answer["result"]
    known = result["status"] == "error" and (
        analysis["exception"] or analysis["line"] or analysis["error_type"] == "compile_error" or case.get("recognised"))
    want = {"type": analysis["exception"] or analysis["error_type"], "message": analysis["message"] or "", "file": analysis["file"],
            "line": analysis["line"]} if known else None
    if "suggestion" in result and result["suggestion"] != analysis["suggestion"]:
        yield f"{case['name']}: suggestion is {result['suggestion']}"
    if result["error"] != want and result["status"] != "limit":
        yield f"{case['name']}: error is {result['error']}, not {want}"


@pytest.mark.parametrize("language", LANGUAGES)
def test_programs(run, language):
    cases = yaml.safe_load((CASES / f"{language}.yaml").read_text())
    failing = [case for case in cases if case["expect"]["error_type"] != "none"]
    assert len(failing) >= 10 and sum(case["expect"]["line"] is not None for case in failing) >= 10
    cases = [case for case in cases if not IS_SAMPLE or zlib.crc32(case["name"].encode()) % SAMPLED == 0]
    requests = [{"language": language, **{k: v for k, v in case.items() if k not in ("name", "expect", "recognised")}} for case in cases]
    answers = run(requests)
    wrong = [text for case, answer in zip(cases, answers, strict=True) for text in differences(case, answer)]
    wrong += [text for case, answer in zip(cases, answers, strict=True) for text in error_differences(case, answer)]
    assert not wrong, "\n".join(wrong)


def test_what_was_found_is_in_the_result(run):
    """result.error comes from the same tables."""
    programs = {
        "python": ("int('x')", "ValueError", "/sandbox/main.py", 1),
        "javascript": ("null.x", "TypeError", "/sandbox/main.js", 1),
        "ruby": ("\nraise 'boom'", "RuntimeError", "/sandbox/main.rb", 2),
        "php": ("<?php\nthrow new LogicException('boom');", "LogicException", "/sandbox/main.php", 2),
        "rust": ("fn main() {\n    panic!(\"boom\");\n}", "panic", "/sandbox/main.rs", 2),
        "bash": ("nosuchcommand", "execution_failure", "/sandbox/main.sh", 1),
        "perl": ("\ndie 'boom'", "execution_failure", "/sandbox/main.pl", 2),
        "lua": ("\nerror('boom')", "execution_failure", "/sandbox/main.lua", 2),
        "c": ("\nint main(void) { return x; }", "compile_error", "/sandbox/main.c", 2),
        "go": ("package main\nfunc main() { x }", "compile_error", "/sandbox/main.go", 2),
    }
    answers = run([{"language": name, "code": row[0]} for name, row in programs.items()])
    for (name, (_, kind, file, line)), answer in zip(programs.items(), answers):
        error = answer["result"]["error"]
        assert (error["type"], error["file"], error["line"]) == (kind, file, line), name
        assert error["message"], name
    plain, = run([{"language": "bash", "code": "exit 3"}])
    assert plain["result"]["error"] is None


@quick
def test_report_has_the_fields_of_document_001(run):
    code = "print('so far')\nraise ValueError('test error')\n"
    answer, = run([{"language": "python", "code": code, "limits": {"memory": "64m"}}])
    report, result = answer["report"], answer["result"]
    assert {"status", "exit_code", "execution_time", "timestamp", "language", "container_id", "output", "resource_usage",
            "error_type", "error_message"} <= set(report)
    assert (report["status"], report["exit_code"], report["error_type"]) == ("failure", 1, "python_exception")
    assert report["error_message"] == "ValueError: test error"
    assert report["output"] == {"stdout": "so far\n", "stderr": result["stderr"]}
    assert report["container_id"] == result["id"] and report["timestamp"] == result["created_at"]
    assert report["language"] == f"python ({result['runtime']})"
    assert report["execution_time"] == round(result["duration"], 3)
    assert report["analysis"] == answer["analysis"] and report["denials"] == []
    rows = {row["name"]: row for row in report["limits"]}
    assert rows["memory"]["limit"] == 64 << 20 and rows["memory"]["peak"] == result["memory_peak"]
    assert 0 < rows["memory"]["share"] < 1 and not rows["memory"]["hit"]
    assert rows["timeout"]["limit"] == 30 and rows["timeout"]["peak"] == pytest.approx(result["duration"])
    text = answer["markdown"]
    for part in ("# Debug report", "## What went wrong", "> 2 | raise ValueError('test error')", "## Limits and peaks",
                 "| memory | 64 MiB |", "## Standard output", "## Standard error", "Handle \\`ValueError\\`"):
        assert part in text, (part, text)


def test_report_of_a_timeout_and_of_a_success(run):
    slow, fine = run([{"language": "bash", "code": "echo begun; sleep 9", "limits": {"timeout": 1}},
                      {"language": "bash", "code": "echo data > out.txt"}])
    report = slow["report"]
    assert (report["status"], report["exit_code"], report["error_type"]) == ("failure", 124, "timeout")
    assert report["error_message"] == "Execution timed out after 1s"
    assert [row["hit"] for row in report["limits"] if row["name"] == "timeout"] == [True]
    report = fine["report"]
    assert report["status"] == "success" and "error_type" not in report and "error_message" not in report
    assert list(report["output_files"]) == ["out.txt"] and report["output_files"]["out.txt"]["size"] == 5
    assert "What went wrong" not in fine["markdown"]


def test_output_cannot_leave_its_place_in_the_markdown(run):
    code = "import sys\nprint('```\\n# not a heading\\n````')\nraise ValueError('| cell | <b>')\n"
    answer, = run([{"language": "python", "code": code}])
    text = answer["markdown"]
    assert "`````\n```\n# not a heading\n````\n`````" in text
    assert r"\| cell \| \<b\>" in text


def test_a_stage_of_a_shell(run):
    answer, = run([{"stages": [{"name": "one", "code": "nosuchcommand"}]}])
    analysis = answer["analysis"]
    assert (analysis["error_type"], analysis["category"]) == ("execution_failure", "name"), analysis
    assert "`nosuchcommand`" in analysis["suggestion"]


def test_what_atoll_refuses_is_no_fault_of_the_program(front, stage):
    place = stage.scratch(front.mode, "analysis")
    requests = [{"language": "cobol", "code": "x"}, {"language": "python", "code": "x", "limits": {"memory": "900g"}}]
    pairs = []
    for number, request in enumerate(requests):
        path = place / f"{number}.json"
        path.write_text(json.dumps(request))
        pairs.append({"request": request, "result": front.result(["--request", path])})
    unknown, above = analyse(pairs)
    assert unknown["analysis"]["error_type"] == "sandbox_error" and "cobol" in unknown["analysis"]["suggestion"]
    assert unknown["report"]["error_type"] == "execution_error" and unknown["analysis"]["category"] == "setup"
    assert above["analysis"]["error_type"] == "sandbox_error" and "memory" in above["analysis"]["suggestion"]
