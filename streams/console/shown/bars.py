"""An answer as a bar against its threshold.

Promise: a bar reaches its threshold's mark exactly when the answer reaches the threshold, and so do the numbers beside
it: however near the two are, rounding puts neither on the other's side.
"""

from __future__ import annotations

from dataclasses import dataclass

# Of a bar's whole length: finer than any screen shows.
WHOLE = 1_000
# Numbers are written with so many digits, and with more where they would look equal.
LEAST_DIGITS, MOST_DIGITS = 2, 17


@dataclass(frozen=True, slots=True)
class Bar:
    """filled, mark: of WHOLE; mark None where there is no threshold. reaches: whether the answer does. chance,
    threshold: as numbers to read; threshold is empty without one."""

    label: str
    filled: int
    mark: int | None
    reaches: bool
    chance: str
    threshold: str


def bar(label: str, chance: float, threshold: float | None = None) -> Bar:
    """The bar of a probability. Both in [0, 1]; what lies outside is drawn at the nearest end."""
    if threshold is None:
        return Bar(
            label, _drawn(chance), None, reaches=True, chance=_rounded(chance, LEAST_DIGITS), threshold=""
        )
    reaches = chance >= threshold
    # A mark has room on both of its sides, unless the threshold is at an end, where one side has nothing to show.
    mark = min(max(_drawn(threshold), 1), WHOLE)
    filled = max(_drawn(chance), mark) if reaches else min(_drawn(chance), mark - 1)
    shown, bound = _apart(chance, threshold)
    return Bar(label, filled, mark, reaches, shown, bound)


def _drawn(value: float) -> int:
    return round(min(max(value, 0.0), 1.0) * WHOLE)


def _apart(chance: float, threshold: float) -> tuple[str, str]:
    """Both with the fewest digits with which they compare as they are."""
    for digits in range(LEAST_DIGITS, MOST_DIGITS + 1):
        one, other = _rounded(chance, digits), _rounded(threshold, digits)
        is_same_order = (float(one) > float(other)) == (chance > threshold)
        if is_same_order and (float(one) == float(other)) == (chance == threshold):
            return one, other
    return repr(chance), repr(threshold)


def _rounded(value: float, digits: int) -> str:
    """Rounded, but certain only if it is: what is not 0 or 1 is not written so."""
    text = f"{value:.{digits}f}"
    while float(text) in (0.0, 1.0) and value != float(text) and digits < MOST_DIGITS:
        digits += 1
        text = f"{value:.{digits}f}"
    return text if float(text) not in (0.0, 1.0) or value == float(text) else repr(value)
