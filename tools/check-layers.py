#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the layer table: which src/ folder may include which, and who may see which library.

A row lists the folders (or single headers) a folder may include besides its own; what is not listed
is refused, so a new dependency is a decision made here. ARCHITECTURE.md has the same table in words.
"""

import re

import lint

DATA = {"sys/host-facts.h", "sys/layer.h"}  # plain data: the host's abilities, names of layers
RECORDS = {"broker/broker-proto.h"}  # what crosses the socket between front and broker

MAY_INCLUDE = {
    "base": set(),
    "sys": {"base"},
    "loop": {"base"},
    "spec": {"base"},
    "codec": {"base"},
    "policy": {"base", "spec"} | DATA,
    "analyse": {"base", "spec"},
    "plan": {"base", "spec", "policy"} | DATA,
    "confine": {"base", "sys", "plan"},
    "init": {"plan"},
    "sandbox": {"base", "sys", "spec", "plan", "init"},
    "zygote": {"base", "sys", "loop", "spec", "plan", "init", "sandbox"},
    "supervise": {"base", "sys", "loop", "spec"} | RECORDS,
    "broker": {"base", "sys", "confine", "loop", "spec", "plan", "sandbox", "zygote"},
    "history": {"base", "sys", "spec"},
    "stream": {"base"},
    "client": {"base", "sys", "loop", "spec", "analyse", "policy", "plan", "supervise", "broker", "zygote/warm-table.h", "atoll"},
    "engine": {"base", "stream", "sys", "confine", "loop", "spec", "policy", "supervise", "history", "analyse", "client", "atoll"},
    "api": {"base", "loop", "codec", "spec", "analyse", "engine", "client", "atoll"},
    "daemon": {"base", "sys", "confine", "loop", "spec", "codec", "history", "client", "engine", "api", "atoll"},
    "cli": {"base", "spec", "plan", "codec", "client", "daemon", "atoll"},
}

# Libraries and the folders whose .c files and headers may include them. Further down the socket nothing
# parses: tools/check-symbols.py looks at the objects too, because headers can be included indirectly.
LIBRARIES = {
    "jansson.h": {"stream", "spec", "policy", "plan", "supervise", "analyse", "history", "client", "engine", "api", "daemon", "cli"},
    "sqlite3.h": {"history"},
    "wslay/wslay.h": {"api"},
    "curl/curl.h": {"engine"},
    "archive.h": {"engine"},
    "archive_entry.h": {"engine"},
    "yaml.h": {"spec"},
    "pthread.h": {"loop"},
}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+(?:"([^"]+)"|<([^>]+)>)', re.M)


def allowed(folder, header):
    if header.startswith(folder + "/"):
        return True
    return header in MAY_INCLUDE[folder] or header.split("/")[0] in MAY_INCLUDE[folder]


def judge(folder, path, ours, system):
    """What is wrong with one #include, or None. A bare name that is not in the folder is a generated file."""
    if ours and "/" not in ours and (path.parent / ours).exists():
        return f'"{ours}": name the folder too: "{folder}/{ours}"'
    if ours and ours.split("/")[0] in MAY_INCLUDE and not allowed(folder, ours):
        return f'{folder}/ may not include "{ours}"'
    if system in LIBRARIES and folder not in LIBRARIES[system]:
        return f"{folder}/ may not include <{system}>"
    return None


def check(root):
    source = root / "src"
    for path in lint.files(root, "src"):
        folder = path.relative_to(source).parts[0]
        text = lint.blank(path.read_text(), keep_strings=True)
        if folder not in MAY_INCLUDE:
            yield path, 1, f"src/{folder} has no row in tools/check-layers.py"
            continue
        for match in INCLUDE.finditer(text):
            problem = judge(folder, path, match.group(1), match.group(2))
            if problem:
                yield path, lint.line_of(text, match.start()), problem


if __name__ == "__main__":
    lint.main(check)
