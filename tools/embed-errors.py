#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes C tables of languages/errors/*.yaml: embed-errors.py LANGUAGES OUTPUT [DEPFILE]

A pattern is a regular expression of PCRE2 for a whole line or message, in which a % and a letter stand for a group
(src/run/analyse/match-text.h). languages/errors/README.md describes the keys; a key that is not in the tables below is refused.
"""

import pathlib
import re
import sys

import yaml

HOLES = "fplcemn123s_"
KINDS = ["skip", "begin", "error", "more", "where", "name", "frame", "calls", "caret", "cause", "cause_where", "chain"]
FLAGS = {"first", "weak", "open", "keep", "reset", "zero", "whole"}
REFINED = {"first", "weak", "line", "message", "type", "code", "frames"}
PLACES = ["START", "A", "B", "C", "D", "END"]


class Tables:
    def __init__(self, texts):
        self.texts = texts
        self.patterns = 0
        self.lines = []

    def pattern(self, text):
        """{text, needs, number}"""
        if text is None:
            return "{ 0 }"
        if re.search(r"(?<!\\)\((?!\?)", text):
            raise ValueError(f"{text!r}: a group of its own is written (?:…)")
        if set(re.findall("%(.)", text)) - set(HOLES):
            raise ValueError(f"{text!r}: holes are % and one of {HOLES}")
        self.patterns += 1
        return f"{{ {quote(text)}, {quote(needed(text))}, {self.patterns} }}"

    def say(self, text):
        return quote(self.texts[text[1:]] if text and text.startswith("$") else text)

    def table(self, kind, name, rows):
        if not rows:
            return "NULL"
        self.lines += [f"static const {kind} {name}[] = {{", *(f"\t{row}," for row in rows), "\t{ 0 },", "};", ""]
        return name


def quote(text):
    """A C literal; octal digits end after three, so that none of the text is taken for one."""
    if text is None:
        return "NULL"
    plain = "".join(chr(b) if 32 <= b < 127 and chr(b) not in '\\"?' else f"\\{b:03o}" for b in text.encode())
    return f'"{plain}"'


def needed(text):
    """The longest plain text that everything has that the pattern matches: most lines are turned down by it alone."""
    text = re.split(r"(?<!\\)[(|]", text)[0]
    best = ""
    for part in re.split(r"%.|(?<!\\)\\[A-Za-z]", text):
        plain = re.sub(r"\\(\W)", "", part)
        if re.search(r"[][{}*+?^$.\\]", plain):
            continue
        best = max(best, re.sub(r"\\(\W)", r"\1", part), key=len)
    return best or None


def check(where, row, keys):
    unknown = set(row) - set(keys)
    if unknown:
        raise ValueError(f"{where}: there is no key {', '.join(sorted(unknown))}")


def listed(value):
    return value if isinstance(value, list) else [] if value is None else [value]


def bits(prefix, names):
    return " | ".join(prefix + name.upper() for name in names) or "0"


def state(names, used):
    """States get their bits in the order in which a file names them."""
    for name in listed(names):
        if name not in used and name not in ("start", "end"):
            used.append(name)
    found = {"start": "START", "end": "END", **{name: PLACES[i + 1] for i, name in enumerate(used)}}
    return bits("FIND_IN_", [found[name] for name in listed(names)])


def find_rows(tables, where, rows, used):
    for row in rows:
        kind = next(key for key in KINDS if key in row)
        check(where, row, [kind, "in", "to", "flags", "type"])
        pattern = tables.pattern(None if kind == "caret" else row[kind])
        if isinstance(row.get("to"), list):
            raise ValueError(f"{where}: {row}: a row leads to one state")
        flags = listed(row.get("flags"))
        assert set(flags) <= FLAGS, flags
        yield (f"{{ FIND_{kind.upper()}, {pattern}, {state(row.get('in'), used)}, {state(row.get('to'), used)}, "
               f"{bits('FIND_', flags)}, {quote(row.get('type'))} }}")


def advice_rows(tables, where, rows):
    for row in rows:
        check(where, row, ["type", "match", "category", "say", "near"])
        yield (f"{{ {quote(row.get('type'))}, {tables.pattern(row.get('match'))}, {quote(row['category'])}, {tables.say(row['say'])}, "
               f"{tables.say(row.get('near'))} }}")


def refine_rows(tables, where, rows):
    for row in rows:
        check(where, row, ["of", "match", "has", "find", "last", "frame", "category", "say"])
        assert row["of"] in REFINED, row
        yield (f"{{ REFINE_{row['of'].upper()}, {tables.pattern(row.get('match'))}, {quote(row.get('has'))}, {tables.pattern(row.get('frame'))}, "
               f"{quote(row.get('find'))}, {str(row.get('last', False)).lower()}, {quote(row.get('category'))}, {tables.say(row.get('say'))} }}")


def source_of(languages, name):
    return yaml.safe_load((languages / f"{name}.yaml").read_text())["source"].replace("{class}", "Main")


def family(tables, languages, path):
    data = yaml.safe_load(path.read_text())
    name, used = path.stem, []
    check(path, data, ["languages", "error_type", "refused", "inner_last", "dedents", "tabs", "registry", "debian", "words", "compile", "run", "refine",
                       "advice", "imports", "packages"])
    rows = {
        "compile": tables.table("struct find_row", f"{name}_compile", list(find_rows(tables, path, data.get("compile", []), used))),
        "run": tables.table("struct find_row", f"{name}_run", list(find_rows(tables, path, data.get("run", []), used))),
        "refine": tables.table("struct refine_row", f"{name}_refine", list(refine_rows(tables, path, data.get("refine", [])))),
        "advice": tables.table("struct advice", f"{name}_advice", list(advice_rows(tables, path, data["advice"]))),
        "imports": tables.table("struct import_hint", f"{name}_imports",
                                [f"{{ {quote(key)}, {quote(text)} }}" for key, text in data.get("imports", {}).items()]),
        "packages": tables.table("struct package_hint", f"{name}_packages",
                                [f"{{ {quote(key)}, {quote(hint.get('debian'))}, {quote(hint.get('registry'))} }}"
                                 for key, hint in data.get("packages", {}).items()]),
    }
    yield "{"
    yield f"\t.languages = {{ {', '.join(quote(language) for language in data['languages'])} }},"
    yield f"\t.sources = {{ {', '.join(quote(source_of(languages, language)) for language in data['languages'])} }},"
    yield from (f"\t.{key} = {value}," for key, value in rows.items())
    yield from (f"\t.{key} = {quote(data[key])}," for key in ("error_type", "registry", "debian", "words") if key in data)
    yield from (f"\t.{key} = {str(data[key]).lower()}," for key in ("inner_last", "dedents", "tabs") if key in data)
    if "refused" in data:
        yield f"\t.refused = REFUSED_{data['refused'].upper()},"
    yield "},"


def main(languages, output, depfile=None):
    languages = pathlib.Path(languages)
    paths = sorted((languages / "errors").glob("*.yaml"))
    common = languages / "errors" / "common.yaml"
    data = yaml.safe_load(common.read_text())
    check(common, data, ["texts", "advice"])
    tables = Tables(data["texts"])
    families = [line for path in paths if path != common for line in family(tables, languages, path)]
    rows = list(advice_rows(tables, common, data["advice"]))
    text = ["/* Made by tools/embed-errors.py of languages/errors/. */", '#include "run/analyse/family.h"', "", "#include <assert.h>", "", *tables.lines,
            "const struct family families[] = {", *(f"\t{line}" for line in families), "\t{ .languages = { NULL } },", "};", "",
            "const struct advice advice_common[] = {", *(f"\t{row}," for row in rows), "\t{ 0 },", "};", "",
            f"static_assert({tables.patterns} < PATTERNS_MAX, \"more patterns than are kept\");", ""]
    pathlib.Path(output).write_text("\n".join(text))
    if depfile:
        read = [pathlib.Path(__file__).resolve(), *paths, *sorted(languages.glob("*.yaml"))]
        pathlib.Path(depfile).write_text(f"{output}: {' '.join(map(str, read))}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
