"""The minimal pairs that the default model is measured on, and those it is chosen by: it was trained on neither."""

import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from ticketgate.agents.scoring import open_scorer
from ticketgate.codecs import NoulQuestion, Ticket

MODEL = Path(__file__).resolve().parents[2] / "deploy" / "model"


def pairs(name: str) -> list[list[str]]:
    return [line.split("\t") for line in (MODEL / name).read_text().splitlines()]


PAIRS = pairs("minimal_pairs.tsv")
DEVELOPMENT = pairs("development_pairs.tsv")

# So many words in a row are no chance: a sentence or its template was taken over.
TAKEN_OVER = 6


def words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9']+", text.lower())


def runs(text: str) -> set[tuple[str, ...]]:
    listed = words(text)
    return {tuple(listed[place : place + TAKEN_OVER]) for place in range(len(listed) - TAKEN_OVER + 1)}


def texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for part in parts for text in texts(part)]


@pytest.mark.parametrize(("listed", "of_a_kind"), [(PAIRS, 20), (DEVELOPMENT, 12)])
def test_there_are_as_many_of_each_of_ten_kinds(listed: list[list[str]], of_a_kind: int) -> None:
    assert Counter(Counter(kind for kind, *_ in listed).values()) == {of_a_kind: 10}
    assert all(len(pair) == 4 and pair[2] != pair[3] for pair in listed)


def test_a_model_is_chosen_by_other_pairs_than_it_is_measured_on() -> None:
    measured = {run for _, _, *states in PAIRS for state in states for run in runs(state)}

    assert [state for _, _, *states in DEVELOPMENT for state in states if runs(state) & measured] == []
    assert {kind for kind, *_ in DEVELOPMENT} == {kind for kind, *_ in PAIRS}


@pytest.mark.parametrize("listed", [PAIRS, DEVELOPMENT], ids=["measured on", "chosen by"])
def test_none_of_their_sentences_is_trained_on(listed: list[list[str]]) -> None:
    sources = [
        text for file in sorted(MODEL.glob("*.toml")) for text in texts(tomllib.loads(file.read_text()))
    ]
    sources += [
        text
        for file in ("contrast.py", "choices.py")
        for text in re.findall(r'"([^"\n]+)"', (MODEL / file).read_text())
    ]
    trained = {run for text in sources for run in runs(text)}
    whole = {tuple(words(text)) for text in sources}

    taken = [
        state
        for _, _, *states in listed
        for state in states
        if runs(state) & trained or tuple(words(state)) in whole
    ]

    assert taken == []


def test_the_default_model_orders_most_of_them() -> None:
    """deploy/model/README.md has the figures by kind; here a wrong file or template would show."""
    scorer = open_scorer("onnx")
    in_order = 0
    for _, question, *states in PAIRS:
        asked = [Ticket(id=str(place), state=state) for place, state in enumerate(states)]
        true, false = (scores.answers["q"] for scores in scorer.score(asked, {"q": NoulQuestion(question)}))
        assert isinstance(true, dict)
        assert isinstance(false, dict)
        in_order += true["noul"] > false["noul"]

    assert in_order >= 0.7 * len(PAIRS)


@pytest.mark.parametrize("name", ["train.py", "assemble.py", "evaluate_local.py"])
def test_the_card_names_each_step(name: str) -> None:
    assert name in (MODEL / "README.md").read_text()
