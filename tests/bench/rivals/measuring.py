"""What one arm costs and how long its tickets take.

A round's tickets lie on the topic before the arm, stopped meanwhile, goes on; it ends when the arm has committed them
all. Latency is from a header that the sender writes to a reader that sees committed records alone, at a share of the
rate that the arm itself reached in its rounds.
"""

from __future__ import annotations

import asyncio
import signal
import time
from dataclasses import asdict, dataclass, field

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from ...support.deployment import Deployment, Worker
from ..backlog import LINGER_MS, MAX_BATCH_BYTES, Group
from ..process import cpu_seconds
from .arms import Arm
from .inputs import tickets
from .machine import peak_bytes

POLL_S = 0.05
ROUND_TIMEOUT_S = 300.0
WARM_UP_TICKETS = 1_000
# Of a paced run, at its beginning: connections and caches are not yet what they will be.
SETTLE_S = 2.0
DRAIN_TIMEOUT_S = 60.0
SENT = "sent-ns"
# As `ticketgate topics create` makes them.
PARTITIONS = 6


@dataclass(frozen=True, slots=True)
class Round:
    """One arm's work on one round's tickets; processor time is user and system time a ticket, in µs."""

    tickets_per_s: float
    worker_us: float
    broker_us: float
    redis_us: float


@dataclass(frozen=True, slots=True)
class Latency:
    """Of the tickets of one paced run, in ms. share: of the arm's own saturated rate, which is what was sent at."""

    share: float
    tickets_per_s: float
    seen: int
    p50_ms: float
    p99_ms: float


@dataclass(slots=True)
class Side:
    """One arm at work, and what was measured of it."""

    arm: Arm
    gate: Deployment
    worker: Worker
    rounds: list[Round] = field(default_factory=list)
    latencies: list[Latency] = field(default_factory=list)
    peak_bytes: int = 0

    def to_json(self) -> dict[str, object]:
        """All of it, for results.json."""
        return {
            "arm": self.arm.name,
            "title": self.arm.title,
            "does": self.arm.does,
            "guarantee": self.arm.guarantee,
            "storms": self.arm.storms,
            "peak_bytes": self.peak_bytes,
            "rounds": [asdict(each) for each in self.rounds],
            "latencies": [asdict(each) for each in self.latencies],
        }


async def run_round(side: Side, parts: tuple[int, int], name: str, count: int) -> Round:
    """Send while the arm is stopped; let it go on; wait until all is committed. parts: broker's and Redis' pids."""
    gate, process = side.gate, side.worker.process
    async with Group(gate.bootstrap, gate.name) as group:
        before = await group.committed()
        process.send_signal(signal.SIGSTOP)
        try:
            await _send(side, name, count)
            pids = (process.pid, *parts)
            spent = [cpu_seconds(pid) for pid in pids]
            started = time.monotonic()
        finally:
            process.send_signal(signal.SIGCONT)
        while await group.committed() < before + count:
            _require_alive(side, started, f"round {name}")
            await asyncio.sleep(POLL_S)
        seconds = time.monotonic() - started
        worker, broker, redis = (
            (cpu_seconds(pid) - each) / count * 1e6 for pid, each in zip(pids, spent, strict=True)
        )
    side.peak_bytes = max(side.peak_bytes, peak_bytes(process.pid))
    return Round(count / seconds, worker, broker, redis)


async def run_paced(side: Side, name: str, *, share: float, rate: float, seconds: float) -> Latency:
    """Send evenly at `rate` a second for so long, and see when each ticket's record can be read."""
    gate = side.gate
    count = max(20, round(rate * seconds))
    outputs = [gate.topic("dispatch"), gate.topic("review")]
    reader = AIOKafkaConsumer(bootstrap_servers=gate.bootstrap, isolation_level="read_committed")
    async with reader, _producer(gate.bootstrap, linger_ms=0) as producer:
        sources = [TopicPartition(topic, number) for topic in outputs for number in range(PARTITIONS)]
        reader.assign(sources)
        await reader.seek_to_end(*sources)
        for source in sources:
            await reader.position(source)
        sending = asyncio.create_task(_send_paced(producer, gate.topic("tickets"), name, count, rate))
        taken: list[tuple[int, int]] = []
        deadline = time.monotonic() + seconds + DRAIN_TIMEOUT_S
        while len(taken) < count and time.monotonic() < deadline:
            found = await reader.getmany(timeout_ms=100)
            now = time.time_ns()
            taken += [
                (int(dict(record.headers)[SENT]), now) for records in found.values() for record in records
            ]
        first = await sending
    late = sorted((seen - sent) / 1e6 for sent, seen in taken if sent >= first + SETTLE_S * 1e9)
    if not late:
        raise AssertionError(f"{side.arm.name}: {len(taken)} of {count} seen\n{side.worker.log()[-3000:]}")
    return Latency(share, rate, len(taken), late[len(late) // 2], late[len(late) * 99 // 100])


async def _send(side: Side, name: str, count: int) -> None:
    async with _producer(side.gate.bootstrap, linger_ms=LINGER_MS) as producer:
        for ticket_id, value in tickets(name, count):
            await producer.send(side.gate.topic("tickets"), value, key=ticket_id.encode())
        await producer.flush()


async def _send_paced(producer: AIOKafkaProducer, topic: str, name: str, count: int, rate: float) -> int:
    """When the first was sent, in ns since 1970."""
    first, started = time.time_ns(), time.monotonic()
    for number, (ticket_id, value) in enumerate(tickets(name, count)):
        if (ahead := started + number / rate - time.monotonic()) > 0:
            await asyncio.sleep(ahead)
        headers = [(SENT, b"%d" % time.time_ns())]
        await producer.send(topic, value, key=ticket_id.encode(), headers=headers)
    await producer.flush()
    return first


def _producer(bootstrap: str, *, linger_ms: int) -> AIOKafkaProducer:
    return AIOKafkaProducer(
        bootstrap_servers=bootstrap, linger_ms=linger_ms, max_batch_size=MAX_BATCH_BYTES, acks="all"
    )


def _require_alive(side: Side, started: float, what: str) -> None:
    if side.worker.process.poll() is not None or time.monotonic() > started + ROUND_TIMEOUT_S:
        raise AssertionError(f"{side.arm.name}: {what} did not end\n{side.worker.log()[-3000:]}")
