"""Connections of the web port: how many, for how long, and what is said where no request could be read.

Promise: at most so many are open at once; one that waits for its request is closed after the idle limit, and before
that when another wants its place, the oldest first. So callers that send nothing, or half a header, keep nobody out.
What cannot be parsed gets a 400 in JSON with a request id, and is logged by that id alone: aiohttp would log what
stands in it. Source: aiohttp's RequestHandler, whose `keepalive_timeout` bounds the wait for a request's header too.
"""

from __future__ import annotations

import asyncio
import logging
import resource
from collections.abc import Callable
from typing import Any

from aiohttp import web
from ticketgate.codecs.systemone.protocol import error_body
from ticketgate.codecs.values.strict import encode
from ticketgate.streams.process.web.errors import REQUEST_ID, json_response, new_request_id, translated

log = logging.getLogger(__name__)

# Descriptors that Kafka, Redis, files and the accepting of connections need beside the web port.
RESERVED_DESCRIPTORS = 128
FEWEST_CONNECTIONS = 16
# So many are accepted before any of them is looked at; they need descriptors as well.
BACKLOG = 32
# For what a refused request still sends.
LINGERING_S = 2.0


def connections_allowed(wished: int) -> int:
    """How many connections there may be, fewer where descriptors are, which is said."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return wished
    allowed = max(FEWEST_CONNECTIONS, (soft - RESERVED_DESCRIPTORS) // 2)
    if allowed < wished:
        log.warning(
            "TICKETGATE_WEB_CONNECTIONS: %d, of which %d descriptors (ulimit -n) leave %d; raise them, or set fewer",
            wished,
            soft,
            allowed,
        )
    return min(wished, allowed)


class GuardedRunner(web.AppRunner):
    """Runs an application on connections that are bounded in number and time."""

    def __init__(self, application: web.Application, *, most: int, idle_s: float, shutdown_s: float) -> None:
        super().__init__(application, access_log=None, shutdown_timeout=shutdown_s)
        self._most, self._idle_s = most, idle_s

    async def _make_server(self) -> web.Server:
        plain = await super()._make_server()
        return _Server(
            plain.request_handler,
            request_factory=plain.request_factory,
            most=self._most,
            access_log=None,
            keepalive_timeout=self._idle_s,
            lingering_time=LINGERING_S,
            # Bodies are taken as they are sent: aiohttp would log a traceback for each that is not what its
            # Content-Encoding says, and a small one could unfold into a large one.
            auto_decompress=False,
        )


class _Server(web.Server):
    def __init__(self, handler: Callable[..., Any], *, most: int, **options: Any) -> None:
        super().__init__(handler, **options)
        self._most, self._options = most, options
        self._options.pop("request_factory")
        # By arrival.
        self._open: dict[_Connection, None] = {}

    def __call__(self) -> web.RequestHandler:
        return _Connection(self, loop=asyncio.get_running_loop(), **self._options)

    def admit(self, connection: _Connection) -> bool:
        """Whether there is a place for one more, perhaps that of one that waits for its request."""
        if len(self._open) >= self._most:
            idle = next((each for each in self._open if each.is_waiting), None)
            if idle is None:
                return False
            del self._open[idle]
            idle.force_close()
        self._open[connection] = None
        return True

    def release(self, connection: _Connection) -> None:
        self._open.pop(connection, None)


class _Connection(web.RequestHandler):
    def __init__(self, server: _Server, **options: Any) -> None:
        super().__init__(server, **options)
        self._server = server

    @property
    def is_waiting(self) -> bool:
        """Whether no whole request header has come yet, or none since the last answer."""
        return not self._request_in_progress

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if self._server.admit(self):
            super().connection_made(transport)
        elif isinstance(transport, asyncio.WriteTransport):
            transport.write(_FULL)
            transport.close()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._server.release(self)
        if self.transport is not None or self._task_handler is not None:
            super().connection_lost(exc)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """JSON for what could not be read as a request, or failed outside our own routes."""
        if request.writer.output_size > 0:
            raise ConnectionError("an answer has begun, and no other can be sent")
        request_id = new_request_id()
        if status < 500:
            # Not `message`: it quotes the header, in which a key may stand, or what of a body came too late.
            log.info("request %s cannot be read (%s)", request_id, type(exc).__name__)
            body = error_body(
                "api_usage_error", "the request cannot be read: it is not HTTP as this server takes it"
            )
        else:
            log.error("request %s failed outside its route (%s)", request_id, type(exc).__name__)
            body = error_body(
                "internal_error", f"the server failed; its log has the reason under {request_id}"
            )
        response = json_response(body, status=status, headers={REQUEST_ID: request_id})
        response.force_close()
        return response

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """As aiohttp's; what it raises itself (417, before any route) becomes JSON as well."""
        if isinstance(resp, web.HTTPException):
            resp = translated(resp)
            resp.headers[REQUEST_ID] = new_request_id()
        return await super().finish_response(request, resp, start_time)

    def log_exception(self, *args: Any, **_: Any) -> None:
        """Without the traceback, at whose end stands what was sent."""
        log.error("a connection failed: %s", args[0] if args else "")


def _full() -> bytes:
    body = encode(error_body("overloaded_error", "too many connections are open already"))
    head = (
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\n"
        f"{REQUEST_ID}: req_full\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body


_FULL = _full()
