"""How much waits for people, as metrics: from a view, in whatever process keeps one."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Gauge

STATES = ("waiting", "expired")


class ReviewMetrics:
    """Gauges in a process' registry, without a series before the first telling: nothing is not the same as none."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._records = Gauge(
            "ticketgate_review_records",
            "Decisions in review by state: waiting, and expired, which waited until their tickets' claims were over",
            ["state"],
            registry=registry,
        )
        self._oldest = Gauge(
            "ticketgate_review_oldest_seconds", "For how long the oldest has been waiting", registry=registry
        )
        self._is_known = Gauge(
            "ticketgate_review_known", "1 if the view is there that these numbers are from", registry=registry
        )

    def tell(self, numbers: Mapping[str, int], *, now_ms: int) -> None:
        """numbers: the view's own (`View.numbers`)."""
        for state in STATES:
            self._records.labels(state).set(numbers[state])
        oldest_ms = numbers["oldest_ms"]
        self._oldest.set(max(0, now_ms - oldest_ms) / 1000 if oldest_ms else 0)
        self._is_known.set(1)

    def forget(self) -> None:
        """There is no view: it is being made, or its file is gone."""
        self._records.clear()
        self._oldest.set(0)
        self._is_known.set(0)
