# SPDX-License-Identifier: Apache-2.0
"""Prints which of the modules named as arguments are installed, with their versions, as one JSON object.

Only the packages above a module are imported: metadata and path are enough, and importing all of them takes seconds.
"""
import importlib.util
import json
import sys


def version(module):
    try:
        if importlib.util.find_spec(module) is None:
            return None
    except ModuleNotFoundError:  # of a package above it
        return None
    except Exception:  # a package above it is there and cannot be imported
        return "unknown"
    if module in getattr(sys, "stdlib_module_names", ()):
        return "unknown"
    from importlib import metadata  # slow, so only for modules that may have a version
    try:
        return metadata.version(module)
    except metadata.PackageNotFoundError:
        return "unknown"


found = {module: version(module) for module in sys.argv[1:]}
print(json.dumps({module: text for module, text in found.items() if text}))
