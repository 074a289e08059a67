# SPDX-License-Identifier: Apache-2.0
"""A pool on a host that lacks something: warm where it can be, and closed in any case.
"""
import json
import time

import pytest

from resident import own

pytestmark = pytest.mark.cold("it is about warm cells")


# ------------------------------------------------------------------------------------ hosts that lack something


LACKS = {"clone3": (("clone3",), None), "openat2": (("openat2",), None),
         "landlock": (("landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"), None),
         "close_range": (("close_range",), None), "forced": ((), "landlock,clone3,openat2"), "no-landlock": ((), "landlock")}


@pytest.mark.parametrize("lack", list(LACKS))
def test_a_pool_on_a_poorer_host(mode, stage, own, enosys, canary, lack):
    """Warm where it can be, and closed in any case."""
    calls, forced = LACKS[lack]
    pool = own(wrap=enosys(*calls) if calls else (), env={"ATOLL_FORCE_OFF": forced} if forced else None)
    front = pool.any_front().variant(env={"ATOLL_FORCE_OFF": forced} if forced else None)
    warm = False
    deadline = time.monotonic() + 8
    while not warm and time.monotonic() < deadline:
        result = front.python(f"""
import ctypes, errno, json, os, socket
def attempt(f, *args):
    try: f(*args); return 'ok'
    except OSError as e: return errno.errorcode.get(e.errno, str(e))
def connect(a): socket.socket(socket.AF_UNIX).connect(a)
status = dict(l.split(':', 1) for l in open('/proc/self/status').read().splitlines())
t = {str(canary.public)!r}
print(json.dumps([os.path.exists('/proc/self/fd/100'), [status[n].strip() for n in ('CapPrm', 'CapEff', 'CapBnd', 'NoNewPrivs', 'Seccomp')],
    [attempt(open, p) for p in (t, '/proc/1/root' + t, '../' * 30 + t[1:])] + [attempt(open, '/usr/bin/env', 'ab'), attempt(open, '/planted', 'w'),
     attempt(socket.create_connection, ('127.0.0.1', {canary.port}), 0.5), attempt(connect, '\\0' + {canary.abstract!r}), attempt(connect, {canary.path!r})],
    sorted(p for p in os.listdir('/proc') if p.isdigit()), [fd for fd in range(1024) if attempt(os.fstat, fd) == 'ok' and fd != 100]]))
""")
        if result["status"] != "success":
            assert result["status"] in ("denied", "internal_error") and result["cause"]["detail"], result
            pytest.skip(f"without {lack} nothing runs here, and the product says so: {result['cause']['detail']}")
        warm, rights, tries, processes, fds = json.loads(result["stdout"])
        assert rights == ["0" * 16] * 3 + ["1", "2"] and "ok" not in tries and processes == ["2"] and fds == [0, 1, 2], result["stdout"]
        assert ("landlock" in result["isolation"]["missing"]) == (lack in ("landlock", "forced", "no-landlock"))
        time.sleep(0.2)
    assert not canary.reached
    if not warm:
        pytest.skip(f"without {lack} there are no warm cells here; everything ran cold")
