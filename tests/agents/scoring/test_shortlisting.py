"""Choices decided through a shortlist, by the default model and under a policy."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from ticketgate.agents.deciding.decide import decide
from ticketgate.agents.policy import PolicyError, parse_policy
from ticketgate.agents.scoring import Scorer, Scores, open_scorer
from ticketgate.agents.scoring.asked import asked_as_recorded
from ticketgate.agents.scoring.shortlisting import Shortlister, score_shortlisted
from ticketgate.agents.workbench.policy.check import check
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.systemone.question_reading import read_question
from ticketgate.codecs.systemone.questions import ChoiceQuestion, NoulQuestion, Question, QuestionError
from ticketgate.codecs.values.strict import encode
from ticketgate.codecs.verdict import Stage, Status

from ...support import tiny
from . import test_joint_contracts

TEAMS = [
    "parcels",
    "invoices",
    "passwords",
    "refunds",
    "cards",
    "logins",
    "contracts",
    "meters",
    "seats",
    "visas",
]
PLACES = ["Oslo", "Rome", "Lima", "Cairo", "Delhi", "Perth", "Quito", "Hanoi", "Tunis", "Minsk"]
MATTERS = ["lost", "late", "wrong", "new", "old", "urgent", "broken", "missing", "double", "stolen"]
THOUSAND = {f"{matter} {team} in {place}": None for place in PLACES for team in TEAMS for matter in MATTERS}
TICKET = Ticket(id="T", state="Someone has stolen my cards in Lima, please block them.")


@pytest.fixture(scope="module")
def scorer() -> Scorer:
    return open_scorer("onnx")


def shortlisted(k: int = 20) -> ChoiceQuestion:
    question = read_question("intent", {"type": "choice", "criteria": dict(THOUSAND)}, shortlist=k)
    assert isinstance(question, ChoiceQuestion)
    return question


def test_a_choice_of_a_thousand_is_decided_through_the_shortlist(scorer: Scorer) -> None:
    (scores,) = scorer.score([TICKET], {"intent": shortlisted()})

    answer: Any = scores.answers["intent"]
    told = answer["x_shortlist"]
    assert answer["choice"] == "stolen cards in Lima"
    assert list(answer["probabilities"]) == told["labels"]
    assert sum(answer["probabilities"].values()) == pytest.approx(1)
    assert (len(told["labels"]), len(told["scores"]), told["k"], told["n"]) == (20, 20, 20, 1000)
    assert told["passthrough"] is False
    assert scores.asked["intent"].labels == tuple(told["labels"])


def test_it_is_timed_against_scoring_all_in_one_run() -> None:
    """No bound: what the two cost depends on the machine. `pytest -s` shows the numbers."""
    fresh = open_scorer("onnx")
    whole: Mapping[str, Question] = {"intent": ChoiceQuestion(None, dict(THOUSAND))}
    took = {}
    for name, questions in (("shortlist", {"intent": shortlisted()}), ("all", whole)):
        for turn in ("first", "again"):
            began = time.perf_counter()
            (scores,) = fresh.score([TICKET], questions)
            took[f"{name}, {turn}"] = time.perf_counter() - began
            answer: Any = scores.answers["intent"]
            assert answer["choice"] == "stolen cards in Lima"
    print({name: f"{1000 * seconds:.1f} ms" for name, seconds in took.items()})


def test_the_others_answers_are_as_without_a_shortlist(scorer: Scorer) -> None:
    others = {
        "urgent": NoulQuestion("Is it urgent?"),
        "place": ChoiceQuestion(None, {"Lima": None, "Rome": None}),
    }
    tickets = [TICKET, Ticket(id="U", state="hello " * 2100)]

    alone = scorer.score(tickets, others)
    together = scorer.score(
        tickets, {"urgent": others["urgent"], "intent": shortlisted(), "place": others["place"]}
    )

    for one, both in zip(alone, together, strict=True):
        assert list(both.answers) == ["urgent", "intent", "place"]
        assert both.answers["urgent"] == one.answers["urgent"]
        assert both.answers["place"] == one.answers["place"]
    assert together[1].truncated == {"urgent", "intent", "place"}


def test_few_options_pass_through(scorer: Scorer) -> None:
    question = ChoiceQuestion(None, {"Lima": None, "Rome": None}, shortlist=20)

    (scores,) = scorer.score([TICKET], {"q": question})

    answer: Any = scores.answers["q"]
    assert answer["x_shortlist"] == {
        "labels": ["Lima", "Rome"],
        "scores": None,
        "k": 20,
        "n": 2,
        "passthrough": True,
    }


def test_a_model_without_vectors_of_its_own_takes_the_default_models(tmp_path: Path) -> None:
    scorer = open_scorer("onnx", model=test_joint_contracts.pair(tmp_path / "m"))

    (scores,) = scorer.score([Ticket(id="T", state="My card is lost.")], {"q": shortlisted(2)})

    answer: Any = scores.answers["q"]
    assert len(answer["probabilities"]) == 2
    assert all("cards" in label for label in answer["probabilities"])
    assert tiny.WORDS


def test_what_a_part_fails_of_the_whole_fails() -> None:
    from ticketgate.agents.scoring.scorer import Failure

    def score(tickets: Sequence[Ticket], asked: Sequence[Mapping[str, Question]]) -> Sequence[Scores]:
        assert all("intent" in questions for questions in asked)
        return [Scores({}, failure=Failure("too long")) for _ in tickets]

    shortlister = Shortlister(lambda: lambda texts: [[1.0]] * len(texts))
    (scores,) = score_shortlisted(
        score, shortlister, [TICKET], {"intent": shortlisted(), "a": NoulQuestion("a")}
    )

    assert scores.failure == Failure("too long")


@pytest.mark.parametrize(
    ("question", "k", "reason"),
    [
        ({"type": "noul", "instructions": "a"}, 20, "only a choice can have a shortlist"),
        ({"type": "score", "criteria": ["a", "b"]}, 20, "only a choice can have a shortlist"),
        ({"type": "choice", "criteria": {"a": None, "b": None}}, 1, "shortlist must be from 2 to 255, not 1"),
        ({"type": "choice", "criteria": {"a": None, "b": None}}, 256, "from 2 to 255, not 256"),
        (
            {"type": "choice", "criteria": {str(n): None for n in range(10_001)}},
            20,
            "2 to 10000 options, not 10001",
        ),
        (
            {"type": "choice", "criteria": {str(n): None for n in range(256)}},
            None,
            "2 to 255 options, not 256",
        ),
    ],
)
def test_a_shortlist_that_cannot_be_made_is_refused(question: Any, k: int | None, reason: str) -> None:
    with pytest.raises(QuestionError, match=reason):
        read_question("q", question, shortlist=k)


# --- under a policy ---


def policy_text(line: str = "shortlist = 20") -> str:
    criteria = "\n".join(f'"{label}" = "{label}"' for label in THOUSAND)
    return f"""
name = "large"
version = "1"
[[rules]]
forbid = ["intent=stolen cards in Lima", "intent=lost cards in Rome"]
[[effects]]
when = "intent=stolen cards in Lima"
tool = "block_card"
[questions.intent]
type = "choice"
{line}
[questions.intent.criteria]
{criteria}
"""


def test_a_policy_turns_it_on_by_a_line_and_the_record_has_what_was_kept(scorer: Scorer) -> None:
    policy = parse_policy(policy_text())

    (decision,) = decide([TICKET], policy=policy, scorer=scorer)

    answers: Any = decision.answers
    assert decision.verdict.status is Status.ACCEPT
    assert decision.selected == ("intent=stolen cards in Lima",)
    assert [effect.tool for effect in decision.effects] == ["block_card"]
    assert answers["intent"]["x_shortlist"]["n"] == 1000
    again = check({"id": "T", "state": TICKET.state, "answers": answers}, policy=policy)
    assert (again.verdict.status, again.selected) == (Status.ACCEPT, decision.selected)
    assert encode(answers)


def test_without_the_line_a_thousand_are_too_many() -> None:
    with pytest.raises(PolicyError, match="2 to 255 options, not 1000"):
        parse_policy(policy_text(line=""))


@pytest.mark.parametrize("line", ["shortlist = 1", "shortlist = 256"])
def test_a_k_that_is_none_is_refused_by_its_line(line: str) -> None:
    with pytest.raises(PolicyError, match=r"p\.toml:11: .*shortlist must be from 2 to 255"):
        parse_policy(policy_text(line), source="p.toml")


def test_a_shortlist_that_nobody_can_have_made_is_not_believed() -> None:
    policy = parse_policy(policy_text())
    two = {"lost cards in Rome": 0.1, "stolen cards in Lima": 0.9}
    answer: dict[str, Any] = {
        "type": "choice",
        "choice": "stolen cards in Lima",
        "probabilities": two,
        "x_shortlist": {"labels": list(two)},
    }

    assert asked_as_recorded(policy.questions, {"intent": answer}) == {}
    verdict = check({"answers": {"intent": answer}}, policy=policy).verdict
    assert (verdict.status, verdict.stage) == (Status.REVIEW, Stage.ANSWERS)


# --- a policy's schema ---

SCHEMA: Any = {
    "type": "object",
    "properties": {
        "urgent": {"type": "boolean", "description": "Is it urgent?"},
        "team": {"enum": ["billing", "technical"]},
        "anger": {"type": "integer", "minimum": 1, "maximum": 3},
        "source": {"const": "mail"},
    },
}
BY_SCHEMA = """
name = "by-schema"
version = "1"
schema = "ticket.schema.json"
[questions.vip]
type = "noul"
from = "attributes.vip"
[[rules]]
implies = ["vip", "team=billing"]
"""


def test_a_policy_takes_its_questions_from_a_schema(tmp_path: Path) -> None:
    from ticketgate.agents.policy import load_policy

    (tmp_path / "ticket.schema.json").write_bytes(encode(SCHEMA))
    (tmp_path / "policy.toml").write_text(BY_SCHEMA)

    policy = load_policy(tmp_path / "policy.toml")

    assert policy.ids == ("vip", "urgent", "team", "anger")
    assert policy.questions["urgent"] == NoulQuestion("Is it urgent?", values=(False, True))
    assert policy.thresholds == {"urgent": 0.5}
    (tmp_path / "ticket.schema.json").write_bytes(
        encode({**SCHEMA, "properties": {**SCHEMA["properties"], "team": {"enum": ["billing", "other"]}}})
    )
    assert load_policy(tmp_path / "policy.toml").hash != policy.hash


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (None, "cannot be read: No such file"),
        (b"{", "not JSON"),
        (b"[]", "the schema: must be an object"),
        (b'{"type": "object", "properties": {"a": {"type": "string"}}}', "properties.a: a free string"),
        (b'{"type": "object", "properties": {"vip": {"type": "boolean"}}}', '"vip" is both'),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_at_its_line(
    tmp_path: Path, schema: bytes | None, reason: str
) -> None:
    if schema is not None:
        (tmp_path / "ticket.schema.json").write_bytes(schema)

    with pytest.raises(PolicyError) as refused:
        parse_policy(BY_SCHEMA, source="p.toml", folder=tmp_path)

    assert "p.toml:4: " in str(refused.value)
    assert reason in str(refused.value)


def test_a_policy_from_no_file_has_no_schema() -> None:
    with pytest.raises(PolicyError, match="comes from no file"):
        parse_policy(BY_SCHEMA)
