# SPDX-License-Identifier: Apache-2.0
"""Charts and tables: figures that are open at the end of an execution come back as PNG and SVG, data frames as HTML and text.

Prints:

    chart: PNG True, SVG True
    table: HTML True
      month  sold
    0  June     3
"""
import pathlib
import tempfile

import atoll

with atoll.Sandbox(timeout=120) as sandbox:
    chart = sandbox.run("import matplotlib.pyplot as plt\nplt.plot([1, 4, 9])\nplt.title('squares')\nNone").outputs[0]
    table = sandbox.run("import pandas\npandas.DataFrame({'month': ['June'], 'sold': [3]})").outputs[0]
    print("chart: PNG %s, SVG %s" % (chart.png.startswith(b"\x89PNG"), "<svg" in chart.svg))
    print("table: HTML %s" % table.html.lstrip().startswith("<"))
    print("\n".join(line.rstrip() for line in table.text.splitlines()))

with tempfile.TemporaryDirectory() as folder:
    pathlib.Path(folder, "squares.png").write_bytes(chart.png)
