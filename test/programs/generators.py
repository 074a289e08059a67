# SPDX-License-Identifier: Apache-2.0
import asyncio
import contextlib
import weakref

def tree(n):
    if n:
        yield from tree(n - 1)
        yield n

def averager():
    total = count = 0
    value = None
    while True:
        value = yield total / count if count else None
        total, count = total + value, count + 1

a = averager()
next(a)
print(list(tree(4)), a.send(10), a.send(20))

async def ticker(n):
    for i in range(n):
        await asyncio.sleep(0)
        yield i

async def main():
    lock, log = asyncio.Lock(), []
    async def worker(name):
        async with lock:
            log.append(name)
            await asyncio.sleep(0.001)
    await asyncio.gather(*(worker(n) for n in "abc"))
    print(log, [i async for i in ticker(3)])
    try:
        await asyncio.wait_for(asyncio.sleep(5), 0.01)
    except asyncio.TimeoutError:
        print("timeout")
    process = await asyncio.create_subprocess_exec("cat", stdin=-1, stdout=-1)
    print((await process.communicate(b"async child"))[0])
    print(await asyncio.to_thread(sum, range(10)))

asyncio.run(main())
with contextlib.suppress(KeyError):
    {}["x"]
class Thing: pass
t = Thing()
r = weakref.ref(t)
del t
print(r() is None)
