# SPDX-License-Identifier: Apache-2.0
"""What modules that were loaded ahead must not have decided, and what a request means without a daemon.

The tables of test_warm_python.py, test_warm_start.py and test_warm_scripts.py compare what programs see of their runtime.
Here are programs whose result hangs on the state that samples leave in a library, and on the time a spare has waited.
"""
import json
import re
import time

import pytest

import resident
from program import MODES, Atoll

SEEN = ("status", "exit_code", "signal", "stdout", "stderr", "error", "denials")
NEEDS_DAEMON = "it needs a daemon; start one with `atoll serve`, or leave it out"
FIGURE = "plt.plot([1, 2])\nplt.savefig('out')\nprint(sorted(os.listdir('.')), plt.get_backend(), type(plt.gcf().canvas).__name__)\n"
# A new interpreter has imported logging a moment ago.
CLOCK = "print(0 <= logging.LogRecord('n', 10, 'p', 1, 'm', (), None).relativeCreated < 5000)\n"

PROGRAMS = {
    "backend-of-use": "import os, matplotlib\nmatplotlib.use('svg')\nimport matplotlib.pyplot as plt\n" + FIGURE,
    "backend-of-parameters": "import os, matplotlib\nmatplotlib.rcParams['backend'] = 'pdf'\n"
                             "import matplotlib.pyplot as plt\n" + FIGURE,
    "backend-later": "import os, matplotlib, matplotlib.pyplot as plt\nmatplotlib.use('svg')\n" + FIGURE,
    "backend-without-display": "import matplotlib\nmatplotlib.use('TkAgg')\nimport matplotlib.pyplot as plt\nplt.figure()\n",
    "backend-of-pandas": "import matplotlib\nmatplotlib.use('svg')\nimport pandas as pd\n"
                         "print(type(pd.Series([1, 2]).plot().figure.canvas).__name__)\n",
    "backend-unused": "import matplotlib, matplotlib.pyplot as plt\n"
                      "print(plt._backend_mod, plt._REPL_DISPLAYHOOK, plt.rcParams == matplotlib.rcParamsDefault)\n",
    "clock-of-logging": "import logging\n" + CLOCK,
    "clock-of-logging-in-a-tier": "import logging, matplotlib\n" + CLOCK,
}
WAITED = 6  # seconds that a spare is old before its program looks at a clock


@pytest.fixture(scope="module")
def pair(stage):
    it = resident.Pair(Atoll(MODES[0], stage), stage.scratch(MODES[0], "pool") / "pool.sock")
    try:
        for tier in ("", "import matplotlib\n"):
            end = time.monotonic() + 120
            # A cold program leaves before it imports anything.
            while it.warm.python(resident.GUARD + tier + "import os\nprint(os.path.exists('/proc/self/fd/100'))")["stdout"] != "True\n":
                assert time.monotonic() < end, f"{tier!r} does not get warm"
                time.sleep(0.05)
        time.sleep(WAITED)
        yield it
    finally:
        it.end()


@pytest.fixture
def leaks():
    """The pool of this module keeps sandboxes on purpose."""


def outcome(atoll, code):
    result = atoll.python(code, timeout=60)
    seen = {key: result[key] for key in SEEN}
    seen["files"] = [file["path"] for file in result["files"]]
    for key in ("stdout", "stderr"):
        seen[key] = re.sub(r"0x[0-9a-f]{6,}", "0x", seen[key])
    return seen


@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_was_decided_ahead(pair, name):
    assert outcome(pair.warm, PROGRAMS[name]) == outcome(pair.cold, PROGRAMS[name])


@pytest.mark.parametrize("key, value, why", [
    ("priority", 5, f"priority: {NEEDS_DAEMON}"),
    ("archive", "eA==", f"archive: {NEEDS_DAEMON}"),
    ("callback_url", "http://127.0.0.1/", f"callback_url: {NEEDS_DAEMON}"),
    ("limits", {"timeout": "adaptive"}, "limits.timeout: only a whole request to a daemon (`atoll serve`) can have an adaptive timeout; "
                                        "give a time"),
])
def test_what_only_a_daemon_can_do(pair, key, value, why):
    request = {"language": "python", "code": "print(1)", key: value}
    result = pair.cold.result(["--no-daemon", "--request", "-"], input=json.dumps(request))
    assert result["status"] == "setup_error" and result["cause"]["detail"] == why


@pytest.mark.parametrize("words, term", [([], "xterm"), (["--env", "TERM=vt100"], "vt100")])
def test_a_terminal_has_a_name(pair, words, term):
    code = "import curses, os\ncurses.setupterm()\nprint(os.environ['TERM'], curses.tigetnum('cols'))"
    result = pair.cold.result(["-l", "python", "--tty", *words, "-c", code])
    assert (result["exit_code"], result["stdout"].split()[0]) == (0, term), result


def test_no_terminal_has_no_name(pair):
    assert pair.cold.python("import os\nprint(os.environ.get('TERM'))")["stdout"] == "None\n"
