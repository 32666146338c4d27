"""How `ticketgate funnel --profile` shows a failure profile: a line a rate, each with what it is a rate of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from statistics import median
from typing import TYPE_CHECKING

from ticketgate.agents.plural import counted

if TYPE_CHECKING:
    from ticketgate.agents.workbench.funnel.profile import Profile
    from ticketgate.agents.workbench.funnel.rates import Rate


def profile_lines(found: Profile) -> list[str]:
    """The profile as people read it. Fields stand below the stage that compares them."""
    missing = ", ".join(f"{count} without {name}" for name, count in found.unlabelled.items() if count)
    lines = [
        f"{counted(found.cases, 'case')}{f'; of their labels {missing}' if missing else ''}",
        "95 % intervals by Wilson, as if cases were independent; (-) is better low",
        "",
    ]
    # The proposer's rates, then fidelity, which is the proposer's too, then what follows.
    split = next(place for place, rate in enumerate(found.rates) if rate.name == "world_state")
    lines += _aligned((*found.rates[:split], *found.fidelity, *found.rates[split:]))
    return [*lines, "", _unknown(found), _cost(found)]


def _aligned(rates: Iterable[Rate]) -> Iterator[str]:
    told = [(f"{each.name}{'' if each.is_wanted else ' (-)'}", *each.shown(), each.over) for each in rates]
    widths = [max(len(row[column]) for row in told) for column in range(4)]
    for name, value, fraction, interval, over in told:
        yield (
            f"{name:{widths[0]}}  {value:>{widths[1]}}  {fraction:>{widths[2]}}  {interval:>{widths[3]}}  {over}"
        )


def _unknown(found: Profile) -> str:
    if not found.unknown_s and not found.held:
        return "unknown duration: none was unknown"
    settled = len(found.unknown_s)
    spans = (
        f"; settled after {median(found.unknown_s):g} s (median), at most {found.unknown_s[-1]:g} s"
        if settled
        else ""
    )
    return f"unknown duration: {settled} settled by reading back, {found.held} held{spans}"


def _cost(found: Profile) -> str:
    cost, stating = found.cost, found.cases - found.unlabelled["cost"]
    if not stating:
        told = "not known, as no case states what it cost (label.cost)"
    elif cost.each is None:
        told = f"none, as nothing was verified of what states a cost ({cost.total} in {counted(stating, 'case')})"
    else:
        told = f"{cost.each} ({cost.total} for {cost.verified} verified)"
    return f"cost per verified outcome: {told}"
