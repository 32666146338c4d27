"""What was said of a ticket before: the settlement that it has, and those that are under way.

Promise: who asks again after a command or a page died is led back to what was sent, and nothing is sent beside it. A
settlement counts as under way only where a worker would believe it: signed by a key that may settle, in its time, and
about this very record. One that no worker ever takes ends with its time.
Relies on: a view that is up to date. What the network still held when it was asked for is not seen: then two lie on the
topic, of which the lanes take one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ticketgate.agents.settling.console_keys import ConsoleKeys, load_console_keys
from ticketgate.agents.settling.signing import refuse_signature
from ticketgate.codecs.records.identity import Coordinate
from ticketgate.codecs.records.settlement import Settlement, decode_settlement
from ticketgate.codecs.values.malformed import Malformed
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.operations.review.desk import asking
from ticketgate.streams.operations.review.rows import EFFECTIVE, Case

# Whoever can write the topic can send any number; of a ticket, so many are looked at, the oldest first.
MOST_LOOKED_AT = 20

Row = Mapping[str, Any]
"""A settlement as `View.settlements` has it."""


@dataclass(frozen=True, slots=True)
class UnderWay:
    """A settlement that lies on its topic, and of which `settled` does not tell yet."""

    coordinate: Coordinate
    settlement: Settlement


def settled_by(case: Case, rows: Iterable[Row]) -> Row | None:
    """Which of a ticket's settlements the record in review has; None while it has none."""
    return next((each for each in rows if each["id"] == case.settlement and _has_effect(each)), None)


def owner_of(review: Coordinate, rows: Iterable[Row]) -> Row | None:
    """Which of a ticket's settlements took effect on a record in review."""
    return next((each for each in rows if each["review"] == str(review) and _has_effect(each)), None)


def told_the_same(row: Row, *, by: str, action: str, labels: Iterable[str]) -> bool:
    """Whether a person had said this very thing; the reason may be another."""
    return (row["by"], row["action"], sorted(row["labels"])) == (by, action, sorted(labels))


def says_the_same(one: Settlement, other: Settlement) -> bool:
    """Whether two settlements are one person's, of one record, with the same labels and effects; the reason, the moment
    and the policy's version may differ."""

    def told(each: Settlement) -> tuple[object, ...]:
        return (each.by, each.key, each.review, each.review_sha256, each.action, each.labels, each.effects)

    return told(one) == told(other)


async def under_way(settings: Settings, case: Case, rows: Iterable[Row]) -> list[UnderWay]:
    """The settlements of a record in review that a worker will come to, the oldest first. Raises `Unreachable` and
    `ConsoleKeysError`."""
    open_ = [each for each in rows if each["outcome"] is None and each["review"] == case.place]
    if not open_ or settings.console_keys is None:
        return []
    keys, now = load_console_keys(settings.console_keys), _now()
    found: list[UnderWay] = []
    async with asking(settings) as topics:
        for each in sorted(open_, key=lambda row: row["at_ms"])[:MOST_LOOKED_AT]:
            at = Coordinate.parse(each["coordinate"])
            record = await topics.fetch(at)
            if record is None or record.value is None:
                continue
            read = decode_settlement(record.value, max_bytes=max(len(record.value), 1))
            if not isinstance(read, Malformed) and _is_believed(read, case, keys, now):
                found.append(UnderWay(at, read))
    return found


def _is_believed(settlement: Settlement, case: Case, keys: ConsoleKeys, now: datetime) -> bool:
    is_about_it = (settlement.key, settlement.review_sha256) == (case.key, case.sha256)
    return is_about_it and refuse_signature(settlement, keys, at=now) is None


def _has_effect(row: Row) -> bool:
    return row["outcome"] in EFFECTIVE


def _now() -> datetime:
    return datetime.now(UTC)
