"""Requests of a transaction are sent once; all else of a client is as it was."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import (
    CorrelationIdError,
    IncompatibleBrokerVersion,
    KafkaConnectionError,
    KafkaError,
    NodeNotReadyError,
    RequestTimedOutError,
)
from aiokafka.protocol.metadata import MetadataRequest
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.protocol.transaction import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
)
from ticketgate.streams.kafka.faults import Action
from ticketgate.streams.kafka.one_attempt import Unanswered, allow_one_attempt, unanswered
from ticketgate.streams.lane.recovery import handling

from ...support.fakes import FakeClient

PRODUCE = ProduceRequest(topics=[], required_acks=-1, timeout=1, transactional_id="id")
END = EndTxnRequest("id", 1, 1, True)
OF_A_TRANSACTION = [
    PRODUCE,
    AddPartitionsToTxnRequest("id", 1, 1, []),
    AddOffsetsToTxnRequest("id", 1, 1, "g"),
    TxnOffsetCommitRequest("id", "g", 1, 1, []),
    END,
]


def producer(*raising: BaseException) -> AIOKafkaProducer:
    """A producer whose client raises these in turn, and answers afterwards."""
    return allow_one_attempt(cast("AIOKafkaProducer", SimpleNamespace(client=FakeClient(raising=raising))))


@pytest.mark.parametrize("request_", OF_A_TRANSACTION, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize(
    "err",
    [KafkaConnectionError("cut"), RequestTimedOutError(), CorrelationIdError("out of step"), OSError("gone")],
)
async def test_a_request_of_a_transaction_without_an_answer_ends_them_all(
    request_: Any, err: Exception
) -> None:
    made = producer(err)

    with pytest.raises(Unanswered) as found:
        await made.client.send(1, request_)
    for each in OF_A_TRANSACTION:
        with pytest.raises(Unanswered):
            await made.client.send(1, each)

    assert str(copy.copy(found.value)) == str(found.value)  # aiokafka gives each record one
    assert not isinstance(found.value, KafkaError)  # aiokafka tries again after each of those
    assert str(unanswered(made)) == str(found.value)
    assert handling(found.value).action is Action.REOPEN


@pytest.mark.parametrize("err", [NodeNotReadyError("no connection"), IncompatibleBrokerVersion("too old")])
async def test_what_was_never_written_may_be_tried_again(err: Exception) -> None:
    made = producer(err)

    with pytest.raises(type(err)):
        await made.client.send(1, PRODUCE)

    assert await made.client.send(1, PRODUCE) == "answer"
    assert unanswered(made) is None


@pytest.mark.parametrize("request_", [InitProducerIdRequest("id", 1), MetadataRequest([])])
async def test_what_belongs_to_no_transaction_may_be_tried_again(request_: Any) -> None:
    made = producer(KafkaConnectionError("cut"))

    with pytest.raises(KafkaConnectionError):
        await made.client.send(1, request_)

    assert await made.client.send(1, request_) == "answer"


async def test_after_one_the_client_still_ends_what_belongs_to_no_transaction() -> None:
    made = producer(KafkaConnectionError("cut"))
    with pytest.raises(Unanswered):
        await made.client.send(1, END)

    assert await made.client.send(1, MetadataRequest([])) == "answer"
