# SPDX-License-Identifier: Apache-2.0
"""Which tests several test processes take at a time (pytest -n), and in which order."""
import os

import pytest

# These files take the longest, in this order: none of them should start last (tools/tally.py tells the seconds of each).
FIRST_FILES = ("test_build_kit.py", "test_kernel61.py", "test_soak.py", "test_warm_start.py", "test_programs.py", "test_warm_python.py",
               "test_torture.py", "test_api_stream.py", "test_languages.py", "test_warm_pool.py", "test_resources.py", "test_warm_scripts.py",
               "test_process.py", "test_limits.py", "test_api_run.py", "test_kernel.py", "test_cpython.py", "test_crash.py", "test_serve_monitor.py",
               "test_cli_serve.py", "test_service.py", "test_warm_same.py", "test_stages.py", "test_enosys.py", "test_filesystem.py",
               "test_api_clients.py", "test_workspace.py", "test_crash_disk.py")
# Those of them that two test processes may share, by mode: nothing that takes long is made for both modes at once.
SHARED_FILES = ("test_build_kit.py", "test_warm_python.py", "test_torture.py", "test_api_stream.py", "test_languages.py", "test_warm_pool.py",
                "test_resources.py", "test_process.py", "test_limits.py", "test_api_run.py", "test_kernel.py", "test_crash.py", "test_serve_monitor.py",
                "test_service.py", "test_warm_same.py", "test_stages.py", "test_enosys.py", "test_filesystem.py", "test_workspace.py")


def pytest_collection_modifyitems(items):
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
