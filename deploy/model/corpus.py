"""Labelled pairs from the public data that the shipped model may learn from.

Held out, and refused if met: every intent that occurs in shared/model/eval_sets.json, clinc's domains
travel and work, all of bitext, and every text that occurs in eval_sets.json, under whichever intent.
"""

import csv
import json
import random
import tomllib
from pathlib import Path

import numpy as np
from triage import Row

HERE = Path(__file__).parent
HELD_SETS = ("bitext27", "banking_held", "clinc_held", "nlupp_held")
FRAMES = (
    "Does the customer want to {vp}?",
    "Does the customer want to {vp}?",
    "Does the user want to {vp}?",
    "Is the customer trying to {vp}?",
    "The customer wants to {vp}.",
    "Would the customer like to {vp}?",
    "Is this about {np}?",
    "Is the customer asking about {np}?",
    "Is the user asking about {np}?",
    "Does this ticket concern {np}?",
    "Should this be labelled {np}?",
)


class Corpus:
    """Texts with their intents, and the questions that can be asked of them."""

    def __init__(self, data: Path, eval_sets: Path) -> None:
        sets = json.loads(eval_sets.read_text())
        held_rows = [row for kind in sets.values() for rows in kind.values() for row in rows]
        self.held_texts = {_plain(row[0]) for row in held_rows}
        self.held_intents = {row[3] for name in HELD_SETS for row in sets["noul"][name]}
        self.phrases = tomllib.loads((HERE / "intents.toml").read_text())
        for name, intents in self.phrases.items():
            if held := self.held_intents & intents.keys():
                raise SystemExit(f"intents.toml: {name} names intents that are held out: {sorted(held)}")
        self.banking = self._keep("banking77", _banking(data / "banking77_train.csv"))
        clinc = json.loads((data / "clinc_data_full.json").read_text())
        self.clinc = self._keep("clinc", [(text, intent) for text, intent in clinc["train"]])
        self.out_of_scope = [t for t, _ in clinc["oos_train"] if _plain(t) not in self.held_texts]
        self.nlupp, self.nlupp_questions = self._nlupp(data / "nlupp")

    def _keep(self, name: str, texts: list[tuple[str, str]]) -> list[tuple[str, str]]:
        known = self.phrases[name]
        return [(t, i) for t, i in texts if i in known and _plain(t) not in self.held_texts]

    def _nlupp(self, folder: Path) -> tuple[list[tuple[str, set[str]]], dict[str, str]]:
        ontology = json.loads((folder / "ontology.json").read_text())["intents"]
        asked = {i: v["description"] for i, v in ontology.items() if i not in self.held_intents}
        texts: list[tuple[str, set[str]]] = []
        for name in ("banking", "hotels"):
            # Held intents are dropped: nothing is learnt of them, as true or as false.
            texts += [
                (row["text"], set(row["intents"]) & asked.keys())
                for row in json.loads((folder / f"{name}.json").read_text())
                if _plain(row["text"]) not in self.held_texts
            ]
        return texts, asked

    def rows(self, embed, chance: random.Random) -> list[Row]:
        """Each text with its own intent's question, two of near intents and one of any."""
        made = []
        for name, texts in (("banking77", self.banking), ("clinc", self.clinc)):
            near = near_intents(self.phrases[name], embed)
            for text, intent in texts:
                made.append(self._row(name, text, intent, 1.0, chance))
                others = set(chance.sample(near[intent], 2)) | {chance.choice(list(self.phrases[name]))}
                made += [self._row(name, text, other, 0.0, chance) for other in sorted(others - {intent})]
        for text in self.out_of_scope:
            made.append(self._row("clinc", text, chance.choice(list(self.phrases["clinc"])), 0.0, chance))
            made.append(
                self._row("banking77", text, chance.choice(list(self.phrases["banking77"])), 0.0, chance)
            )
        for text, intents in self.nlupp:
            others = set(chance.sample(sorted(self.nlupp_questions), 6)) - intents
            for intent in sorted(intents | others):
                made.append(self._nlupp_row(text, intent, float(intent in intents), chance))
        return made

    def _row(self, name: str, text: str, intent: str, label: float, chance: random.Random) -> Row:
        topic = intent.replace("_", " ").rstrip("?")
        question = chance.choice(FRAMES).format(vp=self.phrases[name][intent], np=topic)
        return Row(text, question, label, f"{name}:{intent}")

    def _nlupp_row(self, text: str, intent: str, label: float, chance: random.Random) -> Row:
        question = self.nlupp_questions[intent]
        question = question[0].upper() + question[1:]
        if chance.random() < 0.4:
            question = chance.choice(FRAMES[:6]).format(vp=self.phrases["nlupp"][intent])
        return Row(text, question, label, f"nlupp:{intent}", 1.5)


def _banking(path: Path) -> list[tuple[str, str]]:
    with path.open(newline="") as lines:
        return [(text, intent) for text, intent in list(csv.reader(lines))[1:]]


def _plain(text: str) -> str:
    return " ".join(text.lower().split())


def near_intents(phrases: dict[str, str], embed) -> dict[str, list[str]]:
    """For each intent the ten whose questions lie nearest to its own: hard to tell apart."""
    names = list(phrases)
    vectors = embed([f"Does the customer want to {phrases[n]}?" for n in names])
    order = np.argsort(-(vectors @ vectors.T), axis=1)
    return {name: [names[j] for j in order[i] if j != i][:10] for i, name in enumerate(names)}
