"""What a lane does with tickets: the scorer's answers judged by the policy.

Promise: one decision a ticket, whatever the scorer does; where it hung, `BatchHung` says on which.
See ARCHITECTURE.md#delivery.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ticketgate.agents.deciding.decide import Decision
from ticketgate.codecs.records.identity import Coordinate, IdempotencyKey
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.verdict import Stage
from ticketgate.store.tokens import LaneToken
from ticketgate.streams.config.telemetry import Telemetry
from ticketgate.streams.lane.taking.batch import BatchHung
from ticketgate.streams.lane.taking.intake import Arrival
from ticketgate.streams.lane.taking.records import RecordWriter
from ticketgate.streams.lane.transaction import Outgoing
from ticketgate.streams.roles.decide.deciding import Decider, ScorerHung, decide_all


@dataclass(frozen=True, slots=True)
class TicketWork:
    """The `Work` of the role `decide`."""

    decider: Decider
    writer: RecordWriter
    telemetry: Telemetry

    async def decide(self, arrivals: Sequence[Arrival[Ticket]], *, token: LaneToken) -> Sequence[Decision]:
        """One decision a ticket, in order. Raises `BatchHung` and `ScorerUnavailable`."""
        offsets = [arrival.claim.coordinate.offset for arrival in arrivals]
        try:
            return await decide_all(self.decider, [arrival.document for arrival in arrivals])
        except ScorerHung as err:
            raise BatchHung(err, offsets=[offsets[place] for place in err.places]) from err

    async def give_up(
        self, arrivals: Sequence[Arrival[Ticket]], objection: str, *, token: LaneToken
    ) -> Sequence[Decision]:
        """To review, without inference."""
        return [self.decider.refuse(Stage.ANSWERS, [objection]) for _ in arrivals]

    def collided(self, arrival: Arrival[Ticket], owner: Coordinate) -> Decision:
        """To review, without inference."""
        reason = f"the id was used before for a ticket that says something else, at {owner}"
        return self.decider.refuse(Stage.IDENTITY, [reason])

    def set_aside(self, arrival: Arrival[Ticket], reason: str) -> Decision:
        """To review, without inference."""
        return self.decider.refuse(Stage.ANSWERS, [reason])

    def write(
        self, arrival: Arrival[Ticket], outcome: Decision, *, key: IdempotencyKey, at: datetime
    ) -> Sequence[Outgoing]:
        """One decision record."""
        return [self.writer.decision(arrival, outcome, key=key, at=at)]

    def write_bare(
        self, arrival: Arrival[Ticket], outcome: Decision, *, key: IdempotencyKey, at: datetime
    ) -> Sequence[Outgoing]:
        """One decision record without text, and without the producer's headers."""
        return [self.writer.bare(arrival, outcome, key=key, at=at)]

    def count(self, outcomes: Sequence[Decision]) -> None:
        """Count decisions, rules and answers."""
        self.telemetry.decided(outcomes)
