"""What a model is not going to read is neither written out nor tokenised, in every contract."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ticketgate.agents.scoring import contracts
from ticketgate.agents.scoring import tokens as tokens_module
from ticketgate.agents.scoring.folder import load_folder
from ticketgate.codecs.systemone.question_reading import read_questions
from tokenizers import Tokenizer

from ...support.cost import allowed_bytes, peak_bytes
from ...support.shapes import SHAPES, written
from .test_joint_contracts import BUILDERS

NAMES = [*BUILDERS, "bi-encoder-head"]


class Counting:
    """A tokenizer that counts the characters that it is given."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self.chars = 0

    @classmethod
    def from_str(cls, text: str) -> Counting:
        return cls(Tokenizer.from_str(text))

    def encode(self, text: str, pair: str | None = None, **how: Any) -> Any:
        self.chars += len(text) + len(pair or "")
        return self._tokenizer.encode(text, pair, **how)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tokenizer, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("_tokenizer", "chars"):
            object.__setattr__(self, name, value)
        else:
            setattr(self._tokenizer, name, value)


@pytest.fixture
def opened(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Any, Counting]:
    name = request.param
    if name == "bi-encoder-head":
        from ticketgate.agents.scoring import default_model_path

        folder = load_folder(default_model_path())
    else:
        folder = load_folder(BUILDERS[name](tmp_path / "model"))
    monkeypatch.setattr(tokens_module, "Tokenizer", Counting)
    contract = contracts.open_contract(folder, threads=1)
    return contract, contract._tokens._tokenizer  # type: ignore[attr-defined]  # whichever contract it is


def about(state: Any, **question: Any) -> tuple[list[Any], Any]:
    return [state], read_questions({"q": {"type": "noul", "instructions": "card"} | question})


ASKED: dict[str, Callable[[Any], tuple[list[Any], Any]]] = {
    "state": lambda value: about(value),
    "instructions": lambda value: about("card", instructions=value),
    "criteria": lambda value: about("card", criteria={"true": value}),
    "options": lambda value: about(
        "card", type="choice", instructions=value, criteria={"late": value, "angry": None, "calm": None}
    ),
}


@pytest.mark.parametrize("opened", NAMES, indirect=True)
@pytest.mark.parametrize("place", ASKED)
def test_a_long_text_is_cut_before_it_is_tokenised(opened: tuple[Any, Counting], place: str) -> None:
    contract, tokenizer = opened
    states, questions = ASKED[place]("card " * 50_000)
    tokenizer.chars = 0

    (scores,) = contract.score(states, questions)

    assert scores.truncated == {"q"}
    assert tokenizer.chars < 250_000 / 5


@pytest.mark.parametrize("opened", NAMES, indirect=True)
@pytest.mark.parametrize("place", ASKED)
@pytest.mark.parametrize(
    "shape", ["long key above leaves", "long keys inside each other", "text", "small objects"]
)
def test_scoring_costs_memory_in_proportion(opened: tuple[Any, Counting], place: str, shape: str) -> None:
    contract, _ = opened
    value = SHAPES[shape](30_000)
    states, questions = ASKED[place](value)

    assert peak_bytes(lambda: contract.score(states, questions)) <= allowed_bytes(len(written(value)))


@pytest.mark.parametrize("opened", ["pair-logit"], indirect=True)
def test_instructions_are_not_written_out_again_for_each_option(opened: tuple[Any, Counting]) -> None:
    contract, _ = opened
    instructions = "card " * 6_000
    states, questions = about(
        "card", type="choice", instructions=instructions, criteria={f"o{n}": None for n in range(250)}
    )

    assert peak_bytes(lambda: contract.score(states, questions)) <= allowed_bytes(len(instructions))


@pytest.mark.parametrize("opened", NAMES, indirect=True)
def test_blanks_do_not_hide_what_stands_behind_them(opened: tuple[Any, Counting]) -> None:
    contract, _ = opened

    (near,) = contract.score(*about(" " * 500 + "card"))
    (far,) = contract.score(*about(" " * 200_000 + "card"))

    assert not near.truncated
    assert far.truncated == {"q"}
