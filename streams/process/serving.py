"""The web port of a process without a worker: the System One server on a scorer, from start to signal.

Promise: a SIGTERM or SIGINT ends it; requests under way have the server's shutdown time to finish.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Iterable
from pathlib import Path

from aiohttp import web
from ticketgate.agents.scoring.models import Models
from ticketgate.streams.config.readiness import Readiness
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.config.telemetry import Telemetry
from ticketgate.streams.process.exposure import exposures
from ticketgate.streams.process.web.admission import Admission, Origins
from ticketgate.streams.process.web.auth import Keys
from ticketgate.streams.process.web.health import health_routes
from ticketgate.streams.process.web.server import WebServers
from ticketgate.streams.process.web.systemone import SystemOne

log = logging.getLogger(__name__)


def open_systemone(settings: Settings, models: Models) -> SystemOne:
    """The endpoint as the settings say."""
    return SystemOne(
        models,
        keys=Keys(settings.web_keys),
        origins=Origins(settings.web_bind, settings.web_hosts, settings.web_origins),
        admission=Admission(
            most_bytes=settings.web_bytes_at_once,
            most_of_one=settings.web_requests_a_key,
            rate=settings.web_rate,
        ),
        max_bytes=settings.web_max_bytes,
        timeout=settings.web_timeout,
    )


def open_web(
    settings: Settings,
    *,
    health: Iterable[web.AbstractRouteDef],
    api: Iterable[web.AbstractRouteDef],
    socket: Path | None = None,
) -> WebServers:
    """The ports as the settings say, to be started. socket: all is there, in place of the ports."""
    return WebServers(
        health=health,
        api=api,
        bind=settings.web_bind,
        port=settings.web_port,
        health_port=settings.web_health_port,
        connections=settings.web_connections,
        idle_timeout_s=settings.web_idle_timeout.total_seconds(),
        socket=socket,
    )


async def serve(settings: Settings, models: Models) -> None:
    """Serve until a signal. Raises OSError if the port is taken."""
    endpoint, scorer = open_systemone(settings, models), models.default
    health = health_routes(
        readiness=Readiness(),
        telemetry=Telemetry(),
        guarantee=None,
        describe=lambda: {"model": {"id": scorer.model.id, "hash": scorer.model.hash}},
    )
    server = open_web(settings, health=health, api=endpoint.routes)
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    try:
        await server.start()
        for each in exposures(settings):
            log.warning("%s", each)
        await ended.wait()
    finally:
        await server.stop()
        await endpoint.close()
        models.close()
