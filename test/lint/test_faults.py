# SPDX-License-Identifier: Apache-2.0
"""atoll-faults has the fault points of every source file that has some: one that test/meson.build forgets would be tested without them."""
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_file_with_fault_points_is_listed():
    text = (ROOT / "test" / "meson.build").read_text()
    listed = re.findall(r"'\.\./src/(\S+\.c)'", text[text.index("executable('atoll-faults'"):])
    having = [str(path.relative_to(ROOT / "src")) for path in (ROOT / "src").rglob("*.c") if '"base/sys/fault.h"' in path.read_text()]
    assert sorted(listed) == sorted(having)


def test_headers_have_none():
    """A header's fault points would be in every file that includes it."""
    assert [path.name for path in (ROOT / "src").rglob("*.h") if '"base/sys/fault.h"' in path.read_text()] == []
