"""Tickets of our own and what is true of them: triage.toml put together by chance, with a fixed seed.

The labels follow from the parts a ticket is made of, so they are weak: nobody has read each ticket.
"""

import random
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Row:
    """One labelled pair; `group` is what validation splits by: rows of one group stay together."""

    state: str
    question: str
    label: float
    group: str
    weight: float = 1.0


def parts() -> dict:
    return tomllib.loads((HERE / "triage.toml").read_text())


def answers(letters: set[str]) -> dict[str, float]:
    """What is true of a ticket with these letters. What cannot be said either way is left out."""
    has = letters.__contains__
    risky = any(map(has, "xlhfg"))
    truth = {
        "urgent": float(has("u")),
        "billing": float(has("b")),
        "technical": float(has("t")),
        "complaint": float(has("g")),
        "fraud": float(has("f")),
        "refund": float(has("r")),
        "cancel": float(has("c") and not has("q")),
        "access": float(has("a")),
        "delivery": float(has("d")),
        "sales": float(has("s")),
        "feedback": float(has("w")),
        "praise": float(has("p") and not has("g")),
        "legal": float(has("l")),
        "human": float(has("h")),
        # A fault that is neither routine nor delicate may be answered either way: it is not asked.
        "review": 1.0 if risky or has("u") else 0.0 if has("q") else 0.3,
        "auto_reply": 0.0 if risky or has("u") else 1.0 if has("q") else 0.3,
    }
    if (has("l") or has("x")) and not has("g"):
        del truth["complaint"]  # whoever threatens or has suffered a loss is seldom calm
    return truth


def tickets(count: int, chance: random.Random) -> Iterator[tuple[str, dict[str, float], str]]:
    """`count` tickets: text, what is true of it, and its body's number."""
    given = parts()
    filler = given["filler"]
    for _ in range(count):
        number = chance.randrange(len(given["bodies"]))
        body = given["bodies"][number]
        letters = set(body["is"])
        pieces = [chance.choice(body["texts"])]
        if chance.random() < 0.3:
            pieces.append(chance.choice(filler["details"]))
        # Praise under pressure or in anger would be a text that nobody writes.
        calm = "p" in letters
        if chance.random() < 0.6:
            pressure = given["pressures"][0 if chance.random() < 0.6 and not calm else 1]
            if not ("u" in letters and pressure["is"] == "-"):
                pieces.insert(chance.choice([0, len(pieces), len(pieces)]), chance.choice(pressure["texts"]))
                letters |= set(pressure["is"])
        if chance.random() < 0.35:
            mood = given["moods"][0 if chance.random() < 0.55 and not calm else 1]
            pieces.insert(chance.choice([0, len(pieces)]), chance.choice(mood["texts"]))
            letters |= set(mood["is"])
        subject = pieces[0]
        if chance.random() < 0.35:
            pieces.insert(0, chance.choice(filler["openings"]))
        if chance.random() < 0.35:
            pieces.append(chance.choice(filler["endings"]))
        text = chance.choice([" ", " ", "\n"]).join(pieces)
        if chance.random() < 0.2:
            text = f"body: {text}\nsubject: {subject.rstrip('.!?')}"
        if chance.random() < 0.2:
            text = text.lower()
        yield text, answers(letters), str(number)


def wording(question: dict, chance: random.Random, *, unseen: bool = False) -> str:
    """One wording of a question, now and then with what true and false stand for."""
    text = question["texts"][-1] if unseen else chance.choice(question["texts"][:-1])
    if not unseen and "true" in question and chance.random() < 0.15:
        text += f" Yes means: {chance.choice(question['true'])}."
        if chance.random() < 0.7:
            text += f" No means: {chance.choice(question['false'])}."
    return text


def rows(count: int, chance: random.Random) -> list[Row]:
    """About eight labelled pairs a ticket: the five questions of the sample policy, and three others."""
    questions = parts()["questions"]
    main = ("urgent", "review", "auto_reply", "billing", "technical")
    made = []
    for text, truth, body in tickets(count, chance):
        others = [q for q in truth if q not in main]
        true = [q for q in others if truth[q] > 0.5]
        asked = {*main, *true, *chance.sample(others, 3)}
        made += [
            Row(text, wording(questions[question], chance), truth[question], f"triage:{body}")
            for question in sorted(asked & truth.keys())
        ]
    return made


def banking_rows(texts: list[tuple[str, str]], chance: random.Random) -> list[Row]:
    """Our questions about banking77's training tickets, labelled by intent."""
    given = parts()
    made = []
    for question in given["questions"]:
        for name, label in ((question, 1.0), (f"not_{question}", 0.0)):
            intents = set(given["banking77"].get(name, ()))
            chosen = [t for t, intent in texts if intent in intents]
            made += [
                Row(text, wording(given["questions"][question], chance), label, "triage:bank", 0.5)
                for text in chance.sample(chosen, min(250, len(chosen)))
            ]
    return made
