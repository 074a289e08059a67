# SPDX-License-Identifier: Apache-2.0
"""Takes the pieces of memory that are free in the zygote, so that what its children allocate lies side by side.

A child copies each page at its first write. New objects in the gaps between old ones would cost a page each. Side by side they
lie on few pages, which the agent's probe finds (src/agent/agent-pages.c).
"""
import sys

POOL = 16384 if sys.version_info >= (3, 10) else 4096
kept = []  # blocks of memory that are never freed


def fill_pools():
    """The interpreter's own allocator has pools of equal pieces for objects of up to 512 bytes."""
    for size in range(16, 513, 16):
        while True:
            kept.append(object() if size == 16 else len(kept) + 1000 if size == 32 else bytes(size - 33))
            if id(kept[-1]) % POOL == 48:  # the first of a new pool
                break


def fill_arrays(numpy):
    """numpy keeps up to seven pieces of each size below 1024 bytes for its next arrays."""
    kept.extend([numpy.empty(size, "u1") for size in range(1, 1024) for _ in range(7)])
