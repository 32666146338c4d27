"""Records too large in every way end in review or dead-letter, and a limit above the broker's is refused."""

from __future__ import annotations

import asyncio
import hashlib
import json

import pytest
from aiokafka import AIOKafkaProducer, ConsumerRecord

from ...support.deployment import Deployment, Sent, ticket
from ...support.policies import FIXED_ANSWERS, SEED_POLICY
from ..conftest import NewDeployment

pytestmark = [pytest.mark.kafka, pytest.mark.redis]

# The broker's limit is 1,048,588 for a batch.
ALMOST_THE_BROKERS_LIMIT = 1_045_000


def send(gate: Deployment, records: list[Sent]) -> list[int]:
    """Each in a batch of its own to partition 0, as large as the broker takes them; their offsets."""

    async def run() -> list[int]:
        producer = AIOKafkaProducer(bootstrap_servers=gate.bootstrap, acks="all", max_request_size=2**22)
        async with producer:
            return [
                (
                    await producer.send_and_wait(
                        gate.topic("tickets"), r.value, key=r.key, headers=list(r.headers), partition=0
                    )
                ).offset
                for r in records
            ]

    return asyncio.run(run())


def by_offset(gate: Deployment, *topics: str) -> dict[int, ConsumerRecord[bytes, bytes]]:
    found = {}
    for record in gate.committed(*topics):
        offset = int(dict(record.headers)["ticketgate-coordinate"].rsplit(b":", 1)[1])
        assert offset not in found
        found[offset] = record
    return found


def digest(data: bytes) -> dict[str, object]:
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def enlarge(sent: Sent, size: int, where: str) -> Sent:
    """The same with a key or a header that makes it so many bytes."""
    more = b"k" * (size - len(sent.value or b"") - len(sent.key or b""))
    if where == "key":
        return Sent(sent.value, key=more)
    return Sent(sent.value, key=sent.key, headers=[("x", more), ("small", b"\xff")])


def test_a_record_too_large_in_any_way_ends_in_review_or_dead_letter(deploy: NewDeployment) -> None:
    gate = deploy(policy=str(SEED_POLICY), scorer=f"fixed:{FIXED_ANSWERS}", partitions="1")
    most = ALMOST_THE_BROKERS_LIMIT
    # No record of ours may have more than 1,000,000 bytes, the default.
    fits = Sent(b"v" * 900_000, key=b"fits", headers=[("x", b"\xff")])
    value = Sent(b"v" * most, key=b"value", headers=[("x", b"\xff")])
    bad_key, bad_headers = enlarge(Sent(b"{"), most, "key"), enlarge(Sent(b"{", key=b"h"), most, "headers")
    good_key = enlarge(ticket("good-key"), most, "key")
    good_headers = enlarge(ticket("good-headers"), most, "headers")
    good_both = enlarge(ticket("good-both", "x" * 250_000), 1_010_000, "headers")
    records = [fits, value, bad_key, bad_headers, good_key, good_headers, good_both, ticket("T-1")]

    offsets = send(gate, records)
    worker = gate.start_worker()

    gate.wait_for_records(4, "dispatch", "review")
    dead, decided = by_offset(gate, "dead-letter"), by_offset(gate, "dispatch", "review")
    assert [sorted(dead), sorted(decided)] == [offsets[:4], offsets[4:]]
    assert (dead[0].value, dead[0].key) == (fits.value, b"fits")
    assert (json.loads(dead[1].value or b""), dead[1].key) == (
        {"value": digest(value.value or b"")},
        b"value",
    )
    assert ("x", b"\xff") in dead[1].headers
    for offset, sent in ((2, bad_key), (3, bad_headers)):
        assert dead[offset].key is None
        assert json.loads(dead[offset].value or b"")["key"] == digest(sent.key or b"")
    assert [dict(dead[n].headers).get("ticketgate-content") for n in range(4)] == [None, *[b"digest"] * 3]
    assert [dict(dead[n].headers)["ticketgate-error-code"] for n in range(2)] == [b"too_large"] * 2
    # A good ticket is decided; only what does not fit is left out.
    assert decided[4].key == b"good-key"
    assert json.loads(decided[4].value or b"")["ticket"]["state"] == "My card was charged twice."
    for offset in (5, 6):
        said = json.loads(decided[offset].value or b"")
        assert decided[offset].topic == gate.topic("review")
        assert said["verdict"]["status"] == "review"
        assert "ticket" not in said
    assert gate.lag() == 0
    assert worker.metric("ticketgate_lane_reopens_total") == 0


def test_a_limit_above_the_brokers_own_is_refused_before_anything_is_read(deploy: NewDeployment) -> None:
    gate = deploy(
        policy=str(SEED_POLICY),
        scorer=f"fixed:{FIXED_ANSWERS}",
        partitions="1",
        max_record_bytes="1048589",
    )
    gate.send([ticket("T-1")])

    worker = gate.start_worker()

    seen = worker.wait_for(lambda state: "TICKETGATE_MAX_RECORD_BYTES" in json.dumps(state))
    assert "an output topic takes 1048588" in json.dumps(seen)
    assert gate.committed("dispatch", "review", "dead-letter") == []
    assert gate.lag() == 1
