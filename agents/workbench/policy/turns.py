"""Recorded decisions that come out otherwise: how many by kind, and some of each by name."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from ticketgate.codecs.values.strict import JsonValue

# So many tickets of each kind of change are named.
MAX_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class Turn:
    """One decision that comes out otherwise: its ticket, and what is said before and after."""

    ticket_id: str
    before: str
    after: str
    reasons: tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class Turns:
    """What became of records. `turned` by kind, such as `accept to review`; `examples` has the first of each kind."""

    same: int = 0
    turned: Counter[str] = field(default_factory=Counter)
    by_another_policy: int = 0
    examples: dict[str, list[Turn]] = field(default_factory=dict)

    @property
    def compared(self) -> int:
        """How many have a before and an after."""
        return self.same + self.turned.total()

    def add(self, kind: str, turn: Turn) -> None:
        """Count a decision that comes out otherwise, and name it if it is among the first."""
        self.turned[kind] += 1
        named = self.examples.setdefault(kind, [])
        if len(named) < MAX_NAMED:
            named.append(turn)

    def examples_to_json(self) -> dict[str, JsonValue]:
        """Those that are named, by kind."""
        return {
            kind: [
                {
                    "ticket_id": each.ticket_id,
                    "before": each.before,
                    "after": each.after,
                    "reasons": list(each.reasons),
                }
                for each in turns
            ]
            for kind, turns in self.examples.items()
        }
