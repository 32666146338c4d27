"""What stands between this process and its work, told truthfully to /readyz.

Promise: the process is ready exactly when no part has a reason to wait. See ARCHITECTURE.md#delivery.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

log = logging.getLogger(__name__)

# What a lane waits for under a name that is not its own, since others wait for the same.
SCORER = "scorer"
LOOKUP = "lookup"


class Readiness:
    """Reasons by part (`kafka`, `redis`, `lane tickets:0`); a part without one works."""

    def __init__(self, *waiting_for: str) -> None:
        self._reasons = dict.fromkeys(waiting_for, "starting")

    @property
    def is_ready(self) -> bool:
        """Whether every part works."""
        return not self._reasons

    @property
    def reasons(self) -> Mapping[str, str]:
        """Why not, by part."""
        return dict(sorted(self._reasons.items()))

    def wait(self, part: str, reason: str) -> None:
        """Say that a part cannot work, and why."""
        if self._reasons.get(part) != reason:
            log.debug("%s waits: %s", part, reason)
        self._reasons[part] = reason

    def work(self, part: str) -> None:
        """Say that a part works, or is gone."""
        self._reasons.pop(part, None)

    def lanes_ended(self, names: Iterable[str]) -> None:
        """Say that these lanes are gone, and what kept them waiting with them: a lane that waits on for the same says
        so again."""
        for part in (*names, SCORER, LOOKUP):
            self.work(part)
