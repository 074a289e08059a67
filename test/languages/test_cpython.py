# SPDX-License-Identifier: Apache-2.0
"""CPython's own tests (Debian's libpython3.11-testsuite), in a sandbox and outside: what passes outside passes inside.

`./dev test` runs the modules of QUICK, which say most for their time. All of them take about ten minutes:

    ATOLL_CPYTHON=all ./dev test test/languages/test_cpython.py

What a sandbox refuses on purpose is in REFUSED, and in SECURITY.md.
"""
import fnmatch
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

import oracle

NOBODY = 65534
PYTHON = "/usr/bin/python3.11"
PROGRAM = Path(__file__).with_name("cpython.py")
QUICK = ["test_os", "test_posix", "test_fcntl", "test_ioctl", "test_mmap", "test_tempfile", "test_shutil",
         "test_glob", "test_file", "test_fileio", "test_stat", "test_pwd", "test_grp", "test_pty", "test_openpty", "test_resource", "test_popen",
         "test_select", "test_epoll", "test_thread", "test_socketserver", "test_httpservers", "test_urllib2_localnet",
         "test_smtplib", "test_asyncore", "test_asyncio.test_unix_events", "test_asyncio.test_server"]
SLOW = ["test_posixpath", "test_pathlib", "test_httplib", "test_socket", "test_ssl", "test_selectors", "test_poll", "test_subprocess",
        "test_threading", "test_signal", "test_fork1", "test_wait3",
        "test_multiprocessing_fork.WithProcessesTestQueue", "test_multiprocessing_fork.WithProcessesTestPool",
        "test_multiprocessing_main_handling", "test_concurrent_futures.ProcessPoolForkProcessPoolExecutorTest", "test_asyncio.test_events",
        "test_asyncio.test_subprocess", "test_asyncio.test_streams", "test_asyncio.test_sendfile", "test_asyncio.test_sock_lowlevel",
        "test_ftplib", "test_xmlrpc", "test_io", "test_logging", "test_zipfile", "test_tarfile", "test_faulthandler", "test_eintr", "test_ctypes"]
ALL = os.environ.get("ATOLL_CPYTHON") == "all"
# Patterns of tests that pass outside and not inside, and why.
REFUSED = {
    "test_socket.*UDPLITE*": "UDP-Lite: sockets are TCP, UDP or local",
    "test_socket.SendfileUsingSendfileTest.*": "sendfile is refused; socket.sendfile() falls back to send",
    "test_os.TestSendfile.*": "sendfile is refused",
    "test_os.FileTests.test_splice*": "splice is refused",
    "test_shutil.TestZeroCopySendfile.*": "sendfile is refused; shutil falls back to read and write",
    "test_asyncio.*SockSendfileTests.*": "sendfile is refused; loop.sendfile() falls back to send",
    "test_asyncio.test_sendfile.*.test_sendfile_prevents_bare_write": "as above",
    "test_os.ChownFileTests.test_chown_without_permission": "a sandbox has one user id: others are not mapped, EINVAL instead of EPERM",
    "test_asyncore.*.test_handle_expt": "MSG_OOB is refused",
    "test_ftplib.TestFTPClass.test_abort": "MSG_OOB is refused",
    "test_subprocess.POSIXProcessTestCase.test_user": "a sandbox has one user id",
    "test_subprocess.POSIXProcessTestCase.test_group": "a sandbox has one group id",
    "test_io.*.test_large_file_ops": "files are not larger than limits.file_size",
    "test_mmap.LargeMmapTests.*": "files are not larger than limits.file_size",
    "test_resource.ResourceTest.test_fsize_ismax": "files are not larger than limits.file_size",
    "test_resource.ResourceTest.test_prlimit": "the limits of another process (pid 1) are not for the program to see",
}


def why_refused(test):
    name = test.removeprefix("test.")
    return next((pattern for pattern in REFUSED if fnmatch.fnmatchcase(name, pattern)), None)


def outside(place, names, seconds):
    """Starts them beside the sandbox, as a user without rights."""
    drop = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--"] if oracle.IS_ROOT else []
    os.chmod(place, 0o777)
    shutil.copy(PROGRAM, place)
    return subprocess.Popen([*drop, PYTHON, f"{place}/{PROGRAM.name}", str(seconds), *names], cwd=place, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            env={"PATH": "/usr/bin:/bin", "HOME": place, "TMPDIR": place, "LANG": "C.UTF-8"}, text=True)


def compare(atoll, names, seconds):
    """{test: what it said inside} of those that pass outside only."""
    options = ["--timeout", "300", "--memory", "2g", "--pids", "1000", "--disk", "1g", "--output", "8m"]
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="tests-") as place, outside(place, names, seconds) as other:
        result = atoll.result([*options, PROGRAM, "--", str(seconds), *names], timeout=320)
        wanted = json.loads(other.communicate()[0])
    assert result["status"] == "success", {**result, "stdout": result["stdout"][-500:]}
    got = json.loads(result["stdout"])
    late = [name for name in names if wanted.get(name, "").startswith("ended with -9")]
    if late:
        pytest.skip(f"too busy: {late} did not end within {seconds} s outside; load average {os.getloadavg()[0]:.0f}")
    return {test: got.get(test, "did not run") for test, said in wanted.items() if said == "ok" and got.get(test) != "ok"}


@pytest.mark.modes("root")
@pytest.mark.cold("they need more time and memory than a warm cell's request has")
@pytest.mark.skipif(not os.path.isdir("/usr/lib/python3.11/test/libregrtest"), reason="libpython3.11-testsuite is not installed")
@pytest.mark.skipif(not os.path.exists(PYTHON), reason="the tests are those of Python 3.11")
@pytest.mark.parametrize("names", [QUICK, *([name] for name in SLOW if ALL)], ids=lambda names: names[0] if len(names) == 1 else "quick")
def test_what_passes_outside_passes_inside(atoll, names):
    wrong = compare(atoll, names, 240 if ALL else 30)
    surprising = {test: said for test, said in wrong.items() if not why_refused(test)}
    if surprising:  # once more: these tests have time limits of their own, and the machine may be busy
        modules = sorted({name for name in names for test in surprising if test.removeprefix("test.").startswith(name)})
        again = compare(atoll, modules, 240)
        surprising = {test: said for test, said in again.items() if test in surprising}
    assert surprising == {}
