"""`produce` and `consume` on a real broker."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import struct
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.producer.message_accumulator import BatchBuilder
from aiokafka.record.util import calc_crc32c
from ticketgate.streams.config.settings import load_settings
from ticketgate.streams.kafka.connection import connection_of
from ticketgate.streams.kafka.reading.topic_reading import read_whole
from ticketgate.streams.parts.kafka import Kafka

from tests.streams.cli.conftest import Run, command, process

pytestmark = pytest.mark.kafka

# A reader that races with aiokafka's own look-up of a position stands at the end in one of six readings.
READINGS = 20

RECORDS: list[dict[str, Any]] = [
    {"key": "T-1", "value": {"id": "T-1", "state": "é"}},
    {"key": None, "value_text": '{ "id": "T-2" }', "value": {"id": "T-2"}},
    {"key": "gone", "value": None},
    {"key": None, "value": None},
    {"key": "", "value_text": ""},
    {"key_base64": "//4=", "value_base64": base64.b64encode(bytes(range(256))).decode()},
    {"key": "n", "value": None, "value_text": "null"},
    {"key": "m", "value_text": "{not json"},
    {
        "key": "h",
        "value": [1, 2.5, "x"],
        "headers": [["a", "text"], ["a", {"base64": "/w=="}], ["a", None], ["ticketgate-x", ""]],
        "timestamp_ms": 1_700_000_000_123,
    },
]


def write(path: Path, lines: Sequence[object]) -> Path:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def bodies(records: list[Any]) -> list[Any]:
    """What does not hang on the topic, in the order of partitions and offsets."""
    ordered = sorted(records, key=lambda each: (each["partition"], each["offset"]))
    return [{name: each[name] for name in each if name not in ("topic", "offset")} for each in ordered]


@asynccontextmanager
async def admin(kafka: Kafka) -> AsyncIterator[AIOKafkaAdminClient]:
    client = AIOKafkaAdminClient(bootstrap_servers=kafka.bootstrap)
    await client.start()
    try:
        yield client
    finally:
        await client.close()


def new_topic(kafka: Kafka, *, partitions: int = 3, **config: str) -> str:
    name = f"records-{uuid4().hex[:8]}"

    async def create() -> None:
        async with admin(kafka) as client:
            await client.create_topics([NewTopic(name, partitions, 1, topic_configs=config)])

    asyncio.run(create())
    return name


def test_records_of_every_kind_survive_consume_and_produce_byte_for_byte(
    tickets: str, broker: Kafka, ticketgate: Run, tmp_path: Path
) -> None:
    copy = new_topic(broker)
    sent = ticketgate("produce", "--unchecked", write(tmp_path / "records.jsonl", RECORDS))
    first = ticketgate("consume", tickets)

    copied = process("produce", "-", "--topic", copy, given=first.out)
    second = ticketgate("consume", copy)

    assert sent.err.startswith(f"sent {len(RECORDS)} records to {tickets} in ")
    assert copied.err.startswith(f"sent {len(RECORDS)} records to {copy} in ")
    assert (sent.code, first.code, copied.code, second.code) == (0, 0, 0, 0)
    assert bodies(first.lines) == bodies(second.lines)
    found = [
        {name: each.get(name) for name in expected}
        for expected in RECORDS
        for each in first.lines
        if all(each.get(name, ...) == value for name, value in expected.items())
    ]
    assert found == RECORDS


def test_a_bare_ticket_goes_out_under_its_id_and_is_read_back_as_it_stood(
    tickets: str, ticketgate: Run, tmp_path: Path
) -> None:
    text = '{"id":  "T-9", "state": "white space"}'
    (tmp_path / "t.jsonl").write_text(f"{text}\n\n")

    ticketgate("produce", tmp_path / "t.jsonl")

    (record,) = ticketgate("consume", tickets).lines
    assert (record["key"], record["value_text"], record["value"]["id"]) == ("T-9", text, "T-9")
    assert ticketgate("consume", tickets, "--values").out == f"{text}\n".encode()


def test_raw_lines_go_out_as_they_stand_without_a_key(tickets: str) -> None:
    lines = [b'{"id":"a","id":"b"}', b"", b"\xff not json", b" [1] \r"]

    sent = process("produce", "-", "--raw", "--json", given=b"\n".join(lines) + b"\n")

    assert (sent.code, sent.lines[0]["sent"]) == (0, 4)
    shown = process("consume", tickets, "--values")
    assert sorted(shown.out.removesuffix(b"\n").split(b"\n")) == sorted(lines)


def test_a_bad_line_in_a_file_sends_nothing(tickets: str, ticketgate: Run, tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"id":"T-1","state":"x"}\n{"id":"T-2",\n')

    ran = ticketgate("produce", tmp_path / "t.jsonl")

    assert ran.code == 2
    assert ran.err.startswith(f"ticketgate: {tmp_path / 't.jsonl'}:2: ")
    assert ran.err.endswith("--raw sends lines as they are; nothing was sent\n")
    assert ticketgate("consume", tickets).out == b""


def test_a_bad_line_on_standard_input_says_how_many_went_before(tickets: str) -> None:
    ran = process("produce", "-", given=b'{"id":"T-1","state":"x"}\n7\n{"id":"T-2","state":"x"}\n')

    assert ran.code == 2
    assert ran.err.startswith("ticketgate: standard input:2: neither a ticket nor an envelope")
    assert ran.err.endswith("; sent before it: 1 record; go on with --from-line 2\n")
    assert [each["key"] for each in process("consume", tickets).lines] == ["T-1"]


PROPOSAL = (
    '{"case_id": "C-1", "attempt": 1, "model": {"id": "m"}, "call": "{}",'
    ' "request": {"operation": "pay", "actor_id": "a", "values": {}}}'
)


@pytest.mark.parametrize(
    ("topic", "line", "fault"),
    [
        ("tickets", '{"id": "T-2"}', 'no ticket: "state" is missing'),
        (
            "tickets",
            '{"value": {"id": "T-2", "state": "x", "colour": 1}}',
            'no ticket: unknown field "colour"',
        ),
        ("tickets", PROPOSAL, "no ticket; send it with --topic "),
        ("proposals", '{"case_id": "C-1", "attempt": 1}', "no proposal: "),
        ("proposals", '{"id": "T-2", "state": "x"}', "no proposal; send it with --topic "),
    ],
)
def test_what_no_worker_of_the_topic_reads_is_refused_before_anything_is_sent(
    tickets: str, ticketgate: Run, tmp_path: Path, topic: str, line: str, fault: str
) -> None:
    to = tickets if topic == "tickets" else os.environ["TICKETGATE_TOPIC_PROPOSALS"]
    (tmp_path / "t.jsonl").write_text(f"\n{line}\n")

    ran = ticketgate("produce", tmp_path / "t.jsonl", "--topic", to)
    refused = ticketgate("consume", to)
    unchecked = ticketgate("produce", tmp_path / "t.jsonl", "--topic", to, "--unchecked")

    assert ran.code == 2
    assert ran.err.startswith(f"ticketgate: {tmp_path / 't.jsonl'}:2: {fault}")
    assert ran.err.endswith(", or --unchecked sends it nevertheless; nothing was sent\n")
    assert (refused.out, unchecked.err[:13], unchecked.code) == (b"", "sent 1 record", 0)
    assert len(ticketgate("consume", to).lines) == 1


def test_a_tombstone_and_a_proposal_are_taken_where_workers_read_them(
    tickets: str, ticketgate: Run, tmp_path: Path
) -> None:
    proposals = os.environ["TICKETGATE_TOPIC_PROPOSALS"]
    gone = write(tmp_path / "gone.jsonl", [{"key": "T-1", "value": None}])
    (tmp_path / "p.jsonl").write_text(PROPOSAL)

    sent = [
        ticketgate("produce", gone),
        ticketgate("produce", tmp_path / "p.jsonl", "--topic", proposals),
    ]

    assert [each.code for each in sent] == [0, 0], sent
    assert [each["key"] for each in ticketgate("consume", proposals).lines] == ["C-1"]


def test_a_record_too_large_for_the_broker_does_not_keep_back_the_others(
    broker: Kafka, ticketgate: Run, tmp_path: Path
) -> None:
    topic = new_topic(broker, partitions=1, **{"max.message.bytes": "20000"})
    lines = [{"id": f"T-{n}", "state": "x" * (30_000 if n == 1 else 10)} for n in range(3)]

    ran = ticketgate("produce", write(tmp_path / "t.jsonl", lines), "--topic", topic)

    assert ran.code == 2
    assert f"{tmp_path / 't.jsonl'}:2: refused: MessageSizeTooLargeError" in ran.err
    assert f"sent 2 records to {topic}, 1 refused" in ran.err
    assert [each["key"] for each in ticketgate("consume", topic).lines] == ["T-0", "T-2"]


def test_a_partition_that_is_not_there_is_refused_unless_the_key_places(
    tickets: str, ticketgate: Run, tmp_path: Path
) -> None:
    file = write(tmp_path / "t.jsonl", [{"key": "k", "value": 1, "partition": 9}])

    refused = ticketgate("produce", "--unchecked", file)
    placed = ticketgate("produce", "--unchecked", file, "--by-key")

    assert (refused.code, placed.code) == (2, 0)
    assert f"refused: {tickets} has no partition 9 but 3; drop the field, or say --by-key" in refused.err


def test_a_named_partition_is_the_one_that_gets_the_record(
    tickets: str, ticketgate: Run, tmp_path: Path
) -> None:
    file = write(tmp_path / "t.jsonl", [{"key": "k", "value": n, "partition": n} for n in range(3)])

    sent = ticketgate("produce", "--unchecked", file)

    assert (sent.code, sent.err[:14]) == (0, "sent 3 records")
    assert sorted((each["partition"], each["value"]) for each in ticketgate("consume", tickets).lines) == [
        (0, 0),
        (1, 1),
        (2, 2),
    ]


def test_the_rate_bounds_the_records_a_second(tickets: str, ticketgate: Run, tmp_path: Path) -> None:
    file = write(tmp_path / "t.jsonl", [{"id": f"T-{n}", "state": "x"} for n in range(6)])

    ran = ticketgate("produce", file, "--rate", "10", "--json")

    assert ran.lines[0]["sent"] == 6
    assert ran.lines[0]["seconds"] >= 0.5


@pytest.mark.parametrize("arguments", [("produce", "-"), ("consume", "nowhere")])
def test_an_unknown_topic_names_the_command_that_makes_topics(
    broker: Kafka, arguments: tuple[str, ...]
) -> None:
    ran = process(*arguments, given=b'{"id":"T-1","state":"x"}\n')

    assert ran.code == 2
    assert "has no topic" in ran.err
    assert "`ticketgate topics create`" in ran.err
    assert ran.err.count("\n") == 1


def test_an_empty_topic_is_said_to_be_empty_where_no_record_is_looked_for(
    tickets: str, ticketgate: Run
) -> None:
    ran = ticketgate("consume", tickets)

    assert (ran.code, ran.out, ran.err) == (0, b"", f"no records in {tickets}\n")


# --- which part of a topic ---


@pytest.fixture
def timed(tickets: str, ticketgate: Run, tmp_path: Path) -> str:
    """Ten records a second apart from 2026-01-01, five each in partitions 0 and 1."""
    start = 1_767_225_600_000
    lines: list[object] = [
        {"key": f"{n}", "value": n, "partition": n % 2, "timestamp_ms": start + n * 1_000} for n in range(10)
    ]
    assert ticketgate("produce", "--unchecked", write(tmp_path / "timed.jsonl", lines)).code == 0
    return tickets


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), list(range(10))),
        (("--from", "end"), []),
        (("--from", "2026-01-01T00:00:07Z"), [7, 8, 9]),
        (("--from", "2027-01-01T00:00:00Z"), []),
        (("--until", "2026-01-01T00:00:03Z"), [0, 1, 2]),
        (("--from", "2026-01-01T00:00:02Z", "--until", "2026-01-01T00:00:05Z"), [2, 3, 4]),
        (("--from", "0:3"), [6, 8]),
        (("--from", "0:4,1:4"), [8, 9]),
        (("--from", "1:2", "--until", "1"), [5]),
        (("--from", "2:0"), []),
        (("--until", "0"), []),
    ],
)
def test_a_part_of_a_topic(
    timed: str, ticketgate: Run, arguments: tuple[str, ...], expected: list[int]
) -> None:
    ran = ticketgate("consume", timed, *arguments)

    assert (ran.code, sorted(each["value"] for each in ran.lines)) == (0, expected)
    assert ran.err == ("" if expected else f"no records in that part of {timed}\n")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--from", "0:9"), "partition 0 has offsets 0 to 5, not 9"),
        (("--from", "7:0"), "the topic has no partition 7, but 3"),
        (("--from", "0:1,0:2"), "names a partition twice"),
        (("--from", "yesterday"), "must be beginning, end, PARTITION:OFFSET"),
        (("--until", "-3"), "must be end, a number of records"),
        (("--follow", "--until", "end"), "--follow goes on past any end"),
    ],
)
def test_a_part_that_is_not_there_is_refused(
    timed: str, ticketgate: Run, arguments: tuple[str, ...], reason: str
) -> None:
    ran = ticketgate("consume", timed, *arguments)

    assert (ran.code, ran.out) == (2, b"")
    assert reason in ran.err


def test_what_is_aborted_or_open_is_not_shown_and_not_waited_for(tickets: str, broker: Kafka) -> None:
    async def scenario() -> bytes:
        def producer() -> AIOKafkaProducer:
            return AIOKafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=uuid4().hex)

        async with producer() as ending, producer() as staying:
            async with ending.transaction():
                await ending.send_and_wait(tickets, b'"committed"', partition=0)
            await ending.begin_transaction()
            await ending.send_and_wait(tickets, b'"aborted"', partition=0)
            await ending.abort_transaction()
            await staying.begin_transaction()
            await staying.send_and_wait(tickets, b'"open"', partition=0)
            shown = await asyncio.to_thread(process, "consume", tickets, "--values")
            await staying.abort_transaction()
        assert shown.code == 0
        return shown.out

    assert asyncio.run(scenario()) == b'"committed"\n'


def test_follow_shows_what_comes_and_ends_with_ctrl_c(tickets: str, broker: Kafka) -> None:
    with subprocess.Popen(
        command("consume", tickets, "--follow"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as it:
        assert it.stdout is not None
        assert it.stderr is not None
        process("produce", "-", given=b'{"id":"T-1","state":"x"}\n')
        first = json.loads(it.stdout.readline())
        process("produce", "-", given=b'{"id":"T-2","state":"x"}\n')
        second = json.loads(it.stdout.readline())
        it.send_signal(signal.SIGINT)
        said = it.stderr.read()

    assert (first["key"], second["key"]) == ("T-1", "T-2")
    assert (it.returncode, said.strip()) == (130, b"")


async def test_each_reading_of_whole_topics_begins_at_the_beginning(broker: Kafka) -> None:
    topics = await asyncio.to_thread(lambda: [new_topic(broker, partitions=6) for _ in range(2)])
    connection = connection_of(load_settings({"kafka": broker.bootstrap}, environment={}).settings)
    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
        for n in range(12):
            await producer.send_and_wait(topics[0], b"%d" % n, partition=n % 6)

    counts = [len([record async for record in read_whole(connection, topics)]) for _ in range(READINGS)]

    assert counts == [12] * READINGS


def test_a_reader_that_goes_away_ends_consume_quietly(tickets: str, ticketgate: Run, tmp_path: Path) -> None:
    file = write(tmp_path / "t.jsonl", [{"id": f"T-{n}", "state": "x" * 1000} for n in range(500)])
    ticketgate("produce", file)

    with subprocess.Popen(command("consume", tickets), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as it:
        assert it.stdout is not None
        assert it.stderr is not None
        it.stdout.readline()
        it.stdout.close()
        said = it.stderr.read()

    assert (it.returncode, said) == (0, b"")


def test_ctrl_c_does_not_wait_for_a_line_of_standard_input(tickets: str) -> None:
    with subprocess.Popen(
        command("produce", "-"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as it:
        assert it.stdin is not None
        assert it.stderr is not None
        it.stdin.write(b'{"id":"T-1","state":"x"}\n')
        it.stdin.flush()
        shown = process("consume", tickets, "--follow", "--until", "1")
        it.send_signal(signal.SIGINT)
        said = it.stderr.read()
        it.wait(timeout=20)

    assert shown.lines[0]["key"] == "T-1"
    assert it.returncode == 130
    assert said.strip().endswith(b"interrupted by SIGINT; go on with --from-line 2")


def test_a_broker_that_dies_ends_produce_with_the_line_to_go_on_from(own_kafka: Kafka) -> None:
    topic = new_topic(own_kafka)
    environment = {**os.environ, "TICKETGATE_KAFKA": own_kafka.bootstrap}
    with subprocess.Popen(
        command("produce", "-", "--topic", topic),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    ) as it:
        assert it.stdin is not None
        it.stdin.write(b'{"id":"T-1","state":"x"}\n')
        it.stdin.flush()
        process("consume", topic, "--follow", "--until", "1", "--kafka", own_kafka.bootstrap)
        own_kafka.kill()
        _, said = it.communicate(b'{"id":"T-2","state":"x"}\n', timeout=60)

    assert it.returncode == 4
    assert b"sent 1 record to " in said
    assert b"TICKETGATE_KAFKA: the broker stopped answering at line 2" in said
    assert b"Traceback" not in said


def test_a_header_name_that_is_not_utf8_is_shown_and_not_sent_again(
    broker: Kafka, ticketgate: Run, tmp_path: Path
) -> None:
    topic = new_topic(broker, partitions=2)

    async def send() -> None:
        async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
            await producer.send_and_wait(topic, b'"before"', partition=0)
            await (await producer.send_batch(bad_header_name(producer), topic, partition=0))
            await producer.send_and_wait(topic, b'"behind"', partition=0)
            for _ in range(50):
                await producer.send_and_wait(topic, b'"beside"', partition=1)

    asyncio.run(send())

    shown = ticketgate("consume", topic)
    followed = ticketgate("consume", topic, "--from", "0:0", "--follow", "--until", "3", "--values")
    counted = ticketgate("consume", topic, "--from", "0:1", "--until", "1")
    (tmp_path / "records.jsonl").write_bytes(shown.out)
    again = ticketgate("produce", tmp_path / "records.jsonl", "--topic", new_topic(broker, partitions=2))

    assert [each.code for each in (shown, followed, counted)] == [0] * 3
    assert shown.err == ""
    assert len(shown.lines) == 53
    (bad,) = [each for each in shown.lines if each["value"] == "bad"]
    assert (bad["partition"], bad["offset"], bad["key"]) == (0, 1, "k")
    assert bad["headers"] == [[{"escaped": r"\xff\xfe\xfd\xfc"}, "x"]]
    assert followed.out.splitlines() == [b'"before"', b'"bad"', b'"behind"']
    assert counted.lines == [bad]
    assert again.code == 2
    assert r'refused: the name of header "\\xff\\xfe\\xfd\\xfc" is not UTF-8; drop the header' in again.err
    assert "sent 52 records" in again.err


def bad_header_name(producer: AIOKafkaProducer) -> BatchBuilder:
    """A batch of one record whose header's name is no UTF-8, as other clients can send it."""
    batch = producer.create_batch()
    batch.append(timestamp=None, key=b"k", value=b'"bad"', headers=[("NAME", b"x")])
    data = bytearray(bytes(batch._build()).replace(b"NAME", b"\xff\xfe\xfd\xfc"))
    # The checksum, at 17, is of what stands behind it (Kafka's record batch, version 2).
    data[17:21] = struct.pack(">I", calc_crc32c(bytes(data[21:])))
    batch._buffer = data
    return batch
