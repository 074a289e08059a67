# SPDX-License-Identifier: Apache-2.0
"""Hooks and fixtures of every whole-program test; the modules behind them are in test/lib.

`atoll` runs the program (program.py) in each mode (modes.py). The security suite runs a third time, through a pool of the session
(`residents`), in warm cells; resident.py says how that is proved. `leaks` compares the host before and after each test: all that a
run made must be gone a few seconds after the run (oracle.py). `canary` stands for the host's files and sockets (canary.py).

Tests may run in several processes. A test marked `alone` has the machine for itself, and one marked `apart` is the only test that runs
(turns.py). When a statement about a time fails in a test marked `alone` or `undisturbed` while processes outside of the session use
much of the machine, the test is skipped as "too busy" (busy.py).
"""
import json
import shutil
import subprocess
from pathlib import Path

import pytest

import busy
import oracle
import turns
from canary import Canary
from compiler import MEASURE, Compiler
from library import Library
from modes import pytest_generate_tests  # noqa: F401, a hook
from oracle import leaked_since, snapshot
from portions import pytest_collection_modifyitems, pytest_xdist_make_scheduler  # noqa: F401, hooks
from program import BINARY, FRONT, LAST, LIBRARY, ROOT, Atoll, Stage, plain_mode

# ------------------------------------------------------------------------------------------ hooks

CPU_BEFORE = pytest.StashKey()  # how much CPU time the test process's room had used when the test began


def pytest_configure(config):
    if config.option.basetemp:  # named by the process that gives out the tests, which may live in another room than this one
        Path(config.option.basetemp).parent.mkdir(parents=True, exist_ok=True)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    if call.when == "teardown" and busy.IS_ROOM:
        item.user_properties.append(("cpu", f"{busy.own_seconds() - item.stash[CPU_BEFORE]:.2f}"))
    report = (yield).get_result()
    if report.failed and LAST:
        report.sections.append(("last command", repr(LAST["done"])))
    if call.when == "teardown":
        LAST.clear()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    item.stash[CPU_BEFORE] = busy.own_seconds()
    with turns.alone() if item.get_closest_marker("alone") or item.get_closest_marker("apart") else turns.shared():
        yield


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    marks = {name for name in ("alone", "undisturbed") if pyfuncitem.get_closest_marker(name)}
    if not marks:
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    watch = busy.Watch()
    try:
        if "undisturbed" in marks:
            turns.undisturbed(lambda: pyfuncitem.obj(**arguments))
        else:
            pyfuncitem.obj(**arguments)
    except (AssertionError, TimeoutError, subprocess.TimeoutExpired) as error:
        if not busy.is_about_time(error) and not pyfuncitem.get_closest_marker("brief"):
            raise
        watch.judge(error)
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef):
    if fixturedef.scope != "function":
        oracle.forget()
        fixturedef.addfinalizer(oracle.forget)


# --------------------------------------------------------------------------------------- fixtures


@pytest.fixture(autouse=True)
def leaks(request):
    if "stage" not in request.fixturenames:
        yield
        oracle.forget()  # it was not looked at what that one left
        return
    before = snapshot()
    yield
    found = leaked_since(before)
    if found:
        alone = "" if busy.IS_ROOM else " (or another Atoll's: only ./dev test ARGUMENTS and tools/room COMMAND keep it out of sight)"
        pytest.fail(f"left behind{alone}: " + json.dumps(found, indent=2), pytrace=False)


@pytest.fixture(scope="session")
def stage():
    for program in (BINARY, FRONT):
        if not program.exists():
            pytest.fail(f"{program} is not built: run ./dev build", pytrace=False)
    place = Stage()
    yield place
    place.remove()


@pytest.fixture(scope="session")
def residents(stage):
    """A pool for each mode that asks for one; by the end they have nothing left that runs."""
    import resident
    pools = resident.Residents(stage)
    yield pools
    pools.end()


@pytest.fixture(scope="module")
def served(mode, stage):
    """A daemon for all tests of a file. A file that needs another one has a fixture of the same name."""
    from web import Served
    served = Served(Atoll(mode, stage), stage.scratch(mode, "served"))
    yield served
    served.end()


@pytest.fixture
def web(served):
    return served.web


@pytest.fixture
def atoll(mode, stage, request):
    landlock = request.node.callspec.params.get("landlock", "")
    if not mode.endswith("-warm") and not landlock.startswith("warm"):
        return Atoll(mode, stage)
    residents = request.getfixturevalue("residents")
    return residents.front(plain_mode(mode), execs=landlock == "warm-exec")


@pytest.fixture
def box(atoll, landlock):
    """The security suite's matrix: each mode with Landlock and with the product told to do without it."""
    return atoll.variant(env={"ATOLL_FORCE_OFF": "landlock"} if landlock == "no-landlock" else None)


@pytest.fixture
def work(mode, stage):
    """A directory of the mode's user, removed afterwards."""
    path = stage.scratch(mode, "work")
    yield path
    subprocess.run(["chmod", "-R", "u+rwX", path], check=False)
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def compile_c(stage):
    place = stage.top / "helpers"
    place.mkdir(exist_ok=True)
    place.chmod(0o755)
    return Compiler(place)


@pytest.fixture(scope="session")
def measure(compile_c):
    return compile_c(MEASURE, "measure")


@pytest.fixture(scope="session")
def enosys(compile_c):
    """wrap=enosys("clone3", "openat2"): a command prefix that makes those calls fail."""
    program = compile_c(ROOT / "test" / "security" / "enosys.c", "enosys")

    def prefix(*rules):
        return [str(program), *rules, "--"]

    return prefix


@pytest.fixture(scope="session")
def canary():
    bird = Canary()
    yield bird
    bird.close()


@pytest.fixture
def library(atoll):
    if not atoll.stage.library:
        pytest.fail(f"{LIBRARY} is not built", pytrace=False)
    lib = Library(atoll)
    yield lib
    lib.close()
