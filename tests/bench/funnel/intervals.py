"""Rates and means with their intervals.

Wilson's interval for a share, at 95 %; for a ratio of sums the percentile bootstrap over requests, by the seed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_Z = 1.959964
_SAMPLES = 1_000


@dataclass(frozen=True, slots=True)
class Share:
    """So many of so many."""

    part: int
    whole: int

    @property
    def value(self) -> float:
        """The share; not a number of nothing."""
        return self.part / self.whole if self.whole else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's."""
        if not self.whole:
            return math.nan, math.nan
        p, n = self.value, self.whole
        middle = (p + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
        half = _Z / (1 + _Z**2 / n) * math.sqrt(p * (1 - p) / n + _Z**2 / (4 * n**2))
        return max(0.0, middle - half), min(1.0, middle + half)

    def __str__(self) -> str:
        if not self.whole:
            return "none"
        low, high = self.interval
        return f"{self.value:.3f} ({low:.3f} to {high:.3f}) of {self.whole}"


@dataclass(frozen=True, slots=True)
class Ratio:
    """A sum over requests for each unit of another."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        if math.isinf(self.value):
            return "no end"
        return f"{_short(self.value)} ({_short(self.low)} to {_short(self.high)})"


def ratio(above: Sequence[float], below: Sequence[float], *, seed: int) -> Ratio:
    """Sum above for each unit below, resampled by requests. Infinite where there is none below."""
    tops, bottoms = np.asarray(above, dtype=float), np.asarray(below, dtype=float)
    if not bottoms.sum():
        return Ratio(math.inf, math.inf, math.inf)
    picks = _picks(len(tops), seed)
    sums = bottoms[picks].sum(axis=1)
    return _between(tops.sum() / bottoms.sum(), tops[picks].sum(axis=1)[sums > 0] / sums[sums > 0])


def paired(
    mine: tuple[Sequence[float], Sequence[float]],
    other: tuple[Sequence[float], Sequence[float]],
    *,
    seed: int,
) -> Ratio:
    """One ratio of sums over another, both (above, below) of the same requests, which are resampled together."""
    a, b, c, d = (np.asarray(each, dtype=float) for each in (*mine, *other))
    if not (b.sum() and c.sum() and d.sum()):
        return Ratio(math.inf, math.inf, math.inf)
    picks = _picks(len(a), seed)
    sums = [each[picks].sum(axis=1) for each in (a, b, c, d)]
    with np.errstate(divide="ignore", invalid="ignore"):
        found = (sums[0] / sums[1]) / (sums[2] / sums[3])
    return _between((a.sum() / b.sum()) / (c.sum() / d.sum()), found[np.isfinite(found)])


def _picks(count: int, seed: int) -> NDArray[np.int64]:
    return np.random.Generator(np.random.PCG64(seed)).integers(0, count, (_SAMPLES, count))


def _between(value: float, resampled: NDArray[np.float64]) -> Ratio:
    found = np.sort(resampled)
    low, high = found[int(0.025 * len(found))], found[min(len(found) - 1, int(0.975 * len(found)))]
    return Ratio(float(value), float(low), float(high))


def _short(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.2f}"
