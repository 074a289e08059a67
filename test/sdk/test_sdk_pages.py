# SPDX-License-Identifier: Apache-2.0
"""The pages and examples of the Python package: examples run, the reference and the list of errors are complete."""
import ast
import os
import re
import subprocess
import sys

import pytest

from oracle import PYTHON
from program import ROOT

SDK = ROOT / "sdk" / "python"
sys.path.insert(0, str(SDK / "src"))
import atoll as package  # noqa: E402

pytestmark = pytest.mark.modes("root")
EXAMPLES = sorted((ROOT / "examples" / "python").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(daemon, path):
    """It prints what its docstring says."""
    text = path.read_text(encoding="utf-8")
    wanted = ast.get_docstring(ast.parse(text)).partition("Prints:\n\n")[2]
    environment = {**os.environ, "PYTHONPATH": str(SDK / "src"), "ATOLL_URL": "unix:%s" % daemon.socket}
    done = subprocess.run([PYTHON, path], env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "".join(line[4:] + "\n" for line in wanted.splitlines()) and done.stderr == ""
    assert text.count("\n") < 60


def test_there_are_examples():
    page = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    assert len(EXAMPLES) >= 10 and all("python/%s" % path.name in page for path in EXAMPLES)


def test_the_reference_is_up_to_date():
    done = subprocess.run([PYTHON, SDK / "tools" / "reference.py", "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


#: Texts that no caller sees: they belong to errors that are handled, or never come.
INNER = {"module … has no attribute …", "the loop returns or raises", "a number of too many digits", "a list is wanted", "it gave no reason", ", "}


def texts_of_errors():
    for path in sorted((SDK / "src" / "atoll").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                for part in ast.walk(node.exc):
                    if isinstance(part, ast.Constant) and isinstance(part.value, str) and " " in part.value:
                        yield path.name, re.sub(r"%[rsd]", "…", part.value)


def test_every_error_has_a_cure():
    page = (ROOT / "doc" / "troubleshooting.md").read_text(encoding="utf-8").replace("\\`", "`")
    found = list(texts_of_errors())
    assert len(found) > 20
    assert [entry for entry in found if entry[1] not in INNER and entry[1] not in page] == []
    for name, value in vars(package).items():
        if isinstance(value, type) and issubclass(value, package.APIError):
            assert "`%s`" % name in page


def test_every_code_of_the_api_has_a_cure():
    page = (ROOT / "doc" / "troubleshooting.md").read_text(encoding="utf-8")
    sources = [path for room in ("web", "mcp", "atoll") for path in (ROOT / "src" / room).rglob("*.c") if not path.name.startswith("test-")]
    codes = {code for path in sources for code in re.findall(r"\b[45][0-9][0-9], *\"([a-z_]+)\"", path.read_text(encoding="utf-8"))}
    assert len(codes) > 30 and sorted(code for code in codes if "`%s`" % code not in page) == []
