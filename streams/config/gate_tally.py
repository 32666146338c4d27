"""What the gates of one batch said and took, to be counted at once (telemetry.py).

Relies on: one thread. It remembers which gate runs, so that no closure is made for each gate of each ticket.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from time import perf_counter

from ticketgate.codecs.verdict import Stage, Status, Verdict


class GateTally:
    """An observer of the gate runner (agents/deciding/gate.py) for one batch.

    said: how often each gate let a case through (None) or gave a status. seconds: what each run of a gate took.
    """

    def __init__(self) -> None:
        self.said: Counter[tuple[Stage, Status | None]] = Counter()
        self.seconds: defaultdict[Stage, list[float]] = defaultdict(list)
        self._stage = Stage.STATE
        self._started = 0.0

    def observe(self, stage: Stage) -> Callable[[Verdict | None], None]:
        """As `Observer`."""
        self._stage = stage
        self._started = perf_counter()
        return self._seen

    def _seen(self, verdict: Verdict | None) -> None:
        took = perf_counter() - self._started
        stage = self._stage
        self.seconds[stage].append(took)
        self.said[stage, None if verdict is None else verdict.status] += 1
