"""Settling one ticket: what lies there, what would follow, and the settlement that says so, signed and sent.

Promise: nothing is sent that was not looked at: the record is fetched anew from `review` by where it lies, its hash is
in the settlement, and so are the policy and the effects that were shown. What became of a settlement is what `settled`
says, and until then nobody knows.
"""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from aiokafka import AIOKafkaProducer
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
from ticketgate.streams.roles.settle.looking import read_reviewed, ticket_of

DELIVERY_TIMEOUT_S = 20.0


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


async def look(settings: Settings, case: Case) -> Lying:
    """Fetch what a row of the view is about. Raises `CommandError` where it is gone or another, and `Unreachable`."""
    topics, at = RecordAt(connection_of(settings)), Coordinate.parse(case.place)
    try:
        found = await topics.fetch(at)
        if found is None or found.value is None:
            raise CommandError(f"{at}: the record is gone from review")
        record = read_reviewed(found.value)
        if record is None or value_digest(found.value) != case.sha256:
            raise CommandError(f"{at}: no decision on a ticket that can be settled")
        read = ticket_reader(namespace=settings.namespace, max_bytes=settings.max_ticket_bytes)
        return Lying(at, case.sha256, record, await ticket_of(record, topics, read))
    except (KafkaError, TimeoutError) as err:
        raise unreachable(connection_of(settings), err) from err
    finally:
        await topics.close()


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
) -> Settlement:
    """The signed settlement. policy, effects: those that were shown, of what is accepted."""
    accepted: dict[str, Any] = {}
    if action is Action.ACCEPT and policy is not None:
        accepted = {
            "labels": tuple(sorted(labels)),
            "policy": policy.hash,
            "effects": effects_digest(effects),
        }
    settlement = Settlement(
        id=str(uuid.uuid4()),
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
    """Send it, and return where it lies once all replicas have it. Raises `Unreachable`: then nobody knows, and the
    same settlement may be sent again."""
    connection = connection_of(settings)
    producer = AIOKafkaProducer(**connection.arguments(), acks="all", request_timeout_ms=10_000)
    try:
        async with asyncio.timeout(DELIVERY_TIMEOUT_S):
            await producer.start()
            told = await producer.send_and_wait(
                settings.topic_settlements, settlement.encode(), key=settlement.ticket_id.encode()
            )
    except (KafkaError, TimeoutError, OSError) as err:
        raise unreachable(connection, err) from err
    finally:
        try:
            async with asyncio.timeout(3.0):
                await producer.stop()
        except (KafkaError, TimeoutError):
            pass  # what was acknowledged is there
    return Coordinate(settings.topic_settlements, told.partition, told.offset)
