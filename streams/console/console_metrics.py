"""What the console counts: Prometheus metrics with bounded labels, in seconds; never a person or a ticket."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from ticketgate.streams.operations.review.review_metrics import ReviewMetrics

# A person notices a tenth of a second, and minds a third.
_BUCKETS = (
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.075,
    0.1,
    0.15,
    0.2,
    0.3,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
)


class ConsoleMetrics:
    """The metrics of one console, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self._seconds = Histogram(
            "ticketgate_console_request_duration_seconds",
            "Server time of a request, from its header to its answer, without its streams",
            ["route", "method", "status"],
            buckets=_BUCKETS,
            registry=registry,
        )
        self._sign_ins = Counter(
            "ticketgate_console_sign_ins",
            "Attempts to sign in by outcome: signed_in, refused, slowed, by_proxy, unknown_to_us",
            ["outcome"],
            registry=registry,
        )
        self._sessions = Gauge("ticketgate_console_sessions", "Sessions that are open", registry=registry)
        self.review = ReviewMetrics(registry)
        self._ready = Gauge("ticketgate_ready", "Whether the process is ready (1 or 0)", registry=registry)

    def answered(self, *, route: str, method: str, status: int, seconds: float) -> None:
        """A request was answered. route: as it is written, such as `/ticket/{key}`."""
        self._seconds.labels(route, method, f"{status // 100}xx").observe(seconds)

    def signed_in(self, outcome: str) -> None:
        """Somebody tried to sign in."""
        self._sign_ins.labels(outcome).inc()

    def count_sessions_by(self, count: Callable[[], float]) -> None:
        """Where the number of sessions comes from."""
        self._sessions.set_function(count)

    def expose(self, *, is_ready: bool) -> tuple[bytes, str]:
        """The metrics in Prometheus' text format, and its content type."""
        self._ready.set(is_ready)
        return generate_latest(self.registry), CONTENT_TYPE_LATEST
