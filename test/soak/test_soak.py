# SPDX-License-Identifier: Apache-2.0
"""The soak of soak.py, for 12 seconds; $ATOLL_SOAK_SECONDS makes it longer."""
import os

import pytest

from chaos import TARGETS
from soak import Soak

SECONDS = float(os.environ.get("ATOLL_SOAK_SECONDS", 12))


@pytest.mark.modes("root" if os.geteuid() == 0 else "rootless")
def test_soak(atoll, work, canary):
    print(Soak(atoll, work, canary).run(SECONDS, kills=max(len(TARGETS), int(SECONDS / 6))))
