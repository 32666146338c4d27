"""The web port of a process: where it listens, and which pages it has.

Promise: what `start` returned from listens on `bind`:`port` and nowhere else.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from aiohttp import web
from ticketgate.streams.process.web.errors import json_errors

log = logging.getLogger(__name__)

# A page that hangs must not hold up the end of the process.
SHUTDOWN_TIMEOUT_S = 2.0


class WebServer:
    """An aiohttp server. `port` 0 takes a free port; `address` tells which, once started."""

    def __init__(self, routes: Iterable[web.AbstractRouteDef], *, bind: str, port: int) -> None:
        application = web.Application(middlewares=[json_errors])
        application.add_routes(routes)
        # Bodies are taken as they are sent: aiohttp would log a traceback for each that is not what its
        # Content-Encoding says, and a small one could unfold into a large one.
        self._runner = web.AppRunner(
            application, access_log=None, shutdown_timeout=SHUTDOWN_TIMEOUT_S, auto_decompress=False
        )
        self._bind = bind
        self._port = port

    @property
    def address(self) -> str:
        """`host:port` as bound."""
        host, port = self._runner.addresses[0][:2]
        return f"{host}:{port}"

    async def start(self) -> None:
        """Listen. Raises OSError if the port is taken."""
        await self._runner.setup()
        await web.TCPSite(self._runner, self._bind, self._port).start()
        log.info("web port http://%s", self.address)

    async def stop(self) -> None:
        """Stop listening."""
        await self._runner.cleanup()
