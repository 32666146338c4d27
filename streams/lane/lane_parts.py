"""What all lanes of a process share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aiokafka import TopicPartition
from redis.asyncio import Redis
from ticketgate.store.durability import Durability
from ticketgate.store.keys import Keys
from ticketgate.store.lane_state.underway import UnderWays
from ticketgate.streams.config.overdue import Steps
from ticketgate.streams.config.readiness import Readiness
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.config.telemetry import Telemetry
from ticketgate.streams.lane.opening.claims_store import ClaimsStore
from ticketgate.streams.lane.opening.handover import HandOver
from ticketgate.streams.lane.taking.batch import BatchHung
from ticketgate.streams.lane.taking.floor import Floor
from ticketgate.streams.lane.taking.passing import PassingOver


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneParts:
    """What all lanes of a process share."""

    settings: Settings
    redis: Redis
    keys: Keys
    under_ways: UnderWays
    floor: Floor
    durability: Durability
    hand_over: HandOver
    store: ClaimsStore
    passing: PassingOver
    telemetry: Telemetry
    readiness: Readiness
    steps: Steps
    on_hang: Callable[[TopicPartition, BatchHung], Awaitable[None]]
