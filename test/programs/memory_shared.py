# SPDX-License-Identifier: Apache-2.0
import hashlib
import os
import secrets
import struct
import zlib
from multiprocessing import shared_memory

block = shared_memory.SharedMemory(create=True, size=16)
pid = os.fork()
if pid == 0:
    other = shared_memory.SharedMemory(block.name)
    struct.pack_into("<II", other.buf, 0, 7, 42)
    other.close()
    os._exit(0)
os.waitpid(pid, 0)
print(struct.unpack_from("<II", block.buf))
block.close()
block.unlink()
r, w = os.pipe()
os.write(w, b"through")
os.close(w)
print(os.read(r, 100), len(secrets.token_bytes(8)))
print(hashlib.sha256(b"x").hexdigest()[:16], zlib.decompress(zlib.compress(b"y" * 100))[:3], zlib.crc32(b"z"))
