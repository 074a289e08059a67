# SPDX-License-Identifier: Apache-2.0
"""The loop of a coding agent: write, run, read what went wrong, write again. The model here is a list of answers.

Prints:

    try 1: NameError: name 'mean' is not defined (line 1)
    try 2: ZeroDivisionError: division by zero (line 3)
    try 3: 2.0
"""
import atoll

ANSWERS = iter([
    "mean(numbers)",
    "def mean(values):\n    total = sum(values)\n    return total / (len(values) - len(values))\nmean(numbers)",
    "def mean(values):\n    return sum(values) / len(values)\nmean(numbers)",
])


def ask_model(prompt: str) -> str:
    """Stands for a call of a language model; the prompt has the last error."""
    return next(ANSWERS)


with atoll.Sandbox(timeout=10) as sandbox:
    sandbox.run("pass", variables={"numbers": [1, 2, 3]})
    prompt = "Write Python whose last expression is the mean of `numbers`."
    for attempt in range(1, 6):
        result = sandbox.run(ask_model(prompt))
        if result.ok:
            print("try %d: %s" % (attempt, result.value))
            break
        print("try %d: %s" % (attempt, result.explain()))
        prompt += "\nThat failed: %s\n%s" % (result.explain(), result.stderr)
