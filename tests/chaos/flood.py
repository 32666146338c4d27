"""A flood at the web port of a worker with few descriptors, while tickets come: every one decided, health answered.

The worker has 256 descriptors (`ulimit -n 256`). 500 connections that send half a header are kept open, new ones in the
place of those that it closes, and 200 requests of more than it takes are sent, from before the first ticket until after
the last commit; tickets come one by one over 60 s.

`python -m tests.chaos.flood` prints what it sees, and exits 1 if a ticket has not one outcome, `/healthz` is slower
than 1 s at the 99th percentile, or the log is larger than 1 MB.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from aiokafka import AIOKafkaProducer
from ticketgate.streams.parts.kafka import Kafka
from ticketgate.streams.parts.ports import HOST
from ticketgate.streams.parts.valkey import Valkey

from ..support.deployment import Deployment, Worker, ticket
from ..support.policies import FIXED_ANSWERS, SEED_POLICY

DESCRIPTORS = 256
HALF_OPEN = 500
OVERSIZED = 200
OVERSIZED_AT_ONCE = 16
TICKETS = 120
SECONDS = 60.0
MAX_BYTES = 64 * 1024
HEALTH_EVERY_S = 0.25
MOST_HEALTH_S = 1.0
MOST_LOG_BYTES = 1_000_000
# Who was closed comes again: a hundred connections a second, all told.
AGAIN_S = 5.0
HALF = b"POST /v1/systemone HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Half: "


@dataclass(frozen=True)
class Report:
    """What one run came to. health_s: the 99th percentile and the longest of so many looks; unhealthy: looks without a
    200. answers: to oversized requests, by status (0: closed)."""

    tickets: int
    decided: int
    twice: int
    health_looks: int
    health_p99_s: float
    health_longest_s: float
    unhealthy: int
    half_open_made: int
    answers: dict[int, int]
    log_bytes: int
    seconds: float

    @property
    def is_clean(self) -> bool:
        """Whether all of it held."""
        return (
            self.decided == self.tickets
            and not self.twice
            and not self.unhealthy
            and self.health_p99_s <= MOST_HEALTH_S
            and self.log_bytes < MOST_LOG_BYTES
        )


class Flood:
    """The callers, until `stop`."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.half_open_made = 0
        self.answers: Counter[int] = Counter()
        self._tasks: list[asyncio.Task[None]] = []
        self._is_over = False

    def start(self) -> None:
        """From here on they come."""
        self._tasks = [asyncio.create_task(self._half(), name="half open") for _ in range(HALF_OPEN)]
        self._tasks += [
            asyncio.create_task(self._oversized(OVERSIZED // OVERSIZED_AT_ONCE + 1), name="oversized")
            for _ in range(OVERSIZED_AT_ONCE)
        ]

    async def stop(self) -> None:
        """They go."""
        self._is_over = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _half(self) -> None:
        """Keep one connection open with half a header, a byte more now and then; another in its place when it ends."""
        while not self._is_over:
            with suppress(OSError):
                reader, writer = await asyncio.open_connection(HOST, self._port)
                self.half_open_made += 1
                try:
                    writer.write(HALF)
                    while not reader.at_eof() and not self._is_over:
                        with suppress(TimeoutError):
                            async with asyncio.timeout(3):
                                await reader.read(1024)
                        writer.write(b"x")
                        await writer.drain()
                finally:
                    writer.close()
            await asyncio.sleep(AGAIN_S)

    async def _oversized(self, each: int) -> None:
        """Requests of more than is taken, said in the header or come upon in chunks, spread over the time."""
        for number in range(each):
            is_said = number % 2 == 0
            status = 0
            with suppress(OSError, asyncio.IncompleteReadError, ValueError, IndexError):
                reader, writer = await asyncio.open_connection(HOST, self._port)
                try:
                    size = f"Content-Length: {8 * MAX_BYTES}" if is_said else "Transfer-Encoding: chunked"
                    writer.write(
                        f"POST /v1/systemone HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n{size}"
                        "\r\n\r\n".encode()
                    )
                    piece = b"x" * 8192
                    for _ in range(8 * MAX_BYTES // len(piece)):
                        writer.write(piece if is_said else b"2000\r\n" + piece + b"\r\n")
                        await writer.drain()
                    async with asyncio.timeout(20):
                        line = await reader.readline()
                    status = int(line.split()[1])
                finally:
                    writer.close()
            self.answers[status] += 1
            await asyncio.sleep(SECONDS / each)


async def watch(port: int, until: asyncio.Event) -> list[float | None]:
    """How long each look at /healthz took; None without a 200."""
    found: list[float | None] = []
    while not until.is_set():
        started = time.monotonic()
        is_well = await asyncio.to_thread(_is_well, port)
        found.append(time.monotonic() - started if is_well else None)
        await asyncio.sleep(HEALTH_EVERY_S)
    return found


def _is_well(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://{HOST}:{port}/healthz", timeout=10) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def run() -> Report:
    """One run."""
    started = time.monotonic()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ticketgate-flood-")))
        kafka = stack.enter_context(Kafka(data=folder / "kafka"))
        valkey = stack.enter_context(Valkey(data=folder / "valkey"))
        settings = {
            "POLICY": str(SEED_POLICY),
            "SCORER": f"fixed:{FIXED_ANSWERS}",
            "PARTITIONS": "2",
            "WEB_MAX_BYTES": str(MAX_BYTES),
        }
        gate = stack.enter_context(Deployment(kafka.bootstrap, valkey.url, folder / "workers", settings))
        limited = folder / "limited.sh"
        limited.write_text(f'#!/bin/sh\nulimit -n {DESCRIPTORS}\nexec "{_command()}" "$@"\n')
        limited.chmod(0o700)
        worker = gate.start_worker(installed=str(limited))
        worker.wait_ready(120)
        flood, health = asyncio.run(_flooded(gate, worker))
        outcomes = Counter(record.key for record in gate.committed("dispatch", "review"))
        log_bytes = worker.log_file.stat().st_size
        print(worker.log()[-2000:], file=sys.stderr)
    times = sorted(each for each in health if each is not None)
    return Report(
        tickets=TICKETS,
        decided=len(outcomes),
        twice=sum(count > 1 for count in outcomes.values()),
        health_looks=len(health),
        health_p99_s=round(times[max(0, -(-len(times) * 99 // 100) - 1)], 3) if times else float("inf"),
        health_longest_s=round(times[-1], 3) if times else float("inf"),
        unhealthy=sum(each is None for each in health),
        half_open_made=flood.half_open_made,
        answers=dict(flood.answers),
        log_bytes=log_bytes,
        seconds=round(time.monotonic() - started, 1),
    )


def _command() -> Path:
    return Path(sys.executable).with_name("ticketgate")


def _wait_taken(gate: Deployment) -> None:
    """Until the last commit; what is not taken by then is told as not decided."""
    deadline = time.monotonic() + 120
    while gate.lag() and time.monotonic() < deadline:
        time.sleep(0.5)


async def _flooded(gate: Deployment, worker: Worker) -> tuple[Flood, list[float | None]]:
    flood, is_over = Flood(worker.port), asyncio.Event()
    flood.start()
    await asyncio.sleep(3)  # so that it is there before the first ticket
    watching = asyncio.create_task(watch(worker.port, is_over), name="health")
    async with AIOKafkaProducer(bootstrap_servers=gate.bootstrap, acks="all") as producer:
        for number in range(TICKETS):
            sent = ticket(f"T-{number}")
            await producer.send_and_wait(gate.topic("tickets"), sent.value, key=sent.key)
            await asyncio.sleep(SECONDS / TICKETS)
    await asyncio.to_thread(_wait_taken, gate)
    is_over.set()
    health = await watching
    await flood.stop()
    return flood, health


def main() -> int:
    """0 if all of it held."""
    argparse.ArgumentParser(prog="python -m tests.chaos.flood", description=__doc__).parse_args()
    report = run()
    print(json.dumps(asdict(report)))
    return 0 if report.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
