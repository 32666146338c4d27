"""What ticketgate does with tickets under the benchmark's policy, as a good engineer would write it for that alone.

A pydantic ticket, a key and a fingerprint, the keys claimed in Redis by one script a batch, the same fixed answers or
the same model, the same three rules in plain Python, the same decision record by orjson.
"""

import hashlib
import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import orjson
import redis
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

CLAIM = """
local found = {}
for i, key in ipairs(KEYS) do
  found[i] = redis.call('SET', key, ARGV[i + 1], 'NX', 'GET', 'PX', ARGV[1]) or ''
end
return found
"""
TTL_MS = 14 * 86_400_000
NEXT_STEP = (
    "the effects may be carried out: the policy's rules hold, which does not say that the labels are right"
)
REVIEW_STEP = "a person decides; the labels were not changed"
POLICY = {"name": "support", "version": "1", "hash": "0" * 64}
MODEL = {"id": "fixed", "hash": "0" * 64}


class Ticket(BaseModel):
    """A ticket on the wire."""

    model_config = ConfigDict(strict=True, extra="forbid")

    id: Annotated[str, Field(min_length=1, max_length=256)]
    state: str | dict[str, Any] | list[Any]
    tenant: str = ""
    attributes: dict[str, Any] = Field(default_factory=dict)


class Record(NamedTuple):
    """A record that came."""

    topic: str
    partition: int
    offset: int
    value: bytes
    headers: list[tuple[str, bytes]]


class Made(NamedTuple):
    """A record to send."""

    topic: str
    key: bytes
    value: bytes
    headers: list[tuple[str, bytes]]


class Arrived(NamedTuple):
    """A ticket that came."""

    record: Record
    ticket: Ticket
    key: str
    fingerprint: str
    coordinate: str


class Work:
    """The work on a batch of records."""

    def __init__(self) -> None:
        self._read = TypeAdapter(Ticket).validate_json
        self._namespace = os.environ["RIVAL_GROUP"]
        self._dispatch, self._review = os.environ["RIVAL_DISPATCH"], os.environ["RIVAL_REVIEW"]
        self._claim = redis.Redis.from_url(os.environ["RIVAL_REDIS"]).register_script(CLAIM)
        self._answer = _answering()

    def do(self, records: list[Record]) -> list[Made]:
        """What to send for these records; nothing for a ticket that was sent before."""
        arrived, keys, values = [], [], []
        for record in records:
            try:
                ticket = self._read(record.value)
            except ValidationError:
                continue  # the benchmark sends none; a dead letter would be written here
            key = hashlib.sha256(f"{self._namespace}\0{ticket.tenant}\0{ticket.id}".encode()).hexdigest()
            said = {"attributes": ticket.attributes, "state": ticket.state}
            fingerprint = hashlib.sha256(orjson.dumps(said, option=orjson.OPT_SORT_KEYS)).hexdigest()
            coordinate = f"{record.topic}:{record.partition}:{record.offset}"
            arrived.append(Arrived(record, ticket, key, fingerprint, coordinate))
            keys.append(f"{self._namespace}:claim:{key}")
            values.append(f"{coordinate}:{fingerprint}")
        if not arrived:
            return []
        owners = self._claim(keys=keys, args=[TTL_MS, *values])
        owned = [
            each
            for each, owner, value in zip(arrived, owners, values, strict=True)
            if not owner or owner == value.encode()
        ]
        answers = self._answer([each.ticket for each in owned]) if owned else []
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return [self._decided(each, its, now) for each, its in zip(owned, answers, strict=True)]

    def _decided(self, arrived: Arrived, answers: dict[str, Any], now: str) -> Made:
        record, ticket, key, fingerprint, coordinate = arrived
        chances = {name: answer["noul"] for name, answer in answers.items()}
        selected = {name for name, chance in chances.items() if chance >= 0.5}
        broken = _broken(selected)
        tools = []
        if not broken and "billing" in selected:
            tools.append(("assign_queue", {"queue": "billing"}, 0))
        if not broken and "auto_reply" in selected:
            tools.append(("send_reply", {"template": "received"}, 1))
        made = {
            "schema": "decision/1",
            "ticket_id": ticket.id,
            "tenant": ticket.tenant,
            "verdict": {
                "status": "review" if broken else "accept",
                "stage": "policy",
                "reasons": [each["message"] for each in broken],
                "next_step": REVIEW_STEP if broken else NEXT_STEP,
            },
            "selected": sorted(selected),
            "violations": broken,
            "probabilities": chances,
            "answers": answers,
            "policy": POLICY,
            "model": MODEL,
            "effects": [
                {
                    "tool": tool,
                    "arguments": arguments,
                    "idempotency_key": hashlib.sha256(f"{key}\0{place}".encode()).hexdigest(),
                }
                for tool, arguments, place in tools
            ],
            "idempotency_key": key,
            "fingerprint": fingerprint,
            "coordinate": {"topic": record.topic, "partition": record.partition, "offset": record.offset},
            "decided_at": now,
        }
        if broken:
            made["ticket"] = ticket.model_dump(exclude_defaults=True)
        headers = [
            *record.headers,
            ("ticketgate-idempotency-key", key.encode()),
            ("ticketgate-fingerprint", fingerprint.encode()),
            ("ticketgate-coordinate", coordinate.encode()),
            ("ticketgate-schema", b"decision/1"),
        ]
        return Made(
            self._review if broken else self._dispatch, ticket.id.encode(), orjson.dumps(made), headers
        )


def _answering() -> Callable[[list[Ticket]], list[dict[str, Any]]]:
    """Who answers: the model of a folder, or a file."""
    if "RIVAL_MODEL" in os.environ:
        from same_model import Model  # pyright: ignore[reportMissingImports]

        model = Model(Path(os.environ["RIVAL_MODEL"]))
        return lambda tickets: model.answer([str(ticket.state) for ticket in tickets])
    answers = json.loads(Path(os.environ["RIVAL_ANSWERS"]).read_text())
    return lambda tickets: [answers[ticket.id] for ticket in tickets]


def _broken(selected: set[str]) -> list[dict[str, str]]:
    """The rules that an assignment breaks."""
    broken = []
    if "urgent" in selected and "review" not in selected:
        broken.append({"rule": "urgent-review", "message": "urgent needs review"})
    if "review" in selected and "auto_reply" in selected:
        broken.append({"rule": "review-auto_reply", "message": "review excludes auto_reply"})
    if ("billing" in selected) == ("technical" in selected):
        broken.append({"rule": "one-route", "message": "exactly one of billing and technical"})
    return broken
