# SPDX-License-Identifier: Apache-2.0
"""Files in and out of a session: a table goes in, a report comes out.

Prints:

    sales.csv (29 bytes)
    # Report
    - tea: 5
    - rum: 4
"""
import atoll

CODE = """
import csv
from collections import Counter

sold = Counter()
for row in csv.DictReader(open("sales.csv")):
    sold[row["name"]] += int(row["count"])
with open("report.md", "w") as report:
    print("# Report", *["- %s: %d" % item for item in sold.items()], sep="\\n", file=report)
"""

with atoll.Sandbox() as sandbox:
    sandbox.files.write("sales.csv", "name,count\ntea,2\ntea,3\nrum,4\n")
    for file in sandbox.files.list():
        print("%s (%d bytes)" % (file.path, file.size))
    sandbox.run(CODE, check=True)
    print(sandbox.files.read_text("report.md"), end="")
