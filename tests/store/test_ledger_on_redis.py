"""What only the ledger on Redis does: tokens, marks, disks, lifetimes, and Redis' own clock."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest
from redis.asyncio import Redis
from ticketgate.agents.effects.executor import receipt_of
from ticketgate.agents.effects.ledger import Entry, Settlement
from ticketgate.agents.effects.rules import NO_ANSWER
from ticketgate.codecs.records.receipt import EffectState, EffectStatus, SettledBy
from ticketgate.codecs.verdict import Stage, Status, Verdict
from ticketgate.store.connect import connect
from ticketgate.store.durability import ClaimsNotDurable, Durability
from ticketgate.store.keys import Keys
from ticketgate.store.lane_state.marks import read_marks
from ticketgate.store.ledger.entry_fields import EntryUnreadable
from ticketgate.store.ledger.ledger import Ledger
from ticketgate.store.ledger.ledger_rebuild import Remembered, restore
from ticketgate.store.tokens import LaneToken, Superseded, take_token
from ticketgate.streams.parts.valkey import Valkey

from ..support.effects import order
from ..support.standing import stand

pytestmark = pytest.mark.redis
ALWAYS = Durability(replicas=0, syncs_itself=True, timeout=timedelta(seconds=5))
REJECTED = Settlement(
    state=EffectState.REJECTED, verdict=Verdict(Status.REJECT, Stage.OUTCOME, ("refused",), "no")
)
BY_HAND = Settlement(
    state=EffectState.COMMITTED,
    verdict=Verdict(Status.ACCEPT, Stage.OUTCOME, ("settled_as_committed_by_person",), "done"),
    status=EffectStatus.SETTLED_BY_PERSON,
    settled_by=SettledBy("ann", "paid at the counter"),
)


class Lane:
    """A lane of the effects group."""

    def __init__(self, redis: Redis, keys: Keys, durability: Durability = ALWAYS) -> None:
        self.redis, self.keys = redis, keys
        self.ledger = Ledger(redis, keys, ttl=timedelta(days=1), durability=durability)

    async def open(self) -> LaneToken:
        await stand(self.redis, self.keys)
        self.token = await take_token(self.redis, self.keys, "dispatch", 0)
        return self.token

    async def prepare(self, key: str = "k1", *, claimed: int = 1) -> Entry:
        (entry,) = await self.ledger.prepare([order(key)], token=self.token, claimed=claimed)
        assert isinstance(entry, Entry)
        return entry

    async def send(self, key: str = "k1") -> Entry:
        sent = await self.ledger.begin_send(
            await self.prepare(key), verdict=NO_ANSWER, token=self.token, read_back_in_s=0
        )
        assert isinstance(sent, Entry)
        return sent


@pytest.fixture
async def lane(redis: Redis, keys: Keys) -> Lane:
    made = Lane(redis, keys)
    await made.open()
    return made


async def test_preparing_raises_the_mark_of_the_dispatch_partition_and_never_lowers_it(lane: Lane) -> None:
    await lane.prepare(claimed=9)
    await lane.ledger.prepare([], token=lane.token, claimed=4)
    await lane.ledger.mark_committed(lane.token, 8)

    marks = await read_marks(lane.redis, lane.keys, "dispatch", 0)

    assert (marks.claimed, marks.committed) == (9, 8)


async def test_a_superseded_lane_writes_nothing(lane: Lane) -> None:
    sent = await lane.send()
    prepared = await lane.prepare("k2")
    zombie = lane.token
    await lane.open()
    before = {name: await lane.redis.dump(name) async for name in lane.redis.scan_iter()}

    for writing in (
        lane.ledger.prepare([order("k3")], token=zombie, claimed=9),
        lane.ledger.begin_send(prepared, verdict=NO_ANSWER, token=zombie, read_back_in_s=0),
        lane.ledger.settle(sent, REJECTED, token=zombie, read_back_in_s=0),
        lane.ledger.mark_committed(zombie, 9),
    ):
        with pytest.raises(Superseded):
            await writing

    assert {name: await lane.redis.dump(name) async for name in lane.redis.scan_iter()} == before


async def test_a_lane_at_work_notices_that_redis_was_emptied_before_it_sends(lane: Lane) -> None:
    prepared = await lane.prepare()
    await lane.redis.flushdb()

    with pytest.raises(Superseded):
        await lane.ledger.begin_send(prepared, verdict=NO_ANSWER, token=lane.token, read_back_in_s=0)

    assert await lane.redis.dbsize() == 0


async def test_what_is_settled_expires_and_what_is_open_does_not(lane: Lane) -> None:
    sent = await lane.send("settled")
    await lane.send("open")

    await lane.ledger.settle(sent, REJECTED, token=lane.token, read_back_in_s=0)

    day_ms = 86_400_000
    assert 0 < await lane.redis.pttl(lane.keys.effect("settled")) <= day_ms
    assert await lane.redis.pttl(lane.keys.effect("open")) == -1


async def test_what_is_prepared_waits_for_as_long_as_its_record_can_be_read_and_expires_no_more_once_sent(
    lane: Lane,
) -> None:
    name, day_ms = lane.keys.effect("k1"), 86_400_000
    await lane.prepare()
    assert 0 < await lane.redis.pttl(name) <= day_ms
    await lane.redis.pexpire(name, 1_000_000)

    # Its record is read again, so it can be for another lifetime.
    prepared = await lane.prepare()

    assert await lane.redis.pttl(name) > 1_000_000
    await lane.ledger.begin_send(prepared, verdict=NO_ANSWER, token=lane.token, read_back_in_s=0)
    assert await lane.redis.pttl(name) == -1
    await lane.prepare()
    assert await lane.redis.pttl(name) == -1


async def test_what_is_settled_and_not_told_expires_only_once_it_is_told(lane: Lane) -> None:
    settled = await lane.ledger.settle(await lane.send(), REJECTED, token=None, read_back_in_s=0)
    assert isinstance(settled, Entry)
    assert await lane.redis.pttl(lane.keys.effect("k1")) == -1

    await lane.ledger.tell(settled)

    assert await lane.redis.pttl(lane.keys.effect("k1")) > 0
    assert await lane.redis.zcard(lane.keys.effects_open) == 0


async def test_a_persons_word_on_what_was_never_sent_does_not_expire_before_it_is_told(lane: Lane) -> None:
    stopped = await lane.ledger.settle(await lane.prepare("k1"), REJECTED, token=lane.token, read_back_in_s=0)
    assert isinstance(stopped, Entry)
    assert await lane.redis.pttl(lane.keys.effect("k1")) > 0

    by_hand = await lane.ledger.settle(stopped, BY_HAND, token=None, read_back_in_s=0)

    assert isinstance(by_hand, Entry)
    assert await lane.redis.pttl(lane.keys.effect("k1")) == -1
    await lane.ledger.tell(by_hand)
    assert await lane.redis.pttl(lane.keys.effect("k1")) > 0


async def test_ages_are_told_by_redis(lane: Lane) -> None:
    await lane.send()
    await lane.redis.hincrby(lane.keys.effect("k1"), "sent", -5_000)
    await lane.redis.zincrby(lane.keys.effects_since, -7_000, "k1")

    entry = await lane.ledger.read("k1")

    assert entry is not None
    assert 5 <= entry.age_s < 60
    assert 7 <= (await lane.ledger.count_open()).oldest_s < 60


async def test_an_effect_that_is_gone_is_dropped_from_the_lists(lane: Lane) -> None:
    await lane.send()
    await lane.redis.delete(lane.keys.effect("k1"))

    assert await lane.ledger.take_due(10) == ()

    assert (await lane.ledger.count_open()).count == 0


async def test_pauses_between_read_backs_grow_to_a_bound(lane: Lane) -> None:
    await lane.send()
    pauses = []
    for _ in range(12):
        await lane.redis.zadd(lane.keys.effects_open, {"k1": 0})
        await lane.ledger.take_due(1)
        seconds, microseconds = await lane.redis.time()
        due_ms = await lane.redis.zscore(lane.keys.effects_open, "k1")
        assert due_ms is not None
        pauses.append(due_ms / 1000 - seconds - microseconds / 1_000_000)

    assert pauses[0] <= 2
    # A slow answer makes a pause look shorter, never longer.
    assert all(later > earlier for earlier, later in pairwise(pauses[:8]))
    assert all(500 < each <= 600 for each in pauses[-3:])


async def test_where_redis_syncs_once_a_second_a_sending_waits_for_the_disk() -> None:
    with Valkey(options={"appendfsync": "everysec"}) as server:
        redis = connect(server.url, timeout=timedelta(seconds=5))
        late = Durability(replicas=0, syncs_itself=False, timeout=timedelta(seconds=5))
        lane = Lane(redis, Keys("s"), late)
        await lane.open()

        await lane.send()

        assert await redis.exists(f"{Keys('s').prefix}fence")
        await redis.aclose()


async def test_a_sending_that_does_not_reach_the_promised_replicas_does_not_begin(
    redis: Redis, keys: Keys
) -> None:
    lane = Lane(redis, keys, Durability(replicas=1, syncs_itself=True, timeout=timedelta(milliseconds=50)))
    await lane.open()

    with pytest.raises(ClaimsNotDurable, match="0 of 1 replicas"):
        await lane.prepare()


async def test_no_lone_number_or_text_is_changed_on_its_way(lane: Lane) -> None:
    arguments = {"n": 2**63, "f": 0.1, "s": 'é"\n', "o": {"a": [None, True]}}
    asked = order("κλειδί", **arguments)

    await lane.ledger.prepare([asked], token=lane.token, claimed=1)

    entry = await lane.ledger.read("κλειδί")
    assert entry is not None
    assert entry.order == asked


async def test_a_key_that_a_restored_effect_left_is_wholly_another_orders(lane: Lane) -> None:
    entry = await lane.prepare()
    told = replace(receipt_of(entry), effect_state=REJECTED.state, verdict=REJECTED.verdict)
    await lane.redis.delete(lane.keys.effect("k1"))
    seconds, _ = await lane.redis.time()
    await restore(lane.redis, lane.keys, [Remembered(told, seconds * 1000)], ttl=timedelta(days=1))

    (anew,) = await lane.ledger.prepare([order(offset=7)], token=lane.token, claimed=8)

    assert isinstance(anew, Entry)
    # What its gates judge again came with it, so it may be sent a second time.
    assert (anew.state, anew.is_restored) == (EffectState.PREPARED, False)


async def test_an_entry_of_another_version_keeps_no_other_waiting_and_is_told_by_its_key(
    lane: Lane, caplog: pytest.LogCaptureFixture
) -> None:
    for key in ("k1", "k2", "k3"):
        await lane.send(key)
    known = '{"verdict": {"status": "unknown", "stage": "of_tomorrow", "reasons": [], "next_step": ""}}'
    await lane.redis.hset(lane.keys.effect("k2"), "known", known)

    due = await lane.ledger.take_due(10)

    assert [each.key for each in due] == ["k1", "k3"]
    (said,) = [each.getMessage() for each in caplog.records if each.levelname == "ERROR"]
    assert "effect k2 is not of this version's ledger" in said
    assert "of_tomorrow" in said
    assert [each.key for each in await lane.ledger.held(10)] == ["k1", "k3"]
    listed, unreadable = await lane.ledger.listed(10)
    assert [each.key for each in listed] == ["k1", "k3"]
    assert [each.key for each in unreadable] == ["k2"]
    assert await lane.ledger.take_due(10) == ()
    with pytest.raises(EntryUnreadable):
        await lane.ledger.read("k2")
