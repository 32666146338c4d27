"""Deployments on the session's broker, with the cases' policy and answers or with the default model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from ticketgate.streams.parts.kafka import Kafka
from ticketgate.streams.parts.valkey import Valkey

from ..support.deployment import Deployment
from ..support.payments import PaymentServer

NewDeployment = Callable[..., Deployment]


@pytest.fixture
def deploy(kafka: Kafka, valkey: Valkey, tmp_path: Path) -> Iterator[NewDeployment]:
    """Makes deployments, each with topics of its own; `deploy(policy=…, scorer=…, **settings)`."""
    with ExitStack() as stack:

        def new(**settings: str) -> Deployment:
            return stack.enter_context(
                Deployment(
                    kafka.bootstrap,
                    valkey.url,
                    tmp_path / "deployment",
                    {k.upper(): v for k, v in settings.items()},
                )
            )

        yield new


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[PaymentServer]:
    """A payment provider that the test may stop, kill and restart."""
    with PaymentServer(tmp_path / "bank") as server:
        yield server
