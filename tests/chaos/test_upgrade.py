"""A rolling upgrade from the version before, and the way back, in one group and under load."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from .upgrade import WORKERS, HistoryMissing, run

pytestmark = [pytest.mark.chaos, pytest.mark.kafka, pytest.mark.redis]


@pytest.mark.parametrize("seed", [1, 2])
def test_a_rolling_upgrade_under_load_and_the_way_back_repeat_nothing_and_lose_nothing(seed: int) -> None:
    try:
        report = run(seed=seed, tickets=10_000)
    except HistoryMissing as err:
        pytest.skip(str(err))

    print(json.dumps(asdict(report)))
    assert sum(report.faults.values()) == 3 * WORKERS
    assert report.is_clean, report
