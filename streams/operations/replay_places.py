"""From where a group reads again: what a person may ask of a replay (replay.py)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class FromMarks:
    """Where commits ended: the remedy for offsets that were reset."""


@dataclass(frozen=True, slots=True)
class FromCut:
    """The first input that was not decided, also below what was committed: the remedy for a topic that lost its end."""


@dataclass(frozen=True, slots=True)
class FromBeginning:
    """The first record that is still there."""


@dataclass(frozen=True, slots=True)
class FromOffset:
    """An offset of one partition."""

    offset: int


@dataclass(frozen=True, slots=True)
class FromTime:
    """The first record that is not older."""

    at: datetime


ReplayFrom: TypeAlias = FromMarks | FromCut | FromBeginning | FromOffset | FromTime
