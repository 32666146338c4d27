"""A dataclass that only type checkers freeze is at run time what a frozen one is, but for being kept from changes."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from ticketgate.codecs.values import frozen


@frozen.dataclass(frozen=True, slots=True, order=True)
class Plain:
    """For comparison."""

    name: str
    number: int = 0


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Strict:
    """For comparison."""

    name: str
    number: int = 0


def test_it_is_equal_hashed_shown_ordered_and_replaced_as_a_frozen_one() -> None:
    plain, strict = Plain("a", 1), Strict("a", 1)

    assert plain == Plain("a", 1)
    assert plain != Plain("a", 2)
    assert plain < Plain("b")
    assert hash(plain) == hash(strict)
    assert repr(plain) == repr(strict).replace("Strict", "Plain")
    assert dataclasses.replace(plain, number=2) == Plain("a", 2)
    assert dataclasses.asdict(plain) == dataclasses.asdict(strict)
    assert not hasattr(plain, "__dict__")


def test_what_may_be_changed_is_not_made_here() -> None:
    options: dict[str, Any] = {"frozen": False}

    with pytest.raises(TypeError, match="Python's own"):
        frozen.dataclass(**options)(Plain)
