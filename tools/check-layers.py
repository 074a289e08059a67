#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the layer table: which src/ folder may include which, and who may see which library.

A row lists the folders a folder may include besides its own; a folder that is not listed is refused, so a
new dependency is a decision made here, and a listed one that no file uses is refused too. The folders below
src/compat/ do not see each other. ARCHITECTURE.md has the same table in words.
"""

import collections
import pathlib
import re

import lint

MAY_INCLUDE = {
    "base": set(),
    "codec": {"base"},
    "loop": {"base"},
    "spec": {"base"},
    "analyse": {"base", "spec"},
    "compat": {"base", "spec"},
    "history": {"base", "spec"},
    "http": {"base", "codec", "loop", "spec"},
    "policy": {"base", "spec"},
    "remote": {"base", "codec"},
    "sys": {"base", "spec"},
    "plan": {"base", "spec", "policy"},
    "stream": {"base", "history"},
    "toolchain": {"base", "spec", "policy"},
    "confine": {"base", "sys", "plan"},
    "init": {"plan"},
    "egress": {"base", "plan"},
    "link": {"base", "loop", "spec", "sys", "plan"},
    "sandbox": {"base", "spec", "sys", "plan", "init"},
    "warm": {"base", "loop", "sys", "plan", "sandbox"},
    "broker": {"base", "loop", "spec", "sys", "plan", "confine", "egress", "link", "sandbox", "warm"},
    "client": {"base", "loop", "spec", "analyse", "policy", "sys", "plan", "toolchain", "link", "broker", "atoll"},
    "engine": {"base", "loop", "spec", "analyse", "history", "sys", "stream", "confine", "link", "client"},
    "session": {"base", "loop", "spec", "link", "client", "engine"},
    "mcp": {"base", "loop", "spec", "analyse", "compat", "client", "engine", "session"},
    "api": {"base", "codec", "loop", "spec", "compat", "http", "toolchain", "client", "engine", "session", "mcp"},
    "daemon": {"base", "loop", "spec", "history", "sys", "toolchain", "confine", "client", "engine", "session", "mcp", "api"},
    "cli": {"base", "codec", "spec", "remote", "plan", "client", "daemon", "atoll"},
}

# Libraries and the folders whose .c files and headers may include them. Further down the socket nothing
# parses: tools/check-symbols.py looks at the objects too, because headers can be included indirectly.
LIBRARIES = {
    "jansson.h": {"spec", "analyse", "compat", "history", "http", "policy", "remote", "stream", "toolchain", "client", "engine", "session", "mcp", "api", "daemon", "cli"},
    "sqlite3.h": {"history"},
    "wslay/wslay.h": {"api"},
    "curl/curl.h": {"engine"},
    "archive.h": {"engine"},
    "archive_entry.h": {"engine"},
    "pcre2.h": {"mcp"},
    "yaml.h": {"spec"},
    "pthread.h": {"egress", "loop"},
}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+(?:"([^"]+)"|<([^>]+)>)', re.M)


def allowed(folder, path, header):
    parts = header.split("/")
    if parts[0] == folder:
        return folder != "compat" or parts[1] == path.parent.name
    return parts[0] in MAY_INCLUDE[folder]


def judge(folder, path, ours, system):
    """What is wrong with one #include, or None. A bare name that is not in the folder is a generated file."""
    if ours and "/" not in ours and (path.parent / ours).exists():
        return f'"{ours}": name the folder too: "{folder}/{ours}"'
    if ours and ours.split("/")[0] in MAY_INCLUDE and not allowed(folder, path, ours):
        return f'{folder}/ may not include "{ours}"'
    if system in LIBRARIES and folder not in LIBRARIES[system]:
        return f"{folder}/ may not include <{system}>"
    return None


def unused(used):
    """Entries of the table that no file needs."""
    for folder, others in MAY_INCLUDE.items():
        for other in sorted(others - used[folder]):
            yield pathlib.Path(__file__), 1, f"the row of {folder}/ lists {other}/, which no file of it includes"


def check(root):
    source = root / "src"
    used = collections.defaultdict(set)
    for path in lint.files(root, "src"):
        folder = path.relative_to(source).parts[0]
        text = lint.blank(path.read_text(), keep_strings=True)
        if folder not in MAY_INCLUDE:
            yield path, 1, f"src/{folder} has no row in tools/check-layers.py"
            continue
        for match in INCLUDE.finditer(text):
            used[folder].add((match.group(1) or "").split("/")[0])
            problem = judge(folder, path, match.group(1), match.group(2))
            if problem:
                yield path, lint.line_of(text, match.start()), problem
    if all((source / folder).is_dir() for folder in MAY_INCLUDE):
        yield from unused(used)


if __name__ == "__main__":
    lint.main(check)
