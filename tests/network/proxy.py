"""The machinery of a proxy: connections in pairs, requests in order, and copies that are delivered later.

Promise: without faults, bytes pass unchanged and in order. A copy that is delivered late goes over a connection of its
own, as a packet does that a network held up beyond its connection's end; whether it could be is `Held.answer`.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from ticketgate.streams.parts.ports import HOST

from .faults import Fault, Request, Rule, nothing

# More than any request of the tests; asyncio's default would stall on a record of a few hundred KiB.
BUFFER = 16 * 2**20
# How long a late copy's connection is waited for to be answered: a frozen server may need long.
ANSWER_TIMEOUT_S = 60.0


class Wire(Protocol):
    """A protocol's framing, for one connection of a client."""

    async def read_request(self, client: asyncio.StreamReader) -> Request:
        """The client's next request. Raises EOFError at the end."""
        ...

    async def read_reply(self, server: asyncio.StreamReader) -> bytes:
        """The server's next reply. Raises EOFError at the end."""
        ...

    def replies_to(self, request: Request) -> int:
        """How many replies a request has."""
        ...

    def is_reply_to(self, request: Request, reply: bytes) -> bool:
        """Whether a reply can be this request's, which is the oldest that waits."""
        ...

    def greeting(self) -> Sequence[Request]:
        """What this connection was opened with, to be said again on a late copy's own."""
        ...


@dataclass(slots=True)
class Held:
    """A copy of a request that is delivered apart, once. `answer` is the server's, empty if it was not reached."""

    request: Request
    _proxy: Proxy
    greeting: Sequence[Request]
    answer: bytes | None = None

    def deliver(self) -> bytes:
        """Deliver it now, and wait for the server's answer; in an event loop, call it by `asyncio.to_thread`."""
        sending = self._proxy.send_held(self)
        return asyncio.run_coroutine_threadsafe(sending, self._proxy.loop).result(ANSWER_TIMEOUT_S + 5)


class Proxy:
    """A proxy on a free port before `upstream_port` of 127.0.0.1. `rule` may be set anew at any time."""

    def __init__(self, upstream_port: int, *, port: int, new_wire: Callable[[], Wire]) -> None:
        self.port = port
        self.rule: Rule = nothing
        self.held: list[Held] = []
        self.seen: list[str] = []
        """The names of all requests that came, in order."""
        self.faults: list[tuple[str, Fault]] = []
        """Which requests had a fault, and what fault."""
        self._upstream_port = upstream_port
        self._new_wire = new_wire
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name=f"proxy {port}", daemon=True)
        self._server: asyncio.Server | None = None
        self._links: set[_Link] = set()
        self._late: set[asyncio.Task[bytes]] = set()
        self._is_silent = asyncio.Event()
        self._refuses = False

    # --- the whole network ---

    def silence(self) -> None:
        """From now on nothing passes, on old connections and new ones, and nobody is told."""
        self._call(self._is_silent.set)

    def refuse(self) -> None:
        """Cut all connections, and every new one at once."""
        self._call(self._cut_all)

    def heal(self) -> None:
        """Let new connections pass again. Those that were silenced are cut: what they kept back is lost."""
        self._call(self._heal)

    def _cut_all(self) -> None:
        self._refuses = True
        for link in self._links:
            link.cut()

    def _heal(self) -> None:
        self._cut_all()
        self._refuses = False
        self._is_silent.clear()

    def forget(self) -> None:
        """Begin anew: no rule, nothing seen, nothing held."""
        self.rule = nothing
        self.held, self.seen, self.faults = [], [], []

    # --- waiting ---

    def wait_for_held(self, count: int, timeout_s: float = 60) -> Sequence[Held]:
        """Wait until so many copies wait to be delivered by hand."""
        self.wait_for(lambda: len(self.held) >= count, timeout_s)
        return self.held[:count]

    def wait_for(self, condition: Callable[[], bool], timeout_s: float = 60) -> None:
        """Wait for a condition of what the proxy saw; fails with that."""
        deadline = time.monotonic() + timeout_s
        while not condition():
            assert time.monotonic() < deadline, f"the proxy saw {self.seen[-50:]}, faults {self.faults}"
            time.sleep(0.01)

    # --- life ---

    def lead_to(self, upstream_port: int) -> None:
        """Where new connections lead from now on, as when an address moves; those that are there stay."""
        self._upstream_port = upstream_port

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self.loop).result(30)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self.loop).result(30)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._accept, HOST, self.port, limit=BUFFER)

    async def _close(self) -> None:
        if self._server is not None:
            self._server.close()
        self._cut_all()
        tasks = [*self._late, *(link.task for link in self._links)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refuses:
            writer.transport.abort()
            return
        task = asyncio.current_task()
        assert task is not None
        link = _Link(self, task, reader, writer, self._new_wire())
        self._links.add(link)
        try:
            await link.run(self._upstream_port)
        except (OSError, EOFError, asyncio.CancelledError):
            pass  # either side went, or the proxy cut it
        finally:
            link.cut()
            self._links.discard(link)

    def _call(self, change: Callable[[], None]) -> None:
        done = threading.Event()
        self.loop.call_soon_threadsafe(lambda: (change(), done.set()))
        assert done.wait(30)

    # --- late copies ---

    def deliver_later(self, request: Request, wire: Wire, late_s: float | None) -> None:
        """Deliver a copy after `late_s`, or keep it for `Held.deliver`."""
        greeting = tuple(wire.greeting())
        if late_s is None:
            self.held.append(Held(request, self, greeting))
            return
        task = self.loop.create_task(self._deliver(request, greeting, late_s))
        self._late.add(task)
        task.add_done_callback(self._late.discard)

    async def send_held(self, held: Held) -> bytes:
        """Deliver a copy that waits for it."""
        held.answer = await self._deliver(held.request, held.greeting)
        return held.answer

    async def send_all_held(self) -> None:
        """Deliver all that waits for it, in order."""
        for held in self.held:
            if held.answer is None:
                await self.send_held(held)

    async def _deliver(self, request: Request, greeting: Sequence[Request], late_s: float = 0.0) -> bytes:
        await asyncio.sleep(late_s)
        wire = self._new_wire()
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                reader, writer = await asyncio.open_connection(HOST, self._upstream_port, limit=BUFFER)
                try:
                    answer = b""
                    for each in (*greeting, request):
                        writer.write(each.data)
                        for _ in range(wire.replies_to(each)):
                            answer = await wire.read_reply(reader)
                    return answer
                finally:
                    writer.transport.abort()
        except (OSError, EOFError, TimeoutError):
            return b""


class _Link:
    """A client's connection, and the one to the server that belongs to it."""

    def __init__(
        self,
        proxy: Proxy,
        task: asyncio.Task[None],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        wire: Wire,
    ) -> None:
        self.task = task
        self._proxy = proxy
        self._client, self._to_client = reader, writer
        self._to_server: asyncio.StreamWriter | None = None
        self._wire = wire
        self._waiting: deque[tuple[Request, Fault, int]] = deque()
        self._is_silent = False

    async def run(self, upstream_port: int) -> None:
        """Pass on both ways, until either side ends or a fault cuts."""
        server, self._to_server = await asyncio.open_connection(HOST, upstream_port, limit=BUFFER)
        ways = [asyncio.ensure_future(self._requests()), asyncio.ensure_future(self._replies(server))]
        try:
            done, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in done:
                way.result()
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    def cut(self) -> None:
        """End both connections at once."""
        self._to_client.transport.abort()
        if self._to_server is not None:
            self._to_server.transport.abort()

    async def _requests(self) -> None:
        assert self._to_server is not None
        while True:
            request = await self._wire.read_request(self._client)
            self._proxy.seen.append(request.name)
            if self._swallows():
                continue
            fault = self._proxy.rule(request)
            if fault != Fault():
                self._proxy.faults.append((request.name, fault))
            if fault.brings_held:
                await self._proxy.send_all_held()
            await asyncio.sleep(fault.delay_s)
            if fault.is_forwarded:
                self._waiting.append((request, fault, self._wire.replies_to(request)))
                self._to_server.write(request.data)
                await self._to_server.drain()
            for late_s in fault.late_s:
                self._proxy.deliver_later(request, self._wire, late_s)
            self._is_silent |= fault.falls_silent
            if fault.cut_after_s is not None:
                await asyncio.sleep(fault.cut_after_s)
                return

    async def _replies(self, server: asyncio.StreamReader) -> None:
        while True:
            reply = await self._wire.read_reply(server)
            if self._swallows():
                continue
            if not self._is_answered(reply):
                return
            self._to_client.write(reply)
            with contextlib.suppress(ConnectionError):
                await self._to_client.drain()

    def _is_answered(self, reply: bytes) -> bool:
        """Whether the client may have this reply; takes it off those that are waited for."""
        while self._waiting:
            request, fault, left = self._waiting.popleft()
            if not self._wire.is_reply_to(request, reply):
                continue  # a request that has no reply
            if left > 1:
                self._waiting.appendleft((request, fault, left - 1))
            return fault.is_answered
        return True

    def _swallows(self) -> bool:
        if self._proxy._is_silent.is_set():
            self._is_silent = True
        return self._is_silent
