"""Batches: near in length, capped by padded tokens, nothing lost, and none cheaper."""

import itertools

from hypothesis import given
from hypothesis import strategies as st
from ticketgate.agents.scoring.batches import CALL_TOKENS, MAX_PADDED_TOKENS, even_batches


@given(st.lists(st.integers(1, 5000), max_size=300))
def test_each_text_is_in_one_batch_and_no_batch_is_too_large(lengths: list[int]) -> None:
    batches = even_batches(lengths)

    assert sorted(place for batch in batches for place in batch) == list(range(len(lengths)))
    for batch in batches:
        longest = max(lengths[place] for place in batch)
        assert len(batch) == 1 or longest * len(batch) <= MAX_PADDED_TOKENS
        assert longest - min(lengths[place] for place in batch) <= CALL_TOKENS


@given(st.lists(st.integers(1, 200), max_size=9))
def test_no_other_way_to_part_the_texts_by_length_costs_less(lengths: list[int]) -> None:
    sizes = sorted(lengths)
    ways = (
        [sizes[begin:end] for begin, end in itertools.pairwise((0, *cuts, len(sizes)))]
        for count in range(len(sizes))
        for cuts in itertools.combinations(range(1, len(sizes)), count)
    )
    found = [[lengths[place] for place in batch] for batch in even_batches(lengths)]

    assert _cost(found) == min(map(_cost, ways), default=0)


def test_texts_of_one_length_share_batches_as_full_as_may_be() -> None:
    batches = even_batches([16] * 256)

    assert [len(batch) for batch in batches] == [128, 128]


def _cost(batches: list[list[int]]) -> int:
    return sum(CALL_TOKENS + max(batch) * len(batch) for batch in batches)
