"""Whether a worker's memory stays within its queues under a backlog of 1,000,000 tickets, and a ticket's cost flat.

    .venv/bin/python -m tests.bench.memory [--model --tickets 20000] [--json FILE]

One worker meets a backlog that lies on Apache Kafka before it starts, and its VmRSS and its processor time, with those
of Valkey, are sampled until all of it is committed. Exits 1 if RSS is ever MOST_BYTES or more, or grows after the
warm-up (the first tenth) by more than the bound that `queue_bytes` derives from the settings. With --model the default
model answers the question, thirty times as slowly. Prints Markdown. Broker, Valkey and outputs need 3 GB of temporary
disk for 1,000,000 tickets.
"""

from __future__ import annotations

import argparse
import asyncio
import inspect
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import linear_regression

from aiokafka import AIOKafkaConsumer
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.parts.failures import PartMissing
from ticketgate.streams.parts.kafka import Kafka
from ticketgate.streams.parts.valkey import Valkey

from ..support.deployment import Deployment, Worker
from .backlog import POLICY, Group, end_of, send, small_ticket, write_inputs
from .process import cpu_seconds, resident_bytes

MIB = 2**20
TICKETS = 1_000_000
SAMPLE_S = 0.5
# What the benchmarks' policy says of its question, and what it says where a model is to answer it.
ANSWERED, ASKED = 'from = "attributes.vip"', 'instructions = "Is it about a payment?"'
# What a worker may take, with a model or without, however long its backlog is.
MOST_BYTES = 400_000_000
# A machine that is shared by others decides 500 a second or more.
TIMEOUT_S = 3_600.0
# A decoded record, its ticket, its claim and its output are some dozens of small objects beside their bytes.
OBJECT_BYTES_A_TICKET = 16 * 1024
# How often a ticket's bytes lie in memory at once: record, decoded state, canonical form, output record, request.
COPIES = 5


@dataclass(frozen=True, slots=True)
class Sample:
    """When `decided` tickets were committed, `at_s` after the worker's start: RSS of the worker and of Redis in bytes,
    and the processor time that each had taken."""

    at_s: float
    decided: int
    rss: int
    cpu_s: float
    redis_rss: int
    redis_cpu_s: float


@dataclass(frozen=True, slots=True)
class Tenth:
    """A tenth of the backlog. cpu_us, redis_cpu_us: processor time a ticket."""

    low: int
    high: int
    least_rss: int
    most_rss: int
    cpu_us: float
    redis_cpu_us: float


def main() -> int:
    """Run it; the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tickets", type=int, default=TICKETS)
    parser.add_argument("--batch", type=int, default=Settings.model_fields["batch_size"].default)
    parser.add_argument("--model", action="store_true", help="ask the default model, and not an attribute")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    try:
        samples, sent_s, seconds = measure(
            tickets=options.tickets, batch_size=options.batch, with_model=options.model
        )
    except PartMissing as err:
        print(f"skipped: {err}")
        return 0
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(each) for each in tenths(samples)], indent=1) + "\n")
    return report(samples, tickets=options.tickets, batch_size=options.batch, sent_s=sent_s, seconds=seconds)


def queue_bytes(*, partitions: int, batch_size: int, ticket_bytes: int) -> int:
    """The most that records under way can take, in bytes: what a worker may hold beyond its constant part.

    For each partition aiokafka keeps at most one fetched chunk, and asks for the next only when that is used up: a
    partition that has a chunk is left out of the request. A response lies twice in memory while it is parsed. A lane
    has one batch under way, never more records than one chunk holds.
    """
    fetched: int = inspect.signature(AIOKafkaConsumer).parameters["max_partition_fetch_bytes"].default
    batch = batch_size * OBJECT_BYTES_A_TICKET + COPIES * min(batch_size * ticket_bytes, fetched)
    return partitions * (2 * fetched + batch)


def measure(*, tickets: int, batch_size: int, with_model: bool) -> tuple[list[Sample], float, float]:
    """The samples; the seconds that sending and deciding took."""
    with (
        tempfile.TemporaryDirectory(prefix="ticketgate-memory-") as name,
        Kafka() as kafka,
        Valkey() as valkey,
    ):
        folder = Path(name)
        settings = {**write_inputs(folder), "BATCH_SIZE": str(batch_size)}
        if with_model:
            (folder / "policy.toml").write_text(POLICY.replace(ANSWERED, ASKED))
            settings["SCORER"] = "onnx"
        with Deployment(kafka.bootstrap, valkey.url, folder / "workers", settings) as gate:
            started = time.monotonic()
            topic = gate.topic("tickets")
            asyncio.run(send(kafka.bootstrap, topic, (f"M-{n}" for n in range(tickets))))
            sent_s = time.monotonic() - started
            print(f"{tickets} tickets lie on the topic after {sent_s:.0f} s", file=sys.stderr, flush=True)
            worker = gate.start_worker()
            return (
                asyncio.run(_watch(gate, worker, valkey.pid, tickets)),
                sent_s,
                time.monotonic() - started - sent_s,
            )


async def _watch(gate: Deployment, worker: Worker, redis_pid: int, tickets: int) -> list[Sample]:
    end = await end_of(gate.bootstrap, gate.topic("tickets"))
    if end != tickets:
        raise AssertionError(f"{end} records on the topic, {tickets} were sent")
    started = told = time.monotonic()
    samples: list[Sample] = []
    async with Group(gate.bootstrap, gate.name) as group:
        while not samples or samples[-1].decided < end:
            await asyncio.sleep(SAMPLE_S)
            now = time.monotonic()
            if worker.process.poll() is not None or now > started + TIMEOUT_S:
                raise AssertionError(f"{samples[-1:]} of {end}\n{worker.log()[-3000:]}")
            pid = worker.process.pid
            samples.append(
                Sample(
                    at_s=now - started,
                    decided=await group.committed(),
                    rss=resident_bytes(pid),
                    cpu_s=cpu_seconds(pid),
                    redis_rss=resident_bytes(redis_pid),
                    redis_cpu_s=cpu_seconds(redis_pid),
                )
            )
            if now > told + 30:
                told = now
                print(samples[-1], file=sys.stderr, flush=True)
    return samples


def tenths(samples: Sequence[Sample]) -> list[Tenth]:
    """The backlog in ten parts, the last sample's `decided` being all of it. A part's cost is counted from the first
    commit on: before it the process starts."""
    tickets = samples[-1].decided
    begun = [sample for sample in samples if sample.decided]
    found: list[Tenth] = []
    for number in range(10):
        low, high = tickets * number // 10, tickets * (number + 1) // 10
        within = [each.rss for each in begun if low < each.decided <= high]
        first = max(low, begun[0].decided)
        if not within or first >= high:
            continue
        cpu, redis = (
            (_at(begun, high, of) - _at(begun, first, of)) / (high - first) * 1e6
            for of in (lambda each: each.cpu_s, lambda each: each.redis_cpu_s)
        )
        found.append(Tenth(low, high, min(within), max(within), round(cpu, 1), round(redis, 1)))
    return found


def _at(samples: Sequence[Sample], decided: int, of: Callable[[Sample], float]) -> float:
    """`of` when so many were decided, on the line between the samples beside it."""
    after = next(place for place, sample in enumerate(samples) if sample.decided >= decided)
    right = samples[after]
    if after == 0 or right.decided == decided:
        return of(right)
    left = samples[after - 1]
    return of(left) + (of(right) - of(left)) * (decided - left.decided) / (right.decided - left.decided)


def report(samples: Sequence[Sample], *, tickets: int, batch_size: int, sent_s: float, seconds: float) -> int:
    """Print the table and the verdict; the exit code."""
    partitions = Settings.model_fields["partitions"].default
    bound = queue_bytes(
        partitions=partitions, batch_size=batch_size, ticket_bytes=len(small_ticket(f"M-{tickets}"))
    )
    parts = tenths(samples)
    print(
        "| decided | RSS, MiB: least | most | worker CPU, µs a ticket | Redis CPU |\n|---:|---:|---:|---:|---:|"
    )
    for part in parts:
        print(
            f"| {part.low:,} to {part.high:,} | {part.least_rss / MIB:.1f} | {part.most_rss / MIB:.1f}"
            f" | {part.cpu_us:.0f} | {part.redis_cpu_us:.1f} |"
        )
    steady = [sample for sample in samples if sample.decided >= tickets / 10]
    slope, _ = linear_regression([each.decided for each in steady], [each.rss for each in steady])
    most = max(each.rss for each in samples)
    growth = max(each.rss for each in steady) - steady[0].rss
    print(
        f"\n{tickets:,} tickets, batch size {batch_size}, {partitions} partitions; sent in {sent_s:.0f} s,"
        f" decided in {seconds:.0f} s, {len(samples)} samples. A ticket of the last tenth cost"
        f" {parts[-1].cpu_us / parts[0].cpu_us:.2f} times one of the first. Redis came to"
        f" {samples[-1].redis_rss / MIB:.0f} MiB."
    )
    print(
        f"At most {most / 1e6:.0f} MB, {MOST_BYTES / 1e6:.0f} are allowed. After the warm-up: most"
        f" {growth / MIB:.1f} MiB above its end; slope {slope * 100_000 / MIB:+.2f} MiB per"
        f" 100,000 tickets. Queues: at most {bound / MIB:.0f} MiB."
    )
    return 1 if growth > bound or most >= MOST_BYTES else 0


if __name__ == "__main__":
    sys.exit(main())
