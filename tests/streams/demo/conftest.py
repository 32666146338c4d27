"""The sample file's roads under the default model, worked out once."""

from __future__ import annotations

import pytest
from ticketgate.agents.policy import Policy, load_policy
from ticketgate.agents.scoring import open_scorer
from ticketgate.streams.kafka.envelope import Record

from ...support.roads import SAMPLES, Road, read_samples, take_roads


@pytest.fixture(scope="session")
def support() -> Policy:
    """The sample policy of the support desk."""
    return load_policy(SAMPLES / "support.toml")


@pytest.fixture(scope="session")
def records() -> tuple[Record, ...]:
    """The sample records."""
    return read_samples()


@pytest.fixture(scope="session")
def roads(records: tuple[Record, ...], support: Policy) -> tuple[Road, ...]:
    """The road of each sample record."""
    return take_roads(records, policy=support, scorer=open_scorer("onnx"))
