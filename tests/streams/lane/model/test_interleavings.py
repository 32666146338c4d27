"""However kills, zombies, rebalances, repeats, collisions and losses fall, I1 to I6 hold.

A machine runs on TICKETGATE_EXAMPLES interleavings (200 unless told), and on 10,000 where its test is marked chaos.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from .lane_model import Protocol
from .machine import Deliveries, DeliveriesWithLosses, machine

some = settings(
    max_examples=int(os.environ.get("TICKETGATE_EXAMPLES", "200")),
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
many = settings(some, max_examples=10_000)

kinds = pytest.mark.parametrize("kind", [Deliveries, DeliveriesWithLosses])


@kinds
def test_the_invariants_hold(kind: type[Deliveries]) -> None:
    run_state_machine_as_test(machine(Protocol(), kind), settings=some)


@pytest.mark.chaos
@kinds
def test_the_invariants_hold_however_long(kind: type[Deliveries]) -> None:
    run_state_machine_as_test(machine(Protocol(), kind), settings=many)
