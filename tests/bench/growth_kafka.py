"""How a worker's cost grows with partitions and backlog, and what a ticket leaves behind, on Kafka and Valkey.

    .venv/bin/python -m tests.bench.growth_kafka [--partitions 1,6,24,96] [--backlogs 1000,10000,100000] [--json FILE]

Promise: each point is a broker, a Redis and a worker of their own: the tickets lie on the topic before the worker
starts, and its processor time is taken from the moment it is ready until all is committed, start-up left out. The
answers are given, so that what grows is delivery. Also: bytes of a ticket in Redis, and on the broker's disk for input
and output, from the differences between an empty deployment and a full one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from redis import Redis
from ticketgate.streams.parts.failures import PartMissing
from ticketgate.streams.parts.kafka import Kafka
from ticketgate.streams.parts.valkey import Valkey

from ..support.deployment import Deployment, Worker
from .backlog import send, write_inputs
from .process import cpu_seconds, resident_bytes

# The points that are measured where the other size grows.
PARTITIONS, BACKLOG = 6, 8_000
TIMEOUT_S = 900.0


@dataclass(frozen=True, slots=True)
class Point:
    """One deployment. cpu_us, redis_cpu_us: processor time a ticket. Bytes a ticket: in Redis, and of both on disk.
    settle_s: from the start of the process to its readiness with all partitions."""

    partitions: int
    backlog: int
    cpu_us: float
    redis_cpu_us: float
    redis_bytes: float
    input_bytes: float
    output_bytes: float
    worker_mib: float
    settle_s: float
    seconds: float


def measure(partitions: int, backlog: int) -> Point:
    """One deployment from its topics to the last commit. Raises AssertionError if it does not come there."""
    with (
        tempfile.TemporaryDirectory(prefix="ticketgate-growth-") as name,
        Kafka(data=Path(name) / "kafka") as kafka,
        Valkey() as valkey,
    ):
        folder = Path(name)
        settings = {**write_inputs(folder), "PARTITIONS": str(partitions)}
        with Deployment(kafka.bootstrap, valkey.url, folder / "workers", settings) as gate:
            redis = Redis.from_url(valkey.url)
            before = int(redis.info("memory")["used_memory"])  # type: ignore[index]
            asyncio.run(send(kafka.bootstrap, gate.topic("tickets"), (f"G-{n}" for n in range(backlog))))
            started = time.monotonic()
            worker = gate.start_worker()
            worker.wait_for(lambda told: len(told.get("lanes", ())) == partitions, TIMEOUT_S)
            settled = time.monotonic()
            cpu, redis_cpu = cpu_seconds(worker.process.pid), cpu_seconds(valkey.pid)
            done_before = int(worker.metric("ticketgate_records_total"))
            _wait_decided(worker, backlog)
            if (decided := backlog - done_before) < backlog / 2:
                raise AssertionError(
                    f"{done_before} of {backlog} were decided before all partitions were there"
                )
            ended = time.monotonic()
            after = int(redis.info("memory")["used_memory"])  # type: ignore[index]
            redis.close()
            return Point(
                partitions=partitions,
                backlog=backlog,
                cpu_us=round((cpu_seconds(worker.process.pid) - cpu) / decided * 1e6, 1),
                redis_cpu_us=round((cpu_seconds(valkey.pid) - redis_cpu) / decided * 1e6, 1),
                redis_bytes=round((after - before) / backlog, 1),
                input_bytes=round(_on_disk(folder / "kafka", gate.topic("tickets")) / backlog, 1),
                output_bytes=round(_on_disk(folder / "kafka", gate.topic("dispatch")) / backlog, 1),
                worker_mib=round(resident_bytes(worker.process.pid) / 2**20, 1),
                settle_s=round(settled - started, 1),
                seconds=round(ended - settled, 1),
            )


def _wait_decided(worker: Worker, count: int) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while (done := int(worker.metric("ticketgate_records_total"))) < count:
        if time.monotonic() > deadline:
            raise AssertionError(f"{done} of {count} tickets decided\n{worker.log()[-2000:]}")
        time.sleep(0.2)


def _on_disk(data: Path, topic: str) -> int:
    """Bytes of a topic's records on the broker's disk."""
    return sum(
        each.stat().st_size for each in data.rglob("*.log") if each.parent.name.rpartition("-")[0] == topic
    )


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--partitions", default="1,6,24,96")
    parser.add_argument("--backlogs", default="1000,10000,100000")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    sizes = [(int(each), BACKLOG) for each in options.partitions.split(",") if each]
    sizes += [(PARTITIONS, int(each)) for each in options.backlogs.split(",") if each]
    found: list[Point] = []
    for partitions, backlog in dict.fromkeys(sizes):
        try:
            found.append(measure(partitions, backlog))
        except PartMissing as err:
            print(f"skipped: {err}")
            return
        print(found[-1], file=sys.stderr, flush=True)
    names = [*asdict(found[0])]
    print("| " + " | ".join(names) + " |\n|" + "---:|" * len(names))
    for point in found:
        print("| " + " | ".join(f"{value:,}" for value in asdict(point).values()) + " |")
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(point) for point in found], indent=1) + "\n")


if __name__ == "__main__":
    main()
