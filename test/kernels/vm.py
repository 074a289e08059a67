# SPDX-License-Identifier: Apache-2.0
"""Runs a command under another kernel: Debian's, in qemu, with this host's files.

No image is built. A busybox initramfs made on the fly mounts the host's / over 9p read-only, lays a tmpfs
over it and switches to that, so the guest has every program the host has and cannot change anything. The
guest gets cgroup v2 with all controllers, which the build machines themselves may lack. KVM is not needed.

The guest's output and exit code come back through a small shared directory, so they are exact; the serial
console is kept for the message when a boot fails.
"""
from __future__ import annotations

import glob
import gzip
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

QEMU = "qemu-system-x86_64"
MODULES = ("virtio_pci", "9pnet_virtio", "9p", "overlay")
SHARE = "/mnt"  # where the guest sees the shared directory

FIRST_STAGE = """#!/bin/busybox sh
set -e
export PATH=/bin
/bin/busybox mkdir -p /proc /lower /rw /new
/bin/busybox ln -s busybox /bin/mount
mount -t proc proc /proc
for m in {modules}; do /bin/busybox insmod /modules/$m; done
mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=loose,ro root /lower
mount -t tmpfs -o size=1g tmpfs /rw
/bin/busybox mkdir /rw/upper /rw/work
mount -t overlay -o lowerdir=/lower,upperdir=/rw/upper,workdir=/rw/work overlay /new
mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=none share /new{share}
mount --move /proc /new/proc
exec /bin/busybox switch_root /new /bin/bash {share}/second-stage
"""

SECOND_STAGE = """
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts -o mode=600,ptmxmode=666 devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs -o mode=755 tmpfs /run
mount -t cgroup2 cgroup2 /sys/fs/cgroup
ln -sf /proc/self/fd /dev/fd
ip link set lo up
hostname kernel-test
cd /
bash {share}/command </dev/null >{share}/output 2>&1
echo $? >{share}/rc
sync
echo o >/proc/sysrq-trigger
sleep 60
"""


def newest_kernel() -> tuple[str, str] | None:
    """(image, release) of the newest Debian kernel that has its modules here."""
    found = []
    for image in glob.glob("/boot/vmlinuz-*"):
        release = image.removeprefix("/boot/vmlinuz-")
        if os.path.exists(f"/lib/modules/{release}/modules.dep"):
            found.append((os.path.getmtime(image), image, release))
    return max(found)[1:] if found else None


def missing() -> str | None:
    """Why no VM can be started here, or None."""
    if not shutil.which(QEMU):
        return f"{QEMU} is not installed: apt-get install qemu-system-x86"
    if not shutil.which("busybox"):
        return "busybox is not installed: apt-get install busybox-static"
    if not newest_kernel():
        return "no kernel with modules in /boot: apt-get install linux-image-amd64"
    if os.geteuid() != 0:
        return "serving this host's / to the guest needs root: sudo ./dev test"
    return None


def module_files(release: str) -> list[str]:
    """MODULES and what they depend on, in the order they can be loaded."""
    base = f"/lib/modules/{release}"
    deps, by_name = {}, {}
    for line in pathlib.Path(base, "modules.dep").read_text().splitlines():
        path, _, rest = line.partition(":")
        deps[path] = rest.split()
        by_name[os.path.basename(path).split(".")[0]] = path
    order: list[str] = []

    def add(path: str) -> None:
        if path in order:
            return
        for dep in deps[path]:
            add(dep)
        order.append(path)

    for name in MODULES:
        if name in by_name:  # else it is built in
            add(by_name[name])
    return [f"{base}/{path}" for path in order]


def cpio_entry(number: int, name: str, mode: int, data: bytes) -> bytes:
    raw = name.encode() + b"\0"
    fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(raw), 0)
    head = b"070701" + b"".join(b"%08X" % f for f in fields) + raw
    return head + b"\0" * (-len(head) % 4) + data + b"\0" * (-len(data) % 4)


def initramfs(release: str) -> bytes:
    modules = module_files(release)
    names = [os.path.basename(m) for m in modules]
    busybox = pathlib.Path(shutil.which("busybox") or "").read_bytes()
    init = FIRST_STAGE.format(modules=" ".join(names), share=SHARE)
    entries = [("bin", 0o40755, b""), ("modules", 0o40755, b""), ("dev", 0o40755, b""),
               ("bin/busybox", 0o100755, busybox), ("init", 0o100755, init.encode())]
    entries += [(f"modules/{n}", 0o100644, pathlib.Path(m).read_bytes())
                for n, m in zip(names, modules)]
    entries.append(("TRAILER!!!", 0, b""))
    cpio = b"".join(cpio_entry(i + 1, *e) for i, e in enumerate(entries))
    return gzip.compress(cpio, 1)


def qemu_argv(image: str, work: pathlib.Path, share: pathlib.Path) -> list[str]:
    def folder(name: str, path: str, options: str) -> list[str]:
        return ["-fsdev", f"local,id={name},path={path},security_model=none,multidevs=remap{options}",
                "-device", f"virtio-9p-pci,fsdev={name},mount_tag={name}"]

    # One processor: emulated ones spin while they wait for each other, which took a third of all the time.
    return [QEMU, "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "1", "-m", "2048",
            "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-nic", "none",
            "-serial", f"file:{work}/console",
            "-kernel", image, "-initrd", f"{work}/initramfs",
            "-append", "console=ttyS0 quiet panic=-1 mitigations=off",
            *folder("root", "/", ",readonly=on"), *folder("share", str(share), "")]


def run_in_vm(command: str, timeout: float = 300) -> tuple[int, str]:
    """Boots, runs a bash command, returns its exit code and output (both streams).

    124 when it did not end in time, 125 when the guest ended without saying how.
    """
    reason = missing()
    if reason:
        raise RuntimeError(reason)
    image, release = newest_kernel()  # type: ignore[misc]
    with tempfile.TemporaryDirectory(prefix="tests-vm-") as tmp:
        work, share = pathlib.Path(tmp), pathlib.Path(tmp, "share")
        share.mkdir()
        (work / "initramfs").write_bytes(initramfs(release))
        (share / "second-stage").write_text(SECOND_STAGE.format(share=SHARE))
        (share / "command").write_text(command)
        process = subprocess.Popen(qemu_argv(image, work, share), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        late = False
        try:
            said = process.communicate(timeout=timeout)[0]
        except subprocess.TimeoutExpired:
            late = True
            process.kill()
            said = process.communicate()[0]
        output, code = share / "output", share / "rc"
        text = output.read_text(errors="replace") if output.exists() else ""
        if code.exists() and code.read_text().strip():
            return int(code.read_text()), text
        console = work / "console"
        text += said.decode(errors="replace")
        text += console.read_text(errors="replace") if console.exists() else ""
        return (124 if late else 125), text


if __name__ == "__main__":
    result, printed = run_in_vm(" ".join(sys.argv[1:]) or "uname -a; cat /proc/self/cgroup", 600)
    print(printed, end="")
    sys.exit(result)
