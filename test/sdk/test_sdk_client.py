# SPDX-License-Identifier: Apache-2.0
"""The Python package `atoll`: the native client, its private daemon, its installation and its types."""
import ast
import asyncio
import doctest
import importlib
import os
import pathlib
import pickle
import shutil
import signal
import subprocess
import sys
import threading
import zipfile

import pytest

from program import BINARY, ROOT, Atoll
from oracle import PYTHON
from resident import wait_until
from web import Served

SDK = ROOT / "sdk" / "python"
sys.path.insert(0, str(SDK / "src"))
import atoll as package  # noqa: E402
from atoll import AsyncClient, Client  # noqa: E402

pytestmark = pytest.mark.modes("root")
MODULES = ["atoll", "atoll._address", "atoll._async_client", "atoll._async_session", "atoll._calls", "atoll._client", "atoll._code_rules",
           "atoll._environment_limits", "atoll._host", "atoll._manager", "atoll._manager_config", "atoll._output", "atoll._result",
           "atoll._session", "atoll._session_calls", "atoll._tool_executor", "atoll._values", "atoll.code_execution", "atoll.code_sandbox",
           "atoll.environment", "atoll.executor", "atoll.tools"]


def run_script(code, **env):
    """A Python program that uses the package, without any daemon but its own."""
    variables = {key: value for key, value in os.environ.items() if not key.startswith(("ATOLL", "XDG"))}
    variables.update({"PYTHONPATH": str(SDK / "src"), "ATOLL_BIN": str(BINARY)}, **env)
    return subprocess.Popen([PYTHON, "-c", code], env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))


def test_run(client):
    result = client.run("import sys, os; print(sys.stdin.read() + os.environ['A'], sys.argv[1:]); open('out', 'w').write('x')",
                        stdin="in ", env={"A": "env"}, args=["one"], files={"data/b": b"\xff"}, timeout="5s", memory="128m",
                        labels={"of": "sdk"})
    assert (result.status, result.ok, result.exit_code, result.stdout) == ("success", True, 0, "in env ['one']\n")
    assert (result.labels, result.success, result.runtime[:6], result.policy) == ({"of": "sdk"}, True, "Python", "default")
    assert result.usage["pids_peak"] == 1 and result.denials == result.network == [] and result.created_at.endswith("Z")
    assert [file["path"] for file in result.files] == ["out"]
    assert client.file(result.id, "out") == b"x" and client.output(result.id) == b"in env ['one']\n"


def test_failures_are_results(client):
    result = client.run("prices = {}\nprices['tea']")
    assert not result.ok and result.explain().startswith("KeyError: 'tea' (line 2). The key `tea` is not in the mapping")
    # What to do is part of it, of an error and of a limit.
    assert client.run("print(1)", "javascript").explain().endswith("JavaScript prints with `console.log(…)`.")
    assert "allow:" in client.run("import urllib.request\nurllib.request.urlopen('http://example.org')").explain()
    limited = client.run("x = bytearray(200 << 20)", memory="64m")
    assert limited.explain() == "%s. Try again with memory=%d." % (limited.cause.detail, limited.cause.suggest), limited
    with pytest.raises(package.ExecutionError, match="KeyError") as caught:
        client.run("{}['tea']", check=True)
    assert caught.value.result.status == "error"
    slow = client.run("while True: pass", timeout=0.3)
    assert slow.status == "timeout" and slow.cause.kind == "timeout" and slow.exit_code == 124


def test_tests_explain_themselves(client):
    result = client.run("print(input())", tests=[{"stdin": "1", "expected": "1", "points": 2}, {"stdin": "2", "expected": "3", "name": "two", "points": 3}])
    assert result.explain() == '1 of 2 tests passed; test 2 (two): wrong_answer: line 1, column 1: expected "3", got "2"'
    assert result.points == {"earned": 2, "possible": 5} and result.groups == []
    result = client.run("print(1 // int(input()))", tests=[{"stdin": "0", "expected": ""}], stop_at="first")
    assert result.explain() == "0 of 1 tests passed; test 1: error: ZeroDivisionError: integer division or modulo by zero (line 1)"


def test_refusals(client, daemon):
    with pytest.raises(package.InvalidRequest) as caught:
        client.run("1", timeout=-1)
    assert (caught.value.status, caught.value.field) == (400, "limits.timeout")
    with pytest.raises(TypeError, match="did you mean 'memory'"):
        client.run("1", memorry="1g")
    with pytest.raises(package.NotFound):
        client.get("ex_none")
    with pytest.raises(package.ConnectionFailed, match="start one with `atoll serve`"):
        Client("http://127.0.0.1:9").run("1")
    with pytest.raises(package.AtollError, match="no address of a daemon"):
        Client("ftp://x")
    with Client("http://%s" % daemon.address) as over_tcp:
        assert over_tcp.run("print(1)").ok


def test_errors_cross_processes(client):
    """As concurrent.futures hands them from its workers to the caller."""
    from atoll.environment import SandboxError
    for call in (lambda: client.run("1", timeout=-1), lambda: client.run("1/0", check=True), lambda: client.get("ex_none")):
        with pytest.raises(package.AtollError) as caught:
            call()
        again = pickle.loads(pickle.dumps(caught.value))
        assert (type(again), str(again), vars(again)) == (type(caught.value), str(caught.value), vars(caught.value))
    own = pickle.loads(pickle.dumps(SandboxError("OwnError", "x")))
    assert (own.type, str(own)) == ("OwnError", "OwnError: x")


def test_streams(client):
    seen, marks = [], []
    result = client.run("import sys, time\nfor n in range(3):\n    print(n, flush=True); time.sleep(0.05)\nprint('e', file=sys.stderr)",
                        on_stdout=seen.append, on_stderr=marks.append)
    assert result.ok and "".join(seen) == "0\n1\n2\n" and len(seen) > 1 and marks == ["e\n"]
    events = list(client.stream("print(1)"))
    assert events[0]["event"] == "start" and events[-1]["event"] == "result"


def test_leaving_a_stream_cancels(client):
    for event in client.stream("import time\nprint('on', flush=True); time.sleep(60)", labels={"left": "yes"}):
        if event["event"] == "stdout":
            break
    wait_until(lambda: [x["status"] for x in client.history(label="left=yes")] == ["cancelled"])


def test_jobs(client):
    name = client.submit("print(7)", idempotency_key="sdk-job")
    assert client.submit("print(7)", idempotency_key="sdk-job") == name
    assert client.wait(name).stdout == "7\n" and client.get(name)["status"] == "success"
    again = client.replay(name)
    assert client.wait(again).stdout == "7\n" and again != name
    failed = client.run("1/0")
    assert client.analysis(failed.id)["exception"] == "ZeroDivisionError"
    assert client.debug_report(failed.id)["status"] == "failure"
    client.delete(name)
    with pytest.raises(package.NotFound):
        client.get(name)
    running = client.submit("import time; time.sleep(60)")
    client.cancel(running)
    assert client.wait(running).status == "cancelled"
    assert "python" in [row["name"] for row in client.languages()] and client.limits() and client.doctor() and client.stats()


def test_many_jobs(client):
    programs = [{"code": "print(7)", "timeout": 5}, {"code": "echo 8", "language": "bash"}, {"code": "", "language": "nonesuch"}]
    names = [one["id"] for one in client.submit_many(programs, idempotency_key="sdk-many")]
    assert [one["id"] for one in client.submit_many(programs, idempotency_key="sdk-many")] == names
    for name in names:
        client.wait(name)
    assert [one["stdout"] for one in client.get_many(names)] == ["7\n", "8\n", ""]
    assert client.get_many(["ex_" + "a" * 26])[0]["problem"]["status"] == 404


def test_connections_are_kept(client):
    """Also over a restart of the front: an idle connection that was closed is noticed before anything is sent on it."""
    client.run("1")
    idle = client._transport._idle[0]
    client.run("1")
    assert client._transport._idle == [idle]


def test_a_restarted_front_is_met_again(mode, stage, work):
    served = Served(Atoll(mode, stage), work)
    with Client("unix:%s" % served.daemon.socket) as one:
        assert one.run("print(1)").ok
        n = len(served.daemon.records)
        os.kill(served.daemon.child("front"), signal.SIGKILL)
        served.daemon.wait_record("ready", n)
        assert one.run("print(2)").stdout == "2\n"
    served.end()


def test_threads(client):
    outputs = [None] * 16

    def one(number):
        outputs[number] = client.run("print(%d)" % number).stdout

    threads = [threading.Thread(target=one, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outputs == ["%d\n" % number for number in range(16)]


def test_a_thousand_at_once(daemon):
    async def main():
        async with AsyncClient("unix:%s" % daemon.socket) as one:
            results = await asyncio.gather(*[one.run("echo %d" % number, "bash") for number in range(1000)])
            assert [result.stdout for result in results] == ["%d\n" % number for number in range(1000)]

    asyncio.run(main())


@pytest.mark.parametrize("call", ["asyncio.run(together())", "list(ThreadPoolExecutor(60).map(atoll.default_client().run, codes))"])
def test_more_at_once_than_descriptors(daemon, call):
    """The others wait until a connection is free."""
    script = run_script("import asyncio, resource, atoll\nfrom concurrent.futures import ThreadPoolExecutor\n"
                        "resource.setrlimit(resource.RLIMIT_NOFILE, (30, 30))\ncodes = ['print(%d)' % n for n in range(60)]\n"
                        "async def together():\n    async with atoll.AsyncClient() as one:\n"
                        "        return await asyncio.gather(*[one.run(code) for code in codes])\n"
                        "print([result.stdout for result in " + call + "] == ['%d\\n' % n for n in range(60)])",
                        ATOLL_URL="unix:%s" % daemon.socket)
    out, err = script.communicate(timeout=60)
    assert (out, script.returncode) == ("True\n", 0), err


def test_asyncio(daemon):
    async def main():
        async with AsyncClient("unix:%s" % daemon.socket) as one:
            seen = []

            async def take(text):
                seen.append(text)

            assert (await one.run("print(1)", on_stdout=take)).ok and seen == ["1\n"]
            assert [event["event"] async for event in one.stream("print(1)")][-1] == "result"
            name = await one.submit("print(8)", labels={"in": "asyncio"})
            assert (await one.wait(name)).stdout == "8\n" and (await one.get(name))["status"] == "success"
            assert await one.output(name) == b"8\n"
            many = [job["id"] for job in await one.submit_many([{"code": "print(9)"}])] + [name]
            assert (await one.wait(many[0])).ok and [job["stdout"] for job in await one.get_many(many)] == ["9\n", "8\n"]
            task = asyncio.ensure_future(one.run("import time; time.sleep(60)", labels={"task": "gone"}))
            while not await one.history(label="task=gone") and not (await one.stats())["now"]["running"]:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            while [x["status"] for x in await one.history(label="task=gone")] != ["cancelled"]:
                await asyncio.sleep(0.01)
            with pytest.raises(package.InvalidRequest):
                await one.run("1", timeout=-1)
        with pytest.raises(package.ConnectionFailed):
            await AsyncClient("http://127.0.0.1:9").run("1")

    asyncio.run(main())


def daemons():
    """The private daemons that run."""
    found = []
    for name in os.listdir("/proc"):
        try:
            with open("/proc/%s/cmdline" % name, "rb") as file:
                if b"--until-eof" in file.read().split(b"\0"):
                    found.append(int(name))
        except OSError:
            pass
    return found


@pytest.mark.parametrize("how", ["exit", "kill"])
def test_private_daemon(stage, how):
    script = run_script("import atoll, time\nprint(atoll.run('print(6 * 7)').stdout, atoll.run('import os; print(os.getpid())').ok, flush=True)\n"
                        + ("" if how == "exit" else "time.sleep(60)"))
    assert script.stdout.readline() == "42\n" and script.stdout.readline() == " True\n", script.stderr.read()
    if how == "kill":
        assert daemons()
        script.kill()
    out, err = script.communicate(timeout=60)
    assert how == "kill" or (script.returncode, out, err) == (0, "", "")
    wait_until(lambda: not daemons())


@pytest.mark.parametrize("call", ["atoll.run(code)", "atoll.run(code, on_stdout=print)", "execute_code('python', code)",
                                  "asyncio.run(atoll.AsyncClient().run(code))"])
def test_interrupt_cancels(daemon, call):
    script = run_script("import asyncio, atoll, time\nfrom atoll.tools import execute_code\ncode = 'import time; time.sleep(60)'\n" + call,
                        ATOLL_URL="unix:%s" % daemon.socket)
    with Client("unix:%s" % daemon.socket) as one:
        wait_until(lambda: one.stats()["now"]["running"] == 1)
        script.send_signal(signal.SIGINT)
        _, err = script.communicate(timeout=30)
        assert "KeyboardInterrupt" in err
        wait_until(lambda: one.history(limit=1)[0]["status"] == "cancelled")


def test_default_sockets(daemon, monkeypatch, tmp_path):
    """Where the daemon puts its socket when nothing names one."""
    from atoll import _address
    for name in ("ATOLL_URL", "ATOLL_SOCKET", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(_address, "SYSTEM_SOCKET", str(tmp_path / "system"))
    assert _address.find_address() is None
    for name, place in ((None, ".local/state/atoll/atoll.sock"), ("XDG_STATE_HOME", "atoll/atoll.sock"), ("XDG_RUNTIME_DIR", "run/atoll/atoll.sock")):
        if name:
            monkeypatch.setenv(name, str(tmp_path if name == "XDG_STATE_HOME" else tmp_path / "run"))
        path = tmp_path / place
        path.parent.mkdir(parents=True)
        path.symlink_to(daemon.socket)
        assert _address.find_address().path == str(path)
    assert Client().run("print(1)").ok
    monkeypatch.setenv("ATOLL_SOCKET", str(daemon.socket))
    assert Client().url == "unix:%s" % daemon.socket
    # What is named has no substitute: no private daemon, although this package could start one.
    for name, named in (("ATOLL_SOCKET", str(tmp_path / "nothing")), ("ATOLL_URL", "http://127.0.0.1:1")):
        monkeypatch.setenv(name, named)
        with pytest.raises(package.ConnectionFailed, match="no daemon answers at"):
            Client().run("print(1)")
        monkeypatch.setenv(name, "off")
        assert _address.find_address() is None


def test_no_program():
    script = run_script("import atoll\ntry: atoll.run('1')\nexcept atoll.ConnectionFailed as error: print(error)", ATOLL_BIN="/nowhere/atoll")
    assert "the private daemon ended at once: " in (said := script.communicate(timeout=30)[0]) and "/nowhere/atoll: not found" in said


@pytest.mark.parametrize("name", MODULES)
def test_doctests(daemon, monkeypatch, name):
    module = importlib.import_module(name)
    monkeypatch.setenv("ATOLL_URL", "unix:%s" % daemon.socket)
    monkeypatch.setattr(package, "_default", None)
    results = doctest.testmod(module)
    assert results.failed == 0 and results.attempted > 0
    if package._default is not None:
        package._default.close()


def test_installs_without_network(tmp_path):
    """From the tree into a venv, from the sdist for Debian's own Python. pip is the wheel that python3-venv brings."""
    tree = tmp_path / "tree"
    copy = tree / "sdk" / "python"
    shutil.copytree(SDK, copy, ignore=shutil.ignore_patterns("__pycache__"))
    code = "import sys; sys.path.insert(0, 'build_backend'); import backend; print(backend.build_sdist('.')); print(backend.build_wheel('.'))"
    built = subprocess.run([PYTHON, "-c", code], cwd=copy, check=True, capture_output=True, text=True).stdout.split()
    assert built == ["atoll-0.1.0.tar.gz", "atoll-0.1.0-py3-none-any.whl"]
    assert "atoll/py.typed" in zipfile.ZipFile(copy / built[1]).namelist()

    wheel = sorted(pathlib.Path("/usr/share/python-wheels").glob("pip-*.whl"))[-1]
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)

    def install(python, *words):
        subprocess.run([python, wheel / "pip", "install", "--quiet", "--no-index", "--no-cache-dir", "--disable-pip-version-check", *words], check=True)
        done = subprocess.run([python, "-c", "import atoll; print(atoll.__version__, atoll.__file__)"], check=True, capture_output=True, text=True,
                              cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path / "own")})
        return done.stdout

    # What is installed from a tree finds the tree's program.
    for name, target in (("include/atoll/atoll.h", ROOT / "include" / "atoll" / "atoll.h"), ("build/atoll", BINARY)):
        (tree / name).parent.mkdir(parents=True)
        (tree / name).symlink_to(target)
    assert install(tmp_path / "venv" / "bin" / "python", copy).startswith("0.1.0 %s" % (tmp_path / "venv"))
    code = "from atoll import _daemon; print(_daemon.find_program())"
    found = subprocess.run([tmp_path / "venv" / "bin" / "python", "-c", code], env={"PATH": "/bin"}, check=True, capture_output=True, text=True).stdout
    assert found == "%s\n" % (tree / "build" / "atoll")
    assert install(PYTHON, "--target", tmp_path / "own", copy / built[0]).startswith("0.1.0 %s" % (tmp_path / "own"))


def test_the_oldest_python_can_read_it():
    for path in sorted((SDK / "src").rglob("*.py")):
        ast.parse(path.read_text(encoding="utf-8"), str(path), feature_version=(3, 8))


def test_asyncio_is_loaded_when_it_is_needed():
    said = run_script("import sys, atoll\nprint('asyncio' in sys.modules, hasattr(atoll, 'x'), set(atoll.__all__) - set(dir(atoll)))\n"
                      "print(atoll.AsyncSandbox.__name__, 'asyncio' in sys.modules)").communicate(timeout=30)[0]
    assert said.splitlines()[0].startswith("False False ") and said.splitlines()[1] == "AsyncSandbox True"


def test_types():
    done = subprocess.run([PYTHON, "-m", "mypy", "--strict", "--cache-dir", os.devnull, "src/atoll"], cwd=SDK, capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stdout


def test_types_by_another_checker(tmp_path):
    pyright = ROOT / "build" / "npm" / "node_modules" / ".bin" / "pyright"
    if not pyright.exists():
        pytest.skip("pyright is not installed: `./dev test` takes it from npm")
    done = subprocess.run([pyright, "-p", "pyproject.toml"], cwd=SDK, env={**os.environ, "HOME": str(tmp_path)}, capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stdout


def test_both_clients_have_the_same_methods():
    def public(kind):
        return {name for name in vars(kind) if not name.startswith("_")}

    assert public(Client) == public(AsyncClient)
