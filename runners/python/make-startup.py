#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes startup.cpython-311.bin of startup.py: /usr/bin/python3.11 make-startup.py

To compile even an empty file takes an interpreter a millisecond at its start. The result is kept beside its source, because
building Atoll needs no Python; interpreters of other versions pass it by and compile. A test compares the two.
"""
import importlib.util
import sys
from importlib._bootstrap_external import _code_to_hash_pyc
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main():
    source = (HERE / "startup.py").read_bytes()
    code = compile(source, "/.atoll/encodings.py", "exec", dont_inherit=True, optimize=2)
    made = _code_to_hash_pyc(code, importlib.util.source_hash(source), checked=False)
    (HERE / f"startup.{sys.implementation.cache_tag}.bin").write_bytes(made)


main()
