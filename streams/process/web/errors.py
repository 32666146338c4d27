"""Errors of the web port as JSON, in the protocol's shapes, whoever raises them.

Promise: no route answers a bad request with a 5xx of its own making, and a fault of ours tells the caller nothing but
the id by which the log has it.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Awaitable, Callable, Mapping

from aiohttp import web
from ticketgate.codecs.systemone.protocol import error_body
from ticketgate.codecs.values.malformed import shorten
from ticketgate.codecs.values.strict import JsonValue, encode

log = logging.getLogger(__name__)

REQUEST_ID = "x-typesafe-request-id"
JSON = "application/json"

# Overloaded, in the protocol; HTTP has no name for it.
OVERLOADED = 529

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ApiError(Exception):
    """Answer the request with this status and body; raised by whoever finds that it cannot be answered otherwise."""

    def __init__(self, status: int, body: JsonValue, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(f"{status}: {body}")
        self.status, self.body, self.headers = status, body, dict(headers or {})


def refusal(status: int, error_type: str, message: str, **headers: str) -> ApiError:
    """An error with the protocol's `detail`; `retry_after="1"` becomes the header `retry-after`."""
    return ApiError(
        status,
        error_body(error_type, message),
        headers={name.replace("_", "-"): value for name, value in headers.items()},
    )


def json_response(
    body: JsonValue, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> web.Response:
    """A JSON response. Written strictly: NaN cannot be."""
    reason = "Overloaded" if status == OVERLOADED else None
    return web.Response(
        body=encode(body), status=status, reason=reason, headers=dict(headers or {}), content_type=JSON
    )


@web.middleware
async def json_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Every error as JSON, and every response with an id."""
    request_id = new_request_id()
    try:
        response = await handler(request)
    except ApiError as err:
        response = json_response(err.body, status=err.status, headers=err.headers)
    except web.HTTPError as err:
        response = translated(err)
    except Exception:
        log.exception("request %s to %s failed", request_id, shorten(request.path))
        what = f"the server failed; its log has the reason under {request_id}"
        response = json_response(error_body("internal_error", what), status=500)
    if not response.prepared:
        response.headers.setdefault(REQUEST_ID, request_id)
    return response


def new_request_id() -> str:
    """An id by which a caller and the log speak of one request."""
    return f"req_{uuid.uuid4().hex}"


def translated(err: web.HTTPException) -> web.Response:
    """aiohttp's own errors: an unknown path, a method that a path has not, …"""
    body: JsonValue = error_body("api_usage_error", err.reason)
    if err.status in (404, 405):
        body = {"detail": err.reason}
    allowed = {name: value for name, value in err.headers.items() if name.lower() == "allow"}
    return json_response(body, status=err.status, headers=allowed)
