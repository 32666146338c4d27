"""The order of a transaction, and that every fault of a producer ends within its bound."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import replace
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError, KafkaError, KafkaTimeoutError
from aiokafka.protocol.transaction import EndTxnRequest
from ticketgate.store.tokens import LaneToken
from ticketgate.streams.kafka.one_attempt import Unanswered
from ticketgate.streams.lane import transaction
from ticketgate.streams.lane.transaction import Outgoing, Transactions

from ...support.fakes import SOURCE, TOKEN, HangsAtCommit, LosesCommitReply, RefusesASend, StrictProducer

RECORDS = [Outgoing("dispatch", b"a", b"1"), Outgoing("review", b"b", b"2")]


def new_token() -> LaneToken:
    """What a lane takes before each opening."""
    return replace(TOKEN, value=secrets.token_hex())


class Lane:
    """Transactions over one kind of producer, and what those did."""

    def __init__(
        self, producer: type[StrictProducer] = StrictProducer, *, commit_timeout_s: float = 5
    ) -> None:
        self.log: list[Any] = []
        self.made: list[StrictProducer] = []

        def new(**options: object) -> StrictProducer:
            self.made.append(producer(self.log, **options))
            return self.made[-1]

        self.output = Transactions(
            source=SOURCE,
            group="g",
            telling=lambda: "told",
            transactional_id="n.tickets.0",
            transaction_timeout_s=60,
            commit_timeout_s=commit_timeout_s,
            new_producer=new,  # type: ignore[arg-type]
        )


async def test_records_and_offset_go_in_one_transaction_in_order() -> None:
    lane = Lane()
    await lane.output.open(new_token())

    await lane.output.commit(RECORDS, 7)

    assert lane.log == [
        "fence",
        "begin",
        ("send", "dispatch", b"1"),
        ("send", "review", b"2"),
        ("offsets", {SOURCE: (7, "told")}, "g"),
        "commit",
    ]
    assert lane.made[0].options["transactional_id"] == "n.tickets.0"


async def test_more_records_than_a_batch_holds_go_in_several_in_order() -> None:
    lane = Lane()
    await lane.output.open(new_token())
    lane.made[0].most_a_batch = 2
    records = [Outgoing(topic, None, b"%d" % n) for n in range(5) for topic in ("dispatch", "review")]

    await lane.output.commit(records, 7)

    sent = [each for each in lane.log if each[0] == "send"]
    for topic in ("dispatch", "review"):
        assert [value for _, to, value in sent if to == topic] == [b"%d" % n for n in range(5)]
    # What opens a partition's part of the transaction comes first, or the broker would be asked for each by itself.
    assert [to for _, to, _ in sent[:4]] == ["dispatch", "dispatch", "review", "review"]


async def test_a_batch_without_records_still_moves_the_offset() -> None:
    lane = Lane()
    await lane.output.open(new_token())

    await lane.output.commit([], 7)

    assert lane.log[-2:] == [("offsets", {SOURCE: (7, "told")}, "g"), "commit"]


async def test_one_failed_send_keeps_the_whole_batch_from_being_committed() -> None:
    lane = Lane(RefusesASend)
    await lane.output.open(new_token())

    with pytest.raises(KafkaTimeoutError):
        await lane.output.commit(RECORDS, 7)

    assert "commit" not in lane.log


async def test_a_lost_reply_is_raised_for_the_outcome_is_unknown() -> None:
    lane = Lane(LosesCommitReply)
    await lane.output.open(new_token())

    with pytest.raises(KafkaTimeoutError):
        await lane.output.commit(RECORDS, 7)


async def test_a_producer_that_raised_is_dropped_and_another_fences() -> None:
    lane = Lane(LosesCommitReply)
    await lane.output.open(new_token())
    with pytest.raises(KafkaTimeoutError):
        await lane.output.commit(RECORDS, 7)

    await lane.output.open(new_token())

    assert len(lane.made) == 2
    assert lane.log[-2:] == ["stop", "fence"]


async def test_a_broker_that_died_holds_neither_the_commit_nor_the_close(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transaction, "CLOSE_TIMEOUT_S", 0.05)
    lane = Lane(HangsAtCommit, commit_timeout_s=0.05)
    await lane.output.open(new_token())

    async with asyncio.timeout(5):
        with pytest.raises(TimeoutError):
            await lane.output.commit(RECORDS, 7)
        await lane.output.close()

    assert lane.log[-1] == "cut"


async def test_cancelling_a_close_cuts_the_connections_all_the_same() -> None:
    lane = Lane(HangsAtCommit)
    await lane.output.open(new_token())
    closing = asyncio.create_task(lane.output.close())
    await asyncio.sleep(0.01)

    closing.cancel()

    with pytest.raises(asyncio.CancelledError):
        await closing
    assert lane.log[-1] == "cut"


async def test_committing_before_the_fence_is_refused() -> None:
    with pytest.raises(RuntimeError, match="must fence first"):
        await Lane().output.commit(RECORDS, 7)


async def test_an_output_that_raised_takes_nothing_more_until_it_is_opened_again() -> None:
    lane = Lane(LosesCommitReply)
    await lane.output.open(new_token())
    with pytest.raises(KafkaTimeoutError):
        await lane.output.commit(RECORDS, 7)

    with pytest.raises(RuntimeError, match="must fence first"):
        await lane.output.commit(RECORDS, 7)


async def test_a_token_opens_an_output_once() -> None:
    lane, token = Lane(LosesCommitReply), new_token()
    await lane.output.open(token)
    with pytest.raises(KafkaTimeoutError):
        await lane.output.commit(RECORDS, 7)

    with pytest.raises(RuntimeError, match="first step"):
        await lane.output.open(token)

    assert len(lane.made) == 1


async def test_a_request_without_an_answer_is_told_where_aiokafka_hides_it() -> None:
    class LosesAnAnswer(StrictProducer):
        async def commit_transaction(self) -> None:
            self.client.raising = [KafkaConnectionError("cut")]
            with pytest.raises(Unanswered):
                await self.client.send(1, EndTxnRequest("id", 1, 1, True))
            raise KafkaError("something went wrong")

    lane = Lane(LosesAnAnswer)
    await lane.output.open(new_token())

    with pytest.raises(Unanswered, match=r"EndTxn had no answer .*cut"):
        await lane.output.commit(RECORDS, 7)
