"""`ticketgate produce`: JSON lines, or a table, to a topic."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import click
from ticketgate.agents.plural import counted
from ticketgate.codecs.values.malformed import Malformed
from ticketgate.streams.cli import EXIT_BAD_INPUT, EXIT_UNREACHABLE
from ticketgate.streams.cli.files import named
from ticketgate.streams.cli.lines import BadLine
from ticketgate.streams.cli.options import json_flag, settings_flags
from ticketgate.streams.cli.output import print_json, progress, quiet_libraries, say
from ticketgate.streams.cli.packed import unreadable
from ticketgate.streams.cli.records.csv_rows import DELIMITERS
from ticketgate.streams.cli.records.interrupting import Interrupted, interruptible, run_until_signal
from ticketgate.streams.cli.records.sources import Source, is_table, table_source
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
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def _known_encoding(_context: click.Context, _parameter: click.Parameter, name: str | None) -> str | None:
    try:
        "".encode(name or "utf-8")
    except LookupError as err:
        raise click.BadParameter(
            f"there is no encoding {name!r}; write it as utf-8, cp1252 or utf-16"
        ) from err
    return name


def _delimiter(_context: click.Context, _parameter: click.Parameter, text: str | None) -> str | None:
    found = None if text is None else DELIMITERS.get(text, text)
    if found is not None and len(found) != 1:
        raise click.BadParameter(f"{text!r} is not one character, nor one of {', '.join(DELIMITERS)}")
    return found


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
@click.option(
    "--from-line", type=click.IntRange(min=1), default=1, help="Leave out the lines before this one."
)
@click.option("--id", "id_column", help="FILE is a table (CSV): the column with the tickets' ids.")
@click.option(
    "--state",
    "state_columns",
    multiple=True,
    help="The column with what a ticket says; several make an object.",
)
@click.option("--encoding", callback=_known_encoding, help="The table's, if it is not the one that is found.")
@click.option(
    "--delimiter", callback=_delimiter, help="The table's: comma, semicolon, tab, pipe or a character."
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
    from_line: int,
    id_column: str | None,
    state_columns: tuple[str, ...],
    encoding: str | None,
    delimiter: str | None,
    as_json: bool,
    settings: Settings,
) -> int:
    """Send the records in FILE, JSON lines or a table, packed by gzip or not (- for standard input).

    A line is a ticket, sent as it stands with its id as the key (to the topic of proposals: a proposal, with its
    case_id), or an envelope as `consume` prints it: an object
    with value, value_text or value_base64, and if wanted key, headers, partition and timestamp_ms. So
    `ticketgate consume A | ticketgate produce - --topic B` copies records byte for byte,
    and refuses those with a header whose name is not UTF-8.

    With --id and --state FILE is a table as help desks export it (CSV): a row is a ticket, and its other columns are
    its attributes, empty cells left out.

    What goes to the topics of tickets and proposals is read as their workers read it, and refused where those would
    put it aside as a dead letter; --unchecked and --raw send it. Other topics take any record.

    A file is read through before anything is sent: a line that cannot be sent sends nothing. From standard input,
    what comes before it has been sent. Blank lines are left out, but with --raw they are empty records.

    Ctrl-C and SIGTERM stop it once what is under way is acknowledged, a second one at once; it says how many records
    the broker has, and the line to go on from with --from-line.
    """
    quiet_libraries()
    topic = topic or settings.topic_tickets
    read = partial(_record, topic=topic, settings=settings, raw=raw, by_key=by_key, unchecked=unchecked)
    sending = Sending(next_line=from_line)
    start = time.monotonic()
    interrupted: Interrupted | None = None
    with ExitStack() as stack:
        source = Source(file, from_line)
        try:
            stack.enter_context(interruptible())
            if is_table(file, id_column=id_column, state_columns=state_columns, raw=raw):
                source = stack.enter_context(
                    table_source(
                        file,
                        from_line,
                        id_column=id_column,
                        state_columns=state_columns,
                        encoding=encoding,
                        delimiter=delimiter,
                    )
                )
            total = None if source.is_stream else _check(source, read)
            work = _Work(source, read, total, settings, topic, rate, sending)
            run_until_signal(work.run)
        except OSError as err:
            raise CommandError(
                f"cannot read {file}: {err.strerror or err}; name a readable file, or - for stdin"
            ) from err
        except BadLine as err:
            before = f"sent before it: {counted(sending.sent, 'record')}; go on with --from-line {sending.next_line}"
            sent = before if source.is_stream else "nothing was sent"
            raise CommandError(f"{named(file)}:{err}; {sent}") from err
        except Interrupted as err:
            interrupted = err
    return _report(
        file, topic, sending, seconds=time.monotonic() - start, as_json=as_json, interrupted=interrupted
    )


def _record(
    number: int, line: bytes, *, topic: str, settings: Settings, raw: bool, by_key: bool, unchecked: bool
) -> Record | None:
    """The record that a line stands for; None for a blank one. Raises `BadLine`."""
    if raw:
        return Record(key=None, value=line)
    if number == 1:
        if what := unreadable(line):
            raise BadLine(f"1: this is {what}")
        line = line.removeprefix(_BYTE_ORDER_MARK)
    if not line.strip():
        return None
    try:
        record = read_line(line, key_field="case_id" if topic == settings.topic_proposals else "id")
    except LineError as err:
        raise BadLine(f"{number}: {err}") from err
    # A tombstone is no fault: workers skip it.
    if not unchecked and record.value is not None and (fault := _fault(record.value, topic, settings)):
        raise BadLine(f"{number}: {fault}, or --unchecked sends it nevertheless")
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


def _check(source: Source, read: _Read) -> int:
    """How many records the source has. Raises `BadLine` or OSError."""
    return sum(read(number, line) is not None for number, line in source.lines())


@dataclass(frozen=True, slots=True)
class _Work:
    """What is to be sent, to where, and what became of it. total: how many records, None where nobody knows."""

    source: Source
    read: _Read
    total: int | None
    settings: Settings
    topic: str
    rate: float | None
    sending: Sending

    async def run(self, stop: asyncio.Event) -> None:
        """Send all, or what comes before `stop`."""
        connection = connection_of(self.settings)
        async with admin_client(connection) as client:
            await require_topic(client, self.topic)
        with progress(f"to {self.topic}", self.total) as advance:
            await send(
                self._records(stop),
                connection=connection,
                rate=self.rate,
                sending=self.sending,
                on_sent=advance,
                stop=stop,
            )

    async def _records(self, stop: asyncio.Event) -> AsyncIterator[tuple[int, str, Record]]:
        async for number, line in self.source.coming(stop):
            record = self.read(number, line)
            if record is not None:
                yield number, self.topic, record


def _report(
    file: Path,
    topic: str,
    sending: Sending,
    *,
    seconds: float,
    as_json: bool,
    interrupted: Interrupted | None,
) -> int:
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
                "unknown": sending.unknown,
                "next_line": sending.next_line,
                "interrupted": interrupted is not None,
                "seconds": round(seconds, 3),
            }
        )
    refused_count = f", {len(sending.refused)} refused" if sending.refused else ""
    say(f"sent {counted(sending.sent, 'record')} to {topic}{refused_count} in {seconds:.1f} s")
    if interrupted is not None or sending.lost is not None:
        unknown = f"; of {counted(sending.unknown, 'record')} it is not known" if sending.unknown else ""
        why = f"interrupted by {interrupted}" if interrupted is not None else str(sending.lost)
        say(f"ticketgate: {why}{unknown}; go on with --from-line {sending.next_line}")
    if interrupted is not None:
        return interrupted.exit_code
    if sending.lost is not None:
        return EXIT_UNREACHABLE
    return EXIT_BAD_INPUT if sending.refused else 0
