"""`ticketgate consume`: a topic's committed records as JSON lines."""

from __future__ import annotations

import asyncio
import sys
from contextlib import aclosing

import click
from ticketgate.codecs.values.printable import printable
from ticketgate.streams.cli import EXIT_FINDINGS
from ticketgate.streams.cli.options import settings_flags
from ticketgate.streams.cli.output import quiet_libraries, say
from ticketgate.streams.cli.span import parse_from, parse_until
from ticketgate.streams.cli.unreadable import Gaps
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.config.usage import CommandError
from ticketgate.streams.kafka.connection import connection_of
from ticketgate.streams.kafka.envelope import write_line
from ticketgate.streams.kafka.reading.span import Beginning, Count, End, From, Until
from ticketgate.streams.kafka.reading.topic_reading import read


@click.command("consume")
@click.argument("topic")
@click.option(
    "--from",
    "start",
    default="beginning",
    show_default=True,
    metavar="WHERE",
    callback=parse_from,
    help="beginning, end, a time (RFC 3339), or PARTITION:OFFSET[,…], and then no other partitions.",
)
@click.option(
    "--until",
    metavar="WHERE",
    callback=parse_until,
    help="end (as it is at the start), a time (RFC 3339, not included), or a number of records.  [default: end]",
)
@click.option("--follow", is_flag=True, help="Go on with what comes, until Ctrl-C or --until NUMBER.")
@click.option(
    "--values",
    is_flag=True,
    help="Print the values alone, as they are but for a terminal; tombstones have none.",
)
@settings_flags("kafka")
def command(
    topic: str, start: From, until: Until | None, follow: bool, values: bool, settings: Settings
) -> int:
    """Print the committed records of TOPIC, a line of JSON each.

    \b
    topic, partition, offset   where the record lies
    timestamp_ms               its time, in milliseconds since 1970
    key                        text or null; key_base64 if it is not UTF-8
    headers                    [name, text], [name, {"base64": …}] or [name, null], in order;
                               a name that is not UTF-8 is {"escaped": …}, with \\xff for such a byte
    value                      the JSON value; null alone is a tombstone
    value_text, value_base64   the exact bytes, where they are not JSON or not as compact as value

    `ticketgate produce` takes the same lines and sends the same bytes. No consumer group is used: no position is
    kept, and no worker notices. A batch that is damaged on the broker is named on stderr and passed over; the exit code
    is 3 then.
    """
    quiet_libraries()
    if follow and until is not None and not isinstance(until, Count):
        raise CommandError("--follow goes on past any end; leave --until out, or give it a number of records")
    return asyncio.run(_consume(topic, start, until or End(), follow, values, settings))


async def _consume(
    topic: str, start: From, until: Until, follow: bool, values: bool, settings: Settings
) -> int:
    gaps = Gaps()
    count = 0
    out = sys.stdout.buffer
    is_terminal = sys.stdout.isatty()
    parts = read(
        connection=connection_of(settings),
        topic=topic,
        start=start,
        until=until,
        follow=follow,
        pass_over=gaps,
    )
    async with aclosing(parts):
        async for records in parts:
            count += len(records)
            for record in records:
                if not values:
                    out.write(write_line(record) + b"\n")
                elif record.value is not None:
                    out.write(_as_shown(record.value, is_terminal) + b"\n")
            out.flush()
    if not count and not gaps.found:
        is_whole = isinstance(start, Beginning) and isinstance(until, End)
        say(f"no records in {topic}" if is_whole else f"no records in that part of {topic}")
    return EXIT_FINDINGS if gaps.found else 0


def _as_shown(value: bytes, is_terminal: bool) -> bytes:
    """The exact bytes, but for a person: a value must not act on their terminal."""
    return printable(value.decode("utf-8", "backslashreplace")).encode() if is_terminal else value
