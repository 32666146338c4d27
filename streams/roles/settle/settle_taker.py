"""How a lane of the role `settle` takes a batch of `settlements`: each takes effect once, or is told why not.

    3 DECODE    the records to settlements; what is none rides the transaction to dead-letter
    5 LOOK      the signature, the record in review, the policy's word (looking.py); nothing is claimed for what fails
    4 CLAIM     the ticket's settlement key, only while the ticket's own claim stands; what fails lets go of its own
    6 COMMIT    the decisions, what is told, and the offset one past the batch, together; then mark it in Redis

Promise: a crash between any two steps never settles twice: what was claimed is found as its own at the next try, looked
at once more, and let go of before it is committed as not taken. Here looking comes before claiming, so that what nobody
signed can keep nobody from settling.
Relies on: a fenced output. See ARCHITECTURE.md#delivery.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from aiokafka import ConsumerRecord
from ticketgate.agents.settling.refusal import Code, Refusal
from ticketgate.codecs.records.settlement import Settlement
from ticketgate.store.claims import Claim
from ticketgate.store.lane_state.underway import UnderWay
from ticketgate.store.lane_state.witnesses import Witness
from ticketgate.store.settlement_claims import (
    NotStanding,
    SettledBefore,
    SettlementClaims,
    Settling,
    SettlingResult,
    Taken,
)
from ticketgate.store.tokens import LaneToken
from ticketgate.streams.config.telemetry import Telemetry
from ticketgate.streams.lane.taking.batch import NONE_ASIDE, Alone, deciding
from ticketgate.streams.lane.taking.intake import Arrival, Reader, take_in
from ticketgate.streams.lane.taking.records import RecordWriter
from ticketgate.streams.lane.taking.tracing import Tracing
from ticketgate.streams.lane.transaction import Outgoing, Output
from ticketgate.streams.roles.settle.looking import Bad, Good, Looking
from ticketgate.streams.roles.settle.settled_records import OUTCOMES, SettledWriter

NOT_STANDING = {
    False: Refusal(
        Code.CLAIM_EXPIRED, ("the ticket's claim is over; send the ticket again if it is still of interest",)
    ),
    True: Refusal(Code.DECIDED_ANEW, ("the ticket was decided anew since the record that was shown",)),
}


@dataclass(frozen=True, slots=True)
class Looked:
    """A settlement with what was found, and the decision that is dispatched if it is accepted and taken."""

    arrival: Arrival[Settlement]
    found: Good | Bad
    dispatched: Outgoing | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """What is written of a settlement; counted: by what it is called in metrics."""

    records: tuple[Outgoing, ...]
    counted: str
    waited_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SettleTaker:
    """Takes batches of settlements. The same for all lanes of a process. note: writes down what a lane does."""

    claims: SettlementClaims
    read: Reader[Settlement]
    looking: Looking
    note: Callable[[LaneToken, UnderWay], Awaitable[None]]
    mark_committed: Callable[[LaneToken, int, Witness | None], Awaitable[None]]
    settled: SettledWriter
    writer: RecordWriter
    telemetry: Telemetry
    now: Callable[[], datetime]
    tracing: Tracing

    async def take(
        self,
        records: Sequence[ConsumerRecord],
        *,
        token: LaneToken,
        output: Output,
        aside: Mapping[int, str] = NONE_ASIDE,
        alone: Alone | None = None,
    ) -> int:
        """As `BatchTaker`. A settlement that is set aside takes no effect, and is told of."""
        intake = take_in(records, self.read, aside=aside)  # 3
        witness, now = Witness.of(records[-1]), self.now()
        await self.note(token, deciding(records[0].offset, intake.next_offset, alone))
        with self.tracing.batch(
            token.topic, token.partition, [each.headers for each in intake.arrivals]
        ) as span:
            looked = [await self._look(each, now, aside, alone) for each in intake.arrivals]  # 5
            wanted = [
                Settling(each.arrival.claim, each.found.ticket_claim)
                for each in looked
                if isinstance(each.found, Good)
            ]
            results = await self.claims.claim(
                wanted,
                let_go=[each.arrival.claim for each in looked if isinstance(each.found, Bad)],
                token=token,
                claimed=intake.next_offset,
                witness=witness,
            )  # 4
            by_claim = dict(zip((each.claim for each in wanted), results, strict=True))
            told = [self._tell(each, by_claim.get(each.arrival.claim), now) for each in looked]
            outgoing = [span.stamp(record) for each in told for record in each.records]
            outgoing += self.writer.dead_letters(intake.unreadable, bare=aside)
            if alone is not None:
                await alone.on_decided()
            await output.commit(outgoing, intake.next_offset)  # 6
        await self.mark_committed(token, intake.next_offset, witness)
        self.telemetry.records(token.topic, "tombstone", intake.tombstones)
        self.telemetry.put_aside(token.topic, (each.malformed for each in intake.unreadable))
        for each in told:
            self.telemetry.records(token.topic, each.counted)
            self.telemetry.settlements.settled(each.counted, each.waited_s)
        return intake.next_offset

    async def _look(
        self, arrival: Arrival[Settlement], now: datetime, aside: Mapping[int, str], alone: Alone | None
    ) -> Looked:
        reason = aside.get(arrival.claim.coordinate.offset) or ("" if alone is None else alone.objection)
        if reason:
            return Looked(arrival, Bad(arrival.document, Refusal(Code.SET_ASIDE, (reason,)), None))
        found = await self.looking.look(arrival.document)
        if isinstance(found, Bad):
            return Looked(arrival, found)
        dispatched = self.settled.dispatched(found, arrival.claim, at=now)
        if isinstance(dispatched, Refusal):
            return Looked(arrival, _bad(found, dispatched))
        return Looked(arrival, found, dispatched)

    def _tell(self, looked: Looked, result: SettlingResult | None, now: datetime) -> Told:
        claim, found = looked.arrival.claim, looked.found
        if isinstance(found, Bad):
            return self._refused(found, claim, now)
        match result:
            case Taken():
                settled = self.settled.settled(found, claim, at=now)
                waited_s = (now - found.record.decided_at).total_seconds()
                records = (settled,) if looked.dispatched is None else (looked.dispatched, settled)
                return Told(records, str(OUTCOMES[found.settlement.action]), waited_s)
            case SettledBefore(is_same=True):
                return Told((), "replayed")
            case SettledBefore(owner=owner):
                why = Refusal(Code.ALREADY_SETTLED, (f"another settlement was before it, at {owner}",))
                return Told(
                    (self.settled.refused(_bad(found, why), claim, at=now, owner=owner),), str(why.code)
                )
            case NotStanding(is_anew=is_anew):
                return self._refused(_bad(found, NOT_STANDING[is_anew]), claim, now)
            case _:
                raise RuntimeError(f"settlement {found.settlement.id} was neither claimed nor refused")

    def _refused(self, bad: Bad, claim: Claim, now: datetime) -> Told:
        return Told((self.settled.refused(bad, claim, at=now),), f"void_{bad.refusal.code}")


def _bad(good: Good, refusal: Refusal) -> Bad:
    return Bad(good.settlement, refusal, good.policy, good.record.tenant)
