"""`ticketgate review`: its commands, each in a file of its own."""

from __future__ import annotations

import click
from ticketgate.streams.cli.review.export import export
from ticketgate.streams.cli.review.list import list_
from ticketgate.streams.cli.review.people import forget
from ticketgate.streams.cli.review.settle import settle
from ticketgate.streams.cli.review.show import show


@click.group("review")
def command() -> None:
    """What waits for a person: list it, show a ticket's whole case, settle it, export what was settled.

    The view is a file on this machine (TICKETGATE_REVIEW_VIEW), fed from the topics each time.
    """


for each in (list_, show, settle, export, forget):
    command.add_command(each)
