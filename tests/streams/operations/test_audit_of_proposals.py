"""The accounting of proposals beside tickets, whose outputs lie in the same topics. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from ticketgate.codecs.records.identity import Coordinate
from ticketgate.streams.operations.audit import Missing
from ticketgate.streams.operations.inputs import InputName

from ...support.sample_records import Record, claim_of, dead, decided, effect_receipt, proposed, record, sent
from .test_audit import audit, counts

# What each input has of its own: an accepted record, a reviewed one, one that could not be read.
TICKETS = (sent(0, "A"), sent(1, "B"), record("tickets", 2, b"{"))
PROPOSALS = (proposed(0, "A"), proposed(1, "B"), record("proposals", 2, b"{"))
OUTPUTS = [
    output
    for one, two, bad in (TICKETS, PROPOSALS)
    for output in (decided(one), decided(two, "review"), dead(bad))
]


def test_each_proposal_has_the_outcome_that_its_output_tells() -> None:
    accepted, refused, mended = proposed(0, "A"), proposed(1, "B"), proposed(2, "C")
    bad, tombstone = record("proposals", 3, b"{"), record("proposals", 4, None)
    outputs = [
        decided(accepted),
        decided(refused, "review"),
        decided(mended, "repairs"),
        dead(bad),
    ]

    report = audit([accepted, refused, mended, bad, tombstone], outputs, of="proposals")

    assert counts(report) == {
        "dispatched": 1,
        "review": 1,
        "repairs": 1,
        "dead_letter": 1,
        "skipped": 1,
    }
    assert report.is_clean


def test_each_attempt_at_a_case_is_an_input_of_its_own() -> None:
    first, second, again = proposed(0, "A"), proposed(1, "A", attempt=2), proposed(2, "A", attempt=2)

    report = audit([first, second, again], [decided(first, "repairs"), decided(second)], of="proposals")

    assert counts(report) == {"repairs": 1, "dispatched": 1, "replayed": 1}


def test_an_attempt_that_says_something_else_is_a_collision() -> None:
    one, other = proposed(0, "A"), proposed(1, "A", "[]")
    outputs = [decided(one, "repairs"), decided(other, "review", is_collision=True)]

    assert counts(audit([one, other], outputs, of="proposals")) == {
        "repairs": 1,
        "review": 1,
        "collisions": 1,
    }


def test_a_repair_told_twice_is_a_duplicate_and_one_not_told_is_missing() -> None:
    one, two = proposed(0, "A"), proposed(1, "B")

    report = audit([one, two], [decided(one, "repairs"), decided(one, "dispatch")], of="proposals")

    assert (report.duplicates, report.missing) == (1, 1)
    assert report.missing_first == (Missing(claim_of(two).key, Coordinate("proposals", 0, 1)),)


@pytest.mark.parametrize(("inputs", "of"), [(TICKETS, "tickets"), (PROPOSALS, "proposals")])
def test_the_other_inputs_outputs_are_counted_apart(inputs: Sequence[Record], of: InputName) -> None:
    """Both lie at the same offsets of topics with partitions of the same numbers."""
    receipts = [effect_receipt(0), effect_receipt(1)]

    report = audit(inputs, [*OUTPUTS, *receipts], of=of)

    assert counts(report) == {"dispatched": 1, "review": 1, "dead_letter": 1}
    assert report.is_clean
    assert (report.outputs, report.outputs_of_others) == (8, 5)
    assert (report.outputs_unexplained, report.outputs_without_identity) == (0, 0)


def test_the_other_inputs_outputs_explain_nothing() -> None:
    of_proposals = [decided(PROPOSALS[0]), decided(PROPOSALS[1], "review"), dead(PROPOSALS[2])]

    assert counts(audit(TICKETS, of_proposals)) == {"missing": 3}


def test_what_was_made_twice_from_the_other_input_is_not_this_ones() -> None:
    twice = [decided(PROPOSALS[0]), decided(PROPOSALS[0]), dead(PROPOSALS[2]), dead(PROPOSALS[2])]

    assert audit([], twice).duplicates == 0
    assert audit([], twice, of="proposals").duplicates == 2
