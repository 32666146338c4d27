"""`ticketgate produce`: JSON lines to a topic."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import click
from ticketgate.agents.plural import counted
from ticketgate.codecs.values.malformed import Malformed
from ticketgate.streams.cli import EXIT_BAD_INPUT, EXIT_UNREACHABLE
from ticketgate.streams.cli.files import named
from ticketgate.streams.cli.lines import is_stream, read_lines, stream_lines
from ticketgate.streams.cli.options import json_flag, settings_flags
from ticketgate.streams.cli.output import print_json, progress, quiet_libraries, say
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.config.usage import CommandError
from ticketgate.streams.kafka.broker import admin_client
from ticketgate.streams.kafka.connection import connection_of
from ticketgate.streams.kafka.envelope import LineError, Record, read_line
from ticketgate.streams.kafka.errors import require_topic
from ticketgate.streams.kafka.sending import Sending, send
from ticketgate.streams.operations.dead_letters.resend import read_as_input

# Enough to see what is wrong with a file; the count says how many there are.
_MOST_SHOWN = 10


@click.command("produce")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path, allow_dash=True))
@click.option("--topic", help="Where to send them; the topic of incoming tickets, unless given.")
@click.option("--rate", type=click.FloatRange(min=0, min_open=True), help="Most records a second.")
@click.option(
    "--raw", is_flag=True, help="Each line is a record's value as it stands, JSON or not, without a key."
)
@click.option("--by-key", is_flag=True, help="Place records by their key, whatever partition a line names.")
@click.option(
    "--unchecked", is_flag=True, help="Send tickets and proposals that no worker can read, as they are."
)
@json_flag
@settings_flags("kafka")
def command(
    file: Path,
    topic: str | None,
    rate: float | None,
    raw: bool,
    by_key: bool,
    unchecked: bool,
    as_json: bool,
    settings: Settings,
) -> int:
    """Send the records in FILE, JSON lines (- for standard input).

    A line is a ticket, sent as it stands with its id as the key (to the topic of proposals: a proposal, with its
    case_id), or an envelope as `consume` prints it: an object
    with value, value_text or value_base64, and if wanted key, headers, partition and timestamp_ms. So
    `ticketgate consume A | ticketgate produce - --topic B` copies records byte for byte,
    and refuses those with a header whose name is not UTF-8.

    What goes to the topics of tickets and proposals is read as their workers read it, and refused where those would
    put it aside as a dead letter; --unchecked and --raw send it. Other topics take any record.

    A file is read through before anything is sent: a line that cannot be sent sends nothing. From standard input,
    what comes before it has been sent. Blank lines are left out, but with --raw they are empty records.
    """
    quiet_libraries()
    topic = topic or settings.topic_tickets
    read = partial(_record, topic=topic, settings=settings, raw=raw, by_key=by_key, unchecked=unchecked)
    sending = Sending()
    start = time.monotonic()
    try:
        total = None if is_stream(file) else _check(file, read)
        asyncio.run(_produce(file, read, total, settings=settings, topic=topic, rate=rate, sending=sending))
    except OSError as err:
        raise CommandError(
            f"cannot read {file}: {err.strerror or err}; name a readable file, or - for stdin"
        ) from err
    except _BadLine as err:
        sent = (
            f"; sent before it: {counted(sending.sent, 'record')}"
            if is_stream(file)
            else "; nothing was sent"
        )
        raise CommandError(f"{named(file)}:{err}{sent}") from err
    return _report(file, topic, sending, seconds=time.monotonic() - start, as_json=as_json)


class _BadLine(Exception):
    """`17: what is wrong`: a line of the input that is no record."""


def _record(
    number: int, line: bytes, *, topic: str, settings: Settings, raw: bool, by_key: bool, unchecked: bool
) -> Record | None:
    """The record that a line stands for; None for a blank one. Raises `_BadLine`."""
    if raw:
        return Record(key=None, value=line)
    if not line.strip():
        return None
    try:
        record = read_line(line, key_field="case_id" if topic == settings.topic_proposals else "id")
    except LineError as err:
        raise _BadLine(f"{number}: {err}") from err
    # A tombstone is no fault: workers skip it.
    if not unchecked and record.value is not None and (fault := _fault(record.value, topic, settings)):
        raise _BadLine(f"{number}: {fault}, or --unchecked sends it nevertheless")
    return replace(record, partition=None) if by_key else record


def _fault(value: bytes, topic: str, settings: Settings) -> str | None:
    """Why the workers that read the topic would put a record aside, and the way out."""
    others = {
        settings.topic_tickets: ("ticket", settings.topic_proposals),
        settings.topic_proposals: ("proposal", settings.topic_tickets),
    }
    if topic not in others or not isinstance(found := read_as_input(value, topic, settings), Malformed):
        return None
    kind, other = others[topic]
    if isinstance(read_as_input(value, other, settings), Malformed):
        return f"no {kind}: {found.reason}; mend it"
    return f"no {kind}; send it with --topic {other}"


_Read = partial[Record | None]


def _check(file: Path, read: _Read) -> int:
    """How many records the file has. Raises `_BadLine` or OSError."""
    return sum(read(number, line) is not None for number, line in read_lines(file))


async def _produce(
    file: Path,
    read: _Read,
    total: int | None,
    *,
    settings: Settings,
    topic: str,
    rate: float | None,
    sending: Sending,
) -> None:
    connection = connection_of(settings)
    async with admin_client(connection) as client:
        await require_topic(client, topic)
    lines = stream_lines(file) if total is None else _given(read_lines(file))
    with progress(f"to {topic}", total) as advance:
        await send(
            _records(lines, read, topic),
            connection=connection,
            rate=rate,
            sending=sending,
            on_sent=advance,
        )


async def _records(
    lines: AsyncIterator[tuple[int, bytes]], read: _Read, topic: str
) -> AsyncIterator[tuple[int, str, Record]]:
    async for number, line in lines:
        record = read(number, line)
        if record is not None:
            yield number, topic, record


async def _given(lines: Iterator[tuple[int, bytes]]) -> AsyncIterator[tuple[int, bytes]]:
    for line in lines:
        yield line


def _report(file: Path, topic: str, sending: Sending, *, seconds: float, as_json: bool) -> int:
    """Say what became of the records; the exit code."""
    for refused in sending.refused[:_MOST_SHOWN]:
        say(f"{named(file)}:{refused.line}: refused: {refused.reason}")
    if len(sending.refused) > _MOST_SHOWN:
        say(f"… and {len(sending.refused) - _MOST_SHOWN} more")
    if as_json:
        print_json(
            {
                "topic": topic,
                "sent": sending.sent,
                "refused": len(sending.refused),
                "seconds": round(seconds, 3),
            }
        )
    refused_count = f", {len(sending.refused)} refused" if sending.refused else ""
    say(f"sent {counted(sending.sent, 'record')} to {topic}{refused_count} in {seconds:.1f} s")
    if sending.lost is not None:
        say(f"ticketgate: {sending.lost}")
        return EXIT_UNREACHABLE
    return EXIT_BAD_INPUT if sending.refused else 0
