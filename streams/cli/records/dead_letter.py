"""`ticketgate dead-letter`: list what could not be read, send it again, give up what nobody can read."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, TypeVar

import click
from ticketgate.agents.plural import counted
from ticketgate.codecs.records.identity import Coordinate
from ticketgate.codecs.values.times import from_epoch_ms, parse_rfc3339, rfc3339
from ticketgate.codecs.verdict import Stage
from ticketgate.streams.cli import EXIT_FINDINGS
from ticketgate.streams.cli.files import named
from ticketgate.streams.cli.options import json_flag, settings_flags
from ticketgate.streams.cli.output import print_json, print_table, quiet_libraries, say
from ticketgate.streams.cli.records.sending_again import read_mended, report
from ticketgate.streams.cli.unreadable import Gaps
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.config.usage import CommandError
from ticketgate.streams.kafka.envelope import write_line
from ticketgate.streams.lane.taking.dead_letters import Place, Wanted, read_dead_letter
from ticketgate.streams.operations.dead_letters.letters import letters
from ticketgate.streams.operations.dead_letters.sending_again import SentAgain, send_again
from ticketgate.streams.operations.dead_letters.sent_again import outcomes_since

Command = TypeVar("Command", bound=Callable[..., Any])


@click.group("dead-letter")
def command() -> None:
    """Records that could not be read as tickets or proposals: list them, mend them, send them again."""


# --- which ones -------------------------------------------------------------------------------------------------


def _moment(_context: click.Context, _parameter: click.Parameter, text: str | None) -> int | None:
    try:
        return None if text is None else round(parse_rfc3339(text).timestamp() * 1000)
    except ValueError as err:
        raise click.BadParameter(f"{text!r} must be a time such as 2026-11-29T18:00:00Z") from err


def _places(_context: click.Context, _parameter: click.Parameter, texts: Sequence[str]) -> tuple[Place, ...]:
    try:
        return tuple(Place.parse(text) for text in texts)
    except ValueError as err:
        raise click.BadParameter(str(err)) from err


def _which(function: Command) -> Command:
    """Give a command the options that choose dead letters."""
    options = (
        click.option(
            "--stage",
            type=click.Choice([Stage.PARSE.value, Stage.SCHEMA.value]),
            help="The gate that refused.",
        ),
        click.option("--code", "codes", multiple=True, help="A code such as duplicate_key; may be repeated."),
        click.option(
            "--at",
            "places",
            multiple=True,
            metavar="TOPIC:PARTITION[:FIRST[-LAST]]",
            callback=_places,
            help="Where the record lay before; may be repeated.",
        ),
        click.option(
            "--since", "since_ms", metavar="TIME", callback=_moment, help="The record's time, from then on."
        ),
        click.option(
            "--until", "until_ms", metavar="TIME", callback=_moment, help="The record's time, before then."
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


# --- list -------------------------------------------------------------------------------------------------------


@command.command("list")
@_which
@json_flag
@settings_flags("kafka")
def list_(
    stage: str | None,
    codes: Sequence[str],
    places: tuple[Place, ...],
    since_ms: int | None,
    until_ms: int | None,
    as_json: bool,
    settings: Settings,
) -> int:
    """List dead letters. --json prints them whole, a line each as `consume` does, to be mended in an editor and sent
    again by `dead-letter replay FILE`. The last column names the output where a later record under the same key ended,
    so where one was sent again. Exit code 3 if a batch of them is damaged and could not be read."""
    quiet_libraries()
    wanted = Wanted(stage=stage, codes=frozenset(codes), places=places, since_ms=since_ms, until_ms=until_ms)
    return asyncio.run(_list(settings, wanted, as_json=as_json))


async def _list(settings: Settings, wanted: Wanted, *, as_json: bool) -> int:
    gaps = Gaps()
    rows: list[tuple[str, ...]] = []
    listed: list[tuple[bytes | None, Coordinate | None, int]] = []
    async with aclosing(letters(settings, wanted, pass_over=gaps)) as found:
        async for record in found:
            if as_json:
                sys.stdout.buffer.write(write_line(record) + b"\n")
                continue
            letter = read_dead_letter(record)
            time_ms = letter.time_ms(record.timestamp)
            when = "" if time_ms < 0 else rfc3339(from_epoch_ms(time_ms))
            key = "" if record.key is None else record.key.decode(errors="replace")[:40]
            rows.append((str(letter.coordinate or "?"), when, key, letter.stage, letter.code, letter.reason))
            listed.append((record.key, letter.coordinate, record.timestamp))
    if as_json:
        sys.stdout.buffer.flush()
    elif rows:
        since = await outcomes_since(settings, listed, pass_over=gaps)
        told = [(*row, since.get(place, "")) for place, row in enumerate(rows)]
        print_table(("lay at", "time", "key", "stage", "code", "reason", "sent again to"), sorted(told))
    if not as_json:
        say(counted(len(rows), "dead letter"))
    return EXIT_FINDINGS if gaps.found else 0


# --- replay -----------------------------------------------------------------------------------------------------


@command.command("replay")
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path, allow_dash=True))
@_which
@click.option("--unmended", is_flag=True, help="Send what would come back to dead-letter as well.")
@click.option("--by-key", is_flag=True, help="Place records by their key, not in the partition they lay in.")
@click.option("--yes", is_flag=True, help="Send; without, it only says what would be sent.")
@json_flag
@settings_flags("kafka")
def replay(
    file: Path | None,
    stage: str | None,
    codes: Sequence[str],
    places: tuple[Place, ...],
    since_ms: int | None,
    until_ms: int | None,
    unmended: bool,
    by_key: bool,
    yes: bool,
    as_json: bool,
    settings: Settings,
) -> int:
    """Send dead letters to the input that they came from again, tickets or proposals: those chosen by the options, or
    those in FILE (- for standard input), mended lines of `dead-letter list --json`.

    Key, headers and time are kept, our headers are taken off. What these settings still cannot read is held back:
    so without FILE, what goes out is what a newer worker, a larger TICKETGATE_MAX_TICKET_BYTES or the loss of an
    unreadable header makes good. To mend a line, put the corrected record into value, and drop value_text.

    A ticket or proposal has one effect, however often it is sent again. Exit code 3 if some were held back,
    or could not be read.
    """
    quiet_libraries()
    wanted = Wanted(stage=stage, codes=frozenset(codes), places=places, since_ms=since_ms, until_ms=until_ms)
    if file is not None and not wanted.is_everything:
        raise CommandError(f"{named(file)} says which to send; leave the other conditions out")
    gaps = Gaps()

    async def run() -> SentAgain:
        return await send_again(
            None if file is None else await read_mended(file),
            wanted,
            settings,
            by_key=by_key,
            unmended=unmended,
            is_sent=yes,
            pass_over=gaps,
        )

    return report(asyncio.run(run()), gaps, is_sent=yes, as_json=as_json)


# --- skip -------------------------------------------------------------------------------------------------------


@command.command("skip")
@click.argument("coordinate", metavar="TOPIC:PARTITION:OFFSET")
@click.option("--yes", is_flag=True, help="Order it; without, it only says what would be given up.")
@json_flag
@settings_flags("kafka", "redis", "namespace")
def skip(coordinate: str, yes: bool, as_json: bool, settings: Settings) -> int:
    """Give up a batch that nobody can read, so that its lane goes on behind it.

    /readyz names the coordinate. The lane takes the order within 10 s: it puts the batch's bytes into dead-letter and
    journals its offsets as void, so that a copy of a record in it that is sent again is taken for new. A batch that
    can be read is never passed over.
    """
    from ticketgate.streams.operations.dead_letters.giving_up import give_up

    quiet_libraries()
    found = asyncio.run(give_up(coordinate, settings, is_ordered=yes))
    if as_json:
        print_json(
            {
                "first": str(found.first),
                "last_offset": found.offsets.stop - 1,
                "reason": found.reason,
                "ordered": yes,
            }
        )
    else:
        click.echo(f"{found.first} to {found.offsets.stop - 1} cannot be read: {found.reason}")
    say("ordered; its lane goes on within 10 s" if yes else "nothing was changed; add --yes to give it up")
    return 0
