"""A scripted person, who settles what a demo left in review: no judgement of what is true, only one that is quick.

Promise: what the policy accepts with the fewest changes to the model's labels is accepted, what says nothing is
returned, and the rest is rejected, each signed as at a console. What became of each is read from `settled`.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from ticketgate.agents.policy import Policy
from ticketgate.agents.settling.console_keys import ConsoleKey, load_console_keys
from ticketgate.codecs.records.identity import Coordinate
from ticketgate.codecs.records.pieces import Effect
from ticketgate.codecs.records.settled import Outcome, SettledRecord, decode_settled
from ticketgate.codecs.records.settlement import Action, value_digest
from ticketgate.codecs.records.ticket import Ticket, is_empty_state, read_ticket
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.demo.ground import OUTCOME_TIMEOUT_S, POLL_S, send
from ticketgate.streams.kafka.connection import connection_of
from ticketgate.streams.kafka.envelope import Record
from ticketgate.streams.kafka.reading.topic_reading import read_whole
from ticketgate.streams.operations.review.desk import Lying, compose, preview, suggestions
from ticketgate.streams.roles.settle.looking import read_reviewed

KEY = "demo"
PERSON = "scripted-person"


@dataclass(frozen=True, slots=True)
class Decided:
    """What the person made of one record in review. changed: the questions that are answered otherwise than by the
    model. outcome: what became of it, None where nobody told within the time."""

    lying: Lying
    action: Action
    labels: tuple[str, ...]
    changed: tuple[str, ...]
    effects: tuple[Effect, ...]
    outcome: Outcome | None
    why: str


def write_keys(folder: Path) -> Path:
    """A file with one key of its own, for the worker and the person."""
    (folder / f"{KEY}.key").write_bytes(secrets.token_hex(32).encode())
    file = folder / "console-keys.toml"
    file.write_text(f'[{KEY}]\nalgorithm = "HS256"\nroles = ["read", "settle"]\nsecret_file = "{KEY}.key"\n')
    return file


async def settle_review(settings: Settings, policy: Policy, keys: Path) -> Mapping[Coordinate, Decided]:
    """Settle every decision on a ticket in review, and wait until each was taken. By where the tickets lie."""
    key = load_console_keys(keys)[KEY]
    pressed = [_press(settings, lying, policy, key) for lying in await _lying(settings)]
    records = [Record(made.lying.record.ticket_id.encode(), value) for made, _, value in pressed]
    await send(settings, settings.topic_settlements, records)
    told = await _told(settings, {each for _, each, _ in pressed})
    decided = [_with_outcome(made, told.get(settlement)) for made, settlement, _ in pressed]
    return {each.lying.record.coordinate: each for each in decided}


async def _lying(settings: Settings) -> list[Lying]:
    found: list[Lying] = []
    async for each in read_whole(connection_of(settings), [settings.topic_review]):
        value = each.value or b""
        record = read_reviewed(value)
        if record is not None:
            ticket = read_ticket(dict(record.ticket or {}))
            at = Coordinate(each.topic, each.partition, each.offset)
            found.append(
                Lying(at, value_digest(value), record, ticket if isinstance(ticket, Ticket) else None)
            )
    return found


def _press(settings: Settings, lying: Lying, policy: Policy, key: ConsoleKey) -> tuple[Decided, str, bytes]:
    """What the person makes of it; the settlement's id, and its bytes."""
    near = suggestions(lying, policy).suggestions
    labels: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    effects: tuple[Effect, ...] = ()
    if lying.ticket is None or is_empty_state(lying.ticket.state):
        action, why = Action.RETURN, "it says nothing that could be decided"
    elif near:
        action, why = Action.ACCEPT, "the nearest that the policy accepts"
        labels, changed = near[0].labels, near[0].changed
        effects = preview(lying, frozenset(labels), policy).effects
    else:
        action, why = Action.REJECT, "nothing near what the model says is accepted"
    settlement = compose(
        settings,
        lying,
        action,
        labels=frozenset(labels),
        policy=policy,
        effects=effects,
        why=why,
        by=PERSON,
        at=datetime.now(UTC),
        key=key,
    )
    made = Decided(lying, action, labels, changed, effects, None, why)
    return made, settlement.id, settlement.encode()


async def _told(settings: Settings, wanted: set[str]) -> Mapping[str, SettledRecord]:
    """What `settled` says of each, once it says something of all or the time is up."""
    deadline = time.monotonic() + OUTCOME_TIMEOUT_S
    while True:
        found: dict[str, SettledRecord] = {}
        async for each in read_whole(connection_of(settings), [settings.topic_settled]):
            told = decode_settled(each.value or b"")
            if isinstance(told, SettledRecord):
                found[told.id] = told
        if wanted <= found.keys() or time.monotonic() > deadline:
            return found
        await asyncio.sleep(POLL_S)


def _with_outcome(made: Decided, told: SettledRecord | None) -> Decided:
    if told is None:
        return made
    return replace(made, outcome=told.outcome, why="; ".join(told.reasons) or made.why)
