"""`ticketgate reconcile` and `ticketgate ledger`: what is open, settled by hand or by reading, and rebuilt."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from redis.asyncio import Redis
from ticketgate.agents.effects.adapters.redis import RedisPort
from ticketgate.agents.effects.executor import receipt_of
from ticketgate.agents.effects.ledger import Command, Entry, Order, Settlement
from ticketgate.agents.effects.rules import NO_ANSWER
from ticketgate.codecs.records.decision import DecisionRecord, ModelRef, PolicyRef
from ticketgate.codecs.records.identity import Coordinate, Fingerprint, IdempotencyKey
from ticketgate.codecs.records.pieces import Effect
from ticketgate.codecs.records.receipt import EffectReceipt, EffectState
from ticketgate.codecs.verdict import Stage, Status, Verdict
from ticketgate.store.connect import connect
from ticketgate.store.keys import Keys
from ticketgate.store.lane_state.marks import read_marks
from ticketgate.streams.config.settings import Settings, load_settings
from ticketgate.streams.kafka.connection import connection_of
from ticketgate.streams.kafka.group import set_offsets
from ticketgate.streams.parts.kafka import Kafka
from ticketgate.streams.parts.valkey import Valkey
from ticketgate.streams.roles.effects.effect_ledger import open_ledger

from .conftest import Run

pytestmark = [pytest.mark.kafka, pytest.mark.redis]
T = TypeVar("T")
ARGUMENTS = {"amount_gbp": "600.00"}


@pytest.fixture
def settings(
    broker: Kafka, valkey: Valkey, tickets: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Settings:
    """A deployment with a funnel file whose bank is a Redis hash."""
    funnel = tmp_path / "funnel.toml"
    funnel.write_text(
        f'[providers.bank]\nadapter = "redis"\nprefix = "bank:"\nurl = "{valkey.url}"\n'
        '[tools.pay]\nprovider = "bank"\ncontribution = "none"\nconsequence = "reversible"\nautomatic = false\n'
    )
    monkeypatch.setenv("TICKETGATE_REDIS", valkey.url)
    monkeypatch.setenv("TICKETGATE_NAMESPACE", f"t{uuid4().hex[:8]}")
    monkeypatch.setenv("TICKETGATE_GROUP", f"g{uuid4().hex[:8]}")
    monkeypatch.setenv("TICKETGATE_FUNNEL", str(funnel))
    return load_settings().settings


def with_redis(settings: Settings, use: Callable[[Redis], Awaitable[T]]) -> T:
    async def run() -> T:
        redis = connect(settings.redis.get_secret_value(), timeout=timedelta(seconds=5))
        try:
            return await use(redis)
        finally:
            await redis.aclose()

    return asyncio.run(run())


def order(settings: Settings, key: str = "k1", *, offset: int = 0) -> Order:
    return Order(
        command=Command("pay", ARGUMENTS, key),
        provider="bank",
        subject="T-1",
        source=Coordinate(settings.topic_dispatch, 0, offset),
    )


def leave_open(settings: Settings, key: str = "k1") -> Entry:
    """An effect that was sent, and nothing is known of it."""

    async def send(redis: Redis) -> Entry:
        ledger = open_ledger(settings, redis)
        (entry,) = await ledger.prepare([order(settings, key)], token=None, claimed=0)
        assert isinstance(entry, Entry)
        sent = await ledger.begin_send(entry, verdict=NO_ANSWER, token=None, read_back_in_s=0)
        assert isinstance(sent, Entry)
        return sent

    return with_redis(settings, send)


def prepared_receipt(settings: Settings, key: str, *, offset: int = 0) -> EffectReceipt:
    """The receipt that a lane commits before it sends."""
    from ticketgate.agents.effects.adapters.memory_ledger import LedgerInMemory

    async def prepare() -> EffectReceipt:
        asked = order(settings, key, offset=offset)
        (entry,) = await LedgerInMemory().prepare([asked], token=None, claimed=0)
        return receipt_of(entry)

    return asyncio.run(prepare())


def book(settings: Settings, valkey: Valkey, key: str = "k1") -> None:
    """The effect stands at the bank."""

    async def execute(redis: Redis) -> None:
        port = RedisPort(url=valkey.url, prefix="bank:")
        found = await port.prepare(order(settings, key).command)
        await port.execute(found)  # type: ignore[arg-type]
        await port.close()

    with_redis(settings, execute)


def produce(settings: Settings, topic: str, records: Sequence[tuple[str, bytes]]) -> None:
    async def send() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=settings.kafka)
        await producer.start()
        for key, value in records:
            await producer.send_and_wait(topic, value, key=key.encode(), partition=0)
        await producer.stop()

    asyncio.run(send())


def consume(settings: Settings, topic: str) -> list[dict[str, Any]]:
    async def read() -> list[dict[str, Any]]:
        consumer = AIOKafkaConsumer(
            topic,
            bootstrap_servers=settings.kafka,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
        )
        await consumer.start()
        found: list[dict[str, Any]] = []
        ends = await consumer.end_offsets(consumer.assignment())
        while any([await consumer.position(each) < end for each, end in ends.items()]):
            for records in (await consumer.getmany(timeout_ms=200)).values():
                found += [json.loads(record.value or b"null") for record in records]
        await consumer.stop()
        return found

    return asyncio.run(read())


def decision(key: str) -> bytes:
    """A dispatched decision with one effect."""
    return DecisionRecord(
        ticket_id="T-1",
        tenant="",
        verdict=Verdict(Status.ACCEPT, Stage.POLICY, (), "done"),
        selected=(),
        violations=(),
        probabilities={},
        answers={},
        policy=PolicyRef("p", "1", "0" * 64),
        model=ModelRef("m", "0" * 64),
        effects=(Effect("pay", ARGUMENTS, key),),
        idempotency_key=IdempotencyKey("0" * 64),
        fingerprint=Fingerprint("0" * 64),
        coordinate=Coordinate("tickets", 0, 0),
        decided_at=datetime(2026, 9, 1, tzinfo=UTC),
        ticket=None,
    ).encode()


# --- reconcile --------------------------------------------------------------------------------------------------


def test_nothing_open_is_said_so(settings: Settings, ticketgate: Run) -> None:
    ran = ticketgate("reconcile")

    assert (ran.code, ran.out) == (0, b"nothing is open\n")


def test_what_is_open_is_listed_for_people_and_programs(settings: Settings, ticketgate: Run) -> None:
    leave_open(settings)

    told, data = ticketgate("reconcile"), ticketgate("reconcile", "--json")

    assert (told.code, data.code) == (3, 3)
    assert b"k1" in told.out
    assert b"timeout_and_no_readback" in told.out
    assert b"1 open, the oldest for 0:00:0" in told.out
    (line,) = data.lines
    assert (line["open"], line["effects"][0]["effect_state"]) == (1, "unknown")
    assert line["effects"][0]["is_open"] is True


def test_what_another_version_wrote_is_listed_and_holds_nothing_up(
    settings: Settings, valkey: Valkey, ticketgate: Run
) -> None:
    leave_open(settings)
    leave_open(settings, "k2")
    book(settings, valkey)
    name = Keys(settings.namespace).effect("k2")
    with_redis(settings, lambda redis: redis.hset(name, "state", "of_tomorrow"))

    read, data = ticketgate("reconcile", "--read-back"), ticketgate("reconcile", "--json")
    shown = ticketgate("ledger", "show", "k2")

    assert (read.code, read.err.splitlines()[0]) == (3, "1 read back, 1 settled")
    assert b"k2      unreadable" in read.out
    assert [each["idempotency_key"] for each in data.lines[0]["unreadable"]] == ["k2"]
    assert shown.code == 2
    assert "run the version that wrote it" in shown.err


@pytest.mark.parametrize("flags", [(), ("--all",)])
def test_reading_back_settles_what_stands_and_announces_its_receipt(
    settings: Settings, valkey: Valkey, ticketgate: Run, flags: tuple[str, ...]
) -> None:
    leave_open(settings)
    book(settings, valkey)

    ran = ticketgate("reconcile", "--read-back", "--json", *flags)

    assert (ran.code, ran.err) == (0, "1 read back, 1 settled\n")
    (line,) = ran.lines
    assert (line["open"], line["effects"][0]["status"]) == (0, "verified_by_readback")
    (receipt,) = consume(settings, settings.topic_receipts)
    assert (receipt["effect_state"], receipt["idempotency_key"]) == ("committed", "k1")


def test_reading_back_sends_nothing(settings: Settings, ticketgate: Run) -> None:
    leave_open(settings)

    ran = ticketgate("reconcile", "--read-back")

    assert ran.code == 3
    # It was sent a moment ago, and may be on its way.
    assert b"unknown" in ran.out
    assert with_redis(settings, lambda redis: redis.exists("bank:effects")) == 0


def test_a_person_settles_one_with_a_reason(settings: Settings, ticketgate: Run) -> None:
    leave_open(settings)

    ran = ticketgate(
        "reconcile", "--settle", "k1", "--as", "committed", "--by", "ann", "--reason", "asked the bank"
    )

    assert ran.code == 0
    assert b"ann: asked the bank" in ran.out
    assert ticketgate("reconcile").code == 0
    (receipt,) = consume(settings, settings.topic_receipts)
    assert receipt["status"] == "settled_by_person"
    assert receipt["settled_by"] == {"actor": "ann", "reason": "asked the bank"}


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--settle", "k1"), "needs --as"),
        (("--settle", "k1", "--as", "absent", "--by", " ", "--reason", "x"), "needs --as"),
        (("--by", "ann"), "belong to --settle"),
        (("--all",), "what --read-back reads"),
        (("--read-back", "--settle", "k1"), "one after the other"),
        (("--settle", "k9", "--as", "absent", "--by", "a", "--reason", "r"), "not in the ledger"),
    ],
)
def test_what_makes_no_sense_is_one_line(
    settings: Settings, ticketgate: Run, flags: tuple[str, ...], said: str
) -> None:
    ran = ticketgate("reconcile", *flags)

    assert ran.code == 2
    assert said in ran.err
    assert len(ran.err.splitlines()) == 1


def test_a_namespace_of_another_cluster_is_not_read_back_nor_told_of(
    settings: Settings, ticketgate: Run, valkey: Valkey
) -> None:
    leave_open(settings)
    book(settings, valkey)
    keys = Keys(settings.namespace)

    async def belongs_elsewhere(redis: Redis) -> None:
        await redis.hset(keys.identity, "cluster", "another")

    with_redis(settings, belongs_elsewhere)

    ran = ticketgate("reconcile", "--read-back", "--all")
    by_hand = ticketgate("reconcile", "--settle", "k1", "--as", "committed", "--by", "ann", "--reason", "r")

    assert "belongs to cluster 'another'" in ran.err
    assert "belongs to cluster 'another'" in by_hand.err
    assert ran.code == by_hand.code != 0
    assert consume(settings, settings.topic_receipts) == []
    entry = with_redis(settings, lambda redis: open_ledger(settings, redis).read("k1"))
    assert entry is not None
    # The person's word stands, and who is of that cluster tells of it.
    assert (entry.state, entry.is_told) == (EffectState.COMMITTED, False)


@pytest.mark.parametrize(
    "arguments",
    [
        ("reconcile", "--settle", "\udcff", "--as", "absent", "--by", "ann", "--reason", "r"),
        ("reconcile", "--settle", "k1", "--as", "absent", "--by", "\udcff", "--reason", "r"),
        ("reconcile", "--settle", "k1", "--as", "absent", "--by", "ann", "--reason", "\udcff"),
        ("ledger", "show", "\udcff"),
        ("ledger", "dispatch", "\udcff"),
        ("claims", "show", "\udcff"),
        ("claims", "show", "--ticket", "\udcff"),
        ("claims", "show", "--idempotency-key", "\udcff"),
        ("claims", "show", "--case", "\udcff", "--attempt", "1"),
        ("claims", "show", "--ticket", "t", "--tenant", "\udcff"),
    ],
)
def test_what_is_not_utf8_is_refused_before_anything_is_asked(
    ticketgate: Run, arguments: tuple[str, ...]
) -> None:
    ran = ticketgate(*arguments)

    assert ran.code == 2
    assert "is not UTF-8" in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    "flags",
    [("--read-back",), ("--settle", "k1", "--as", "absent", "--by", "ann", "--reason", "r")],
)
def test_reading_back_and_settling_as_not_done_need_the_funnel_file(
    settings: Settings, ticketgate: Run, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...]
) -> None:
    monkeypatch.delenv("TICKETGATE_FUNNEL")

    ran = ticketgate("reconcile", *flags)

    assert ran.code == 2
    assert "set TICKETGATE_FUNNEL" in ran.err


# --- ledger -----------------------------------------------------------------------------------------------------


def test_an_effect_is_shown(settings: Settings, ticketgate: Run) -> None:
    leave_open(settings)

    assert ticketgate("ledger", "show", "k9").code == 3
    ran = ticketgate("ledger", "show", "k1", "--json")

    assert ran.code == 0
    assert ran.lines[0]["effect"]["effect_state"] == "unknown"


def test_an_effect_is_shown_to_a_person_in_the_words_of_its_record(
    settings: Settings, ticketgate: Run
) -> None:
    leave_open(settings)

    told = ticketgate("ledger", "show", "k1").out.decode().splitlines()

    assert {'arguments: {"amount_gbp": "600.00"}', "status: none", "is open: true"} <= set(told)


def stop(settings: Settings, key: str, *, offset: int = 0) -> None:
    """An effect that was refused before it was sent."""

    async def settle(redis: Redis) -> None:
        ledger = open_ledger(settings, redis)
        (entry,) = await ledger.prepare([order(settings, key, offset=offset)], token=None, claimed=0)
        assert isinstance(entry, Entry)
        no = Verdict(Status.DENY, Stage.AUTHORITY, ("tool_not_delegated",), "no")
        settlement = Settlement(state=EffectState.REJECTED, verdict=no)
        await ledger.settle(entry, settlement, token=None, read_back_in_s=60)

    with_redis(settings, settle)


def test_a_refused_effect_is_dispatched_anew_with_yes_alone(settings: Settings, ticketgate: Run) -> None:
    produce(settings, settings.topic_dispatch, [("T-1", decision("k0")), ("T-1", decision("k1"))])
    stop(settings, "k1", offset=1)

    would = ticketgate("ledger", "dispatch", "k1")
    assert len(consume(settings, settings.topic_dispatch)) == 2
    done = ticketgate("ledger", "dispatch", "k1", "--yes", "--json")

    assert (would.code, would.err) == (0, "nothing was dispatched: add --yes to do it\n")
    assert {"refused: tool_not_delegated", f"record: {settings.topic_dispatch}:0:1"} <= set(
        would.out.decode().splitlines()
    )
    assert (done.code, done.lines[0]["dispatched"]) == (0, f"{settings.topic_dispatch}:0:2")
    again = consume(settings, settings.topic_dispatch)[2]
    assert [each["idempotency_key"] for each in again["effects"]] == ["k1"]


def test_what_is_not_there_was_sent_or_has_lost_its_record_is_not_dispatched_anew(
    settings: Settings, ticketgate: Run
) -> None:
    produce(settings, settings.topic_dispatch, [("T-1", decision("other"))])
    leave_open(settings, "sent")
    stop(settings, "gone", offset=7)
    stop(settings, "elsewhere")

    refusals = [
        ticketgate("ledger", "dispatch", key, "--yes") for key in ("none", "sent", "gone", "elsewhere")
    ]

    assert [each.code for each in refusals] == [2, 2, 2, 2]
    wanted = ("is not in the ledger", "is unknown after it was sent", "no longer at", "no longer at")
    for refused, said in zip(refusals, wanted, strict=True):
        assert said in refused.err
        assert len(refused.err.splitlines()) == 1
    assert len(consume(settings, settings.topic_dispatch)) == 1


def test_a_lost_ledger_is_rebuilt_from_the_receipts_and_its_lanes_open_again(
    settings: Settings, valkey: Valkey, ticketgate: Run
) -> None:
    produce(settings, settings.topic_dispatch, [("T-1", decision("k0")), ("T-1", decision("k1"))])
    told = [prepared_receipt(settings, f"k{place}", offset=place) for place in range(3)]
    records = [(each.idempotency_key, each.encode()) for each in told]
    produce(
        settings, settings.topic_receipts, [*records, ("x", b"no receipt"), ("y", b'{"schema":"other/1"}')]
    )
    asyncio.run(
        set_offsets(
            connection_of(settings),
            f"{settings.group}.effects",
            {TopicPartition(settings.topic_dispatch, 0): 1},
        )
    )
    book(settings, valkey, "k0")

    would = ticketgate("ledger", "rebuild", "--dry-run", "--json")
    done = ticketgate("ledger", "rebuild", "--json")
    again = ticketgate("ledger", "rebuild", "--json")

    # Effect k2's record was never dispatched: it is held, and never sent again.
    assert (would.code, done.code) == (3, 3)
    expected = {
        "receipts": 3,
        "restored": 3,
        "open": 3,
        "present": 0,
        "expired": 0,
        "unreadable": 2,
        "without_record": 1,
        "marks": [{"partition": 0, "to": 1}],
        "gaps": [],
    }
    assert would.lines == [expected | {"dry_run": True}]
    assert done.lines == [expected | {"dry_run": False}]
    assert again.lines[0]["present"] == 3
    keys = Keys(settings.namespace)
    marks = with_redis(settings, lambda redis: read_marks(redis, keys, settings.topic_dispatch, 0))
    assert (marks.claimed, marks.committed) == (1, 1)
    read = ticketgate("reconcile", "--read-back", "--json")
    states = {each["idempotency_key"]: each["effect_state"] for each in read.lines[0]["effects"]}
    # Ages begin anew: what does not stand may, for all that is known, be on its way.
    assert states == {"k0": "committed", "k1": "unknown", "k2": "unknown"}


def test_a_ledger_is_rebuilt_while_a_worker_is_at_work(settings: Settings, ticketgate: Run) -> None:
    async def rebuild() -> Any:
        member = AIOKafkaConsumer(
            settings.topic_dispatch,
            bootstrap_servers=settings.kafka,
            group_id=f"{settings.group}.effects",
        )
        await member.start()
        try:
            await member.getmany(timeout_ms=0)
            return await asyncio.to_thread(ticketgate, "ledger", "rebuild")
        finally:
            await member.stop()

    ran = asyncio.run(rebuild())

    assert ran.code == 0, ran.err


def test_commands_of_effects_start_without_what_they_do_not_need() -> None:
    import subprocess
    import sys

    code = (
        "import sys, ticketgate.streams.cli.operations.reconcile, ticketgate.streams.cli.operations.ledger;"
        "print([n for n in ('faust', 'aiokafka', 'redis', 'onnxruntime') if n in sys.modules])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )

    assert ran.stdout == "[]\n"
