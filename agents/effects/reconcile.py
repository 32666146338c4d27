"""What was left open: read back again, settled, sent a second time where that is safe, or held for a person.

Promise: nothing is sent that authoritative state has not just said to be absent after the provider's settle time, and
then once, under the same key, with its `prepared` receipt announced and its evidence judged again before. Each change
is announced, though its announcer die: an entry stays due until it is told.
"""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from typing import Protocol

from ticketgate.agents.effects.executor import READ_BACK_FIRST_S, Executor, receipt_of
from ticketgate.agents.effects.faults import EntryLost, ProviderMissing
from ticketgate.agents.effects.ledger import MOST_SENDS, EffectLedger, Entry, Moved, Settlement
from ticketgate.agents.effects.port import NotFound
from ticketgate.agents.effects.rules import may_resend
from ticketgate.codecs.records.receipt import EffectReceipt, EffectState, EffectStatus, SettledBy
from ticketgate.codecs.verdict import Stage, Status, Verdict

log = logging.getLogger(__name__)

# A provider that does not answer takes its time-out for each; what is due must not wait for all of them in turn.
MOST_AT_ONCE = 8
# Looks at one effect that began and never ended, since the process died: by then no chance. Pauses grow with each.
MOST_BEGUN = 8

JudgeAgain = Callable[[Entry], Awaitable[Settlement | None]]
"""The second look at a case's evidence just before a resend: how it settles what it stops, None lets it go on. What it
raises leaves the entry as it is, to be looked at later."""

Announce = Callable[[Sequence[EffectReceipt]], Awaitable[None]]
"""Writes receipts where the ledger can be rebuilt from; returns when they are there."""


class Looks(Protocol):
    """Looks at effects that began and have not ended (store/ledger/looks.py)."""

    async def begun(self, keys: Collection[str]) -> Mapping[str, int]:
        """How many looks at each began and never ended."""
        ...

    async def begin(self, key: str) -> None:
        """A look begins."""
        ...

    async def end(self, key: str) -> None:
        """A look ended, whatever came of it."""
        ...


PERSON_NEXT_STEP = "nothing more is done; a person's word stands"

_SETTLED_AS = {
    EffectState.COMMITTED: Status.ACCEPT,
    EffectState.ABSENT: Status.REJECT,
    EffectState.REJECTED: Status.REJECT,
}


class NotHeld(Exception):
    """A person may settle only what is open, and as committed what was stopped before it was sent; as not done only
    what can no longer arrive; and not what has moved on meanwhile."""


class Reconciler:
    """Looks at what is due. `judge_again` None: no case's effect is sent a second time. may_send: whether one may be
    at all; where it may not, it is only read back, and held. looks: None where a person looks, whose process may die of
    it. beside: entered for each look, so that none is made while a lane takes a record alone."""

    def __init__(
        self,
        ledger: EffectLedger,
        executor: Executor,
        *,
        judge_again: JudgeAgain | None,
        announce: Announce,
        may_send: Callable[[Entry], bool] = lambda _: True,
        looks: Looks | None = None,
        beside: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
    ) -> None:
        self._ledger = ledger
        self._executor = executor
        self._judge_again = judge_again
        self._announce = announce
        self._may_send = may_send
        self._looks = looks
        self._beside = beside
        # One after the other, so that an effect's receipts are announced in their order.
        self._announcing = asyncio.Lock()

    async def run_once(self, limit: int = 100) -> list[Entry]:
        """Look at what is due, up to `limit`; the entries that were looked at, as they stand now.

        One entry's trouble (a provider that is not named or does not answer, evidence that cannot be had) does not
        keep others waiting. Raises what the ledger and `announce` raise, once all were looked at; what was taken is
        then due again after its back-off.
        """
        due = await self._ledger.take_due(limit)
        begun = {} if self._looks is None else await self._looks.begun([each.key for each in due])
        looked = await self.look_at([each for each in due if not begun.get(each.key)])
        # Where a process died, it is known what it died of only if nothing else is under way.
        for each in due:
            if times := begun.get(each.key):
                looked.append(await (self._hold(each) if times >= MOST_BEGUN else self.look_again(each)))
        return looked

    async def look_at(self, entries: Sequence[Entry]) -> list[Entry]:
        """Look at entries as `look_again` does, some at once; in order, as they stand now."""
        if len(entries) <= 1:
            return [await self.look_again(entry) for entry in entries]
        slots = asyncio.Semaphore(MOST_AT_ONCE)

        async def look(entry: Entry) -> Entry:
            async with slots:
                return await self.look_again(entry)

        outcomes = await asyncio.gather(*map(look, entries), return_exceptions=True)
        looked: list[Entry] = []
        for outcome in outcomes:
            # All are awaited first: what one of them sent is settled whatever happened to another.
            if isinstance(outcome, BaseException):
                raise outcome
            looked.append(outcome)
        return looked

    async def look_again(self, entry: Entry) -> Entry:
        """Read one entry back now, whether due or not, and do what follows from it."""
        if self._looks is None:
            return await self._look_again(entry)
        async with self._beside():
            await self._looks.begin(entry.key)
            try:
                return await self._look_again(entry)
            finally:
                await self._looks.end(entry.key)

    async def _hold(self, entry: Entry) -> Entry:
        """Leave to a person what ends the process."""
        log.error(
            "effect %s is not looked at any more: %d looks at it began and none ended; see what stands at the provider"
            " and say so (`ticketgate reconcile --settle %s`)",
            entry.key,
            MOST_BEGUN,
            entry.key,
        )
        await self._executor.hand_over(entry, token=None)
        return entry

    async def _look_again(self, entry: Entry) -> Entry:
        if not entry.is_told:
            await self._tell(entry)
        if not entry.is_open:
            return entry
        try:
            looked, found = await self._executor.look(entry)
            if looked.sequence != entry.sequence:
                await self._tell(looked)
            is_absent_now = isinstance(found, NotFound) and found.is_authoritative
            if not (is_absent_now and self._may_send(looked)):
                return looked
            if not may_resend(looked, self._executor.port(looked)):
                return looked
            return await self._resend(looked)
        except (ProviderMissing, EntryLost) as err:
            log.error("%s", err)
            return entry

    async def held(self, limit: int = 1_000) -> tuple[Entry, ...]:
        """What is open, the oldest first."""
        return await self._ledger.held(limit)

    async def settle(self, key: str, state: EffectState, *, actor: str, reason: str) -> Entry:
        """Settle an open effect by a person's word; or one that was stopped, as committed: they carried it out by hand,
        and its key is no longer left to another order. As absent or rejected only after its provider's settle time: it
        may be on its way till then, and nobody would look any more. Raises `NotHeld`, `ProviderMissing`, and ValueError
        without actor or reason."""
        if not actor.strip() or not reason.strip():
            raise ValueError("who settles an effect says who they are, and why")
        if state not in _SETTLED_AS:
            raise ValueError(f"an effect is settled as committed, absent or rejected, not {state}")
        entry = await self._ledger.read(key)
        if entry is None:
            raise NotHeld(f"effect {key} is not in the ledger")
        is_by_hand = entry.is_stopped and state is EffectState.COMMITTED
        if not (entry.is_open or is_by_hand):
            raise NotHeld(
                f"effect {key} is {entry.state}; only what is open can be settled, and as committed what was never sent"
            )
        left_s = 0.0 if state is EffectState.COMMITTED else self._executor.may_arrive_for_s(entry)
        if left_s > 0:
            raise NotHeld(
                f"effect {key} may still be on its way for {math.ceil(left_s)} s; say {state} after that"
            )
        settlement = Settlement(
            state=state,
            verdict=Verdict(
                _SETTLED_AS[state], Stage.OUTCOME, (f"settled_as_{state}_by_person",), PERSON_NEXT_STEP
            ),
            status=EffectStatus.SETTLED_BY_PERSON if state is EffectState.COMMITTED else None,
            provider_id=entry.provider_id,
            observed=entry.observed,
            settled_by=SettledBy(actor, reason),
        )
        written = await self._ledger.settle(entry, settlement, token=None, read_back_in_s=READ_BACK_FIRST_S)
        if isinstance(written, Moved):
            raise NotHeld(f"effect {key} moved on meanwhile; look at it again")
        await self._tell(written)
        return written

    async def _resend(self, entry: Entry) -> Entry:
        # Evidence first: what may not be done any more is not done again either.
        if (stopped := await self._stopped(entry)) is not None:
            return stopped
        # Before it leaves, or a ledger rebuilt from receipts would take it for sent once, and send it again.
        await self._announce_one(receipt_of(_about_to_be_sent(entry)))
        # And once more: a broker may have kept it waiting for as long as a permission needs to be revoked.
        if (stopped := await self._stopped(entry)) is not None:
            return stopped
        sent = await self._executor.send(entry, token=None)
        await self._tell(sent)
        return sent

    async def _stopped(self, entry: Entry) -> Entry | None:
        """The entry as it is left where its evidence does not let it go; None lets it."""
        if entry.order.proposal is None:
            return None
        if self._judge_again is None:
            return entry
        try:
            objection = await self._judge_again(entry)
        except Exception as err:  # noqa: BLE001 - without evidence nothing is sent, and others go on
            log.warning("effect %s cannot be judged again: %r", entry.key, err)
            return entry
        return None if objection is None else await self._settle_and_tell(entry, objection)

    async def _settle_and_tell(self, entry: Entry, settlement: Settlement) -> Entry:
        written = await self._ledger.settle(entry, settlement, token=None, read_back_in_s=READ_BACK_FIRST_S)
        if isinstance(written, Moved):
            return entry
        await self._tell(written)
        return written

    async def _tell(self, entry: Entry) -> None:
        await self._announce_one(receipt_of(entry))
        await self._ledger.tell(entry)

    async def _announce_one(self, receipt: EffectReceipt) -> None:
        async with self._announcing:
            await self._announce([receipt])


def _about_to_be_sent(entry: Entry) -> Entry:
    """The entry as its `prepared` receipt tells of it: one step further, sent as often as it then will be."""
    return replace(
        entry,
        state=EffectState.PREPARED,
        sequence=entry.sequence + 1,
        sends=min(entry.sends + 1, MOST_SENDS),
        verdict=None,
        provider_id=None,
        observed=None,
    )
