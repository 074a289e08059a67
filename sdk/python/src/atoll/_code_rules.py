# SPDX-License-Identifier: Apache-2.0
"""ToolWeaver's look at code before it runs. It is a courtesy to authors; the boundary is the sandbox."""
from __future__ import annotations

import ast
from typing import AbstractSet, Iterator, Optional

FORBIDDEN_MODULES = frozenset(("os", "sys", "subprocess", "socket", "shutil", "tempfile", "pickle"))
FORBIDDEN_CALLS = frozenset(("eval", "exec", "compile", "__import__", "open", "input", "globals", "locals", "vars", "dir"))
PROTECTED_NAMES = frozenset(("__builtins__", "__globals__", "__dict__"))


class SandboxSecurityError(Exception):
    """The code does what the rules forbid, or is no Python."""


def _imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield alias.name
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield node.module


def _assigned(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
        yield node.id
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, (ast.Store, ast.Del)):
        yield node.attr
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, (ast.Store, ast.Del)):
        base = node.value
        yield base.id if isinstance(base, ast.Name) else base.attr if isinstance(base, ast.Attribute) else ""


def _objection(node: ast.AST, forbidden: AbstractSet[str]) -> Optional[str]:
    for module in _imported(node):
        if module in forbidden or module.split(".")[0] in forbidden:
            return "Forbidden import: %s" % module
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FORBIDDEN_CALLS:
        return "Forbidden function: %s" % node.func.id
    for name in _assigned(node):
        if name in PROTECTED_NAMES:
            return "Cannot modify: %s" % name
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "__builtins__":
        return "Direct __builtins__ access forbidden"
    return None


def check_code(code: str, allowed: AbstractSet[str] = frozenset()) -> None:
    """Raises ``SandboxSecurityError`` for code that imports, calls or changes what it may not. ``allowed`` are modules that it may.

    >>> check_code("import json")
    >>> check_code("import os")
    Traceback (most recent call last):
    ...
    atoll._code_rules.SandboxSecurityError: Forbidden import: os
    """
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError) as error:
        raise SandboxSecurityError("Syntax error: %s" % error) from error
    forbidden = FORBIDDEN_MODULES.difference(allowed)
    for node in ast.walk(tree):
        text = _objection(node, forbidden)
        if text is not None:
            raise SandboxSecurityError(text)
