"""The web port of a process: where it listens, and which pages it has.

Promise: what `start` returned from listens on `bind`:`port` and nowhere else, on no more connections than it was given.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path

from aiohttp import web
from ticketgate.streams.process.web.connections import BACKLOG, GuardedRunner, connections_allowed
from ticketgate.streams.process.web.errors import json_errors

log = logging.getLogger(__name__)

# A page that hangs must not hold up the end of the process.
SHUTDOWN_TIMEOUT_S = 2.0
# As the settings have them.
MOST_CONNECTIONS = 512
IDLE_TIMEOUT_S = 10.0


class WebServer:
    """An aiohttp server. `port` 0 takes a free port; `address` tells which, once started.

    connections: at most so many at once. idle_timeout_s: how long one may wait for a request's whole header.
    socket: listens there, and on no port.
    """

    def __init__(
        self,
        routes: Iterable[web.AbstractRouteDef] | web.Application,
        *,
        bind: str,
        port: int,
        connections: int = MOST_CONNECTIONS,
        idle_timeout_s: float = IDLE_TIMEOUT_S,
        what: str = "web port",
        socket: Path | None = None,
    ) -> None:
        """routes: those of a port for programs, or an application that answers for itself."""
        if isinstance(routes, web.Application):
            self._application = routes
        else:
            self._application = web.Application(middlewares=[json_errors])
            self._application.add_routes(routes)
        self._connections, self._idle_timeout_s = connections, idle_timeout_s
        self._runner: GuardedRunner | None = None
        self._bind, self._port, self._what, self._socket = bind, port, what, socket

    @property
    def address(self) -> str:
        """`host:port` as bound."""
        if self._runner is None or self._socket is not None:
            raise RuntimeError("the web port is not open")
        host, port = self._runner.addresses[0][:2]
        return f"{host}:{port}"

    async def start(self) -> None:
        """Listen. Raises OSError if the port is taken."""
        self._runner = GuardedRunner(
            self._application,
            most=connections_allowed(self._connections),
            idle_s=self._idle_timeout_s,
            shutdown_s=SHUTDOWN_TIMEOUT_S,
        )
        await self._runner.setup()
        if self._socket is not None:
            await web.UnixSite(self._runner, self._socket, backlog=BACKLOG).start()
            return
        await web.TCPSite(self._runner, self._bind, self._port, backlog=BACKLOG).start()
        log.info("%s http://%s", self._what, self.address)

    async def stop(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()


class WebServers:
    """The web port, and beside it one for health and metrics alone where `health_port` names one."""

    def __init__(
        self,
        *,
        health: Iterable[web.AbstractRouteDef],
        api: Iterable[web.AbstractRouteDef],
        bind: str,
        port: int,
        health_port: int | None,
        connections: int = MOST_CONNECTIONS,
        idle_timeout_s: float = IDLE_TIMEOUT_S,
        socket: Path | None = None,
    ) -> None:
        """socket: all pages are there, and there is no port."""
        health_port = None if socket is not None else health_port
        common = {"bind": bind, "connections": connections, "idle_timeout_s": idle_timeout_s}
        pages = [*api] if health_port is not None else [*health, *api]
        self._main = WebServer(pages, port=port, socket=socket, **common)  # type: ignore[arg-type]  # each by its name
        self._servers = [self._main]
        if health_port is not None:
            self._servers.append(
                WebServer(health, port=health_port, what="health port", **common)  # type: ignore[arg-type]  # as above
            )

    @property
    def address(self) -> str:
        """`host:port` of the web port as bound."""
        return self._main.address

    async def start(self) -> None:
        """Listen on each. Raises OSError if a port is taken."""
        for server in self._servers:
            await server.start()

    async def stop(self) -> None:
        """Stop listening."""
        for server in self._servers:
            await server.stop()
