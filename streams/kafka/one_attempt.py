"""One attempt a request: a transactional producer's request without an answer is never repeated, and ends its epoch.

aiokafka repeats what was not answered, under the same epoch. But a network may hold the first copy, beyond the end of
its connection, and let it come in a later transaction, which to the broker is as good as its own: an EndTxn commits
half of it, a TxnOffsetCommit sets its offset back. A request cannot be called back; what it comes too late for is a
newer epoch alone.

Promise: once a request of a transaction stays without an answer, this producer sends no other of a transaction, and
what waits for it raises at once; `unanswered` tells why.
Relies on: the fence of the lane's reopening, after which the broker refuses all requests of the old epoch, where it
verifies transactions (broker.py). An answer is an answer, whatever it says: what was answered is not on its way. An
unanswered InitProducerId may be repeated: one that comes late fences whoever is at work, and that one reopens.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.client import ConnectionGroup
from aiokafka.errors import IncompatibleBrokerVersion, NodeNotReadyError
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.protocol.transaction import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    TxnOffsetCommitRequest,
)

_OF_A_TRANSACTION = (
    ProduceRequest,
    AddPartitionsToTxnRequest,
    AddOffsetsToTxnRequest,
    TxnOffsetCommitRequest,
    EndTxnRequest,
)
# Raised before a byte was written: no connection could be made, or the broker does not know the request.
_NOTHING_WRITTEN = (NodeNotReadyError, IncompatibleBrokerVersion)


class Unanswered(Exception):
    """A request of a transaction had no answer, and may yet come: only a newer epoch is safe from it.

    No KafkaError: aiokafka takes each of those for a reason to try again.
    """

    def __init__(self, request: str, err: BaseException) -> None:
        # As its own arguments: aiokafka copies the error for each record, and a copy is made of those.
        super().__init__(request, err)

    def __str__(self) -> str:
        return "{} had no answer ({!r})".format(*self.args)


def allow_one_attempt(producer: AIOKafkaProducer) -> AIOKafkaProducer:
    """The producer, which sends each request of a transaction once. To be called before it starts."""
    producer.client.send = _Once(producer.client.send)
    _log_once()
    return producer


def unanswered(producer: AIOKafkaProducer) -> Unanswered | None:
    """The first request that this producer had no answer to: aiokafka hides it behind errors of its own."""
    send = producer.client.send
    return send.fault() if isinstance(send, _Once) else None


class _Once:
    """In the place of a client's `send`."""

    def __init__(self, send: Callable[..., Awaitable[Any]]) -> None:
        self._send = send
        self._unanswered: tuple[str, Exception] | None = None

    async def __call__(
        self, node_id: int, request: Any, *, group: ConnectionGroup = ConnectionGroup.DEFAULT
    ) -> Any:
        if not isinstance(request, _OF_A_TRANSACTION):
            return await self._send(node_id, request, group=group)
        if (fault := self.fault()) is not None:
            raise fault
        try:
            return await self._send(node_id, request, group=group)
        except _NOTHING_WRITTEN:
            raise
        except Exception as err:
            if (task := asyncio.current_task()) is not None:
                notice(task)  # a cut connection fails several, and aiokafka looks at the first
            name = type(request).__name__.removesuffix("Request")
            self._unanswered = name, err
            raise Unanswered(name, err) from err

    def fault(self) -> Unanswered | None:
        """Made anew each time: aiokafka makes it the cause of its own errors, and an error in its own chain of causes
        cannot be shown."""
        return None if self._unanswered is None else Unanswered(*self._unanswered)


def notice(future: asyncio.Future[Any]) -> None:
    """Whatever becomes of it, asyncio need not complain that nobody asked."""
    future.add_done_callback(lambda done: done.cancelled() or done.exception())


def _is_news(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], Unanswered))


def _log_once() -> None:
    """aiokafka takes it for a fault of its own and logs where it came from; the lane says it in one line."""
    logging.getLogger("aiokafka.producer.sender").addFilter(_is_news)
