# SPDX-License-Identifier: Apache-2.0
"""Asynchronous tools: calls that the code makes at once run at once here, too.

Prints:

    ['PARIS: 1', 'ROME: 1', 'OSLO: 1']
    together: True
"""
import asyncio

import atoll

CODE = """
import asyncio
return await asyncio.gather(*[weather(city) for city in cities])
"""


async def main() -> None:
    meeting = asyncio.Event()
    waiting = 0

    async def weather(city: str) -> str:
        nonlocal waiting
        waiting += 1
        if waiting == 3:
            meeting.set()  # no call returns before the third one has come
        await asyncio.wait_for(meeting.wait(), 20)
        return "%s: %d" % (city.upper(), len([city]))

    async with atoll.AsyncSandbox(host_functions={"weather": weather}) as sandbox:
        result = await sandbox.run(CODE, variables={"cities": ["Paris", "Rome", "Oslo"]})
    print(result.value)
    print("together:", meeting.is_set())


asyncio.run(main())
