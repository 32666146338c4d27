"""A console's desk without a broker: records that lie still, a view made of them, and a list of what was sent."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from aiohttp import web
from aiokafka import ConsumerRecord
from ticketgate.agents.policy import load_policy
from ticketgate.codecs.records.decision import DecisionRecord
from ticketgate.codecs.records.identity import (
    Coordinate,
    IdempotencyKey,
    collision_key,
    fingerprint,
    ticket_key,
)
from ticketgate.codecs.records.settlement import Settlement
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.console.desk.console_desk import DESK, ConsoleDesk, now_ms
from ticketgate.streams.kafka.broker import Unreachable
from ticketgate.streams.operations.review.feeding import claim_ttl_ms, rows_of
from ticketgate.streams.operations.review.following import FollowState
from ticketgate.streams.operations.review.rows import Told
from ticketgate.streams.operations.review.view import View

from .deciding import decide_one
from .desk import BROKEN

ABOUT = {"namespace": "still"}
HOUR_MS = 3_600_000


@dataclass
class StillFollowing:
    """The view is as it was made."""

    state: FollowState = field(
        default_factory=lambda: FollowState(generation=1, about=ABOUT, is_current=True)
    )

    def start(self) -> None:
        """Nothing."""

    async def stop(self) -> None:
        """Nothing."""


@dataclass
class StillTopics:
    """Records by where they lie. is_away: as if no broker answered."""

    records: dict[str, ConsumerRecord] = field(default_factory=dict)
    is_away: bool = False

    async def fetch(self, at: Coordinate) -> ConsumerRecord | None:
        if self.is_away:
            raise TimeoutError
        return self.records.get(str(at))

    async def close(self) -> None:
        """Nothing."""


@dataclass
class StillSender:
    """Keeps what was sent. is_away: nobody answers, and nobody knows what became of it."""

    sent: list[Settlement] = field(default_factory=list)
    is_away: bool = False

    async def send(self, settlement: Settlement) -> Coordinate:
        if self.is_away:
            raise Unreachable("TICKETGATE_KAFKA", "no broker answers", "start it")
        self.sent.append(settlement)
        return Coordinate("settlements", 0, len(self.sent) - 1)

    async def close(self) -> None:
        """Nothing."""


@dataclass
class StillDesk:
    """What a test puts before the console's pages."""

    settings: Settings
    topics: StillTopics = field(default_factory=StillTopics)
    sender: StillSender = field(default_factory=StillSender)
    following: StillFollowing = field(default_factory=StillFollowing)
    opened: ConsoleDesk | None = None

    @property
    def desk(self) -> ConsoleDesk:
        """The console's own, while it is open."""
        if self.opened is None:
            raise RuntimeError("the console is not open")
        return self.opened

    def view(self) -> View:
        """A writer of the view."""
        return View(self.settings.review_view, about=ABOUT, claim_ttl_ms=claim_ttl_ms(self.settings))

    def lay(
        self,
        name: str,
        state: Any = "My card was charged twice.",
        *,
        answers: Mapping[str, float] | None = None,
        hours_old: float = 1.0,
        tenant: str = "",
        attributes: Mapping[str, Any] | None = None,
        is_collision: bool = False,
        with_text: bool = True,
    ) -> DecisionRecord:
        """A decision on a ticket, in review."""
        ticket = Ticket(id=name, state=state, tenant=tenant, attributes=dict(attributes or {}))
        policy = load_policy(self.settings.policy) if self.settings.policy else None
        if policy is None:
            raise RuntimeError("a still desk needs a policy")
        given = {key: {"type": "noul", "noul": value} for key, value in (answers or BROKEN).items()}
        decision = decide_one(given, policy, ticket_id=name, state=state)
        key = ticket_key(self.settings.namespace, ticket)
        own = fingerprint(ticket)
        if is_collision:
            key = IdempotencyKey(collision_key(key, own))
        at_ms = now_ms() - round(hours_old * HOUR_MS)
        record = DecisionRecord(
            ticket_id=name,
            tenant=tenant,
            verdict=decision.verdict,
            selected=decision.selected,
            violations=decision.violations,
            probabilities=decision.probabilities,
            answers=decision.answers,
            policy=decision.policy,
            model=decision.model,
            idempotency_key=key,
            fingerprint=own,
            coordinate=Coordinate("tickets", 0, len(self.topics.records)),
            decided_at=datetime.fromtimestamp(at_ms / 1000, UTC),
            ticket=ticket.to_json() if with_text else None,
        )
        self.lay_value(record.encode(), at_ms=at_ms)
        return record

    def lay_value(self, value: bytes, *, at_ms: int | None = None) -> str:
        """Any record, in review; where it lies."""
        return self._lay(self.settings.topic_review, value, now_ms() if at_ms is None else at_ms)

    def _lay(self, topic: str, value: bytes, at_ms: int) -> str:
        offset = len(self.topics.records)
        record: ConsumerRecord = ConsumerRecord(
            topic, 0, offset, at_ms, 0, None, value, None, 0, len(value), ()
        )
        self.topics.records[f"{topic}:0:{offset}"] = record
        with self.view() as view:
            view.add(rows_of([record], self.settings), {(topic, 0): offset + 1})
        return f"{topic}:0:{offset}"

    def tell(self, settlement: Settlement, outcome: str, code: str = "", reasons: Sequence[str] = ()) -> None:
        """A worker has said what became of it."""
        with self.view() as view:
            row = Told(
                coordinate=f"settlements:0:{settlement.id}",
                id=settlement.id,
                key=settlement.key,
                review=str(settlement.review),
                action=str(settlement.action),
                by=settlement.by,
                at_ms=now_ms(),
                outcome=outcome,
                code=code,
                reasons=tuple(reasons),
                labels=settlement.labels,
            )
            view.add([row], {})
        if self.opened is not None:
            self.opened.on_news()

    def be(self, **state: Any) -> None:
        """The view stands otherwise."""
        self.following.state = replace(self.following.state, **state)

    @property
    def reads(self) -> list[dict[str, Any]]:
        """Who was shown what."""
        path = self.settings.reading_log
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    @property
    def opening(self) -> Callable[[web.Application, Settings], AbstractAsyncContextManager[None]]:
        """As `console_application` takes it."""

        @asynccontextmanager
        async def open_it(application: web.Application, settings: Settings) -> AsyncIterator[None]:
            with self.view():
                pass  # there is a file
            self.opened = ConsoleDesk(
                settings, following=self.following, topics=self.topics, sender=self.sender
            )
            self.opened.start()
            application[DESK] = self.opened
            try:
                yield
            finally:
                await self.opened.stop()

        return open_it
