#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the sizes a reader can keep in mind: lines a file, lines a function, parameters a function.

Relies on the layout clang-format gives: a function's braces stand alone in column 0.
"""

import lint

FILE_LINES = 1000
FUNCTION_LINES = 120
PARAMETERS = 7


def signature_start(lines, brace):
    start = brace
    while start > 0 and lines[start - 1].strip() and lines[start - 1][-1] not in ";}/":
        start -= 1
    return start


def functions(text):
    """(line, name, body lines, parameters) of each function definition."""
    lines = lint.blank(text).split("\n")
    for number, line in enumerate(lines):
        if line != "{":
            continue
        end = next((i for i in range(number, len(lines)) if lines[i] == "}"), None)
        if end is None:
            continue
        start = signature_start(lines, number)
        signature = " ".join(lines[start:number])
        if "(" not in signature:
            continue
        head, _, _ = signature.partition("(")
        parameters = lint.split_arguments(lint.call_arguments(signature, len(head)))
        count = 0 if parameters in ([""], ["void"]) else len(parameters)
        yield start + 1, head.split()[-1].lstrip("*"), end - number - 1, count


def check(root):
    for path in lint.files(root, "src", "test", "bench", "include"):
        text = path.read_text()
        lines = text.count("\n")
        if lines > FILE_LINES:
            yield path, lines, f"{lines} lines; at most {FILE_LINES}"
        for line, name, body, parameters in functions(text):
            if body > FUNCTION_LINES:
                yield path, line, f"{name}() has {body} lines; at most {FUNCTION_LINES}"
            if parameters > PARAMETERS:
                yield path, line, f"{name}() has {parameters} parameters; at most {PARAMETERS}"


if __name__ == "__main__":
    lint.main(check)
