# SPDX-License-Identifier: Apache-2.0
"""The leak oracle finds what was planted, and only that."""
import os
import secrets
import subprocess

import pytest

import oracle


@pytest.fixture
def plant():
    """plant(name): a directory of the rootless user's in /tmp."""
    oracle.forget()
    made = []

    def make(name):
        made.append(f"/tmp/{name}{secrets.token_hex(8)}")
        os.mkdir(made[-1], 0o700)
        os.chown(made[-1], oracle.NOBODY, oracle.NOBODY) if oracle.IS_ROOT else None
        return made[-1]

    yield make
    for path in made:
        os.rmdir(path)
    oracle.forget()


def left_since(before):
    return oracle.leaked_since(before, patience=0.1).get("file", [])


@pytest.mark.skipif(not oracle.IS_ROOT, reason="needs a second user")
def test_files_are_known_by_their_owner(plant):
    before = oracle.snapshot()
    path, own = plant(""), plant("tests-")
    assert path in left_since(before) and own not in left_since(before)


def test_files_are_known_by_their_name(plant):
    before = oracle.snapshot()
    assert plant("atoll-") in left_since(before)


def test_who_is_to_remove_it_may_still_do_so(plant):
    before = oracle.snapshot()
    path = plant("atoll-")
    with subprocess.Popen(["sh", "-c", "read _", path], stdin=subprocess.PIPE) as keeper:
        assert path not in left_since(before)
        keeper.stdin.close()
    assert path in left_since(before)


@pytest.fixture
def nobody():
    """A process of the rootless user's and the shell it hangs below."""
    script = f"exec 3<&0; setpriv --reuid={oracle.NOBODY} --clear-groups -- sh -c 'echo $$; read _' <&3 & wait"
    with subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as shell:
        yield int(shell.stdout.readline()), shell.pid
        shell.stdin.close()


@pytest.mark.skipif(not oracle.IS_ROOT, reason="needs a second user")
def test_processes(nobody, monkeypatch):
    """A child of ours is ours, and a child of another process is not; below a process that is kept, children may stay."""
    def is_found():
        return any(text.startswith(f"pid {nobody[0]} (sh) uid {oracle.NOBODY} started ") for text in oracle.list_processes())

    assert not is_found()  # a shell's, who is not the product's
    monkeypatch.setattr(os, "getpid", lambda: nobody[1])
    assert is_found()
    monkeypatch.setattr(oracle, "KEPT", {nobody[1]})
    assert not is_found()


def test_groups_are_empty_if_all_below_are(monkeypatch):
    procs = {"/g/a": "", "/g/a/b": "", "/g/a/b/c": "1\n", "/g/ab": "", "/g/d": "", "/g/d/e": None}

    def read(path):
        text = procs[path.removesuffix("/cgroup.procs")]
        if text is None:
            raise FileNotFoundError(path)
        return text

    monkeypatch.setattr(oracle, "list_cgroups", lambda: set(procs))
    monkeypatch.setattr(oracle, "read", read)
    monkeypatch.setattr(oracle, "held_by_pools", lambda groups: set())
    assert oracle.list_empty_cgroups() == {"/g/ab"}


def test_a_look_is_kept_until_something_begins(monkeypatch):
    monkeypatch.setattr(oracle, "WATCHED", {"file": lambda: {"a"}})
    oracle.forget()
    before = oracle.snapshot()
    assert oracle.leaked_since(before, 0) == {} and oracle.snapshot() is oracle.snapshot()
    kept = oracle.snapshot()
    monkeypatch.setitem(oracle.WATCHED, "file", lambda: {"a", "b"})
    assert oracle.snapshot() is kept, "made once more"
    assert oracle.leaked_since(kept, 0) == {"file": ["b"]}
    assert oracle.snapshot() == {"file": {"a", "b"}}
    oracle.forget()
