"""003: questions in, answers out."""

from __future__ import annotations

from typing import Any

from ticketgate.agents.scoring import open_scorer
from ticketgate.agents.scoring.shortlist import cached_embed_fn, shortlist_choice
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.systemone import (
    Prediction,
    QuestionError,
    SchemaError,
    answer_confidence,
    answers_to_json,
    certainty,
    confidence,
    questions_from_json_schema,
    read_questions,
)
from ticketgate.codecs.systemone.answers import ChoiceAnswer

from .rows import refusal, row

QUESTIONS: Any = {
    "kind": {
        "type": "choice",
        "instructions": "Classify the request.",
        "criteria": {"bug": "a defect", "question": "a request for information"},
    },
    "urgency": {
        "type": "score",
        "instructions": "Score urgency from low to high.",
        "criteria": ["low", "medium", "high"],
    },
    "safe": {
        "type": "noul",
        "instructions": "Does the request stay within policy?",
        "criteria": {"false": "it violates policy", "true": "it stays within policy"},
    },
}
RESPONSE: Any = {
    "answers": {"kind": {"choice": "bug", "confidence": 0.75, "answer_confidence": 0.90}},
    "usage": {"input_tokens": 42},
}
SCHEMA: Any = {
    "type": "object",
    "properties": {
        "priority": {"type": "integer", "minimum": 1, "maximum": 3},
        "escalate": {"type": "boolean"},
    },
}


def labels(question: str) -> tuple[str, ...]:
    return read_questions(QUESTIONS)[question].labels


row("003", "three kinds of question", ["choice", "score", "noul"],
    lambda: [each.type for each in read_questions(QUESTIONS).values()])  # fmt: skip
row("003", "a noul's order is false, true, whatever its labels", ("false", "true"), lambda: labels("safe"))
row("003", "a noul's order with true written first", ("false", "true"), lambda: read_questions(
    {"q": {"type": "noul", "criteria": {"true": "yes", "false": "no"}}}
)["q"].labels)  # fmt: skip
for _part, _broken in {
    "an unknown type": {"type": "text"},
    "a choice of one": {"type": "choice", "criteria": {"a": None}},
    "a score of one level": {"type": "score", "criteria": ["a"]},
    "a choice without criteria": {"type": "choice"},
    "no object": 3,
}.items():
    row("003", f"a malformed question names its id: {_part}", True, lambda broken=_broken: (
        'question "route"' in refusal(lambda: read_questions({**QUESTIONS, "route": broken}), QuestionError)
    ))  # fmt: skip

row("003", 'prediction.choice("kind")', "bug", lambda: Prediction.of(RESPONSE).choice("kind"))
row("003", 'prediction.answer_confidence("kind")', 0.90,
    lambda: Prediction.of(RESPONSE).answer_confidence("kind"))  # fmt: skip
row("003", "prediction.input_tokens()", 42, lambda: Prediction.of(RESPONSE).input_tokens)
row("003", 'prediction.confidence("kind")', 0.75, lambda: Prediction.of(RESPONSE).confidence("kind"))
row("003", "output tokens are read too", 7, lambda: Prediction.of(
    {"usage": {"input_tokens": 42, "output_tokens": 7}}
).output_tokens)  # fmt: skip

FLAT, PEAKED = (
    ChoiceAnswer("a", {"a": 0.52, "b": 0.24, "c": 0.24}),
    ChoiceAnswer("a", {"a": 0.52, "b": 0.48, "c": 0.0}),
)
row("003", "confidence is of the whole distribution: it tells [.52,.48,0] from [.52,.24,.24]", (0.37, 0.07),
    lambda: (round(certainty(PEAKED), 2), round(certainty(FLAT), 2)))  # fmt: skip
row("003", "System One's own confidence stays beside it", (0.28, 0.28),
    lambda: tuple(round(confidence(each) or 0, 2) for each in (PEAKED, FLAT)))  # fmt: skip
row("003", "answer_confidence is the probability of the answer reported", (0.52, 0.52),
    lambda: (answer_confidence(PEAKED), answer_confidence(FLAT)))  # fmt: skip

row("003", "bounded integers become score, booleans noul", {"priority": "score", "escalate": "noul"},
    lambda: {name: each.type for name, each in questions_from_json_schema(SCHEMA).items()})  # fmt: skip
row("003", "enum and const values become choice", "choice", lambda: questions_from_json_schema(
    {"type": "object", "properties": {"p": {"enum": ["a", 1]}}}
)["p"].type)  # fmt: skip
row("003", "1 to 3 is answered as 1 to 3", {"priority": 3, "escalate": True}, lambda: answers_to_json(
    {
        "priority": {"type": "score", "score": 1.9, "probabilities": {"0": 0.0, "1": 0.1, "2": 0.9}},
        "escalate": {"type": "noul", "noul": 0.9},
    },
    SCHEMA,
))  # fmt: skip
row("003", "no answers, no values", {}, lambda: answers_to_json({}, SCHEMA))
row("003", "a required property that stays unanswered is said", "properties.priority: is required, and not answered",
    lambda: refusal(lambda: answers_to_json({}, {**SCHEMA, "required": ["priority"]}), SchemaError))  # fmt: skip
for _kind, _schema in {
    "a free-form string": {"type": "string"},
    "an array": {"type": "array", "items": {"type": "boolean"}},
    "a nested object": {"type": "object", "properties": {}},
    "an ambiguous union": {"anyOf": [{"type": "boolean"}, {"enum": ["a", "b"]}]},
    "an unbounded integer": {"type": "integer", "minimum": 0},
}.items():
    row("003", f"rejected by its name: {_kind}", True, lambda schema=_schema: refusal(
        lambda: questions_from_json_schema({"type": "object", "properties": {"p": schema}}), SchemaError
    ).startswith("properties.p: "))  # fmt: skip
row("003", "an enum of as many values as a choice takes", 255, lambda: len(questions_from_json_schema(
    {"type": "object", "properties": {"p": {"enum": list(range(255))}}}
)["p"].labels))  # fmt: skip

OPTIONS = {f"option {n}": None for n in range(300)}


def embed(texts: Any) -> list[list[float]]:
    return [[1.0, float(len(text) % 7), float(text.endswith(" 123"))] for text in texts]


def cached() -> tuple[int, int, int]:
    function = cached_embed_fn(embed, maxsize=1000)
    kept = [shortlist_choice("about 123", OPTIONS, function, k=5) for _ in range(2)]
    info = function.cache_info()
    return len(kept[0].labels), info.hits, info.misses


def failing() -> int:
    calls: list[int] = []

    def fails(texts: Any) -> list[list[float]]:
        calls.append(len(texts))
        if len(calls) == 1:
            raise OSError("away")
        return embed(texts)

    function = cached_embed_fn(fails, maxsize=10)
    refusal(lambda: function(["a"]), OSError)
    function(["a"])
    return len(calls)


row("003", "shortlisting keeps the top k of hundreds", 5,
    lambda: len(shortlist_choice("about 123", OPTIONS, embed, k=5).labels))  # fmt: skip
row("003", "cached_embed_fn reports hits and misses", (5, 301, 301), cached)
row("003", "it never caches a failed embedding", 2, failing)
row("003", "few labels pass through", True,
    lambda: shortlist_choice("x", {"a": None, "b": None}, embed, k=5).passthrough)  # fmt: skip


def model_answers() -> list[str]:
    questions = read_questions(QUESTIONS)
    (scores,) = open_scorer("onnx").score([Ticket(id="t", state="The page crashes.")], questions)
    return sorted(scores.answers)


row("003", "every question is evaluated against one state", ["kind", "safe", "urgency"], model_answers)
