# SPDX-License-Identifier: Apache-2.0
"""Which tests several test processes take at a time (pytest -n), in which order, and which are left to `./dev test --all`.

Most tests of a matrix say the same of other programs. With ATOLL_TEST_SAMPLE, which `./dev test` sets, each matrix is sampled: of a
test marked `matrix(n)` about every n-th case runs, always the same ones. Without Landlock, an ordinary user's security suite is
such a matrix, too. Quick tests always run.
"""
import os
import zlib

import pytest

IS_SAMPLE = os.environ.get("ATOLL_TEST_SAMPLE") == "1"
WITHOUT_LANDLOCK = 4

# These files take the longest, in this order: none of them should start last (tools/tally.py tells the seconds of each).
FIRST_FILES = ("test_kernel61.py", "test_programs.py", "test_build_kit.py", "test_warm_start.py", "test_soak.py", "test_analysis.py",
               "test_torture.py", "test_warm_pool.py", "test_process.py", "test_languages.py", "test_crash.py", "test_warm_python.py",
               "test_resources.py", "test_warm_scripts.py", "test_session_http.py", "test_sdk_client.py", "test_cold_warm.py",
               "test_kernel.py", "test_limits.py", "test_service.py", "test_serve_monitor.py", "test_warm_socket.py", "test_warm_same.py",
               "test_api_stream.py", "test_enosys.py", "test_cli_serve.py", "test_stages.py", "test_api_execute.py", "test_warm_residue.py",
               "test_api_run.py", "test_warm_random.py", "test_filesystem.py", "test_warm_attacks.py", "test_compat_scripts.py",
               "test_workspace.py", "test_mcp_clients.py", "test_mcp_stdio.py", "test_cpython.py", "test_warm_differential.py", "test_descriptors.py", "test_loop.py",
               "test_runner_python_host.py", "test_crash_disk.py")
# Those of them that two test processes may share, by mode: nothing that takes long is made for both modes at once.
SHARED_FILES = ("test_build_kit.py", "test_torture.py", "test_warm_pool.py", "test_process.py", "test_languages.py", "test_crash.py",
                "test_warm_python.py", "test_resources.py", "test_session_http.py", "test_kernel.py", "test_limits.py", "test_service.py",
                "test_serve_monitor.py", "test_warm_socket.py", "test_warm_same.py", "test_api_stream.py", "test_enosys.py",
                "test_stages.py", "test_warm_residue.py", "test_api_run.py", "test_warm_random.py", "test_filesystem.py",
                "test_warm_attacks.py", "test_workspace.py", "test_descriptors.py")


def every(item):
    """Of how many cases like this one a sample has one."""
    if item.get_closest_marker("quick"):
        return 1
    mark = item.get_closest_marker("matrix")
    if mark:
        return mark.args[0]
    params = item.callspec.params if hasattr(item, "callspec") else {}
    return WITHOUT_LANDLOCK if params.get("landlock") == "no-landlock" and params.get("mode") == "rootless" else 1


def is_in_sample(item):
    """By the case's name, so that another new case changes nothing for this one."""
    return zlib.crc32(item.name.encode()) % every(item) == 0


def pytest_collection_modifyitems(config, items):
    if IS_SAMPLE:
        left = [item for item in items if not is_in_sample(item)]
        items[:] = [item for item in items if is_in_sample(item)]
        config.hook.pytest_deselected(items=left)
    items.sort(key=lambda item: FIRST_FILES.index(item.path.name) if item.path.name in FIRST_FILES else len(FIRST_FILES))


def portion_of(nodeid):
    """What one test process runs in one go: a file, or one mode's part of it."""
    file, _, rest = nodeid.partition("::")
    if os.path.basename(file) not in SHARED_FILES:
        return file
    return f"{file} {'rootless' if 'rootless' in rest.partition('[')[2] else 'root'}"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    from xdist.scheduler import LoadScopeScheduling
    scheduler = LoadScopeScheduling(config, log)
    scheduler._split_scope = portion_of
    return scheduler
