"""Tickets of one turn and its opposite: turns.toml and its like put together, in sets that share surroundings."""

import random
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from triage import Row

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Turn:
    """One question, and tickets with what is true of each."""

    question: str
    states: tuple[tuple[str, float], ...]
    group: str


def turns(count: int, chance: random.Random, *, file: str = "turns.toml") -> Iterator[Turn]:
    """`count` sets of four tickets, half of them true, of the kinds in `file`."""
    given = tomllib.loads((HERE / "turns.toml").read_text())
    kinds = tomllib.loads((HERE / file).read_text())["turns"]
    weights = [len(kind["yes"]) + 2 * len(kind.get("say", kind.get("about", ()))) + 4 for kind in kinds]
    for _ in range(count):
        (kind,) = chance.choices(kinds, weights)
        question, around = chance.choice(kind["q"]), _around(given, chance)
        if kind.get("about"):
            pairs = [_about(kind, chance) for _ in range(2)]
        elif kind.get("say") and chance.random() < 0.55:
            pairs = [_said(chance.choice(kind["say"]), given, chance) for _ in range(2)]
        else:
            places = chance.sample(range(len(kind["yes"])), 2)
            pairs = [(kind["yes"][place], kind["no"][place]) for place in places]
        states = [
            (around(text), label) for pair in pairs for text, label in zip(pair, (1.0, 0.0), strict=True)
        ]
        yield Turn(question, tuple(states), f"turn:{kind['q'][0]}")


def turn_rows(count: int, chance: random.Random) -> list[Row]:
    """Four rows a set: `count` sets of turns.toml, two thirds as many of phrases.toml, an eighth of taken_back.toml."""
    sets = [
        *turns(count, chance),
        *turns(count * 2 // 3, chance, file="phrases.toml"),
        *turns(count // 8, chance, file="taken_back.toml"),
    ]
    return [Row(text, each.question, label, each.group) for each in sets for text, label in each.states]


def _said(clauses: tuple[str, str], given: dict, chance: random.Random) -> tuple[str, str]:
    """A clause that is true and one that is not: each as it is, confirmed, or the other denied."""
    yes, no = clauses
    way = chance.random()
    if way < 0.3:
        return _sentence(yes, chance), _sentence(no, chance)
    if way < 0.5:
        frame = chance.choice(given["keep"])
        return _put(frame, yes), _put(frame, no)
    frame = chance.choice(given["flip"])
    if way < 0.75:
        return _put(chance.choice(given["keep"]), yes), _put(frame, yes)
    if way < 0.88:
        return _sentence(yes, chance), _put(frame, yes)
    return _put(frame, no), _put(chance.choice(given["keep"]), no)


def _about(kind: dict, chance: random.Random) -> tuple[str, str]:
    """One thing that happened, with a word that answers the question, before it or after it, and the contrary word."""
    about, first = chance.choice(kind["about"]), chance.random() < 0.25
    yes, no = (
        " ".join((word, about) if first else (about, word)).strip()
        for word in [chance.choice(kind[side]) for side in ("yes", "no")]
    )
    return yes, no


def _put(frame: str, clause: str) -> str:
    text = frame.format(x=clause)
    return text[0].upper() + text[1:]


def _sentence(clause: str, chance: random.Random) -> str:
    text = clause[0].upper() + clause[1:] if chance.random() < 0.8 else clause
    return text + chance.choice((".", ".", "!", ""))


def _around(given: dict, chance: random.Random):
    """A function that puts a sentence into the same surroundings each time."""
    before = chance.choice(given["before"]) + " " if chance.random() < 0.4 else ""
    after = " " + chance.choice(given["after"]) if chance.random() < 0.3 else ""
    lower = chance.random() < 0.15

    def around(sentence: str) -> str:
        text = f"{before}{sentence}{after}"
        return text.lower() if lower else text

    return around
