# SPDX-License-Identifier: Apache-2.0
import fcntl
import mmap
import os
import pathlib
import shutil
import tempfile

with tempfile.TemporaryDirectory() as place:
    top = pathlib.Path(place)
    (top / "a" / "b").mkdir(parents=True)
    (top / "a" / "b" / "x.txt").write_text("hello")
    (top / "link").symlink_to("a/b/x.txt")
    os.link(top / "a/b/x.txt", top / "hard")
    print(sorted(str(p.relative_to(top)) for p in top.rglob("*")), (top / "link").read_text(), (top / "hard").stat().st_nlink)
    shutil.make_archive(str(top / "pack"), "gztar", top, "a")
    shutil.unpack_archive(str(top / "pack.tar.gz"), top / "out")
    print((top / "out/a/b/x.txt").read_text())
    with open(top / "map", "w+b") as f:
        f.truncate(8192)
        fcntl.flock(f, fcntl.LOCK_EX)
        with mmap.mmap(f.fileno(), 0) as m:
            m[4096:4101] = b"there"
            m.flush()
        f.seek(4096)
        print(f.read(5))
    os.rename(top / "map", top / "moved")
    os.chmod(top / "moved", 0o600)
    print(oct((top / "moved").stat().st_mode), os.access(top / "moved", os.R_OK), shutil.disk_usage(place).total > 0)
with tempfile.NamedTemporaryFile("w+", suffix=".txt") as f:
    f.write("x")
    f.flush()
    print(os.path.getsize(f.name))
