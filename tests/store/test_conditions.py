"""What Redis must be: each condition refused with its remedy, on a server that lacks it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from redis.asyncio import Redis
from ticketgate.store.conditions import ConditionFailed, bind_identity, check_server, identity_of
from ticketgate.store.connect import connect
from ticketgate.store.keys import Keys
from ticketgate.streams.parts.valkey import Valkey

pytestmark = pytest.mark.redis

OURS = identity_of(cluster="c", group="g", topics=["tickets"])


async def check(redis: Redis, *, fsync: str = "always", replicas: int = 0) -> None:
    await check_server(redis, fsync=fsync, replicas=replicas)  # type: ignore[arg-type]


async def test_a_durable_server_is_accepted(redis: Redis) -> None:
    await check(redis)


async def test_a_server_without_the_replicas_that_must_have_each_claim_is_refused(redis: Redis) -> None:
    with pytest.raises(ConditionFailed, match="0 replicas connected, and 1 must have each claim on disk"):
        await check(redis, replicas=1)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"appendonly": "no"}, "start it with `--appendonly yes`"),
        ({"appendfsync": "no"}, "set appendfsync always$"),
        ({"appendfsync": "everysec"}, "TICKETGATE_REDIS_FSYNC=everysec to accept losing a second"),
        ({"maxmemory-policy": "allkeys-lru"}, "set it to noeviction"),
        ({"maxmemory": "500000"}, "raise maxmemory"),
    ],
)
async def test_a_server_that_may_forget_is_refused(
    options: dict[str, str], reason: str, tmp_path: Path
) -> None:
    with Valkey(options=options) as server:
        redis = connect(server.url, timeout=timedelta(seconds=5))

        with pytest.raises(ConditionFailed, match=reason):
            await check(redis)

        await redis.aclose()


async def test_everysec_is_accepted_where_the_settings_accept_it() -> None:
    with Valkey(options={"appendfsync": "everysec"}) as server:
        redis = connect(server.url, timeout=timedelta(seconds=5))

        await check(redis, fsync="everysec")

        await redis.aclose()


async def test_a_server_that_hides_its_configuration_is_refused(server: Valkey, redis: Redis) -> None:
    await redis.acl_setuser(
        "worker", enabled=True, passwords=["+p"], keys=["*"], commands=["+@all", "-config"]
    )
    limited = connect(server.url.replace("redis://", "redis://worker:p@"), timeout=timedelta(seconds=5))

    with pytest.raises(ConditionFailed, match="CONFIG GET"):
        await check(limited)

    await limited.aclose()
    await redis.acl_deluser("worker")


async def test_a_namespace_keeps_to_its_cluster_group_and_topics(redis: Redis, keys: Keys) -> None:
    await bind_identity(redis, keys, OURS)
    await bind_identity(redis, keys, OURS)

    for different in ({"cluster": "d"}, {"group": "h"}, {"topics": "others"}):
        with pytest.raises(ConditionFailed, match=f"belongs to {next(iter(different))}"):
            await bind_identity(redis, keys, {**OURS, **different})
