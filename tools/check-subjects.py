#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Subjects of commits are `module: imperative` and have at most 72 columns.

The last 50 commits that this clone has are looked at, however deep it is; those from before the rule are passed over.
Without git or a repository there is nothing to look at. Whether a word is an imperative is guessed from its ending.
"""

import re
import subprocess

import lint

COMMITS = 50
COLUMNS = 72
RULE_FROM = 1795129200  # 2026-11-19 23:00 UTC
MODULE = re.compile(r"[a-z0-9][a-z0-9_.,/ -]*: (?P<first>\S+)")
# No sentence about the code or its past: "fixes", "fixed", "fixing", "the table has …".
NO_IMPERATIVE = re.compile(r"(?!.*(ss|us|xis)$).*s$|(?!(bring|ring|string)$).*ing$|(?!.*(eed|bed|shed)$).*ed$|(the|a|an|one|what|when|that|this|it|to)$|[A-Z]")


def complaint(subject):
    found = MODULE.match(subject)
    if not found:
        return "a subject is `module: what the commit does`"
    if len(subject) > COLUMNS:
        return f"{len(subject)} columns, at most {COLUMNS}"
    if NO_IMPERATIVE.match(found["first"]):
        return f"'{found['first']}' is no imperative, such as add, hold, say"
    return None


def check(root):
    try:
        log = subprocess.run(["git", "-c", "safe.directory=*", "-C", root, "log", "--no-merges", f"-{COMMITS}", "--format=%h %ct %s"],
                             capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return
    for line in log.stdout.splitlines() if log.returncode == 0 else ():
        commit, seconds, subject = line.split(" ", 2)
        wrong = complaint(subject) if int(seconds) >= RULE_FROM else None
        if wrong:
            yield root / f"commit {commit}", 1, f"{wrong}: {subject}"


if __name__ == "__main__":
    lint.main(check)
