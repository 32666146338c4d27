"""Errors of Kafka brokers that aiokafka does not know, and would pass on as an UnknownError that does not say which."""

from __future__ import annotations

from aiokafka.errors import BrokerResponseError, kafka_errors


class InvalidRecord(BrokerResponseError):  # type: ignore[misc]  # aiokafka has no types
    """The broker's log refuses a record, such as one without a key for a compacted topic."""

    errno = 87
    message = "INVALID_RECORD"
    description = "The broker refuses a record for what it is."


kafka_errors.setdefault(InvalidRecord.errno, InvalidRecord)
