"""Batches that nobody can read, as a broken disk leaves them: each stops its lane alone, until a person gives it up."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from aiokafka.record.util import calc_crc32c
from ticketgate.streams.parts.kafka import Kafka
from ticketgate.streams.parts.valkey import Valkey

from ...support.deployment import Deployment, Sent, ticket
from ...support.policies import FIXED_ANSWERS, SEED_POLICY
from ...support.raw_batches import batch, send_batches

pytestmark = [pytest.mark.kafka, pytest.mark.redis]

CHECKSUM_AT, ATTRIBUTES_AT, HEAD = 17, 21, 61


def damaged_checksum(data: bytearray) -> None:
    data[-1] ^= 0xFF


def unknown_codec(data: bytearray) -> None:
    data[ATTRIBUTES_AT + 1] |= 7
    sign(data)


def broken_records(data: bytearray) -> None:
    data[HEAD] ^= 0x02
    sign(data)


def sign(data: bytearray) -> None:
    struct.pack_into(">I", data, CHECKSUM_AT, calc_crc32c(bytes(data[ATTRIBUTES_AT:])))


DAMAGES: list[tuple[Callable[[bytearray], None], str]] = [
    (damaged_checksum, "its checksum does not match its bytes"),
    (unknown_codec, "it is compressed by a codec that nobody knows (7)"),
    (broken_records, "a record"),
]


def damage(segment: Path, place: int, how: Callable[[bytearray], None]) -> bytes:
    """Damage the batch of that place in a segment; its bytes as they are now."""
    data = bytearray(segment.read_bytes())
    start = 0
    for _ in range(place):
        start += 12 + int.from_bytes(data[start + 8 : start + 12], "big")
    end = start + 12 + int.from_bytes(data[start + 8 : start + 12], "big")
    found = data[start:end]
    how(found)
    data[start:end] = found
    segment.write_bytes(data)
    return bytes(found)


def tickets(partition: int, name: str) -> list[Sent]:
    return [ticket(f"{partition}-{name}-{n}") for n in range(3)]


def ids(gate: Deployment) -> set[str]:
    found = [json.loads(each.value or b"")["ticket_id"] for each in gate.committed("dispatch", "review")]
    assert len(found) == len(set(found))
    return set(found)


def test_a_batch_that_nobody_can_read_stops_its_lane_alone_until_it_is_given_up(
    own_kafka: Kafka, valkey: Valkey, tmp_path: Path
) -> None:
    settings = {"POLICY": str(SEED_POLICY), "SCORER": f"fixed:{FIXED_ANSWERS}", "PARTITIONS": "4"}
    with Deployment(own_kafka.bootstrap, valkey.url, tmp_path / "gate", settings) as gate:
        topic = gate.topic("tickets")
        partitions = range(len(DAMAGES) + 1)
        for name in ("before", "broken", "after"):
            send_batches(gate.bootstrap, topic, [(p, batch(tickets(p, name))) for p in partitions])
        own_kafka.stop()
        broken = [
            damage(tmp_path / f"kafka/data/{topic}-{p}/{0:020}.log", 1, how)
            for p, (how, _) in enumerate(DAMAGES)
        ]
        own_kafka.start()

        worker = gate.start_worker()

        # What stands before it, and the other lane whole.
        healthy = len(DAMAGES)
        expected = {t.key.decode() for p in partitions for t in tickets(p, "before") if t.key}
        expected |= {t.key.decode() for name in ("broken", "after") for t in tickets(healthy, name) if t.key}
        gate.wait_for_records(len(expected), "dispatch", "review")
        seen = worker.wait_for(lambda state: json.dumps(state).count("cannot be read") == len(DAMAGES))
        worker.wait_for_metric(len(DAMAGES), "ticketgate_unreadable_batches")
        assert ids(gate) == expected
        for partition, (_, reason) in enumerate(DAMAGES):
            said = json.dumps(seen)
            assert f"the batch at {topic}:{partition}:3 to 5 cannot be read: {reason}" in said
            assert f"`ticketgate dead-letter skip {topic}:{partition}:3`" in said
            labels = {"partition": str(partition), "first_offset": "3", "last_offset": "5"}
            assert worker.metric("ticketgate_unreadable_batches", topic=topic, **labels) == 1
        assert f"lane {topic}:{healthy}" not in json.dumps(seen["waiting"])

        consumed(gate, topic)
        looked_at(gate, f"{topic}:0:3")
        given_up(gate, len(DAMAGES))

        gate.wait_for_records(len(expected) + 3 * len(DAMAGES), "dispatch", "review")
        worker.wait_ready()
        assert ids(gate) == expected | {
            t.key.decode() for p in range(healthy) for t in tickets(p, "after") if t.key
        }
        worker.wait_for_metric(0, "ticketgate_unreadable_batches")
        worker.wait_for_metric(3 * len(DAMAGES), "ticketgate_records_total", outcome="given_up")
        assert gate.lag() == 0
        letters = {
            dict(each.headers)["ticketgate-coordinate"]: each for each in gate.committed("dead-letter")
        }
        assert sorted(letters) == [f"{topic}:{p}:3".encode() for p in range(healthy)]
        for partition, data in enumerate(broken):
            letter = letters[f"{topic}:{partition}:3".encode()]
            headers = dict(letter.headers)
            assert (letter.value, letter.key) == (data, None)
            assert headers["ticketgate-content"] == b"batch"
            assert headers["ticketgate-error-code"] == b"unreadable_batch"

        # Another worker finds all in order, and a copy of what was given up has its effect.
        assert worker.stop() == 0
        gate.start_worker().wait_ready()
        gate.send(tickets(0, "broken"))
        gate.wait_for_records(len(expected) + 3 * len(DAMAGES) + 3, "dispatch", "review")
        assert {"0-broken-0", "0-broken-1", "0-broken-2"} <= ids(gate)


def consumed(gate: Deployment, topic: str) -> None:
    """`consume` prints what can be read, and names what cannot."""
    healthy = len(DAMAGES)
    shown = gate.run("consume", topic)
    assert shown.returncode == 3
    assert sorted(json.loads(line)["key"] for line in shown.stdout.splitlines()) == sorted(
        f"{p}-{name}-{n}"
        for p in range(healthy + 1)
        for name in ("before", "broken", "after")
        for n in range(3)
        if name != "broken" or p == healthy
    )
    told = sorted(shown.stderr.splitlines())
    assert len(told) == healthy
    for partition, ((_, reason), line) in enumerate(zip(DAMAGES, told, strict=True)):
        assert line.startswith(
            f"ticketgate: the batch at {topic}:{partition}:3 to 5 cannot be read: {reason}"
        )
        assert line.endswith("; reading goes on behind it")
    before = gate.run("consume", topic, "--from", "0:0", "--until", "3")
    assert (before.returncode, before.stderr, before.stdout.count("\n")) == (0, "", 3)


def looked_at(gate: Deployment, coordinate: str) -> None:
    """Without --yes nothing happens; what can be read is refused."""
    looked = gate.run("dead-letter", "skip", coordinate)
    assert looked.returncode == 0, looked.stderr
    assert f"{coordinate} to 5 cannot be read: its checksum" in looked.stdout
    assert "nothing was changed" in looked.stderr
    for offset, reason in ((0, "can be read"), (6, "can be read"), (99, "has offsets 0 to 8, not 99")):
        refused = gate.run("dead-letter", "skip", f"{coordinate.rpartition(':')[0]}:{offset}", "--yes")
        assert refused.returncode == 2
        assert reason in refused.stderr


def given_up(gate: Deployment, partitions: int) -> None:
    """Order it, by any offset in the batch."""
    for partition in range(partitions):
        done = gate.run(
            "dead-letter", "skip", f"{gate.topic('tickets')}:{partition}:{3 + partition}", "--yes", "--json"
        )
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["last_offset"] == 5
