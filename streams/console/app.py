"""The console, put together: the door before the pages, from start to signal.

Promise: what is opened is closed again. Whoever is removed sees nothing more within a second, pages that are told of
news included.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager

from aiohttp import web
from ticketgate.streams.config.readiness import Readiness
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.console import pages
from ticketgate.streams.console.console_metrics import ConsoleMetrics
from ticketgate.streams.console.desk.console_desk import DESK
from ticketgate.streams.console.desk.counting import keep_counting
from ticketgate.streams.console.door.attempts import Attempts
from ticketgate.streams.console.door.checks import MOST_BODY
from ticketgate.streams.console.door.guard import Guard
from ticketgate.streams.console.door.headers import add_headers
from ticketgate.streams.console.door.people import People
from ticketgate.streams.console.door.proxies import Proxies
from ticketgate.streams.console.door.sessions import Sessions
from ticketgate.streams.console.door.sign_in import SignIn
from ticketgate.streams.console.door.visitors import Visitors, set_cookie
from ticketgate.streams.console.rendering import STATIC_PATH, STATICS, set_up_rendering
from ticketgate.streams.console.routes import EVERYBODY, Route, add_routes
from ticketgate.streams.process.web.admission import Admission, Origins
from ticketgate.streams.process.web.health import health_routes
from ticketgate.streams.process.web.server import WebServer

log = logging.getLogger(__name__)

SWEEP_S = 1.0
# Of one session, besides its streams: a browser opens six connections.
MOST_OF_ONE = 32
READINESS: web.AppKey[Readiness] = web.AppKey("readiness", Readiness)
"""Where pages say what keeps them from being of use, for /readyz."""


Desk = Callable[[web.Application, Settings], AbstractAsyncContextManager[None]]


def console_application(
    settings: Settings,
    people: People,
    *,
    routes: Iterable[Route] = pages.ROUTES,
    desk: Desk = pages.open_desk,
) -> web.Application:
    """All that the console answers. routes, desk: the pages, and what they need while they are served."""
    metrics, readiness = ConsoleMetrics(), Readiness()
    sessions = Sessions(
        people,
        idle_s=settings.console_idle.total_seconds(),
        longest_s=settings.console_session.total_seconds(),
    )
    metrics.count_sessions_by(lambda: len(sessions))
    proxies = Proxies(
        settings.console_proxy,
        secret=settings.console_proxy_secret,
        user_header=settings.console_proxy_user,
    )
    visitors = Visitors(people, sessions, proxies, people_file=settings.people_file, metrics=metrics)
    guard = Guard(
        visitors,
        origins=Origins(
            settings.console_bind,
            settings.console_hosts,
            hosts_setting="TICKETGATE_CONSOLE_HOSTS",
            origins_setting=None,
        ),
        admission=Admission(most_bytes=settings.web_bytes_at_once, most_of_one=MOST_OF_ONE),
        metrics=metrics,
        timeout_s=settings.web_timeout.total_seconds(),
    )
    application = web.Application(middlewares=guard.middlewares, client_max_size=MOST_BODY)
    application.on_response_prepare.extend((add_headers, set_cookie))
    application[READINESS] = readiness
    set_up_rendering(application)
    add_routes(application, SignIn(visitors, attempts=Attempts(), metrics=metrics).routes)
    add_routes(application, _for_everybody(application, metrics))
    add_routes(application, routes)
    application.cleanup_ctx.extend((_sweeping(people, sessions), _while_served(desk, settings, metrics)))
    return application


async def run_console(
    settings: Settings, people: People, *, opened: Callable[[str], None] = lambda _: None
) -> None:
    """Serve until SIGTERM or SIGINT. opened: is told `host:port` as bound. Raises OSError if the port is taken."""
    server = WebServer(
        console_application(settings, people),
        bind=settings.console_bind,
        port=settings.console_port,
        connections=settings.web_connections,
        idle_timeout_s=settings.web_idle_timeout.total_seconds(),
        what="console",
    )
    ended, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    try:
        await server.start()
        opened(server.address)
        await ended.wait()
    finally:
        await server.stop()


def _for_everybody(application: web.Application, metrics: ConsoleMetrics) -> Sequence[Route]:
    """Static files, and what machines ask: as on a worker."""
    health = health_routes(
        readiness=application[READINESS], telemetry=metrics, guarantee=None, describe=dict[str, object]
    )
    return [
        Route(
            method="GET",
            path=f"{STATIC_PATH}{{hash}}/{{name:.+}}",
            handler=application[STATICS].serve,
            role=EVERYBODY,
        ),
        *(
            Route(method="GET", path=each.path, handler=each.handler, role=EVERYBODY)
            for each in health
            if isinstance(each, web.RouteDef)
        ),
    ]


def _sweeping(people: People, sessions: Sessions) -> Callable[[web.Application], AsyncIterator[None]]:
    """Reads the users' file again when it changed, and ends sessions that hold no more."""

    async def sweep() -> None:
        while True:
            await asyncio.sleep(SWEEP_S)
            await people.look()
            sessions.sweep()

    async def context(application: web.Application) -> AsyncIterator[None]:
        task = asyncio.create_task(sweep(), name="console-sessions")
        # Streams would keep the server from ending.
        application.on_shutdown.append(end_sessions)
        yield
        task.cancel()
        await asyncio.wait([task])

    async def end_sessions(_: web.Application) -> None:
        sessions.end_all()

    return context


def _while_served(
    desk: Desk, settings: Settings, metrics: ConsoleMetrics
) -> Callable[[web.Application], AsyncIterator[None]]:
    async def context(application: web.Application) -> AsyncIterator[None]:
        async with desk(application, settings):
            if (opened := application.get(DESK)) is None:
                yield
                return
            counting = asyncio.create_task(keep_counting(opened, metrics.review), name="console counting")
            try:
                yield
            finally:
                counting.cancel()
                await asyncio.wait([counting])

    return context
