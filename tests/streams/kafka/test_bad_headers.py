"""Records with a header name that is not UTF-8, between good ones, compressed in every way."""

from __future__ import annotations

import asyncio
import base64
import json
from collections import defaultdict

import pytest
from aiokafka import AIOKafkaProducer, ConsumerRecord

from ...support.deployment import Deployment, Sent, ticket
from ...support.policies import FIXED_ANSWERS, SEED_POLICY
from ...support.raw_batches import BAD_NAME, CODECS, PLACEHOLDER, batch, send_batches
from ..conftest import NewDeployment

pytestmark = [pytest.mark.kafka, pytest.mark.redis]

# Kafka's own way to say that a record has no time.
NO_TIME = -1

BAD = Sent(
    b'{"id": "bad", "state": "x"}',
    key=b"\x00its key",
    headers=[("first", b"\xff"), (PLACEHOLDER, b"\xfevalue"), (PLACEHOLDER, None), ("null", None)],
)
# As `consume` prints its headers.
BAD_SHOWN = [
    ["first", {"base64": "/w=="}],
    [{"escaped": r"bad\xffname"}, {"base64": base64.b64encode(b"\xfevalue").decode()}],
    [{"escaped": r"bad\xffname"}, None],
    ["null", None],
]


def good(name: str, count: int) -> list[Sent]:
    """Tickets with a header whose value is null, which Kafka allows."""
    return [
        Sent(sent.value, key=sent.key, headers=[("null", None), ("x", b"\xff")])
        for sent in (ticket(f"{name}-{n}") for n in range(count))
    ]


def by_partition(gate: Deployment, *topics: str) -> dict[int, list[ConsumerRecord[bytes, bytes]]]:
    """Records by the partition of their input, in the order of its offsets."""
    found: dict[int, dict[int, ConsumerRecord[bytes, bytes]]] = defaultdict(dict)
    for record in gate.committed(*topics):
        _, partition, offset = dict(record.headers)["ticketgate-coordinate"].decode().rsplit(":", 2)
        assert int(offset) not in found[int(partition)]
        found[int(partition)][int(offset)] = record
    return {partition: [each[offset] for offset in sorted(each)] for partition, each in found.items()}


def ids(records: list[ConsumerRecord[bytes, bytes]]) -> list[str]:
    return [json.loads(record.value or b"")["ticket_id"] for record in records]


def test_every_good_record_comes_out_and_the_bad_one_is_dead_lettered(deploy: NewDeployment) -> None:
    gate = deploy(policy=str(SEED_POLICY), scorer=f"fixed:{FIXED_ANSWERS}", partitions="3", batch_size="4")
    mixed = [(codec, [*good(f"{codec}-before", 6), BAD, *good(f"{codec}-after", 7)]) for codec in CODECS]
    plain = [(codec, good(f"{codec}-other", 9)) for codec in CODECS]
    batches = [(0, batch(records, codec=codec)) for codec, records in mixed]
    batches += [(1, batch(records, codec=codec)) for codec, records in plain]
    batches += [(2, batch([BAD], timestamp_ms=ms)) for ms in (1_600_000_000_000, NO_TIME)]
    send_batches(gate.bootstrap, gate.topic("tickets"), batches)

    worker = gate.start_worker()

    gate.wait_for_records(5 * 13 + 5 * 9, "dispatch", "review")
    gate.wait_for_records(7, "dead-letter")
    decided, dead = by_partition(gate, "dispatch", "review"), by_partition(gate, "dead-letter")
    assert ids(decided[0]) == [
        f"{codec}-{name}-{n}"
        for codec in CODECS
        for name, count in (("before", 6), ("after", 7))
        for n in range(count)
    ]
    assert ids(decided[1]) == [f"{codec}-other-{n}" for codec in CODECS for n in range(9)]
    assert all(("null", None) in record.headers and ("x", b"\xff") in record.headers for record in decided[0])
    assert [len(dead[partition]) for partition in (0, 2)] == [5, 2]
    for record in (*dead[0], *dead[2]):
        assert_kept(record)
    times = [dict(record.headers)["ticketgate-original-timestamp"] for record in dead[2]]
    assert times == [b"1600000000000", b"%d" % NO_TIME]
    assert gate.lag() == 0
    worker.wait_for_metric(7, "ticketgate_dead_letter_total", code="header_not_utf8")
    assert worker.metric("ticketgate_lane_reopens_total") == 0
    assert_shown(gate)


def assert_kept(record: ConsumerRecord[bytes, bytes]) -> None:
    """Value, key and the other headers as they were; the unreadable ones in one of ours."""
    headers = dict(record.headers)
    assert (record.value, record.key) == (BAD.value, BAD.key)
    assert [h for h in record.headers if not h[0].startswith("ticketgate-")] == [
        ("first", b"\xff"),
        ("null", None),
    ]
    assert headers["ticketgate-error-stage"] == b"parse"
    assert headers["ticketgate-error-code"] == b"header_not_utf8"
    assert r"bad\\xffname" in headers["ticketgate-error-reason"].decode()
    kept = json.loads(headers["ticketgate-unreadable-headers"])
    assert [[each and base64.b64decode(each) for each in pair] for pair in kept] == [
        [BAD_NAME, b"\xfevalue"],
        [BAD_NAME, None],
    ]


def assert_shown(gate: Deployment) -> None:
    """`consume` prints them all, the bad ones among them; and so does `dead-letter list` of the topic that it reads."""
    topic = gate.topic("tickets")
    shown = gate.run("consume", topic)
    assert (shown.returncode, shown.stderr) == (0, "")
    lines = [json.loads(line) for line in shown.stdout.splitlines()]
    places = [(line["partition"], line["offset"]) for line in lines]
    assert sorted(places) == [(p, n) for p, count in ((0, 5 * 14), (1, 5 * 9), (2, 2)) for n in range(count)]
    found = [line["headers"] for line in lines if line["key"] == "\x00its key"]
    assert found == [BAD_SHOWN] * 7

    send_batches(gate.bootstrap, gate.topic("dead-letter"), [(0, batch([BAD]))])
    listed = gate.run("dead-letter", "list", "--json")
    assert (listed.returncode, listed.stderr) == (0, "")
    assert [json.loads(line)["headers"] for line in listed.stdout.splitlines()].count(BAD_SHOWN) == 1


def test_an_aborted_transaction_stays_aborted_beside_a_bad_name(deploy: NewDeployment) -> None:
    gate = deploy(policy=str(SEED_POLICY), scorer=f"fixed:{FIXED_ANSWERS}", partitions="1")
    topic = gate.topic("tickets")

    async def transaction(name: str, *, commit: bool) -> None:
        async with AIOKafkaProducer(
            bootstrap_servers=gate.bootstrap, transactional_id=f"{gate.name}-user"
        ) as producer:
            await producer.begin_transaction()
            for sent in good(name, 3):
                await producer.send_and_wait(topic, sent.value, key=sent.key)
            await (producer.commit_transaction() if commit else producer.abort_transaction())

    send_batches(gate.bootstrap, topic, [(0, batch([*good("first", 1), BAD]))])
    asyncio.run(transaction("aborted", commit=False))
    asyncio.run(transaction("committed", commit=True))
    send_batches(gate.bootstrap, topic, [(0, batch([BAD, *good("last", 1)]))])

    worker = gate.start_worker()

    gate.wait_for_records(2, "dead-letter")
    gate.wait_for_records(5, "dispatch", "review")
    worker.wait_ready()
    decided = by_partition(gate, "dispatch", "review")
    assert ids(decided[0]) == ["first-0", "committed-0", "committed-1", "committed-2", "last-0"]
    shown = gate.run("consume", topic, "--values")
    assert shown.returncode == 0
    told = [json.loads(value)["id"] for value in shown.stdout.splitlines()]
    assert told == ["first-0", "bad", "committed-0", "committed-1", "committed-2", "bad", "last-0"]
