# SPDX-License-Identifier: Apache-2.0
"""The ways into the MCP server of a daemon."""
import pytest

from mcp import LEGACY, MODERN, HttpDoor, StdioDoor


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
