"""Builders for the tests of deciding: a test shows only what matters to it.

No `assert` stands here: pytest rewrites those of test modules alone, and `python -O` drops the others.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ticketgate.agents.deciding.decide import Decision, decide
from ticketgate.agents.policy import Policy, parse_policy
from ticketgate.agents.scoring.scorer import Scores
from ticketgate.codecs.records.decision import ModelRef
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.systemone.questions import Question
from ticketgate.codecs.values.strict import JsonValue

# The support policy of seed 000: five questions, three rules.
SUPPORT = """
name = "support"
version = "1"

[questions.urgent]
type = "noul"
instructions = "Must this be handled today?"

[questions.review]
type = "noul"
instructions = "Should a colleague look at this before anything is sent?"

[questions.auto_reply]
type = "noul"
instructions = "Would a prepared answer do?"

[questions.billing]
type = "noul"
instructions = "Is this about money?"

[questions.technical]
type = "noul"
instructions = "Is something not working?"

[[rules]]
implies = ["urgent", "review"]

[[rules]]
excludes = ["review", "auto_reply"]

[[rules]]
exactly_one = ["billing", "technical"]

[[effects]]
when = "billing"
tool = "assign_queue"
arguments = { queue = "billing" }

[[effects]]
when = "auto_reply"
tool = "send_reply"
arguments = { template = "received" }
"""
LABELS = ("urgent", "review", "auto_reply", "billing", "technical")

MODEL = ModelRef(id="by-hand", hash="0")


def policy(text: str = SUPPORT, *, top: str = "") -> Policy:
    """A policy from its text; `top` goes before it, where the document's own keys stand."""
    return parse_policy(top + "\n" + text, source="test.toml")


def small(rest: str, *, top: str = "", nouls: Sequence[str] = ("a", "b", "c")) -> str:
    """A policy's text with a few nouls and whatever else the test is about."""
    questions = "\n".join(f'[questions.{name}]\ntype = "noul"\ninstructions = "{name}?"' for name in nouls)
    return f'name = "small"\nversion = "1"\n{top}\n{questions}\n{rest}\n'


def noul(probability: object) -> dict[str, object]:
    """A noul's answer."""
    return {"type": "noul", "noul": probability}


def choice(label: str, **probabilities: float) -> dict[str, object]:
    """A choice's answer."""
    return {"type": "choice", "choice": label, "confidence": 0.5, "probabilities": probabilities}


def score(*probabilities: float) -> dict[str, object]:
    """A score's answer, with the expectation that belongs to it."""
    by_level = {str(level): value for level, value in enumerate(probabilities)}
    expected = sum(level * value for level, value in enumerate(probabilities))
    return {"type": "score", "score": expected, "confidence": 0.5, "probabilities": by_level}


def support_answers(*probabilities: object) -> dict[str, object]:
    """Answers to the support policy's questions, in the order of LABELS."""
    return {name: noul(value) for name, value in zip(LABELS, probabilities, strict=True)}


def ticket(ticket_id: str = "T-1", **fields: object) -> Ticket:
    """A ticket with something to read."""
    return Ticket(**{"id": ticket_id, "state": "I paid twice, please help.", **fields})  # type: ignore[arg-type]


class ByHand:
    """A scorer whose answers are written by hand, one set for all tickets or one for each id.

    `asked` remembers every call: the ids of its tickets and of its questions.
    """

    def __init__(
        self,
        answers: Mapping[str, object] | None = None,
        *,
        by_id: Mapping[str, Mapping[str, object]] | None = None,
        truncated: Sequence[str] = (),
        abstention: str | None = None,
    ) -> None:
        self._answers = answers or {}
        self._by_id = by_id or {}
        self._truncated = frozenset(truncated)
        self._abstention = abstention
        self.asked: list[tuple[tuple[str, ...], tuple[str, ...]]] = []

    @property
    def model(self) -> ModelRef:
        return MODEL

    def score(self, tickets: Sequence[Ticket], questions: Mapping[str, Question]) -> Sequence[Scores]:
        self.asked.append((tuple(each.id for each in tickets), tuple(questions)))
        return [
            Scores(self._by_id.get(each.id, self._answers), self._truncated, abstention=self._abstention)
            for each in tickets
        ]


def decide_one(
    answers: Mapping[str, object], under: Policy, *, truncated: Sequence[str] = (), **fields: Any
) -> Decision:
    """The decision on one ticket that got these answers."""
    (decision,) = decide([ticket(**fields)], policy=under, scorer=ByHand(answers, truncated=truncated))
    return decision


def record(ticket_id: str, *values: float, **fields: JsonValue) -> dict[str, JsonValue]:
    """A record of the support policy's decision about these answers, in the order of LABELS."""
    answers = support_answers(*values)
    decision = decide_one(answers, policy())
    return {
        "schema": "decision/1",
        "ticket_id": ticket_id,
        "verdict": {"status": str(decision.verdict.status), "stage": str(decision.verdict.stage)},
        "answers": json.loads(json.dumps(answers)),
        "policy": {"name": "support", "version": "1", "hash": policy().hash},
        **fields,
    }
