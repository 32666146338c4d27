"""Many decisions, the same at each run: tickets, policies and answers by a seeded dice, to records.

.venv/bin/python -m tests.streams.lane.golden 17       # what came of case 17
.venv/bin/python -m tests.streams.lane.golden --write  # the digests, anew
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aiokafka import ConsumerRecord
from ticketgate.agents.deciding.decide import Decision, decide
from ticketgate.agents.policy import Policy, parse_policy
from ticketgate.agents.scoring.scorer import Failure, Scores
from ticketgate.codecs.records.decision import ModelRef
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.systemone.questions import ChoiceQuestion, NoulQuestion, Question
from ticketgate.streams.lane.taking.intake import take_in
from ticketgate.streams.lane.taking.records import RecordWriter
from ticketgate.streams.lane.transaction import Outgoing

from ...support.deciding import MODEL, SUPPORT
from ...support.sample_records import READ, TOPICS

FILE = Path(__file__).with_name("golden_records.txt")
SAMPLES = Path(__file__).resolve().parents[3] / "streams" / "samples"
CASES = 900
NOW = datetime(2026, 11, 29, 18, 0, 0, 123_456, tzinfo=UTC)
# Small enough that some records have to leave their text behind.
MAX_BYTES = 4_096

# Every kind of question, values of their own, facts, abstentions, every construct, every reference.
EVERYTHING = """
name = "everything"
version = "7"
threshold = 0.4
abstain_below = 0.55
on_truncation = "allow"

[questions.urgent]
type = "noul"
instructions = "Today?"
threshold = 0.3

[questions.kind]
type = "choice"
instructions = "Which?"
criteria = { bug = "broken", "größe" = "how large", praise = "" }

[questions.code]
type = "choice"
instructions = "Which code?"
criteria = { "1" = "one", "2" = "two", "none" = "no code" }
values = [1, 2, "none"]

[questions.anger]
type = "score"
instructions = "How angry?"
criteria = ["calm", "cross", "furious"]

[questions.stars]
type = "score"
instructions = "How good?"
criteria = ["bad", "fair", "good"]
values = [1, 3, 5]

[questions.vip]
type = "noul"
from = "attributes.vip"

[questions.tier]
type = "choice"
from = "attributes.customer.tier"
criteria = { gold = "", silver = "" }

[[rules]]
implies = ["urgent", "anger>=1"]

[[rules]]
iff = ["vip", "tier=gold"]

[[rules]]
id = "no-praise"
forbid = ["kind=praise", "anger=2"]
message = "praise is not furious"

[[rules]]
at_most = { count = 2, of = ["urgent", "vip", "kind=bug", "stars>=3"] }

[[rules]]
any_of = ["code=1", "code=2", "!vip"]

[[effects]]
tool = "note"
arguments = { text = "{ticket.id} of {ticket.tenant} is {labels.kind}, {labels.anger}", stars = "{labels.stars}" }

[[effects]]
when = ["vip", "kind=bug"]
tool = "call"
arguments = { who = "{attributes.customer}", braces = "{{}}", deep = [{ a = "{attributes.number}" }] }
"""
SMALL = """
name = "bench"
version = "1"

[questions.vip]
type = "noul"
from = "attributes.vip"

[[effects]]
when = "vip"
tool = "assign_queue"
arguments = { queue = "vip" }
"""


class Answering:
    """A scorer by a dice: mostly sound answers, some that are none."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice

    @property
    def model(self) -> ModelRef:
        return MODEL

    def score(self, tickets: Sequence[Ticket], questions: Mapping[str, Question]) -> Sequence[Scores]:
        return [self._one(questions) for _ in tickets]

    def _one(self, questions: Mapping[str, Question]) -> Scores:
        dice = self._dice
        trouble = dice.random()
        answers: dict[str, object] = {name: self._answer(each) for name, each in questions.items()}
        if trouble < 0.02:
            return Scores({}, failure=Failure("the server said 400", is_senders=True))
        if trouble < 0.04:
            return Scores(answers, abstention="the text is in a language that the model does not know")
        if trouble < 0.08 and answers:
            name = pick(dice, sorted(answers))
            answers[name] = pick(
                dice,
                [None, {"type": "noul"}, {"type": "noul", "noul": float("nan")}, [1], {"type": "choice"}],
            )
        elif trouble < 0.1:
            answers["unasked"] = {"type": "noul", "noul": 2**70}
        truncated = frozenset(name for name in questions if dice.random() < 0.01)
        model = ModelRef("another", "1" * 64) if dice.random() < 0.1 else None
        return Scores(answers, truncated, input_tokens=7, model=model)

    def _answer(self, question: Question) -> dict[str, object]:
        dice = self._dice
        if isinstance(question, NoulQuestion):
            return {
                "type": "noul",
                "noul": pick(dice, [0, 1, dice.random(), dice.random(), dice.random() * dice.random()]),
            }
        weights = [dice.random() * dice.random() * dice.random() for _ in question.labels]
        chances = [each / sum(weights) for each in weights]
        by_label = dict(zip(question.labels, chances, strict=True))
        if isinstance(question, ChoiceQuestion):
            best = max(by_label, key=lambda label: by_label[label])
            return {"type": "choice", "choice": best, "confidence": 0.5, "probabilities": by_label}
        expected = sum(level * chance for level, chance in enumerate(chances))
        return {"type": "score", "score": expected, "probabilities": by_label}


def pick(dice: random.Random, options: Sequence[Any]) -> Any:
    """One of them, alike in every version of Python."""
    return options[int(dice.random() * len(options))]


def policies() -> list[Policy]:
    """Those that tickets are judged by, in turn."""
    texts = [
        SMALL,
        SUPPORT,
        EVERYTHING,
        EVERYTHING.replace("abstain_below = 0.55", "").replace('"allow"', '"review"'),
    ]
    texts += [(SAMPLES / name).read_text() for name in ("support.toml", "bank.toml")]
    return [parse_policy(text, source=f"golden-{place}.toml") for place, text in enumerate(texts)]


def ticket_bytes(dice: random.Random, number: int) -> bytes:
    """A ticket, or what is none."""
    if dice.random() < 0.03:
        return pick(dice, [b"", b"{", b"[]", b'{"id": 1}', b'{"id": "x", "state": "y", "more": 1}'])
    state = pick(
        dice,
        [
            "I paid twice, please help.",
            "The app crashes when I print.",
            'Größe? \u2603 \U0001f600 \u0000 "quoted" </script>',
            pick(dice, [" \u200b\n", {"subject": "", "body": None}, "A lawyer?"]),
            {"subject": "Refund", "lines": ["a", 1, 2.5, True, None, {"deep": [1.0]}]},
            ["x", 1e300, -0.0],
            "long " * int(dice.random() * 1_500),
        ],
    )
    ticket: dict[str, Any] = {
        "id": f"T-{number}" if dice.random() < 0.9 else f"Ticket № {number} \U0001f3ab",
        "state": state,
    }
    if dice.random() < 0.5:
        ticket["tenant"] = pick(dice, ["", "acme", "größe"])
    if dice.random() < 0.2:
        ticket["idempotency_key"] = f"given-{number}-{'x' * 8}"
    if dice.random() < 0.2:
        ticket["received_at"] = "2026-11-29T18:00:00+01:00"
    if dice.random() < 0.2:
        ticket["schema"] = "ticket/1"
    if dice.random() < 0.93:
        attributes: dict[str, Any] = {
            "vip": pick(dice, [True, True, True, False, False, False, False, None, "yes"])
        }
        if dice.random() < 0.95:
            attributes["customer"] = {
                "tier": pick(dice, ["gold", "gold", "silver", "silver", "go\u200bld", "tin", 1])
            }
        if dice.random() < 0.7:
            attributes["number"] = pick(dice, [1, 2.5, 1.0, True, None, "text", [1], {"a": {"b": 1}}])
        ticket["attributes"] = attributes
    return json.dumps(ticket, ensure_ascii=dice.random() < 0.5).encode()


def headers(dice: random.Random) -> list[Any]:
    """What a producer may send beside a ticket."""
    found: list[tuple[str, bytes | None]] = []
    for name, value in (
        ("traceparent", b"00-" + b"a" * 32 + b"-" + b"b" * 16 + b"-01"),
        ("TicketGate-Coordinate", b"forged"),
        ("\u212aelvin", b"\xff"),
        ("empty", None),
        ("empty", b""),
    ):
        if dice.random() < 0.2:
            found.append((name, value))
    return found


def cases() -> Iterator[tuple[str, Outgoing | None, Decision | None]]:
    """Each case's name, with the record and the decision that it is made of; None and None for what is no ticket."""
    dice = random.Random(19)
    under = policies()
    scorer = Answering(dice)
    writers = [RecordWriter(TOPICS, MAX_BYTES, with_ticket) for with_ticket in (False, True)]
    for number in range(CASES):
        policy = under[number % len(under)]
        record = ConsumerRecord(
            "tickets",
            number % 7,
            number * 1_000_003,
            0,
            0,
            None,
            ticket_bytes(dice, number),
            None,
            0,
            0,
            headers(dice),
        )
        intake = take_in([record], READ)
        if not intake.arrivals:
            yield f"{number} {policy.name} {intake.unreadable[0].malformed.code}", None, None
            continue
        (arrival,) = intake.arrivals
        (decision,) = decide([arrival.document], policy=policy, scorer=scorer)
        made = writers[number % 2].decision(arrival, decision, key=arrival.claim.key, at=NOW)
        yield f"{number} {policy.name} {decision.verdict.status}@{decision.verdict.stage}", made, decision


def digests() -> list[str]:
    """A line a case: its name and a digest of the record, its headers and what rules said."""
    lines = []
    for name, made, decision in cases():
        told = b"" if made is None or decision is None else _told(made, decision)
        lines.append(f"{name} {hashlib.sha256(told).hexdigest()[:16]}")
    return lines


def _told(made: Outgoing, decision: Decision) -> bytes:
    parts = (made.topic, made.key, made.value, made.headers, list(decision.rule_truths.items()))
    return repr(parts).encode()


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        FILE.write_text("".join(f"{line}\n" for line in digests()))
    else:
        wanted = int(sys.argv[1])
        print(*list(cases())[wanted], sep="\n")
