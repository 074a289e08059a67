# SPDX-License-Identifier: Apache-2.0
"""`atoll languages`: every language of doc/limits.md with version and availability."""
import re

import pytest

quick = pytest.mark.quick
ALL = {"python", "javascript", "typescript", "bash", "ruby", "go", "c", "cpp", "rust", "java", "php", "perl", "lua", "r"}


def entries(report):
    return report["languages"] if isinstance(report, dict) else report


@quick
@pytest.mark.modes("rootless")
def test_json(atoll):
    done = atoll.run(["languages", "--json"])
    assert done.returncode == 0 and done.stderr == b""
    listed = {entry["name"]: entry for entry in entries(done.json())}
    assert set(listed) >= ALL
    python = listed["python"]
    assert {"py", "python3"} <= set(python["aliases"]) and python["available"] is True
    assert "3." in python["version"]
    assert isinstance(python["libraries"], (list, dict))
    for entry in listed.values():
        assert entry["available"] in (True, False)
        if not entry["available"]:
            assert entry["package"]


@pytest.mark.modes("rootless")
def test_table(atoll):
    done = atoll.run(["languages"])
    assert done.returncode == 0
    for name in ALL:
        assert any(line.split()[:1] == [name] for line in done.out.splitlines()), name
    assert all(len(line) <= 80 for line in done.out.splitlines()), done
    rows = {line.split("  ")[0]: line for line in done.out.splitlines()}
    assert re.fullmatch(r"python +Python 3\.\S+ +py python3 +\.py", rows["python"]) and "c++" in rows["cpp"] and ".cxx" in rows["cpp"], rows
    assert "lua@5.1" not in rows and "lua@5.1" in atoll.run(["languages", "-v"]).out


@pytest.mark.modes("rootless")
def test_libraries(atoll):
    listed = next(entry for entry in atoll.run(["languages", "--json"]).json()["languages"] if entry["name"] == "python")["libraries"]
    text = " ".join(atoll.run(["languages"]).out.split())
    for name, version in listed.items():
        assert f"{name} {version}" in text


@pytest.mark.modes("rootless")
def test_versions_are_those_inside(atoll):
    listed = {entry["name"]: entry for entry in entries(atoll.run(["languages", "--json"]).json())}
    inside = atoll.python("import platform; print(platform.python_version())")["stdout"].strip()
    assert inside in listed["python"]["version"]


@pytest.mark.modes("rootless")
def test_new_language_is_a_new_file(atoll, work):
    """No C: a copied file with another name is another language."""
    import shutil
    import subprocess
    data = work / "data"
    shutil.copytree(atoll.stage.data, data)
    text = (data / "languages" / "bash.yaml").read_text()
    lines = []
    for line in text.splitlines():
        if line.startswith("name:"):
            line = "name: toysh"
        if line.startswith(("aliases:", "extensions:", "shebangs:")):
            line = line.split(":")[0] + ": [toysh]"
        lines.append(line)
    (data / "languages" / "toysh.yaml").write_text("\n".join(lines) + "\n")
    subprocess.run(["chmod", "-R", "a+rX", data], check=True)
    env = {"ATOLL_DATA_DIR": str(data)}
    done = atoll.run(["run", "-l", "toysh", "-c", "echo new"], env=env)
    assert done.stdout == b"new\n", done
    assert "toysh" in atoll.run(["languages"], env=env).out


@pytest.mark.modes("rootless")
def test_unavailable_names_the_package(atoll, work):
    """Asked about a runtime that is not there."""
    import shutil
    import subprocess
    data = work / "data"
    shutil.copytree(atoll.stage.data, data)
    file = data / "languages" / "ruby.yaml"
    file.write_text(file.read_text().replace("/usr/bin/ruby", "/usr/bin/noruby"))
    subprocess.run(["chmod", "-R", "a+rX", data], check=True)
    listed = {e["name"]: e for e in entries(atoll.run(["languages", "--json"], env={"ATOLL_DATA_DIR": str(data)}).json())}
    assert listed["ruby"]["available"] is False and "ruby" in listed["ruby"]["package"]
