# SPDX-License-Identifier: Apache-2.0
"""Connections for asyncio: the same calls over StreamReader and StreamWriter.

The standard library has no asynchronous HTTP client. This one speaks to our own daemon only, which answers HTTP/1.1 with
Content-Length or chunks; anything else is refused.
"""
from __future__ import annotations

import asyncio
from typing import AsyncIterator, Dict, List, Optional, Tuple

from ._address import Address
from ._errors import AtollError, Busy
from ._sync import CONNECT_SECONDS, IDLE_MAX, answer_cut, connection_failed
from ._wire import Answer, Call, Patience, refusal

LINE_MAX = 64 << 20  # an event's line: a result with both of its streams at their ceilings

Streams = Tuple[asyncio.StreamReader, asyncio.StreamWriter]


class _Body:
    """The body of one answer, in pieces."""

    def __init__(self, reader: asyncio.StreamReader, headers: Dict[str, str]) -> None:
        self._reader = reader
        self._chunked = headers.get("transfer-encoding", "").lower() == "chunked"
        self._left = int(headers.get("content-length", "0"))
        self.complete = False

    async def piece(self) -> bytes:
        """The next bytes; b"" at the end."""
        if not self._chunked:
            if self._left == 0:
                self.complete = True
                return b""
            data = await self._reader.read(min(self._left, 1 << 18))
            if not data:
                raise answer_cut()
            self._left -= len(data)
            return data
        try:
            size = int((await self._reader.readuntil(b"\r\n")).split(b";")[0], 16)
            data = await self._reader.readexactly(size)
            await self._reader.readuntil(b"\r\n")
        except (OSError, EOFError) as error:
            raise answer_cut() from error
        self.complete = size == 0
        return data

    async def read(self) -> bytes:
        """All of it."""
        pieces: List[bytes] = []
        while not self.complete:
            pieces.append(await self.piece())
        return b"".join(pieces)

    async def lines(self) -> AsyncIterator[bytes]:
        """Line by line."""
        rest = bytearray()
        while not self.complete:
            rest += await self.piece()
            if len(rest) > LINE_MAX:
                raise AtollError("the daemon sent a line of more than %d bytes" % LINE_MAX)
            *whole, tail = bytes(rest).split(b"\n")
            rest = bytearray(tail)
            for line in whole:
                yield line
        if rest:
            yield bytes(rest)


class AsyncTransport:
    """Sends calls to one daemon, from one event loop."""

    def __init__(self, address: Address, token: Optional[str], patience: float = 0.0) -> None:
        self.address = address
        self._token = token
        self._patience = patience
        self._idle: List[Streams] = []

    async def close(self) -> None:
        """Closes the idle connections."""
        idle, self._idle = self._idle, []
        for _, writer in idle:
            writer.close()

    async def _take(self) -> Streams:
        while self._idle:
            reader, writer = self._idle.pop()
            if not reader.at_eof() and not writer.is_closing():
                return reader, writer
            writer.close()
        if self.address.path:
            opening = asyncio.open_unix_connection(self.address.path, limit=LINE_MAX)
        else:
            opening = asyncio.open_connection(self.address.host, self.address.port, limit=LINE_MAX)
        return await asyncio.wait_for(opening, CONNECT_SECONDS)

    def _give_back(self, streams: Streams) -> None:
        if len(self._idle) < IDLE_MAX:
            self._idle.append(streams)
        else:
            streams[1].close()

    async def _send(self, call: Call) -> Tuple[Streams, int, Dict[str, str]]:
        streams: Optional[Streams] = None
        try:
            streams = reader, writer = await self._take()
            writer.write(call.head_bytes(self.address, self._token) + (call.body or b""))
            await writer.drain()
            lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        except (OSError, EOFError, asyncio.TimeoutError) as error:
            if streams is not None:
                streams[1].close()
            raise connection_failed(self.address, error) from error
        except BaseException:
            if streams is not None:
                streams[1].close()
            raise
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)}
        return streams, int(lines[0].split()[1]), headers

    async def call(self, call: Call) -> Answer:
        """Sends a call and reads its whole answer, again where the daemon has no room. Cancelling closes the connection."""
        patience = Patience(self._patience)
        while True:
            try:
                return await self._call_once(call)
            except Busy as error:
                await asyncio.sleep(patience.pause(error))

    async def _call_once(self, call: Call) -> Answer:
        streams, status, headers = await self._send(call)
        body = _Body(streams[0], headers)
        try:
            answer = Answer(status, headers, await body.read())
        except BaseException:
            streams[1].close()
            raise
        self._give_back(streams)
        return answer.check()

    async def lines(self, call: Call) -> AsyncIterator[bytes]:
        """Sends a call and gives its answer line by line. Leaving the loop early closes the connection."""
        patience = Patience(self._patience)
        while True:
            try:
                async for line in self._lines_once(call):
                    yield line
                return
            except Busy as error:
                await asyncio.sleep(patience.pause(error))

    async def _lines_once(self, call: Call) -> AsyncIterator[bytes]:
        streams, status, headers = await self._send(call)
        body = _Body(streams[0], headers)
        try:
            if status >= 400:
                raise refusal(status, headers, await body.read())
            async for line in body.lines():
                yield line
        finally:
            if body.complete:
                self._give_back(streams)
            else:
                streams[1].close()
