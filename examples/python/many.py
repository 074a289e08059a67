# SPDX-License-Identifier: Apache-2.0
"""Fifty programs at once with asyncio, over connections that are kept.

Prints:

    50 of 50 succeeded, the sum is 1225
"""
import asyncio

import atoll


async def main() -> None:
    async with atoll.AsyncClient() as client:
        results = await asyncio.gather(*[client.run("print(%d)" % number) for number in range(50)])
    succeeded = [result for result in results if result.ok]
    print("%d of 50 succeeded, the sum is %d" % (len(succeeded), sum(int(result.stdout) for result in succeeded)))


asyncio.run(main())
