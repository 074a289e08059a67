# SPDX-License-Identifier: Apache-2.0
import atexit
import gzip
import io
import logging
import sys
import traceback
import warnings
import xml.etree.ElementTree as ET

logging.basicConfig(stream=sys.stdout, format="%(levelname)s %(name)s %(message)s", level=logging.INFO)
logging.getLogger("app").warning("low on %s", "fuel")
logging.debug("not shown")
atexit.register(print, "at exit")
try:
    try:
        1 / 0
    except ZeroDivisionError as first:
        raise ValueError("second") from first
except ValueError:
    print([line.strip() for line in traceback.format_exc().splitlines() if "Error" in line])
root = ET.fromstring("<a><b n='1'>x</b><b n='2'/></a>")
print([(b.get("n"), b.text) for b in root.iter("b")])
buffer = io.BytesIO()
with gzip.open(buffer, "wt") as f:
    f.write("line\n" * 1000)
print(len(buffer.getvalue()) < 200)
sys.stdout.flush()
sys.stderr.write("to stderr\n")
raise SystemExit("told")
