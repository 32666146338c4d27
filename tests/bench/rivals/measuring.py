"""What one arm costs and how long its tickets take.

A round's tickets lie on the topic before the arm, stopped meanwhile, goes on; it ends when the arm has committed them
all. Latency is from a header that the sender writes to a reader that sees committed records alone, at a share of the
rate that the arm itself reached in its rounds.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from ...support.deployment import Deployment, Worker
from ..backlog import new_producer
from ..process import peak_bytes
from ..rounds import PARTITIONS, take_all
from .arms import Arm
from .inputs import Tickets

# Of an arm's own saturated rate.
HALF = 0.5
# Of a paced run, at its beginning: connections and caches are not yet what they will be.
SETTLE_S = 2.0
DRAIN_TIMEOUT_S = 60.0
# What Kafka's own producer waits for company. Without, each ticket is a request of its own, and the core that broker,
# sender and reader share is full before the arm's is: what is measured then is the bench.
PACED_LINGER_MS = 5
SENT = "sent-ns"


@dataclass(frozen=True, slots=True)
class Round:
    """One arm's work on one round's tickets; processor time is user and system time a ticket, in µs."""

    tickets_per_s: float
    worker_us: float
    broker_us: float
    redis_us: float

    @property
    def busy(self) -> float:
        """The worker's processor time as a share of the time that the round took, from its first moment to its last."""
        return self.tickets_per_s * self.worker_us / 1e6


@dataclass(frozen=True, slots=True)
class Latency:
    """Of the tickets of one paced run, in ms. share: of the arm's own saturated rate, which is what was sent at. steps:
    what ticketgate's own took on average, of a batch; empty for others."""

    share: float
    tickets_per_s: float
    seen: int
    p50_ms: float
    p99_ms: float
    steps: Mapping[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class Side:
    """One arm at work, and what was measured of it."""

    arm: Arm
    gate: Deployment
    worker: Worker
    tickets: Tickets
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
    """The arm's work on so many tickets, which are named by the round. parts: broker's and Redis' pids."""
    spent = await take_all(
        side.gate,
        side.worker,
        side.tickets(name, count),
        beside=parts,
        what=f"{side.arm.name}: round {name}",
    )
    worker, broker, redis = (each / count * 1e6 for each in spent.cpu_s)
    side.peak_bytes = max(side.peak_bytes, peak_bytes(side.worker.process.pid))
    return Round(count / spent.seconds, worker, broker, redis)


async def run_paced(side: Side, name: str, *, share: float, rate: float, seconds: float) -> Latency:
    """Send evenly at `rate` a second for so long, and see when each ticket's record can be read."""
    gate = side.gate
    count = max(20, round(rate * seconds))
    outputs = [gate.topic("dispatch"), gate.topic("review")]
    reader = AIOKafkaConsumer(bootstrap_servers=gate.bootstrap, isolation_level="read_committed")
    async with reader, new_producer(gate.bootstrap, linger_ms=PACED_LINGER_MS) as producer:
        sources = [TopicPartition(topic, number) for topic in outputs for number in range(PARTITIONS)]
        reader.assign(sources)
        await reader.seek_to_end(*sources)
        for source in sources:
            await reader.position(source)
        before = _steps(side)
        sending = asyncio.create_task(_send_paced(side, producer, name, count, rate))
        taken: list[tuple[int, int]] = []
        deadline = time.monotonic() + seconds + DRAIN_TIMEOUT_S
        while len(taken) < count and time.monotonic() < deadline:
            found = await reader.getmany(timeout_ms=100)
            now = time.time_ns()
            taken += [
                (int(dict(record.headers)[SENT]), now) for records in found.values() for record in records
            ]
        first = await sending
    after = _steps(side)
    steps = {
        step: (after[step][0] - spent) / max(1, after[step][1] - times) * 1e3
        for step, (spent, times) in before.items()
    }
    late = sorted((seen - sent) / 1e6 for sent, seen in taken if sent >= first + SETTLE_S * 1e9)
    if not late:
        raise AssertionError(f"{side.arm.name}: {len(taken)} of {count} seen\n{side.worker.log()[-3000:]}")
    return Latency(share, rate, len(taken), late[len(late) // 2], late[len(late) * 99 // 100], steps)


def _steps(side: Side) -> dict[str, tuple[float, float]]:
    """How many seconds each step of ticketgate's protocol took up to now, and how often it was taken."""
    if side.arm.script is not None:
        return {}
    name = "ticketgate_batch_duration_seconds"
    return {
        step: (side.worker.metric(f"{name}_sum", step=step), side.worker.metric(f"{name}_count", step=step))
        for step in ("claim", "decide", "commit")
    }


async def _send_paced(side: Side, producer: AIOKafkaProducer, name: str, count: int, rate: float) -> int:
    """When the first was sent, in ns since 1970."""
    topic = side.gate.topic("tickets")
    first, started = time.time_ns(), time.monotonic()
    for number, (ticket_id, value) in enumerate(side.tickets(name, count)):
        if (ahead := started + number / rate - time.monotonic()) > 0:
            await asyncio.sleep(ahead)
        headers = [(SENT, b"%d" % time.time_ns())]
        await producer.send(topic, value, key=ticket_id.encode(), headers=headers)
    await producer.flush()
    return first
