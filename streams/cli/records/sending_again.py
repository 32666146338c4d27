"""What `ticketgate dead-letter replay` does: dead letters, or mended lines of them, to their input again."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ticketgate.agents.plural import counted
from ticketgate.streams.cli import EXIT_BAD_INPUT, EXIT_FINDINGS, EXIT_UNREACHABLE
from ticketgate.streams.cli.files import named
from ticketgate.streams.cli.lines import BadLine
from ticketgate.streams.cli.output import print_json, print_table, say
from ticketgate.streams.cli.packed import unreadable
from ticketgate.streams.cli.records.sources import Source
from ticketgate.streams.cli.unreadable import Gaps
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.config.usage import CommandError
from ticketgate.streams.kafka.broker import admin_client
from ticketgate.streams.kafka.connection import connection_of
from ticketgate.streams.kafka.envelope import LineError, Record, read_line
from ticketgate.streams.kafka.errors import require_topic
from ticketgate.streams.kafka.reading.topic_reading import PassOver
from ticketgate.streams.kafka.sending import Sending, send
from ticketgate.streams.kafka.topics import missing_topics
from ticketgate.streams.lane.taking.dead_letters import ENDS_WORKER, Wanted, read_dead_letter
from ticketgate.streams.operations.dead_letters.letters import letters
from ticketgate.streams.operations.dead_letters.resend import Held, Ready, prepare


@dataclass(slots=True)
class SentAgain:
    """What was found so far, and what became of it: a row for each, with where it lay, `ready` or `held`, and why.
    `ready_for` counts those that are ready by topic; `unreadable`: where no dead letter could be read."""

    rows: list[tuple[str, str, str]] = field(default_factory=list)
    ready_for: Counter[str] = field(default_factory=Counter)
    held: int = 0
    unreadable: Gaps = field(default_factory=Gaps)
    sending: Sending = field(default_factory=Sending)

    def add(self, outcome: Ready | Held) -> None:
        """Take one in."""
        at = str(outcome.letter.coordinate or "?")
        if isinstance(outcome, Held):
            self.held += 1
            self.rows.append((at, "held", outcome.reason))
        else:
            self.ready_for[outcome.topic] += 1
            self.rows.append((at, "ready", outcome.says))


async def send_again(
    file: Path | None, wanted: Wanted, settings: Settings, *, by_key: bool, unmended: bool, is_sent: bool
) -> SentAgain:
    """Send the dead letters in `file`, or without one those that are `wanted`; without `is_sent` only tell of them.

    Raises `CommandError` for a line that is no record, and nothing was sent then; and `Unreachable`.
    """
    done = SentAgain()
    ready = partial(
        _prepare_unless_fatal if file is None and ENDS_WORKER not in wanted.codes else prepare,
        settings=settings,
        now_ms=round(time.time() * 1000),
        by_key=by_key,
        unmended=unmended,
    )
    found = _from_topic(settings, wanted, done.unreadable) if file is None else _given(await _from_file(file))
    async with aclosing(_prepared(found, ready, done, await _partitions(settings))) as prepared:
        if not is_sent:
            async for _ in prepared:
                pass
            return done
        await send(
            prepared,
            connection=connection_of(settings),
            rate=None,
            sending=done.sending,
            on_sent=lambda _: None,
        )
    return done


def report(done: SentAgain, *, is_sent: bool, as_json: bool) -> int:
    """Say what became of them; the exit code."""
    refused, ready = done.sending.refused, done.ready_for.total()
    if as_json:
        print_json(
            {
                "topics": done.ready_for,
                "ready": ready,
                "held": done.held,
                "unreadable_batches": len(done.unreadable.found),
                "sent": done.sending.sent,
                "refused": len(refused),
                "done": is_sent,
                "records": [{"lay_at": at, "outcome": what, "because": why} for at, what, why in done.rows],
            }
        )
    elif done.rows:
        print_table(("lay at", "outcome", "because"), done.rows)
    for each in refused:
        say(f"{done.rows[each.line - 1][0]}: refused: {each.reason}")
    where = f" to {' and '.join(sorted(done.ready_for))}" if ready else ""
    if is_sent:
        say(
            f"sent {counted(done.sending.sent, 'record')}{where}; {done.held} held back, {len(refused)} refused"
        )
    else:
        say(f"{ready} would be sent{where}, {done.held} held back; nothing was sent: add --yes to do it")
    if done.sending.lost is not None:
        say(f"ticketgate: {done.sending.lost}")
        return EXIT_UNREACHABLE
    if refused:
        return EXIT_BAD_INPUT
    return EXIT_FINDINGS if done.held or done.unreadable.found else 0


def _prepare_unless_fatal(record: Record, **how: Any) -> Ready | Held:
    """As `prepare`, which decodes the record: one that ended workers may end this process too."""
    letter = read_dead_letter(record)
    if letter.code == ENDS_WORKER:
        return Held(letter, f"{letter.reason}; once that is mended, name it: --code {ENDS_WORKER}")
    return prepare(record, **how)


async def _partitions(settings: Settings) -> dict[str, int]:
    """How many partitions each input has that is there. Raises `CommandError` if `tickets` is not."""
    async with admin_client(connection_of(settings)) as client:
        await require_topic(client, settings.topic_tickets)
        inputs = [settings.topic_tickets, settings.topic_proposals, settings.topic_settlements]
        there = [name for name in inputs if name not in await missing_topics(client, inputs)]
        described = await client.describe_topics(there)
    return {each["topic"]: len(each["partitions"]) for each in described}


async def _prepared(
    found: AsyncIterator[Record],
    ready: Callable[[Record], Ready | Held],
    done: SentAgain,
    partitions: Mapping[str, int],
) -> AsyncGenerator[tuple[int, str, Record], None]:
    async for record in found:
        outcome = _held_if_placeless(ready(record), partitions)
        done.add(outcome)
        if isinstance(outcome, Ready):
            # The row's number stands for a line's, to name what the broker refuses.
            yield len(done.rows), outcome.topic, outcome.record


def _held_if_placeless(outcome: Ready | Held, partitions: Mapping[str, int]) -> Ready | Held:
    """What is ready, unless the broker has no place for it: the topic, or the partition that it lay in, is gone."""
    if isinstance(outcome, Held):
        return outcome
    count, place = partitions.get(outcome.topic), outcome.record.partition
    if count is None:
        return Held(outcome.letter, f"no topic {outcome.topic}; `ticketgate topics create` makes it")
    if place is not None and place >= count:
        return Held(
            outcome.letter,
            f"{outcome.topic} has no partition {place} but {count}; --by-key places records by their key",
        )
    return outcome


async def _from_topic(
    settings: Settings, wanted: Wanted, pass_over: PassOver
) -> AsyncGenerator[Record, None]:
    async with aclosing(letters(settings, wanted, pass_over=pass_over)) as found:
        async for record in found:
            timestamp_ms = record.timestamp if record.timestamp >= 0 else None
            yield Record(record.key, record.value, tuple(record.headers), timestamp_ms=timestamp_ms)


async def _from_file(file: Path) -> list[Record]:
    """All of it, before anything is sent: a file with a wrong line sends nothing. Raises `CommandError`."""
    records: list[Record] = []
    try:
        lines = [line async for line in Source(file, 1).coming(asyncio.Event())]
    except BadLine as err:
        raise CommandError(f"{named(file)}:{err}; nothing was sent") from err
    except OSError as err:
        raise CommandError(
            f"cannot read {file}: {err.strerror or err}; name a readable file, or - for stdin"
        ) from err
    for number, line in lines:
        if number == 1 and (what := unreadable(line)):
            raise CommandError(f"{named(file)}:1: this is {what}; nothing was sent")
        if not line.strip():
            continue
        try:
            records.append(read_line(line))
        except LineError as err:
            raise CommandError(f"{named(file)}:{number}: {err}; nothing was sent") from err
    return records


async def _given(records: Sequence[Record]) -> AsyncIterator[Record]:
    for record in records:
        yield record
