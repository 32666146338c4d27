"""What may stand between the quotes of a string: lengths, choices, amounts, dates, character by character.

Promise: a state is alive exactly if some whole content begins so, and whole exactly if the catalogue's field of that
kind reads it. States are few where that costs nothing, so that a mask is found once for all that are alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, Protocol

State = Any  # a hashable value that belongs to its machine; None is the dead state


class Content(Protocol):
    """What stands between quotes."""

    def nothing(self) -> State:
        """Of no characters."""
        ...

    def add(self, state: State, character: str) -> State | None:
        """Of one more character; None if no whole content begins so."""
        ...

    def is_whole(self, state: State) -> bool:
        """Whether the content may end here."""
        ...


@dataclass(frozen=True, slots=True)
class Length:
    """Any characters, so many of them. `most` None: no bound. The state is the count, which stops where it no longer
    matters."""

    least: int
    most: int | None

    def nothing(self) -> State:
        """None yet."""
        return 0

    def add(self, state: State, character: str) -> State | None:
        """One more."""
        if self.most is None:
            return min(state + 1, self.least)
        return state + 1 if state < self.most else None

    def is_whole(self, state: State) -> bool:
        """Enough of them."""
        return bool(state >= self.least)


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of some texts. The state is what was read."""

    texts: tuple[str, ...]

    def nothing(self) -> State:
        """Nothing read."""
        return ""

    def add(self, state: State, character: str) -> State | None:
        """One more, if a text goes on so."""
        read = state + character
        return read if any(text.startswith(read) for text in self.texts) else None

    def is_whole(self, state: State) -> bool:
        """One of them."""
        return state in self.texts


@dataclass(frozen=True, slots=True)
class Money:
    """A plain decimal of at most 15 and 2 digits within bounds, in pence. The state is what was read, cut to what
    matters where the bounds are at zero: sign, number of digits, whether any is not 0, digits after the point."""

    least: int
    most: int | None

    def nothing(self) -> State:
        """Nothing read."""
        return ""

    def add(self, state: State, character: str) -> State | None:
        """One more, if an amount within the bounds goes on so."""
        read = state + character
        if character not in "-.0123456789" or not _is_money_prefix(read):
            return None
        return self._cut(read) if self._can_end(read) else None

    def is_whole(self, state: State) -> bool:
        """An amount within the bounds."""
        return state not in ("", "-") and not state.endswith(".") and self._has(pence(state))

    def _has(self, value: int) -> bool:
        return value >= self.least and (self.most is None or value <= self.most)

    def _can_end(self, read: str) -> bool:
        """Whether some ending lies within the bounds: for each number of further digits a stretch of values."""
        sign, digits = (-1, read[1:]) if read.startswith("-") else (1, read)
        whole, point, places = digits.partition(".")
        stretches: list[tuple[int, int]] = []
        if point:
            low = int(whole) * 100 + int((places + "00")[:2])
            stretches.append((low, low + 10 ** (2 - len(places)) - 1))
        elif not whole:
            stretches.append((0, 10**17 - 1))
        else:
            further = 0 if whole == "0" else 15 - len(whole)
            stretches += [
                (int(whole) * 10**k * 100, (int(whole) + 1) * 10**k * 100 - 1) for k in range(further + 1)
            ]
        if sign < 0:
            stretches = [(-high, -low) for low, high in stretches]
        return any(high >= self.least and (self.most is None or low <= self.most) for low, high in stretches)

    def _cut(self, read: str) -> str:
        """A shorter or equal text from which the same endings lead to the same end, so that there are few states."""
        if self.most is not None or self.least not in (0, 1) or read.startswith("-"):
            return read
        return "".join("1" if each in "123456789" else each for each in read)


@dataclass(frozen=True, slots=True)
class Day:
    """A calendar date such as 2026-09-04. The state is what was read."""

    def nothing(self) -> State:
        """Nothing read."""
        return ""

    def add(self, state: State, character: str) -> State | None:
        """One more, if a date goes on so."""
        read = state + character
        if len(read) > 10 or character not in "-0123456789":
            return None
        return read if _is_date_prefix(read) else None

    def is_whole(self, state: State) -> bool:
        """A whole date."""
        return len(state) == 10


def pence(text: str) -> int:
    return int(Decimal(text) * 100)


def _is_money_prefix(read: str) -> bool:
    whole, point, places = read.removeprefix("-").partition(".")
    if whole.startswith("0") and whole != "0":
        return False
    if not all(part.isdigit() or not part for part in (whole, places)) or len(whole) > 15 or len(places) > 2:
        return False
    return bool(whole) if point else True


def _is_date_prefix(read: str) -> bool:
    """Whether a date begins so. Day and month are few enough to be tried."""
    for place, character in enumerate(read):
        if (character == "-") != (place in (4, 7)):
            return False
    if len(read) < 5:
        # Year 0000 is none.
        return read != "0000"
    year = int(read[:4])
    return any(_day(year, month, day).startswith(read) for month, day in _month_days(year))


def _month_days(year: int) -> Sequence[tuple[int, int]]:
    return _LEAP if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else _COMMON


def _day(year: int, month: int, day: int) -> str:
    return f"{year:04d}-{month:02d}-{day:02d}"


def _all_days(year: int) -> tuple[tuple[int, int], ...]:
    start = date(year, 1, 1).toordinal()
    days = (date.fromordinal(start + n) for n in range(366))
    return tuple((each.month, each.day) for each in days if each.year == year)


_COMMON, _LEAP = _all_days(2026), _all_days(2024)
