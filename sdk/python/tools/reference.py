#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes doc/python.md, the reference of the package, from its docstrings. With --check: says whether the page is up to date.

The page has the names of each module's __all__: signature, docstring, examples, and of classes the public methods and properties.
"""
import importlib
import inspect
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGE = ROOT / "doc" / "python.md"
MODULES = ["atoll", "atoll.executor", "atoll.code_sandbox", "atoll.code_execution", "atoll.environment", "atoll.tools"]
HEAD = """<!-- not run: test_sdk_client.py runs the examples of the docstrings, and signatures are no program -->
# The Python package

This page is written by `sdk/python/tools/reference.py` from the docstrings; a test compares them. `doc/agent-tutorial.md` is the place to
begin, `examples/python/` has programs, `doc/troubleshooting.md` explains errors.
"""
WIDTH = 110


def annotation(text):
    return text if isinstance(text, str) else getattr(text, "__name__", str(text))


def parameter(row):
    text = {row.VAR_POSITIONAL: "*", row.VAR_KEYWORD: "**"}.get(row.kind, "") + row.name
    typed = row.annotation is not row.empty
    if typed:
        text += ": " + annotation(row.annotation)
    if row.default is not row.empty:
        text += (" = " if typed else "=") + ("…" if "<" in repr(row.default) else repr(row.default))
    return text


def signature(name, value):
    """`name(parameters) -> type`, on several lines where it is long."""
    try:
        found = inspect.signature(value)
    except ValueError:
        return name
    words, stars = [], False
    for row in found.parameters.values():
        if row.name in ("self", "cls"):
            continue
        if row.kind is row.KEYWORD_ONLY and not stars:
            words.append("*")
        stars = stars or row.kind in (row.KEYWORD_ONLY, row.VAR_POSITIONAL)
        words.append(parameter(row))
    back = "" if inspect.isclass(value) or found.return_annotation is found.empty else " -> " + annotation(found.return_annotation)
    if inspect.iscoroutinefunction(value):
        name = "async " + name
    line = "%s(%s)%s" % (name, ", ".join(words), back)
    return line if len(line) <= WIDTH else "%s(\n    %s)%s" % (name, ",\n    ".join(words), back)


def prose(value):
    """A docstring as Markdown: code in single backquotes, examples in blocks."""
    text = inspect.getdoc(value) or ""
    lines, out, inside = text.splitlines(), [], False
    for line in lines:
        if line.startswith(">>>") and not inside:
            inside = True
            out.append("```python")
        elif inside and not line.strip():
            inside = False
            out.append("```")
        out.append(line if inside else re.sub(r"``(.+?)``", r"`\1`", line))
    return "\n".join(out + ["```"] * inside)


def members(kind):
    for name, value in vars(kind).items():
        if name.startswith("_"):
            continue
        plain = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
        if inspect.isfunction(plain):
            yield "#### `%s`\n" % name, "```python\n%s\n```\n" % signature(name, plain), prose(plain)
        elif isinstance(value, property):
            yield "#### `%s`\n" % name, "", prose(value)


def entry(name, value):
    if inspect.isclass(value):
        is_error = issubclass(value, Exception)
        yield "### class `%s`\n" % name
        if not is_error:
            yield "```python\n%s\n```\n" % signature(name, value)
        yield prose(value) + "\n"
        if not is_error and value.__init__.__doc__ and "See help" not in value.__init__.__doc__:
            yield prose(value.__init__) + "\n"
        for parts in members(value):
            yield "\n".join(part for part in parts if part) + "\n"
    elif inspect.isfunction(value):
        yield "### `%s`\n" % name
        yield "```python\n%s\n```\n" % signature(name, value)
        yield prose(value) + "\n"


def page():
    out = [HEAD]
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        out.append("## `%s`\n" % module_name)
        out.append(prose(module) + "\n")
        for name in module.__all__:
            value = getattr(module, name)
            if not (inspect.isclass(value) or inspect.isfunction(value)):
                continue
            out.extend(entry(name, value))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)).rstrip() + "\n"


def main():
    sys.path.insert(0, str(ROOT / "sdk" / "python" / "src"))
    text = page()
    if "--check" in sys.argv[1:]:
        if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
            sys.exit("doc/python.md is not up to date; run sdk/python/tools/reference.py")
    else:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
