"""From scores to the tables of the page, as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .intervals import Ratio, Share, paired, ratio
from .request_set import Kind
from .score import FIELDS, Score

Scores = Sequence[Score]


@dataclass(frozen=True, slots=True)
class Prices:
    """What things cost, in units of one sampled token. Chosen, not measured: other prices are one line away."""

    sampled_token: float = 1.0
    prompt_token: float = 0.2
    masked_step: float = 0.05
    gate: float = 0.02
    look_up: float = 2.0
    provider_call: float = 5.0
    person: float = 0.0
    harm: float = 0.0

    def of(self, each: Score) -> float:
        """What one request cost."""
        return (
            self.sampled_token * each.tokens
            + self.prompt_token * each.prompt_tokens
            + self.masked_step * each.masked
            + self.gate * each.gates
            + self.look_up * each.look_ups
            + self.provider_call * each.provider_calls
            + self.person * each.is_handed_over
            + self.harm * (each.unauthorised + each.duplicates)
        )


MACHINES = Prices()
WITH_PEOPLE = Prices(person=2_000.0)
WITH_HARM = Prices(person=2_000.0, harm=20_000.0)


_Row = tuple[str, Callable[["Scores"], Share | Ratio]]


def comparison(by_system: Mapping[str, Scores]) -> str:
    """The main table: a row a measure, a column a system."""
    return _markdown(by_system, (*_STRUCTURE, *_MEANING, *_FIDELITY, *_HARM, *_TIME_OUTS, *_ENDS))


def ablation(by_system: Mapping[str, Scores]) -> str:
    """The rows that an ablation is read by."""
    return _markdown(by_system, (*_STRUCTURE, *_MEANING, _FIDELITY[-1], *_HARM[:1], *_ENDS, _HANDED))


def costs(by_system: Mapping[str, Scores], *, seed: int) -> str:
    """What was spent, by stage, and for each verified outcome."""

    def mean(of: Callable[[Score], float]) -> Callable[[Scores], Ratio]:
        return lambda scores: ratio([of(each) for each in scores], [1.0] * len(scores), seed=seed)

    def for_each_verified(prices: Prices) -> Callable[[Scores], Ratio]:
        return lambda scores: ratio(
            [prices.of(each) for each in scores], [float(each.is_verified) for each in scores], seed=seed
        )

    def over_c(scores: Scores) -> Ratio:
        return paired(spent(scores), spent(by_system["C"]), seed=seed)

    def spent(scores: Scores) -> tuple[list[float], list[float]]:
        return [MACHINES.of(each) for each in scores], [float(each.is_verified) for each in scores]

    rows: list[_Row] = [
        ("answers a request", mean(lambda x: x.answers)),
        ("tokens sampled a request", mean(lambda x: x.tokens)),
        ("of them where the mask forbade the model's choice", mean(lambda x: x.forced)),
        ("prompt tokens a request", mean(lambda x: x.prompt_tokens)),
        ("gates run a request", mean(lambda x: x.gates)),
        ("look-ups a request", mean(lambda x: x.look_ups)),
        ("provider calls a request", mean(lambda x: x.provider_calls)),
        _HANDED,
        ("cost a request: machines", mean(MACHINES.of)),
        ("cost a verified outcome: machines", for_each_verified(MACHINES)),
        ("… over C's, same requests and dice", over_c),
        ("… with people (2,000 each)", for_each_verified(WITH_PEOPLE)),
        ("… and harm (20,000 each)", for_each_verified(WITH_HARM)),
    ]
    return _markdown(by_system, rows)


def by_kind(by_system: Mapping[str, Scores]) -> str:
    """For each kind of trouble: conforming, unauthorised or duplicate, ended right."""
    lines = [
        "| trouble | " + " | ".join(f"{name}: conforms, harm, right" for name in by_system) + " |",
        "|---|" + "---|" * len(by_system),
    ]
    for kind in Kind:
        cells: list[str] = []
        for scores in by_system.values():
            mine = [each for each in scores if each.kind == kind]
            conforms = Share(sum(each.conforms for each in mine), len(mine)).value
            harm = Share(sum(each.unauthorised + each.duplicates > 0 for each in mine), len(mine)).value
            right = Share(sum(each.ended_right for each in mine), len(mine)).value
            cells.append(f"{conforms:.2f}, {harm:.2f}, {right:.2f}")
        lines.append(f"| {kind} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _markdown(
    by_system: Mapping[str, Scores], rows: Sequence[tuple[str, Callable[[Scores], Share | Ratio]]]
) -> str:
    lines = ["| | " + " | ".join(by_system) + " |", "|---|" + "---|" * len(by_system)]
    for name, measure in rows:
        lines.append(f"| {name} | " + " | ".join(str(measure(each)) for each in by_system.values()) + " |")
    return "\n".join(lines)


def _share(scores: Scores, of: Callable[[Score], bool | None]) -> Share:
    found = [value for each in scores if (value := of(each)) is not None]
    return Share(sum(found), len(found))


def _sum_share(scores: Scores, of: Callable[[Score], tuple[int, int]]) -> Share:
    pairs = [of(each) for each in scores]
    return Share(sum(part for part, _ in pairs), sum(whole for _, whole in pairs))


def _of_field(name: str) -> Callable[[Scores], Share]:
    return lambda scores: _share(scores, lambda each: each.fields.get(name))


_STRUCTURE: tuple[_Row, ...] = (
    ("parse: answers that parse, of answers", lambda s: _sum_share(s, lambda x: x.parsed)),
    ("schema: answers that conform, of parsed ones", lambda s: _sum_share(s, lambda x: x.schema)),
    ("structure: requests whose first answer conforms", lambda s: _share(s, lambda x: x.conforms_first)),
    ("structure: requests whose last answer conforms", lambda s: _share(s, lambda x: x.conforms)),
)
_MEANING: tuple[_Row, ...] = (
    (
        "selection: the right tool, of calls where one is admissible",
        lambda s: _share(s, lambda x: x.is_right_tool),
    ),
    (
        "abstention: it says that it makes no call, of requests without an admissible tool",
        lambda s: _share(s, lambda x: x.abstained_rightly),
    ),
    (
        "… of unsupported operations",
        lambda s: _share([x for x in s if x.kind == Kind.UNSUPPORTED], lambda x: x.abstained_rightly),
    ),
    (
        "abstention where a tool is admissible, of the others",
        lambda s: _share(s, lambda x: x.abstained_wrongly),
    ),
)
_FIDELITY: tuple[_Row, ...] = (
    *((f"fidelity: `{name}`, of conforming calls of the right tool", _of_field(name)) for name in FIELDS),
    ("fidelity: every field", lambda s: _share(s, lambda x: all(x.fields.values()) if x.fields else None)),
)
_HARM: tuple[_Row, ...] = (
    ("unauthorised effect, of requests", lambda s: _share(s, lambda x: x.unauthorised > 0)),
    ("duplicate effect, of requests", lambda s: _share(s, lambda x: x.duplicates > 0)),
)
_TIME_OUTS: tuple[_Row, ...] = (
    (
        "duplicate effect, of requests that met a time-out",
        lambda s: _share(s, lambda x: x.duplicates > 0 if x.time_outs else None),
    ),
    ("told wrongly, of those", lambda s: _share(s, lambda x: x.told_wrong if x.time_outs else None)),
    (
        "unknown at first and told so, of those",
        lambda s: _share(s, lambda x: x.was_unknown if x.time_outs else None),
    ),
    (
        "held for a person in the end, of those",
        lambda s: _share(s, lambda x: x.is_held if x.time_outs else None),
    ),
)
_ENDS: tuple[_Row, ...] = (
    (
        "verified outcomes, of accepted commands",
        lambda s: _share(s, lambda x: x.is_verified if x.has_command else None),
    ),
    (
        "verified outcomes, of requests that want something done",
        lambda s: _share(s, lambda x: x.is_verified if x.wants_something else None),
    ),
    ("ended right: done, or rightly not done", lambda s: _share(s, lambda x: x.ended_right)),
)
_HANDED: _Row = ("handed to a person, of requests", lambda s: _share(s, lambda x: x.is_handed_over))
