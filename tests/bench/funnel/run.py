"""The runs: the four systems, then the ablations, request by request in turn.

Promise: all systems of a run meet a request before any meets the next, in an order that turns from request to request,
so that whatever else the machine does falls on all alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .request_set import Asked
from .results import Result
from .score import Score, score
from .systems import System
from .variants import coarse, narrowed, without_condition

# After so many requests a look is taken at what first uses of the automaton have cost so far.
EARLY = 10


@dataclass(slots=True)
class Spent:
    """Seconds of one system. first_use: automata built, and states met for the first time; early: after the first
    requests, (first uses, masked steps met before)."""

    sampling_s: float = 0.0
    masking_s: float = 0.0
    checking_s: float = 0.0
    acting_s: float = 0.0
    tokens: int = 0
    masked: int = 0
    early: tuple[float, float] = (0.0, 0.0)

    def add(self, result: Result) -> None:
        """One more request."""
        for each in result.answers:
            self.sampling_s += each.answer.sampling_s
            self.masking_s += each.answer.masking_s
            self.tokens += each.answer.tokens
            self.masked += each.answer.masked_steps
        self.checking_s += result.work.checking_s
        self.acting_s += result.work.acting_s


@dataclass(slots=True)
class Run:
    """Scores and times by system."""

    systems: Mapping[str, System]
    scores: dict[str, list[Score]] = field(default_factory=dict)
    spent: dict[str, Spent] = field(default_factory=dict)
    results: dict[str, list[Result]] = field(default_factory=dict)


def four() -> tuple[System, ...]:
    """P, R, C and G."""
    return (
        System("P", "free"),
        System("R", "free", answers=3),
        System("C", "schema"),
        System("G", "schema", has_gates=True),
    )


def constraints() -> tuple[System, ...]:
    """The constraint varied, everything else as in P."""
    return (
        System("free", "free"),
        System("JSON grammar", "grammar"),
        System("schema", "schema"),
        System("schema for the request", "schema", variant=narrowed()),
    )


def ontologies(*, has_gates: bool) -> tuple[System, ...]:
    """The ontology varied, decoding masked by its schema."""
    return (
        System("as it is", "schema", has_gates=has_gates),
        System("with abstention", "schema", has_gates=has_gates, has_abstention=True),
        System("without the condition", "schema", has_gates=has_gates, variant=without_condition()),
        System("coarse names", "schema", has_gates=has_gates, variant=coarse()),
    )


def run(systems: Sequence[System], requests: Sequence[Asked], seed: int) -> Run:
    """Every system on every request."""
    made = Run({each.name: each for each in systems})
    for each in systems:
        made.scores[each.name], made.results[each.name], made.spent[each.name] = [], [], Spent()
    for number, asked in enumerate(requests):
        turn = number % len(systems)
        for system in (*systems[turn:], *systems[:turn]):
            result = system.run(asked, seed)
            made.results[system.name].append(result)
            made.scores[system.name].append(score(asked, result, system.variant.catalogue.tools))
            spent = made.spent[system.name]
            spent.add(result)
            if number + 1 == EARLY:
                spent.early = (first_use_s(system), spent.masking_s)
    return made


def first_use_s(system: System) -> float:
    """What a system's automata took to build and its states to be met for the first time."""
    return sum(mask.first_use_s for mask in system.masks.values())
