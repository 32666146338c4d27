"""`ticketgate worker`: one worker process, checked before it starts."""

from __future__ import annotations

import asyncio
import logging

import click
from ticketgate.streams.cli.options import settings_flags
from ticketgate.streams.config.logs import configure_logging
from ticketgate.streams.config.settings import Settings


@click.command("worker")
@settings_flags(
    "kafka",
    "redis",
    "namespace",
    "group",
    "policy",
    "scorer",
    "model",
    "guarantee",
    "web_bind",
    "web_port",
    "funnel",
    "log_level",
    roles="--role",
)
def command(settings: Settings) -> None:
    """Run one worker process, until SIGTERM or Ctrl-C; start more of them to scale.

    It takes records from as many partitions as its groups give it, and drains them before it ends. A second signal
    ends it at once.
    """
    configure_logging(settings.log_level)
    from ticketgate.streams.process.preflight import (
        needs_funnel,
        needs_policy,
        require_console_keys,
        require_dependencies,
        require_policy,
        require_what_a_funnel_names,
    )

    if needs_policy(settings):
        require_policy(settings)
    if "settle" in settings.roles:
        require_console_keys(settings)
    if needs_funnel(settings):
        asyncio.run(require_what_a_funnel_names(settings))
    # What a client says of a broker that is not there, the one line below says better.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    asyncio.run(require_dependencies(settings))
    logging.getLogger("aiokafka").setLevel(logging.WARNING)
    # Faust is loaded only by who runs a worker.
    from ticketgate.streams.process.app import run_worker

    run_worker(settings)
