# SPDX-License-Identifier: Apache-2.0
"""Which pages programs touch, found out once, so that children can have them before they wait.

A forked child shares all pages with the zygote and copies each at its first write; mapped files have to be found anew. At
several microseconds a fault that is most of a short program's time. So the zygote lets one child of its own, the probe, run
a sample to its end and read /proc/self/pagemap there; children then ask for the same pages, a range a system call.
"""
import os
import sys

PAGE = os.sysconf("SC_PAGE_SIZE")
POPULATE_READ, POPULATE_WRITE = 22, 23
PR_SET_DUMPABLE = 4
PRESENT, OF_FILE, EXCLUSIVE = 1 << 63, 1 << 61, 1 << 56
POOL = 16384 if sys.version_info >= (3, 10) else 4096
ROOM = 1 << 18   # bytes of the answer
GAP = 0          # pages between two ranges that are cheaper to take along than to leave out
SPECIAL = (b"[vvar]", b"[vdso]", b"[vsyscall]", b"[vvar_vclock]")

libc = madvise = None
last_word = leave = None   # of the agent: flushes libc's streams and reports the end to the broker; exit() of libc
kept = []        # blocks of memory that are never freed
spans = []       # (start, end, writable) of the zygote's private mappings
entries = None   # of /proc/self/pagemap, all spans together, in memory that probe and zygote share
answer = None    # of the probe: as wanted, in such memory
wanted = memoryview(bytes(8)).cast("Q")   # the count of all these numbers; address, length, advice, …


def mappings():
    with open("/proc/self/maps", "rb") as file:
        for line in file.read().splitlines():
            span, rights = line.split(None, 2)[:2]
            start, _, end = span.partition(b"-")
            if rights[:1] == b"r" and rights[3:4] == b"p" and not line.endswith(SPECIAL):
                yield int(start, 16), int(end, 16), rights[1:2] == b"w"


def touched():
    """(address, advice) of the pages that were the probe's own, and of those that it had of files."""
    at = 0
    for start, end, writable in spans:
        for address in range(start, end, PAGE):
            entry = entries[at]
            at += 1
            if entry & PRESENT and entry & OF_FILE:
                yield address, POPULATE_READ
            elif entry & PRESENT and entry & EXCLUSIVE and writable:
                yield address, POPULATE_WRITE


def ranges(pages):
    made = []
    for address, advice in pages:
        if made and made[-1][2] == advice and address - made[-1][0] - made[-1][1] <= GAP * PAGE:
            made[-1][1] = address + PAGE - made[-1][0]
        else:
            made.append([address, PAGE, advice])
    return made


def tell(_):
    """In the probe, at its end. Nothing is allocated before all entries are read."""
    libc.prctl(PR_SET_DUMPABLE, 1)  # else that file is root's
    pagemap, at = os.open("/proc/self/pagemap", os.O_RDONLY | os.O_CLOEXEC), 0
    for start, end, _ in spans:
        at += os.preadv(pagemap, [entries[at:at + (end - start) // PAGE]], start // PAGE * 8) // 8
    at = 1
    for item in ranges(touched())[:(len(answer) - 1) // 3]:
        answer[at], answer[at + 1], answer[at + 2] = item
        at += 3
    answer[0] = at
    os._exit(0)


def tighten(ctypes):
    """Finds the functions of libc; takes all free pieces of memory, so that what children get lies side by side."""
    global last_word, leave, libc, madvise
    libc = ctypes.PyDLL(None)
    last_word, leave = libc.atoll_last_word, libc.exit
    madvise = libc.madvise
    madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    fill_heap(ctypes)


def fill_heap(ctypes):
    if not hasattr(libc, "mallinfo2"):  # not glibc
        return
    names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
    fields = {"_fields_": [(name, ctypes.c_size_t) for name in names]}
    libc.mallinfo2.restype = type("mallinfo2", (ctypes.Structure,), fields)
    libc.malloc.restype = libc.sbrk.restype = ctypes.c_size_t
    libc.malloc.argtypes = libc.free.argtypes = (ctypes.c_size_t,)
    size = 65536
    while size >= 24:
        piece = libc.malloc(size)
        if not piece or piece >= libc.sbrk(0) - libc.mallinfo2().keepcost - size - 64:  # from the end of the heap
            libc.free(piece)
            size = size * 3 // 4 if size > 1032 else size - 16


def fill_pools():
    """The interpreter's own allocator has pools of equal pieces for objects of up to 512 bytes."""
    for size in range(16, 513, 16):
        while True:
            kept.append(object() if size == 16 else len(kept) + 1000 if size == 32 else bytes(size - 33))
            if id(kept[-1]) % POOL == 48:  # the first of a new pool
                break


def fill_arrays(numpy):
    """numpy keeps up to seven pieces of each size below 1024 bytes for its next arrays."""
    kept.extend([numpy.empty(size, "u1") for size in range(1, 1024) for _ in range(7)])


def learn(mmap):
    """Forks the probe, and is True there.

    The zygote must not allocate or free anything behind that, or children find other pieces of memory free than the probe did:
    what is needed is made before, and kept.
    """
    global answer, entries, wanted
    fill_pools()  # first: it may map more
    spans[:] = mappings()
    shared = mmap.mmap(-1, ROOM + sum(end - start for start, end, _ in spans) // PAGE * 8)
    answer, entries = memoryview(shared)[:ROOM].cast("Q"), memoryview(shared)[ROOM:].cast("Q")
    wanted = memoryview(mmap.mmap(-1, ROOM, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)).cast("Q")
    libc.PyOS_BeforeFork()
    pid = libc._Fork()  # the agent has taken fork()
    if pid == 0:
        libc.PyOS_AfterFork_Child()
        return True
    libc.PyOS_AfterFork_Parent()
    if pid > 0:
        os.waitpid(pid, 0)
    wanted[:answer[0]] = answer[:answer[0]]
    # No memory may be shared with children.
    answer.release()
    entries.release()
    shared.close()
    kept.append(shared)
    if wanted[0] == 0:
        sys.stderr.write("zygote.py: it is not known which pages programs touch; they will be slower\n")
    return False


def populate():
    for at in range(1, wanted[0], 3):
        madvise(wanted[at], wanted[at + 1], wanted[at + 2])
