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
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from ticketgate.streams.parts.failures import PartMissing
from ticketgate.streams.parts.kafka import Kafka
from ticketgate.streams.parts.valkey import Valkey

from ..support.deployment import Deployment, Worker
from .backlog import small_ticket, write_inputs
from .rounds import SESSION_S, WARM_UP_TICKETS, take_all, wait_for_lanes

# Tickets of one round by batch size: some seconds of work each.
ROUND_TICKETS = {1: 600, 16: 3_000, 64: 6_000, 256: 9_216}
GUARANTEES = ("exactly_once", "at_least_once")


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
                "SESSION_TIMEOUT": f"{SESSION_S}s",
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
        wait_for_lanes(side.worker)
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
    """One side's work on so many tickets, which are named by the round."""
    ids = (f"{name}-{n}" for n in range(tickets))
    spent = await take_all(
        side.gate,
        side.worker,
        ((each, small_ticket(each)) for each in ids),
        beside=[broker_pid],
        what=f"round {name}",
    )
    worker_s, broker_s = spent.cpu_s
    return Round(spent.tickets / spent.seconds, worker_s, broker_s)


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
