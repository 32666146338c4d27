"""Decisions that come out otherwise, as `policy diff` and `policy rescore` print them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from ticketgate.agents.workbench.policy.turns import Turns


def print_kinds(found: Turns) -> None:
    """How many by kind, and why each that is named."""
    for kind, count in found.turned.items():
        click.echo(f"  {count:,} {kind}")
        for turn in found.examples[kind]:
            click.echo(f"    {turn.ticket_id}: {'; '.join(turn.reasons)}")
