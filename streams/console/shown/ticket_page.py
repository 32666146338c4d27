"""What the page of a ticket shows.

Promise: pure; everything from outside comes in pieces that cannot act on the page. What would follow from a press is
shown before it, with the hashes that the press names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from ticketgate.agents.policy import Policy
from ticketgate.agents.settling.nearest import Nearest
from ticketgate.codecs.records.decision import DecisionRecord
from ticketgate.codecs.records.pieces import Effect
from ticketgate.codecs.records.settlement import effects_digest
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.systemone.questions import NoulQuestion
from ticketgate.codecs.values.printable import json_text
from ticketgate.streams.console.shown.answers import PREFIX, Answer, Field, answers_of
from ticketgate.streams.console.shown.foreign import Foreign, foreign
from ticketgate.streams.operations.review.desk import Preview

# Of a ticket's state so many parts are shown apart.
MOST_PARTS = 100


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a ticket's text: what it is called there, empty for a text that is the whole."""

    name: str
    text: Foreign


@dataclass(frozen=True, slots=True)
class Broken:
    """A rule that the model's assignment breaks: the author's message, and what the rule says."""

    rule: str
    message: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Suggested:
    """An assignment that the policy would accept. number: the key that chooses it. changes: added and taken labels."""

    number: int
    labels: tuple[str, ...]
    adds: tuple[str, ...]
    takes: tuple[str, ...]
    query: str


@dataclass(frozen=True, slots=True)
class ShownEffect:
    """What an effect would do: the tool, and its arguments as name and value."""

    tool: str
    arguments: tuple[tuple[str, Foreign], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What would follow from the labels chosen. reasons: why nothing would; empty where it may be pressed. digest: of
    the effects, as the settlement names them."""

    labels: tuple[str, ...]
    reasons: tuple[Foreign, ...]
    effects: tuple[ShownEffect, ...]
    policy: str
    digest: str

    @property
    def may_be_pressed(self) -> bool:
        """Whether the policy accepts them."""
        return not self.reasons


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepting:
    """The part of the page in which labels are chosen. why_not: why accepting is impossible at all; empty if it is."""

    why_not: str = ""
    fields: tuple[Field, ...] = ()
    suggested: tuple[Suggested, ...] = ()
    is_whole: bool = True
    outcome: Outcome | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TicketText:
    """A ticket as its reader sees it. is_cut: whether something was left out that can be asked for."""

    parts: tuple[Part, ...]
    attributes: tuple[tuple[str, Foreign], ...]
    is_cut: bool
    chars: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What was decided about it. policy: its name and version; is_other: whether another is in force now."""

    stage: str
    reasons: tuple[Foreign, ...]
    answers: tuple[Answer, ...]
    broken: tuple[Broken, ...]
    policy: str
    is_other: bool
    model: str
    truncated: tuple[str, ...] = field(default=())


def text_of_ticket(ticket: Ticket | None, *, is_whole: bool) -> TicketText | None:
    """The ticket's text and attributes; None where it is nowhere."""
    if ticket is None:
        return None
    state = ticket.state
    named: list[tuple[str, object]]
    if isinstance(state, dict):
        named = [*state.items()]
    elif isinstance(state, list):
        named = [(str(place + 1), each) for place, each in enumerate(state)]
    else:
        named = [("", state)]
    return text_of_parts(named, ticket.attributes, is_whole=is_whole)


def text_of_parts(
    named: Sequence[tuple[str, object]], attributes: Mapping[str, object], *, is_whole: bool
) -> TicketText:
    """Texts as they are, all else as JSON."""
    shown = named if is_whole else named[:MOST_PARTS]
    most: dict[str, Any] = {"most": None} if is_whole else {}
    parts = tuple(Part(name, foreign(_text(value), **most)) for name, value in shown)
    return TicketText(
        parts=parts,
        attributes=tuple((name, foreign(_text(value), **most)) for name, value in attributes.items()),
        is_cut=len(shown) < len(named) or any(each.text.left_out for each in parts),
        chars=sum(each.text.chars for each in parts),
    )


def judged(record: DecisionRecord, policy: Policy | None) -> Judged:
    """What the record says, with the rules' own words where the policy in force has them."""
    sentences = {} if policy is None else {rule.id: rule.sentence for rule in policy.rules}
    return Judged(
        stage=str(record.verdict.stage),
        reasons=tuple(foreign(each, most=1_000) for each in record.verdict.reasons),
        answers=answers_of(record, policy),
        broken=tuple(
            Broken(each.rule, each.message, sentences.get(each.rule, "")) for each in record.violations
        ),
        policy=f"{record.policy.name} {record.policy.version}",
        is_other=policy is not None and policy.hash != record.policy.hash,
        model=record.model.id,
        truncated=record.truncated,
    )


def suggested(near: Nearest, policy: Policy) -> tuple[Suggested, ...]:
    """Suggestions, numbered from 1."""
    return tuple(
        Suggested(
            number=place + 1,
            labels=each.labels,
            adds=tuple(name for name in each.labels if name not in near.model),
            takes=tuple(name for name in near.model if name not in each.labels),
            query=choosing(each.labels, policy),
        )
        for place, each in enumerate(near.suggestions)
    )


def choosing(labels: Sequence[str], policy: Policy) -> str:
    """Labels as a query that chooses them."""
    pairs = [("chosen", "1")]
    for name, question in policy.questions.items():
        of_it = (
            {name} if isinstance(question, NoulQuestion) else {f"{name}={each}" for each in question.names}
        )
        pairs += [(PREFIX + name, each) for each in labels if each in of_it]
    return urlencode(pairs)


def outcome_of(labels: frozenset[str], found: Preview, policy: Policy) -> Outcome:
    """What would follow."""
    return Outcome(
        labels=tuple(sorted(labels)),
        reasons=tuple(foreign(each, most=1_000) for each in found.reasons),
        effects=shown_effects(found.effects),
        policy=policy.hash,
        digest=effects_digest(found.effects),
    )


def shown_effects(effects: Sequence[Effect]) -> tuple[ShownEffect, ...]:
    """Effects to read."""
    return tuple(
        ShownEffect(
            each.tool,
            tuple((name, foreign(_text(value), most=500)) for name, value in each.arguments.items()),
        )
        for each in effects
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else json_text(value, indent=2)
