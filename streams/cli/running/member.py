"""One of the processes of `ticketgate worker --processes`, started by its supervisor and by nobody else.

It takes its settings from the supervisor, so that all of them have the same ones, whatever became of a file since.
"""

from __future__ import annotations

import sys

import click
from ticketgate.streams.cli import main
from ticketgate.streams.cli.running.worker import require_all
from ticketgate.streams.config.logs import configure_logging
from ticketgate.streams.process.member import follow, read_membership


@click.command("member")
def command() -> None:
    """Run one process of several."""
    descriptor = sys.stdin.fileno()
    try:
        membership = read_membership(descriptor)
    except EOFError as err:
        raise click.UsageError("`ticketgate worker --processes` starts this, and nobody else") from err
    configure_logging(membership.settings.log_level)
    follow(descriptor, membership)
    require_all(membership.settings)
    # Faust is loaded only by who runs a worker.
    from ticketgate.streams.process.app import run_worker

    run_worker(membership.settings, membership)


if __name__ == "__main__":
    main(command=command)
