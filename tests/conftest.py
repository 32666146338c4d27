"""What all tests share: the real parts, and the rule that CI may not skip for want of a broker."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import settings
from ticketgate.streams.parts.failures import PartMissing
from ticketgate.streams.parts.kafka import Kafka
from ticketgate.streams.parts.valkey import Valkey

REQUIRE_KAFKA = "REQUIRE_KAFKA"
# Some records of the tests are years old by their timestamps. Half a minute after its start, and then every five
# minutes, a broker would take them away.
KEEPING = {"log.initial.task.delay.ms": "86400000"}

# A run that a shell started in the background ignores Ctrl-C, and all that it starts would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# An example that takes long says that the machine is loaded, and nothing of what is tested.
settings.register_profile("untimed", settings(), deadline=None)
settings.load_profile("untimed")


def _new_kafka(data: Path | None = None) -> Kafka:
    """A broker; where there can be none, the test is skipped, or fails if one is required."""
    try:
        return Kafka(data=data, properties=KEEPING)
    except PartMissing as err:
        require_or_skip(err)


def require_or_skip(err: PartMissing) -> NoReturn:
    """Skip the test for want of a broker, or fail it if one is required."""
    if os.environ.get(REQUIRE_KAFKA):
        pytest.fail(f"{err} (and {REQUIRE_KAFKA} is set)")
    pytest.skip(str(err))


@pytest.fixture(scope="session")
def kafka() -> Iterator[Kafka]:
    """One Apache Kafka for the whole session; tests take topics and groups of their own names."""
    with _new_kafka() as broker:
        yield broker


@pytest.fixture
def own_kafka(tmp_path: Path) -> Iterator[Kafka]:
    """An Apache Kafka that the test may stop, kill and restart."""
    with _new_kafka(tmp_path / "kafka") as broker:
        yield broker


@pytest.fixture
def valkey(tmp_path: Path) -> Iterator[Valkey]:
    """A Valkey that the test may stop, kill and restart."""
    with Valkey(data=tmp_path / "valkey") as server:
        yield server
