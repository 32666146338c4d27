"""Fakes in the shape of faults, as strict as the real thing: what Kafka would refuse, they refuse."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aiokafka import ConsumerRecord, TopicPartition
from aiokafka.errors import IllegalOperation, KafkaTimeoutError
from ticketgate.agents.deciding.decide import Decision, refuse
from ticketgate.codecs.records.decision import ModelRef, PolicyRef
from ticketgate.codecs.records.identity import Coordinate
from ticketgate.codecs.records.ticket import Ticket
from ticketgate.codecs.verdict import Stage, Status, Verdict
from ticketgate.store.claims import Claim, ClaimResult, Collision, Duplicate, Owned
from ticketgate.store.lane_state.underway import UnderWay
from ticketgate.store.lane_state.witnesses import Witness
from ticketgate.store.tokens import LaneToken
from ticketgate.streams.lane.transaction import Outgoing

SOURCE = TopicPartition("tickets", 0)
TOKEN = LaneToken("tickets", 0, "lane", "token")
POLICY = PolicyRef("p", "1", "0")
MODEL = ModelRef("m", "0")


class FakeClient:
    """A producer's client. It answers each request, unless it is told what to raise."""

    def __init__(self, log: list[Any] | None = None, *, raising: Sequence[BaseException] = ()) -> None:
        self.log: list[Any] = [] if log is None else log
        self.raising: Sequence[BaseException] = raising
        self.requests: list[object] = []

    async def send(self, node_id: int, request: object, *, group: object = None) -> str:
        self.requests.append(request)
        if self.raising:
            first, *self.raising = self.raising
            raise first
        return "answer"

    async def close(self) -> None:
        self.log.append("cut")


class FakeCluster:
    """The metadata of topics that have one partition each."""

    def partitions_for_topic(self, _: str) -> set[int]:
        return {0}

    available_partitions_for_topic = partitions_for_topic


class FakeBatch:
    """A prepared batch, which has room for `most` records."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.values: list[bytes] = []

    def append(self, *, value: bytes, **_: object) -> object:
        if len(self.values) == self.most:
            return None
        self.values.append(value)
        return "metadata"


class StrictProducer:
    """aiokafka's transactional producer as far as a lane uses it, with what it did in `log`."""

    def __init__(self, log: list[Any], **options: object) -> None:
        self.log, self.options = log, options
        self.is_started = self.is_open = False
        self.client = FakeClient(log)
        self._sender = self
        self._txn_manager = None
        self.sender_task = None
        self._metadata = FakeCluster()
        self.most_a_batch = 100

    async def start(self) -> None:
        self.is_started = True
        self.log.append("fence")

    async def begin_transaction(self) -> None:
        if not self.is_started or self.is_open:
            raise IllegalOperation("begin out of order")
        self.is_open = True
        self.log.append("begin")

    async def partitions_for(self, topic: str) -> set[int]:
        return self._metadata.partitions_for_topic(topic)

    def _partitioner(self, key: bytes | None, everywhere: Sequence[int], available: Sequence[int]) -> int:
        return everywhere[0]

    def create_batch(self) -> FakeBatch:
        return FakeBatch(self.most_a_batch)

    async def send_batch(self, batch: FakeBatch, topic: str, *, partition: int) -> asyncio.Future[None]:
        if not self.is_open:
            raise IllegalOperation("send outside a transaction")
        self.log += [("send", topic, value) for value in batch.values]
        return self.delivery()

    def delivery(self) -> asyncio.Future[None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.set_result(None)
        return future

    async def send_offsets_to_transaction(self, offsets: Mapping[TopicPartition, int], group: str) -> None:
        if not self.is_open:
            raise IllegalOperation("offsets outside a transaction")
        self.log.append(("offsets", dict(offsets), group))

    async def commit_transaction(self) -> None:
        if not self.is_open:
            raise IllegalOperation("commit without begin")
        self.is_open = False
        self.log.append("commit")

    async def stop(self) -> None:
        self.log.append("stop")


class RefusesASend(StrictProducer):
    """One delivery of the batch fails; the others arrive."""

    def delivery(self) -> asyncio.Future[None]:
        future = super().delivery()
        if sum(1 for each in self.log if each[0] == "send") == 2:
            future = asyncio.get_running_loop().create_future()
            future.set_exception(KafkaTimeoutError())
        return future


class LosesCommitReply(StrictProducer):
    """Commits, then times out: the caller cannot know."""

    async def commit_transaction(self) -> None:
        await super().commit_transaction()
        raise KafkaTimeoutError


class HangsAtCommit(StrictProducer):
    """The broker died: nothing answers, neither the commit nor the stop."""

    async def commit_transaction(self) -> None:
        await asyncio.Event().wait()

    async def stop(self) -> None:
        await asyncio.Event().wait()


@dataclass
class FakeConsumer:
    """The consumer of one partition: records from `seek`'s offset on, none while paused."""

    values: Sequence[bytes | None]
    position: int = 0
    is_paused: bool = True
    seeks: list[int] = field(default_factory=list)
    raising: list[Exception] = field(default_factory=list)

    def seek(self, _: TopicPartition, offset: int) -> None:
        self.position = offset
        self.seeks.append(offset)

    def resume(self, _: TopicPartition) -> None:
        self.is_paused = False

    def pause(self, *_: TopicPartition) -> None:
        self.is_paused = True

    async def getmany(self, *_: TopicPartition, timeout_ms: int, max_records: int) -> dict[Any, Any]:
        await asyncio.sleep(0)
        if self.raising:
            raise self.raising.pop(0)
        found = [record(n, value) for n, value in enumerate(self.values)][self.position :][:max_records]
        if self.is_paused or not found:
            await asyncio.sleep(timeout_ms / 1000)
            return {}
        self.position += len(found)
        return {SOURCE: found}


@dataclass
class FakeOutput:
    """An output that commits to a list, and raises what it is told to, one error a commit."""

    committed: list[tuple[list[Outgoing], int]] = field(default_factory=list)
    raising: list[BaseException] = field(default_factory=list)
    opens: int = 0
    closes: int = 0

    async def open(self, token: LaneToken) -> None:
        self.opens += 1

    async def commit(self, records: Sequence[Outgoing], next_offset: int) -> None:
        if self.raising:
            raise self.raising.pop(0)
        self.committed.append((list(records), next_offset))

    async def close(self) -> None:
        self.closes += 1


class FakeUnderWays:
    """What lanes have under way, in a list of all that was said."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    async def note(self, token: LaneToken, under_way: UnderWay) -> None:
        self.notes.append(under_way.encode())

    async def forget(self, token: LaneToken, tokens: Collection[str]) -> None:
        self.notes.append(f"forget {' '.join(tokens)}")

    async def withdraw(self, token: LaneToken) -> None:
        self.notes.append("withdraw")


class FakeClaims:
    """Claims in a dictionary, by the rules of store/claims.py."""

    def __init__(self, under_ways: FakeUnderWays | None = None) -> None:
        self.under_ways = under_ways
        self.owners: dict[str, Claim] = {}
        self.marks: list[tuple[str, int]] = []

    async def claim(
        self,
        claims: Sequence[Claim],
        *,
        token: LaneToken,
        claimed: int,
        under_way: UnderWay | None = None,
        witness: Witness | None = None,
    ) -> tuple[ClaimResult, ...]:
        results = [self.one(claim) for claim in claims]
        for place, result in enumerate(results):
            if isinstance(result, Collision):
                told = self.one(claims[place].for_collision())
                results[place] = told if isinstance(told, Duplicate) else result
        self.marks.append(("claimed", claimed))
        if self.under_ways is not None and under_way is not None:
            await self.under_ways.note(token, under_way)
        return tuple(results)

    async def mark_committed(self, token: LaneToken, offset: int, witness: Witness | None = None) -> None:
        self.marks.append(("committed", offset))

    def one(self, claim: Claim) -> ClaimResult:
        owner = self.owners.setdefault(claim.key, claim)
        if owner.coordinate == claim.coordinate:
            return Owned()
        if owner.fingerprint == claim.fingerprint:
            return Duplicate(owner.coordinate)
        return Collision(owner.coordinate, owner.fingerprint)


@dataclass
class FakeDecider:
    """Accepts everything; raises what it is told to, one error a call."""

    raising: list[Exception] = field(default_factory=list)
    asked: list[list[str]] = field(default_factory=list)

    async def decide(self, tickets: Sequence[Ticket]) -> Sequence[Decision]:
        self.asked.append([ticket.id for ticket in tickets])
        if self.raising:
            raise self.raising.pop(0)
        return [
            Decision(verdict=Verdict(Status.ACCEPT, Stage.POLICY, (), ""), policy=POLICY, model=MODEL)
            for _ in tickets
        ]

    def refuse(self, stage: Stage, reasons: Sequence[str]) -> Decision:
        return refuse(policy=POLICY, model=MODEL, stage=stage, reasons=reasons)


def record(
    offset: int, value: bytes | None, headers: Sequence[tuple[str, bytes]] = ()
) -> ConsumerRecord[Any, Any]:
    """A record of SOURCE."""
    return ConsumerRecord(
        topic=SOURCE.topic,
        partition=SOURCE.partition,
        offset=offset,
        timestamp=1_000,
        timestamp_type=0,
        key=b"key",
        value=value,
        checksum=None,
        serialized_key_size=3,
        serialized_value_size=len(value or b""),
        headers=tuple(headers),
    )


def coordinate(offset: int) -> Coordinate:
    """A coordinate of SOURCE."""
    return Coordinate(SOURCE.topic, SOURCE.partition, offset)
