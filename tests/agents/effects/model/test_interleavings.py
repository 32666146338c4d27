"""However kills, pauses, losses and repeats fall: one transfer a key, every unknown settled or held.

A machine runs on TICKETGATE_EXAMPLES interleavings (200 unless told), and on 10,000 where its test is marked chaos.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from .machine import Effects, EffectsAtAPlainProvider

some = settings(
    max_examples=int(os.environ.get("TICKETGATE_EXAMPLES", "200")),
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
many = settings(some, max_examples=10_000)

kinds = pytest.mark.parametrize("kind", [Effects, EffectsAtAPlainProvider])


@kinds
def test_the_promises_hold(kind: type[Effects]) -> None:
    run_state_machine_as_test(kind, settings=some)


@pytest.mark.chaos
@kinds
def test_the_promises_hold_however_long(kind: type[Effects]) -> None:
    run_state_machine_as_test(kind, settings=many)
