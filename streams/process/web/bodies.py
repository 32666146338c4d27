"""A request's body, read within a size and a time.

Promise: what is too large, encoded, late or broken is refused with a 4xx in the protocol's shape that says so.
"""

from __future__ import annotations

import asyncio

from aiohttp import web
from ticketgate.streams.process.web.errors import ApiError, refusal


def require_size(request: web.Request, max_bytes: int) -> None:
    """Raises the refusal of a body that says that it is encoded, or larger than `max_bytes`."""
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise refusal(415, "api_usage_error", "send the body without a Content-Encoding")
    if (request.content_length or 0) > max_bytes:
        raise _too_large(max_bytes)


async def read_body(request: web.Request, *, max_bytes: int, deadline: float, timeout_s: float) -> bytes:
    """The whole body. Raises the refusal. deadline: in the loop's time; timeout_s: what it was, to be told."""
    body = bytearray()
    try:
        async with asyncio.timeout_at(deadline):
            async for part in request.content.iter_any():
                body += part
                if len(body) > max_bytes:
                    raise _too_large(max_bytes)
    except TimeoutError as err:
        what = f"the body did not arrive within {timeout_s:g} s"
        raise refusal(408, "timeout_error", what) from err
    except (web.RequestPayloadError, ConnectionError, ValueError) as err:
        # Not what it says: it quotes what was sent.
        what = f"the body cannot be read ({type(err).__name__})"
        raise refusal(400, "api_usage_error", what) from None
    return bytes(body)


def _too_large(max_bytes: int) -> ApiError:
    return refusal(413, "request_too_large", f"the body has more than the {max_bytes} bytes that are taken")
