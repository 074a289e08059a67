# SPDX-License-Identifier: Apache-2.0
"""A live interpreter: variables persist, an error does not end it, a timeout keeps the state, reset clears it.

Prints:

    [1, 1, 2, 3, 5, 8]
    ZeroDivisionError: division by zero (line 1)
    timeout, state kept
    still there: 8
    after reset: NameError
"""
import atoll

with atoll.Sandbox() as sandbox:
    sandbox.run("numbers = [1, 1]")
    sandbox.run("while len(numbers) < 6:\n    numbers.append(sum(numbers[-2:]))")
    print(sandbox.run("numbers").value)
    print(sandbox.run("1 / 0").explain())
    slow = sandbox.run("while True: pass", timeout=0.5)
    print("%s, state %s" % (slow.status, slow.session_state))
    print("still there:", sandbox.run("numbers[-1]").value)
    sandbox.reset()
    print("after reset:", sandbox.run("numbers").error["type"])
