"""Settling one ticket: what lies there, what would follow, and the settlement that says so, signed and sent.

Promise: nothing is sent that was not looked at: the record is fetched anew from `review` by where it lies, its hash is
in the settlement, and so are the policy and the effects that were shown. What became of a settlement is what `settled`
says, and until then nobody knows.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from aiokafka.errors import KafkaError
from ticketgate.agents.deciding.decide import Decision
from ticketgate.agents.policy.policy import Policy
from ticketgate.agents.settling.console_keys import ConsoleKey, ConsoleRole, load_console_keys
from ticketgate.agents.settling.judging import effects_of, judge_labels
from ticketgate.agents.settling.nearest import Nearest, nearest
from ticketgate.agents.settling.refusal import Refusal
from ticketgate.agents.settling.signing import sign
from ticketgate.codecs.records.decision import DecisionRecord
from ticketgate.codecs.records.identity import Coordinate
from ticketgate.codecs.records.pieces import Effect
from ticketgate.codecs.records.settlement import Action, Settlement, effects_digest, value_digest
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.streams.config.setting_kinds import SettingsError
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.config.usage import CommandError
from ticketgate.streams.kafka.broker import unreachable
from ticketgate.streams.kafka.connection import connection_of
from ticketgate.streams.kafka.reading.record_at import RecordAt
from ticketgate.streams.lane.taking.intake import ticket_reader
from ticketgate.streams.operations.review.rows import Case
from ticketgate.streams.operations.review.sending import SettlementSender
from ticketgate.streams.roles.settle.looking import Topics, read_reviewed, ticket_of


@dataclass(frozen=True, slots=True)
class Lying:
    """A record in review as it lies there now, and its ticket; None where the text is nowhere any more."""

    at: Coordinate
    sha256: str
    record: DecisionRecord
    ticket: Ticket | None


@dataclass(frozen=True, slots=True)
class Preview:
    """What would follow from labels: the decision, or why they are none, and its effects."""

    judged: Decision | Refusal
    effects: tuple[Effect, ...]

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it would not be accepted; empty if it would."""
        return self.judged.reasons if isinstance(self.judged, Refusal) else self.judged.verdict.reasons


def require_key(settings: Settings, role: ConsoleRole) -> ConsoleKey:
    """The key that this process acts by, if it has the role. Raises `SettingsError` and `ConsoleKeysError`."""
    if settings.console_keys is None:
        raise SettingsError("TICKETGATE_CONSOLE_KEYS", "not set", "name the file of the consoles' keys")
    if settings.console_key is None:
        raise SettingsError("TICKETGATE_CONSOLE_KEY", "not set", "name your key in TICKETGATE_CONSOLE_KEYS")
    key = load_console_keys(settings.console_keys).get(settings.console_key)
    if key is None:
        raise SettingsError(
            "TICKETGATE_CONSOLE_KEY", f"no key {settings.console_key!r}", f"see {settings.console_keys}"
        )
    if role not in key.roles:
        has = ", ".join(sorted(key.roles))
        raise SettingsError(
            "TICKETGATE_CONSOLE_KEY",
            f"the key {key.id!r} may not {role}",
            f"its roles are {has}; use another",
        )
    if role is ConsoleRole.SETTLE and key.signing is None:
        raise SettingsError(
            "TICKETGATE_CONSOLE_KEYS", f"the key {key.id!r} cannot sign", "give its private_key_file"
        )
    return key


async def look(settings: Settings, case: Case, topics: Topics | None = None) -> Lying:
    """Fetch what a row of the view is about, by `topics` where somebody holds them open. Raises `CommandError` where it
    is gone or another, and `Unreachable`."""
    at = Coordinate.parse(case.place)
    read = ticket_reader(namespace=settings.namespace, max_bytes=settings.max_ticket_bytes)
    async with asking(settings, topics) as asked:
        found = await fetch(settings, case.place, asked)
        record = read_reviewed(found)
        if record is None or value_digest(found) != case.sha256:
            raise CommandError(f"{at}: no decision on a ticket that can be settled")
        return Lying(at, case.sha256, record, await ticket_of(record, asked, read))


async def fetch(settings: Settings, place: str, topics: Topics | None = None) -> bytes:
    """The record in review at a place. Raises `CommandError` where it is gone, and `Unreachable`."""
    async with asking(settings, topics) as asked:
        found = await asked.fetch(Coordinate.parse(place))
    if found is None or found.value is None:
        raise CommandError(f"{place}: the record is gone from review")
    value: bytes = found.value
    return value


@asynccontextmanager
async def asking(settings: Settings, topics: Topics | None = None) -> AsyncIterator[Topics]:
    """Who fetches records in a block: `topics` where somebody holds them open, else one for the block alone. Raises
    `Unreachable` where that does not answer."""
    own = RecordAt(connection_of(settings))  # connects when first asked
    try:
        yield topics or own
    except (KafkaError, TimeoutError) as err:
        raise unreachable(connection_of(settings), err) from err
    finally:
        await own.close()


def preview(lying: Lying, labels: frozenset[str], policy: Policy) -> Preview:
    """What the policy says of a person's labels. Raises `CommandError` without the ticket's text."""
    if lying.ticket is None:
        raise CommandError("the ticket's text is nowhere any more; it can only be rejected or returned")
    judged = judge_labels(lying.ticket, labels, policy=policy, record=lying.record)
    effects = effects_of(judged, lying.record.idempotency_key) if isinstance(judged, Decision) else ()
    return Preview(judged, effects)


def suggestions(lying: Lying, policy: Policy) -> Nearest:
    """The nearest acceptable assignments: no judgement of what is true."""
    if lying.ticket is None:
        return Nearest((), is_whole=True, model=lying.record.selected)
    return nearest(lying.ticket, lying.record, policy)


def compose(
    settings: Settings,
    lying: Lying,
    action: Action,
    *,
    labels: frozenset[str] = frozenset(),
    policy: Policy | None = None,
    effects: tuple[Effect, ...] = (),
    why: str,
    by: str,
    at: datetime,
    key: ConsoleKey,
    id: str | None = None,  # noqa: A002 - as the record has it
) -> Settlement:
    """The signed settlement. policy, effects: those that were shown, of what is accepted. id: a UUID, made now unless
    it was made with the page that was shown."""
    accepted: dict[str, Any] = {}
    if action is Action.ACCEPT and policy is not None:
        accepted = {
            "labels": tuple(sorted(labels)),
            "policy": policy.hash,
            "effects": effects_digest(effects),
        }
    settlement = Settlement(
        id=id or str(uuid.uuid4()),
        action=action,
        ticket_id=lying.record.ticket_id,
        key=lying.record.idempotency_key,
        review=lying.at,
        review_sha256=lying.sha256,
        why=why,
        by=by,
        at=at,
        expires_at=at + settings.settlement_lifetime,
        **accepted,
    )
    return sign(settlement, key)


async def send(settings: Settings, settlement: Settlement) -> Coordinate:
    """Send one. Raises as `SettlementSender.send`."""
    sender = SettlementSender(settings)
    try:
        return await sender.send(settlement)
    finally:
        await sender.close()
