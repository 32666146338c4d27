"""Shortlists, and the embedding function that remembers."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from ticketgate.agents.scoring.shortlist import ShortlistError, cached_embed_fn, shortlist_choice

# A text's vector by its first letter; "?" is the ticket.
VECTORS: dict[str, list[float]] = {
    "?": [1.0, 0.0],
    "a": [0.0, 1.0],
    "b": [1.0, 1.0],
    "c": [2.0, 0.1],
    "d": [1.0, 1.0],
    "z": [0.0, 0.0],
    "n": [float("nan"), 1.0],
    "i": [float("inf"), 0.0],
    "h": [1e200, 0.0],
    "s": [1e-200, 0.0],
}


class Embed:
    """Counts its calls."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        self.asked.append(list(texts))
        return [VECTORS[text[0]] for text in texts]


def kept(labels: str, k: int) -> str:
    return "".join(shortlist_choice("?", dict.fromkeys(labels), Embed(), k).labels)


def test_the_nearest_are_kept_in_the_questions_order() -> None:
    found = shortlist_choice("?", {"a": None, "b": None, "c": "described"}, Embed(), 2)

    assert found.labels == ("b", "c")
    assert found.scores == pytest.approx((2**-0.5, 2 / (2**2 + 0.1**2) ** 0.5))
    assert found.to_json() == {
        "labels": ["b", "c"],
        "scores": list(found.scores or ()),
        "k": 2,
        "n": 3,
        "passthrough": False,
    }


@pytest.mark.parametrize(
    ("labels", "k", "expected"),
    [
        ("bad", 2, "bd"),
        ("abd", 2, "bd"),
        ("zab", 2, "zb"),  # a vector of zeros counts 0, as "a" does, and comes first
        ("azb", 2, "ab"),
        ("nab", 2, "nb"),  # NaN counts as 0, so "n" is "a"
        ("aib", 2, "ab"),  # infinity too
        ("hba", 2, "hb"),
        ("sba", 2, "sb"),
    ],
)
def test_of_equals_the_earlier_and_nothing_is_not_a_number(labels: str, k: int, expected: str) -> None:
    assert kept(labels, k) == expected


@pytest.mark.parametrize("k", [3, 4, 255])
def test_few_options_pass_through_without_an_embedding(k: int) -> None:
    embed = Embed()

    found = shortlist_choice("?", dict.fromkeys("abc"), embed, k)

    assert (found.labels, found.scores, found.passthrough, found.n) == (("a", "b", "c"), None, True, 3)
    assert embed.asked == []


def test_what_is_embedded_is_the_question_with_the_ticket_and_each_option_with_its_description() -> None:
    embed = Embed()

    shortlist_choice({"?": "x"}, {"a": None, "b": {"is": "y"}, "c": "z"}, embed, 2, instructions="?which")

    assert embed.asked == [["?which\n?: x", "a", "b: is: y", "c: z"]]


def test_the_callers_criteria_are_not_changed() -> None:
    criteria: dict[str, Any] = dict.fromkeys("abcd")

    shortlist_choice("?", criteria, Embed(), 2)

    assert criteria == dict.fromkeys("abcd")


@pytest.mark.parametrize("k", [1, 0, -1, 256, True, 2.0, "3", None])
def test_a_k_that_is_none_is_refused(k: Any) -> None:
    with pytest.raises(ShortlistError, match="k must be a whole number from 2 to 255"):
        shortlist_choice("?", dict.fromkeys("abc"), Embed(), k)


def test_a_label_that_stands_twice_is_refused() -> None:
    with pytest.raises(ShortlistError, match='two options have the label "a"'):
        shortlist_choice("?", [("a", None), ("b", None), ("a", "x")], Embed(), 2)


WRONG_SHAPES: list[Any] = [
    [],
    [[1.0]],
    [1.0, 2.0, 3.0, 4.0],
    [[]] * 4,
    [[1.0], [1.0], [1.0], [1.0, 2.0]],
    "text",
    [["x"]] * 4,
]


@pytest.mark.parametrize("given", WRONG_SHAPES, ids=range(len(WRONG_SHAPES)))
def test_vectors_of_a_wrong_shape_are_refused(given: Any) -> None:
    with pytest.raises(ShortlistError, match="the embedding function gave"):
        shortlist_choice("?", dict.fromkeys("abc"), lambda _: given, 2)


# --- the cache ---


def test_a_text_is_embedded_once_and_a_repeated_one_once_in_a_call() -> None:
    embed = Embed()
    cached = cached_embed_fn(embed, 8)

    first = cached(["a", "b", "a"])
    second = cached(["b", "c"])

    assert first.tolist() == [VECTORS["a"], VECTORS["b"], VECTORS["a"]]
    assert second.tolist() == [VECTORS["b"], VECTORS["c"]]
    assert embed.asked == [["a", "b"], ["c"]]
    assert cached.cache_info() == (3, 8, 1, 3)


def test_room_for_one_answers_three() -> None:
    embed = Embed()
    cached = cached_embed_fn(embed, 1)

    assert cached(["a", "b", "c"]).tolist() == [VECTORS[text] for text in "abc"]
    assert cached(["c", "a", "b"]).tolist() == [VECTORS[text] for text in "cab"]
    assert embed.asked == [["a", "b", "c"], ["a", "b"]]
    assert cached.cache_info() == (1, 1, 1, 5)


def test_the_least_recently_used_goes_first() -> None:
    embed = Embed()
    cached = cached_embed_fn(embed, 2)
    cached(["a", "b"])
    cached(["a"])
    cached(["c"])
    embed.asked.clear()

    cached(["a", "c"])

    assert embed.asked == []


def test_neither_a_failure_nor_a_wrong_shape_is_kept() -> None:
    outcomes: list[Any] = [OSError("broken"), [[1.0]], [[1.0], [2.0]], [[1.0], [2.0]]]

    def embed(texts: Sequence[str]) -> Any:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    cached = cached_embed_fn(embed, 8)
    with pytest.raises(OSError, match="broken"):
        cached(["a", "b"])
    with pytest.raises(ShortlistError):
        cached(["a", "b"])

    assert cached.cache_info().size == 0
    assert cached(["a", "b"]).tolist() == [[1.0], [2.0]]


def test_another_width_than_before_is_refused() -> None:
    widths = iter([2, 3])
    cached = cached_embed_fn(lambda texts: np.ones((len(texts), next(widths))), 8)
    cached(["a"])

    with pytest.raises(ShortlistError, match=r"widths \[2, 3\]"):
        cached(["a", "b"])

    assert cached.cache_info().size == 1


def test_what_is_kept_cannot_be_changed_from_outside() -> None:
    cached = cached_embed_fn(Embed(), 8)
    cached(["a"])[0, 0] = 99.0

    assert cached(["a"]).tolist() == [VECTORS["a"]]


def test_clearing_forgets_the_counts_too() -> None:
    cached = cached_embed_fn(Embed(), 8)
    cached(["a", "b"])
    cached.cache_clear()

    assert cached.cache_info() == (0, 8, 0, 0)


def test_no_texts_are_no_vectors() -> None:
    embed = Embed()

    assert len(cached_embed_fn(embed, 8)([])) == 0
    assert embed.asked == []


def test_no_room_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        cached_embed_fn(Embed(), 0)


def test_the_lock_is_not_held_while_embedding() -> None:
    inside, go_on = threading.Event(), threading.Event()
    counting = Embed()

    def embed(texts: Sequence[str]) -> list[list[float]]:
        if "slow"[0] in [text[0] for text in texts]:
            inside.set()
            assert go_on.wait(10)
        return counting(texts)

    cached = cached_embed_fn(embed, 8)
    slow = threading.Thread(target=cached, args=(["slow"],), name="slow")
    slow.start()
    assert inside.wait(10)

    quick = cached(["a"])

    go_on.set()
    slow.join(10)
    assert quick.tolist() == [VECTORS["a"]]


def test_many_threads_lose_nothing() -> None:
    cached = cached_embed_fn(Embed(), 3)
    wrong: list[object] = []

    def ask(seed: int) -> None:
        for n in range(200):
            texts = ["abcd"[(seed + n) % 4], "abcd"[(seed * n) % 4]]
            if cached(texts).tolist() != [VECTORS[text] for text in texts]:
                wrong.append(texts)

    threads = [threading.Thread(target=ask, args=(seed,), name=f"asking {seed}") for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    info = cached.cache_info()
    assert wrong == []
    assert info.size <= 3
    assert info.hits + info.misses == sum(
        len({"abcd"[(s + n) % 4], "abcd"[(s * n) % 4]}) for s in range(6) for n in range(200)
    )
