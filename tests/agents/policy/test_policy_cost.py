"""Checking a large policy is a trifle beside scoring."""

from __future__ import annotations

from ticketgate.agents.scoring import open_scorer

from tests.bench.policy_cost import ALLOWED_SHARE, large_policy, measure


def test_checking_40_labels_and_60_rules_costs_under_2_percent_of_scoring_the_ticket() -> None:
    cost = measure(large_policy(), open_scorer("onnx"), rounds=100)

    # Processor time, in turn in one run; it was 0.8 % on the machine that it was written on.
    assert cost.share < ALLOWED_SHARE, cost
