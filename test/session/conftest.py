# SPDX-License-Identifier: Apache-2.0
"""A daemon for each file of session tests, and one session of it. A file that needs another daemon has a fixture of the same name."""
import pytest

from live import Session
from program import Atoll
from web import Served


@pytest.fixture(scope="module")
def served(mode, stage):
    served = Served(Atoll(mode, stage), stage.scratch(mode, "sessions"))
    yield served
    served.end()


@pytest.fixture
def web(served):
    return served.web


@pytest.fixture(scope="module")
def kept(served):
    """One session for tests that leave it as it was."""
    with Session(served.web) as session:
        yield session
