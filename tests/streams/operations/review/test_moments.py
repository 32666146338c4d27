"""Ages: as people write and read them."""

from __future__ import annotations

import pytest
from ticketgate.streams.operations.review.moments import age, read_age


@pytest.mark.parametrize(
    ("text", "ms"), [("2d", 172_800_000), ("12h", 43_200_000), ("30m", 1_800_000), ("5", 5_000)]
)
def test_an_age_is_read(text: str, ms: int) -> None:
    assert read_age(text) == ms


@pytest.mark.parametrize("text", ["", "soon", "-2d", "nan", "inf", "1e300d", "99999999d", "2 weeks"])
def test_what_is_no_age_is_none(text: str) -> None:
    assert read_age(text) is None


def test_an_age_is_told_in_its_largest_unit() -> None:
    assert [age(ms) for ms in (-5, 8_000, 720_000, 18_000_000, 259_200_000)] == [
        "0s",
        "8s",
        "12m",
        "5h",
        "3d",
    ]
