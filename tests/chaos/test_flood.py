"""A flood at the web port of a worker with 256 descriptors, and every ticket decided."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from .flood import run

pytestmark = [pytest.mark.chaos, pytest.mark.kafka, pytest.mark.redis]


def test_a_flood_keeps_no_ticket_and_no_probe_waiting() -> None:
    report = run()

    print(json.dumps(asdict(report)))
    assert report.is_clean, report
