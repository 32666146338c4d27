"""The metrics that the runbook lists are those that a worker has."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from prometheus_client import Counter
from ticketgate.streams.config.telemetry import Telemetry

RUNBOOK = (Path(__file__).resolve().parents[3] / "deploy" / "RUNBOOK.md").read_text()
ROW = re.compile(r"^\| `(ticketgate_\w+)` \| ([^|]*)\| [^|]+ \| ([^|]+) \|$", re.MULTILINE)


def test_the_runbook_lists_each_metric_with_its_labels() -> None:
    listed = {name: tuple(re.findall(r"`(\w+)`", labels)) for name, labels, _ in ROW.findall(RUNBOOK)}

    # The registry tells no labels of a metric without a series, so they are had from the metrics themselves.
    metrics: list[Any] = list(Telemetry()._registry._collector_to_names)
    registered = {
        f"{metric._name}_total" if isinstance(metric, Counter) else metric._name: metric._labelnames
        for metric in metrics
    }
    assert listed == registered


def test_what_is_called_seconds_is_in_seconds() -> None:
    units = {name: unit for name, _, unit in ROW.findall(RUNBOOK)}

    assert {name for name, unit in units.items() if unit == "seconds"} == {
        name for name in units if name.endswith("_seconds")
    }
