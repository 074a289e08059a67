# SPDX-License-Identifier: Apache-2.0
"""A session of the daemon that a file of tests has (test/conftest.py)."""
import pytest

from live import Session


@pytest.fixture(scope="module")
def kept(served):
    """One session for tests that leave it as it was."""
    with Session(served.web) as session:
        yield session
