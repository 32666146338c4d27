"""A proxy before Redis: which command a request is, and where a reply ends.

Relies on: a client that pipelines commands gets a reply for each, in their order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ticketgate.streams.parts.ports import HOST, free_port

from .faults import Request
from .proxy import Proxy

# What a connection says before its first command, and must say again on another connection.
_GREETINGS = ("HELLO", "AUTH", "SELECT")
_ONE_LINE = b"+-:_#,("
_BULK = b"$=!"
_LISTS = b"*~>"
_MAPS = b"%|"


class RedisWire:
    """RESP on one connection."""

    def __init__(self) -> None:
        self._greeting: list[Request] = []

    async def read_request(self, client: asyncio.StreamReader) -> Request:
        """As `Wire`: one command under its name in capitals, or all from MULTI to EXEC under "MULTI"."""
        name, data = await _command(client)
        if name == "MULTI":
            last = name
            while last not in ("EXEC", "DISCARD"):
                last, more = await _command(client)
                data += more
        request = Request(name, data)
        if name in _GREETINGS:
            self._greeting.append(request)
        return request

    async def read_reply(self, server: asyncio.StreamReader) -> bytes:
        """As `Wire`."""
        return await _reply(server)

    def replies_to(self, request: Request) -> int:
        """One for each command."""
        return _commands_in(request.data) if request.name == "MULTI" else 1

    def is_reply_to(self, request: Request, reply: bytes) -> bool:
        """Always: each command has one."""
        return True

    def greeting(self) -> Sequence[Request]:
        """What chose the user and the database."""
        return self._greeting


async def _command(reader: asyncio.StreamReader) -> tuple[str, bytes]:
    data = head = await reader.readuntil(b"\r\n")
    words: list[bytes] = []
    for _ in range(int(head[1:])):
        size = await reader.readuntil(b"\r\n")
        word = await reader.readexactly(int(size[1:]) + 2)
        words.append(word[:-2])
        data += size + word
    return words[0].decode().upper(), data


def _commands_in(data: bytes) -> int:
    count, at = 0, 0
    while at < len(data):
        end = data.index(b"\r\n", at)
        words, at = int(data[at + 1 : end]), end + 2
        for _ in range(words):
            end = data.index(b"\r\n", at)
            at = end + 2 + int(data[at + 1 : end]) + 2
        count += 1
    return count


async def _reply(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n")
    kind = head[:1]
    if kind in _ONE_LINE:
        return head
    size = int(head[1:])
    if kind in _BULK:
        return head if size < 0 else head + await reader.readexactly(size + 2)
    if kind not in _LISTS + _MAPS:
        raise AssertionError(f"not RESP: {head!r}")
    data = head
    for _ in range(size * (2 if kind in _MAPS else 1)):
        data += await _reply(reader)
    return data


class RedisProxy(Proxy):
    """A proxy before a Redis on 127.0.0.1."""

    def __init__(self, upstream_port: int) -> None:
        super().__init__(upstream_port, port=free_port(), new_wire=RedisWire)

    @property
    def url(self) -> str:
        """What TICKETGATE_REDIS takes: database 0, no password."""
        return f"redis://{HOST}:{self.port}/0"
