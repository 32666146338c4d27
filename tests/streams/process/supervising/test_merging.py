"""The metrics of several processes as those of one."""

from __future__ import annotations

from collections import Counter as Count

from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from ticketgate.streams.config.telemetry import Telemetry
from ticketgate.streams.process.supervising.merging import GAUGES, MergedMetrics


class Process:
    """What one process counts."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.records = Counter("records", "Records", ["topic"], registry=self.registry)
        self.seconds = Histogram("seconds", "Time", ["step"], buckets=(1, 2), registry=self.registry)
        self.lanes = Gauge("ticketgate_lanes", "Lanes", ["topic"], registry=self.registry)
        self.oldest = Gauge("ticketgate_unknown_outcome_seconds", "Oldest", registry=self.registry)
        self.unknown = Gauge("unheard_of", "Nobody gave it a rule", registry=self.registry)

    @property
    def exposed(self) -> str:
        return generate_latest(self.registry).decode()


def values(merged: MergedMetrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    registry = CollectorRegistry()
    registry.register(merged)
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(generate_latest(registry).decode())
        for sample in family.samples
    }


def test_counters_and_histograms_are_summed_series_by_series() -> None:
    one, two, merged = Process(), Process(), MergedMetrics()
    one.records.labels("a").inc(2)
    two.records.labels("a").inc(3)
    two.records.labels("b").inc(5)
    one.seconds.labels("decide").observe(0.5)
    two.seconds.labels("decide").observe(1.5)
    two.seconds.labels("commit").observe(9)

    merged.take("one", 1, one.exposed)
    merged.take("two", 1, two.exposed)

    found = values(merged)
    assert found["records_total", (("topic", "a"),)] == 5
    assert found["records_total", (("topic", "b"),)] == 5
    decide = [found["seconds_bucket", (("le", le), ("step", "decide"))] for le in ("1.0", "2.0", "+Inf")]
    assert decide == [1, 2, 2]
    assert found["seconds_sum", (("step", "decide"),)] == 2
    assert found["seconds_count", (("step", "commit"),)] == 1


def test_gauges_are_told_by_the_rule_of_each() -> None:
    one, two, merged = Process(), Process(), MergedMetrics()
    for process, lanes, oldest, unknown in ((one, 2, 10, 1), (two, 4, 7, 3)):
        process.lanes.labels("tickets").set(lanes)
        process.oldest.set(oldest)
        process.unknown.set(unknown)

    merged.take("one", 1, one.exposed)
    merged.take("two", 1, two.exposed)

    found = values(merged)
    assert found["ticketgate_lanes", (("topic", "tickets"),)] == 6
    assert found["ticketgate_unknown_outcome_seconds", ()] == 10
    assert found["unheard_of", (("process", "one"),)] == 1
    assert found["unheard_of", (("process", "two"),)] == 3


def test_a_process_that_ended_has_no_gauges_and_keeps_its_counts() -> None:
    one, two, merged = Process(), Process(), MergedMetrics()
    one.records.labels("a").inc(2)
    one.lanes.labels("tickets").set(3)
    two.lanes.labels("tickets").set(3)
    merged.take("one", 1, one.exposed)
    merged.take("two", 1, two.exposed)

    merged.gone("one", 1)
    merged.gone("one", 1)

    found = values(merged)
    assert found["ticketgate_lanes", (("topic", "tickets"),)] == 3
    assert found["records_total", (("topic", "a"),)] == 2


def test_an_answer_of_the_one_before_that_comes_late_changes_nothing() -> None:
    one, successor, merged = Process(), Process(), MergedMetrics()
    one.records.labels("a").inc(2)
    merged.take("one", 1, one.exposed)
    successor.records.labels("a").inc(1)
    merged.take("one", 2, successor.exposed)

    merged.take("one", 1, one.exposed)

    assert values(merged)["records_total", (("topic", "a"),)] == 3


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["count", "ask", "die", "ask and die"]), st.integers(0, 1), st.integers(1, 9)
        ),
        max_size=40,
    )
)
def test_no_counter_goes_back_and_what_was_asked_for_is_in_the_sum(steps: list[tuple[str, int, int]]) -> None:
    merged, processes, numbers = MergedMetrics(), [Process(), Process()], [1, 1]
    # By place: what its processes had counted when they were asked last.
    known: Count[int] = Count()
    ended: Count[int] = Count()
    before: dict[object, float] = {}
    for step, place, count in steps:
        if step == "count":
            processes[place].records.labels("a").inc(count)
        if "ask" in step:
            merged.take(str(place), numbers[place], processes[place].exposed)
            known[place] = int(processes[place].records.labels("a")._value.get())
        if "die" in step:
            ended[place] += known.pop(place, 0)
            processes[place], numbers[place] = Process(), numbers[place] + 1
            if count % 2:
                merged.gone(str(place), numbers[place] - 1)

        found = values(merged)
        assert all(found.get(key, 0) >= value for key, value in before.items())  # type: ignore[call-overload]
        assert found.get(("records_total", (("topic", "a"),)), 0) == sum(known.values()) + sum(ended.values())
        before = {key: value for key, value in found.items() if key[0] == "records_total"}


def test_each_gauge_of_a_worker_has_a_rule() -> None:
    exposed = Telemetry().expose(is_ready=True)[0].decode()
    families = [*text_string_to_metric_families(exposed)]

    gauges = {each.name for each in families if each.type == "gauge" and not each.name.endswith("_created")}

    assert gauges == GAUGES.keys()
