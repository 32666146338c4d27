"""One Valkey for the folder; each test takes a namespace of its own and leaves no key outside it."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta

import pytest
from redis.asyncio import Redis
from ticketgate.store.connect import connect
from ticketgate.store.keys import Keys
from ticketgate.streams.parts.valkey import Valkey


@pytest.fixture(scope="module")
def server() -> Iterator[Valkey]:
    with Valkey() as server:
        yield server


@pytest.fixture
def keys() -> Keys:
    return Keys(f"t{uuid.uuid4().hex[:8]}")


@pytest.fixture
async def redis(server: Valkey, keys: Keys) -> AsyncIterator[Redis]:
    client = connect(server.url, timeout=timedelta(seconds=5))
    yield client
    leaked = [name async for name in client.scan_iter() if not name.startswith(keys.prefix.encode())]
    await client.flushdb()
    await client.aclose()
    assert not leaked, f"keys outside the namespace: {leaked}"
