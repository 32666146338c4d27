"""A response read by name: what is not there is None."""

from __future__ import annotations

from typing import Any

import pytest
from ticketgate.codecs.systemone.protocol import Prediction
from ticketgate.codecs.values.strict import JsonValue

RESPONSE: dict[str, Any] = {
    "model": "jev-1.13.0",
    "answers": {
        "urgent": {"type": "noul", "noul": 0.07},
        "route": {
            "type": "choice",
            "choice": "billing",
            "confidence": 0.9019,
            "probabilities": {"billing": 0.9346, "technical": 0.0049, "other": 0.0605},
        },
        "anger": {
            "type": "score",
            "score": 1.12,
            "confidence": 0.61,
            "probabilities": {"0": 0.14, "1": 0.6, "2": 0.26},
        },
    },
    "usage": {"input_tokens": 72, "output_tokens": 0},
}


def test_each_kind_is_read() -> None:
    prediction = Prediction.of(RESPONSE)

    assert prediction.model == "jev-1.13.0"
    assert prediction.noul("urgent") == 0.07
    assert prediction.choice("route") == "billing"
    assert prediction.score("anger") == 1.12
    assert prediction.confidence("route") == 0.9019
    assert (prediction.input_tokens, prediction.output_tokens) == (72, 0)
    assert prediction.ids() == tuple(RESPONSE["answers"])


def test_answer_confidence_means_the_same_for_all_kinds() -> None:
    prediction = Prediction.of(RESPONSE)

    assert prediction.answer_confidence("urgent") == 1 - 0.07
    assert prediction.answer_confidence("route") == 0.9346
    assert prediction.answer_confidence("anger") == 0.6


def test_a_servers_own_answer_confidence_counts_only_without_probabilities() -> None:
    answers: JsonValue = {
        "with": {**RESPONSE["answers"]["route"], "answer_confidence": 0.1},
        "without": {"choice": "bug", "answer_confidence": 0.9},
        "ours": {"choice": "bug", "x_answer_confidence": 0.8, "answer_confidence": 0.9},
    }
    prediction = Prediction.of({"answers": answers})

    assert prediction.answer_confidence("with") == 0.9346
    assert prediction.answer_confidence("without") == 0.9
    assert prediction.answer_confidence("ours") == 0.8


@pytest.mark.parametrize(
    "response",
    [
        None,
        [],
        "text",
        {},
        {"answers": None, "usage": 3, "model": 1},
        {"answers": {"q": None}},
        {"answers": {"q": {"noul": "0.9", "choice": 1, "score": True, "confidence": None}}},
        {"answers": {"q": {"noul": float("nan"), "score": float("inf"), "probabilities": {"a": "b"}}}},
        {"answers": {"q": {"choice": "a", "probabilities": {"b": 0.1}}}, "usage": {"input_tokens": True}},
    ],
)
def test_what_is_not_there_is_none(response: Any) -> None:
    prediction = Prediction.of(response)

    assert prediction.noul("q") is None
    assert prediction.choice("q") in (None, "a")
    assert prediction.score("q") is None
    assert prediction.confidence("q") is None
    assert prediction.answer_confidence("q") is None
    assert prediction.input_tokens is None
    assert prediction.noul("another") is None


@pytest.mark.parametrize(
    ("chances", "certainty"), [([0.52, 0.48, 0.0], 0.37), ([0.52, 0.24, 0.24], 0.07), ([1.0, 0.0], 1.0)]
)
def test_certainty_is_of_the_whole_distribution(chances: list[float], certainty: float) -> None:
    labels = ["a", "b", "c"][: len(chances)]
    answer: JsonValue = {
        "type": "choice",
        "choice": "a",
        "probabilities": dict(zip(labels, chances, strict=True)),
    }
    prediction = Prediction.of({"answers": {"q": answer, "n": {"noul": 0.5}, "s": {"x_certainty": 0.25}}})

    assert prediction.certainty("q") == pytest.approx(certainty, abs=0.005)
    assert prediction.certainty("n") == 0
    assert prediction.certainty("s") == 0.25
    assert prediction.certainty("nobody") is None


def test_it_cannot_be_written_to() -> None:
    prediction = Prediction.of(RESPONSE)

    with pytest.raises(AttributeError):
        prediction.response = {}  # type: ignore[misc]
