"""A batch of dispatched decisions whose effects have to do with one another."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from ticketgate.agents.effects.ledger import Command, Entry, Settlement
from ticketgate.agents.funnel.catalogue import Catalogue
from ticketgate.agents.funnel.evidence import Evidence, World
from ticketgate.agents.funnel.file.funnel_specs import ToolEffect
from ticketgate.codecs import Effect, decode_receipt
from ticketgate.codecs.records.receipt import EffectReceipt, EffectState, EffectStatus
from ticketgate.codecs.verdict import Stage, Status, Verdict
from ticketgate.store.lane_state.witnesses import Witness
from ticketgate.store.tokens import LaneToken
from ticketgate.streams.config.telemetry import Telemetry
from ticketgate.streams.kafka.unknown_errors import InvalidRecord
from ticketgate.streams.lane.taking.contention import KeyLeft
from ticketgate.streams.lane.taking.records import OutputTopics, RecordWriter
from ticketgate.streams.lane.taking.tracing import Untraced
from ticketgate.streams.roles.case_records import ReceiptWriter
from ticketgate.streams.roles.effects import second_look
from ticketgate.streams.roles.effects.effect_taker import EffectTaker
from ticketgate.streams.roles.effects.second_look import SecondLook

from ...codecs import test_decision
from ...support.effects import LANE, Scene, order
from ...support.fakes import FakeOutput, FakeUnderWays, record
from ...support.funnel import PAYMENTS
from ...support.funnel_records import ACCEPTED, case_decision

TOPICS = OutputTopics("dispatch", "review", "dead-letter", "repairs", "receipts", "settled")


async def now() -> datetime:
    return datetime(2026, 9, 1, tzinfo=UTC)


async def mark(token: LaneToken, offset: int, witness: Witness | None) -> None:
    """Nothing reads it here."""


def effect(amount: str = "600.00", key: str = "k1", *confirmations: str) -> Effect:
    return Effect("pay", {"amount_gbp": amount}, key, confirmations)


def stopped(*effects: Effect) -> bytes:
    """A case whose second look says no, for there is no catalogue to judge it by."""
    return case_decision(effects=effects).encode()


def passed(*effects: Effect) -> bytes:
    """What a policy asks for, at which nobody looks twice."""
    return test_decision.record(effects=effects, verdict=ACCEPTED, violations=()).encode()


class Desk:
    """A taker at a bank, and what it told."""

    def __init__(self, catalogue: Catalogue | None = None, evidences: Any = None) -> None:
        self.scene, self.output = Scene(), FakeOutput()
        self.telemetry = telemetry = Telemetry()
        self.taker = EffectTaker(
            tools={
                "pay": ToolEffect(provider="bank", contribution="none", consequence="costly", automatic=True)
            },
            executor=self.scene.executor,
            second_look=SecondLook(catalogue=catalogue, evidences=evidences, clock=now, telemetry=telemetry),
            note=FakeUnderWays().note,
            mark_committed=mark,
            receipts=ReceiptWriter(TOPICS, 1_000_000),
            writer=RecordWriter(TOPICS, 1_000_000, dispatch_with_ticket=False),
            telemetry=telemetry,
            max_bytes=1_000_000,
            tracing=Untraced(),
        )

    async def take(self, *values: bytes | None, first: int = 0) -> int:
        records: list[Any] = [record(first + place, value) for place, value in enumerate(values)]
        return await self.taker.take(records, token=LANE, output=self.output)

    def told(self) -> list[tuple[int | None, EffectState, EffectStatus | None]]:
        """The offset that asked, the state and the status of each receipt, in the order of the commits."""
        receipts = [
            decode_receipt(each.value)
            for records, _ in self.output.committed
            for each in records
            if each.topic == "receipts"
        ]
        return [
            (each.source and each.source.offset, each.effect_state, each.status)
            for each in receipts
            if isinstance(each, EffectReceipt)
        ]


P, R, C = EffectState.PREPARED, EffectState.REJECTED, EffectState.COMMITTED


async def test_what_was_stopped_leaves_its_key_to_the_next_record_in_whichever_batch_that_is() -> None:
    told = []
    for batches in (
        [(stopped(effect()), passed(effect("500.00")))],
        [(stopped(effect()),), (passed(effect("500.00")),)],
    ):
        desk = Desk()
        first = 0
        for batch in batches:
            first = await desk.take(*batch, first=first)
        assert first == 2
        assert [each.arguments for each in desk.scene.bank.transfers] == [{"amount_gbp": "500.00"}]
        told.append(desk.told())

    assert told[0] == told[1] == [(0, P, None), (0, R, None), (1, P, None), (1, C, EffectStatus.CREATED)]


async def test_an_effect_asked_for_twice_in_a_batch_is_told_to_the_second_as_it_stands() -> None:
    desk = Desk()

    await desk.take(
        passed(effect()), b"no decision", passed(effect(), effect(key="k2")), passed(effect(key="k3"))
    )

    assert desk.scene.bank.sent == ["k1", "k2", "k3"]
    assert desk.told()[:3] == [(0, P, None), (0, C, EffectStatus.CREATED), (2, P, None)]
    assert (2, C, EffectStatus.REPLAYED) in desk.told()
    assert [offset for _, offset in desk.output.committed] == [0, 2, 2, 4]
    assert [
        len([1 for each in records if each.topic == "dead-letter"]) for records, _ in desk.output.committed
    ] == [0, 1, 0, 0]


@pytest.mark.parametrize("is_one_batch", [True, False])
async def test_five_records_with_one_confirmation_have_one_effect(is_one_batch: bool) -> None:
    desk = Desk()
    records = [passed(effect("600.00", f"k{number}", "c1")) for number in range(5)]

    for first in range(0, 5, 5 if is_one_batch else 1):
        await desk.take(*records[first : first + (5 if is_one_batch else 1)], first=first)

    assert desk.scene.bank.sent == ["k0"]
    assert desk.told()[:2] == [(0, P, None), (0, C, EffectStatus.CREATED)]
    # What is not sent is not announced as about to be.
    assert desk.told()[2:] == [(number, R, None) for number in range(1, 5)]
    reviewed = [
        decode_receipt(each.value)
        for sent, _ in desk.output.committed
        for each in sent
        if each.topic == "review"
    ]
    reasons = {each.verdict.reasons for each in reviewed if isinstance(each, EffectReceipt) and each.verdict}
    assert reasons == {("confirmation_spent:by=k0",)}


@pytest.mark.parametrize("is_one_batch", [True, False])
async def test_what_was_stopped_leaves_its_confirmation_to_the_next_record(
    is_one_batch: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    revoked = Verdict(Status.DENY, Stage.AUTHORITY, ("tool_not_delegated",), "no")
    monkeypatch.setattr(second_look, "judge_again", lambda *_, **__: revoked)
    desk = Desk(PAYMENTS, Evident())
    records = [stopped(effect("600.00", "k1", "c1")), passed(effect("600.00", "k2", "c1"))]

    for first in range(0, 2, 2 if is_one_batch else 1):
        await desk.take(*records[first : first + (2 if is_one_batch else 1)], first=first)

    assert desk.scene.bank.sent == ["k2"]
    assert desk.told()[:2] == [(0, P, None), (0, R, None)]


async def test_what_is_left_to_a_person_keeps_its_confirmation() -> None:
    desk = Desk()  # without a catalogue, which is for a person

    await desk.take(stopped(effect("600.00", "k1", "c1")), passed(effect("600.00", "k2", "c1")))

    assert desk.scene.bank.sent == []


async def test_a_batch_that_breaks_off_between_goes_on_behind_what_was_committed() -> None:
    desk = Desk()
    batch = (stopped(effect()), passed(effect()))
    commit = desk.output.commit

    async def breaks_off(records: Any, next_offset: int) -> None:
        if len(desk.output.committed) == 2:
            raise TimeoutError
        await commit(records, next_offset)

    desk.output.commit = breaks_off  # type: ignore[method-assign]
    with pytest.raises(TimeoutError):
        await desk.take(*batch)
    desk.output.commit = commit  # type: ignore[method-assign]
    assert desk.output.committed[-1][1] == 1

    await desk.take(batch[1], first=1)

    assert desk.scene.bank.sent == ["k1"]
    assert desk.told()[-1] == (1, C, EffectStatus.CREATED)


async def test_what_is_no_decision_and_what_has_no_value_is_counted() -> None:
    desk = Desk()

    assert await desk.take(passed(effect()), None, b"no decision", b"{}", None) == 5

    counted = desk.telemetry.expose(is_ready=True)[0].decode()
    for line in (
        'ticketgate_records_total{outcome="tombstone",topic="dispatch"} 2.0',
        'ticketgate_records_total{outcome="malformed",topic="dispatch"} 2.0',
        'ticketgate_records_total{outcome="taken",topic="dispatch"} 1.0',
        'ticketgate_gate_evaluations_total{gate="parse",look="first",outcome="malformed"} 1.0',
        'ticketgate_dead_letter_total{code="not_json"} 1.0',
        'ticketgate_dead_letter_total{code="missing_field"} 1.0',
    ):
        assert line in counted, counted
    assert desk.scene.bank.sent == ["k1"]


class Evident:
    """Says nothing of anybody."""

    async def of(self, proposals: object) -> list[Evidence]:
        return [Evidence(authority=None, world=World())]


async def test_a_case_that_cannot_be_judged_again_is_stopped_and_does_not_stop_the_partition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise RecursionError

    monkeypatch.setattr(second_look, "judge_again", fails)
    desk = Desk(PAYMENTS, Evident())

    assert await desk.take(stopped(effect())) == 1

    assert desk.told() == [(0, P, None), (0, R, None)]
    assert desk.scene.bank.sent == []


async def prepared_elsewhere(desk: Desk) -> Entry:
    """The same payment, prepared by another lane for a record of its own."""
    asked = replace(order(offset=99), command=Command("pay", {"amount_gbp": "600.00"}, "k1"))
    (entry,) = await desk.scene.executor.prepare([asked], token=LANE, claimed=100)
    assert isinstance(entry, Entry)
    return entry


async def test_an_effect_whose_key_another_lane_left_meanwhile_is_taken_once_more_and_paid() -> None:
    desk = Desk()
    elsewhere = await prepared_elsewhere(desk)
    commit = desk.output.commit

    async def meanwhile(records: Any, next_offset: int) -> None:
        desk.output.commit = commit  # type: ignore[method-assign]
        await commit(records, next_offset)
        denied = Settlement(state=R, verdict=Verdict(Status.DENY, Stage.AUTHORITY, ("revoked",), "ask"))
        await desk.scene.executor.stop(elsewhere, denied, token=LANE)

    desk.output.commit = meanwhile  # type: ignore[method-assign]
    with pytest.raises(KeyLeft):
        await desk.take(passed(effect()))
    assert desk.scene.bank.sent == []

    await desk.take(passed(effect()))

    assert desk.scene.bank.sent == ["k1"]
    assert desk.told()[-1] == (0, C, EffectStatus.CREATED)


async def test_what_another_record_has_prepared_is_not_stopped_by_this_ones_second_look() -> None:
    desk = Desk()
    elsewhere = await prepared_elsewhere(desk)

    await desk.take(stopped(effect()))

    assert desk.told()[-1] == (0, R, None)
    paid = await desk.scene.executor.carry_out(elsewhere, token=LANE)
    assert (paid.state, desk.scene.bank.sent) == (C, ["k1"])


async def test_a_record_set_aside_goes_to_dead_letter_and_nothing_of_it_is_begun() -> None:
    desk = Desk()
    records: list[Any] = [record(0, passed(effect())), record(1, passed(effect(key="k2")))]

    await desk.taker.take(
        records, token=LANE, output=desk.output, aside={0: "fault: it fails alone, and others pass"}
    )

    assert desk.scene.bank.sent == ["k2"]
    (letter,) = (each for sent, _ in desk.output.committed for each in sent if each.topic == "dead-letter")
    said = dict(letter.headers)
    assert (said["ticketgate-error-code"], said["ticketgate-content"]) == (b"set_aside", b"digest")
    assert said["ticketgate-coordinate"] == b"tickets:0:0"
    assert desk.output.committed[-1][1] == 2


async def test_what_was_sent_before_its_record_was_set_aside_is_not_sent_again() -> None:
    """Narrowing takes a record again and again; the ledger has what was sent of it."""
    desk = Desk()
    commit = desk.output.commit

    async def fails_after_sending(records: Any, next_offset: int) -> None:
        if desk.scene.bank.sent:
            raise InvalidRecord
        await commit(records, next_offset)

    desk.output.commit = fails_after_sending  # type: ignore[method-assign]
    for _ in range(3):
        with pytest.raises(InvalidRecord):
            await desk.take(passed(effect()))
    desk.output.commit = commit  # type: ignore[method-assign]

    await desk.taker.take(
        [record(0, passed(effect())), record(1, passed(effect(key="k2")))],
        token=LANE,
        output=desk.output,
        aside={0: "record_refused"},
    )

    assert desk.scene.bank.sent == ["k1", "k2"]
