# SPDX-License-Identifier: Apache-2.0
"""Run n variants from one prepared state, keep the best: each child of a fork has the parent's variables and files, and its own life.

Prints:

    variant 0: error 4.0
    variant 1: error 0.25
    variant 2: error 1.0
    kept: 0.5 after 4 points
    the parent has no guess: True
"""
import atoll

VARIANTS = ["guess = 3.0", "guess = 0.5", "guess = 2.0"]

with atoll.Sandbox() as parent:
    parent.run("points = [(x, x + 1.0) for x in range(4)]  # expensive, and done once")
    children = parent.fork(len(VARIANTS))
    scores = []
    for number, (child, code) in enumerate(zip(children, VARIANTS)):
        child.run(code, check=True)
        error = child.run("sum((x + guess - y) ** 2 for x, y in points) / len(points)").value
        print("variant %d: error %s" % (number, error))
        scores.append((error, number))
    best = children[min(scores)[1]]
    print("kept: %s after %d points" % best.run("(guess, len(points))").value)
    print("the parent has no guess:", not parent.run("guess").ok)
    for child in children:
        child.close()
