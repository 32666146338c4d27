"""What all lanes of a process share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aiokafka import TopicPartition
from redis.asyncio import Redis
from ticketgate.store.durability import Durability
from ticketgate.store.keys import Keys
from ticketgate.store.underway import UnderWays
from ticketgate.streams.batch import BatchHung
from ticketgate.streams.claims_store import ClaimsStore
from ticketgate.streams.floor import Floor
from ticketgate.streams.handover import HandOver
from ticketgate.streams.overdue import Steps
from ticketgate.streams.passing import PassingOver
from ticketgate.streams.readiness import Readiness
from ticketgate.streams.settings import Settings
from ticketgate.streams.telemetry import Telemetry


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
