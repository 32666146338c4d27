"""Brokers behind a proxy, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ticketgate.streams.parts.failures import PartMissing
from ticketgate.streams.parts.kafka import Kafka

from ..conftest import KEEPING, require_or_skip
from .kafka_proxy import KafkaProxy

Behind = tuple[Kafka, KafkaProxy]


@pytest.fixture(scope="module")
def behind() -> Iterator[Behind]:
    """A broker, and the proxy before its second listener. A test sets its rule, and leaves none behind."""
    try:
        broker = Kafka(properties=KEEPING)
    except PartMissing as err:
        require_or_skip(err)
    with KafkaProxy(broker) as proxy, broker:
        yield broker, proxy
