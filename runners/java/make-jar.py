#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes start.jar of Start.java: ./make-jar.py

The jar is kept beside its source, because building Atoll needs no Java. The same compiler makes the same bytes; the jar
names the source it was made of, which a test compares.
"""
import hashlib
import subprocess
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main():
    source = HERE / "Start.java"
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    with tempfile.TemporaryDirectory() as out:
        subprocess.run(["javac", "-Xlint:-options", "-XDignore.symbol.file", "-proc:none", "-g:none", "-source", "17", "-target", "17",
                        "--add-exports", "java.base/jdk.internal.vm.annotation=ALL-UNNAMED", "-d", out, source], check=True)
        classes = sorted(Path(out).rglob("*.class"))
        with zipfile.ZipFile(HERE / "start.jar", "w", zipfile.ZIP_STORED) as jar:
            jar.comment = digest.encode()
            for path in classes:
                jar.writestr(zipfile.ZipInfo(str(path.relative_to(out)), (1980, 1, 1, 0, 0, 0)), path.read_bytes())


main()
