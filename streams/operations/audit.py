"""Account for every input: what came in, what became of it, what is there twice, what is missing.

Promise: each input has exactly one outcome, so `records` is the sum of them; one without a trace is `missing` only
where nothing else can explain it. Pure: records in, a report out; audit_run.py reads the topics.

    above the committed offset, without an output                        pending: not decided yet
    below it  an output made from it              dispatched, review, repairs, settled, not_taken, dead_letter
              its key's output made from another  replayed: a duplicate, suppressed
              no value                            skipped
              in a range passed over              void
              outputs of that age are gone        cut_by_retention: nothing can be said of it
              otherwise                           missing

Relies on: the committed offsets were read before the outputs' ends were taken. See ARCHITECTURE.md#delivery.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aiokafka import ConsumerRecord
from ticketgate.codecs.records.identity import Coordinate
from ticketgate.streams.lane.taking.intake import Arrival, Reader, Unreadable, take_in
from ticketgate.streams.operations.outcomes import Fate, Outcomes, Repeated

# A report for a person names some to begin with; a broken deployment would name millions.
MOST_NAMED = 10

OUTCOMES = (
    "dispatched",
    "review",
    "repairs",
    "settled",
    "not_taken",
    "dead_letter",
    "replayed",
    "skipped",
    "void",
    "pending",
    "cut_by_retention",
    "missing",
)
_COUNTED = ("records", "documents", "malformed", "tombstones", "collisions", *OUTCOMES)


@dataclass(frozen=True, slots=True)
class Missing:
    """An input without a trace. `key` is empty for one that could not be read."""

    key: str
    coordinate: Coordinate


@dataclass(frozen=True, slots=True, kw_only=True)
class InputPartition:
    """What is known of one partition of the input beforehand. `first` and `end` are offsets, `committed` None before
    the first commit; `voids` are ranges that were passed over without an effect."""

    first: int
    end: int
    committed: int | None
    voids: Sequence[range] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputsSince:
    """Since when the outputs are whole, in ms: retention has taken what is older. None: they are whole."""

    decisions_ms: int | None = None
    dead_letters_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """What an audit found. Of `records`, every one is one of `documents` (tickets, proposals, settlements), `malformed`
    and `tombstones`, and has one of OUTCOMES. `collisions` are among `review`. `lost_unread` inputs went to retention
    before they were read, and are not among `records`, nor are those of the `outputs_of_past_inputs`.
    `outputs_of_others` were made from another input or from `dispatch`, as receipts are
    and an effect that is dispatched anew."""

    records: int = 0
    documents: int = 0
    malformed: int = 0
    tombstones: int = 0
    dispatched: int = 0
    review: int = 0
    repairs: int = 0
    settled: int = 0
    not_taken: int = 0
    collisions: int = 0
    dead_letter: int = 0
    replayed: int = 0
    skipped: int = 0
    void: int = 0
    pending: int = 0
    cut_by_retention: int = 0
    missing: int = 0
    duplicates: int = 0
    decided_anew: int = 0
    lost_unread: int = 0
    unreadable: int = 0
    outputs: int = 0
    outputs_of_past_inputs: int = 0
    outputs_unexplained: int = 0
    outputs_without_identity: int = 0
    outputs_of_others: int = 0
    missing_first: tuple[Missing, ...] = ()
    duplicates_first: tuple[Repeated, ...] = ()

    @property
    def is_clean(self) -> bool:
        """Whether nothing is there twice and nothing is missing."""
        return not self.duplicates and not self.missing


@dataclass(slots=True)
class Accounting:
    """Takes the inputs one after the other, once all outputs are in `outcomes`."""

    outcomes: Outcomes
    partitions: Mapping[int, InputPartition]
    outputs_since: OutputsSince
    read: Reader[Any]
    claim_ttl_ms: int
    _counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_COUNTED, 0))
    _missing: list[Missing] = field(default_factory=list)
    _unreadable: int = 0

    def add(self, records: Sequence[ConsumerRecord]) -> None:
        """Account for inputs, which are not none, of one partition."""
        times = {record.offset: record.timestamp for record in records}
        intake = take_in(records, self.read)
        self._count("records", len(records))
        self._count("documents", len(intake.arrivals))
        self._count("malformed", len(intake.unreadable))
        self._count("tombstones", intake.tombstones)
        for arrival in intake.arrivals:
            self._account(arrival, times[arrival.claim.coordinate.offset])
        for unreadable in intake.unreadable:
            self._account_unreadable(unreadable)
        committed = self.partitions[records[0].partition].committed or 0
        pending = sum(record.value is None and record.offset >= committed for record in records)
        self._count("pending", pending)
        self._count("skipped", intake.tombstones - pending)

    def pass_over(self, partition: int, offsets: range) -> None:
        """Account for a batch that cannot be read."""
        self._unreadable += len(range(offsets.start, min(offsets.stop, self.partitions[partition].end)))

    def report(self) -> AuditReport:
        """What all that was added comes to."""
        gone, strange = self.outcomes.unexplained(
            {number: each.first for number, each in self.partitions.items()},
            {number: each.end for number, each in self.partitions.items()},
        )
        return AuditReport(
            **self._counts,
            duplicates=self.outcomes.duplicates,
            decided_anew=self.outcomes.decided_anew,
            lost_unread=sum(_lost_unread(each) for each in self.partitions.values()),
            unreadable=self._unreadable,
            outputs=self.outcomes.outputs,
            outputs_of_past_inputs=gone,
            outputs_unexplained=strange,
            outputs_without_identity=self.outcomes.without_identity,
            outputs_of_others=self.outcomes.of_others,
            missing_first=tuple(self._missing),
            duplicates_first=tuple(self.outcomes.repeated),
        )

    def _account(self, arrival: Arrival[object], timestamp_ms: int) -> None:
        claim = arrival.claim
        match self.outcomes.fate(claim):
            case Fate.DISPATCHED:
                self._count("dispatched")
            case Fate.REVIEW:
                self._count("review")
            case Fate.REPAIRS:
                self._count("repairs")
            case Fate.SETTLED:
                self._count("settled")
            case Fate.NOT_TAKEN:
                self._count("not_taken")
            case Fate.COLLISION:
                self._count("review")
                self._count("collisions")
            case Fate.REPLAYED if not self._is_pending(claim.coordinate):
                self._count("replayed")
            case _ if self.outcomes.is_dead_lettered(claim.coordinate):
                # It could not be read under the settings of then, such as a smaller TICKETGATE_MAX_TICKET_BYTES.
                self._count("dead_letter")
            case _:
                since = self.outputs_since.decisions_ms
                # A duplicate's owner can be older than the duplicate by as much as a claim lives.
                is_cut = since is not None and since > timestamp_ms - self.claim_ttl_ms
                self._without_outcome(claim.coordinate, key=claim.key, is_cut=is_cut)

    def _account_unreadable(self, unreadable: Unreadable) -> None:
        if self.outcomes.is_dead_lettered(unreadable.coordinate):
            self._count("dead_letter")
            return
        since = self.outputs_since.dead_letters_ms
        # A dead letter is younger than its input.
        self._without_outcome(
            unreadable.coordinate, key="", is_cut=since is not None and since > unreadable.timestamp_ms
        )

    def _without_outcome(self, coordinate: Coordinate, *, key: str, is_cut: bool) -> None:
        if self._is_pending(coordinate):
            self._count("pending")
        elif any(coordinate.offset in offsets for offsets in self.partitions[coordinate.partition].voids):
            self._count("void")
        elif is_cut:
            self._count("cut_by_retention")
        else:
            self._count("missing")
            if len(self._missing) < MOST_NAMED:
                self._missing.append(Missing(key, coordinate))

    def _is_pending(self, coordinate: Coordinate) -> bool:
        return coordinate.offset >= (self.partitions[coordinate.partition].committed or 0)

    def _count(self, name: str, by: int = 1) -> None:
        self._counts[name] += by


def account(accounting: Accounting, inputs: Iterable[Sequence[ConsumerRecord]]) -> AuditReport:
    """All at once: `inputs` in parts of one partition each."""
    for records in inputs:
        accounting.add(records)
    return accounting.report()


def _lost_unread(partition: InputPartition) -> int:
    return 0 if partition.committed is None else max(0, partition.first - partition.committed)
