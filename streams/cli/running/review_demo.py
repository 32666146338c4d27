"""`ticketgate demo --review`: what is for a person, settled on the console's pages by a script."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click
from ticketgate.agents.plural import counted
from ticketgate.streams.cli import EXIT_FINDINGS
from ticketgate.streams.cli.output import print_json, print_table, say
from ticketgate.streams.config.usage import CommandError
from ticketgate.streams.demo.review_demo import ReviewDemoResult, run_review_demo
from ticketgate.streams.kafka.envelope import Record


def run(records: Sequence[Record], policy: Path, *, as_json: bool) -> int:
    """Run the demo and show it. The exit code: 0 only if each ticket was settled, and what was accepted dispatched."""
    try:
        result = asyncio.run(run_review_demo(records, policy=policy, say=say))
    except TimeoutError as err:
        raise CommandError(f"{err}; try again on a machine that is less busy") from err
    if as_json:
        for each in result.settled:
            print_json(asdict(each))
        print_json(summary(result))
    else:
        print_table(
            ("ticket", "why it was in review", "pressed", "what became of it"),
            [(each.ticket_id, each.why, each.action, each.stage) for each in result.settled],
        )
        click.echo(
            f"\n{counted(len(result.settled), 'ticket')} settled on the console's pages in {result.seconds:.1f} s on"
            f" {result.broker}; {result.dispatched} dispatched"
        )
    return 0 if result.is_complete else EXIT_FINDINGS


def summary(result: ReviewDemoResult) -> dict[str, object]:
    """The object that `--json` ends with."""
    stages = [each.stage for each in result.settled]
    return {
        "tickets": len(stages),
        **{stage: stages.count(stage) for stage in dict.fromkeys(stages)},
        "dispatched": result.dispatched,
        "seconds": round(result.seconds, 3),
    }
