# SPDX-License-Identifier: Apache-2.0
"""The interfaces of five other projects, a line each.

Prints:

    000: (5, None)
    001: Hello, World!
    003: 30
    004: 42
"""
import asyncio

from atoll.code_sandbox import CodeSandbox
from atoll.environment import SandboxEnvironment
from atoll.executor import SandboxExecutor
from atoll.tools import execute_code

TOOL = "class Adder:\n    def add(self, a, b):\n        return a + b"
print("000:", SandboxExecutor(timeout_seconds=5).run(TOOL, "Adder", "add", {"a": 2, "b": 3}))
print("001:", CodeSandbox().execute("print('Hello, World!')", "python").stdout.strip())
given = {"data": [1, 2, 3, 4, 5], "multiply": lambda x, y: x * y}
print("003:", asyncio.run(SandboxEnvironment().execute_code("return multiply(sum(data), 2)", given)))
print("004:", execute_code("python", "print(6 * 7)")["stdout"].strip())
# The client of NVIDIA NeMo Agent Toolkit does the same over HTTP: atoll.code_execution.get_sandbox().execute_code("print(1)"), with `atoll serve` on port 6000.
