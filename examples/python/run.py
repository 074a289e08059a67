# SPDX-License-Identifier: Apache-2.0
"""One program: its output, how it ended, and what it used.

Prints:

    42
    status: success, exit code 0
    the third line failed: KeyError: 'tea' (line 3). The key `tea` is not in the mapping: test with `in`, or read it with `.get()`.
    too slow: timeout, retry with more time: True
"""
import atoll

result = atoll.run("print(6 * 7)", timeout=5, memory="128m")
print(result.stdout, end="")
print("status: %s, exit code %d" % (result.status, result.exit_code))
assert result.memory_peak > 0 and result.duration < 5

result = atoll.run("prices = {}\n\nprices['tea']")
print("the third line failed:", result.explain())

result = atoll.run("while True: pass", timeout=0.5)
print("too slow: %s, retry with more time: %s" % (result.cause.kind, result.cause.retryable))
