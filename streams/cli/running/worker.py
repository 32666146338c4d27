"""`ticketgate worker`: one worker process, or several under a supervisor; checked before they start."""

from __future__ import annotations

import asyncio
import logging
import sys

import click
from ticketgate.streams.cli.options import settings_flags
from ticketgate.streams.config.logs import configure_logging
from ticketgate.streams.config.settings import Settings

# How a supervisor starts each of its processes.
MEMBER = (sys.executable, "-m", "ticketgate.streams.cli.running.member")


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
    "processes",
    "web_bind",
    "web_port",
    "funnel",
    "log_level",
    roles="--role",
)
def command(settings: Settings) -> int | None:
    """Run one worker process, until SIGTERM or Ctrl-C; start more of them to scale, or have --processes auto use all
    cores of this machine.

    It takes records from as many partitions as its groups give it, and drains them before it ends. A second signal
    ends it at once. Several processes have one web port; one that ends is started again.
    """
    configure_logging(settings.log_level)
    require_all(settings)
    from ticketgate.streams.process.supervising.cores import processes_of

    if (processes := processes_of(settings)) == 1:
        # Faust is loaded only by who runs a worker.
        from ticketgate.streams.process.app import run_worker

        run_worker(settings)
    from ticketgate.streams.process.supervising.supervisor import supervise

    return asyncio.run(supervise(settings, processes=processes, command=MEMBER))


def require_all(settings: Settings) -> None:
    """What a worker of these settings needs is there. Raises the error that says what is not, and what to do."""
    from ticketgate.streams.process.preflight import (
        needs_funnel,
        needs_policy,
        require_dependencies,
        require_keys_in_force,
        require_policy,
        require_what_a_funnel_names,
    )

    if needs_policy(settings):
        require_policy(settings)
    if "settle" in settings.roles:
        require_keys_in_force(settings)
    if needs_funnel(settings):
        asyncio.run(require_what_a_funnel_names(settings))
    # What a client says of a broker that is not there, the one line below says better.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    asyncio.run(require_dependencies(settings))
    logging.getLogger("aiokafka").setLevel(logging.WARNING)
