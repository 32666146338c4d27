"""Looks at effects, on a real Valkey: what began counts until one ends."""

from __future__ import annotations

import pytest
from redis.asyncio import Redis
from ticketgate.store.keys import Keys
from ticketgate.store.ledger.looks import Looks

pytestmark = pytest.mark.redis


async def test_what_began_counts_until_one_ends(redis: Redis, keys: Keys) -> None:
    looks = Looks(redis, keys)
    for _ in range(3):
        await looks.begin("k1")
    await looks.begin("k2")
    await looks.end("k2")

    assert await looks.begun(["k1", "k2", "k3"]) == {"k1": 3, "k2": 0, "k3": 0}
    assert await looks.begun([]) == {}
