# SPDX-License-Identifier: Apache-2.0
"""In which modes a test runs: as root and as an unprivileged user, with and without Landlock, cold and through a pool.

A test that takes the fixture `mode` (most do, by way of `atoll`) runs once in each mode, or in those of its mark `modes`. The security
suite takes `landlock` too, and runs again through a pool, in warm cells.
"""
import pytest

from program import MODES, plain_mode


def warm_ways(metafunc):
    """How a test of the security suite runs through a pool: in a cell; and, if it brings a program of its own,
    executed by a program that was warm."""
    names, own = set(metafunc.fixturenames), set(metafunc.definition._fixtureinfo.argnames)
    if metafunc.definition.path.parent.name != "security" or "poor" in names or \
            metafunc.definition.get_closest_marker("cold"):
        return []
    return ["warm", "warm-exec"] if own & {"compile_c", "syscall_table"} else ["warm"]


def is_foreign(mode, path):
    """The daemon's front is the same program for root and for an ordinary user, so what an ordinary user's front does the quick tests
    show. What it starts is not the same: the tests of the command line run for both."""
    is_of_front = path.name.startswith("test_api_") or path.name in ("test_daemon_edges.py", "test_daemon_callers.py", "test_cli_daemon.py",
                                                                           "test_cli_serve.py", "test_attach.py", "test_cli_session.py")
    return is_of_front and mode == "rootless" and "root" in MODES


def pytest_generate_tests(metafunc):
    has_landlock = "landlock" in metafunc.fixturenames
    if "mode" in metafunc.fixturenames:
        marker = metafunc.definition.get_closest_marker("modes")
        wanted = list(marker.args if marker else ("root", "rootless"))
        if not marker and not metafunc.definition.get_closest_marker("quick"):
            wanted = [mode for mode in wanted if not is_foreign(mode, metafunc.definition.path)]
        if not has_landlock and warm_ways(metafunc):
            wanted += [f"{m}-warm" for m in wanted]
        metafunc.parametrize("mode", [
            pytest.param(m, marks=[pytest.mark.foreign] if "root" in wanted and is_foreign(m, metafunc.definition.path)
                         else [] if plain_mode(m) in MODES else pytest.mark.skip(reason="needs to be started as root"))
            for m in wanted], scope="session")
    if has_landlock:
        without = [] if metafunc.definition.get_closest_marker("any_landlock") else ["no-landlock"]
        metafunc.parametrize("landlock", ["landlock", *without, *warm_ways(metafunc)], scope="session")
