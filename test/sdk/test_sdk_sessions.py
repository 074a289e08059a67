# SPDX-License-Identifier: Apache-2.0
"""Sessions of the Python package: Sandbox and AsyncSandbox with state, host functions, files, fork, and rich results."""
import asyncio
import gc
import hashlib
import io
import os
import signal
import sys
import threading
import time

import pytest

from program import ROOT, Atoll
from resident import wait_until
from web import Served

sys.path.insert(0, str(ROOT / "sdk" / "python" / "src"))
import atoll as package  # noqa: E402
from atoll import AsyncClient, AsyncSandbox, Sandbox  # noqa: E402

pytestmark = pytest.mark.modes("root")


@pytest.fixture
def sandbox(client):
    with Sandbox(client=client) as one:
        yield one


def test_state(sandbox):
    assert sandbox.run("x = 20\nprint('hi')").stdout == "hi\n"
    result = sandbox.run("x + 1")
    assert (result.value, result.value_type, result.value_repr, result.ok, result.session_state) == (21, "int", "21", True, "kept")
    assert sandbox.run("total = sum(data)\nreturn total", variables={"data": (1, 2, 3)}).value == 6
    assert sandbox.run("import asyncio\nawait asyncio.sleep(0)\ndata").value == (1, 2, 3)
    odd = sandbox.run("object()")
    assert odd.value.startswith("<object object at") and odd.value_type == "object"
    failed = sandbox.run("x / 0")
    assert (failed.status, failed.error["type"], failed.exit_code) == ("error", "ZeroDivisionError", 1) and "ZeroDivisionError" in failed.stderr
    with pytest.raises(package.ExecutionError, match="division by zero"):
        sandbox.run("x / 0", check=True)
    assert sandbox.run("x").value == 20
    assert sandbox.logs().stdout == "hi\n" and "ZeroDivisionError" in sandbox.logs().stderr
    sandbox.reset()
    assert sandbox.run("'x' in globals()").value is False


def test_two_threads_take_turns(sandbox):
    values = []
    threads = [threading.Thread(target=lambda: values.append(sandbox.run("import time\ntime.sleep(0.05)\nlen('ab')").value)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert values == [2] * 4


def test_streams(sandbox):
    seen = []
    result = sandbox.run("import sys, time\nprint(1, flush=True); time.sleep(0.05); print(2, flush=True); sys.stderr.write('e')",
                         on_stdout=lambda text: seen.append(("out", text)), on_stderr=lambda text: seen.append(("err", text)))
    assert result.stdout == "1\n2\n" and "".join(text for kind, text in seen if kind == "out") == "1\n2\n" and ("err", "e") in seen


def test_host_functions(client):
    def fail(kind):
        raise {"value": ValueError, "own": type("OwnError", (Exception,), {})}[kind]("told")

    with Sandbox(client=client, host_functions={"multiply": lambda x, y: x * y, "fail": fail}) as sandbox:
        result = sandbox.run("multiply(6, y=7), multiply('a', 3)")
        assert result.value == (42, "aaa") and [call["name"] for call in result.host_calls] == ["multiply", "multiply"]
        assert sandbox.run("try:\n    fail('value')\nexcept ValueError as error:\n    text = str(error)\ntext").value == "told"
        assert sandbox.run("fail('own')").error["type"] == "HostError"

        @sandbox.register
        def later():
            return b"bytes"

        assert sandbox.run("later()").value == b"bytes" and later() == b"bytes"
        assert sandbox.run("only()", host_functions={"only": lambda: {1, 2}}).value == {1, 2}
        assert sandbox.run("multiply(object(), 1)").error["type"] == "TypeError"


def test_host_functions_at_once(client):
    """Two calls of the code are open at once when the object has two threads for them."""
    together = threading.Barrier(2, timeout=20)
    code = "import asyncio\nawait asyncio.gather(meet(1), meet(2))"
    with Sandbox(client=client, host_threads=2) as sandbox:
        assert sandbox.run(code, host_functions={"meet": lambda n: n + 0 * together.wait()}).value == [1, 2]


def test_timeout_and_interrupt(sandbox):
    sandbox.run("x = 5")
    slow = sandbox.run("while True: pass", timeout=0.3)
    assert slow.status == "timeout" and slow.session_state == "kept" and sandbox.run("x").value == 5
    timer = threading.Timer(0.3, sandbox.interrupt)
    timer.start()
    result = sandbox.run("import time\ntime.sleep(60)")
    timer.join()
    assert result.error["type"] == "KeyboardInterrupt" and sandbox.run("x").value == 5


def test_ctrl_c_keeps_the_state(sandbox):
    sandbox.run("x = 6")
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            sandbox.run("import time\ntime.sleep(60)")
    finally:
        signal.signal(signal.SIGINT, before)
        timer.join()
    assert sandbox.run("x").value == 6


def test_files(client):
    with Sandbox(client=client, files={"in.txt": "text", "raw/b": b"\xff"}) as sandbox:
        assert sandbox.run("open('raw/b', 'rb').read()").value == b"\xff"
        sandbox.files.write("a b/ü.txt", "späte")
        sandbox.run("open('out', 'w').write(open('a b/ü.txt', encoding='utf-8').read())")
        assert sandbox.files.read_text("out") == "späte" and sandbox.files.read("in.txt") == b"text"
        files = {file.path: file for file in sandbox.files.list()}
        assert files["out"].type == "file" and files["out"].size == 6 and "a b/ü.txt" in files
        assert [file.path for file in sandbox.files.list("raw")] == ["raw/b"]
        sandbox.files.remove("out")
        with pytest.raises(package.NotFound):
            sandbox.files.read("out")


def test_rich_results(sandbox):
    pytest.importorskip("matplotlib")
    shown = []
    result = sandbox.run("import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nNone", on_output=shown.append, timeout=60)
    assert result.ok, result.stderr
    assert result.outputs[0].png.startswith(b"\x89PNG") and "<svg" in result.outputs[0].svg and shown == result.outputs
    table = sandbox.run("import pandas\npandas.DataFrame({'a': [1]})", timeout=60).outputs[0]
    assert "<table" in table.html and "a" in table.text
    assert sandbox.run("display({'a': 1})").outputs[0].text == "{'a': 1}"


def test_fork(client):
    with pytest.raises(package.Conflict):
        Sandbox(client=client, forkable=False).fork()
    sandbox = Sandbox(client=client)
    sandbox.run("import io\nx = 1\nnumbers = iter(range(5)); next(numbers)\ntext = io.StringIO('abc'); text.read(1)\nopen('f', 'w').write('f')")
    children = sandbox.fork(2)
    try:
        values = [child.run("x += %d; return x, list(numbers), text.read(), open('f').read()" % n).value for n, child in enumerate(children)]
        assert values == [(1 + n, [1, 2, 3, 4], "bc", "f") for n in range(2)]
        assert sandbox.run("x, next(numbers)").value == (1, 1)
    finally:
        for one in [sandbox, *children]:
            one.close()


@pytest.mark.parametrize("language, first, second, value", [
    ("javascript", "let x = 20", "x + 1", 21), ("ruby", "x = 20", "x + 1", 21), ("bash", "x=20", "echo $((x + 1))", None)])
def test_languages(client, language, first, second, value):
    with Sandbox(language, client=client) as sandbox:
        assert sandbox.run(first).ok
        result = sandbox.run(second)
        assert result.ok and (result.value == value if value else result.stdout == "21\n")


def test_host_functions_of_javascript(client):
    with Sandbox("javascript", client=client, host_functions={"multiply": lambda x, y: x * y}) as sandbox:
        assert sandbox.run("await multiply(6, 7)").value == 42
        assert sandbox.run("await multiply({}, 7)").error["type"] == "TypeError"


def test_lives(client):
    """A session ends with its block, with its object, by close; not with an object that only connected to it."""
    with Sandbox(client=client, labels={"of": "lives"}) as sandbox:
        assert sandbox.id in [session["id"] for session in client.sessions()] and sandbox.info()["labels"] == {"of": "lives"}
        again = Sandbox.connect(sandbox.id, client=client)
        assert again.run("1 + 1").value == 2
        del again
        gc.collect()
        assert sandbox.run("2").value == 2
    kept = Sandbox(client=client).detach()
    gc.collect()
    with Sandbox.connect(kept, client=client) as found:
        assert found.run("3").value == 3
    left = Sandbox(client=client)
    name = left.id
    del left
    gc.collect()
    assert client.sessions() == []
    with pytest.raises(package.NotFound):
        Sandbox.connect(name, client=client)
    with pytest.raises(package.NotFound):
        sandbox.run("1")
    with pytest.raises(TypeError, match="'memmory' is neither"):
        Sandbox(client=client, memmory=1)


def test_asyncio(daemon):
    async def main():
        async with AsyncClient("unix:%s" % daemon.socket) as client:
            async with AsyncSandbox(client=client) as sandbox:
                both = asyncio.Event()

                async def meet(n):
                    if n == 2:
                        both.set()
                    await asyncio.wait_for(both.wait(), 20)
                    return n

                sandbox.register(meet)
                seen = []
                result = await sandbox.run("import asyncio\nprint('x')\nawait asyncio.gather(meet(1), meet(2))", on_stdout=seen.append)
                assert result.value == [1, 2] and seen == ["x\n"]
                assert (await sandbox.run("meet(2) + 1")).value == 3
                await sandbox.files.write("a", b"1")
                assert await sandbox.files.read_text("a") == "1" and [file.path for file in await sandbox.files.list()] == ["a"]
                await sandbox.files.remove("a")
                await sandbox.run("x = 7")
                task = asyncio.ensure_future(sandbox.run("import time\ntime.sleep(60)"))
                await asyncio.sleep(0.3)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert (await sandbox.run("x")).value == 7
                other = await AsyncSandbox.connect(sandbox.id, client=client)
                assert (await other.run("x")).value == 7
                assert (await sandbox.logs()).stdout == "x\n" and (await sandbox.info())["id"] == sandbox.id
                await sandbox.reset()
                assert not (await sandbox.run("x")).ok
            assert await client.sessions() == []
            with pytest.raises(package.AtollError, match="has not started"):
                await AsyncSandbox(client=client).run("1")

    asyncio.run(main())


def test_both_kinds_have_the_same_methods():
    def public(kind):
        return {name for name in vars(kind) if not name.startswith("_")}

    assert public(AsyncSandbox) - public(Sandbox) == {"files", "id", "start"} and public(Sandbox) <= public(AsyncSandbox)


def test_a_private_daemon():
    """A session that the program forgets ends with it, without a word."""
    from test_sdk_client import run_script
    script = run_script("import atoll, os, sys\ns = atoll.Sandbox(host_functions={'f': lambda: 2})\nif os.fork() == 0:\n    del s\n    sys.exit()\n"
                        "os.wait()\nprint(s.run('f()').value)")
    assert script.communicate(timeout=60) == ("2\n", "") and script.returncode == 0


def test_a_client_that_vanishes(daemon, client):
    """The execution under its host call is ended; the session can be used by another client."""
    from test_sdk_client import run_script
    with Sandbox(client=client) as sandbox:
        script = run_script("import atoll, time\ns = atoll.Sandbox.connect('%s', host_functions={'f': lambda: time.sleep(60)})\ns.run('f()')"
                            % sandbox.id, ATOLL_URL="unix:%s" % daemon.socket)
        wait_until(lambda: sandbox.info()["state"] == "busy")
        time.sleep(0.2)
        script.kill()
        script.communicate()
        assert sandbox.run("1 + 1").value == 2


def test_values_of_programs(client):
    """One-shot programs give values and outputs as well, when they are asked for."""
    result = client.run("import math\nmath.sqrt(16), {1, 2}", eval=True)
    assert result.value == (4.0, {1, 2}) and result.value_type == "tuple"
    assert client.run("display({'a': 1})", eval=True).outputs[0].text == "{'a': 1}"


def test_a_daemon_that_dies(mode, stage, work):
    """Its clients say so, in words that a caller can handle."""
    served = Served(Atoll(mode, stage), work)
    url = "unix:%s" % served.daemon.socket

    def kill_front():
        os.kill(served.daemon.child("front"), signal.SIGKILL)

    async def main():
        async with AsyncClient(url) as one:
            async with AsyncSandbox(client=one) as sandbox:
                with pytest.raises(package.ConnectionFailed, match="closed the connection in the middle of an answer"):
                    await sandbox.run("die()", host_functions={"die": kill_front})

    with package.Client(url) as one:
        with Sandbox(client=one) as sandbox:
            n = len(served.daemon.records)
            with pytest.raises(package.ConnectionFailed):
                sandbox.run("die()", host_functions={"die": kill_front})
            served.daemon.wait_record("ready", n)
            with pytest.raises(package.NotFound):
                sandbox.run("1")
    n = len(served.daemon.records)
    asyncio.run(main())
    served.daemon.wait_record("ready", n)
    served.end()


# ------------------------------------------------------------------------------------- large values and files


def test_a_large_value_is_fetched(client):
    with Sandbox(client=client) as sandbox:
        result = sandbox.run("['x' * 9_000_000, (1, 2)]")
        assert result.ok and result.value is None and result.value_truncated and result.value_type == "list"
        assert result.fetch_value() == ["x" * 9_000_000, (1, 2)] == client.value(result.id)
        small = sandbox.run("(1, 2)")
        assert not small.value_truncated and small.fetch_value() == (1, 2) == client.value(small.id)
    with pytest.raises(RuntimeError, match="client's value"):
        package.Result.from_json({"id": "ex_1", "status": "success", "value_truncated": True}).fetch_value()


def test_files_of_any_size(client, tmp_path):
    data = os.urandom(40 << 20)
    (tmp_path / "in").write_bytes(data)
    with Sandbox(client=client) as sandbox:
        with open(tmp_path / "in", "rb") as source:
            sandbox.files.write("big.bin", source)
        assert sandbox.run("import hashlib; hashlib.sha256(open('big.bin', 'rb').read()).hexdigest()").value == hashlib.sha256(data).hexdigest()
        with open(tmp_path / "out", "wb") as target:
            assert sandbox.files.download("big.bin", target) == len(data)
        assert (tmp_path / "out").read_bytes() == data == sandbox.files.read("big.bin")
        assert sandbox.files.read("big.bin", 35_000_000, 5) == data[35_000_000:35_000_005]
        sandbox.files.write("empty", b"")
        assert sandbox.files.read("empty") == b"" and sandbox.files.download("empty", io.BytesIO()) == 0
        with pytest.raises(TypeError, match="mode 'rb'"):
            sandbox.files.write("text", io.StringIO("x"))


def test_paths_outside_of_the_work_directory_are_explained(client):
    with Sandbox(client=client) as sandbox:
        for call in (lambda: sandbox.files.read("/tmp/q.txt"), lambda: sandbox.files.list("/tmp"), lambda: sandbox.files.write("../up", "x")):
            with pytest.raises(ValueError, match="not in the session's work directory /sandbox"):
                call()
        with pytest.raises(ValueError, match="'d/' names a directory"):
            sandbox.files.write("d/", "x")
        sandbox.files.write("/sandbox/d/e.txt", "x")
        assert sandbox.files.read_text("./d/e.txt") == "x" and [file.path for file in sandbox.files.list("/sandbox/d/")] == ["d/e.txt"]


def test_what_was_lost_is_told(client):
    with Sandbox(client=client) as sandbox:
        died = sandbox.run("open('kept.txt', 'w').write('kept'); import os; os._exit(3)")
        assert died.session_state == "lost" and "exited with 3" in died.session_lost
        after = sandbox.run("open('kept.txt').read()")
        assert (after.value, after.session_state, after.session_lost) == ("kept", "lost", died.session_lost)
        assert sandbox.run("1").session_state == "kept" and sandbox.run("1").session_lost is None


def test_help_of_a_host_function(client):
    def price(name: str, count: int = 1) -> float:
        """What it costs."""
        return 3.0 * count

    with Sandbox(client=client, host_functions={"price": price, "built": print}) as sandbox:
        shown = sandbox.run("help(price)\nprice('tea', count=2)")
        assert "price(name: str, count: int = 1) -> float" in shown.stdout and "What it costs." in shown.stdout and shown.value == 6.0, shown


def test_asynchronous_values_and_files(daemon):
    async def main():
        async with AsyncClient("unix:%s" % daemon.socket) as client, AsyncSandbox(client=client) as sandbox:
            result = await sandbox.run("'x' * 9_000_000")
            assert result.value is None and await client.value(result.id) == "x" * 9_000_000
            await sandbox.files.write("big", io.BytesIO(b"y" * (20 << 20)))
            target = io.BytesIO()
            assert await sandbox.files.download("big", target) == 20 << 20 and target.getvalue() == b"y" * (20 << 20)
            with pytest.raises(ValueError, match="work directory"):
                await sandbox.files.list("/tmp")

    asyncio.run(main())
