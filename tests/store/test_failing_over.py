"""What Redis says while it fails over heals by itself; what it cannot be is refused in one line at start."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from redis.asyncio import Redis
from redis.exceptions import RedisError, ResponseError
from ticketgate.codecs.records.identity import Coordinate, Fingerprint, IdempotencyKey
from ticketgate.store.claims import Claim, Claims
from ticketgate.store.conditions import ConditionFailed, check_server
from ticketgate.store.connect import ServerChanged, ServerGuard, connect
from ticketgate.store.durability import Durability
from ticketgate.store.keys import Keys
from ticketgate.store.servers import Clocks, LookAgain, look
from ticketgate.store.tokens import Superseded, take_token
from ticketgate.streams.config.setting_kinds import SettingsError
from ticketgate.streams.config.settings import load_settings
from ticketgate.streams.kafka.faults import Action
from ticketgate.streams.lane.recovery import handling
from ticketgate.streams.parts.ports import HOST, free_port
from ticketgate.streams.parts.valkey import Valkey
from ticketgate.streams.process.preflight import require_redis

from ..support.standing import stand

pytestmark = pytest.mark.redis


async def claim(redis: Redis, keys: Keys, offset: int = 0) -> None:
    durability = Durability(replicas=0, syncs_itself=True, timeout=timedelta(seconds=5))
    wanted = Claim(IdempotencyKey("k"), Coordinate("tickets", 0, offset), Fingerprint("a"))
    claims = Claims(redis, keys, ttl=timedelta(days=1), durability=durability)
    token = await take_token(redis, keys, "tickets", 0)
    await claims.claim([wanted], token=token, claimed=offset + 1)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("CONFIG", "SET", "min-replicas-to-write", "1"), "NOREPLICAS"),
        (("REPLICAOF", HOST, str(free_port())), "READONLY"),
    ],
)
async def test_what_is_said_during_a_failover_is_no_refusal(
    redis: Redis, keys: Keys, command: tuple[str, ...], said: str
) -> None:
    await stand(redis, keys)
    await claim(redis, keys)
    await redis.execute_command(*command)
    try:
        with pytest.raises(RedisError) as told:
            await claim(redis, keys)
    finally:
        await redis.execute_command("REPLICAOF", "NO", "ONE")
        await redis.execute_command("CONFIG", "SET", "min-replicas-to-write", "0")

    assert handling(told.value).cause == "redis_away"
    assert said in str(told.value) or "read only replica" in str(told.value)


async def test_a_replica_is_waited_for_and_not_refused(redis: Redis) -> None:
    await redis.execute_command("REPLICAOF", HOST, str(free_port()))
    try:
        with pytest.raises(RedisError, match="this Redis is a replica") as told:
            await check_server(redis, fsync="always", replicas=0)
    finally:
        await redis.execute_command("REPLICAOF", "NO", "ONE")

    assert handling(told.value).action is Action.REOPEN


@pytest.mark.parametrize("word", ["SUPERSEDED", "LOOKAGAIN", "READONLY "])
def test_a_pipelines_error_is_told_by_its_reply_and_not_by_the_script_that_it_shows(word: str) -> None:
    error = ResponseError(f"Command # 1 (EVAL ...{word}...) of pipeline caused error: ('OOM not now',)")

    assert handling(error).cause == "redis_refused"


async def test_a_server_that_was_demoted_and_promoted_again_is_another_one(redis: Redis, keys: Keys) -> None:
    """Its connections and run id stay, and in between it may have taken another's data."""
    await stand(redis, keys)
    token = await take_token(redis, keys, "tickets", 0)
    await redis.execute_command("REPLICAOF", HOST, str(free_port()))
    await redis.execute_command("REPLICAOF", "NO", "ONE")
    durability = Durability(replicas=0, syncs_itself=True, timeout=timedelta(seconds=5))
    wanted = Claim(IdempotencyKey("k"), Coordinate("tickets", 0, 0), Fingerprint("a"))

    with pytest.raises(LookAgain):
        await Claims(redis, keys, ttl=timedelta(days=1), durability=durability).claim(
            [wanted], token=token, claimed=1
        )


async def test_a_superseded_lane_on_another_server_is_superseded_first(redis: Redis, keys: Keys) -> None:
    token = await take_token(redis, keys, "tickets", 0)
    await take_token(redis, keys, "tickets", 0)
    durability = Durability(replicas=0, syncs_itself=True, timeout=timedelta(seconds=5))

    with pytest.raises(Superseded):
        await Claims(redis, keys, ttl=timedelta(days=1), durability=durability).claim(
            [], token=token, claimed=1
        )


async def test_no_command_leaves_on_a_connection_to_another_server(tmp_path: Path) -> None:
    port, keys = free_port(), Keys("moved")
    with Valkey(data=tmp_path / "one", port=port) as one:
        plain = connect(one.url, timeout=timedelta(seconds=5))
        guard = ServerGuard()
        await guard.accept((await look(plain, keys, clocks=Clocks())).id)
        guarded = connect(one.url, timeout=timedelta(seconds=5), guard=guard)
        await guarded.set("a", "1")
    with Valkey(data=tmp_path / "two", port=port):
        with suppress(RedisError):  # the connection that is gone
            await guarded.get("b")
        with pytest.raises(ServerChanged):
            await guarded.set("b", "1")
        assert await plain.exists("b") == 0
        await guard.accept((await look(plain, keys, clocks=Clocks())).id)
        await guarded.set("b", "1")
        await guarded.aclose()
        await plain.aclose()


async def test_a_cluster_is_refused_by_a_lane_and_in_one_line_at_start(tmp_path: Path) -> None:
    with Valkey(data=tmp_path / "node", options={"cluster-enabled": "yes"}) as node:
        redis = connect(node.url, timeout=timedelta(seconds=5))
        with pytest.raises(ConditionFailed, match="cluster mode, which is not supported"):
            await check_server(redis, fsync="always", replicas=0)
        await redis.aclose()

        with pytest.raises(SettingsError) as refused:
            await require_redis(load_settings(environment={"TICKETGATE_REDIS": node.url}).settings)

    assert str(refused.value) == (
        "TICKETGATE_REDIS: Redis runs in cluster mode, which is not supported; use one primary with replicas, and"
        " Sentinel to fail over"
    )


def test_a_url_that_names_no_service_is_refused_with_the_form_to_write() -> None:
    with pytest.raises(
        SettingsError, match=r"TICKETGATE_REDIS: .*redis\+sentinel://HOST:PORT,HOST:PORT/SERVICE/DB"
    ):
        load_settings(environment={"TICKETGATE_REDIS": "redis+sentinel://a:1"})
