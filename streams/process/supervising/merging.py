"""The metrics of several processes as those of one: counters and histograms summed, gauges by the rule of each.

Promise: a counter never goes back. What a process had counted when it was last asked stays counted after its end; what
it counted between that and a kill -9 is lost, as it is to whoever reads the metrics of a single worker.

Why not prometheus_client's own multiprocess mode: it cannot remove a series (an unreadable batch that was given up,
the policy of before), it writes to files at each count, and each start of a process leaves files of a megabyte.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

log = logging.getLogger(__name__)

Rule = Literal["sum", "most", "least", "each"]

GAUGES: dict[str, Rule] = {
    "ticketgate_lanes": "sum",
    # All, or it is not: a deployment that goes on to the next machine asks for no less.
    "ticketgate_ready": "least",
    # Each process reads them from the same Redis.
    "ticketgate_unknown_outcomes_open": "most",
    "ticketgate_unknown_outcome_seconds": "most",
    # Of one partition, which one process at a time has.
    "ticketgate_unreadable_batches": "most",
    "ticketgate_careful_offsets": "most",
    "ticketgate_policy_info": "most",
    # Each process has a policy in force, and all of them shall be kept.
    "ticketgate_policy_kept": "least",
}
"""How a gauge of several processes is told as one. One that is not named here is told by process ("each")."""

# prometheus_client's gauge of when a counter began: that of the first, whatever came after.
_CREATED = "_created"
_KEPT = ("counter", "histogram", "summary")

_Labels = tuple[tuple[str, str], ...]
_Key = tuple[str, str, _Labels]


@dataclass(slots=True)
class _Counted:
    """One name's series. exposed: what its process said that was asked last, by its number. before: of those before
    it."""

    number: int = 0
    exposed: str = ""
    before: dict[_Key, float] = field(default_factory=dict)
    families: dict[str, Metric] = field(default_factory=dict)

    def now(self) -> tuple[Metric, ...]:
        """Parsed here, and not at each answer: of those, one a second, hardly any is looked at."""
        try:
            return tuple(text_string_to_metric_families(self.exposed))
        except ValueError as err:
            log.error("what process %d said are no metrics: %s", self.number, err)
            return ()


class MergedMetrics:
    """What the processes said, as one. Names are those of places, in each of which one process follows the other."""

    def __init__(self) -> None:
        self._counted: dict[str, _Counted] = {}

    def take(self, name: str, number: int, exposed: str) -> None:
        """What the process `number` of a place said: Prometheus' text format."""
        counted = self._counted.setdefault(name, _Counted())
        if number < counted.number:  # asked before its successor, and answered after it
            return
        if number > counted.number:
            self._keep(counted)
            counted.number = number
        counted.exposed = exposed

    def gone(self, name: str, number: int) -> None:
        """The process `number` of a place has ended: it has no gauges any more."""
        counted = self._counted.get(name)
        if counted is not None and counted.number == number:
            self._keep(counted)

    @staticmethod
    def _keep(counted: _Counted) -> None:
        for family in counted.now():
            if _is_kept(family):
                counted.families.setdefault(family.name, family)
                for sample in family.samples:
                    key = _key(family, sample)
                    counted.before[key] = _joined(family, counted.before.get(key), sample.value)
        counted.exposed = ""

    def collect(self) -> Iterator[Metric]:
        """The families of all, in the order in which they were first seen."""
        families: dict[str, Metric] = {}
        values: dict[str, dict[tuple[str, _Labels], float]] = {}

        def add(family: Metric, name: str, labels: _Labels, value: float) -> None:
            families.setdefault(family.name, family)
            of_family = values.setdefault(family.name, {})
            of_family[name, labels] = _joined(family, of_family.get((name, labels)), value)

        for place, counted in self._counted.items():
            for family in counted.now():
                families.setdefault(family.name, family)
                for sample in family.samples:
                    labels = tuple(sample.labels.items())
                    if _rule(family) == "each":
                        labels = (("process", place), *labels)
                    add(family, sample.name, labels, sample.value)
            for (family_name, name, labels), value in counted.before.items():
                add(counted.families[family_name], name, labels, value)
        for family_name, family in families.items():
            yield _metric(family, values.get(family_name, {}))


def _metric(family: Metric, values: dict[tuple[str, _Labels], float]) -> Metric:
    made = Metric(family.name, family.documentation, family.type)
    made.samples = [Sample(name, dict(labels), value) for (name, labels), value in _in_order(values)]
    return made


def _in_order(
    values: dict[tuple[str, _Labels], float],
) -> Iterable[tuple[tuple[str, _Labels], float]]:
    """Series by series: the buckets of a histogram beside its count and sum, in the order in which they came."""
    series: dict[_Labels, list[tuple[tuple[str, _Labels], float]]] = {}
    for (name, labels), value in values.items():
        own = tuple(each for each in labels if each[0] != "le")
        series.setdefault(own, []).append(((name, labels), value))
    for each in series.values():
        yield from sorted(each, key=lambda found: _bound(found[0][1]))


def _bound(labels: _Labels) -> float:
    """Buckets by their bound, and what is no bucket behind them."""
    bound = dict(labels).get("le")
    return math.inf if bound is None else -1.0 if bound == "-Inf" else float(bound)


def _key(family: Metric, sample: Sample) -> _Key:
    return family.name, sample.name, tuple(sample.labels.items())


def _is_kept(family: Metric) -> bool:
    return family.type in _KEPT or family.name.endswith(_CREATED)


def _rule(family: Metric) -> Rule:
    if family.type in _KEPT:
        return "sum"
    if family.name.endswith(_CREATED):
        return "least"
    return GAUGES.get(family.name, "each")


def _joined(family: Metric, before: float | None, value: float) -> float:
    if before is None:
        return value
    match _rule(family):
        case "most":
            return max(before, value)
        case "least":
            return min(before, value)
        case _:
            return before + value
