"""How a contender's run is judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .books import Books, Content, Place, judge

INPUTS: Mapping[Place, Content] = {
    (0, 0): ("T-1", "a"),
    (0, 1): ("T-2", "b"),
    (1, 0): ("T-1", "a"),
}


def books(outputs: Sequence[Place], *, suppresses_repeats: bool = False) -> Books:
    return judge(INPUTS, outputs, {0: 2, 1: 1}, suppresses_repeats=suppresses_repeats)


def test_each_record_once_is_clean_and_a_repeat_is_counted_apart() -> None:
    found = books([(0, 0), (0, 1), (1, 0)])

    assert (found.duplicates, found.lost, found.undecided) == (0, 0, 0)
    assert (found.repeats_in, found.repeats_out) == (1, 1)


def test_a_second_output_of_one_record_is_a_duplicate() -> None:
    assert books([(0, 0), (0, 1), (0, 1), (1, 0)]).duplicates == 1


def test_a_record_that_was_committed_over_is_lost() -> None:
    found = books([(0, 0), (0, 1)])

    assert (found.lost, found.undecided) == (1, 0)


def test_a_suppressed_repeat_is_not_lost() -> None:
    found = books([(0, 1), (1, 0)], suppresses_repeats=True)

    assert (found.lost, found.repeats_out) == (0, 0)


def test_what_lies_past_the_committed_offset_is_undecided() -> None:
    found = judge(INPUTS, [(0, 0), (0, 1)], {0: 2}, suppresses_repeats=False)

    assert (found.lost, found.undecided, found.stuck_partitions) == (0, 1, 1)
