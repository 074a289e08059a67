# SPDX-License-Identifier: Apache-2.0
import collections
import csv
import io
import json
import statistics

text = "name,team,score\nAda,red,3\nBo,blue,5\nCy,red,7\n\"Di, Jr\",blue,1\n"
rows = list(csv.DictReader(io.StringIO(text)))
teams = collections.defaultdict(list)
for row in rows:
    teams[row["team"]].append(int(row["score"]))
print(json.dumps({team: {"mean": statistics.mean(s), "n": len(s)} for team, s in sorted(teams.items())}, indent=2))
with open("out.csv", "w", newline="") as f:
    csv.writer(f).writerows([[r["name"], r["score"]] for r in rows])
print(open("out.csv").read(), end="")
print(collections.Counter("mississippi").most_common(2))
