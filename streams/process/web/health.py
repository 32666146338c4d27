"""/healthz: the process lives. /readyz: whether it works, and if not why, by part. /metrics: Prometheus."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Protocol

from aiohttp import web
from ticketgate.codecs.values.redact import redact
from ticketgate.streams.config.readiness import Readiness
from ticketgate.streams.config.settings import Guarantee


class Exposed(Protocol):
    """What counts."""

    def expose(self, *, is_ready: bool) -> tuple[bytes, str]:
        """The metrics in Prometheus' text format, and its content type."""
        ...


def health_routes(
    *,
    readiness: Readiness,
    telemetry: Exposed,
    guarantee: Guarantee | None,
    describe: Callable[[], dict[str, object]],
) -> Sequence[web.AbstractRouteDef]:
    """The routes; `describe` gives what else /readyz tells (the policy, the model, the lanes).

    `guarantee` None: this process delivers nothing, and tells of none.
    """

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(_: web.Request) -> web.Response:
        body = {
            "ready": readiness.is_ready,
            "waiting": readiness.reasons,
            **({} if guarantee is None else {"guarantee": guarantee}),
            **describe(),
        }
        return web.Response(
            text=redact(json.dumps(body)) + "\n",
            status=200 if readiness.is_ready else 503,
            content_type="application/json",
        )

    async def metrics(_: web.Request) -> web.Response:
        body, content_type = telemetry.expose(is_ready=readiness.is_ready)
        return web.Response(body=body, headers={"Content-Type": content_type})

    return [web.get("/healthz", healthz), web.get("/readyz", readyz), web.get("/metrics", metrics)]
