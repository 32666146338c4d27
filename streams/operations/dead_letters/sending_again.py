"""Dead letters, or mended ones that are given, to their input again.

Promise: without `is_sent` nothing is sent. A ticket or proposal has one effect, however often it is sent again.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ticketgate.streams.config.settings import Settings
from ticketgate.streams.kafka.broker import admin_client
from ticketgate.streams.kafka.connection import connection_of
from ticketgate.streams.kafka.envelope import Record
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
    `ready_for` counts those that are ready by topic."""

    rows: list[tuple[str, str, str]] = field(default_factory=list)
    ready_for: Counter[str] = field(default_factory=Counter)
    held: int = 0
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
    given: Sequence[Record] | None,
    wanted: Wanted,
    settings: Settings,
    *,
    by_key: bool,
    unmended: bool,
    is_sent: bool,
    pass_over: PassOver,
) -> SentAgain:
    """Send the dead letters that are given, or where none are those that are `wanted`; without `is_sent` only tell of
    them. A batch of the topic that nobody can read is told to `pass_over`. Raises `CommandError` and `Unreachable`."""
    done = SentAgain()
    ready = partial(
        _prepare_unless_fatal if given is None and ENDS_WORKER not in wanted.codes else prepare,
        settings=settings,
        now_ms=round(time.time() * 1000),
        by_key=by_key,
        unmended=unmended,
    )
    found = _from_topic(settings, wanted, pass_over) if given is None else _given(given)
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


async def _given(records: Sequence[Record]) -> AsyncIterator[Record]:
    for record in records:
        yield record
