"""The machine is worth something only if it catches a protocol that lacks a rule. Each mutant lacks one."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from .invariants import Violated
from .lane_model import AS_BUILT, Protocol, without
from .machine import Deliveries, DeliveriesWithLosses, machine

# The same interleavings each time, and no shrinking: that it fails is all that is asked.
bounded = settings(
    max_examples=4_000,
    stateful_step_count=40,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow],
)

MUTANTS: list[tuple[str, type[Deliveries]]] = [
    ("fences", Deliveries),
    ("reads_after_fence", Deliveries),
    ("claims_for_coordinate", Deliveries),
    ("reopens_after_failure", Deliveries),
    ("compares_marks", DeliveriesWithLosses),
    ("journals_before_moving", Deliveries),
    ("takes_over_by_compare", Deliveries),
    ("voids_before_first_commit", Deliveries),
    ("compares_every_partition", DeliveriesWithLosses),
    ("marks_commit_at_once marks_at_opening", DeliveriesWithLosses),
    ("sends_once", Deliveries),
    ("reopens_whole", Deliveries),
    ("hands_over", DeliveriesWithLosses),
]


def _fails(protocol: Protocol, kind: type[Deliveries], within: settings) -> None:
    with pytest.raises(Violated) as violated:
        run_state_machine_as_test(machine(protocol, kind), settings=within)
    print(violated.value)


@pytest.mark.parametrize(("rule", "kind"), MUTANTS, ids=[rule for rule, _ in MUTANTS])
def test_the_machine_fails_without_the_rule(rule: str, kind: type[Deliveries]) -> None:
    _fails(without(*rule.split()), kind, bounded)


@pytest.mark.parametrize("kind", [Deliveries, DeliveriesWithLosses])
def test_the_machine_fails_for_the_protocol_as_first_built(kind: type[Deliveries]) -> None:
    _fails(AS_BUILT, kind, bounded)
