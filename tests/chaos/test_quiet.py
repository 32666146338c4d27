"""Half an hour in which hardly anything happens, in real time, with the limits that users have."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from .quiet import run

pytestmark = [pytest.mark.chaos, pytest.mark.kafka, pytest.mark.redis]


def test_quiet_hours_and_long_outages_cost_no_worker_its_place() -> None:
    report = run()

    print(json.dumps(asdict(report)))
    assert report.is_clean, report
