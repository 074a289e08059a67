# SPDX-License-Identifier: Apache-2.0
"""A daemon for the tests of the Python package, and a client of it."""
import sys

import pytest

from program import ROOT, Atoll
from web import Served

sys.path.insert(0, str(ROOT / "sdk" / "python" / "src"))
from atoll import Client  # noqa: E402


@pytest.fixture(scope="module")
def daemon(mode, stage):
    served = Served(Atoll(mode, stage), stage.scratch(mode, "sdk"))
    yield served.daemon
    served.end()


@pytest.fixture
def client(daemon):
    with Client("unix:%s" % daemon.socket) as one:
        yield one
