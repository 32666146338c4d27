"""What lanes have under way, on a real Valkey and against a dictionary: whoever lives is not blamed, however late."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisAway
from ticketgate.store.connect import connect
from ticketgate.store.keys import Keys
from ticketgate.store.lane_state.marks import mark_committed
from ticketgate.store.lane_state.underway import MOST_LEFT, Doing, Left, UnderWay, UnderWays, reading
from ticketgate.store.tokens import LaneToken, Superseded, take_token
from ticketgate.streams.parts.valkey import Valkey

pytestmark = pytest.mark.redis
T = TypeVar("T")

TOPIC, PARTITION = "tickets", 0


async def open_lane(redis: Redis, keys: Keys, offset: int = 0) -> tuple[LaneToken, tuple[Left, ...]]:
    token = await take_token(redis, keys, TOPIC, PARTITION)
    return token, await UnderWays(redis, keys).begin(token, offset)


def alone(doing: Doing, offset: int) -> UnderWay:
    return UnderWay(doing, range(offset, offset + 1), is_alone=True)


async def test_what_a_lane_that_died_had_under_way_is_found_by_each_that_comes_after_and_is_new_once(
    redis: Redis, keys: Keys
) -> None:
    under_ways = UnderWays(redis, keys)
    dead, _ = await open_lane(redis, keys)
    await under_ways.note(dead, alone(Doing.DECIDING, 7))

    _, first = await open_lane(redis, keys)
    _, second = await open_lane(redis, keys)

    assert first == (Left(dead.value, alone(Doing.DECIDING, 7), is_new=True),)
    assert Left(dead.value, alone(Doing.DECIDING, 7), is_new=False) in second


async def test_what_lies_before_the_offset_is_past(redis: Redis, keys: Keys) -> None:
    dead, _ = await open_lane(redis, keys)
    await UnderWays(redis, keys).note(dead, UnderWay(Doing.DECIDING, range(3, 9)))

    _, left = await open_lane(redis, keys, 9)

    assert left == ()


async def test_a_commit_says_that_the_lane_reads_on(redis: Redis, keys: Keys) -> None:
    dead, _ = await open_lane(redis, keys)
    await UnderWays(redis, keys).note(dead, UnderWay(Doing.DECIDING, range(3, 9)))
    await mark_committed(redis, keys, dead, 9)

    _, left = await open_lane(redis, keys, 9)

    assert [each.under_way for each in left] == [reading(9)]


async def test_what_could_not_be_withdrawn_is_withdrawn_later(
    redis: Redis, keys: Keys, server: Valkey
) -> None:
    away = connect("redis://127.0.0.1:1/0", timeout=timedelta(seconds=1))
    under_ways = UnderWays(redis, keys)
    token, _ = await open_lane(redis, keys)
    under_ways._redis = away
    with pytest.raises(RedisAway):
        await under_ways.withdraw(token)
    await away.aclose()
    under_ways._redis = redis

    await under_ways.withdraw_rest()

    assert await redis.hgetall(keys.under_way(TOPIC, PARTITION)) == {}


async def test_deaths_without_end_fill_no_more_than_a_bound_and_push_out_none_that_blames(
    redis: Redis, keys: Keys
) -> None:
    dead, _ = await open_lane(redis, keys)
    await UnderWays(redis, keys).note(dead, alone(Doing.DECIDING, 7))
    for _ in range(MOST_LEFT + 20):
        await open_lane(redis, keys)

    _, left = await open_lane(redis, keys)

    assert alone(Doing.DECIDING, 7) in [each.under_way for each in left]
    assert len(left) <= MOST_LEFT + 2


async def test_what_a_newer_version_wrote_blames_nobody_and_stays(redis: Redis, keys: Keys) -> None:
    name = keys.under_way(TOPIC, PARTITION)
    await redis.hset(name, "t", "pondering 3 9 alone")

    _, left = await open_lane(redis, keys)

    assert left == ()
    assert await redis.hget(name, "t") == b"pondering 3 9 alone told"


@dataclass
class Model:
    """Who holds the token, and what stands under each."""

    holder: str | None = None
    fields: dict[str, UnderWay] = field(default_factory=dict)
    told: set[str] = field(default_factory=set)


STATES = st.builds(
    UnderWay,
    st.sampled_from(list(Doing)),
    st.tuples(st.integers(0, 5), st.integers(1, 3)).map(lambda at: range(at[0], at[0] + at[1])),
    st.booleans(),
)


class UnderWayMachine(RuleBasedStateMachine):
    """Lanes that open, work, die by doing nothing more, wake, and write late."""

    url: ClassVar[str] = ""
    lanes = Bundle("lanes")

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.Runner()
        self.redis = connect(self.url, timeout=timedelta(seconds=5))
        self.keys = Keys("machine")
        self.under_ways = UnderWays(self.redis, self.keys)
        self.model = Model()
        self.run(self.redis.flushdb())

    def teardown(self) -> None:
        self.run(self.redis.flushdb())
        self.run(self.redis.aclose())
        self.loop.close()

    def run(self, command: Awaitable[T]) -> T:
        async def awaited() -> T:
            return await command

        return self.loop.run(awaited())

    @rule(target=lanes, offset=st.integers(0, 8))
    def open(self, offset: int) -> LaneToken:
        token, left = self.run(open_lane(self.redis, self.keys, offset))
        model = self.model
        model.fields = {name: each for name, each in model.fields.items() if each.offsets.stop > offset}
        assert {each.token: each.under_way for each in left} == model.fields
        assert {each.token for each in left if each.is_new} == model.fields.keys() - model.told
        model.told |= model.fields.keys()
        model.holder, model.fields[token.value] = token.value, reading(offset)
        return token

    @rule(lane=lanes, state=STATES)
    def note(self, lane: LaneToken, state: UnderWay) -> None:
        if self.model.holder == lane.value:
            self.run(self.under_ways.note(lane, state))
            self.model.fields[lane.value] = state
        else:
            with pytest.raises(Superseded):
                self.run(self.under_ways.note(lane, state))

    @rule(lane=lanes)
    def withdraw(self, lane: LaneToken) -> None:
        self.run(self.under_ways.withdraw(lane))
        self.model.fields.pop(lane.value, None)
        if self.model.holder == lane.value:
            self.model.holder = None

    @rule(lane=lanes, other=lanes)
    def forget(self, lane: LaneToken, other: LaneToken) -> None:
        if self.model.holder == lane.value:
            self.run(self.under_ways.forget(lane, [other.value]))
            self.model.fields.pop(other.value, None)
        else:
            with pytest.raises(Superseded):
                self.run(self.under_ways.forget(lane, [other.value]))

    @rule()
    def lose_everything(self) -> None:
        self.run(self.redis.flushdb())
        self.model = Model()

    @invariant()
    def as_modelled(self) -> None:
        found: Any = self.run(self.redis.hgetall(self.keys.under_way(TOPIC, PARTITION)))
        said = {name.decode(): value.decode().removesuffix(" told") for name, value in found.items()}
        assert said == {name: each.encode() for name, each in self.model.fields.items()}


def test_no_lane_that_withdrew_or_was_superseded_is_blamed_whatever_it_writes_late(server: Valkey) -> None:
    run_state_machine_as_test(
        type("Machine", (UnderWayMachine,), {"url": server.url}),
        settings=settings(max_examples=60, stateful_step_count=40, deadline=None),
    )
