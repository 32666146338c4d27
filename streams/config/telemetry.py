"""What a worker counts: Prometheus metrics with bounded labels, in seconds; never a ticket's id or tenant."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from ticketgate.agents.deciding.decide import Decision
from ticketgate.agents.deciding.gate import Observer
from ticketgate.agents.scoring.scorer import TextCounts
from ticketgate.codecs.values.malformed import Malformed
from ticketgate.codecs.verdict import Stage, Verdict
from ticketgate.streams.config.batch_histogram import BatchHistogram
from ticketgate.streams.config.decision_metrics import DecisionMetrics, PolicyMetrics
from ticketgate.streams.config.gate_tally import GateTally
from ticketgate.streams.config.settlement_metrics import SettlementMetrics

# A gate takes microseconds, scoring a batch milliseconds to seconds.
_GATE_BUCKETS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0)
_BATCH_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


# first: the look that decides. later: one before an effect is sent, on evidence looked up anew.
Look = Literal["first", "later"]
# A gate and what it said of one case.
GateSaid = tuple[Stage, str]


class Telemetry:
    """The metrics of one process, in a registry of their own. All methods may be called from any thread."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._records = Counter(
            "ticketgate_records",
            "Input records by where they went: dispatched, review, repairs, taken (by the executor), malformed,"
            " replayed, tombstone, given_up",
            ["topic", "outcome"],
            registry=registry,
        )
        self._gates = Counter(
            "ticketgate_gate_evaluations",
            "Gates passed and failed, at the look that decides (first) and those before an effect is sent (later)",
            ["gate", "outcome", "look"],
            registry=registry,
        )
        self._gate_seconds = BatchHistogram(
            "ticketgate_gate_duration_seconds",
            "Time in a gate",
            "gate",
            buckets=_GATE_BUCKETS,
            registry=registry,
        )
        self._batch_seconds = Histogram(
            "ticketgate_batch_duration_seconds",
            "Time in a step of the delivery protocol, by step: claim, decide, commit",
            ["step"],
            buckets=_BATCH_BUCKETS,
            registry=registry,
        )
        self._texts = Counter(
            "ticketgate_scorer_texts",
            "Tickets' texts by what the scorer did: read, or repeated (read before, and remembered)",
            ["outcome"],
            registry=registry,
        )
        self._decisions = DecisionMetrics(registry)
        self._repairs = Counter(
            "ticketgate_repair_attempts",
            "Repairs by the gate that asked for them: granted, or why they ended",
            ["gate", "stop_reason"],
            registry=registry,
        )
        self._effects = Counter(
            "ticketgate_effects",
            "Effects by result: created, replayed, verified_by_readback, settled_by_person, unknown, absent, rejected,"
            " not_ours",
            ["result"],
            registry=registry,
        )
        self.settlements = SettlementMetrics(registry)
        self.policies = PolicyMetrics(registry)
        self._readbacks = Counter(
            "ticketgate_readbacks",
            "Read-backs by result: found, not_found, unreadable",
            ["result"],
            registry=registry,
        )
        self._unknown = Gauge(
            "ticketgate_unknown_outcomes_open", "Effects whose outcome is open", registry=registry
        )
        self._unknown_seconds = Gauge(
            "ticketgate_unknown_outcome_seconds",
            "For how long the oldest open outcome has been open",
            registry=registry,
        )
        self._dead_letters = Counter(
            "ticketgate_dead_letter", "Dead letters by code", ["code"], registry=registry
        )
        self._reopens = Counter(
            "ticketgate_lane_reopens", "Lanes reopened, by cause", ["cause"], registry=registry
        )
        self._unreadable = Gauge(
            "ticketgate_unreadable_batches",
            "1 for a batch that a lane stands before and cannot read",
            ["topic", "partition", "first_offset", "last_offset"],
            registry=registry,
        )
        self._unreadable_now: dict[tuple[str, int], tuple[str, ...]] = {}
        self._worker_deaths = Counter(
            "ticketgate_worker_deaths",
            "Workers that ended without a word, found by the next, by what a lane of theirs was doing: reading,"
            " unpacking, decoding, deciding, committing, hung",
            ["topic", "doing"],
            registry=registry,
        )
        self._fatal_records = Counter(
            "ticketgate_fatal_records",
            "Records given up because they end workers, by where they went: review, dead_letter",
            ["topic", "outcome"],
            registry=registry,
        )
        self._careful = Gauge(
            "ticketgate_careful_offsets",
            "Offsets that a lane still takes one by one, since a worker ended there",
            ["topic", "partition"],
            registry=registry,
        )
        self._lanes = Gauge(
            "ticketgate_lanes", "Input partitions assigned to this worker", ["topic"], registry=registry
        )
        self._ready = Gauge("ticketgate_ready", "1 if /readyz says ready", registry=registry)

    def records(self, topic: str, outcome: str, count: int = 1) -> None:
        """Count input records of `topic` by outcome."""
        if count:
            self._records.labels(topic, outcome).inc(count)

    def gates(self, tally: GateTally) -> None:
        """Count and time the gates of a batch."""
        for stage, seconds in tally.seconds.items():
            self._gate_seconds.observe(stage, seconds)
        for (stage, status), count in tally.said.items():
            self.gate_outcome(stage, "pass" if status is None else status, count)

    def texts(self, counts: TextCounts) -> None:
        """Count tickets' texts, by whether the scorer read them."""
        self._texts.labels("read").inc(counts.read)
        self._texts.labels("repeated").inc(counts.repeated)

    def gate_later(self, stage: Stage) -> Callable[[Verdict | None], None]:
        """An observer of the gate runner (agents/deciding/gate.py) at a look after the one that decided: counts and
        times one gate."""
        started = time.perf_counter()

        def seen(verdict: Verdict | None) -> None:
            self._gate_seconds.observe(stage, (time.perf_counter() - started,))
            self.gate_outcome(stage, _said(verdict), look="later")

        return seen

    def gate_into(self, said: list[GateSaid]) -> Observer:
        """An observer that times each gate, and notes in `said` what is to be counted once it is committed."""

        def observe(stage: Stage) -> Callable[[Verdict | None], None]:
            started = time.perf_counter()

            def seen(verdict: Verdict | None) -> None:
                self._gate_seconds.observe(stage, (time.perf_counter() - started,))
                said.append((stage, _said(verdict)))

            return seen

        return observe

    def gate_outcome(self, stage: Stage, outcome: str, count: int = 1, *, look: Look = "first") -> None:
        """Count what a gate said: `pass`, `malformed`, `replayed`, or a status."""
        if count:
            self._gates.labels(stage, outcome, look).inc(count)

    def decided(self, decisions: Iterable[Decision]) -> None:
        """Count decisions that were committed."""
        self._decisions.count_all(decisions)

    def judged(self, verdict: Verdict) -> None:
        """Count the verdict on a proposal that was committed."""
        self._decisions.count(verdict.status)

    def repair(self, gate: str, stop_reason: str) -> None:
        """Count one repair that was granted, or that ended."""
        self._repairs.labels(gate, stop_reason).inc()

    def effect(self, result: str) -> None:
        """Count one step of an effect that was told of."""
        self._effects.labels(result).inc()

    def read_back(self, result: str) -> None:
        """Count one read-back."""
        self._readbacks.labels(result).inc()

    def open_outcomes(self, count: int, oldest_s: float) -> None:
        """How many outcomes are open, and for how long the oldest."""
        self._unknown.set(count)
        self._unknown_seconds.set(oldest_s)

    def put_aside(self, topic: str, malformed: Iterable[Malformed]) -> None:
        """Count input records of `topic` that went to dead-letter."""
        for each in malformed:
            self.records(topic, "malformed")
            self.gate_outcome(each.stage, "malformed")
            self.dead_lettered(each.code)

    def dead_lettered(self, code: str) -> None:
        """Count one dead letter."""
        self._dead_letters.labels(code).inc()

    def reopened(self, cause: str) -> None:
        """Count one reopening of a lane; `cause` is from recovery.py's table."""
        self._reopens.labels(cause).inc()

    def step(self, name: str, seconds: float) -> None:
        """Time one step of the protocol."""
        self._batch_seconds.labels(name).observe(seconds)

    def unreadable_batch(self, topic: str, partition: int, offsets: range | None) -> None:
        """The batch that a partition's lane stands before and cannot read, or None: at most one for each lane."""
        if (before := self._unreadable_now.pop((topic, partition), None)) is not None:
            self._unreadable.remove(*before)
        if offsets is not None:
            labels = (topic, str(partition), str(offsets.start), str(offsets.stop - 1))
            self._unreadable_now[topic, partition] = labels
            self._unreadable.labels(*labels).set(1)

    def worker_death(self, topic: str, doing: str) -> None:
        """Count one worker that ended without a word, by what its lane was doing."""
        self._worker_deaths.labels(topic, doing).inc()

    def fatal_record(self, topic: str, outcome: str) -> None:
        """Count one record that was given up because it ends workers."""
        self._fatal_records.labels(topic, outcome).inc()

    def careful(self, topic: str, partition: int, offsets: int) -> None:
        """How many offsets a lane still takes one by one."""
        self._careful.labels(topic, str(partition)).set(offsets)

    def lanes(self, topic: str, count: int) -> None:
        """How many lanes there are for an input topic."""
        self._lanes.labels(topic).set(count)

    def expose(self, *, is_ready: bool) -> tuple[bytes, str]:
        """The metrics in Prometheus' text format, and its content type."""
        self._ready.set(is_ready)
        return generate_latest(self._registry), CONTENT_TYPE_LATEST


def _said(verdict: Verdict | None) -> str:
    return "pass" if verdict is None else str(verdict.status)
