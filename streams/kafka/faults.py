"""What a lane does about a fault: reopen or refuse, with the word for metrics and the remedy.

recovery.py has the table from the errors of others; a fault of our own brings its row with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Action(Enum):
    """What a lane does next."""

    REOPEN = "reopen"
    """Drop the producer and go to step 1 after a back-off: it heals itself."""

    REFUSE = "refuse"
    """Stand still, say why in /readyz and the log, and look again from time to time: a person must act."""


@dataclass(frozen=True, slots=True)
class Handling:
    """The action, the bounded word for metrics and `/readyz`, and for a refusal the remedy."""

    action: Action
    cause: str
    remedy: str = ""


class LaneFault(Exception):
    """A lane found that it cannot go on; the fault brings its own row of the table."""

    def __init__(self, what: str, handling: Handling) -> None:
        super().__init__(what)
        self.handling = handling
