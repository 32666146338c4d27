"""Exactly once under a storm of faults, on real brokers and a real Redis. About two and a half minutes a run."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from .payments import run as run_payments
from .run import run

pytestmark = [pytest.mark.chaos, pytest.mark.kafka, pytest.mark.redis]


@pytest.mark.parametrize(("seed", "brokers"), [(1, 1), (2, 1), (3, 1), (4, 1), (5, 1), (6, 3)])
def test_a_storm_of_faults_repeats_nothing_and_loses_nothing(seed: int, brokers: int) -> None:
    report = run(seed=seed, tickets=20_000, brokers=brokers)

    print(json.dumps(asdict(report)))
    assert sum(report.faults.values()) >= 30
    assert report.is_clean, report


@pytest.mark.parametrize(("seed", "brokers"), [*((seed, 1) for seed in range(1, 10)), (10, 3)])
def test_a_network_that_holds_cuts_and_delays_repeats_nothing_and_loses_nothing(
    seed: int, brokers: int
) -> None:
    report = run(seed=seed, tickets=20_000, brokers=brokers, has_network=True)

    print(json.dumps(asdict(report)))
    assert sum(report.faults.values()) >= 30
    assert sum(report.requests.values()) >= 50
    assert report.is_clean, report


@pytest.mark.parametrize(
    ("seed", "has_network"), [(1, False), (2, False), (3, False), (4, True), (5, True), (6, True)]
)
def test_a_storm_while_people_settle_gives_each_settled_ticket_one_effect(
    seed: int, has_network: bool
) -> None:
    report = run(seed=seed, tickets=20_000, brokers=1, has_network=has_network, settled_share=0.1)

    print(json.dumps(asdict(report)))
    assert report.settling is not None
    assert sum(report.faults.values()) >= 30
    assert report.settling.tickets >= 800
    assert min(report.settling.already_settled, report.settling.replayed, report.settling.void) >= 20
    assert report.is_clean, report


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_storm_over_workers_of_two_processes_repeats_nothing_and_leaves_nothing(seed: int) -> None:
    report = run(seed=seed, tickets=20_000, brokers=1, processes=2)

    print(json.dumps(asdict(report)))
    assert report.faults["kill_worker"] >= 1
    assert report.faults["kill_child"] >= 1
    assert report.is_clean, report


def test_a_storm_over_the_funnel_through_such_a_network_makes_no_transfer_twice() -> None:
    report = run_payments(seed=1, cases=1_000, has_network=True)

    print(json.dumps(asdict(report)))
    assert sum(report.faults.values()) >= 30
    assert report.requests
    assert report.is_clean, report


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_storm_over_the_funnel_makes_no_transfer_twice_and_leaves_none_untold(seed: int) -> None:
    report = run_payments(seed=seed, cases=1_000)

    print(json.dumps(asdict(report)))
    assert sum(report.faults.values()) >= 30
    assert sum(report.bank_faults.values()) >= 300
    assert report.is_clean, report
