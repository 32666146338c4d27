"""Numbers of JSON that no float holds, such as a decimal of twenty digits: kept as the text that was sent.

Promise: such a number is written again as it was read, and canonically in one form for equal numbers; nothing is
rounded unless somebody computes with it, for it is a float besides. What a float holds exactly stays a plain float.
"""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import Any, Self

__all__ = ["Exact", "number_of"]

_PARTS = re.compile(r"(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?")
# An exponent of more digits is as good as no number, and slow to read.
_MOST_EXPONENT_DIGITS = 18
# Written out with zeros up to here, and with an exponent beyond.
_MOST_PLACES = 40


class Exact(float):
    """The float next to a number, and in `text` the number itself, as JSON has it."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> Self:
        """The number that a JSON text writes."""
        made = super().__new__(cls, text)
        made.text = text
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        return (self.text,)

    def __str__(self) -> str:
        return self.text

    def normal(self) -> int | Exact:
        """The number in the one form that equal numbers have: an integer, if it is one of at most 64 bits."""
        found = _PARTS.fullmatch(self.text)
        if found is None or len(found[4] or "") > _MOST_EXPONENT_DIGITS:
            return self
        sign, fraction = found[1], found[3] or ""
        digits = (found[2] + fraction).lstrip("0")
        places = len(fraction) - int(found[4] or "0")
        kept = digits.rstrip("0")
        places -= len(digits) - len(kept)
        if not kept:
            return 0
        if places <= 0 and len(kept) - places <= _MOST_EXPONENT_DIGITS:
            return int(f"{sign}{kept}{'0' * -places}")
        if 0 < places <= _MOST_PLACES:
            whole, rest = kept[:-places] or "0", kept[-places:].rjust(places, "0")
            return Exact(f"{sign}{whole}.{rest}")
        return Exact(f"{sign}{kept}e{-places}")


def number_of(text: str) -> float:
    """The number that a JSON text with a point or an exponent writes: `Exact`, if no float is just that.

    A float may be written with 17 digits, as many programs do, or with as few as tell it from its neighbours.
    """
    number = float(text)
    try:
        return number if _is_held(text, number) else Exact(text)
    except InvalidOperation:
        # An exponent beyond what a decimal has.
        return Exact(text)


def _is_held(text: str, number: float) -> bool:
    shortest = repr(number)
    return text == shortest or Decimal(text) in (Decimal(shortest), Decimal(f"{number:.17g}"))
