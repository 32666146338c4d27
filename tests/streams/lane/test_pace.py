"""The size of a lane's pieces: how it follows models of every speed, and what it never does."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import example, given
from hypothesis import strategies as st
from ticketgate.streams.lane.taking.pace import Pace, pace_for

MOST = 64
# A commit and the claims before it, on a machine like any other.
FIXED_S = 0.02


def model(each_s: float, fixed_s: float = FIXED_S) -> Callable[[int], float]:
    """How long a piece takes."""
    return lambda count: fixed_s + each_s * count


def take(pace: Pace, seconds: Callable[[int], float], *, pieces: int) -> tuple[Pace, list[int]]:
    """A backlog's pieces, and the pace after them."""
    sizes = []
    for _ in range(pieces):
        sizes.append(pace.size)
        pace = pace.passed(pace.size, seconds(pace.size))
    return pace, sizes


def test_quick_pieces_double_up_to_the_most() -> None:
    _, sizes = take(pace_for(MOST, hang_s=60), model(0.005), pieces=8)

    assert sizes == [1, 2, 4, 8, 16, 32, 64, 64]


def test_a_model_of_5_s_a_ticket_is_asked_for_one_at_a_time() -> None:
    _, sizes = take(pace_for(MOST, hang_s=60), model(5.0), pieces=20)

    assert sizes == [1, 2, *[1] * 18]


def test_a_model_of_40_s_a_ticket_is_never_asked_for_two_which_would_pass_for_a_hang() -> None:
    _, sizes = take(pace_for(MOST, hang_s=60), model(40.0), pieces=20)

    assert sizes == [1] * 20


def test_what_takes_as_long_for_many_as_for_one_is_given_many() -> None:
    _, sizes = take(pace_for(MOST, hang_s=60), model(0.0, fixed_s=12.0), pieces=9)

    assert sizes[-2:] == [64, 64]


def test_a_model_that_becomes_slow_and_quick_again_is_followed() -> None:
    pace, _ = take(pace_for(MOST, hang_s=60), model(0.01), pieces=10)
    pace, slow = take(pace, model(1.0), pieces=10)
    pace, quick = take(pace, model(0.01), pieces=6)

    assert slow[-1] * 1.0 <= 4.0
    assert quick[-1] == MOST


def test_one_pause_costs_no_more_than_a_few_smaller_pieces() -> None:
    pace, _ = take(pace_for(MOST, hang_s=60), model(0.02), pieces=10)
    pace = pace.passed(MOST, 30.0)

    assert take(pace, model(0.02), pieces=3)[1] == [32, 64, 64]


def test_a_trickle_says_nothing_of_the_size() -> None:
    pace, _ = take(pace_for(MOST, hang_s=60), model(0.005), pieces=4)

    assert pace.passed(1, 0.01) == pace


def test_a_role_whose_pieces_are_no_hang_grows_however_long_they_take() -> None:
    _, sizes = take(pace_for(16, hang_s=None), model(30.0), pieces=6)

    assert sizes == [1, 2, 4, 8, 16, 16]


def test_a_quota_that_lets_a_part_of_a_batch_pass_in_time_ends_in_pieces_that_pass() -> None:
    """300 kB/s, records of 150 kB, and 20 s for a commit."""
    pace, seconds, failures = Pace(MOST, size=MOST), model(0.5), 0
    for _ in range(40):
        if seconds(pace.size) > 20.0:
            failures += 1
            pace = pace.failed(pace.size)
        else:
            pace = pace.passed(pace.size, seconds(pace.size))

    assert failures == 1
    assert pace.size * 0.5 <= 4.0


@given(
    most=st.integers(1, 300),
    hang_s=st.none() | st.floats(0.01, 1_000),
    seen=st.lists(st.tuples(st.integers(0, 400), st.booleans(), st.floats(0, 10_000))),
)
def test_a_size_is_one_always(most: int, hang_s: float | None, seen: list[tuple[int, bool, float]]) -> None:
    pace = pace_for(most, hang_s=hang_s)

    for count, is_passed, seconds in seen:
        count = max(1, min(count, pace.size))
        before = pace.size
        pace = pace.passed(count, seconds) if is_passed else pace.failed(count)

        assert 1 <= pace.size <= most
        assert is_passed or pace.size <= max(1, count // 2)
        assert pace.size <= 2 * before


@given(each_s=st.floats(0, 60), fixed_s=st.floats(0, 3))
@example(each_s=0.09, fixed_s=0.0)
def test_the_part_of_a_piece_that_grows_with_it_ends_below_twice_the_target(
    each_s: float, fixed_s: float
) -> None:
    pace, _ = take(pace_for(MOST, hang_s=60), model(each_s, fixed_s), pieces=30)

    _, sizes = take(pace, model(each_s, fixed_s), pieces=10)
    assert all(size == 1 or size * each_s <= 8.0 + 1e-6 for size in sizes)


@given(each_s=st.floats(0, 0.02), fixed_s=st.floats(0, 0.5))
def test_a_model_that_is_quick_enough_is_given_whole_batches(each_s: float, fixed_s: float) -> None:
    _, sizes = take(pace_for(MOST, hang_s=60), model(each_s, fixed_s), pieces=12)

    assert sizes[-3:] == [MOST] * 3
