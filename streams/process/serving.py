"""The web port of a process without a worker: the System One server on a scorer, from start to signal.

Promise: a SIGTERM or SIGINT ends it; requests under way have the server's shutdown time to finish.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import signal

from ticketgate.agents.scoring import Scorer
from ticketgate.agents.scoring.scorer import Closable
from ticketgate.streams.config.readiness import Readiness
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.config.telemetry import Telemetry
from ticketgate.streams.process.web.auth import Keys
from ticketgate.streams.process.web.health import health_routes
from ticketgate.streams.process.web.server import WebServer
from ticketgate.streams.process.web.systemone import SystemOne

log = logging.getLogger(__name__)


def open_systemone(settings: Settings, scorer: Scorer) -> SystemOne:
    """The endpoint as the settings say."""
    return SystemOne(
        scorer,
        keys=Keys(settings.web_keys),
        max_bytes=settings.web_max_bytes,
        timeout=settings.web_timeout,
    )


async def serve(settings: Settings, scorer: Scorer) -> None:
    """Serve until a signal. Raises OSError if the port is taken."""
    endpoint = open_systemone(settings, scorer)
    health = health_routes(
        readiness=Readiness(),
        telemetry=Telemetry(),
        guarantee=None,
        describe=lambda: {"model": {"id": scorer.model.id, "hash": scorer.model.hash}},
    )
    server = WebServer([*health, *endpoint.routes], bind=settings.web_bind, port=settings.web_port)
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    try:
        await server.start()
        if not settings.web_keys and not is_loopback(settings.web_bind):
            log.warning("everybody who reaches %s may ask: TICKETGATE_WEB_KEYS is not set", settings.web_bind)
        await ended.wait()
    finally:
        await server.stop()
        await endpoint.close()
        if isinstance(scorer, Closable):
            scorer.close()


def is_loopback(bind: str) -> bool:
    """Whether only this machine reaches an address."""
    try:
        return ipaddress.ip_address(bind).is_loopback
    except ValueError:
        return bind == "localhost"
