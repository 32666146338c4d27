"""What workers read, as those see it who look after a deployment: where it lies, who reads it, where its records end.

Promise: each record of an input ends in exactly one of its `outputs`, or has none for a reason that can be told.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, assert_never, get_args

from ticketgate.streams.config.role_terms import role_terms
from ticketgate.streams.config.setting_kinds import Role
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.lane.taking.intake import Reader, proposal_reader, settlement_reader, ticket_reader

InputName = Literal["tickets", "proposals", "settlements"]
INPUT_NAMES: tuple[InputName, ...] = get_args(InputName)


@dataclass(frozen=True, slots=True)
class Source:
    """What a role reads, and the group that it reads in. replay: the command that sets the group's offsets."""

    role: Role
    topic: str
    group: str
    outputs: tuple[str, ...]
    replay: str

    @property
    def has_claims(self) -> bool:
        """Whether its records are claimed by where they lie. Effects are known by their keys alone."""
        return isinstance(self, Input)


@dataclass(frozen=True, slots=True)
class Input(Source):
    """What people send to a deployment. Receipts are no outcome and not among its `outputs`."""

    name: InputName
    read: Reader[Any]


def input_of(name: InputName, settings: Settings) -> Input:
    """An input, by the settings."""
    role: Role
    read: Reader[Any]
    namespace, max_bytes = settings.namespace, settings.max_ticket_bytes
    match name:
        case "tickets":
            role, read = "decide", ticket_reader(namespace=namespace, max_bytes=max_bytes)
        case "proposals":
            role, read = "propose", proposal_reader(namespace=namespace, max_bytes=max_bytes)
        case "settlements":
            role, read = "settle", settlement_reader(max_bytes=max_bytes)
        case _:
            assert_never(name)
    terms = role_terms(role, settings)
    outputs = tuple(topic for topic in terms.outputs if topic != settings.topic_receipts)
    return Input(role, terms.source, terms.group, outputs, terms.replay, name, read)


def dispatched(settings: Settings) -> Source:
    """What workers dispatch and others of them carry out: nobody claims it, the ledger has its effects."""
    terms = role_terms("effects", settings)
    return Source(terms.role, terms.source, terms.group, terms.outputs, terms.replay)


def outputs_of(inputs: Iterable[Input]) -> tuple[str, ...]:
    """Where the records of some inputs end, each topic once."""
    return tuple(dict.fromkeys(topic for each in inputs for topic in each.outputs))
