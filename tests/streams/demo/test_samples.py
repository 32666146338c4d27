"""The sample policies and tickets: readable, each record of its kind, and every road of the gate taken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from ticketgate.agents.policy import Policy, load_policy
from ticketgate.agents.workbench.policy.lint import lint
from ticketgate.codecs.verdict import Stage
from ticketgate.streams.kafka.envelope import Record

from ...support.roads import SAMPLES, Road, kind

EVERY_ROAD = {
    ("dispatch", Stage.POLICY),
    ("review", Stage.POLICY),
    ("review", Stage.ANSWERS),
    ("review", Stage.STATE),
    ("review", Stage.IDENTITY),
    ("dead-letter", Stage.PARSE),
    ("dead-letter", Stage.SCHEMA),
    ("replayed", Stage.IDENTITY),
    ("skipped", Stage.PARSE),
}
# What a sample is meant to show, by the first word of its header `sample`, and the road that shows it.
MEANT = {
    "replayed": ("replayed", Stage.IDENTITY),
    "collision": ("review", Stage.IDENTITY),
    "empty": ("review", Stage.STATE),
    "fact": ("review", Stage.ANSWERS),
    "tombstone": ("skipped", Stage.PARSE),
}


@pytest.mark.parametrize("name", ["support.toml", "bank.toml"])
def test_a_sample_policy_loads_and_holds_nothing_that_its_author_cannot_have_meant(name: str) -> None:
    found = lint(load_policy(SAMPLES / name))

    # Rules are there to make pairs impossible, and to want a route of each ticket. Written examples of each question
    # are for who holds a model to them, and not needed to decide.
    meant = {"impossible_pair", "compulsory_label", "examples_missing"}
    assert {finding.code for finding in found.findings} <= meant


def test_there_are_at_least_60_records_and_most_are_tickets_of_several_forms(
    records: Sequence[Record], roads: Sequence[Road]
) -> None:
    states = [road.ticket.state for road in roads if road.ticket]

    assert len(records) >= 60
    assert len(states) >= 60
    assert {type(state) for state in states} == {str, dict, list}
    texts = [" ".join(str(state).split()) for state in states]
    assert min(map(len, texts)) <= 5
    assert sum(len(text.split()) >= 150 for text in texts) >= 3


def test_each_record_that_is_meant_to_show_something_shows_it(
    records: Sequence[Record], roads: Sequence[Road]
) -> None:
    for record, road in zip(records, roads, strict=True):
        what, _, code = kind(record).partition(" ")
        if what == "dead-letter":
            assert (road.to, road.code) == (what, code)
        elif what:
            assert (road.to, road.stage) == MEANT[what], kind(record)
        else:
            assert road.ticket is not None, record.value
            assert road.decision is not None, record.value


def test_an_ordinary_ticket_has_an_id_of_its_own(records: Sequence[Record], roads: Sequence[Road]) -> None:
    ids = Counter(
        road.ticket.id
        for record, road in zip(records, roads, strict=True)
        if road.ticket and not kind(record)
    )

    assert max(ids.values()) == 1


def test_every_road_is_taken_with_the_default_model(roads: Sequence[Road]) -> None:
    taken = Counter((road.to, road.stage) for road in roads)

    assert set(taken) == EVERY_ROAD
    # A demo that accepts nearly all, or nearly nothing, shows little.
    assert 0.4 < taken["dispatch", Stage.POLICY] / len(roads) < 0.75


def test_the_samples_break_rules_of_several_kinds_and_use_every_tool(
    roads: Sequence[Road], support: Policy
) -> None:
    decisions = [road.decision for road in roads if road.decision]

    broken = {violation.rule for decision in decisions for violation in decision.violations}
    assert {"urgent-review", "one-answer", "one-route", "vip-in-person"} <= broken
    used = {effect.tool for decision in decisions for effect in decision.effects}
    assert used == {effect.tool for effect in support.effects}
