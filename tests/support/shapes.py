"""Shapes of JSON that cost more than they weigh, each by the size that it should have in bytes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

Shape = Callable[[int], Any]


def _nested(size: int) -> Any:
    value: Any = ["end"]
    for _ in range(60):
        value = {"k" * (size // 61): value}
    return value


def _fan(size: int) -> Any:
    """A long key above many leaves: as lines they would have the square of its length."""
    half = size // 2
    return {"k" * half: [1] * (half // 2)}


SHAPES: dict[str, Shape] = {
    "text": lambda size: "wort " * (size // 5),
    "one word": lambda size: "x" * size,
    "controls": lambda size: "\x01" * (size // 6),
    "umlauts": lambda size: "äöü€" * (size // 9),
    "numbers": lambda size: [1] * (size // 2),
    "floats": lambda size: [0.5] * (size // 4),
    "long key above leaves": _fan,
    "long keys inside each other": _nested,
    "keys": lambda size: {f"k{n:06}": n for n in range(size // 18)},
    "long key above keys": lambda size: {"k" * (size // 2): {f"{n:05}": 1 for n in range(size // 20)}},
    "empty lists": lambda size: [[]] * (size // 3),
    "small objects": lambda size: [{"a": 0}] * (size // 8),
    "nulls": lambda size: [None] * (size // 5),
}


def written(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
