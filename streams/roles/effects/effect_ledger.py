"""What the settings say of Redis, and the ledger of effects in it."""

from __future__ import annotations

from redis.asyncio import Redis
from ticketgate.store.durability import Durability
from ticketgate.store.keys import Keys
from ticketgate.store.ledger.ledger import Ledger
from ticketgate.streams.config.settings import Settings, ledger_ttl


def durability_of(settings: Settings) -> Durability:
    """Where writes must be before they count."""
    return Durability(
        replicas=settings.redis_replicas,
        syncs_itself=settings.redis_fsync == "always",
        timeout=settings.redis_timeout,
    )


def open_ledger(settings: Settings, redis: Redis) -> Ledger:
    """The ledger of the settings' namespace, for workers and for people. Nothing is sent yet."""
    return Ledger(
        redis, Keys(settings.namespace), ttl=ledger_ttl(settings), durability=durability_of(settings)
    )
