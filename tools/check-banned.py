#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Refuses calls that have a safe replacement, and descriptors that are born without close-on-exec.

A descriptor that leaks over exec is a way out of a sandbox, so every call that makes one must name
its close-on-exec flag in the call itself. Unit tests (test-*.c) start no sandbox: only the first rule
holds there.
"""

import re

import lint

BANNED = {
    "strcpy": "snprintf or buf_puts",
    "strcat": "buf_puts",
    "sprintf": "snprintf",
    "vsprintf": "vsnprintf",
    "strtok": "strcspn",
    "strtok_r": "strcspn",
    "atoi": "parse_i64",
    "atol": "parse_i64",
    "atoll": "parse_i64",
    "atof": "parse_milli",
    "strtol": "parse_i64",
    "strtoll": "parse_i64",
    "strtoul": "parse_i64",
    "strtoull": "parse_i64",
    "system": "posix_spawn",
    "popen": "posix_spawn",
    "gets": "buf_read_fd",
    "fgets": "buf_read_fd",
    "alloca": "a bounded buffer",
    "pipe": "pipe2 with O_CLOEXEC",
    "accept": "accept4 with SOCK_CLOEXEC",
    "dup": "fcntl with F_DUPFD_CLOEXEC",
    "creat": "open with O_CREAT | O_CLOEXEC",
    "epoll_create": "epoll_create1 with EPOLL_CLOEXEC",
    "inotify_init": "inotify_init1 with IN_CLOEXEC",
    "mkstemp": "mkostemp with O_CLOEXEC",
    "tmpfile": "memfd_create",
}

CLOEXEC = {
    "open": "O_CLOEXEC",
    "openat": "O_CLOEXEC",
    "pipe2": "O_CLOEXEC",
    "posix_openpt": "O_CLOEXEC",
    "mkostemp": "O_CLOEXEC",
    "socket": "SOCK_CLOEXEC",
    "socketpair": "SOCK_CLOEXEC",
    "accept4": "SOCK_CLOEXEC",
    "memfd_create": "MFD_CLOEXEC",
    "epoll_create1": "EPOLL_CLOEXEC",
    "eventfd": "EFD_CLOEXEC",
    "signalfd": "SFD_CLOEXEC",
    "timerfd_create": "TFD_CLOEXEC",
    "inotify_init1": "IN_CLOEXEC",
    "recvmsg": "MSG_CMSG_CLOEXEC",
    "open_tree": "OPEN_TREE_CLOEXEC",
    "fsopen": "FSOPEN_CLOEXEC",
    "fsmount": "FSMOUNT_CLOEXEC",
}

CLOEXEC_BY_NAME = {"pipe", "accept", "dup", "creat", "epoll_create", "inotify_init", "mkstemp", "tmpfile"}

# A name that is called: not a member, not part of a longer name, not a declaration's own name.
CALL = re.compile(r"(?<![\w.>])(\w+)\s*\(")


def may_exit(path):
    return path.name == "main.c" or path.name.endswith("-main.c")


def judge(path, name, arguments, text):
    """What is wrong with one call, or None."""
    if path.name.startswith("test-") and (name in CLOEXEC or name in CLOEXEC_BY_NAME or name == "fopen"):
        return None
    if name in BANNED:
        return f"{name}() is banned: use {BANNED[name]}"
    if name == "exit" and not may_exit(path):
        return "exit() outside a main file: return an error (or _exit in a child)"
    if name in CLOEXEC and CLOEXEC[name] not in arguments:
        return f"{name}() without {CLOEXEC[name]}"
    if name == "fopen" and not re.search(r'"[^"]*e[^"]*"\s*$', arguments):
        return 'fopen() without "e" in its mode'
    if name == "openat2" and "O_CLOEXEC" not in text:
        return "openat2() in a file that never says O_CLOEXEC"
    return None


def check(root):
    for path in lint.files(root, "src"):
        text = path.read_text()
        code, worded = lint.blank(text), lint.blank(text, keep_strings=True)
        for match in CALL.finditer(code):
            arguments = lint.call_arguments(worded, match.end() - 1)
            problem = judge(path, match.group(1), arguments, code)
            if problem:
                yield path, lint.line_of(code, match.start()), problem


if __name__ == "__main__":
    lint.main(check)
