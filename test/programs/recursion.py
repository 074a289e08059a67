# SPDX-License-Identifier: Apache-2.0
import functools
import sys

sys.setrecursionlimit(20000)

@functools.cache
def ways(n):
    return 1 if n < 2 else ways(n - 1) + ways(n - 2)

print(ways(5000) % 10 ** 9)

def depth(n):
    return 0 if n == 0 else 1 + depth(n - 1)

print(depth(9000))
sys.setrecursionlimit(1000)
try:
    depth(5000)
except RecursionError as problem:
    print(problem)

def hanoi(n, a, b, c):
    return 0 if n == 0 else hanoi(n - 1, a, c, b) + 1 + hanoi(n - 1, c, b, a)

print(hanoi(12, *"abc"))
