"""A request that the network held comes late, in another transaction than its own: nothing is repeated or lost.

What a lane does about it is its output's doing alone; Redis has no part in it (bare_lane.py).
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator

import pytest
from ticketgate.streams.lane import transaction

from .bare_lane import BareLane, each_once
from .conftest import Behind
from .faults import PASS, Fault, Request, Rule, behind_held, held
from .kafka_proxy import TRANSACTIONAL, KafkaProxy

pytestmark = pytest.mark.kafka

# The late request comes just before the one of this name and number in the next transaction.
Moment = tuple[str, int]
MOMENTS: tuple[Moment, ...] = (
    ("InitProducerId", 1),
    ("AddPartitionsToTxn", 1),
    ("Produce", 1),
    ("Produce", 2),
    ("AddOffsetsToTxn", 1),
    ("TxnOffsetCommit", 1),
    ("EndTxn", 1),
)
REPEATS_UNANSWERED = pytest.mark.xfail(
    strict=True,
    reason="aiokafka repeats an unanswered request under the same epoch, and the first comes as well",
)
BREAKS = {
    ("EndTxn", ("Produce", 2)),
    ("EndTxn", ("TxnOffsetCommit", 1)),
    ("TxnOffsetCommit", ("EndTxn", 1)),
}


def late(name: str, *, before: Moment, then: Fault) -> Rule:
    """The first request of that name is held; the moment's request, in a transaction behind the held one's, has `then`.

    A transaction ends with the next EndTxn that passes, or with a fence."""
    is_held, is_ended, left = False, False, before[1]

    def rule(request: Request) -> Fault:
        nonlocal is_held, is_ended, left
        if not is_held:
            is_held = request.name == name
            return held(cut_after_s=0) if is_held else PASS
        is_fence = request.name == "InitProducerId"
        is_moment = (is_ended or is_fence) and request.name == before[0]
        left -= is_moment
        is_ended |= is_fence or request.name == "EndTxn"
        return then if is_moment and left == 0 else PASS

    return rule


def _case(name: str, before: Moment) -> object:
    return pytest.param(name, before, id=f"{name} before {' '.join(map(str, before))}")


@pytest.mark.parametrize(
    ("name", "before"),
    [
        _case(name, before)
        for name in TRANSACTIONAL
        for before in MOMENTS
        if name in ("EndTxn", "TxnOffsetCommit") or before[0] != "InitProducerId"
    ],
)
async def test_a_request_that_comes_in_the_next_transaction_changes_nothing(
    behind: Behind, name: str, before: Moment
) -> None:
    broker, proxy = behind
    lane = await BareLane.of(broker, proxy.bootstrap)
    proxy.rule = late(name, before=before, then=behind_held())

    await lane.take(2)
    committed = await lane.committed()
    await lane.take(3)

    assert await lane.seen() == each_once(3), _told(proxy)
    assert (committed, await lane.committed()) == (2, 3), _told(proxy)


@pytest.mark.parametrize(
    ("name", "before"),
    [
        _case(*each)
        for each in (
            ("EndTxn", ("Produce", 2)),
            ("EndTxn", ("AddOffsetsToTxn", 1)),
            ("EndTxn", ("TxnOffsetCommit", 1)),
            ("TxnOffsetCommit", ("EndTxn", 1)),
        )
    ],
)
async def test_nor_does_it_where_the_lane_dies_then(behind: Behind, name: str, before: Moment) -> None:
    """The successor knows only what is committed."""
    broker, proxy = behind
    lane = await BareLane.of(broker, proxy.bootstrap)
    proxy.rule = late(name, before=before, then=Fault(brings_held=True, falls_silent=True))

    taking = asyncio.create_task(lane.take(2))
    await asyncio.to_thread(proxy.wait_for, lambda: any(each.answer is not None for each in proxy.held))
    taking.cancel()
    await asyncio.gather(taking, return_exceptions=True)
    await lane.take(3)

    assert await lane.seen() == each_once(3), _told(proxy)
    assert await lane.committed() == 3, _told(proxy)


@pytest.mark.parametrize("before", [("InitProducerId", 1), ("Produce", 2), ("EndTxn", 1)], ids=str)
@pytest.mark.parametrize("name", TRANSACTIONAL)
async def test_a_request_of_a_dead_lane_changes_nothing_in_its_successors_transaction(
    behind: Behind, name: str, before: Moment
) -> None:
    broker, proxy = behind
    lane = await BareLane.of(broker, proxy.bootstrap)
    is_dead = False

    def rule(request: Request) -> Fault:
        if is_dead:
            return successors(request)
        if proxy.held:
            return Fault(falls_silent=True)
        is_it = request.name == name
        return Fault(is_forwarded=False, late_s=(None,), falls_silent=True) if is_it else PASS

    successors = late(name, before=before, then=behind_held())
    successors(Request(name, b""))  # it is held already
    proxy.rule = rule
    taking = asyncio.create_task(lane.take(2))
    await asyncio.to_thread(proxy.wait_for_held, 1)
    taking.cancel()
    await asyncio.gather(taking, return_exceptions=True)
    is_dead = True
    await lane.take(3)

    assert proxy.held[0].answer is not None
    assert await lane.seen() == each_once(3), _told(proxy)
    assert await lane.committed() == 3, _told(proxy)


def _told(proxy: KafkaProxy) -> str:
    held_back = [(each.request.name, (each.answer or b"").hex()) for each in proxy.held]
    return f"{' '.join(proxy.seen)}; held {held_back}"


@pytest.fixture(autouse=True)
def _begin_anew(behind: Behind, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    behind[1].forget()
    # A lane that dies with a silent connection waits for as long.
    monkeypatch.setattr(transaction, "CLOSE_TIMEOUT_S", 0.2)
    yield
    # What a killed lane left is complained of when it is collected. CPython 3.11 cannot show a complaint while it
    # parses (gh-106905), as pytest does between tests.
    gc.collect()
