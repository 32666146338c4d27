"""What both rebuilds say where outputs cannot vouch for all that was committed."""

from __future__ import annotations

from collections.abc import Sequence

import click

LEFT_CLOSED = (
    "no mark was raised, and lanes stay closed: mend what is said above and run it again, or add --accept-gaps: what is"
    " gone then counts as never seen, and a copy of it that is sent again takes effect again"
)

accept_gaps_flag = click.option(
    "--accept-gaps",
    is_flag=True,
    help="Open the lanes although outputs are gone out of which something could have been restored.",
)


def show_gaps(gaps: Sequence[str]) -> None:
    """A line for each."""
    for each in gaps:
        click.echo(f"cannot vouch: {each}")
