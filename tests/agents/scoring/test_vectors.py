"""The store of questions' vectors."""

import threading
from collections.abc import Sequence

import numpy as np
import pytest
from ticketgate.agents.scoring.scorer import TextCounts
from ticketgate.agents.scoring.vectors import TextCache, TextVector, VectorCache, digest_of


class CountingEncoder:
    """Remembers what it was asked to encode."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []

    def __call__(self, texts: Sequence[str]) -> list[TextVector]:
        self.asked.append(tuple(texts))
        return [TextVector(np.full(2, len(t), np.float32), tokens=len(t), is_truncated=False) for t in texts]


def test_a_text_is_encoded_once() -> None:
    encode = CountingEncoder()
    cache = VectorCache(encode, size=8)

    first = cache.get(["a", "bb", "a"])
    second = cache.get(["bb", "ccc"])

    assert [v.tokens for v in first] == [1, 2, 1]
    assert [v.tokens for v in second] == [2, 3]
    assert encode.asked == [("a", "bb"), ("ccc",)]


def test_more_texts_than_it_keeps_are_all_answered() -> None:
    encode = CountingEncoder()
    cache = VectorCache(encode, size=1)

    assert [v.tokens for v in cache.get(["a", "bb", "ccc"])] == [1, 2, 3]
    assert [v.tokens for v in cache.get(["ccc", "a"])] == [3, 1]
    assert encode.asked == [("a", "bb", "ccc"), ("a",)]


def test_the_least_recently_used_goes_first() -> None:
    encode = CountingEncoder()
    cache = VectorCache(encode, size=2)
    cache.get(["a", "b"])
    cache.get(["a"])

    cache.get(["c"])

    encode.asked.clear()
    cache.get(["a", "c"])
    assert encode.asked == []


def test_what_is_read_ahead_counts_when_it_is_asked_for() -> None:
    encode = CountingEncoder()
    cache = VectorCache(encode, size=3)

    ahead = cache.ahead(["a", "bb", "a"])
    counted_ahead = cache.counts
    found = cache.get(["a", "ccc", "a"])

    assert [v.tokens for v in (*ahead, *found)] == [1, 2, 1, 1, 3, 1]
    assert encode.asked == [("a", "bb"), ("ccc",)]
    assert counted_ahead == TextCounts(repeated=0, read=0)
    assert cache.counts == TextCounts(repeated=1, read=2)
    cache.get(["a"])
    assert cache.counts == TextCounts(repeated=2, read=2)


def test_what_was_read_ahead_and_forgotten_counts_as_what_it_is() -> None:
    cache = VectorCache(CountingEncoder(), size=2)
    cache.ahead(["a"])
    cache.get(["bb", "ccc"])

    cache.get(["a"])
    cache.get(["a"])

    assert cache.counts == TextCounts(repeated=1, read=3)


def test_a_failure_is_not_kept() -> None:
    outcomes = iter([OSError("broken"), None])

    def encode(texts: Sequence[str]) -> list[TextVector]:
        if failure := next(outcomes):
            raise failure
        return [TextVector(np.zeros(1, np.float32), tokens=1, is_truncated=False) for _ in texts]

    cache = VectorCache(encode, size=2)
    with pytest.raises(OSError, match="broken"):
        cache.get(["a"])

    assert len(cache.get(["a"])) == 1


def test_the_lock_is_not_held_while_encoding() -> None:
    inside, go_on = threading.Event(), threading.Event()
    counting = CountingEncoder()

    def encode(texts: Sequence[str]) -> list[TextVector]:
        if "slow" in texts:
            inside.set()
            assert go_on.wait(10)
        return counting(texts)

    cache = VectorCache(encode, size=8)
    slow = threading.Thread(target=cache.get, args=(["slow"],), name="slow encoder")
    slow.start()
    assert inside.wait(10)

    quick = cache.get(["quick"])

    go_on.set()
    slow.join(10)
    assert len(quick) == 1


def test_what_is_kept_by_a_digest_holds_no_text_and_counts_what_came_again() -> None:
    encode = CountingEncoder()
    cache = TextCache(encode, size=2, key=digest_of)

    assert [v.tokens for v in cache.get(["a", "bb", "a"])] == [1, 2, 1]
    assert [v.tokens for v in cache.get(["ccc", "bb", "\ud800"])] == [3, 2, 1]

    assert encode.asked == [("a", "bb"), ("ccc", "\ud800")]
    assert cache.counts == TextCounts(repeated=2, read=4)
    assert not any(isinstance(key, str) for key in cache._kept)
