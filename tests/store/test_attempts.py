"""The attempts at cases on a real Valkey: who wrote first is seen by who writes next, and nothing stands twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from redis.asyncio import Redis
from ticketgate.codecs.records.identity import Coordinate, IdempotencyKey
from ticketgate.codecs.verdict import Stage, Status, Verdict
from ticketgate.store.attempts import (
    AttemptHistory,
    AttemptUnreadable,
    CaseHistory,
    CaseKey,
    NewAttempts,
    RestoredAttempts,
    StoredAttempt,
    WrittenAttempt,
    restore_attempts,
)
from ticketgate.store.durability import Durability
from ticketgate.store.keys import Keys
from ticketgate.store.tokens import LaneToken, Superseded, take_token

pytestmark = pytest.mark.redis
ALWAYS = Durability(replicas=0, syncs_itself=True, timeout=timedelta(seconds=5))
DAY = timedelta(days=1)
CASE, OTHER = CaseKey(IdempotencyKey("a"), 1), CaseKey(IdempotencyKey("b"), 1)


def attempt(number: int = 1, *, offset: int = 0, call: str | None = "{", says: str = "why") -> StoredAttempt:
    return StoredAttempt(
        number=number,
        at=Coordinate("proposals", 0, offset),
        verdict=Verdict(Status.REPAIR, Stage.PARSE, (says,), "next"),
        call=call,
        permitted=("serialisation",),
    )


def upon(revision: int, *attempts: StoredAttempt, case: CaseKey = CASE) -> NewAttempts:
    return NewAttempts(case, revision, attempts)


@pytest.fixture
def history(redis: Redis, keys: Keys) -> AttemptHistory:
    return AttemptHistory(redis, keys, ttl=DAY, durability=ALWAYS)


@pytest.fixture
async def token(redis: Redis, keys: Keys) -> LaneToken:
    return await take_token(redis, keys, "proposals", 0)


async def test_a_case_that_nobody_wrote_to_has_no_attempts(history: AttemptHistory) -> None:
    assert await history.read([CASE, CASE]) == {CASE: CaseHistory()}
    assert await history.read([]) == {}


async def test_what_was_recorded_is_read_back_by_number(history: AttemptHistory, token: LaneToken) -> None:
    first, second, last = attempt(2), attempt(10, offset=1), attempt(11, offset=2, call=None)

    contested = await history.record([upon(0, second, first), upon(0, last, case=OTHER)], token=token)

    assert contested == frozenset()
    assert await history.read([CASE, OTHER]) == {
        CASE: CaseHistory((first, second), 1),
        OTHER: CaseHistory((last,), 1),
    }


async def test_another_version_of_the_request_is_another_history(
    history: AttemptHistory, token: LaneToken
) -> None:
    await history.record([upon(0, attempt())], token=token)

    assert await history.read([replace(CASE, version=2)]) == {replace(CASE, version=2): CaseHistory()}


async def test_an_attempt_that_is_judged_again_overwrites_itself(
    history: AttemptHistory, token: LaneToken
) -> None:
    await history.record([upon(0, attempt())], token=token)

    await history.record([upon(1, attempt(says="otherwise"))], token=token)

    assert (await history.read([CASE]))[CASE].attempts == (attempt(says="otherwise"),)


async def test_a_write_upon_an_older_reading_is_refused_with_all_that_came_with_it(
    history: AttemptHistory, token: LaneToken
) -> None:
    await history.record([upon(0, attempt())], token=token)

    contested = await history.record(
        [upon(0, attempt(5), case=OTHER), upon(0, attempt(2, offset=1))], token=token
    )

    assert contested == {CASE}
    found = await history.read([CASE, OTHER])
    assert (found[CASE].attempts, found[OTHER].attempts) == ((attempt(),), ())


async def test_a_lane_that_was_superseded_writes_nothing(
    history: AttemptHistory, token: LaneToken, redis: Redis, keys: Keys
) -> None:
    await take_token(redis, keys, "proposals", 0)

    with pytest.raises(Superseded):
        await history.record([upon(0, attempt())], token=token)

    assert (await history.read([CASE]))[CASE] == CaseHistory()


async def test_a_case_lives_as_long_as_a_claim(
    history: AttemptHistory, token: LaneToken, redis: Redis, keys: Keys
) -> None:
    await history.record([upon(0, attempt())], token=token)

    left_ms = await redis.pttl(keys.attempts(CASE.key, CASE.version))

    assert DAY.total_seconds() * 900 < left_ms <= DAY.total_seconds() * 1000


async def test_a_whole_batch_is_one_write(history: AttemptHistory, token: LaneToken) -> None:
    cases = [CaseKey(IdempotencyKey(f"case-{number}"), 1) for number in range(3000)]

    assert await history.record([upon(0, attempt(), case=each) for each in cases], token=token) == frozenset()

    found = await history.read(cases)
    assert all(found[each].attempts == (attempt(),) for each in cases)


@pytest.mark.parametrize(
    "value", [b"", b"{}", b'{"at": "x", "permitted": [], "verdict": {"status": "no"}}', b"\xff"]
)
async def test_an_entry_that_nobody_can_read_is_named(
    history: AttemptHistory, redis: Redis, keys: Keys, value: bytes
) -> None:
    await redis.hset(keys.attempts(CASE.key, CASE.version), "3", value)

    with pytest.raises(AttemptUnreadable, match=r"^attempt 3 in Redis hash ticketgate:.*claims rebuild"):
        await history.read([CASE])


async def now_ms(redis: Redis) -> int:
    seconds, _ = await redis.time()
    return int(seconds) * 1000


async def restored(
    redis: Redis, keys: Keys, written: Sequence[WrittenAttempt], *, dry_run: bool = False
) -> RestoredAttempts:
    return await restore_attempts(redis, keys, written, ttl=DAY, dry_run=dry_run)


async def test_a_restored_attempt_is_the_one_that_was_recorded(
    history: AttemptHistory, redis: Redis, keys: Keys
) -> None:
    written = [WrittenAttempt(CASE, attempt(), await now_ms(redis)), WrittenAttempt(OTHER, attempt(2), -1)]

    assert await restored(redis, keys, written, dry_run=True) == RestoredAttempts(restored=2)
    assert await restored(redis, keys, written) == RestoredAttempts(restored=2)
    assert await restored(redis, keys, written) == RestoredAttempts(present=2)

    assert (await history.read([CASE]))[CASE].attempts == (attempt(),)


async def test_what_stands_is_never_changed_and_what_is_over_stays_over(
    history: AttemptHistory, token: LaneToken, redis: Redis, keys: Keys
) -> None:
    await history.record([upon(0, attempt())], token=token)
    long_ago = await now_ms(redis) - 25 * 3_600_000
    written = [
        WrittenAttempt(CASE, attempt(says="otherwise"), await now_ms(redis)),
        WrittenAttempt(OTHER, attempt(), long_ago),
    ]

    assert await restored(redis, keys, written) == RestoredAttempts(present=1, expired=1)

    assert (await history.read([CASE]))[CASE].attempts == (attempt(),)


async def test_a_lane_notices_what_was_restored_since_it_read(
    history: AttemptHistory, token: LaneToken, redis: Redis, keys: Keys
) -> None:
    await restored(redis, keys, [WrittenAttempt(CASE, attempt(), -1)])

    assert await history.record([upon(0, attempt(2, offset=1))], token=token) == {CASE}


async def test_an_older_attempt_does_not_shorten_the_life_of_a_case(
    history: AttemptHistory, token: LaneToken, redis: Redis, keys: Keys
) -> None:
    await history.record([upon(0, attempt())], token=token)
    older = WrittenAttempt(CASE, attempt(2), await now_ms(redis) - 12 * 3_600_000)

    await restored(redis, keys, [older])

    assert await redis.pttl(keys.attempts(CASE.key, CASE.version)) > DAY.total_seconds() * 900
