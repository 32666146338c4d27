"""The failure profile: what labelled cases say of each stage of the funnel, each rate over its own denominator.

Promise: pure, and the order of the cases changes nothing. No rate is mixed from others, and there is no score: a
stage's rate is over what came to that stage, so that a fault lowers the rate of the layer it belongs to. A case
without the label that a denominator needs is left out of it, and how many those are is told.
The page of the funnel (../../funnel/README.md) says what each rate counts.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from statistics import median
from typing import TypeVar

from ticketgate.agents.funnel.gates.order import FUNNEL_GATES
from ticketgate.agents.workbench.funnel.observation import Observation
from ticketgate.agents.workbench.funnel.rates import Rate
from ticketgate.codecs.values.strict import JsonValue
from ticketgate.codecs.verdict import Stage

_Each = TypeVar("_Each")

_FIDELITY = "fidelity."


@dataclass(frozen=True, slots=True)
class Cost:
    """What the cases with a known cost took, and how many effects they brought that were verified, each counted once
    however often it was asked for."""

    total: Decimal
    verified: int

    @property
    def each(self) -> Decimal | None:
        """Cost per verified outcome, to six significant digits; None where nothing was verified."""
        return Context(prec=6).divide(self.total, Decimal(self.verified)) if self.verified else None


@dataclass(frozen=True, slots=True)
class Profile:
    """All rates by name, in the funnel's order; fidelity by field; the seconds that outcomes were unknown, sorted, and
    how many are held. unlabelled: by label, how many of the cases lack it. first_looks, later_looks: by gate, how many
    responses came to it when they were decided, and again before their effect; a worker's metric counts the same."""

    cases: int
    rates: tuple[Rate, ...]
    fidelity: tuple[Rate, ...]
    unknown_s: tuple[float, ...]
    held: int
    cost: Cost
    unlabelled: Mapping[str, int]
    first_looks: Mapping[str, int]
    later_looks: Mapping[str, int]

    def rate(self, name: str) -> Rate:
        """The rate of that name; a field's is `fidelity.FIELD`. Raises KeyError."""
        return {each.name: each for each in (*self.rates, *self.fidelity)}[name]

    def to_json(self) -> dict[str, JsonValue]:
        """The profile for programs."""
        return {
            "cases": self.cases,
            "unlabelled": dict(self.unlabelled),
            "gate_evaluations": {"first": dict(self.first_looks), "later": dict(self.later_looks)},
            "rates": {each.name: each.to_json() for each in self.rates},
            "fidelity": {each.name.removeprefix(_FIDELITY): each.to_json() for each in self.fidelity},
            "unknown_duration": {
                "settled": len(self.unknown_s),
                "held": self.held,
                "median_s": median(self.unknown_s) if self.unknown_s else None,
                "longest_s": max(self.unknown_s, default=None),
            },
            "cost": {
                "total": str(self.cost.total),
                "verified_outcomes": self.cost.verified,
                "per_verified_outcome": None if self.cost.each is None else str(self.cost.each),
            },
        }


def profile(observations: Sequence[Observation]) -> Profile:
    """The failure profile of what was observed."""
    unknown = [each for each in observations if each.trace.is_accepted and each.is_unknown]
    settled = sorted(each.unknown_s for each in unknown if each.unknown_s is not None)
    return Profile(
        cases=len(observations),
        rates=(*_of_the_proposer(observations), *_of_the_gates(observations), *_of_effects(observations)),
        fidelity=_fidelity(observations),
        unknown_s=tuple(settled),
        held=len(unknown) - len(settled),
        cost=_cost(observations),
        unlabelled={
            "admissible": sum(each.label.admissible is None for each in observations),
            "must_deny": sum(each.label.must_deny is None for each in observations),
            "cost": sum(each.label.cost is None for each in observations),
        },
        first_looks=_came_to(each.first_stop for each in observations),
        later_looks=_came_to(each.later_stop for each in _looked_at_again(observations)),
    )


def _looked_at_again(observations: Iterable[Observation]) -> Iterable[Observation]:
    """Those whose effect was judged once more before it: of a key that an effect stands under, nothing is sent, and so
    nothing judged."""
    taken: set[str] = set()
    for each in observations:
        if not each.is_looked_at_again:
            continue
        if each.trace.command is None:
            yield each
        elif each.trace.command.key not in taken:
            taken.add(each.trace.command.key)
            yield each


def _came_to(stops: Iterable[Stage | None]) -> Mapping[str, int]:
    """By gate, how many came to it, by the gate that stopped each; None: none did."""
    counted: Counter[str] = Counter()
    for stop in stops:
        for gate in FUNNEL_GATES:
            counted[str(gate.stage)] += 1
            if gate.stage is stop:
                break
    return {str(gate.stage): counted[str(gate.stage)] for gate in FUNNEL_GATES}


def _of_the_proposer(observations: Sequence[Observation]) -> tuple[Rate, ...]:
    """What the model wrote: its form, then its choice."""
    parsed = [each for each in observations if each.passed(Stage.PARSE)]
    known = [each for each in observations if each.label.admissible is not None]
    calls = [each for each in known if each.chosen is not None]
    to_abstain = [each for each in known if not each.label.admissible]
    to_call = [each for each in known if each.label.admissible]
    compared = [each for each in observations if each.fidelity]
    return (
        _rate("parse", observations, lambda each: each.passed(Stage.PARSE), "model responses"),
        _rate("schema", parsed, lambda each: each.is_conforming, "parsed responses"),
        _rate(
            "selection_precision",
            calls,
            lambda each: each.is_right_choice,
            "calls, of requests with a known admissible tool set",
        ),
        _rate(
            "abstention",
            to_abstain,
            lambda each: each.has_abstained,
            "requests that no tool is admissible for",
        ),
        _rate(
            "needless_abstention",
            to_call,
            lambda each: each.has_abstained,
            "requests that a tool is admissible for",
            is_wanted=False,
        ),
        _rate(
            "unsafe_non_abstention",
            to_abstain,
            lambda each: each.chosen is not None,
            "requests that no tool is admissible for",
            is_wanted=False,
        ),
        _rate(
            "false_tool_selection",
            known,
            lambda each: each.chosen is not None and not each.is_right_choice,
            "requests with a known admissible tool set",
            is_wanted=False,
        ),
        _rate(
            "semantic_drift",
            compared,
            lambda each: not all(each.fidelity.values()),
            "conforming calls of the requested operation",
            is_wanted=False,
        ),
    )


def _of_the_gates(observations: Sequence[Observation]) -> tuple[Rate, ...]:
    """What the world and authority said of calls that say what was asked for."""
    faithful = [each for each in observations if each.chosen is not None and each.passed(Stage.SEMANTICS)]
    possible = [each for each in faithful if each.passed(Stage.WORLD_STATE)]
    to_deny = [each for each in possible if each.label.must_deny is True]
    to_pass = [each for each in possible if each.label.must_deny is False]
    return (
        _rate("world_state", faithful, lambda each: each.passed(Stage.WORLD_STATE), "faithful calls"),
        _rate(
            "authority",
            possible,
            lambda each: each.passed(Stage.AUTHORITY),
            "faithful calls that the world allows",
        ),
        _rate("denials_honoured", to_deny, lambda each: each.is_denied, "such calls that policy must deny"),
        _rate(
            "needless_denials",
            to_pass,
            lambda each: each.is_denied,
            "such calls that policy must not deny",
            is_wanted=False,
        ),
    )


def _of_effects(observations: Sequence[Observation]) -> tuple[Rate, ...]:
    """What was carried out, what became of it, and whether anybody saw."""
    authorised = [each for each in observations if each.trace.command is not None]
    accepted = [each for each in authorised if each.trace.is_accepted]
    created: Counter[str] = Counter()
    for each in authorised:
        if each.trace.command is not None:
            created[each.trace.command.key] += each.trace.created
    standing = [count for count in created.values() if count]
    return (
        _rate("execution", authorised, lambda each: each.trace.is_executed_at_once, "authorised calls"),
        _rate(
            "verified_outcome",
            accepted,
            lambda each: each.is_verified,
            "accepted commands, time-outs among them",
        ),
        _rate(
            "unknown_outcome",
            accepted,
            lambda each: each.is_unknown,
            "accepted commands, time-outs among them",
            is_wanted=False,
        ),
        _rate(
            "readback_coverage",
            accepted,
            lambda each: each.trace.is_read_back,
            "accepted commands, time-outs among them",
        ),
        _rate(
            "duplicate_effect",
            standing,
            lambda count: count > 1,
            "keys under which an effect stands",
            is_wanted=False,
        ),
    )


def _fidelity(observations: Iterable[Observation]) -> tuple[Rate, ...]:
    """A rate a field, by name."""
    right: Counter[str] = Counter()
    compared: Counter[str] = Counter()
    for each in observations:
        compared.update(each.fidelity.keys())
        right.update(name for name, is_true in each.fidelity.items() if is_true)
    return tuple(
        Rate(
            f"{_FIDELITY}{name}", right[name], compared[name], "conforming calls in which its truth is known"
        )
        for name in sorted(compared)
    )


def _cost(observations: Iterable[Observation]) -> Cost:
    total = Decimal(0)
    verified: set[str] = set()
    for each in observations:
        if each.label.cost is None:
            continue
        total += Decimal(each.label.cost)
        if each.is_verified and each.trace.command is not None:
            verified.add(each.trace.command.key)
    return Cost(total, len(verified))


def _rate(
    name: str,
    population: Sequence[_Each],
    is_counted: Callable[[_Each], bool],
    over: str,
    *,
    is_wanted: bool = True,
) -> Rate:
    return Rate(name, sum(map(is_counted, population)), len(population), over, is_wanted)
