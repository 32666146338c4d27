"""A row: one fixture, number, case or command of a requirement, what it says, and the product's answer to it.

Promise: `came` calls the product, and a row holds only where its answer equals what the requirement says. Nothing is
caught but what a row asks for with `refusal`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

ROWS: list[Row] = []


@dataclass(frozen=True)
class Row:
    """seed: `000`, `001` or `003`. says: the fact, as the requirement has it."""

    seed: str
    what: str
    says: Any
    came: Callable[[], Any]

    @property
    def name(self) -> str:
        return f"{self.seed} {self.what}"


def row(seed: str, what: str, says: Any, came: Callable[[], Any]) -> None:
    """Add one row."""
    ROWS.append(Row(seed, what, says, came))


def refusal(act: Callable[[], Any], *kinds: type[Exception]) -> str:
    """What `act` is refused with; "not refused" where it is not."""
    try:
        act()
    except kinds as err:
        return str(err)
    return "not refused"
