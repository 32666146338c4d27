"""The console's demo: sample tickets through a gate, and what is for a person settled on the console's pages.

Promise: `run_review_demo` tells of every ticket in review what was pressed and what became of it, and leaves nothing
running and no data behind.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote

from ticketgate.agents.plural import counted
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.demo.ground import open_ground, running, send
from ticketgate.streams.demo.person import KEY, write_keys
from ticketgate.streams.demo.review_console import ReviewConsole
from ticketgate.streams.demo.review_person import ReviewPerson
from ticketgate.streams.demo.worker import GateWorker, has_taken
from ticketgate.streams.kafka.connection import connection_of
from ticketgate.streams.kafka.envelope import Record
from ticketgate.streams.kafka.reading.topic_reading import read_whole
from ticketgate.streams.operations.review.rows import EFFECTIVE


@dataclass(frozen=True, slots=True)
class Settled:
    """What came of one ticket: why it was in review, what was pressed, and what the page said in the end."""

    ticket_id: str
    why: str
    action: str
    stage: str


@dataclass(frozen=True, slots=True)
class ReviewDemoResult:
    """All tickets that a person could settle. dispatched: how many of them lie in `dispatch` now."""

    settled: tuple[Settled, ...]
    dispatched: int
    broker: str
    seconds: float

    @property
    def is_complete(self) -> bool:
        """Whether each took effect, and what was accepted was dispatched once."""
        accepted = sum(each.stage == "accepted" for each in self.settled)
        return all(each.stage in EFFECTIVE for each in self.settled) and accepted == self.dispatched


async def run_review_demo(
    records: Sequence[Record], *, policy: Path, say: Callable[[str], None]
) -> ReviewDemoResult:
    """Start the parts, send the records, and settle on the pages what is for a person. `say` gets a line for people at
    each step. Raises `PartMissing`, `PartFailed`, `TimeoutError`, and what start-up refuses."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="ticketgate-demo-")))
        ground = await stack.enter_async_context(open_ground(say))
        given = {**ground.given, "policy": str(policy)}
        given |= {"console_keys": str(write_keys(folder)), "console_key": KEY}
        say("starting a worker with the local model, and the console")
        worker = GateWorker({**given, "roles": "decide,settle"})
        del given["redis"], given["guarantee"]
        console = ReviewConsole(given)
        await stack.enter_async_context(running(worker))
        await stack.enter_async_context(running(console))
        say(f"sending {counted(len(records), 'record')} to the topic {ground.settings.topic_tickets}")
        await send(ground.settings, ground.settings.topic_tickets, records)
        if not await has_taken(worker, ground.settings.topic_tickets, len(records)):
            raise TimeoutError(f"the worker did not take {len(records)} records in time")
        waiting = await _waiting(ground.settings)
        say(f"a scripted person settles {counted(len(waiting), 'ticket')} on {console.url}")
        started = time.monotonic()
        person = ReviewPerson(console.url, console.token)
        stack.push_async_callback(person.close)
        pressed = await person.settle(len(waiting))
        seconds = time.monotonic() - started
        dispatched = await _dispatched(ground.settings)
    by_key = {unquote(each.path.partition("?")[0].rpartition("/")[2]): each for each in pressed}
    return ReviewDemoResult(
        tuple(
            Settled(ticket_id, why, by_key[key].action, by_key[key].stage)
            if key in by_key
            else Settled(ticket_id, why, "", "not listed")
            for key, (ticket_id, why) in waiting.items()
        ),
        dispatched,
        ground.broker,
        seconds,
    )


async def _waiting(settings: Settings) -> dict[str, tuple[str, str]]:
    """The tickets in review that a person can settle, by their key: the id, and why."""
    found: dict[str, tuple[str, str]] = {}
    async for record in read_whole(connection_of(settings), [settings.topic_review]):
        decision = json.loads(record.value or b"{}")
        # A collision's key is derived: it is looked into, and not settled.
        if ":" not in decision["idempotency_key"]:
            reasons = decision["verdict"]["reasons"]
            found[decision["idempotency_key"]] = (decision["ticket_id"], next(iter(reasons), ""))
    return found


async def _dispatched(settings: Settings) -> int:
    """How many records in `dispatch` a person settled."""
    count = 0
    async for record in read_whole(connection_of(settings), [settings.topic_dispatch]):
        count += "settled" in json.loads(record.value or b"{}")
    return count
