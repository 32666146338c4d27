"""Every row comes out as its requirement says."""

from __future__ import annotations

import pytest

from . import seed_000, seed_001, seed_003
from .rows import ROWS, Row

SEEDS = (seed_000, seed_001, seed_003)


@pytest.mark.parametrize("each", ROWS, ids=[each.name for each in ROWS])
def test_a_row_comes_out_as_it_says(each: Row) -> None:
    assert each.came() == each.says


def test_no_row_stands_twice() -> None:
    names = [each.name for each in ROWS]

    assert len(set(names)) == len(names)


@pytest.mark.parametrize("seed", ["000", "001", "003"])
def test_each_of_the_three_has_its_rows(seed: str) -> None:
    assert sum(each.seed == seed for each in ROWS) >= 25
