"""`ticketgate demo`: sample tickets through a gate on this machine, and where each went; or with --funnel, payments."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from ticketgate.agents.plural import counted
from ticketgate.codecs.values.printable import json_text
from ticketgate.codecs.values.strict import decode
from ticketgate.streams.cli.files import read_bytes
from ticketgate.streams.cli.options import json_flag
from ticketgate.streams.config.usage import CommandError
from ticketgate.streams.demo.demo import DemoResult, Outcome, Settled, run_demo
from ticketgate.streams.kafka.envelope import LineError, Record, read_line
from ticketgate.streams.operations.review.rows import EFFECTIVE

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
TEXT_CHARS = 44
COLOURS = {"dispatch": "green", "review": "yellow", "dead-letter": "red", "missing": "bold red"}
NO_TRANSACTIONS = (
    "at_least_once: this broker has no transactions. Nothing is lost, and a ticket sent again is still suppressed, but"
    " a crash between sending and committing repeats a batch. On Apache Kafka (Java 17 and Maven, then"
    " `make kafka-jars`) the same demo runs with exactly_once."
)

NEXT = (
    "\nnext: `ticketgate demo --kill` kills a worker in the middle of this; `ticketgate examples first-hour` writes the"
    " files of README's first hour, with a policy to make yours"
)


@click.command("demo")
@click.option(
    "--tickets",
    type=click.Path(dir_okay=False, exists=True, path_type=Path),
    default=SAMPLES / "tickets.jsonl",
    help="Records to send, as `ticketgate produce` reads them.  [default: the samples that come along]",
)
@click.option(
    "--policy",
    type=click.Path(dir_okay=False, path_type=Path),
    default=SAMPLES / "support.toml",
    help="The policy to decide by.  [default: the sample that comes along]",
)
@click.option(
    "--funnel",
    "is_funnel",
    is_flag=True,
    help="Propose sample payments instead, beside a bank of its own, and show what came of each.",
)
@click.option(
    "--kill",
    "is_kill",
    is_flag=True,
    help="Start two workers, kill one of them (kill -9) in the middle, and show that nothing is lost or doubled.",
)
@click.option(
    "--review",
    "is_review",
    is_flag=True,
    help="Open the console as well; a scripted person settles on its pages what is in review.",
)
@json_flag
@click.pass_context
def command(
    context: click.Context,
    *,
    tickets: Path,
    policy: Path,
    is_funnel: bool,
    is_kill: bool,
    is_review: bool,
    as_json: bool,
) -> int:
    """Start a broker, a Redis and a worker on free ports of this machine, stream tickets through them, and show where
    each one went and why. What is for a person then is settled by a script, as a person would at a console: the nearest
    that the policy accepts. Everything it starts it ends, and its data go with it.

    Exit code 0 only if every ticket is accounted for; with --kill, only if each has exactly one outcome; with --funnel,
    only if each case came out as it must and the bank has one transfer a key.
    """
    if is_funnel and is_kill:
        raise CommandError(
            "--kill kills among tickets, and --funnel proposes payments; leave one of them out"
        )
    if is_review and (is_funnel or is_kill):
        raise CommandError("--review settles what tickets leave; leave --funnel and --kill out")
    if is_funnel:
        return _funnel(context, as_json)
    if is_review:
        from ticketgate.streams.cli.running import review_demo

        return review_demo.run(read_records(tickets), policy, as_json=as_json)
    if is_kill:
        # Loaded when it is needed, so that --help is quick.
        from ticketgate.streams.cli.running import kill_demo

        return kill_demo.run(read_records(tickets), policy, as_json=as_json)
    talk = Console(stderr=True, highlight=False)
    records = read_records(tickets)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        console=talk,
        transient=True,
        disable=not sys.stderr.isatty(),
    ) as bar:
        taken = bar.add_task("tickets decided", total=len(records))
        result = asyncio.run(
            run_demo(
                records,
                policy=policy,
                say=lambda line: talk.print(f"[dim]{line}[/]" if talk.is_terminal else line),
                progress=lambda count: bar.update(taken, completed=count),
            )
        )
    if as_json:
        click.echo(json_text(summary(result)))
    else:
        show(result, records)
        talk.print(NEXT)
    return 0 if result.is_complete else 1


def _funnel(context: click.Context, as_json: bool) -> int:
    for name in ("tickets", "policy"):
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            raise CommandError(
                f"--{name} is for tickets, and --funnel proposes payments; leave one of them out"
            )
    # Loaded when it is needed, so that --help is quick.
    from ticketgate.streams.cli.running import funnel_demo

    return funnel_demo.run(as_json=as_json)


def read_records(path: Path) -> list[Record]:
    """The records of a JSON lines file. Raises `CommandError` with the line."""
    records: list[Record] = []
    for number, line in enumerate(read_bytes(path).split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            records.append(read_line(line))
        except LineError as err:
            raise CommandError(f"{path}:{number}: {err}") from err
    return records


def summary(result: DemoResult) -> dict[str, Any]:
    """The object that `--json` ends with."""
    return {
        "tickets": len(result.outcomes),
        "dispatched": result.count("dispatch"),
        "review": result.count("review"),
        "dead_letter": result.count("dead-letter"),
        "replayed": result.count("replayed"),
        "skipped": result.count("skipped"),
        "settled": {name: result.count_settled(name) for name in EFFECTIVE},
        "guarantee": result.guarantee,
        "seconds": round(result.seconds, 3),
    }


def show(result: DemoResult, records: list[Record]) -> None:
    """The table for a person."""
    # A pipe has no width of its own; a table squeezed into 80 columns cannot be read.
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 140)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("ticket", no_wrap=True)
    table.add_column("what it says", no_wrap=True, max_width=TEXT_CHARS)
    table.add_column("went to", no_wrap=True)
    table.add_column("gate", no_wrap=True)
    table.add_column("why, or what follows")
    for record, outcome in zip(records, result.outcomes, strict=True):
        name, text = describe(record)
        colour = COLOURS.get(outcome.went_to, "cyan")
        table.add_row(
            name, text, f"[{colour}]{outcome.went_to}[/]", outcome.stage, _plain(what_follows(outcome))
        )
        if outcome.settled is not None:
            colour = "green" if outcome.settled.takes_effect else "bold red"
            told = f"[{colour}]{outcome.settled.outcome}[/]"
            table.add_row("", "", f"  {told}", "a person", _plain(what_a_person_said(outcome.settled)))
    console.print(table)
    counts = summary(result)
    missing = result.count("missing")
    console.print(
        f"\n{counted(len(result.outcomes), 'record')} in {result.seconds:.1f} s on {result.broker}:"
        f" {counts['dispatched']} dispatched,"
        f" {counts['review']} for review, {counted(result.count('dead-letter'), 'dead letter')},"
        f" {counts['replayed']} replayed, {counts['skipped']} skipped"
        + (f"; [bold red]{missing} missing, {result.repeated} repeated[/]" if not result.is_complete else "")
    )
    by_person = [f"{counts['settled'][name]} {name}" for name in EFFECTIVE]
    console.print(f"of those for review a scripted person settled what can be: {', '.join(by_person)}")
    if result.guarantee == "exactly_once":
        console.print("guarantee: exactly_once (records and offset in one transaction, claims in Redis)")
    else:
        console.print(f"guarantee: {NO_TRANSACTIONS}")


def what_follows(outcome: Outcome) -> str:
    """Why it went there, or what an accepted decision asks for."""
    if outcome.why:
        return outcome.why
    return f"{', '.join(outcome.selected) or 'no label'} → {', '.join(outcome.effects) or 'no effect'}"


def what_a_person_said(settled: Settled) -> str:
    """What follows from what a person accepted, or why nothing does."""
    if settled.outcome != "accepted":
        return settled.why
    follows = f"{', '.join(settled.labels) or 'no label'} → {', '.join(settled.effects) or 'no effect'}"
    return f"{follows} (changed: {', '.join(settled.changed) or 'nothing'})"


def describe(record: Record) -> tuple[str, str]:
    """A record's id, if it can be read, and the beginning of what it says."""
    if record.value is None:
        return (record.key or b"").decode(errors="replace"), "(no value)"
    value = decode(record.value)
    if isinstance(value, dict):
        name, state = value.get("id"), value.get("state", "")
        text = state if isinstance(state, str) else json_text(state)
        return str(name if name is not None else "?"), _plain(_short(text))
    return "?", _plain(_short(record.value.decode(errors="replace")))


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= TEXT_CHARS else line[: TEXT_CHARS - 1] + "…"


def _plain(text: str) -> str:
    """Keep rich from reading a ticket's brackets as markup."""
    return text.replace("[", "\\[")
