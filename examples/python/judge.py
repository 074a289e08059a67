# SPDX-License-Identifier: Apache-2.0
"""Judging submissions against tests: one build, one fresh run each, a verdict each.

Prints:

    python: passed passed
    c: passed passed
    wrong: passed wrong_answer
"""
import atoll

TESTS = [{"stdin": "1 2\n", "expected": "3\n"}, {"stdin": "20 22\n", "expected": "42\n"}]
SUBMISSIONS = {
    "python": ("python", "print(sum(map(int, input().split())))"),
    "c": ("c", '#include <stdio.h>\nint main(void) { int a, b; scanf("%d %d", &a, &b); printf("%d\\n", a + b); }'),
    "wrong": ("python", "print(3)"),
}

for name, (language, code) in SUBMISSIONS.items():
    result = atoll.run(code, language, tests=TESTS, timeout=20)
    print("%s: %s" % (name, " ".join(test["verdict"] for test in result.tests)))
