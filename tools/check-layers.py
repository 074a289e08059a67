#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the layer table: which room of src/, or part of a room, may include which, and which may see which library.

A row lists what a room or part may include besides its own folder; what is not listed is refused, so a new dependency is a
decision made here, and a listed one that no file uses is refused too. Rooms never include each other in a circle. The folders
below src/web/compat/ do not see each other. ARCHITECTURE.md has the same table in words.
"""

import collections
import graphlib
import pathlib
import re

import lint

MAY_INCLUDE = {
    "base": set(),
    "base/loop": {"base"},
    "base/sys": {"base"},
    "spec": {"base"},
    "plan/policy": {"base", "base/sys", "spec"},
    "plan": {"base", "spec", "plan/policy"},
    "box/confine": {"base", "base/sys", "plan"},
    "box/init": {"plan"},
    "box/egress": {"base", "plan"},
    "box": {"base", "base/sys", "spec", "plan", "box/init"},
    "agent": {"base", "base/sys", "plan", "box"},
    "broker/warm": {"base", "base/loop", "base/sys", "plan", "box", "agent"},
    "broker": {"base", "base/loop", "base/sys", "spec", "plan", "box", "box/confine", "box/egress", "broker/warm"},
    "run/link": {"base", "base/loop", "base/sys", "spec", "broker"},
    "run/toolchain": {"base", "spec", "plan/policy"},
    "run/analyse": {"base", "spec"},
    "run": {"base", "base/loop", "base/sys", "spec", "plan", "plan/policy", "broker", "run/link", "run/toolchain", "run/analyse"},
    "engine/history": {"base", "spec"},
    "engine/stream": {"base", "engine/history"},
    "engine": {"base", "base/loop", "base/sys", "spec", "box/confine", "run", "run/link", "run/analyse", "engine/history", "engine/stream"},
    "session": {"base", "base/loop", "spec", "run", "run/link", "engine"},
    "web/codec": {"base"},
    "web/http": {"base", "base/loop", "spec", "web/codec"},
    "web/compat": {"base", "spec"},
    "mcp/execute": {"base"},
    "mcp": {"base", "base/loop", "spec", "run", "run/analyse", "engine", "session", "mcp/execute"},
    "web/routes": {"base", "base/loop", "spec", "run", "run/toolchain", "engine", "session", "web/codec", "web/http", "web/compat", "mcp", "mcp/execute"},
    "atoll/daemon": {"base", "base/loop", "base/sys", "spec", "box/confine", "run", "run/toolchain", "engine", "engine/history", "session", "web/routes", "mcp"},
    "atoll/remote": {"base", "base/loop", "spec", "run", "web/codec"},
    "atoll/commands": {"base", "base/loop", "spec", "plan", "run", "atoll/remote", "atoll/daemon"},
}

# Libraries and the folders whose .c files and headers may include them. Further down the socket nothing
# parses: tools/check-symbols.py looks at the objects too, because headers can be included indirectly.
LIBRARIES = {
    "jansson.h": {"spec", "plan/policy", "run", "run/toolchain", "run/analyse", "engine", "engine/history", "engine/stream", "session", "mcp", "mcp/execute", "web/http", "web/compat", "web/routes", "atoll/daemon", "atoll/remote", "atoll/commands"},
    "sqlite3.h": {"engine/history"},
    "wslay/wslay.h": {"web/routes"},
    "curl/curl.h": {"engine"},
    "archive.h": {"engine"},
    "archive_entry.h": {"engine"},
    "pcre2.h": {"run/analyse", "mcp"},
    "yaml.h": {"spec"},
    "pthread.h": {"box/egress", "base/loop"},
}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+(?:"([^"]+)"|<([^>]+)>)', re.M)


def part_of(name):
    """The row of a file or header below src/: that of its folder, or of the folder above; None: it has no row."""
    folders = name.split("/")[:-1]
    while folders and "/".join(folders) not in MAY_INCLUDE:
        folders.pop()
    return "/".join(folders) or None


def interface_of(name):
    """web/compat/NAME/: the interfaces of others."""
    folders = name.split("/")
    return folders[2] if folders[:2] == ["web", "compat"] and len(folders) > 3 else None


def judge(name, path, ours, system):
    """What is wrong with one #include, or None. A bare name that is not in the folder is a generated file."""
    part = part_of(name)
    if ours and "/" not in ours and (path.parent / ours).exists():
        return f'"{ours}": name the folder too: "{pathlib.PurePath(name).parent}/{ours}"'
    other = part_of(ours) if ours else None
    if other == part and interface_of(name) != interface_of(ours):
        return f'{part}/{interface_of(name)}/ may not include "{ours}"'
    if other and other not in MAY_INCLUDE[part] | {part}:
        return f'{part}/ may not include "{ours}"'
    if system in LIBRARIES and part not in LIBRARIES[system]:
        return f"{part}/ may not include <{system}>"
    return None


def unused(used):
    """Entries of the table that no file needs."""
    for part, others in MAY_INCLUDE.items():
        for other in sorted(others - used[part]):
            yield pathlib.Path(__file__), 1, f"the row of {part}/ lists {other}/, which no file of it includes"


def circles():
    """Rooms that include each other, by way of their parts."""
    below = collections.defaultdict(set)
    for part, others in MAY_INCLUDE.items():
        below[part.split("/")[0]] |= {other.split("/")[0] for other in others} - {part.split("/")[0]}
    try:
        list(graphlib.TopologicalSorter(below).static_order())
    except graphlib.CycleError as error:
        yield pathlib.Path(__file__), 1, "the rooms include each other: " + " -> ".join(error.args[1])


def check(root):
    source = root / "src"
    used = collections.defaultdict(set)
    for path in lint.files(root, "src"):
        name = str(path.relative_to(source))
        text = lint.blank(path.read_text(), keep_strings=True)
        if not part_of(name):
            yield path, 1, f"src/{name.split('/')[0]} has no row in tools/check-layers.py"
            continue
        for match in INCLUDE.finditer(text):
            used[part_of(name)].add(part_of(match.group(1) or ""))
            problem = judge(name, path, match.group(1), match.group(2))
            if problem:
                yield path, lint.line_of(text, match.start()), problem
    if all((source / folder).is_dir() for folder in MAY_INCLUDE):
        yield from unused(used)
    yield from circles()


if __name__ == "__main__":
    lint.main(check)
