# SPDX-License-Identifier: Apache-2.0
import bisect
import heapq
from collections import defaultdict, deque

roads = [("a", "b", 4), ("a", "c", 1), ("c", "b", 2), ("b", "d", 5), ("c", "d", 8)]
near = defaultdict(list)
for x, y, n in roads:
    near[x].append((y, n))
    near[y].append((x, n))

def shortest(start):
    best, todo = {start: 0}, [(0, start)]
    while todo:
        far, at = heapq.heappop(todo)
        for to, n in near[at]:
            if far + n < best.get(to, 1e9):
                best[to] = far + n
                heapq.heappush(todo, (far + n, to))
    return best

print(shortest("a"))
seen, line = {"a"}, deque("a")
while line:
    for to, _ in near[line.popleft()]:
        if to not in seen:
            seen.add(to)
            line.append(to)
print(sorted(seen), bisect.bisect([1, 3, 5], 4))
queens = lambda n, row=0, c=0, d=0, e=0: 1 if row == n else sum(
    queens(n, row + 1, c | 1 << i, (d | 1 << i) << 1, (e | 1 << i) >> 1) for i in range(n) if not (c | d | e) >> i & 1)
print(queens(7))
