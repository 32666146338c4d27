"""The records by which a lane knows its topic again."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.asyncio import Redis
from ticketgate.store.keys import Keys
from ticketgate.store.lane_state.witnesses import (
    Witness,
    Witnesses,
    forget_witnesses,
    read_witnesses,
    write_witnesses,
)
from ticketgate.store.tokens import Superseded, take_token

Header = tuple[str, bytes | None]


@dataclass(frozen=True)
class Record:
    """As a consumer gives it."""

    offset: int = 7
    timestamp: int = 1_000
    key: bytes | None = b"k"
    value: bytes | None = b"v"
    headers: tuple[Header, ...] = ()


texts = st.text().map(str) | st.just("\udcff")
headers = st.lists(st.tuples(texts, st.none() | st.binary())).map(tuple)
records = st.builds(
    Record,
    offset=st.integers(0, 2**62),
    timestamp=st.integers(-1, 2**62),
    key=st.none() | st.binary(),
    value=st.none() | st.binary(),
    headers=headers,
)


@given(record=records)
def test_a_witness_is_read_as_it_was_written(record: Record) -> None:
    witness = Witness.of(record)

    assert Witness.parse(str(witness)) == witness


@given(one=records, other=records)
def test_only_the_same_record_has_the_same_witness(one: Record, other: Record) -> None:
    assert (Witness.of(one) == Witness.of(other)) == (one == other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Record(key=b"", value=None), Record(key=None, value=b"")),
        (Record(key=b"1:a", value=b"b"), Record(key=b"1:a1:b", value=b"")),
        (Record(headers=(("a", b"b"),)), Record(headers=(("a", b""), ("b", None)))),
    ],
)
def test_parts_do_not_run_together(one: Record, other: Record) -> None:
    assert Witness.of(one) != Witness.of(other)


def test_the_last_is_the_one_furthest_on() -> None:
    claimed, committed = Witness(9, "a"), Witness(7, "b")

    assert Witnesses(claimed=claimed, committed=committed).last == claimed
    assert Witnesses(committed=committed).last == committed
    assert Witnesses().last is None


@pytest.mark.redis
async def test_they_are_kept_by_the_lane_that_opened_last_alone(redis: Redis, keys: Keys) -> None:
    zombie = await take_token(redis, keys, "t", 0)
    token = await take_token(redis, keys, "t", 0)
    witness = Witness.of(Record())

    await write_witnesses(redis, keys, token, {"topic": "id", "committed": str(witness)})
    with pytest.raises(Superseded):
        await write_witnesses(redis, keys, zombie, {"topic": "other"})

    assert await read_witnesses(redis, keys, "t", 0) == Witnesses("id", None, witness)
    later = Witness.of(replace(Record(), offset=9))
    await write_witnesses(redis, keys, token, {"claimed": str(later)})
    assert (await read_witnesses(redis, keys, "t", 0)).last == later
    await forget_witnesses(redis, keys, "t", 0)
    assert await read_witnesses(redis, keys, "t", 0) == Witnesses()
