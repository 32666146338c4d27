"""A Redis that a namespace stands on, for tests that write as a lane does without having opened one."""

from __future__ import annotations

import secrets

from redis.asyncio import Redis
from ticketgate.store.keys import Keys
from ticketgate.store.servers import Clocks, lock, look, stand_on


async def stand(redis: Redis, keys: Keys) -> None:
    """As a hand-over ends (streams/lane/opening/handover.py)."""
    nonce = secrets.token_hex(4)
    while (found := await look(redis, keys, clocks=Clocks())).known != found.id:
        if await lock(redis, keys, found.id, nonce):
            assert await stand_on(redis, keys, found, nonce)
