"""A rate with what it is a rate of: numerator, denominator, an interval; and how it is shown.

Promise: a rate over nothing is no number. What is shown never rounds to all or none unless it is.
"""

from dataclasses import dataclass
from math import ceil, floor, sqrt
from statistics import NormalDist
from typing import Final

from ticketgate.codecs.values.strict import JsonValue

CONFIDENCE: Final = 0.95
_Z: Final = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)


@dataclass(frozen=True, slots=True)
class Rate:
    """`count` of `total`. over: what is counted in `total`, in words. is_wanted: whether more of it is better."""

    name: str
    count: int
    total: int
    over: str
    is_wanted: bool = True

    @property
    def value(self) -> float | None:
        """The rate, None over nothing."""
        return self.count / self.total if self.total else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Wilson's interval for independent cases: it stays within 0 and 1, and is sensible for few cases and for
        rates of 0 and 1. Cases that are attempts at one case are not independent, and make it too narrow."""
        if not self.total:
            return None
        share, n, z2 = self.count / self.total, self.total, _Z * _Z
        middle = (share + z2 / (2 * n)) / (1 + z2 / n)
        half = _Z * sqrt(share * (1 - share) / n + z2 / (4 * n * n)) / (1 + z2 / n)
        return (
            0.0 if self.count == 0 else max(0.0, middle - half),
            1.0 if self.count == n else min(1.0, middle + half),
        )

    def shown(self) -> tuple[str, str, str]:
        """The rate, the fraction and the interval as people read them."""
        if self.value is None or self.interval is None:
            return "", "none of 0", ""
        low, high = self.interval
        return (
            f"{_percent(self.value)} %",
            f"{self.count} of {self.total}",
            f"{_percent(low)} to {_percent(high)} %",
        )

    def to_json(self) -> dict[str, JsonValue]:
        """The rate for programs; `rate` and `interval` null over nothing."""
        interval = self.interval
        return {
            "numerator": self.count,
            "denominator": self.total,
            "rate": self.value,
            "interval": None if interval is None else [*interval],
            "over": self.over,
            "better": "high" if self.is_wanted else "low",
        }


def _percent(share: float) -> str:
    tenths = round(share * 1000)
    # 99.97 % is not all, and 0.02 % is not none.
    if tenths == 1000 and share < 1:
        tenths = floor(share * 1000)
    if tenths == 0 and share > 0:
        tenths = ceil(share * 1000)
    return f"{tenths / 10:.1f}"
