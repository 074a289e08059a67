# SPDX-License-Identifier: Apache-2.0
"""Daemons for tests of MCP. What the official suite wants of a server is in a front of its own, build/test/mcp/atolld, which no
user has: the product's, with further tables of tools, resources and prompts."""
import copy
import shutil

import pytest

from program import BINARY, Atoll
from web import Served


def serve(mode, stage, *options):
    return Served(Atoll(mode, stage), stage.scratch(mode, "mcp"), *options)


def with_fixtures(stage):
    """The stage with that front in place of the product's."""
    front = BINARY.parent / "test" / "mcp" / "atolld"
    if not front.exists():
        pytest.fail(f"{front} is not built", pytrace=False)
    other = copy.copy(stage)
    other.bin = stage.top / "bin-fixtures"
    if not other.bin.exists():
        shutil.copytree(stage.bin, other.bin, symlinks=True)
        shutil.copy2(front, other.bin / "atolld")
    other.binary = other.bin / stage.binary.name
    return other
