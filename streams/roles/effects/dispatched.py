"""Records of `dispatch` to commands: what the executor reads of a decision on a ticket or on a case.

Promise: every record of a batch is either a decision that was read or told of as unreadable.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from aiokafka import ConsumerRecord
from ticketgate.agents.effects.ledger import Command
from ticketgate.codecs.records.case_decision import CaseDecision, read_dispatched
from ticketgate.codecs.records.decision import DecisionRecord
from ticketgate.codecs.records.headers import Header
from ticketgate.codecs.records.identity import Coordinate
from ticketgate.codecs.values.malformed import Malformed
from ticketgate.codecs.values.strict import JsonValue, decode
from ticketgate.streams.lane.taking.intake import Unreadable, set_aside


@dataclass(frozen=True, slots=True)
class Dispatched:
    """A decision's effects. subject: the ticket's or the case's id. proposal: of a case, as its record has it.
    confirmations: by an effect's key, those that allow it."""

    coordinate: Coordinate
    key: bytes | None
    subject: str
    commands: tuple[Command, ...]
    confirmations: Mapping[str, tuple[str, ...]]
    proposal: Mapping[str, JsonValue] | None
    headers: tuple[Header, ...]


@dataclass(frozen=True, slots=True)
class DispatchedIntake:
    """A batch taken apart. `next_offset` is one past the last record's; `tombstones` is of the whole batch, not of its
    runs."""

    next_offset: int
    arrivals: tuple[Dispatched, ...]
    unreadable: tuple[Unreadable, ...]
    tombstones: int = 0

    def runs(self) -> Iterator[DispatchedIntake]:
        """The batch in parts, in which no two records name one effect or one confirmation: what becomes of the first
        decides what the second finds under the key, and whether the confirmation is left to it. Each ends where the
        next begins."""
        ends: list[int] = []
        named: set[object] = set()
        for each in self.arrivals:
            keys: set[object] = {command.key for command in each.commands}
            keys |= {("confirmation", digest) for some in each.confirmations.values() for digest in some}
            if not named.isdisjoint(keys):
                ends.append(each.coordinate.offset)
                named.clear()
            named |= keys
        first = 0
        for end in (*ends, self.next_offset):
            yield DispatchedIntake(
                end,
                tuple(each for each in self.arrivals if first <= each.coordinate.offset < end),
                tuple(each for each in self.unreadable if first <= each.coordinate.offset < end),
            )
            first = end


def take_in_dispatched(
    records: Sequence[ConsumerRecord], *, max_bytes: int, aside: Mapping[int, str] | None = None
) -> DispatchedIntake:
    """Read a batch, which is not empty, of one partition. A record without a value is skipped, and counted. What is to
    be set `aside`, by offset and for what reason, is not read, and among the unreadable."""
    arrivals: list[Dispatched] = []
    unreadable: list[Unreadable] = []
    for record in records:
        if record.value is None:
            continue
        coordinate = Coordinate(record.topic, record.partition, record.offset)
        headers = tuple(record.headers)
        decision = _read(record.value, (aside or {}).get(record.offset), max_bytes)
        if isinstance(decision, Malformed):
            unreadable.append(
                Unreadable(
                    coordinate, record.key, record.value, headers, record.timestamp, malformed=decision
                )
            )
            continue
        commands = tuple(
            Command(effect.tool, effect.arguments, effect.idempotency_key) for effect in decision.effects
        )
        if isinstance(decision, CaseDecision):
            proposal = decision.proposed()
            subject, judged = decision.case_id, None if proposal is None else proposal.to_json()
        else:
            subject, judged = decision.ticket_id, None
        confirmations = {effect.idempotency_key: effect.confirmations for effect in decision.effects}
        arrivals.append(Dispatched(coordinate, record.key, subject, commands, confirmations, judged, headers))
    tombstones = sum(record.value is None for record in records)
    return DispatchedIntake(records[-1].offset + 1, tuple(arrivals), tuple(unreadable), tombstones)


def _read(
    value: bytes, reason_aside: str | None, max_bytes: int
) -> DecisionRecord | CaseDecision | Malformed:
    if reason_aside is not None:
        return set_aside(reason_aside)
    decoded = decode(value, max_bytes=max_bytes, is_our_own=True)
    return decoded if isinstance(decoded, Malformed) else read_dispatched(decoded)
