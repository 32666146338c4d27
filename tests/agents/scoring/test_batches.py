"""Batches: near in length, capped by padded tokens, nothing lost."""

from hypothesis import given
from hypothesis import strategies as st
from ticketgate.agents.scoring.tokens import LENGTH_SPAN, MAX_PADDED_TOKENS, even_batches


@given(st.lists(st.integers(1, 5000), max_size=300))
def test_each_text_is_in_one_batch_and_no_batch_is_too_large(lengths: list[int]) -> None:
    batches = list(even_batches(lengths))

    assert sorted(place for batch in batches for place in batch) == list(range(len(lengths)))
    for batch in batches:
        longest = max(lengths[place] for place in batch)
        assert len(batch) == 1 or longest * len(batch) <= MAX_PADDED_TOKENS
        assert longest - min(lengths[place] for place in batch) < LENGTH_SPAN
