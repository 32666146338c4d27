"""What the four systems came to: rates with intervals, and what each cause changed, request by request.

Promise: the report names the SHA-256 of the predictions that were written down before, of the requests and of the
catalogue, so that nobody can predict afterwards. A cause is one change, held against the same requests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist
from typing import Final
from xml.sax.saxutils import escape

from ticketgate.agents.workbench.funnel.comparing import SYSTEMS, System, Tried
from ticketgate.agents.workbench.funnel.rates import CONFIDENCE, Rate
from ticketgate.codecs.values.strict import JsonValue

_Z: Final = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)

# What is changed, from which system to which.
CAUSES: Final[Mapping[str, tuple[System, System]]] = {
    "asking again": ("P", "R"),
    "constraint": ("P", "C"),
    "a way to abstain": ("C-", "C"),
    "gates": ("C", "G"),
}
MEASURES: Final[Mapping[str, tuple[Callable[[Tried], bool | None], str, bool]]] = {
    "conforming": (lambda each: each.conforming, "requests", True),
    "faithful": (lambda each: each.faithful, "requests with a label", True),
    "right": (lambda each: each.right, "requests", True),
    "unsafe_effect": (lambda each: each.unsafe, "requests", False),
}


@dataclass(frozen=True, slots=True)
class Change:
    """What one cause changed of one measure: the share of requests that turned, net, with an interval for pairs."""

    cause: str
    measure: str
    gained: int
    lost: int
    total: int

    @property
    def difference(self) -> float | None:
        """In shares of 1; None over nothing."""
        return (self.gained - self.lost) / self.total if self.total else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Wald's for paired shares, with half a request added to each side, so that no turn is not certainty."""
        if not self.total:
            return None
        gained, lost, n = self.gained + 0.5, self.lost + 0.5, self.total + 1
        middle = (gained - lost) / n
        half = _Z * sqrt(gained + lost - (gained - lost) ** 2 / n) / n
        return max(-1.0, middle - half), min(1.0, middle + half)

    def to_json(self) -> dict[str, JsonValue]:
        """The change for programs."""
        interval = self.interval
        return {
            "cause": self.cause,
            "from": CAUSES[self.cause][0],
            "to": CAUSES[self.cause][1],
            "measure": self.measure,
            "gained": self.gained,
            "lost": self.lost,
            "of": self.total,
            "difference": self.difference,
            "interval": None if interval is None else [*interval],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The report. hashes: SHA-256 of the predictions, of the requests and of the catalogue."""

    hashes: Mapping[str, str]
    tried: Mapping[System, Sequence[Tried]]

    def rates(self, system: System) -> tuple[Rate, ...]:
        """A system's rates, in the order of MEASURES."""
        found: list[Rate] = []
        for name, (measure, over, is_wanted) in MEASURES.items():
            known = [value for each in self.tried[system] if (value := measure(each)) is not None]
            found.append(Rate(name, sum(known), len(known), over, is_wanted))
        return tuple(found)

    @property
    def changes(self) -> tuple[Change, ...]:
        """Each cause on each measure."""
        return tuple(
            _change(cause, name, self.tried[before], self.tried[after])
            for cause, (before, after) in CAUSES.items()
            for name in MEASURES
        )

    def to_json(self) -> dict[str, JsonValue]:
        """The report for programs."""
        return {
            "schema": "comparison/1",
            **self.hashes,
            "systems": {
                system: {
                    "rates": {each.name: each.to_json() for each in self.rates(system)},
                    "asked": sum(each.asked for each in tried),
                    "seconds": sum(each.seconds for each in tried),
                    "seconds_per_right_outcome": _per_right(tried),
                }
                for system, tried in self.tried.items()
            },
            "causes": [each.to_json() for each in self.changes],
        }

    def lines(self) -> list[str]:
        """The report as people read it."""
        lines = [f"{name.removesuffix('_sha256')}: {value}" for name, value in self.hashes.items()]
        lines += ["95 % intervals; (-) is better low", ""]
        for system in SYSTEMS:
            for each in self.rates(system):
                value, fraction, interval = each.shown()
                name = f"{each.name}{'' if each.is_wanted else ' (-)'}"
                lines.append(f"{system:3} {name:18} {value:>7} {fraction:>12} {interval:>18}")
            tried = self.tried[system]
            per = _per_right(tried)
            told = "none was right" if per is None else f"{per:.3g} s per right outcome"
            lines.append(f"{system:3} asked {sum(each.asked for each in tried)} times, {told}")
        lines.append("")
        for change in self.changes:
            if change.difference is None or change.interval is None:
                continue
            low, high = (100 * each for each in change.interval)
            before, after = CAUSES[change.cause]
            lines.append(
                f"{change.cause} ({before} to {after}): {change.measure} {100 * change.difference:+.1f} points"
                f" ({low:+.1f} to {high:+.1f}), {change.gained} gained, {change.lost} lost"
            )
        return lines

    def plot(self) -> str:
        """The rates with their intervals as a picture, SVG."""
        row, left, width = 22, 210, 400
        bars: list[str] = []
        place = 0
        for name in MEASURES:
            for system in SYSTEMS:
                rate = next(each for each in self.rates(system) if each.name == name)
                y = 30 + place * row
                place += 1
                bars.append(f'<text x="8" y="{y + 5}">{escape(name)}, {system}</text>')
                if rate.value is None or rate.interval is None:
                    continue
                low, high = (left + width * each for each in rate.interval)
                at = left + width * rate.value
                bars.append(f'<line x1="{low:.1f}" x2="{high:.1f}" y1="{y}" y2="{y}" stroke="#555"/>')
                bars.append(f'<circle cx="{at:.1f}" cy="{y}" r="4" fill="#127"/>')
            place += 1
        height = 50 + place * row
        axis = "".join(
            f'<text x="{left + width * share:.0f}" y="16" text-anchor="middle">{share:.0%}</text>'
            f'<line x1="{left + width * share:.0f}" x2="{left + width * share:.0f}" y1="20" y2="{height - 10}"'
            ' stroke="#ddd"/>'
            for share in (0.0, 0.25, 0.5, 0.75, 1.0)
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 40}" height="{height}"'
            f' font-family="sans-serif" font-size="12">{axis}{"".join(bars)}</svg>\n'
        )


def _change(cause: str, name: str, before: Sequence[Tried], after: Sequence[Tried]) -> Change:
    measure = MEASURES[name][0]
    pairs = [
        (one, other)
        for earlier, later in zip(before, after, strict=True)
        if (one := measure(earlier)) is not None and (other := measure(later)) is not None
    ]
    gained = sum(not one and other for one, other in pairs)
    lost = sum(one and not other for one, other in pairs)
    return Change(cause, name, gained, lost, len(pairs))


def _per_right(tried: Sequence[Tried]) -> float | None:
    right = sum(each.right for each in tried)
    return sum(each.seconds for each in tried) / right if right else None
