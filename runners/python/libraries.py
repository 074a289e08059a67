# SPDX-License-Identifier: Apache-2.0
"""Prints which of the modules named as arguments are installed, with their versions, as one JSON object.

Nothing is imported: the metadata and the path of a package are enough, and importing all of them takes
seconds.
"""
import importlib.metadata
import importlib.util
import json
import sys


def version(module):
    if importlib.util.find_spec(module) is None:
        return None
    try:
        return importlib.metadata.version(module)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


found = {module: version(module) for module in sys.argv[1:]}
print(json.dumps({module: text for module, text in found.items() if text}))
