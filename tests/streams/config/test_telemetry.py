"""The metrics that the runbook lists are those that a worker has."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from ticketgate.codecs.verdict import Stage, Status, Verdict
from ticketgate.streams.config.batch_histogram import BatchHistogram
from ticketgate.streams.config.gate_tally import GateTally
from ticketgate.streams.config.telemetry import Telemetry
from ticketgate.streams.console.console_metrics import ConsoleMetrics

RUNBOOK = (Path(__file__).resolve().parents[3] / "deploy" / "RUNBOOK.md").read_text()
ROW = re.compile(r"^\| `(ticketgate_\w+)` \| ([^|]*)\| [^|]+ \| ([^|]+) \|$", re.MULTILINE)


def test_the_runbook_lists_each_metric_with_its_labels() -> None:
    listed = {name: tuple(re.findall(r"`(\w+)`", labels)) for name, labels, _ in ROW.findall(RUNBOOK)}

    # The registry tells no labels of a metric without a series, so they are had from the metrics themselves.
    registries = (Telemetry()._registry, ConsoleMetrics().registry)
    metrics: list[Any] = [each for registry in registries for each in registry._collector_to_names]
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


def test_a_batch_histogram_exposes_what_the_library_would() -> None:
    values = {"state": [0.0, 0.1, 0.1000001, 0.5, 1.0, 7.25], "policy": [2.0], 'a "quoted" one\n': [0.3]}
    theirs, ours = CollectorRegistry(), CollectorRegistry()
    library = Histogram("took", "Time\nin a gate", ["gate"], buckets=(0.1, 0.5, 1.0), registry=theirs)
    batches = BatchHistogram("took", "Time\nin a gate", "gate", buckets=(0.1, 0.5, 1.0), registry=ours)

    for gate, seconds in values.items():
        for each in seconds:
            library.labels(gate).observe(each)
        batches.observe(gate, seconds[:2])
        batches.observe(gate, iter(seconds[2:]))

    assert _without_times(generate_latest(ours)) == _without_times(generate_latest(theirs))


def _without_times(exposed: bytes) -> list[str]:
    """The lines; of when a series was created, all but the time."""
    lines = exposed.decode().splitlines()
    return [line.rpartition(" ")[0] if line.startswith("took_created") else line for line in lines]


def test_two_histograms_of_one_name_are_refused() -> None:
    registry = CollectorRegistry()
    BatchHistogram("took", "Time", "gate", buckets=(1.0,), registry=registry)

    with pytest.raises(ValueError, match="Duplicated timeseries"):
        Histogram("took", "Time", ["gate"], registry=registry)


def test_gates_of_a_batch_are_counted_and_timed_once_each() -> None:
    telemetry, tally = Telemetry(), GateTally()
    for verdict in (None, None, Verdict(Status.REVIEW, Stage.POLICY, (), "a person decides")):
        tally.observe(Stage.POLICY)(verdict)

    telemetry.gates(tally)

    exposed = telemetry.expose(is_ready=True)[0].decode()
    assert 'ticketgate_gate_evaluations_total{gate="policy",look="first",outcome="pass"} 2.0' in exposed
    assert 'ticketgate_gate_evaluations_total{gate="policy",look="first",outcome="review"} 1.0' in exposed
    assert 'ticketgate_gate_duration_seconds_count{gate="policy"} 3.0' in exposed
