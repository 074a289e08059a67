# SPDX-License-Identifier: Apache-2.0
"""A daemon for each file of MCP tests. What the official suite wants of a server is in a front of its own, build/test/mcp/atolld, which no
user has: the product's, with further tables of tools, resources and prompts."""
import copy
import shutil

import pytest

from mcp import LEGACY, MODERN, HttpDoor, StdioDoor
from program import BINARY, FRONT, Atoll
from web import Served


def serve(mode, stage, *options):
    if not FRONT.exists():
        pytest.skip("atolld is not built")
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


@pytest.fixture(scope="module")
def served(mode, stage):
    one = serve(mode, stage)
    yield one
    one.end()


@pytest.fixture
def web(served):
    return served.web


@pytest.fixture(scope="module")
def bridge(served):
    """`atoll` for StdioDoor, with that daemon to connect to."""
    return served.daemon.atoll.variant(env={"ATOLL_URL": str(served.daemon.socket)})


@pytest.fixture(params=["http-modern", "http-legacy", "stdio-modern", "stdio-legacy"])
def door(request, served, bridge):
    """Each way in, in both eras."""
    way, era = request.param.split("-")
    version = MODERN if era == "modern" else LEGACY[0]
    one = HttpDoor(served.web, version) if way == "http" else StdioDoor(bridge, version)
    yield one
    one.close()
