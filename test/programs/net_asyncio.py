# SPDX-License-Identifier: Apache-2.0
import asyncio

async def echo(reader, writer):
    while line := await reader.readline():
        writer.write(line.upper())
        await writer.drain()
    writer.close()

async def client(port, n):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"hello {n}\n".encode())
    answer = await reader.readline()
    writer.close()
    await writer.wait_closed()
    return answer.decode().strip()

async def main():
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        print(await asyncio.gather(*(client(port, n) for n in range(5))))

asyncio.run(main())
