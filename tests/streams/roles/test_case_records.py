"""An effect's receipt on the wire: whole, or as much of it as the limit takes, and then it says what is missing."""

from __future__ import annotations

from dataclasses import replace

from ticketgate.codecs import EffectReceipt, JudgedAgain, decode_receipt
from ticketgate.streams.lane.taking.records import OutputTopics, size
from ticketgate.streams.lane.transaction import Outgoing
from ticketgate.streams.roles.case_records import LEFT_OUT, MOST_REASONS, ReceiptWriter

from ...support.funnel_records import AT, STANDING, STOPPED, effect_receipt

TOPICS = OutputTopics("dispatch", "review", "dead-letter", "repairs", "receipts", "settled")
SMALL = 2_000
LARGE = JudgedAgain({"authority": None, "world": {"facts": {"text": "x" * SMALL}}}, AT)


def written(receipt: EffectReceipt, max_bytes: int = SMALL) -> list[Outgoing]:
    return [*ReceiptWriter(TOPICS, max_bytes).effect(receipt)]


def read(sent: Outgoing) -> EffectReceipt:
    receipt = decode_receipt(sent.value or b"")
    assert isinstance(receipt, EffectReceipt), receipt
    return receipt


def test_what_an_effect_was_stopped_on_goes_to_the_receipts_and_to_who_has_to_look() -> None:
    receipt = effect_receipt(**STOPPED)

    sent = written(receipt)

    assert [each.topic for each in sent] == ["receipts", "review"]
    assert [read(each) for each in sent] == [receipt] * 2


def test_evidence_that_is_too_large_is_left_out_and_a_reason_says_so() -> None:
    receipt = effect_receipt(**STOPPED | {"judged_again": LARGE})

    sent = written(receipt)

    told = read(sent[0])
    assert told.judged_again == JudgedAgain(None, AT)
    assert told.verdict is not None
    assert told.verdict.reasons == ("tool_not_delegated", LEFT_OUT)
    assert replace(told, verdict=receipt.verdict, judged_again=LARGE) == receipt
    assert all(size(each) <= SMALL for each in sent)
    # Told again out of a ledger that was rebuilt from it, it says the same.
    assert written(told) == sent


def test_thousands_of_reasons_do_not_lose_the_receipt() -> None:
    many = replace(STOPPED["verdict"], reasons=tuple(f"confirmation_void:{n}" for n in range(1_000)))

    told = read(written(effect_receipt(**STOPPED | {"judged_again": LARGE, "verdict": many}))[0])

    assert told.verdict is not None
    assert len(told.verdict.reasons) == MOST_REASONS + 2
    assert told.verdict.reasons[-2:] == ("and 980 more", LEFT_OUT)


def test_of_an_effect_that_stands_what_was_observed_is_left_out_alone() -> None:
    receipt = effect_receipt(**STANDING | {"state": {"note": "x" * SMALL}})

    assert [read(each) for each in written(receipt)] == [replace(receipt, state={})]
