"""`ticketgate serve`: the System One server alone; no broker, no Redis."""

from __future__ import annotations

import click
from ticketgate.streams.cli.options import settings_flags
from ticketgate.streams.config.settings import Settings


@click.command("serve")
@settings_flags("scorer", "model", "model_aliases", "web_bind", "web_port", "log_level")
def command(settings: Settings) -> None:
    """Answer POST /v1/systemone and GET /v1/models with the scorer that the settings name, until SIGTERM or Ctrl-C.

    Callers need a key if TICKETGATE_WEB_KEYS names any. GET /openapi.json describes what is taken; /healthz, /readyz
    and /metrics are there as on a worker.
    """
    import asyncio

    from ticketgate.streams.config.logs import configure_logging
    from ticketgate.streams.process.preflight import port_taken
    from ticketgate.streams.process.serving import serve
    from ticketgate.streams.roles.decide.scorers import require_models

    configure_logging(settings.log_level)
    models = require_models(settings)
    try:
        asyncio.run(serve(settings, models))
    except OSError as err:
        raise port_taken(settings, err) from err
