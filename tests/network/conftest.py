"""Brokers behind a proxy, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest
from ticketgate.streams.embedded.kafka import Kafka
from ticketgate.streams.embedded.process import PartMissing

from ..conftest import KEEPING, require_or_skip
from .kafka_proxy import KafkaProxy

Behind = tuple[Kafka, KafkaProxy]


@contextmanager
def _behind(properties: Mapping[str, str]) -> Iterator[Behind]:
    try:
        broker = Kafka(properties={**KEEPING, **properties})
    except PartMissing as err:
        require_or_skip(err)
    with KafkaProxy(broker) as proxy, broker:
        yield broker, proxy


@pytest.fixture(scope="module")
def behind() -> Iterator[Behind]:
    """A broker, and the proxy before its second listener. A test sets its rule, and leaves none behind."""
    with _behind({}) as found:
        yield found


@pytest.fixture(scope="module")
def unverifying() -> Iterator[Behind]:
    """As `behind`, with a broker that does not ask whether a partition belongs to a transaction."""
    with _behind({"transaction.partition.verification.enable": "false"}) as found:
        yield found
