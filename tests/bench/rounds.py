"""One round of a worker that is measured: its tickets lie on the topic before it, stopped meanwhile, goes on, and the
round ends when it has committed them all."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass

from ..support.deployment import Deployment, Worker
from .backlog import Group, send_all
from .process import cpu_seconds

# A worker stands stopped while its tickets are sent, and must not lose its partitions over that.
SESSION_S = 120
WARM_UP_TICKETS = 1_000
# As `ticketgate topics create` makes them.
PARTITIONS = 6
POLL_S = 0.05
ROUND_TIMEOUT_S = 300.0
START_TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class Spent:
    """What a round took. cpu_s: user and system time, of the worker first and then of each process beside it."""

    tickets: int
    seconds: float
    cpu_s: tuple[float, ...]


def wait_for_lanes(worker: Worker) -> None:
    """Until ticketgate's worker is ready and has every partition."""
    worker.wait_for(
        lambda seen: seen.get("ready") is True and len(seen["lanes"]) == PARTITIONS, START_TIMEOUT_S
    )


async def take_all(
    gate: Deployment,
    worker: Worker,
    tickets: Iterable[tuple[str, bytes]],
    *,
    beside: Iterable[int],
    what: str,
    timeout_s: float = ROUND_TIMEOUT_S,
) -> Spent:
    """Send while the worker is stopped; let it go on; wait until all is committed. tickets: each with its id. beside:
    pids. Raises AssertionError, by `what`, if the worker ends or the round does not."""
    process = worker.process
    pids = (process.pid, *beside)
    async with Group(gate.bootstrap, gate.name) as group:
        before = await group.committed()
        process.send_signal(signal.SIGSTOP)
        try:
            count = await send_all(gate.bootstrap, gate.topic("tickets"), tickets)
            spent = [cpu_seconds(pid) for pid in pids]
            started = time.monotonic()
        finally:
            process.send_signal(signal.SIGCONT)
        while await group.committed() < before + count:
            if process.poll() is not None or time.monotonic() > started + timeout_s:
                raise AssertionError(f"{what} did not end\n{worker.log()[-3000:]}")
            await asyncio.sleep(POLL_S)
        seconds = time.monotonic() - started
        cpu_s = tuple(cpu_seconds(pid) - each for pid, each in zip(pids, spent, strict=True))
    return Spent(count, seconds, cpu_s)
