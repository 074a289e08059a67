#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of doc/ from the product's own: `atoll help`, /openapi.json and /v1/limits of a daemon.

    tools/reference.py [--check] [--url URL] [--atoll build/atoll]

A table stands between `<!-- from the product: NAME -->` and `<!-- end -->` in a page of doc/; the words around it are written by hand.
--check names the pages that differ and changes none. Without --url it starts a daemon of its own.
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
PLACE = re.compile(r"(<!-- from the product: (\w+) -->\n).*?(<!-- end -->)", re.S)
UNITS = {"bytes": ((1 << 40, "t"), (1 << 30, "g"), (1 << 20, "m"), (1 << 10, "k")), "seconds": ((1, " s"), (0.001, " ms"))}


def ask(url, path):
    with urllib.request.urlopen(url + path, timeout=30) as answer:
        return json.load(answer)


def cell(text):
    """Text in a table of Markdown: one line, no bar, no markup."""
    return re.sub(r"\s+", " ", text).replace("|", "\\|").replace("<", "&lt;")


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def amount(value, unit):
    if value is None:
        return "none"
    for size, letter in UNITS.get(unit, ()):
        if value >= size and value % size == 0 or letter == " ms" and value < 1:
            return f"{value / size:g}{letter}"
    return f"{value:.10g}"


def limits(url, _):
    rows = []
    for row in ask(url, "/v1/limits")["limits"]:
        # A ceiling that no policy sets is the highest value that a number may have; that of cores is the host's.
        ceiling = "cores of the host" if row["unit"] == "cores" else "" if row["ceiling"] == row["max"] else amount(row["ceiling"], row["unit"])
        rows.append([f"`{row['flag']}`", f"`{row['key']}`", amount(row["default"], row["unit"]), ceiling, cell(row["help"])])
    return table(["option", "`limits.*`", "default", "ceiling", "bounds what"], rows)


def routes(url, _):
    rows = []
    for path, methods in ask(url, "/openapi.json")["paths"].items():
        for method, operation in methods.items():
            if "summary" in operation:
                rows.append([f"`{method.upper()} {path}`", cell(operation["summary"])])
    return table(["route", "does"], rows)


def type_of(schema):
    if "$ref" in schema:
        return f"[{schema['$ref'].rpartition('/')[2]}](#{schema['$ref'].rpartition('/')[2].lower()})"
    if "anyOf" in schema:
        return " or ".join(type_of(one) for one in schema["anyOf"])
    if schema.get("type") == "array":
        return f"list of {type_of(schema.get('items', {}))}"
    if "enum" in schema:
        return ", ".join(f"`{word}`" for word in schema["enum"])
    if isinstance(schema.get("additionalProperties"), dict):
        return f"object of {type_of(schema['additionalProperties'])}"
    return schema.get("type", "any")


def fields_of(name, schema, level):
    """A heading, and a row for each field. A star marks a field that is always there."""
    always = schema.get("required", [])
    rows = [[f"`{key}`" + ("*" if key in always else ""), type_of(field), cell(field.get("description", ""))]
            for key, field in schema["properties"].items()]
    return f"\n{'#' * level} {name}\n\n" + table(["field", "is", "means"], rows)


def result(url, _):
    schemas = ask(url, "/openapi.json")["components"]["schemas"]
    wanted, pages = ["Result"], []
    for name in wanted:
        if "properties" in schemas[name]:
            pages.append(fields_of(name, schemas[name], 3))
        for other in re.findall(r'"#/components/schemas/(\w+)"', json.dumps(schemas[name])):
            if other not in wanted:
                wanted.append(other)
    return "".join(pages).lstrip("\n")


def commands(_, atoll):
    """The texts of --help, of every command and subcommand."""

    def text(words):
        return subprocess.run([atoll, *words, "--help"], capture_output=True, text=True, check=True).stdout

    def below(words):
        found = re.search(r"^Commands:\n(.*?)(?:\n\n|\Z)", text(words), re.S | re.M)
        return re.findall(r"^  (\w\S*)", found[1], re.M) if found else []

    pages = []
    for name in (name for name in below([]) if name != "help"):
        for words in ([name], *([name, sub] for sub in below([name]))):
            pages.append(f"## atoll {' '.join(words)}\n\n```text\n{text(words)}```\n")
    return "\n".join(pages)


TABLES = {"limits": limits, "routes": routes, "result": result, "commands": commands}


@contextlib.contextmanager
def own_daemon(atoll):
    with tempfile.TemporaryDirectory(prefix="atoll-reference-") as place:
        os.chmod(place, 0o711)  # the daemon's front is another user
        words = [atoll, "serve", "--state-dir", f"{place}/state", "--socket", "off", "--listen", "127.0.0.1:0", "--until-eof"]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as popen:
            said = []
            for line in popen.stderr:
                said.append(line)
                if found := re.search(r'msg=ready.* listen="?([^" ]+)', line):
                    yield f"http://{found[1]}"
                    break
            else:
                sys.exit(f"reference.py: the daemon does not start: {''.join(said)}")
            popen.stdin.close()


def renew(url, atoll, check):
    """Whether the pages were as they should be."""
    same = True
    for page in sorted((ROOT / "doc").rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        made = PLACE.sub(lambda found: found[1] + "\n" + TABLES[found[2]](url, atoll) + "\n" + found[3], text)
        if made != text:
            same = False
            print(f"{page.relative_to(ROOT)} {'differs: run tools/reference.py' if check else 'is written'}", file=sys.stderr)
            if not check:
                page.write_text(made, encoding="utf-8")
    return same


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--url")
    parser.add_argument("--atoll", default=ROOT / "build" / "atoll")
    options = parser.parse_args()
    with contextlib.nullcontext(options.url) if options.url else own_daemon(options.atoll) as url:
        sys.exit(0 if renew(url, options.atoll, options.check) or not options.check else 1)


if __name__ == "__main__":
    main()
