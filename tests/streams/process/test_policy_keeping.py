"""Every policy that is put in force is written before anything is decided by it, and nothing is held up for it."""

from __future__ import annotations

import asyncio
import logging

import pytest
from ticketgate.agents.policy import Policy, parse_policy
from ticketgate.streams.config.telemetry import Telemetry
from ticketgate.streams.config.usage import CommandError
from ticketgate.streams.kafka.broker import Unreachable
from ticketgate.streams.process.policy_keeping import KeptFirst, PolicyKeeper

from ...support.policies import SEED_POLICY

SEED = SEED_POLICY.read_text(encoding="utf-8")
AWAY = Unreachable("TICKETGATE_KAFKA", "no broker answers", "start it")
MISSING = CommandError("the broker has no topic 'policies'")


def policy(version: str) -> Policy:
    return parse_policy(SEED.replace('version = "1"', f'version = "{version}"'))


class Topic:
    """A topic of policies that may be away, and the clock by which it is tried again."""

    def __init__(self) -> None:
        self.versions: list[str] = []
        self.tries = 0
        self.fault: Exception | None = None
        self.held: asyncio.Event | None = None
        self.id = "first"
        self.now = 0.0
        self.telemetry = Telemetry()

    async def write(self, policy: Policy) -> None:
        self.tries += 1
        if self.held is not None:
            await self.held.wait()
        if self.fault is not None:
            raise self.fault
        self.versions.append(policy.version)

    async def find(self) -> str:
        return self.id

    def keeper(self) -> PolicyKeeper:
        return PolicyKeeper(
            write=self.write,
            find=self.find,
            telemetry=self.telemetry,
            interval_s=60,
            clock=lambda: self.now,
        )

    @property
    def is_kept(self) -> bool:
        exposed = self.telemetry.expose(is_ready=True)[0].decode()
        return "ticketgate_policy_kept 1.0" in exposed


class Taker:
    def __init__(self) -> None:
        self.taken = 0

    async def take(self, *_: object, **__: object) -> int:
        self.taken += 1
        return self.taken


async def test_no_batch_is_taken_before_the_policy_is_written() -> None:
    topic, taker = Topic(), Taker()
    topic.held = asyncio.Event()
    keeper = topic.keeper()
    keeper.begin(policy("1"))
    lane = KeptFirst(taker, keeper)

    batches = [asyncio.create_task(lane.take([])) for _ in range(3)]
    await asyncio.sleep(0)
    before = taker.taken
    topic.held.set()
    await asyncio.gather(*batches)

    assert before == 0
    assert taker.taken == 3
    assert topic.versions == ["1"]
    assert topic.is_kept


@pytest.mark.parametrize(
    ("fault", "again_s"),
    [(MISSING, 60.0), (AWAY, 2.0)],
    ids=["a topic that is missing", "a broker that is away"],
)
async def test_what_cannot_be_written_holds_nothing_up_and_is_tried_again_in_time(
    fault: Exception, again_s: float, caplog: pytest.LogCaptureFixture
) -> None:
    topic, taker = Topic(), Taker()
    topic.fault = fault
    keeper = topic.keeper()
    keeper.begin(policy("1"))
    lane = KeptFirst(taker, keeper)

    with caplog.at_level(logging.WARNING, "ticketgate"):
        for _ in range(3):
            await lane.take([])
        topic.now += again_s
        await lane.take([])
    tries, told, was_kept = topic.tries, keeper.error, topic.is_kept
    topic.fault = None
    topic.now += again_s
    await lane.take([])

    assert taker.taken == 5
    assert tries == 2
    assert len(caplog.messages) == 1
    assert told == str(fault)
    assert not was_kept
    assert (topic.versions, keeper.error, topic.is_kept) == (["1"], None, True)


async def test_a_write_that_hangs_holds_a_batch_up_for_its_limit_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ticketgate.streams.process.policy_keeping.KEEP_TIMEOUT_S", 0.01)
    topic, taker = Topic(), Taker()
    topic.held = asyncio.Event()
    keeper = topic.keeper()
    keeper.begin(policy("1"))

    await KeptFirst(taker, keeper).take([])

    assert taker.taken == 1
    assert "did not answer" in (keeper.error or "")


async def test_a_fault_that_nobody_knows_ends_no_lane() -> None:
    topic, taker = Topic(), Taker()
    topic.fault = KeyError("surprise")
    keeper = topic.keeper()
    keeper.begin(policy("1"))

    await KeptFirst(taker, keeper).take([])

    assert taker.taken == 1
    assert keeper.error == "KeyError"


async def test_a_topic_that_was_made_anew_gets_the_policy_in_force(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = Topic()
    keeper = topic.keeper()
    keeper.begin(policy("1"))
    naps = 0

    async def sleep(_: float) -> None:
        nonlocal naps
        naps += 1
        if naps == 2:
            topic.id = "second"
        if naps == 4:
            raise asyncio.CancelledError

    monkeypatch.setattr(asyncio, "sleep", sleep)
    with pytest.raises(asyncio.CancelledError):
        await keeper.run()

    assert topic.versions == ["1", "1"]


async def test_one_put_in_force_while_another_is_written_is_written_as_well() -> None:
    topic = Topic()
    topic.held = asyncio.Event()
    keeper = topic.keeper()
    keeper.begin(policy("1"))

    writing = asyncio.create_task(keeper.settle())
    await asyncio.sleep(0)

    changing = asyncio.create_task(keeper.put_in_force(policy("2")))
    await asyncio.sleep(0)
    topic.held.set()
    await asyncio.gather(writing, changing)

    assert topic.versions == ["1", "2"]
    assert topic.is_kept
