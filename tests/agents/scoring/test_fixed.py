"""Answers from a file."""

import hashlib
import json
from pathlib import Path

import pytest
from ticketgate.agents.scoring import ScorerError, open_scorer
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.systemone.questions import NoulQuestion

QUESTIONS = {"urgent": NoulQuestion("Is it urgent?")}


def written(tmp_path: Path, text: str) -> str:
    path = tmp_path / "answers.json"
    path.write_text(text)
    return f"fixed:{path}"


def test_a_ticket_gets_the_answers_written_for_its_id(tmp_path: Path) -> None:
    answers = {"urgent": {"type": "noul", "noul": 0.9}}
    scorer = open_scorer(written(tmp_path, json.dumps({"T-1": answers})))

    (scores,) = scorer.score([Ticket(id="T-1", state="help")], QUESTIONS)

    assert scores.answers == answers
    assert scores.truncated == frozenset()


def test_a_ticket_that_is_not_in_the_file_has_no_answers(tmp_path: Path) -> None:
    scorer = open_scorer(written(tmp_path, '{"T-1": {}}'))

    scores = scorer.score([Ticket(id="T-2", state="help"), Ticket(id="T-1", state="help")], QUESTIONS)

    assert [s.answers for s in scores] == [{}, {}]


def test_a_file_may_have_answers_for_as_many_tickets_as_it_likes(tmp_path: Path) -> None:
    text = json.dumps({f"T-{number}": {"u": {}} for number in range(20_000)})
    scorer = open_scorer(written(tmp_path, text))

    (scores,) = scorer.score([Ticket(id="T-19999", state="help")], QUESTIONS)

    assert scores.answers == {"u": {}}


def test_the_model_is_the_file(tmp_path: Path) -> None:
    scorer = open_scorer(written(tmp_path, "{}"))

    assert scorer.model.id == "fixed"
    assert scorer.model.hash == hashlib.sha256(b"{}").hexdigest()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[]", "not an object"),
        ('{"T-1": 1}', 'the answers of "T-1" are not an object'),
        ('{"T-1": {}, "T-1": {}}', 'duplicate key "T-1"'),
        ("", "empty value"),
    ],
)
def test_a_file_that_holds_no_answers_is_refused_in_one_line(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(ScorerError) as refused:
        open_scorer(written(tmp_path, text))

    assert refused.value.setting == "TICKETGATE_SCORER"
    assert reason in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_missing_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ScorerError, match=r"none\.json: the file cannot be read: No such file"):
        open_scorer(f"fixed:{tmp_path / 'none.json'}")


@pytest.mark.parametrize("spec", ["fixed", "fixed:", "onnx:", "remote:", "", "ONNX"])
def test_an_unknown_scorer_is_refused_with_those_that_there_are(spec: str) -> None:
    with pytest.raises(ScorerError, match=r"use onnx .*, fixed:PATH .* or remote:URL"):
        open_scorer(spec)
