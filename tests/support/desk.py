"""A deployment with a desk where people settle what lies in review: keys, a policy with an effect, given answers."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from aiokafka import ConsumerRecord
from ticketgate.agents.deciding.decide import Decision
from ticketgate.agents.policy import Policy, load_policy
from ticketgate.agents.settling.console_keys import ConsoleKey, load_console_keys
from ticketgate.agents.settling.judging import effects_of, judge_labels
from ticketgate.agents.settling.signing import sign
from ticketgate.codecs.records.decision import DecisionRecord, read_decision
from ticketgate.codecs.records.identity import Coordinate
from ticketgate.codecs.records.settlement import Action, Settlement, effects_digest, value_digest
from ticketgate.codecs.records.ticket import Ticket, read_ticket
from ticketgate.codecs.values.strict import decode

from .deciding import SUPPORT
from .deployment import Deployment, Sent

KEYS = """
[front-desk]
algorithm = "HS256"
roles = ["read", "settle", "administer"]
secret_file = "desk.key"

[wall]
algorithm = "HS256"
roles = ["read"]
secret_file = "wall.key"
"""
BROKEN = {"urgent": 0.9, "review": 0.1, "auto_reply": 0.2, "billing": 0.8, "technical": 0.1}
RIGHT = ("billing", "review", "urgent")


def write_keys(folder: Path) -> Path:
    """The consoles' keys, and the file that names them."""
    file = folder / "keys.toml"
    file.write_text(KEYS)
    (folder / "desk.key").write_bytes(b"d" * 32)
    (folder / "wall.key").write_bytes(b"w" * 32)
    return file


def desk_settings(folder: Path, tickets: list[str], **settings: str) -> dict[str, str]:
    """The settings of such a deployment; all of these tickets break the policy's first rule."""
    answers = {name: {"type": "noul", "noul": value} for name, value in BROKEN.items()}
    (folder / "answers.json").write_text(json.dumps(dict.fromkeys(tickets, answers)))
    (folder / "policy.toml").write_text(SUPPORT)
    return {
        "policy": str(folder / "policy.toml"),
        "scorer": f"fixed:{folder / 'answers.json'}",
        "console_keys": str(write_keys(folder)),
        "console_key": "front-desk",
        "policy_poll": "200ms",
        "partitions": "2",
    } | settings


@dataclass
class Desk:
    """What a person at the desk sees and does."""

    deployment: Deployment
    folder: Path
    sent: list[Settlement] = field(default_factory=list)

    @property
    def policy(self) -> Policy:
        return load_policy(self.folder / "policy.toml")

    def key(self, name: str = "front-desk") -> ConsoleKey:
        return load_console_keys(self.folder / "keys.toml")[name]

    def reviews(self, count: int) -> dict[str, ConsumerRecord[bytes, bytes]]:
        """What lies in review, by ticket, once there is so much."""
        return {
            str((record.key or b"").decode()): record
            for record in self.deployment.wait_for_records(count, "review")
        }

    def settlement(
        self,
        lies: ConsumerRecord[bytes, bytes],
        action: Action = Action.ACCEPT,
        labels: tuple[str, ...] = RIGHT,
        **changes: Any,
    ) -> Settlement:
        """What the console makes of a press, unsigned."""
        record = read(lies)
        now = datetime.now(UTC)
        accepted: dict[str, Any] = {}
        if action is Action.ACCEPT:
            shown = judge_labels(ticket_of(record), frozenset(labels), policy=self.policy, record=record)
            effects = effects_of(shown, record.idempotency_key) if isinstance(shown, Decision) else ()
            accepted = {"labels": labels, "policy": self.policy.hash, "effects": effects_digest(effects)}
        made = Settlement(
            id=str(uuid.uuid4()),
            action=action,
            ticket_id=record.ticket_id,
            key=record.idempotency_key,
            review=Coordinate(lies.topic, lies.partition, lies.offset),
            review_sha256=value_digest(lies.value or b""),
            why="looked at it",
            by="p-1",
            at=now,
            expires_at=now + timedelta(hours=1),
            **accepted,
        )
        return replace(made, **changes)

    def press(self, *settlements: Settlement, key: str = "front-desk") -> None:
        """Sign and send."""
        self.send(*(sign(each, self.key(key)) for each in settlements))

    def send(self, *signed: Settlement) -> None:
        """Send what is signed, or is not."""
        self.sent += signed
        records = [Sent(each.encode(), key=each.ticket_id.encode()) for each in signed]
        self.deployment.send(records, topic="settlements")

    def told(self, count: int) -> dict[str, dict[str, Any]]:
        """What became of settlements, by id, once there is so much."""
        found = [json.loads(each.value or b"") for each in self.deployment.wait_for_records(count, "settled")]
        return {each["id"]: each for each in found}

    def wait_until(self, holds: Callable[[], bool], timeout_s: float = 90) -> None:
        """Wait for a condition."""
        deadline = time.monotonic() + timeout_s
        while not holds():
            if time.monotonic() > deadline:
                raise AssertionError("\n".join(each.log()[-3000:] for each in self.deployment.workers))
            time.sleep(0.1)

    def dispatched(self) -> list[dict[str, Any]]:
        """All in dispatch."""
        return [json.loads(each.value or b"") for each in self.deployment.committed("dispatch")]


def read(lies: ConsumerRecord[bytes, bytes]) -> DecisionRecord:
    """The decision in a record."""
    document = decode(lies.value or b"")
    record = read_decision(document if isinstance(document, dict) else {})
    if not isinstance(record, DecisionRecord):
        raise AssertionError(record)
    return record


def ticket_of(record: DecisionRecord) -> Ticket:
    """The ticket that a record in review carries."""
    found = read_ticket(dict(record.ticket or {}))
    if not isinstance(found, Ticket):
        raise AssertionError(found)
    return found
