# SPDX-License-Identifier: Apache-2.0
class Trouble(Exception):
    pass

def inner(x):
    if x > 2:
        raise Trouble("too much")
    return inner(x + 1)

try:
    inner(0)
except Trouble as problem:
    print("first:", problem)
print({}["missing"])
