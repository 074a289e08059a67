# SPDX-License-Identifier: Apache-2.0
"""Starts the Python that programs are forked from: python3 zygote.py MODULE... (see warm/)."""
# The interpreter frees the syntax tree of this file when a program begins, in the program's time: keep it small.
import sys

native = dict(globals())
del native["sys"]
cold = set(sys.modules)
import warm.zygote

warm.zygote.main(native, cold, sys.argv[1:])
