"""Presses: what people decided on a page, held for five seconds, then signed and sent.

Promise: a press is noted before the page says so, and is sent at most under its one id. Until it is due it can be taken
back, by whoever pressed; from then on it cannot. A console that dies meanwhile has not sent it, and says so when it
is there again; one that dies while it sends sends the same bytes again, which take effect once. What became of a
press only `settled` says.

Steps: 1 noted as pressed; 2 due, signed, noted as sending with its bytes; 3 in the topic, noted as sent.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from ticketgate.agents.policy import Policy
from ticketgate.agents.settling.console_keys import ConsoleKey
from ticketgate.codecs.records.identity import Coordinate
from ticketgate.codecs.records.pieces import Effect
from ticketgate.codecs.records.settlement import Action, Settlement, decode_settlement
from ticketgate.codecs.values.malformed import Malformed
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.console.desk.notes import Notes, Press, PressStage
from ticketgate.streams.kafka.broker import Unreachable
from ticketgate.streams.operations.review.desk import Lying, compose
from ticketgate.streams.operations.review.sending import SettlementSender

log = logging.getLogger(__name__)

# Long enough to see what one has pressed, short enough to wait for.
TAKE_BACK_S = 5.0
# A broker that restarts is back in seconds.
RETRY_S = 3.0

ENDED = "the console ended before it was sent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pressed:
    """What a press says, as it was shown. id: of the settlement, made with the page."""

    id: str
    lying: Lying
    action: Action
    labels: frozenset[str] = frozenset()
    policy: Policy | None = None
    effects: tuple[Effect, ...] = ()
    why: str = ""


class Sends(Protocol):
    """Who sends settlements (operations/review/sending.py)."""

    async def send(self, settlement: Settlement) -> Coordinate:
        """Where it lies. Raises `Unreachable`: then nobody knows."""
        ...

    async def close(self) -> None:
        """Let go of the connection."""
        ...


class Presses:
    """The presses of one console. on_news: called whenever one has come further."""

    def __init__(
        self, settings: Settings, notes: Notes, *, on_news: Callable[[], None], sender: Sends | None = None
    ) -> None:
        self._settings, self._notes, self._on_news = settings, notes, on_news
        self._sender: Sends = sender or SettlementSender(settings)
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Take up what another process left: what was not due then is not sent; what may have been is sent again."""
        self._give_up()
        left = self._notes.at_stage(PressStage.SENDING)
        if left:
            self._spawn(self._send_all(left))

    async def stop(self) -> None:
        """Send nothing more. What was not due is given up, and says so."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._give_up()
        await self._sender.close()

    def press(self, pressed: Sequence[Pressed], *, by: str, key: ConsoleKey, batch: str) -> list[Press]:
        """1. Note them; those that are new come back, and are due together."""
        now_ms = _now_ms()
        given = {each.id: each for each in pressed}
        noted = self._notes.add(
            [
                Press(
                    id=each.id,
                    batch=batch,
                    key=each.lying.record.idempotency_key,
                    place=str(each.lying.at),
                    ticket_id=each.lying.record.ticket_id,
                    action=str(each.action),
                    by=by,
                    pressed_ms=now_ms,
                    due_ms=now_ms + round(TAKE_BACK_S * 1000),
                )
                for each in pressed
            ]
        )
        if noted:
            self._spawn(self._when_due(noted, given, key))
            self._on_news()
        return noted

    def take_back(self, batch: str, *, by: str) -> tuple[int, int]:
        """Take back what was pressed at once: how many were, and how many could not be any more."""
        presses = [each for each in self._notes.of_batch(batch) if each.by == by]
        taken = sum(
            self._notes.move(each.id, of=PressStage.PRESSED, to=PressStage.TAKEN_BACK) for each in presses
        )
        if taken:
            self._on_news()
        return taken, len(presses) - taken

    async def _when_due(self, noted: Sequence[Press], given: dict[str, Pressed], key: ConsoleKey) -> None:
        await asyncio.sleep(TAKE_BACK_S)
        signed = [self._sign(each, given[each.id], key) for each in noted]
        self._on_news()
        await self._send_all([each for each in signed if each is not None])

    def _sign(self, press: Press, pressed: Pressed, key: ConsoleKey) -> Press | None:
        """2. None for what was taken back."""
        settlement = compose(
            self._settings,
            pressed.lying,
            pressed.action,
            labels=pressed.labels,
            policy=pressed.policy,
            effects=pressed.effects,
            why=pressed.why,
            by=press.by,
            at=datetime.fromtimestamp(press.pressed_ms / 1000, UTC),
            key=key,
            id=press.id,
        )
        is_ours = self._notes.move(
            press.id, of=PressStage.PRESSED, to=PressStage.SENDING, signed=settlement.encode()
        )
        return self._notes.press(press.id) if is_ours else None

    async def _send_all(self, presses: Sequence[Press]) -> None:
        for press in presses:
            settlement = _read(press)
            if settlement is not None:
                await self._send(press, settlement)
            self._on_news()

    async def _send(self, press: Press, settlement: Settlement) -> None:
        """3. Until the broker has it, or nobody would take it any more."""
        while datetime.now(UTC) < settlement.expires_at:
            try:
                at = await self._sender.send(settlement)
            except Unreachable as err:
                log.warning("settlement %s is not known to be sent: %s", press.id, err)
                self._notes.move(press.id, of=PressStage.SENDING, to=PressStage.SENDING, reason=str(err))
                self._on_news()
                await asyncio.sleep(RETRY_S)
                continue
            self._notes.move(press.id, of=PressStage.SENDING, to=PressStage.SENT, at=str(at), reason="")
            return
        self._notes.move(
            press.id,
            of=PressStage.SENDING,
            to=PressStage.NOT_SENT,
            reason="it could not be sent in the time in which it would be taken",
        )

    def _give_up(self) -> None:
        for press in self._notes.at_stage(PressStage.PRESSED):
            self._notes.move(press.id, of=PressStage.PRESSED, to=PressStage.NOT_SENT, reason=ENDED)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(_logged(work), name="console presses")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _logged(work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except Exception:
        log.exception("sending presses failed")
        raise


def _read(press: Press) -> Settlement | None:
    found = decode_settlement(press.signed or b"")
    return None if isinstance(found, Malformed) else found


def _now_ms() -> int:
    return round(time.time() * 1000)
