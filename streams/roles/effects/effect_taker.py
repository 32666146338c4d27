"""How a lane of the role `effects` takes a batch of `dispatch`: every effect in it carried out once, and told of.

    3 DECODE    the records to orders; what is no decision rides the last transaction to dead-letter. A record that
                names an effect of one before it waits for that one's commit: steps 4 to 7 are taken once more
    4 PREPARE   the orders in the ledger, in one round trip; whoever finds a key finds what stands under it. What
                needs a confirmation uses one up here, and its receipt names it before anything is sent
    5 ANNOUNCE  the `prepared` receipts, committed before anything is sent, so that the ledger can be rebuilt
    6 ACT       evidence looked up and judged again, then sent, read back, settled (agents/effects/executor.py)
    7 COMMIT    the receipts and the offset one past the batch, together; then mark it in Redis

Promise: a crash between any two steps never sends twice: what may have been sent is `unknown` in the ledger, and read
back. What stays open does not hold the partition up: the reconciler looks at it later (reconciling.py).
Relies on: a fenced output, and a ledger that forgets nothing. See ARCHITECTURE.md#a-proposal.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from aiokafka import ConsumerRecord
from ticketgate.agents.effects.executor import Executor, receipt_of
from ticketgate.agents.effects.ledger import Collided, Entry, Order, Settlement
from ticketgate.agents.effects.rules import confirmation_spent
from ticketgate.agents.funnel.file.funnel_specs import ToolEffect
from ticketgate.codecs.records.receipt import EffectReceipt, EffectState
from ticketgate.codecs.verdict import Stage, Status, Verdict
from ticketgate.store.lane_state.underway import UnderWay
from ticketgate.store.lane_state.witnesses import Witness
from ticketgate.store.ledger.entries import is_free
from ticketgate.store.tokens import LaneToken
from ticketgate.streams.config.telemetry import Telemetry
from ticketgate.streams.lane.taking.batch import NONE_ASIDE, Alone, deciding
from ticketgate.streams.lane.taking.contention import KeyLeft
from ticketgate.streams.lane.taking.records import RecordWriter
from ticketgate.streams.lane.taking.tracing import Tracing
from ticketgate.streams.lane.transaction import Output
from ticketgate.streams.roles.case_records import ReceiptWriter
from ticketgate.streams.roles.effects.dispatched import Dispatched, DispatchedIntake, take_in_dispatched
from ticketgate.streams.roles.effects.second_look import SecondLook, stopped

log = logging.getLogger(__name__)

# Effects of a batch that are under way at once; those of one ticket or case follow one another.
MOST_AT_ONCE = 8

NOT_AUTOMATIC = (
    "a person carries it out and says so (`ticketgate reconcile --settle KEY --as committed`), or makes it automatic in"
    " the funnel file and dispatches it anew (`ticketgate ledger dispatch KEY`)"
)


ENDS_WORKER = (
    "nothing was sent; mend what ended the workers and dispatch it anew (`ticketgate ledger dispatch KEY`), or a person"
    " carries it out and says so (`ticketgate reconcile --settle KEY --as committed`)"
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """One effect that a dispatched record asks for, and the record's key: effects of one key keep their order."""

    order: Order
    group: bytes | None
    is_automatic: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectTaker:
    """Takes batches of dispatched decisions. The same for all lanes of a process. `tools`: what is carried out here,
    by name; an effect of any other tool is left to whoever else reads `dispatch`. note: writes down what a lane does,
    in a round trip of its own, for each effect waits for the disk and for its provider anyway."""

    tools: Mapping[str, ToolEffect]
    executor: Executor
    second_look: SecondLook
    note: Callable[[LaneToken, UnderWay], Awaitable[None]]
    mark_committed: Callable[[LaneToken, int, Witness | None], Awaitable[None]]
    receipts: ReceiptWriter
    writer: RecordWriter
    telemetry: Telemetry
    max_bytes: int
    tracing: Tracing
    # What this process committed a `prepared` receipt for: a lane that reopens does not announce it again.
    _announced: dict[str, int] = field(default_factory=dict, init=False)

    async def take(
        self,
        records: Sequence[ConsumerRecord],
        *,
        token: LaneToken,
        output: Output,
        aside: Mapping[int, str] = NONE_ASIDE,
        alone: Alone | None = None,
    ) -> int:
        """As `BatchTaker`. A record set aside goes to dead-letter; what was begun of its effects is the reconciler's,
        and what was not is not begun."""
        position: int = records[0].offset
        intake = take_in_dispatched(records, max_bytes=self.max_bytes, aside=aside)  # 3
        for run in intake.runs():
            position = await self._take_run(run, position, token, output, aside, alone, last=records[-1])
        self.telemetry.records(token.topic, "tombstone", intake.tombstones)
        return position

    async def _take_run(
        self,
        intake: DispatchedIntake,
        position: int,
        token: LaneToken,
        output: Output,
        aside: Mapping[int, str],
        alone: Alone | None,
        *,
        last: ConsumerRecord,
    ) -> int:
        """4 to 7, of records that name no effect twice, the first at `position` or behind; where the next begin.
        `last`: of the batch."""
        wanted = [each for dispatched in intake.arrivals for each in self._wanted(dispatched)]
        await self.note(token, deciding(position, intake.next_offset, alone))
        with self.tracing.batch(
            token.topic, token.partition, [each.headers for each in intake.arrivals]
        ) as span:
            prepared = await self.executor.prepare(
                [each.order for each in wanted], token=token, claimed=intake.next_offset
            )  # 4
            await self._announce(prepared, output, position)  # 5
            told = await self._act_on_all(wanted, prepared, token, alone)  # 6
            outgoing = [span.stamp(record) for receipt in told for record in self.receipts.effect(receipt)]
            outgoing += self.writer.dead_letters(intake.unreadable, bare=aside)
            if alone is not None:
                await alone.on_decided()
            await output.commit(outgoing, intake.next_offset)  # 7
        is_end = intake.next_offset == last.offset + 1
        await self.mark_committed(token, intake.next_offset, Witness.of(last) if is_end else None)
        self.telemetry.put_aside(token.topic, (each.malformed for each in intake.unreadable))
        self.telemetry.records(token.topic, "taken", len(intake.arrivals))
        for _ in range(sum(len(each.commands) for each in intake.arrivals) - len(wanted)):
            self.telemetry.effect("not_ours")
        for receipt in told:
            self._announced.pop(receipt.idempotency_key, None)
            self.telemetry.effect(str(receipt.status or receipt.effect_state))
        return intake.next_offset

    def _wanted(self, dispatched: Dispatched) -> list[Wanted]:
        found: list[Wanted] = []
        for command in dispatched.commands:
            tool = self.tools.get(command.tool)
            if tool is None:
                continue  # somebody else's
            order = Order(
                command=command,
                provider=tool.provider,
                subject=dispatched.subject,
                source=dispatched.coordinate,
                proposal=dispatched.proposal,
                confirmations=dispatched.confirmations[command.key],
            )
            found.append(Wanted(order, dispatched.key, tool.automatic))
        return found

    async def _announce(self, prepared: Sequence[Entry | Collided], output: Output, position: int) -> None:
        """5. With the offset as it stands: a successor begins with this batch again."""
        fresh = {
            each.key: each
            for each in prepared
            if isinstance(each, Entry)
            and each.state is EffectState.PREPARED
            and not each.is_unconfirmed  # it is not sent
            and self._announced.get(each.key) != each.sequence
        }
        if not fresh:
            return
        records = [record for each in fresh.values() for record in self.receipts.effect(receipt_of(each))]
        await output.commit(records, position)
        self._announced.update({key: each.sequence for key, each in fresh.items()})

    async def _act_on_all(
        self,
        wanted: Sequence[Wanted],
        prepared: Sequence[Entry | Collided],
        token: LaneToken,
        alone: Alone | None,
    ) -> list[EffectReceipt]:
        """6. One receipt an effect, in order."""
        places: dict[object, list[int]] = {}
        for place, each in enumerate(wanted):
            places.setdefault(each.group if each.group is not None else place, []).append(place)
        told: dict[int, EffectReceipt] = {}
        slots = asyncio.Semaphore(MOST_AT_ONCE)
        objection = "" if alone is None else alone.objection

        async def act_on(group: Sequence[int]) -> None:
            async with slots:
                for place in group:
                    told[place] = await self._act(wanted[place], prepared[place], token, objection)

        outcomes = await asyncio.gather(*map(act_on, places.values()), return_exceptions=True)
        for outcome in outcomes:
            # All are awaited first: what was sent is settled whatever happened to its neighbour.
            if isinstance(outcome, BaseException):
                raise outcome
        return [told[place] for place in range(len(wanted))]

    async def _act(
        self, wanted: Wanted, found: Entry | Collided, token: LaneToken, given_up: str
    ) -> EffectReceipt:
        if isinstance(found, Collided):
            return receipt_of(found)
        if given_up and found.is_open:
            await self.executor.hand_over(found, token=token)
            return receipt_of(found, asked=wanted.order)
        if found.state is EffectState.PREPARED:
            objection = await self._objection(wanted, found, given_up)
            if objection is not None and found.order.source != wanted.order.source:
                # What another record has prepared is not this one's to stop.
                told = receipt_of(Collided(wanted.order, found))
                return replace(told, verdict=objection.verdict, judged_again=objection.judged_again)
            if objection is not None:
                found = await self.executor.stop(found, objection, token=token)
        entry = await self.executor.carry_out(found, token=token)
        if found.state is EffectState.PREPARED and is_free(entry, wanted.order):
            raise KeyLeft(entry.key)
        return receipt_of(entry, asked=wanted.order)

    async def _objection(self, wanted: Wanted, found: Entry, given_up: str) -> Settlement | None:
        if given_up:
            return stopped(Verdict(Status.REVIEW, Stage.OUTCOME, (given_up,), ENDS_WORKER))
        if not wanted.is_automatic:
            reasons = (f"not_automatic:{wanted.order.command.tool}",)
            return stopped(Verdict(Status.REVIEW, Stage.AUTHORITY, reasons, NOT_AUTOMATIC))
        if (spent := confirmation_spent(found)) is not None:
            return spent
        return await self.second_look.at(wanted.order, found.confirmation)
