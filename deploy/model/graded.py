"""Tickets whose place on several scales is known, asked level by level and as yes/no questions.

A level is put as a statement, "How urgent is it? very urgent", true of a ticket that stands there, half true beside it.
"""

import random
import tomllib
from collections.abc import Iterator
from pathlib import Path

from triage import Row, parts, wording

HERE = Path(__file__).parent
STATEMENT = "{asked} {level}"

# Yes/no questions of triage.toml that a level answers: true from 3 on, false up to 1, or the other way round.
YES_NO = {
    "urgency": (("urgent", 1),),
    "satisfaction": (("praise", 1), ("complaint", -1)),
    "severity": (),
    "effort": (),
}


def graded_tickets(count: int, chance: random.Random) -> Iterator[tuple[str, dict[str, int]]]:
    """Texts, with the level from 0 to 4 on each axis that one of their sentences stands for."""
    given = tomllib.loads((HERE / "graded.toml").read_text())
    fillers = tomllib.loads((HERE / "contrast.toml").read_text())["bodies"]["texts"]
    calm = [t for body in parts()["bodies"] if not set(body["is"]) & set("uxflgp") for t in body["texts"]]
    for _ in range(count):
        axes = chance.sample(sorted(given), chance.choice((1, 1, 2, 2, 2, 3)))
        levels = {axis: chance.randrange(5) for axis in axes}
        pieces = [chance.choice(given[axis]["levels"][level]) for axis, level in levels.items()]
        if chance.random() < 0.5:
            pieces.insert(0, chance.choice(fillers))
        if chance.random() < 0.4 and "severity" not in axes:
            pieces.insert(chance.randrange(len(pieces) + 1), chance.choice(calm))
        text = " ".join(pieces)
        yield text.lower() if chance.random() < 0.2 else text, levels


def graded_rows(count: int, chance: random.Random) -> list[Row]:
    """About ten rows a ticket, for `count` tickets."""
    given = tomllib.loads((HERE / "graded.toml").read_text())
    questions = parts()["questions"]
    made = []
    for text, levels in graded_tickets(count, chance):
        for axis, level in levels.items():
            made += _levels(text, axis, level, given, chance)
            for question, sign in YES_NO[axis]:
                if level != 2:
                    made.append(
                        Row(
                            text,
                            wording(questions[question], chance),
                            float((level - 2) * sign > 0),
                            f"graded:{axis}",
                        )
                    )
    return made


def _levels(text: str, axis: str, level: int, given: dict, chance: random.Random) -> Iterator[Row]:
    scale = chance.choice(given[axis]["scales"])
    asked = chance.choice(given[axis]["asked"])
    # A scale of three has its middle where a scale of five has it.
    place = level * (len(scale) - 1) / 4
    for number, name in enumerate(scale):
        distance = abs(number - place)
        label = 1.0 if distance == 0 else 0.5 if distance <= 0.5 else 0.3 if distance <= 1 else 0.0
        yield Row(text, STATEMENT.format(asked=asked, level=name), label, f"graded:{axis}")
