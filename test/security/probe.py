# SPDX-License-Identifier: Apache-2.0
"""What probes share. PRELUDE goes before the text of a probe, which runs inside as ordinary Python.

Raw calls are made with bad pointers and descriptors where that is possible: what the filter lets
through answers EFAULT or EBADF and does nothing, what it refuses answers with the filter's errno.
"""

PRELUDE = r"""
import ctypes, errno, json, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def sc(nr, *args):
    ctypes.set_errno(0)
    r = libc.syscall(ctypes.c_long(nr), *[ctypes.c_long(a) if isinstance(a, int) else a for a in args])
    return errno.errorcode.get(ctypes.get_errno(), str(ctypes.get_errno())) if r == -1 else 'ok'
def attempt(f, *args, **kw):
    try:
        f(*args, **kw)
        return 'ok'
    except OSError as e:
        return errno.errorcode.get(e.errno, str(e))
def say(thing):
    print(json.dumps(thing))
"""


def probe(box, code, **more):
    """Runs a probe; the JSON value it said."""
    return box.probe(PRELUDE + code, **more)


# x86-64 numbers, so that probes do not depend on what the host's headers know.
NR = dict(
    clone=56, ptrace=101, uselib=134, personality=135, ustat=136, sysfs=139, modify_ldt=154, pivot_root=155, _sysctl=156,
    prctl=157, adjtimex=159, chroot=161, acct=163, settimeofday=164, mount=165, umount2=166, swapon=167, swapoff=168,
    reboot=169, sethostname=170, setdomainname=171, iopl=172, ioperm=173, init_module=175, delete_module=176,
    quotactl=179, lookup_dcookie=212, io_setup=206, remap_file_pages=216, clock_settime=227, mbind=237,
    set_mempolicy=238, get_mempolicy=239, kexec_load=246, add_key=248, request_key=249, keyctl=250, ioprio_set=251,
    migrate_pages=256, unshare=272, splice=275, tee=276, vmsplice=278, move_pages=279, perf_event_open=298,
    fanotify_init=300, fanotify_mark=301, name_to_handle_at=303, open_by_handle_at=304, clock_adjtime=305, setns=308,
    process_vm_readv=310, process_vm_writev=311, kcmp=312, finit_module=313, seccomp=317, memfd_create=319,
    kexec_file_load=320, bpf=321, userfaultfd=323, membarrier=324, syslog=103, vhangup=153, sendfile=40, prlimit64=302,
    io_uring_setup=425, io_uring_enter=426, io_uring_register=427, open_tree=428, move_mount=429, fsopen=430,
    fsconfig=431, fsmount=432, fspick=433, clone3=435, pidfd_getfd=438, process_madvise=440, mount_setattr=442,
    quotactl_fd=443, landlock_create_ruleset=444, set_mempolicy_home_node=450, open_tree_attr=467,
)
