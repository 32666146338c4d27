"""The ledger of effects that the settings name."""

from __future__ import annotations

from redis.asyncio import Redis
from ticketgate.store.durability import Durability
from ticketgate.store.keys import Keys
from ticketgate.store.ledger import Ledger
from ticketgate.streams.settings import Settings, ledger_ttl


def open_ledger(settings: Settings, redis: Redis) -> Ledger:
    """The ledger of the settings' namespace, as a worker has it. Nothing is sent yet."""
    durability = Durability(
        replicas=settings.redis_replicas,
        syncs_itself=settings.redis_fsync == "always",
        timeout=settings.redis_timeout,
    )
    return Ledger(redis, Keys(settings.namespace), ttl=ledger_ttl(settings), durability=durability)
