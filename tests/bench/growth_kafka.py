"""How a worker's cost grows with partitions and backlog, and what a ticket leaves behind, on Kafka and Valkey.

    .venv/bin/python -m tests.bench.growth_kafka [--partitions 1,6,24,48,96] [--backlogs 1000,10000,100000,1000000]
        [--json FILE]

Promise: each point is a broker, a Redis and a worker of their own, which has decided some tickets before; it stands
stopped until the backlog lies on the topic, and its processor time is taken from there until all is committed. Answers
are given, so that what grows is delivery. The points are measured in turn, round after round, and a point is the median
of its rounds; a backlog of more than MOST_REPEATED is measured once. Also: bytes of a ticket in Redis, and on the
broker's disk for input, output, and what the broker keeps of groups and transactions.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from statistics import median
from typing import Any

from redis import Redis
from ticketgate.streams.parts.failures import PartMissing
from ticketgate.streams.parts.kafka import Kafka
from ticketgate.streams.parts.valkey import Valkey

from ..support.deployment import Deployment, Worker
from .backlog import small_ticket, write_inputs
from .process import resident_bytes
from .rounds import SESSION_S, Spent, take_all

# The points that are measured where the other size grows. So many tickets that a lane of 96 has full batches too: it
# begins with one record, and each batch is twice the one before.
PARTITIONS, BACKLOG = 6, 48_000
# Decided before anything is measured: imports and first batches lie behind then.
WARM_UP = 2_000
MOST_REPEATED = 100_000
# What the broker keeps of groups and transactions.
OWN = ("__consumer_offsets", "__transaction_state")
# A machine that is shared by others decides 500 a second or more.
SETTLE_TIMEOUT_S, ROUND_TIMEOUT_S = 300.0, 3_600.0


@dataclass(frozen=True, slots=True)
class Point:
    """One deployment. Processor time a ticket of worker, broker and Redis; bytes a ticket in Redis, and on disk of both
    topics and of the broker's own. settle_s: from the start of the process to its readiness with all partitions."""

    partitions: int
    backlog: int
    cpu_us: float
    broker_cpu_us: float
    redis_cpu_us: float
    redis_bytes: float
    input_bytes: float
    output_bytes: float
    own_bytes: float
    worker_mib: float
    settle_s: float
    tickets_per_s: float


def measure(partitions: int, backlog: int) -> Point:
    """One deployment from its topics to the last commit. Raises AssertionError if it does not come there."""
    with (
        tempfile.TemporaryDirectory(prefix="ticketgate-growth-") as name,
        Kafka(data=Path(name) / "kafka") as kafka,
        Valkey() as valkey,
    ):
        folder = Path(name)
        settings = {**write_inputs(folder), "PARTITIONS": str(partitions), "SESSION_TIMEOUT": f"{SESSION_S}s"}
        with Deployment(kafka.bootstrap, valkey.url, folder / "workers", settings) as gate:
            redis = Redis.from_url(valkey.url)
            started = time.monotonic()
            worker = gate.start_worker()
            worker.wait_for(lambda told: len(told.get("lanes", ())) == partitions, SETTLE_TIMEOUT_S)
            settled = time.monotonic()
            beside = (kafka.pid, valkey.pid)
            asyncio.run(_round(gate, worker, beside, "warm", WARM_UP))
            memory, own = _used(redis), _on_disk(folder / "kafka", *OWN)
            spent = asyncio.run(_round(gate, worker, beside, "G", backlog))
            worker_s, broker_s, redis_s = spent.cpu_s
            point = Point(
                partitions=partitions,
                backlog=backlog,
                cpu_us=worker_s / backlog * 1e6,
                broker_cpu_us=broker_s / backlog * 1e6,
                redis_cpu_us=redis_s / backlog * 1e6,
                redis_bytes=(_used(redis) - memory) / backlog,
                input_bytes=_on_disk(folder / "kafka", gate.topic("tickets")) / (WARM_UP + backlog),
                output_bytes=_on_disk(folder / "kafka", gate.topic("dispatch")) / (WARM_UP + backlog),
                own_bytes=(_on_disk(folder / "kafka", *OWN) - own) / backlog,
                worker_mib=resident_bytes(worker.process.pid) / 2**20,
                settle_s=settled - started,
                tickets_per_s=spent.tickets / spent.seconds,
            )
            redis.close()
            return point


async def _round(gate: Deployment, worker: Worker, beside: Sequence[int], name: str, tickets: int) -> Spent:
    ids = (f"{name}-{n}" for n in range(tickets))
    sent = ((each, small_ticket(each)) for each in ids)
    return await take_all(gate, worker, sent, beside=beside, what=f"round {name}", timeout_s=ROUND_TIMEOUT_S)


def _used(redis: Redis) -> int:
    return int(redis.info("memory")["used_memory"])  # type: ignore[index]


def _on_disk(data: Path, *topics: str) -> int:
    """Bytes of the topics' records on the broker's disk."""
    return sum(
        each.stat().st_size for each in data.rglob("*.log") if each.parent.name.rpartition("-")[0] in topics
    )


def middle(points: Sequence[Point]) -> Point:
    """The median of each figure."""
    return Point(**{field.name: _median(points, field.name) for field in fields(Point)})


def _median(points: Sequence[Point], name: str) -> Any:
    found = median(getattr(each, name) for each in points)
    return int(found) if name in ("partitions", "backlog") else round(found, 1)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--partitions", default="1,6,24,48,96")
    parser.add_argument("--backlogs", default="1000,10000,100000,1000000")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    sizes = [(int(each), BACKLOG) for each in options.partitions.split(",") if each]
    sizes += [(PARTITIONS, int(each)) for each in options.backlogs.split(",") if each]
    found: dict[tuple[int, int], list[Point]] = {}
    for number in range(options.rounds):
        for partitions, backlog in dict.fromkeys(sizes):
            if number and backlog > MOST_REPEATED:
                continue
            try:
                point = measure(partitions, backlog)
            except PartMissing as err:
                print(f"skipped: {err}")
                return
            found.setdefault((partitions, backlog), []).append(point)
            print(point, file=sys.stderr, flush=True)
    points = [middle(each) for each in found.values()]
    names = [field.name for field in fields(Point)]
    print("| " + " | ".join(names) + " |\n|" + "---:|" * len(names))
    for point in points:
        print("| " + " | ".join(f"{value:,}" for value in asdict(point).values()) + " |")
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(point) for point in points], indent=1) + "\n")


if __name__ == "__main__":
    main()
