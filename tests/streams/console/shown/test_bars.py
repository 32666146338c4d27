"""Bars: however near an answer is to its threshold, neither length nor number shows it on the other side."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from ticketgate.streams.console.shown.bars import WHOLE, bar

CHANCES = st.floats(min_value=0, max_value=1)
THRESHOLDS = st.floats(min_value=0, max_value=1, exclude_min=True)


@given(CHANCES, THRESHOLDS)
@example(0.5, 0.5)
@example(math.nextafter(0.5, 0), 0.5)
@example(math.nextafter(1.0, 0), 1.0)
@example(5e-324, 5e-324)
@example(0.0, 5e-324)
@example(0.9999999, 1.0)
@example(0.495, 0.5)
def test_a_bar_is_never_across_its_threshold_by_rounding(chance: float, threshold: float) -> None:
    drawn = bar("urgent", chance, threshold)

    assert drawn.mark is not None
    assert 0 <= drawn.filled <= WHOLE
    assert 0 < drawn.mark <= WHOLE
    assert (drawn.filled >= drawn.mark) is (chance >= threshold) is drawn.reaches
    assert (float(drawn.chance) >= float(drawn.threshold)) is (chance >= threshold)
    assert (float(drawn.chance) == float(drawn.threshold)) is (chance == threshold)


@given(CHANCES)
def test_only_what_is_certain_is_written_as_certain(chance: float) -> None:
    drawn = bar("urgent", chance)

    assert (float(drawn.chance) in (0.0, 1.0)) is (chance in (0.0, 1.0))


@pytest.mark.parametrize(
    ("chance", "threshold", "shown"),
    [(0.9, 0.5, ("0.90", "0.50")), (0.4999, 0.5, ("0.4999", "0.5000")), (1.0, 0.5, ("1.00", "0.50"))],
)
def test_numbers_have_as_many_digits_as_they_need(
    chance: float, threshold: float, shown: tuple[str, str]
) -> None:
    drawn = bar("urgent", chance, threshold)

    assert (drawn.chance, drawn.threshold) == shown


def test_what_is_no_probability_is_drawn_at_the_nearest_end() -> None:
    assert (bar("a", -1.0, 0.5).filled, bar("a", 7.0, 0.5).filled) == (0, WHOLE)
