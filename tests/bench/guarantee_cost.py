"""What exactly_once costs against at_least_once, by batch size, interleaved in one run.

    .venv/bin/python -m tests.bench.guarantee_cost

For each batch size two workers stand on one broker and one Valkey, one under each guarantee, and one of them works at
a time: A B B A, A B B A, … A round's tickets lie on the topic before its worker, stopped meanwhile, goes on; CPU is
user and system time of that worker's process. Prints Markdown. The ratios are what is measured: both workers of a
pair met the same machine; tickets a second alone say how busy it was.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from ticketgate.streams.parts.failures import PartMissing
from ticketgate.streams.parts.kafka import Kafka
from ticketgate.streams.parts.valkey import Valkey

from ..support.deployment import Deployment, Worker
from .backlog import Group, send, write_inputs
from .process import cpu_seconds

# Tickets of one round by batch size: some seconds of work each.
ROUND_TICKETS = {1: 600, 16: 3_000, 64: 6_000, 256: 9_216}
WARM_UP_TICKETS = 1_000
POLL_S = 0.05
ROUND_TIMEOUT_S = 300.0
GUARANTEES = ("exactly_once", "at_least_once")
# A worker stands stopped while its tickets are sent, and must not lose its partitions over that.
SESSION = "120s"


@dataclass(frozen=True, slots=True)
class Round:
    """One guarantee's work on one round's tickets."""

    tickets_per_s: float
    worker_cpu_s: float
    broker_cpu_s: float


@dataclass(frozen=True, slots=True)
class Side:
    """One guarantee's deployment and worker."""

    gate: Deployment
    worker: Worker


def main() -> int:
    """Run it; the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeat", type=int, default=3, help="how often A B B A  [%(default)s]")
    parser.add_argument(
        "--batch", type=int, nargs="+", default=list(ROUND_TICKETS), choices=list(ROUND_TICKETS)
    )
    options = parser.parse_args()
    try:
        with Kafka() as kafka, Valkey() as valkey:
            print(
                "| batch size | tickets/s: exactly once ÷ at least once | worker CPU a ticket: ratio"
                " | broker CPU a ticket: ratio | tickets/s, median (exactly, at least)"
                " | worker CPU a ticket, µs, median (exactly, at least) |\n|---:|---|---|---|---|---|"
            )
            for batch_size in options.batch:
                pairs = measure(kafka, valkey, batch_size=batch_size, repeat=options.repeat)
                print(_row(batch_size, pairs), flush=True)
    except PartMissing as err:
        print(f"skipped: {err}")
    return 0


def measure(kafka: Kafka, valkey: Valkey, *, batch_size: int, repeat: int) -> list[tuple[Round, Round]]:
    """The rounds of both guarantees, (exactly once, at least once), in pairs that follow each other."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ticketgate-cost-")))
        inputs = write_inputs(folder)
        sides: list[Side] = []
        for guarantee in GUARANTEES:
            settings = {
                **inputs,
                "GUARANTEE": guarantee,
                "BATCH_SIZE": str(batch_size),
                "SESSION_TIMEOUT": SESSION,
            }
            gate = Deployment(kafka.bootstrap, valkey.url, folder / guarantee, settings)
            stack.enter_context(gate)
            sides.append(Side(gate, gate.start_worker()))
        return alternate(sides, kafka.pid, ROUND_TICKETS[batch_size], pairs=2 * repeat)


def alternate(
    sides: Sequence[Side], broker_pid: int, tickets: int, *, pairs: int
) -> list[tuple[Round, Round]]:
    """Warm both sides up, then A B B A, …: the rounds in pairs that follow each other."""
    for side in sides:
        side.worker.wait_for(lambda seen: seen.get("ready") is True and len(seen["lanes"]) == 6, 120)
        asyncio.run(run_round(side, broker_pid, "warm", WARM_UP_TICKETS))
    found: list[tuple[Round, Round]] = []
    for number in range(pairs):
        rounds = {
            place: asyncio.run(run_round(sides[place], broker_pid, f"r{number}", tickets))
            for place in ((0, 1) if number % 2 == 0 else (1, 0))
        }
        found.append((rounds[0], rounds[1]))
        print(f"pair {number}: {found[-1]}", file=sys.stderr, flush=True)
    return found


async def run_round(side: Side, broker_pid: int, name: str, tickets: int) -> Round:
    """Send while the worker is stopped; let it go on; wait until all is committed."""
    gate, process = side.gate, side.worker.process
    async with Group(gate.bootstrap, gate.name) as group:
        before = await group.committed()
        process.send_signal(signal.SIGSTOP)
        await send(gate.bootstrap, gate.topic("tickets"), (f"{name}-{n}" for n in range(tickets)))
        worker_cpu, broker_cpu = cpu_seconds(process.pid), cpu_seconds(broker_pid)
        started = time.monotonic()
        process.send_signal(signal.SIGCONT)
        while await group.committed() < before + tickets:
            if time.monotonic() > started + ROUND_TIMEOUT_S:
                raise AssertionError(f"round {name} did not end\n{side.worker.log()[-3000:]}")
            await asyncio.sleep(POLL_S)
        seconds = time.monotonic() - started
        return Round(
            tickets / seconds,
            cpu_seconds(process.pid) - worker_cpu,
            cpu_seconds(broker_pid) - broker_cpu,
        )


def _row(batch_size: int, pairs: Sequence[tuple[Round, Round]]) -> str:
    exactly, at_least = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    micros = 1e6 / ROUND_TICKETS[batch_size]
    return (
        f"| {batch_size} | {ratio([(a.tickets_per_s, b.tickets_per_s) for a, b in pairs])}"
        f" | {ratio([(a.worker_cpu_s, b.worker_cpu_s) for a, b in pairs])}"
        f" | {ratio([(a.broker_cpu_s, b.broker_cpu_s) for a, b in pairs])}"
        f" | {median(r.tickets_per_s for r in exactly):.0f}, {median(r.tickets_per_s for r in at_least):.0f}"
        f" | {micros * median(r.worker_cpu_s for r in exactly):.0f},"
        f" {micros * median(r.worker_cpu_s for r in at_least):.0f} |"
    )


def ratio(pairs: Sequence[tuple[float, float]]) -> str:
    """Median of the pairs' ratios, and their extremes."""
    ratios = sorted(left / right for left, right in pairs if right)
    return f"{median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"


if __name__ == "__main__":
    sys.exit(main())
