"""Quiet hours: two workers with the limits that users have, and hardly anything to do.

Half an hour in real time. A ticket comes every 90 s to one partition; one worker has it, the other stands by and is
never asked to rebalance. Redis is away for 6 minutes, later the broker for 6; then the worker at work is killed, and
another started. Every ticket must come out once, each outage must be told by both workers while it lasts, and both
workers must be members of the group at the end.

`python -m tests.chaos.quiet` prints what it sees, and exits 1 if any of that does not hold.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient
from ticketgate.streams.parts.kafka import Kafka
from ticketgate.streams.parts.valkey import Valkey

from ..support.deployment import Deployment, Worker, ticket
from ..support.policies import FIXED_ANSWERS, SEED_POLICY

# In minutes from the start.
EVERY = 1.5
REDIS_AWAY = (6.0, 12.0)
BROKER_AWAY = (16.0, 22.0)
KILLED_AT = 29.0
ENDS_AT = 32.0
LOOK_S = 1.0
# An outage is told within this, and once it is over the workers are ready within this.
NOTICE_S = 60.0
SETTLE_S = 180.0


@dataclass(frozen=True)
class Report:
    """What one run came to. `told`: for each outage, of how many looks at a worker during it how many gave 503 with the
    cause. `unready`: looks that were not ready although nothing was away."""

    tickets: int
    emitted: int
    duplicates: int
    missing: int
    told: Mapping[str, Sequence[int]]
    unready: int
    members: int
    ready: int
    log_lines: Sequence[int]
    seconds: float

    @property
    def is_clean(self) -> bool:
        """Whether all held."""
        return (
            not (self.duplicates or self.missing or self.unready)
            and all(looks and told == looks for told, looks in self.told.values())
            and self.members == self.ready == 2
        )


@dataclass
class Seen:
    """What was seen of the workers, and what was said of it."""

    say: Callable[[str], None]
    told: dict[str, list[int]] = field(default_factory=lambda: {"redis": [0, 0], "broker": [0, 0]})
    unready: int = 0
    last: dict[int, str] = field(default_factory=dict)

    def look(self, number: int, worker: Worker, *, away: str | None, is_settled: bool) -> None:
        """Look at one worker while something is `away`, or nothing."""
        status, body = worker.get("/readyz")
        state = json.loads(body or "{}")
        now = f"{status} {state.get('waiting')} lanes {len(state.get('lanes', []))}"
        if _constant(now) != _constant(self.last.get(number, "")):
            self.say(f"worker {number}: {now}")
        self.last[number] = now
        if not is_settled:
            return
        if away is None:
            self.unready += status != 200
        else:
            words = {"redis": "TICKETGATE_REDIS", "broker": "TICKETGATE_KAFKA"}[away]
            self.told[away][0] += status == 503 and words in body
            self.told[away][1] += 1


def run(*, minute_s: float = 60.0, say: Callable[[str], None] = print) -> Report:
    """One run, with minutes of `minute_s` seconds. Raises AssertionError if it does not settle."""
    started = time.monotonic()
    seen = Seen(lambda line: say(f"{(time.monotonic() - started) / minute_s:6.2f} min  {line}"))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ticketgate-quiet-")))
        kafka = stack.enter_context(Kafka(data=folder / "kafka"))
        valkey = stack.enter_context(Valkey(data=folder / "valkey"))
        settings = {"POLICY": str(SEED_POLICY), "SCORER": f"fixed:{FIXED_ANSWERS}", "PARTITIONS": "1"}
        gate = stack.enter_context(Deployment(kafka.bootstrap, valkey.url, folder / "gate", settings))
        workers = [gate.start_worker()]
        workers[0].wait_ready()
        workers.append(gate.start_worker())
        workers[1].wait_for(lambda _: _are_settled(workers))
        seen.say("two workers, one of them standing by")
        sent = _live(gate, workers, kafka, valkey, seen, minute_s)
        emitted = _settle(gate, workers, sent, seen)
        members = asyncio.run(_members(kafka.bootstrap, gate.name))
        return Report(
            tickets=sent,
            emitted=sum(emitted.values()),
            duplicates=sum(count - 1 for count in emitted.values()),
            missing=sum(f"T-{n}" not in emitted for n in range(sent)),
            told=seen.told,
            unready=seen.unready,
            members=members,
            ready=sum(worker.ready().get("ready") is True for worker in workers),
            log_lines=[len(worker.log().splitlines()) for worker in gate.workers],
            seconds=round(time.monotonic() - started, 1),
        )


def _live(
    gate: Deployment, workers: list[Worker], kafka: Kafka, valkey: Valkey, seen: Seen, minute_s: float
) -> int:
    """All that happens, in its time; how many tickets were sent."""
    begun, sent, changed_at = time.monotonic(), 0, float("-inf")
    away: str | None = None
    events: list[tuple[float, str]] = sorted(
        [
            (REDIS_AWAY[0], "redis"),
            (REDIS_AWAY[1], ""),
            (BROKER_AWAY[0], "broker"),
            (BROKER_AWAY[1], ""),
            (KILLED_AT, "kill"),
        ]
    )
    while (minute := (time.monotonic() - begun) / minute_s) < ENDS_AT:
        if events and minute >= events[0][0]:
            _, what = events.pop(0)
            changed_at = time.monotonic()
            if what == "kill":
                _replace_the_active(gate, workers, seen)
            else:
                _switch(away, what, kafka, valkey)
                away = what or None
                seen.say(f"{away} is away" if away else "all is there again")
        if minute >= sent * EVERY and away != "broker":
            gate.send([ticket(f"T-{sent}")])
            seen.say(f"sent T-{sent}")
            sent += 1
        is_settled = time.monotonic() - changed_at > min(NOTICE_S, minute_s)
        for number, worker in enumerate(workers):
            seen.look(number, worker, away=away, is_settled=is_settled)
        time.sleep(LOOK_S)
    return sent


def _switch(away: str | None, what: str, kafka: Kafka, valkey: Valkey) -> None:
    part: Kafka | Valkey = valkey if "redis" in (away, what) else kafka
    if what:
        part.kill()
    else:
        part.start()


def _replace_the_active(gate: Deployment, workers: list[Worker], seen: Seen) -> None:
    active = max(range(2), key=lambda number: len(workers[number].ready().get("lanes", [])))
    workers[active].kill()
    seen.say(f"worker {active}, which was at work, is killed; another is started")
    workers[active] = gate.start_worker()


def _settle(gate: Deployment, workers: Sequence[Worker], sent: int, seen: Seen) -> Counter[str]:
    records = gate.wait_for_records(sent, "dispatch", "review", timeout_s=SETTLE_S)
    workers[0].wait_for(lambda _: _are_settled(workers), SETTLE_S)
    seen.say("all tickets are out, and both workers are ready")
    return Counter(json.loads(record.value or b"")["ticket_id"] for record in records)


def _are_settled(workers: Sequence[Worker]) -> bool:
    states = [worker.ready() for worker in workers]
    return all(state.get("ready") for state in states) and sorted(len(each["lanes"]) for each in states) == [
        0,
        1,
    ]


async def _members(bootstrap: str, group: str) -> int:
    client = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await client.start()
    try:
        described: Any
        (described,) = await client.describe_consumer_groups([group])
    finally:
        await client.close()
    ((_, _, _, _, _, members, *_),) = described.groups
    return len(members)


def _constant(line: str) -> str:
    return "".join(character for character in line if not character.isdigit())


def main() -> None:
    """Run it, print the report, exit 1 unless it is clean."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--minute", type=float, default=60.0, help="seconds in a minute; 60 for the real thing"
    )
    report = run(minute_s=parser.parse_args().minute, say=lambda line: print(line, flush=True))
    print(json.dumps(asdict(report), indent=2))
    sys.exit(not report.is_clean)


if __name__ == "__main__":
    main()
