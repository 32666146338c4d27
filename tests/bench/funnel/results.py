"""What a system did about one request: what the comparison counts, and nothing of whether it was right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from .decoding import Answer


class Told(StrEnum):
    """What the requester or a person is told in the end."""

    DONE = "done"
    ABSTAINED = "abstained"
    FAILED = "failed"  # nobody knows more than that it did not work
    STOPPED = "stopped"  # a gate says why nothing was done
    HELD = "held"  # the outcome is unknown, and said to be


@dataclass(frozen=True, slots=True)
class Shaped:
    """One answer and how far it conforms to the schema."""

    answer: Answer
    is_parsed: bool
    conforms: bool


@dataclass(frozen=True, slots=True)
class Done:
    """A call that was carried out: what the tool serves, and its arguments, one spelling for equal values."""

    operation: str
    arguments: Mapping[str, str]


@dataclass(slots=True)
class Work:
    """What a request cost, counted and, in seconds, measured."""

    prompt_tokens: int = 0
    gates: int = 0
    look_ups: int = 0
    sends: int = 0
    read_backs: int = 0
    checking_s: float = 0.0
    acting_s: float = 0.0


@dataclass(slots=True, kw_only=True)
class Result:
    """How one request went.

    call: the last answer's tool as text and arguments, if it has them. refused: whether the last answer says that it
    makes no call, in prose or by the typed branch. quoted: the observation that was made. effects: what the provider
    committed. has_command: whether anything was let through to be carried out. time_outs: answers of the provider that
    were lost. unknown_s: how long an outcome was unknown until it was settled, by the ledger's clock.
    """

    answers: list[Shaped] = field(default_factory=list)
    call: tuple[str, Mapping[str, object]] | None = None
    refused: bool = False
    quoted: Done | None = None
    effects: list[Done] = field(default_factory=list)
    has_command: bool = False
    time_outs: int = 0
    was_unknown: bool = False
    unknown_s: float = 0.0
    told: Told = Told.FAILED
    stage: str = ""
    work: Work = field(default_factory=Work)

    @property
    def conforms(self) -> bool:
        """Whether the last answer conforms."""
        return self.answers[-1].conforms

    @property
    def tokens(self) -> int:
        """Sampled in all answers."""
        return sum(each.answer.tokens for each in self.answers)
