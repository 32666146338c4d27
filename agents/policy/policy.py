"""A policy, ready to judge by: what the file declares, with every name resolved.

Promise: whatever `parse_policy` returns can be evaluated on any assignment without failing; what cannot be
meant (an unknown question, a count that nothing can reach, two rules of one name) is refused here, by line.
The language is described in README.md beside this file.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from ticketgate.agents.cleaning import Step
from ticketgate.agents.policy.effects import EffectTemplate
from ticketgate.agents.policy.examples import Example
from ticketgate.agents.policy.facts import MappedQuestion
from ticketgate.agents.policy.quick import QuickRules
from ticketgate.agents.policy.rules import Rule
from ticketgate.codecs.files.positions import Path, line_of
from ticketgate.codecs.records.decision import PolicyRef
from ticketgate.codecs.systemone.questions import Question
from ticketgate.codecs.values.strict import JsonValue, encode


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """One version of one policy.

    ids: every question's id in the file's order, scored or mapped.
    questions: those that the scorer is asked, in the file's order. mapped: those that attributes answer.
    thresholds: for each scored noul the probability of true from which on it is selected, in (0, 1].
    abstain_below: an answer whose own probability is strictly below goes to review; None: no answer does.
    on_truncation: what becomes of a ticket that the model could not read to its end.
    clean: what is taken off a ticket before the model reads it, in the order of cleaning.
    hash: SHA-256 of the canonical document, hexadecimal.
    examples: for each question that has some, at most one of each kind.
    quick: the rules, ready to be checked fast.
    ref: how a decision record names this policy.
    valued: the questions, scored or mapped, that have values of their own, in the file's order.
    document: the whole of what was written, with the questions of the schema that it names in their places.
    source, lines: the file's name and where its parts stand there, for messages; they take no part in equality.
    """

    name: str
    version: str
    hash: str
    ids: tuple[str, ...]
    questions: Mapping[str, Question]
    mapped: Mapping[str, MappedQuestion]
    thresholds: Mapping[str, float]
    rules: tuple[Rule, ...]
    effects: tuple[EffectTemplate, ...]
    abstain_below: float | None
    on_truncation: Literal["review", "allow"]
    clean: tuple[Step, ...]
    examples: Mapping[str, tuple[Example, ...]]
    document: Mapping[str, JsonValue] = field(compare=False, repr=False)
    source: str = field(compare=False)
    lines: Mapping[Path, int] = field(compare=False, repr=False)
    quick: QuickRules = field(init=False, compare=False, repr=False)
    ref: PolicyRef = field(init=False, compare=False, repr=False)
    valued: Mapping[str, Question] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "quick", QuickRules(self.rules))
        object.__setattr__(self, "ref", PolicyRef(name=self.name, version=self.version, hash=self.hash))
        valued = {name: each for name in self.ids if (each := self.question(name)).values is not None}
        object.__setattr__(self, "valued", MappingProxyType(valued))

    def to_bytes(self) -> bytes:
        """The policy as a JSON file that stands alone and reads back with the same hash: keys in their order, for the
        order of questions and labels means something."""
        return encode(self.document)

    def question(self, question_id: str) -> Question:
        """A question by its id, scored or mapped."""
        return self.questions.get(question_id) or self.mapped[question_id].question

    def line_of_question(self, question_id: str) -> int | None:
        """Where a question stands in the file, from 1."""
        return line_of(self.lines, ("questions", question_id))

    def line_of_rule(self, rule_id: str) -> int | None:
        """Where a rule stands in the file, from 1."""
        place = next(index for index, rule in enumerate(self.rules) if rule.id == rule_id)
        return line_of(self.lines, ("rules", place))

    def line_of_effect(self, place: int) -> int | None:
        """Where an effect stands in the file, from 1."""
        return line_of(self.lines, ("effects", place))
