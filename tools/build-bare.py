#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles what is embedded and runs in foreign surroundings: build-bare.py shared|static|guarded COMPILER DEPFILE OUTPUT SOURCE…

One call of the compiler for all sources would write one dependency file for the last of them; so each is
compiled by itself, and what they depend on is gathered for ninja.
"""

import pathlib
import subprocess
import sys
import tempfile

FLAGS = ["-std=gnu17", "-D_GNU_SOURCE", "-ffunction-sections", "-fdata-sections", "-fno-stack-protector", "-Wall",
         "-Wextra", "-Werror"]
LINK = ["-s", "-Wl,--gc-sections", "-Wl,-z,noexecstack"]
# musl's headers lack the kernel's, which are the host's.
KERNEL_HEADERS = ["-idirafter", "/usr/include/x86_64-linux-gnu", "-idirafter", "/usr/include"]
KINDS = {
    "shared": (["-O2", "-fPIC", "-fvisibility=hidden"], ["-shared", "-Wl,-z,now", "-Wl,--no-undefined"]),
    "static": (["-Os", "-fno-pie", *KERNEL_HEADERS], ["-static", "-no-pie"]),
    # A program of its own that reads what programs in sandboxes send.
    "guarded": (["-O2", "-fno-pie", "-fstack-protector-strong", *KERNEL_HEADERS], ["-static", "-no-pie"]),
}


def main(kind, compiler, depfile, output, *sources):
    flags, link = KINDS[kind]
    root = pathlib.Path(__file__).resolve().parent.parent / "src"
    needs = set()
    with tempfile.TemporaryDirectory() as scratch:
        objects = []
        for index, source in enumerate(sources):
            stem = pathlib.Path(scratch) / f"{index}-{pathlib.Path(source).stem}"
            subprocess.run([*compiler.split(), *FLAGS, *flags, "-I", root, "-MD", "-MF", f"{stem}.d", "-c", source,
                            "-o", f"{stem}.o"], check=True)
            text = pathlib.Path(f"{stem}.d").read_text().replace("\\\n", " ")
            needs.update(text.split(":", 1)[1].split())
            objects.append(f"{stem}.o")
        subprocess.run([*compiler.split(), *LINK, *link, "-o", output, *objects], check=True)
    pathlib.Path(depfile).write_text(f"{output}: {' '.join(sorted(needs))}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
