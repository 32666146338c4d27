"""The adapter to a Redis hash, on a real Valkey."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis
from ticketgate.agents.effects.adapters.memory_ledger import LedgerInMemory
from ticketgate.agents.effects.adapters.redis import RedisPort
from ticketgate.agents.effects.executor import Executor
from ticketgate.agents.effects.ledger import Command, Entry
from ticketgate.agents.effects.port import (
    LATEST_START_S,
    CannotRead,
    Collision,
    Executed,
    Found,
    NotFound,
    Prepared,
    Refused,
    TimedOut,
)
from ticketgate.agents.effects.states import States
from ticketgate.codecs.records.receipt import EffectState
from ticketgate.store.keys import Keys
from ticketgate.streams.parts.ports import free_port
from ticketgate.streams.parts.valkey import Valkey

from ...support.effects import LANE, Clock, order, said

pytestmark = pytest.mark.redis
COMMAND = Command("pay", {"amount_gbp": "600.00", "note": "é"}, "k1")


@pytest.fixture
async def port(server: Valkey, redis: Redis, keys: Keys) -> AsyncIterator[RedisPort]:
    made = RedisPort(url=server.url, prefix=keys.prefix)
    yield made
    await made.close()


async def test_an_effect_stands_once_and_is_replayed(port: RedisPort) -> None:
    assert await port.read_back("k1") == NotFound()

    first = await port.execute(Prepared(COMMAND))
    again = await port.execute(Prepared(COMMAND))

    assert isinstance(first, Executed)
    assert not first.is_replay
    written = {**COMMAND.arguments, "status": "committed"}
    assert again == Executed(first.provider_id, written, is_replay=True)
    assert await port.read_back("k1") == Found(first.provider_id, written)


async def test_another_effect_under_the_key_collides(port: RedisPort) -> None:
    await port.execute(Prepared(COMMAND))

    assert await port.execute(Prepared(Command("pay", {}, "k1"))) == Collision()
    assert isinstance(await port.read_back("k1"), Found)


async def test_of_many_at_once_one_creates(port: RedisPort) -> None:
    found = await asyncio.gather(*(port.execute(Prepared(COMMAND)) for _ in range(5)))

    assert sum(isinstance(each, Executed) and not each.is_replay for each in found) == 1


async def test_what_an_application_changed_is_what_is_read(port: RedisPort, redis: Redis, keys: Keys) -> None:
    await redis.hset(f"{keys.prefix}effects", "k1", '{"id":"a","content":"c","state":{"amount_gbp":"1"}}')
    await redis.hset(f"{keys.prefix}effects", "k2", "nonsense")

    assert await port.read_back("k1") == Found("a", {"amount_gbp": "1"})
    assert await port.read_back("k2") == CannotRead()
    assert await port.execute(Prepared(Command("pay", {}, "k2"))) == TimedOut()


async def test_what_cannot_be_written_is_refused_before_sending(port: RedisPort) -> None:
    assert isinstance(await port.prepare(Command("pay", {"n": float("inf")}, "k")), Refused)
    assert isinstance(await port.prepare(Command("pay", {"n": "x" * 2**21}, "k")), Refused)
    assert await port.prepare(COMMAND) == Prepared(COMMAND)
    assert (port.is_idempotent_by_key, port.settle_s) == (True, LATEST_START_S + 5.0)


async def test_no_request_outlives_the_timeout_that_the_settle_time_counts_on(
    port: RedisPort, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(*_: object) -> None:
        await asyncio.get_running_loop().create_future()

    # Each call of redis-py is bound by itself; connecting and asking together are not.
    monkeypatch.setattr(port._redis, "eval", never)
    monkeypatch.setattr(port, "_timeout_s", 0.01)

    assert await port.execute(Prepared(COMMAND)) == TimedOut()


async def test_a_redis_that_is_away_is_an_unknown_outcome() -> None:
    port = RedisPort(url=f"redis://127.0.0.1:{free_port()}/0", prefix="x:", timeout_s=1.0)

    assert await port.execute(Prepared(COMMAND)) == TimedOut()
    assert await port.read_back("k1") == CannotRead()
    await port.close()


def test_a_configuration_that_cannot_work_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="prefix"):
        RedisPort(url="redis://127.0.0.1:1/0", prefix="")
    with pytest.raises(ValueError, match="timeout_s"):
        RedisPort(url="redis://127.0.0.1:1/0", prefix="x", timeout_s=0)


@pytest.mark.parametrize(
    "states",
    [
        States(done=("refunded",), undone=("reversed",), field="stage"),
        States(done=("done", "archived"), pending=("queued",)),
    ],
)
async def test_what_is_written_is_done_as_its_tool_declares(
    server: Valkey, keys: Keys, states: States
) -> None:
    port = RedisPort(url=server.url, prefix=keys.prefix, states={"pay": states})
    executor = Executor(LedgerInMemory(clock=Clock()), {"bank": port}, states={"pay": states}, clock=Clock())

    (prepared,) = await executor.prepare([order()], token=LANE, claimed=1)
    assert isinstance(prepared, Entry)
    entry = await executor.carry_out(prepared, token=LANE)

    assert said(entry) == (EffectState.COMMITTED, "postcondition", ())
    assert entry.observed is not None
    assert entry.observed[states.field] == states.done[0]
    await port.close()
