"""How long a process waits before it is started again."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st
from ticketgate.streams.process.supervising.backoff import Backoff


@given(st.lists(st.none() | st.floats(0, 1e6), max_size=3000), st.randoms())
def test_a_wait_is_never_longer_than_the_bound_and_begins_anew_after_a_healthy_time(
    ready: list[float | None], rng: random.Random
) -> None:
    backoff = Backoff(first_s=1, most_s=30, healthy_s=60, between=rng.uniform)
    in_a_row = 0
    for ready_s in ready:
        in_a_row = 0 if ready_s is not None and ready_s >= 60 else in_a_row

        wait_s = backoff.next_s(ready_s=ready_s)

        assert 0 <= wait_s <= min(30.0, 2.0 ** min(in_a_row, 10))
        in_a_row += 1
        assert backoff.ends == in_a_row
        assert backoff.is_loop == (in_a_row >= 3)


def test_a_thousand_ends_in_a_row_still_have_a_wait() -> None:
    backoff = Backoff()

    assert all(backoff.next_s(ready_s=None) <= 30 for _ in range(5_000))
