"""What a worker counts of settlements; telemetry.py has the rest."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram

# A minute to a month.
_BUCKETS = (60.0, 600.0, 3600.0, 14_400.0, 86_400.0, 259_200.0, 604_800.0, 2_592_000.0)


class SettlementMetrics:
    """The metrics of settlements, in a process' registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._settlements = Counter(
            "ticketgate_settlements",
            "Settlements by outcome: accepted, rejected, returned, already_settled, replayed, void_ and why",
            ["outcome"],
            registry=registry,
        )
        self._seconds = Histogram(
            "ticketgate_time_to_settle_seconds",
            "From a ticket's decision for review to its settlement",
            buckets=_BUCKETS,
            registry=registry,
        )

    def settled(self, outcome: str, waited_s: float | None) -> None:
        """Count one settlement, and, if it took effect, for how long its ticket lay in review."""
        self._settlements.labels(outcome).inc()
        if waited_s is not None:
            self._seconds.observe(waited_s)
