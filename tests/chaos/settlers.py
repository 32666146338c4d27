"""People in a chaos run: while the storm lasts they settle a share of what lies in review, and the books of that.

Of each ticket that is settled, a third is settled a second time and otherwise, by another person and often on another
partition; a third is sent again as it is; a few are forged first, which must change nothing. The reader of the books is
plain aiokafka and JSON, with none of ticketgate's code.
"""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event, Thread
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord, TopicPartition
from ticketgate.agents.settling.signing import sign
from ticketgate.codecs.records.settlement import Action, Settlement

from ..support.deployment import Deployment, Sent, partitions_of
from ..support.desk import Desk, read, write_keys
from ..support.policies import SEED_POLICY

SECOND = 1 / 3
AGAIN = 1 / 3
FORGED = 0.1
COLLISIONS = 0.2
# A second settlement, and one that is sent again, come so long after the first at most.
LATEST_S = 20.0
# An assignment that the policy accepts, with an effect.
LABELS = ("billing", "review", "urgent")
EFFECTIVE = ("accepted", "rejected", "returned")


@dataclass(frozen=True)
class SettlingReport:
    """What came of the settlements, as a reader of its own has it and as `audit` says."""

    sent: int
    """Records on `settlements`, with those that were sent again."""
    tickets: int
    """That a person settled."""
    accepted: int
    rejected: int
    returned: int
    already_settled: int
    void: int
    replayed: int
    settled_twice: int
    """Tickets on which two settlements took effect."""
    unsettled: int
    """Tickets that a person settled, and on which none took effect."""
    told_twice: int
    untold: int
    """Settlements with more than one `settled/1`, and with none."""
    wrong_effects: int
    """Accepted settlements without exactly one decision in dispatch, and decisions of no accepted settlement."""
    effects_twice: int
    """Keys of effects that stand in dispatch twice."""
    forged_taken: int
    disagreements: dict[str, tuple[int, int]]
    """What `audit` counts otherwise: its number, and the reader's."""

    @property
    def is_clean(self) -> bool:
        """Whether each ticket that was settled has one effect, each settlement is told of once, and audit agrees."""
        return not (
            self.settled_twice
            or self.unsettled
            or self.told_twice
            or self.untold
            or self.wrong_effects
            or self.effects_twice
            or self.forged_taken
            or self.disagreements
        )


@dataclass
class Settlers:
    """The people of one run: they read `review` from its beginning, and settle `share` of its tickets."""

    gate: Deployment
    folder: Path
    share: float
    rng: random.Random
    tickets: set[str] = field(default_factory=set)
    """The keys of those that a person settled in earnest."""
    forged: set[str] = field(default_factory=set)
    """The ids of what must not be taken."""
    _is_ending: Event = field(default_factory=Event)
    _done: Future[None] = field(default_factory=Future)

    @staticmethod
    def settings(folder: Path) -> dict[str, str]:
        """What workers need besides, and the files of that."""
        shutil.copy(SEED_POLICY, folder / "policy.toml")
        return {"ROLES": "decide,settle", "CONSOLE_KEYS": str(write_keys(folder))}

    def begin(self) -> None:
        """From now on they look and settle."""
        Thread(target=self._run, name="settlers", daemon=True).start()

    def end(self) -> None:
        """Wait until they have seen all that lies in review now, and have sent what they say of it."""
        self._is_ending.set()
        self._done.result(timeout=300)

    def _run(self) -> None:
        try:
            asyncio.run(self._work())
        except BaseException as err:  # noqa: BLE001 - raised where the result is asked for
            self._done.set_exception(err)
        else:
            self._done.set_result(None)

    async def _work(self) -> None:
        desk = Desk(self.gate, self.folder)
        key = desk.key()
        wrong = replace(key, signing=b"f" * 32)
        due: list[tuple[float, Sent, int | None]] = []
        review = self.gate.topic("review")
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self.gate.bootstrap, isolation_level="read_committed", enable_auto_commit=False
        )
        producer = AIOKafkaProducer(bootstrap_servers=self.gate.bootstrap, acks="all")
        async with consumer, producer:
            parts = [TopicPartition(review, part) for part in await partitions_of(consumer, review)]
            partitions = sorted(await partitions_of(consumer, self.gate.topic("settlements")))
            consumer.assign(parts)
            await consumer.seek_to_beginning(*parts)
            while True:
                is_last = self._is_ending.is_set() and await _is_at_end(consumer, parts)
                for records in (await consumer.getmany(*parts, timeout_ms=300)).values():
                    for record in records:
                        due += self._said_of(desk, key, wrong, record, partitions)
                now = time.monotonic()
                ready = [each for each in due if each[0] <= now or self._is_ending.is_set()]
                due = [each for each in due if each not in ready]
                await _send(producer, self.gate.topic("settlements"), ready)
                if is_last and not due:
                    return

    def _said_of(
        self,
        desk: Desk,
        key: Any,
        wrong: Any,
        record: ConsumerRecord[bytes, bytes],
        partitions: Sequence[int],
    ) -> list[tuple[float, Sent, int | None]]:
        """What people say of a record in review: when, what, and where; mostly nothing."""
        rng, now = self.rng, time.monotonic()
        if rng.random() >= self.share:
            return []
        lies = read(record)
        is_ticket = ":" not in lies.idempotency_key
        if not is_ticket and rng.random() >= COLLISIONS:
            return []
        first = self._settlement(desk, record, by="p-1")
        said: list[tuple[float, Sent, int | None]] = []

        def say(settlement: Settlement, signed_by: Any, at: float, partition: int | None) -> None:
            value = sign(settlement, signed_by).encode()
            said.append((at, Sent(value, key=settlement.ticket_id.encode()), partition))

        if rng.random() < FORGED or not is_ticket:
            forged = self._settlement(desk, record, by="p-forger")
            self.forged.add(forged.id)
            say(forged, wrong if is_ticket else key, now, None)
            if not is_ticket:
                return said
        self.tickets.add(lies.idempotency_key)
        say(first, key, now, None)
        if rng.random() < AGAIN:
            # As it is; by a console that lost the answer, or by one that copies topics.
            said.append((now + rng.uniform(0, LATEST_S), said[-1][1], rng.choice([None, *partitions])))
        if rng.random() < SECOND:
            other = self._settlement(desk, record, by="p-2")
            say(
                other,
                key,
                now + rng.uniform(0, LATEST_S) * rng.choice([0, 1]),
                rng.choice([None, *partitions]),
            )
        return said

    def _settlement(self, desk: Desk, record: ConsumerRecord[bytes, bytes], *, by: str) -> Settlement:
        action = self.rng.choice([Action.ACCEPT, Action.ACCEPT, Action.REJECT, Action.RETURN])
        # Of a collision the ticket's own key, as who mistakes it for a decision would.
        key, _, _ = read(record).idempotency_key.partition(":")
        return desk.settlement(record, action, labels=LABELS, by=by, key=key)


async def _is_at_end(consumer: AIOKafkaConsumer, parts: Sequence[TopicPartition]) -> bool:
    ends = await consumer.end_offsets(parts)
    return all([await consumer.position(part) >= ends[part] for part in parts])


async def _send(
    producer: AIOKafkaProducer, topic: str, ready: Sequence[tuple[float, Sent, int | None]]
) -> None:
    """Until the broker has them: what nobody knows to be sent is sent again."""
    left = list(ready)
    while left:
        sent = [
            await producer.send(topic, each.value, key=each.key, partition=part) for _, each, part in left
        ]
        results = await asyncio.gather(*sent, return_exceptions=True)
        left = [each for each, result in zip(left, results, strict=True) if isinstance(result, Exception)]


def books(settlers: Settlers) -> SettlingReport:
    """The books of the settlements, once all are taken."""
    gate = settlers.gate
    # By id the coordinates of all copies; by coordinate what is told of it.
    copies: dict[str, list[str]] = defaultdict(list)
    for record in gate.committed("settlements"):
        copies[json.loads(record.value or b"")["id"]].append(_place(record))
    told: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for record in gate.committed("settled"):
        value = json.loads(record.value or b"")
        told[_coordinate(value)].append(value)
    dispatched = [json.loads(record.value or b"") for record in gate.committed("dispatch")]
    all_told = [each for values in told.values() for each in values]
    outcomes = Counter(each["outcome"] for each in all_told)
    took_effect = [each for each in all_told if each["outcome"] in EFFECTIVE]
    by_ticket = Counter(each["key"] for each in took_effect)
    effective = {each["id"] for each in took_effect}
    places = {place: name for name, found in copies.items() for place in found}
    silent = [place for place in places if not told[place]]
    untold = [place for place in silent if places[place] not in effective]
    accepted = Counter(each["id"] for each in all_told if each["outcome"] == "accepted")
    decided = Counter(each["settled"]["settlement"] for each in dispatched if "settled" in each)
    effects = Counter(effect["idempotency_key"] for each in dispatched for effect in each["effects"])
    audit = json.loads(gate.run("audit", "--of", "settlements", "--json", timeout_s=180).stdout)
    counted = {
        "records": len(places),
        "dispatched": outcomes["accepted"],
        "settled": outcomes["rejected"] + outcomes["returned"],
        "not_taken": outcomes["void"] + outcomes["already_settled"],
        "replayed": len(silent) - len(untold),
        "missing": len(untold),
        "duplicates": 0,
        "pending": 0,
    }
    report = SettlingReport(
        sent=len(places),
        tickets=len(settlers.tickets),
        accepted=outcomes["accepted"],
        rejected=outcomes["rejected"],
        returned=outcomes["returned"],
        already_settled=outcomes["already_settled"],
        void=outcomes["void"],
        replayed=counted["replayed"],
        settled_twice=sum(count > 1 for count in by_ticket.values()),
        unsettled=len(settlers.tickets - by_ticket.keys()),
        told_twice=sum(len(values) > 1 for values in told.values()) + len(told.keys() - places.keys()),
        untold=len(untold),
        wrong_effects=sum((accepted - decided).values()) + sum((decided - accepted).values()),
        effects_twice=sum(count > 1 for count in effects.values()),
        forged_taken=len(effective & settlers.forged),
        disagreements={
            name: (audit[name], number) for name, number in counted.items() if audit[name] != number
        },
    )
    if not report.is_clean:
        void = Counter(each["code"] for each in all_told if each["outcome"] == "void")
        print(f"void: {void}; untold: {untold[:10]}; audit: {json.dumps(audit)[:3000]}", file=sys.stderr)
    return report


def _place(record: ConsumerRecord[bytes, bytes]) -> str:
    return f"{record.topic}:{record.partition}:{record.offset}"


def _coordinate(value: dict[str, Any]) -> str:
    at = value["coordinate"]
    return at if isinstance(at, str) else f"{at['topic']}:{at['partition']}:{at['offset']}"
