#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Looks at what compiled code really calls.

  check-symbols.py ROOT pure LIBRARY… -- LOWER…   only memory, text and number functions
  check-symbols.py ROOT trusted LIBRARY…          neither parsers nor threads

`pure` holds that codec, spec, policy, analyse and plan reach no file, clock, environment or system call: each symbol
they leave undefined must come from themselves, from the pure part of a lower library, or from the
list below. `trusted` holds that the broker, the sandbox and init contain no JSON, YAML, SQL or threads.
"""

import re
import subprocess

import lint

PURE = re.compile(
    r"""^(?:
    mem\w+ | str(?!error|ftime)\w+ | explicit_bzero | bcmp
    | v?snprintf | v?asprintf | sscanf
    | malloc | calloc | realloc | reallocarray | free | qsort | qsort_r | bsearch | abort
    | to(?:lower|upper) | is(?:alnum|alpha|digit|space|xdigit|print)
    | floor | ceil | round | lround | llround | trunc | fmod | isnan | isinf | l?labs
    | json_\w+ | jsonp_\w+ | yaml_\w+ | pcre2_\w+
    | __errno_location | __ctype_\w+ | __assert_fail | __stack_chk_fail
    | __(?:mem|str|stp|v?snprintf|v?asprintf|fdelt)\w*_chk | __isoc99_sscanf
    | _GLOBAL_OFFSET_TABLE_ | __u?(?:div|mod|mul)ti[34] | sig(?:abbrev|descr)_np | strerror\w*
    )$""",
    re.X,
)

# Lower libraries hold these beside pure functions.
IMPURE = re.compile(r"^(?:clock_(?!format_utc)\w+|fd_\w+|buf_read_fd|sys_\w+|host_\w+|loop_\w+|source_\w+)$")

FORBIDDEN = re.compile(r"^(?:json_\w+|yaml_\w+|pcre2_\w+|sqlite3_\w+|curl_\w+|pthread_create|thrd_create)$")


def symbols(library, *options):
    text = subprocess.run(["nm", "-P", *options, library], capture_output=True, text=True, check=True)
    return {line.split()[0] for line in text.stdout.split("\n") if " " in line}


def defined(libraries):
    return {name for lib in libraries for name in symbols(lib, "--defined-only", "--extern-only")}


def check_pure(libraries, lower):
    ours = defined(libraries)
    below = {name for name in defined(lower) if not IMPURE.match(name)}
    for library in libraries:
        for name in sorted(symbols(library, "--undefined-only") - ours - below):
            if not PURE.match(name):
                yield library, 0, f"calls {name}(), which is not pure"


def check_trusted(libraries):
    for library in libraries:
        for name in sorted(symbols(library, "--undefined-only")):
            if FORBIDDEN.match(name):
                yield library, 0, f"calls {name}(): no parsers or threads on this side of the socket"


def check(root, kind, *arguments):
    if kind == "trusted":
        return check_trusted(arguments)
    cut = arguments.index("--")
    return check_pure(arguments[:cut], arguments[cut + 1 :])


if __name__ == "__main__":
    lint.main(check)
