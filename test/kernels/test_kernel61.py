# SPDX-License-Identifier: Apache-2.0
"""The engine under Debian 12's own kernel, for what the build machine may lack: cgroup v2 with all
controllers (CLONE_INTO_CGROUP, cgroup.kill, memory.peak, memory.oom.group), a delegated subtree for a user
without privileges, Landlock ABI 2, overlay on overlay. One boot serves all tests (guest.py). `./dev test` runs a sample of the cases."""
import functools
import json
import os
import shlex
from pathlib import Path

import pytest
import vm
from portions import IS_SAMPLE

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("ATOLL_BIN", ROOT / "build" / "atoll")).resolve().parent
BOOT_TIMEOUT = 900


class Cases(dict):
    def __missing__(self, name):
        if not IS_SAMPLE:
            raise KeyError(name)
        pytest.skip("only ./dev test --all has this case")


@functools.cache
def run_guest():
    """The guest's records by case, and what else it said. Cached: a boot that failed is not tried again."""
    assert (BUILD / "atoll").exists(), f"{BUILD}/atoll is not built: run ./dev build"
    words = ["/usr/bin/python3", str(Path(__file__).with_name("guest.py")), str(ROOT), str(BUILD), *["sample"] * IS_SAMPLE]
    code, output = vm.run_in_vm(shlex.join(words), BOOT_TIMEOUT)
    cases, noise = Cases(), []
    for line in output.splitlines():
        try:
            record = json.loads(line)
            cases[record.pop("case")] = record
        except (ValueError, KeyError, TypeError):
            noise.append(line)
    return cases, f"exit code {code}\n" + "\n".join(noise[-60:])


@pytest.fixture(scope="module")
def guest():
    reason = vm.missing()
    if reason:
        pytest.skip(reason)
    cases, noise = run_guest()
    if "end" not in cases:
        pytest.fail(f"the guest stopped after {list(cases)}: {noise}", pytrace=False)
    return cases


def result_of(guest, name):
    record = guest[name]
    assert record["result"] is not None, record
    return record["result"]


def assert_limit(result, kind):
    assert result["status"] == "limit", result
    assert result["cause"]["kind"] == kind, result["cause"]
    return result["cause"]


def test_is_the_other_kernel(guest):
    assert guest["kernel"]["release"].startswith("6.1."), guest["kernel"]


def test_doctor(guest):
    report = result_of(guest, "doctor")
    assert report["cgroup"] == "v2"
    assert report["landlock"] == 2
    assert report["missing"] == []
    assert guest["doctor"]["exit"] == 0 and report["ok"] is True


@pytest.mark.parametrize("name", ["unit_cgroup", "unit_probe", "delegated_unit"])
def test_unit_tests_pass_there(guest, name):
    record = guest[name]
    text = record["stdout"] + record["stderr"]
    assert record["exit"] == 0, text
    assert "ok 1" in text and "not ok" not in text, text
    if name != "unit_probe":
        assert "back end v2" in text and "skip" not in text.lower(), text


def test_hello(guest):
    result = result_of(guest, "hello")
    assert (result["status"], result["stdout"]) == ("success", "hello 42\n"), result
    isolation = result["isolation"]
    assert isolation["cgroup"] == "v2" and isolation["landlock"] == 2, isolation
    assert isolation["tier"] == "full" and isolation["missing"] == [], isolation
    assert isolation["user"] == "unique"
    assert result["memory_peak"] > 1 << 20
    assert result["cpu_time"] > 0


def test_exit_codes(guest):
    assert guest["exit"]["exit"] == 7 and result_of(guest, "exit")["exit_code"] == 7
    plain = guest["bash"]
    assert (plain["exit"], plain["stdout"], plain["stderr"]) == (5, "out\n", "err\n"), plain


@pytest.mark.parametrize("name", ["network", "rootless_network"])
def test_relay(guest, name):
    result = result_of(guest, name)
    assert result["stdout"].endswith("end\n") and result["network"] == [], result
    assert {row["what"] for row in result["denials"]} == {"lookup other.test", "connect 127.0.0.1:443"}


@pytest.mark.parametrize("name", ["memory", "memory_child", "tmpfs"])
def test_memory_limit(guest, name):
    result = result_of(guest, name)
    cause = assert_limit(result, "memory")
    assert cause["limit"] == 64 << 20
    # From memory.peak: what was charged can pass the limit by what the kernel charges in one go, no more.
    assert 48 << 20 < cause["peak"] <= 66 << 20, cause
    assert result["memory_peak"] == cause["peak"]


def test_memory_within(guest):
    result = result_of(guest, "memory_within")
    assert result["status"] == "success", result
    assert 32 << 20 < result["memory_peak"] < 128 << 20


def test_pids_limit(guest):
    result = result_of(guest, "pids")
    cause = assert_limit(result, "pids")
    assert cause["limit"] == 20
    made, number = map(int, result["stdout"].split())
    assert 10 <= made < 20 and number == 11, result["stdout"]


def test_cpu_time(guest):
    result = result_of(guest, "cpu_time")
    assert_limit(result, "cpu_time")
    assert 0.9 <= result["cpu_time"] <= 20, result["cpu_time"]


def test_timeout(guest):
    result = result_of(guest, "timeout")
    assert (result["status"], result["exit_code"]) == ("timeout", 124), result
    assert result["stdout"] == "begun\n"
    assert guest["timeout"]["exit"] == 124
    assert 3.9 <= result["duration"] < 60, result["duration"]


def test_waiting_extends_a_judged_timeout(guest):
    """Also with the counters of cgroup v2: what its own quota held it back is none of it."""
    waited, throttled = (result_of(guest, name)["tests"][0] for name in ("waited", "throttled"))
    assert (waited["code"], waited["clock"]) == (throttled["code"], throttled["clock"]) == ("TLE", "wall"), (waited, throttled)
    assert 0.5 < waited["waited"] <= 3, waited
    assert throttled["waited"] < 1.2, throttled


def test_minimal_tier(guest):
    """Landlock ABI 2 has no rule for truncate(), no scopes; execve() there takes the effective user from who has another real one."""
    result = result_of(guest, "minimal")
    assert (result["status"], result["stdout"]) == ("success", "x\n"), result
    assert result["isolation"]["tier"] == "minimal" and result["isolation"]["landlock"] == 2, result
    assert guest["untouched"]["text"] == "public\n"
    assert result_of(guest, "minimal_daemons")["stdout"] == "left them\n"
    assert guest["survivors of minimal_daemons"]["found"] == []


def test_cpu_share(guest):
    """A quarter of a core over four seconds; emulation is coarse, so the bounds are wide."""
    result = result_of(guest, "cpus")
    assert result["status"] == "success", result
    assert 0.05 < result["cpu_time"] / result["duration"] < 0.6, result


def test_daemons_do_not_survive(guest):
    result = result_of(guest, "daemons")
    assert (result["status"], result["stdout"]) == ("success", "left them\n"), result
    assert guest["survivors of daemons"]["found"] == []


def test_workspace(guest):
    """tmpfs has no user xattrs here: the broker's mounter mounts the overlay. A directory is removed and made anew."""
    assert result_of(guest, "workspace_first")["applied"]
    second = result_of(guest, "workspace_second")
    assert (second["status"], second["stderr"], second["stdout"]) == ("success", "", ".\n./b\n./t\n./t/n\n"), second
    assert second["applied"] and {c["path"]: c["change"] for c in second["changes"]} == {
        "b": "changed", "t/u": "removed", "t/u/a": "removed", "t/n": "added"}, second
    assert guest["workspace_left"]["found"] == ["b", "t", "t/n"]


@pytest.mark.parametrize("name", ["writable_root", "writable_root_again"])
def test_writable_root(guest, name):
    """Twice the same, so nothing of the first run is left; what only the image's owner may read stays so."""
    result = result_of(guest, name)
    assert (result["status"], result["stdout"]) == ("success", "new\n/top\ndir\n"), result
    assert "secret" in result["stderr"] and "Permission denied" in result["stderr"], result
    assert guest["writable_root_left"]["found"] == ["dir", "secret"]


def test_writable_root_is_refused_where_it_cannot_be(guest):
    result = result_of(guest, "writable_root_refused")
    assert result["status"] == "denied" and "idmapped mounts" in result["cause"]["detail"], result


@pytest.mark.parametrize("name, cgroup, tier", [("fork", "v2", "full"), ("fork_rootless", "none", "reduced")])
def test_fork(guest, name, cgroup, tier):
    """Of a live session: as root each copy is put into a cgroup v2 of its own from outside; without a cgroup its processes are watched."""
    case = guest[name]
    assert case.get("fork", [0])[0] == 201, case
    for made in case["fork"][1]["sessions"]:
        isolation = made["isolation"]
        assert (isolation["cgroup"], isolation["user"], isolation["tier"]) == (cgroup, "shared with parent", tier), isolation
    assert case["seen"] == [[[1, 2], "text", 2, 10 << 20, ["2"]]] * 2
    assert case["again"] == 201
    if name == "fork":
        assert assert_limit(case["full"], "memory")["limit"] == 64 << 20
    else:  # one process alone: an rlimit
        assert case["full"]["error"]["type"] == "MemoryError", case["full"]
    assert case["after"] == [[1, 2], [1]]
    assert case["closed"] == [204, 204] and case["orphan"] == [1, 2]
    assert case["left"] == [[], []], case["left"]


def test_group_of_a_killed_broker(guest):
    """Its group stays behind, and goes with the next run; that of a live run does not."""
    case = guest["killed"]
    assert "error" not in case and case["alive"] == [], case
    assert case["held"][0] >= 1 and case["held"][1] >= case["held"][0] and len(case["left"]) == 1, case
    assert result_of(guest, "killed")["status"] == "success" and case["after"] == [], case


def test_nothing_is_left(guest):
    assert guest["left"] == {"processes": [], "groups": []}


def test_rootless_without_delegation(guest):
    result = result_of(guest, "rootless_plain")
    assert result["isolation"]["cgroup"] == "none", result
    assert "cgroup-memory" in result["isolation"]["missing"]
    assert result["status"] == "success", result


def test_rootless_in_a_delegated_group(guest):
    result = result_of(guest, "delegated_true")
    assert result["status"] == "success", result
    assert result["isolation"]["cgroup"] == "v2", result
    assert result["isolation"]["user"] == "shared"
    assert not [layer for layer in result["isolation"]["missing"] if layer.startswith("cgroup")]


@pytest.mark.parametrize("kind", ["memory", "pids"])
def test_rootless_limits_in_a_delegated_group(guest, kind):
    assert_limit(result_of(guest, f"delegated_{kind}"), kind)


def test_rootless_timeout(guest):
    assert result_of(guest, "delegated_timeout")["status"] == "timeout"
