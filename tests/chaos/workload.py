"""What a chaos run sends, and what must come out: seeded, with upstream duplicates and collisions."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..support.deployment import Sent, ticket

# Shares of the records that repeat an earlier ticket, or reuse an earlier id for another text.
DUPLICATES = 0.05
COLLISIONS = 0.01
QUESTIONS = ("urgent", "review", "auto_reply", "billing", "technical")


@dataclass(frozen=True)
class Workload:
    """`records` in the order of sending; `contents` are the distinct (id, text) pairs among them."""

    records: tuple[Sent, ...]
    contents: frozenset[tuple[str, str]]
    answers: Mapping[str, object]

    def chunks(self, size: int) -> Iterator[tuple[Sent, ...]]:
        """The records in chunks."""
        for start in range(0, len(self.records), size):
            yield self.records[start : start + size]


def workload(seed: int, tickets: int) -> Workload:
    """`tickets` records. Duplicates and collisions lie anywhere after the first of their id, on the same partition
    (the key is the id) or, for half of them, on another (the key is not)."""
    rng = random.Random(seed)
    contents: list[tuple[str, str]] = []
    records: list[Sent] = []
    for n in range(tickets):
        kind = rng.random()
        if contents and kind < DUPLICATES:
            ticket_id, text = rng.choice(contents)
        elif contents and kind < DUPLICATES + COLLISIONS:
            ticket_id, text = rng.choice(contents)[0], f"another text {n}"
        else:
            ticket_id, text = f"T-{n}", f"text of {n}"
        contents.append((ticket_id, text))
        sent = ticket(ticket_id, text)
        records.append(sent if rng.random() < 0.5 else Sent(sent.value, key=b"k%d" % n))
    answers = {ticket_id: _answers(rng) for ticket_id, _ in contents}
    return Workload(tuple(records), frozenset(contents), answers)


def _answers(rng: random.Random) -> dict[str, object]:
    return {question: {"type": "noul", "noul": round(rng.random(), 3)} for question in QUESTIONS}


def content_of(value: bytes) -> tuple[str, str]:
    """The (id, text) that an output record tells of: its ticket stands in it."""
    record = json.loads(value)
    return record["ticket_id"], record["ticket"]["state"]
