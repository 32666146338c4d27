"""How long to wait before a process is started again: exponential with full jitter, begun anew after a healthy time.

Source: "Exponential Backoff And Jitter" (AWS Architecture Blog): a wait anywhere between nothing and the bound spreads
those that failed together best.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

# The first start again is prompt: most ends are a single fault. A broker that is away is asked twice a minute then.
FIRST_S = 1.0
MOST_S = 30.0
# Ready for so long, a process was started well, and what ends it then is something new.
HEALTHY_S = 60.0
# So many ends in a row are no accident.
LOOP_ENDS = 3


@dataclass(slots=True)
class Backoff:
    """Counts the ends in a row of one process."""

    first_s: float = FIRST_S
    most_s: float = MOST_S
    healthy_s: float = HEALTHY_S
    between: Callable[[float, float], float] = random.uniform
    ends: int = field(default=0, init=False)

    def next_s(self, *, ready_s: float | None) -> float:
        """How long to wait after an end. ready_s: for how long it had been ready; None: it never was."""
        if ready_s is not None and ready_s >= self.healthy_s:
            self.ends = 0
        # A process that ended a thousand times has no larger power to wait for.
        bound_s = min(self.most_s, self.first_s * 2.0 ** min(self.ends, 32))
        self.ends += 1
        return self.between(0.0, bound_s)

    @property
    def is_loop(self) -> bool:
        """Whether it ended too often in a row to be an accident."""
        return self.ends >= LOOP_ENDS
