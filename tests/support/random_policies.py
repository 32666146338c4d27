"""Policies and assignments at random, and a naive reading of the rules to hold the real one against.

The naive reading takes rules as the document writes them and answers as plain values, and shares no code with
the product: noul a bool, choice a label, score a level.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

Values = Mapping[str, bool | str | int]


@dataclass(frozen=True)
class Drawn:
    """A policy's document and, of each question, the values it can have."""

    document: dict[str, Any]
    domains: dict[str, list[Any]]

    @property
    def text(self) -> str:
        return json.dumps(self.document)

    @property
    def rules(self) -> list[dict[str, Any]]:
        return list(self.document["rules"])


def naive_atom(atom: str, values: Values) -> bool:
    """Whether an atom holds."""
    if atom.startswith("!"):
        return not naive_atom(atom[1:], values)
    parts = re.split(r"(>=|<=|!=|=|>|<)", atom)
    if len(parts) == 1:
        return values[atom] is True
    question, sign, wanted = parts
    given = values[question]
    if isinstance(given, str):
        return (given == wanted) == (sign == "=")
    level = int(wanted)
    return {
        "=": given == level,
        "!=": given != level,
        ">=": given >= level,
        "<=": given <= level,
        ">": given > level,
        "<": given < level,
    }[sign]


def naive_rule(rule: Mapping[str, Any], values: Values) -> bool:  # noqa: C901 - one case for each construct
    """Whether a rule holds."""

    def side(atoms: str | list[str]) -> bool:
        return all(naive_atom(each, values) for each in ([atoms] if isinstance(atoms, str) else atoms))

    def number(atoms: list[str]) -> int:
        return sum(naive_atom(each, values) for each in atoms)

    (name,) = set(rule) - {"id"}
    demand: Any = rule[name]
    match name:
        case "implies":
            return side(demand[1]) or not side(demand[0])
        case "iff":
            return side(demand[0]) == side(demand[1])
        case "excludes":
            return number(demand) < 2
        case "forbid":
            return not side(demand)
        case "exactly_one":
            return number(demand) == 1
        case "any_of":
            return number(demand) > 0
        case "at_least":
            return bool(number(demand["of"]) >= demand["count"])
        case "at_most":
            return bool(number(demand["of"]) <= demand["count"])
        case "exactly":
            return bool(number(demand["of"]) == demand["count"])
        case _:
            raise ValueError(name)


def labels_of(values: Values) -> set[str]:
    """The assignment that these values make."""
    labels = set()
    for question, value in values.items():
        if value is True:
            labels.add(question)
        elif value is not False:
            labels.add(f"{question}={value}")
    return labels


def answers_of(values: Values, domains: Mapping[str, list[Any]]) -> dict[str, dict[str, Any]]:
    """Answers of certainty that select these values."""
    answers: dict[str, dict[str, Any]] = {}
    for question, value in values.items():
        if isinstance(value, bool):
            answers[question] = {"type": "noul", "noul": 1.0 if value else 0.0}
            continue
        chances = {str(each): 1.0 if each == value else 0.0 for each in domains[question]}
        name = "choice" if isinstance(value, str) else "score"
        answers[question] = {"type": name, name: value, "probabilities": chances}
    return answers


@st.composite
def drawn_policies(draw: st.DrawFn, *, max_questions: int = 5, max_rules: int = 6) -> Drawn:
    """A valid policy over a few questions of all kinds, with rules of all constructs."""
    questions: dict[str, Any] = {}
    domains: dict[str, list[Any]] = {}
    for index in range(draw(st.integers(1, max_questions))):
        match draw(st.sampled_from(["noul", "noul", "choice", "score"])):
            case "noul":
                domains[f"n{index}"] = [False, True]
                questions[f"n{index}"] = {"type": "noul", "instructions": "?"}
            case "choice":
                labels = [f"l{each}" for each in range(draw(st.integers(2, 4)))]
                domains[f"c{index}"] = labels
                questions[f"c{index}"] = {
                    "type": "choice",
                    "instructions": "?",
                    "criteria": dict.fromkeys(labels),
                }
            case _:
                levels = list(range(draw(st.integers(2, 4))))
                domains[f"s{index}"] = levels
                questions[f"s{index}"] = {
                    "type": "score",
                    "instructions": "?",
                    "criteria": [f"level {each}" for each in levels],
                }
    atoms = atom_texts(domains)
    rules = [
        {"id": f"rule-{index}", **draw(rule_documents(atoms))}
        for index in range(draw(st.integers(0, max_rules)))
    ]
    document = {"name": "drawn", "version": "1", "questions": questions, "rules": rules}
    return Drawn(document, domains)


def atom_texts(domains: Mapping[str, list[Any]]) -> list[str]:
    """Atoms over these questions, no two of which say the same."""
    atoms: list[str] = []
    for question, domain in domains.items():
        if isinstance(domain[0], bool):
            atoms += [question]
        elif isinstance(domain[0], str):
            atoms += [f"{question}={label}" for label in domain]
        else:
            # With two levels =1 and >=1 would be one atom twice.
            atoms += [f"{question}>={level}" for level in domain[1:]]
            atoms += [f"{question}={level}" for level in domain[1:-1]]
    return atoms + [f"!{atom}" for atom in atoms]


def rule_documents(atoms: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    """Rules over these atoms, as documents."""

    def some(least: int, most: int) -> st.SearchStrategy[list[str]]:
        return st.lists(st.sampled_from(atoms), min_size=least, max_size=most, unique=True)

    side = st.one_of(st.sampled_from(atoms), some(1, 3))
    pair = st.tuples(side, side).map(list)

    def counted(of: list[str]) -> st.SearchStrategy[dict[str, Any]]:
        return st.integers(0, len(of)).map(lambda count: {"count": count, "of": of})

    count = some(1, 4).flatmap(counted)
    return st.one_of(
        pair.map(lambda sides: {"implies": sides}),
        pair.map(lambda sides: {"iff": sides}),
        some(2, 2).map(lambda of: {"excludes": of}),
        some(1, 3).map(lambda of: {"forbid": of}),
        some(2, 4).map(lambda of: {"exactly_one": of}),
        some(1, 3).map(lambda of: {"any_of": of}),
        count.map(lambda it: {"at_least": it}),
        count.map(lambda it: {"at_most": it}),
        count.map(lambda it: {"exactly": it}),
    )


@st.composite
def values_for(draw: st.DrawFn, domains: Mapping[str, list[Any]]) -> dict[str, Any]:
    """One value for each question."""
    return {question: draw(st.sampled_from(domain)) for question, domain in domains.items()}
