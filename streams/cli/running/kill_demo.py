"""`ticketgate demo --kill`: a worker is killed in the middle, and every record is accounted for."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from ticketgate.agents.plural import counted
from ticketgate.streams.cli.exit_codes import EXIT_DONE, EXIT_FAULT
from ticketgate.streams.cli.output import print_json
from ticketgate.streams.demo.kill_demo import KillResult, run_kill_demo
from ticketgate.streams.kafka.envelope import Record


def run(records: Sequence[Record], policy: Path, *, as_json: bool) -> int:
    """Run it, and say what became of the records; the exit code."""
    talk = Console(stderr=True, highlight=False)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=talk, transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("outcomes", total=None)
        result = asyncio.run(
            run_kill_demo(
                records,
                policy=policy,
                say=lambda line: talk.print(f"[dim]{line}[/]" if talk.is_terminal else line),
                progress=lambda count, total: bar.update(task, completed=count, total=total),
            )
        )
    if as_json:
        print_json(summary(result))
    else:
        _show(result)
    return EXIT_DONE if result.is_complete else EXIT_FAULT


def summary(result: KillResult) -> dict[str, object]:
    """The object that `--json` prints."""
    return {
        "records": result.records,
        "outcomes_wanted": result.wanted,
        "taken_by_the_killed": result.taken,
        "lost": result.lost,
        "doubled": result.doubled,
        "seconds": round(result.seconds, 1),
    }


def _show(result: KillResult) -> None:
    again = result.records - result.wanted
    click.echo(
        f"{counted(result.records, 'record')} in {result.seconds:.1f} s, of which {again:,} were sent again or hold"
        f" nothing; so there must be {result.wanted:,} outcomes"
    )
    click.echo(f"lost: {result.lost:,}; doubled: {result.doubled:,}")
    click.echo(
        f"worker 1 was killed when it had taken {result.taken:,}. What it had committed stands; worker 2 decided the"
        " rest, once the group had missed worker 1"
    )
