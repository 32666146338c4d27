"""A System One request answered by a scorer, in Python and by `ticketgate run`."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from ticketgate.agents.scoring import Scores, default_model_path
from ticketgate.agents.scoring.systemone import REQUEST_ID, AnswersUnusable, RequestError, answer_request
from ticketgate.codecs.records.decision import ModelRef
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.systemone.questions import Question
from ticketgate.codecs.values.strict import JsonValue
from ticketgate.streams.cli.deciding.show_answers import percent

from tests.streams.cli.conftest import Run, process

QUESTIONS: dict[str, JsonValue] = {
    "urgent": {"type": "noul", "instructions": "Does the customer request urgent action?"},
    "route": {"type": "choice", "criteria": {"billing": "payments", "technical": "bugs", "other": None}},
    "anger": {"type": "score", "instructions": "How angry?", "criteria": ["calm", "annoyed", "angry"]},
}
ANSWERS: dict[str, JsonValue] = {
    "urgent": {"type": "noul", "noul": 0.49996},
    "route": {
        "type": "choice",
        "choice": "billing",
        "probabilities": {"billing": 0.9346, "technical": 0.0049, "other": 0.0605},
    },
    "anger": {"type": "score", "score": 1.12, "probabilities": {"0": 0.14, "1": 0.6, "2": 0.26}},
}


class Answers:
    """Gives these answers, and remembers what was asked."""

    def __init__(
        self,
        answers: Mapping[str, JsonValue] = ANSWERS,
        *,
        truncated: frozenset[str] = frozenset(),
        abstention: str | None = None,
    ) -> None:
        self._scores = Scores(answers=answers, truncated=truncated, input_tokens=72, abstention=abstention)
        self.asked: list[tuple[JsonValue, list[str]]] = []

    @property
    def model(self) -> ModelRef:
        return ModelRef(id="given@1", hash="0" * 64)

    def score(self, tickets: Sequence[Ticket], questions: Mapping[str, Question]) -> Sequence[Scores]:
        self.asked.extend((ticket.state, list(questions)) for ticket in tickets)
        return [self._scores for _ in tickets]


def request(**fields: JsonValue) -> dict[str, JsonValue]:
    return {"state": "My card was charged twice.", "questions": QUESTIONS} | fields


def test_a_response_has_the_protocols_shape_and_the_numbers_as_they_came() -> None:
    response = answer_request(request(), Answers())

    assert response == {
        "model": "given@1",
        "answers": {
            "urgent": {
                "type": "noul",
                "noul": 0.49996,
                "x_answer_confidence": 1 - 0.49996,
                "x_certainty": pytest.approx(0, abs=1e-6),
            },
            "route": {
                "type": "choice",
                "choice": "billing",
                "confidence": pytest.approx(0.9019, abs=1e-12),
                "probabilities": {"billing": 0.9346, "technical": 0.0049, "other": 0.0605},
                "x_answer_confidence": 0.9346,
                "x_certainty": pytest.approx(0.7643, abs=1e-4),
            },
            "anger": {
                "type": "score",
                "score": 1.12,
                "confidence": pytest.approx(0.4, abs=1e-12),
                "legend": {"0": "calm", "1": "annoyed", "2": "angry"},
                "probabilities": {"0": 0.14, "1": 0.6, "2": 0.26},
                "x_answer_confidence": 0.6,
                "x_certainty": pytest.approx(0.1516, abs=1e-3),
            },
        },
        "usage": {"input_tokens": 72, "output_tokens": 0},
    }


def test_what_was_read_in_part_is_said_in_usage() -> None:
    response: Any = answer_request(request(), Answers(truncated=frozenset({"anger", "urgent"})))

    assert response["usage"]["x_truncated"] == ["urgent", "anger"]


def test_answers_that_the_model_does_not_stand_by_are_given_with_the_reason() -> None:
    response: Any = answer_request(request(), Answers(abstention="another language"))

    assert response["usage"]["x_abstention"] == "another language"
    assert response["answers"].keys() == QUESTIONS.keys()


@pytest.mark.parametrize("state", ["text", {"subject": "a", "body": None}, ["a", {"b": 1}], "", {}])
def test_a_state_is_text_an_object_or_an_array_and_unknown_fields_are_ignored(state: JsonValue) -> None:
    scorer = Answers()

    answer_request(request(state=state, model="jev-latest", temperature=0), scorer)

    assert scorer.asked == [(state, ["urgent", "route", "anger"])]


QUESTION_FAULTS: list[tuple[JsonValue, tuple[str, ...], str, str]] = [
    ({"type": "choice"}, ("criteria",), "Field required", "missing"),
    ({"criteria": {}}, ("type",), "Field required", "missing"),
    ({"type": "text"}, ("type",), 'type must be noul, choice or score, not "text"', "value_error"),
    ({"type": "noul"}, ("criteria",), "Field required", "missing"),
    (
        {"type": "score", "criteria": ["one"]},
        ("criteria",),
        "score criteria must have 2 to 10 levels, not 1",
        "value_error",
    ),
    (
        {"type": "noul", "instructions": 7},
        ("instructions",),
        "instructions must be text, an object, an array or null, not the number 7",
        "value_error",
    ),
    (7, (), "must be an object, not the number 7", "value_error"),
]


@pytest.mark.parametrize(("question", "place", "msg", "kind"), QUESTION_FAULTS)
def test_a_question_that_cannot_be_asked_is_named_before_anything_is_scored(
    question: JsonValue, place: tuple[str, ...], msg: str, kind: str
) -> None:
    scorer = Answers()

    with pytest.raises(RequestError) as caught:
        answer_request(request(questions={"good": QUESTIONS["urgent"], "bad": question}), scorer)

    loc = ["body", "questions", "bad", *place]
    assert caught.value.to_json() == {"detail": [{"loc": loc, "msg": msg, "type": kind}]}
    assert scorer.asked == []


def test_every_fault_of_a_request_is_named_at_once() -> None:
    bad: dict[str, JsonValue] = {"model": 1, "state": None, "questions": {"a": {"type": "choice"}, "": {}}}

    with pytest.raises(RequestError) as caught:
        answer_request(bad, Answers())

    assert [fault.loc for fault in caught.value.faults] == [
        ("body", "model"),
        ("body", "state"),
        ("body", "questions", "a", "criteria"),
        ("body", "questions", ""),
    ]


@pytest.mark.parametrize(
    ("value", "loc", "kind"),
    [
        ([], ["body"], "dict_type"),
        ({"questions": QUESTIONS}, ["body", "state"], "missing"),
        ({"state": "x"}, ["body", "questions"], "missing"),
        ({"state": "x", "questions": []}, ["body", "questions"], "dict_type"),
        ({"state": "x", "questions": {}}, ["body", "questions"], "too_short"),
    ],
)
def test_a_request_without_its_parts_says_which(value: JsonValue, loc: list[str], kind: str) -> None:
    with pytest.raises(RequestError) as caught:
        answer_request(value, Answers())

    assert [(list(fault.loc), fault.type) for fault in caught.value.faults] == [(loc, kind)]


def test_answers_that_do_not_hold_together_are_not_returned() -> None:
    broken: dict[str, JsonValue] = {**ANSWERS, "urgent": {"type": "noul", "noul": 1.5}}

    with pytest.raises(AnswersUnusable, match="urgent"):
        answer_request(request(), Answers(broken))


# --- ticketgate run ---


@pytest.fixture
def fixed(tmp_path: Path) -> str:
    path = tmp_path / "fixed.json"
    path.write_text(json.dumps({REQUEST_ID: ANSWERS}))
    return f"fixed:{path}"


def write(folder: Path, value: JsonValue) -> Path:
    path = folder / "request.json"
    path.write_text(json.dumps(value))
    return path


def test_run_prints_the_response(ticketgate: Run, tmp_path: Path, fixed: str) -> None:
    ran = ticketgate("run", "--request", write(tmp_path, request()), "--scorer", fixed, "--json")

    (response,) = ran.lines
    assert (ran.code, ran.err) == (0, "")
    assert response == answer_request(request(), Answers()) | {
        "model": "fixed",
        "usage": {"input_tokens": 0, "output_tokens": 0},
    }


def test_run_shows_a_person_bars_and_percentages(ticketgate: Run, tmp_path: Path, fixed: str) -> None:
    ran = ticketgate("run", "--request", write(tmp_path, request()), "--scorer", fixed)

    lines = [" ".join(line.replace("█", " ").split()) for line in ran.out.decode().splitlines()]
    assert ran.code == 0
    assert lines[1].startswith("urgent false true")
    assert lines[1].endswith("49.9 %")
    assert lines[2].startswith("route billing billing")
    assert lines[2].endswith("93.4 %")
    assert lines[5].startswith("anger 1.12 0 calm")
    assert "█" in ran.out.decode()
    assert ran.err.startswith("model fixed, ")


def test_run_names_each_fault_of_a_bad_request(ticketgate: Run, tmp_path: Path) -> None:
    file = write(tmp_path, {"state": 3, "questions": {"a": {"type": "choice"}}})

    ran = ticketgate("run", "--request", file)

    assert (ran.code, ran.out) == (2, b"")
    assert ran.err.splitlines() == [
        f"ticketgate: {file}: state: must be text, an object or an array, not the number 3",
        f"{file}: questions.a.criteria: Field required",
    ]


def test_run_calls_answers_that_do_not_hold_together_a_finding(ticketgate: Run, tmp_path: Path) -> None:
    (tmp_path / "fixed.json").write_text("{}")

    ran = ticketgate(
        "run", "--request", write(tmp_path, request()), "--scorer", f"fixed:{tmp_path / 'fixed.json'}"
    )

    assert (ran.code, ran.out) == (3, b"")
    assert 'question "urgent": no answer' in ran.err


def test_run_reads_standard_input(fixed: str) -> None:
    ran = process("run", "--request", "-", "--scorer", fixed, "--json", given=json.dumps(request()).encode())

    assert (ran.code, list(ran.lines[0]["answers"])) == (0, ["urgent", "route", "anger"])


def test_the_local_model_answers_every_kind_of_question(ticketgate: Run, tmp_path: Path) -> None:
    ran = ticketgate("run", "--request", write(tmp_path, request()), "--json")

    (response,) = ran.lines
    assert [answer["type"] for answer in response["answers"].values()] == ["noul", "choice", "score"]
    assert response["usage"]["input_tokens"] > 0


def test_a_model_file_with_another_sha256_is_one_line_that_names_the_setting(
    ticketgate: Run, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(default_model_path(), folder)
    (folder / "head.onnx").write_bytes(b"another")

    ran = ticketgate("run", "--request", write(tmp_path, request()), "--model", folder)

    assert (ran.code, ran.out) == (2, b"")
    assert ran.err.startswith("ticketgate: TICKETGATE_MODEL: ")
    assert "head.onnx" in ran.err
    assert "sha256" in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    ("probability", "shown"),
    [
        (0.5, " 50.0 %"),
        (0.49999999, " 49.9 %"),
        (0.29, " 29.0 %"),
        (1.0, "100.0 %"),
        (0.99999, " 99.9 %"),
        (0, "  0.0 %"),
    ],
)
def test_no_percentage_stands_on_the_other_side_of_a_threshold(probability: float, shown: str) -> None:
    assert percent(probability) == shown
