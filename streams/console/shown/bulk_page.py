"""Several tickets at once: a list that was frozen, each with what would follow, and what binds the press to it.

Promise: pure; what is pressed is exactly the lines that may be, as they were shown: `digest` covers each record's hash,
its labels, the policy and the effects.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ticketgate.codecs.records.pieces import Effect
from ticketgate.codecs.records.settlement import Action, effects_digest
from ticketgate.codecs.values.strict import canonical
from ticketgate.streams.console.desk.presses import Pressed
from ticketgate.streams.console.shown.foreign import Foreign, foreign
from ticketgate.streams.console.shown.list_page import ticket_url
from ticketgate.streams.console.shown.ticket_page import ShownEffect, shown_effects
from ticketgate.streams.operations.review.rows import Case

# One person can look through so many, and the lanes take them in a second.
MOST_TICKETS = 200


@dataclass(frozen=True, slots=True)
class Frozen:
    """The list as it was when it was frozen. by: whose it is. more: how many did not fit in."""

    id: str
    by: str
    action: Action
    cases: tuple[Case, ...]
    query: str
    more: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkLine:
    """One ticket of it. pressed: what a press would say; None for what is left out, of which `reasons` say why."""

    case: Case
    pressed: Pressed | None
    reasons: tuple[str, ...] = ()
    effects: tuple[Effect, ...] = ()

    @property
    def name(self) -> Foreign:
        """The ticket's id."""
        return foreign(self.case.ticket_id, most=80)

    @property
    def says(self) -> Foreign:
        """The text's beginning."""
        return foreign(self.case.says)

    @property
    def why_not(self) -> Foreign:
        """Why it is left out."""
        return foreign("; ".join(self.reasons), most=400)

    @property
    def url(self) -> str:
        """The ticket's page."""
        return ticket_url(self.case)

    @property
    def labels(self) -> tuple[str, ...]:
        """Those that it would be accepted with."""
        return () if self.pressed is None else tuple(sorted(self.pressed.labels))

    @property
    def shown_effects(self) -> tuple[ShownEffect, ...]:
        """What would follow, to read."""
        return shown_effects(self.effects)


@dataclass(frozen=True, slots=True)
class Bulk:
    """All lines, those that may be pressed first."""

    lines: tuple[BulkLine, ...]

    @property
    def ready(self) -> tuple[BulkLine, ...]:
        """Those that a press is about."""
        return tuple(each for each in self.lines if each.pressed is not None)

    @property
    def left_out(self) -> tuple[BulkLine, ...]:
        """The others."""
        return tuple(each for each in self.lines if each.pressed is None)

    @property
    def tools(self) -> tuple[tuple[str, int], ...]:
        """How many effects of each tool would follow, the commonest first."""
        return tuple(Counter(effect.tool for line in self.ready for effect in line.effects).most_common())

    @property
    def digest(self) -> str:
        """By which the press names what was shown."""
        return digest_of(self.ready)


def digest_of(lines: Sequence[BulkLine]) -> str:
    """SHA-256 over what each line says."""
    said = [
        [
            each.case.place,
            each.case.sha256,
            str(each.pressed.action),
            sorted(each.pressed.labels),
            each.pressed.policy.hash if each.pressed.policy else "",
            effects_digest(each.effects),
        ]
        for each in lines
        if each.pressed is not None
    ]
    return hashlib.sha256(canonical({"lines": said})).hexdigest()
