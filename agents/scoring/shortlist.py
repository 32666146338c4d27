"""Shortlisting: of a choice with many options, ask only about those nearest to the ticket.

Promise: the kept options are the k of highest cosine to the ticket, of equals the earlier, in the question's order; k
options or fewer pass through without an embedding. One decision is made over the reduced set, and its probabilities
are over that set alone: they say nothing of what was left out. The caller's question is not changed.

"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from ticketgate.agents.scoring.render import MOST_CHARS, render
from ticketgate.codecs.systemone.questions import MAX_OPTIONS
from ticketgate.codecs.values.malformed import quote
from ticketgate.codecs.values.strict import JsonValue

DEFAULT_K: Final = 20

EmbedFn = Callable[[Sequence[str]], ArrayLike]
"""Texts to one vector each, [texts, width]; the same width at every call."""


class ShortlistError(ValueError):
    """A shortlist that cannot be made: a bad k, two labels that are one, or vectors of a wrong shape."""


@dataclass(frozen=True, slots=True)
class Shortlist:
    """Which of `n` options were kept for at most `k`, and their cosines; None if nothing had to be left out."""

    labels: tuple[str, ...]
    scores: tuple[float, ...] | None
    k: int
    n: int

    @property
    def passthrough(self) -> bool:
        """Whether every option was kept without looking."""
        return self.scores is None

    def to_json(self) -> dict[str, JsonValue]:
        """What a record says of it."""
        return {
            "labels": list(self.labels),
            "scores": None if self.scores is None else list(self.scores),
            "k": self.k,
            "n": self.n,
            "passthrough": self.passthrough,
        }


class OptionVectors:
    """A choice's options beside each other, from which the nearest to a text are taken: for one text or many.

    labels: the options' in the question's order. parts: their vectors [options, width] as an embedding function gave
    them, some at a time.
    """

    def __init__(self, labels: Sequence[str], parts: Iterable[NDArray[np.float64]]) -> None:
        self._labels, at = tuple(labels), 0
        self._unit = np.empty((0, 0))
        # Into their place one part after the other: copies of all of 10,000 would be 31 MB each.
        for part in parts:
            if at == 0:
                self._unit = np.empty((len(labels), part.shape[1]))
            self._unit[at : at + len(part)] = _unit(part)
            at += len(part)

    def nearest(self, asked: NDArray[np.float64], k: int) -> Shortlist:
        """The k nearest to the text whose vector is `asked` [width]; k is less than there are options.

        Raises ShortlistError if it is of another width.
        """
        if len(asked) != self._unit.shape[1]:
            raise ShortlistError(
                f"the embedding function gave vectors of the widths {sorted({len(asked), self._unit.shape[1]})}"
            )
        # Not for many texts in one product: a ticket's cosines are to be those that it has alone, to the last digit.
        cosines: NDArray[np.float64] = np.einsum("w,nw->n", _unit(asked[None])[0], self._unit)
        # Not by sorting all: of 10,000 that takes as long as their cosines do.
        least = np.partition(cosines, len(cosines) - k)[len(cosines) - k]
        above = np.flatnonzero(cosines > least)
        # Of equals the earlier. Then back into the question's order, for ties of the answer.
        equal = np.flatnonzero(cosines == least)[: k - len(above)]
        places = np.sort(np.concatenate((above, equal))).tolist()
        return Shortlist(
            tuple(self._labels[place] for place in places),
            tuple(float(cosines[place]) for place in places),
            k,
            len(self._labels),
        )


def shortlist_choice(
    state: JsonValue,
    criteria: Mapping[str, JsonValue] | Sequence[tuple[str, JsonValue]],
    embed: EmbedFn,
    k: int = DEFAULT_K,
    instructions: JsonValue = None,
) -> Shortlist:
    """The options to ask about `state`. `criteria` are labels with their descriptions, however many.

    Raises ShortlistError, and what `embed` raises.
    """
    if isinstance(k, bool) or not isinstance(k, int) or not 2 <= k <= MAX_OPTIONS:
        raise ShortlistError(f"k must be a whole number from 2 to {MAX_OPTIONS}, not {k!r}")
    options = list(criteria.items()) if isinstance(criteria, Mapping) else list(criteria)
    labels = [label for label, _ in options]
    seen: set[str] = set()
    for label in labels:
        if label in seen:
            raise ShortlistError(f"two options have the label {quote(label)}")
        seen.add(label)
    if k >= len(labels):
        return whole(labels, k)
    texts = [asked_text(state, instructions), *option_texts(options)]
    vectors = as_vectors(embed(texts), len(texts))
    return OptionVectors(labels, [vectors[1:]]).nearest(vectors[0], k)


def whole(labels: Sequence[str], k: int) -> Shortlist:
    """All options, of which there are no more than k."""
    return Shortlist(tuple(labels), None, k, len(labels))


def asked_text(state: JsonValue, instructions: JsonValue) -> str:
    """What is embedded of a ticket: what is asked, and its state."""
    return render(state) if instructions is None else f"{render(instructions)[:MOST_CHARS]}\n{render(state)}"


def option_texts(options: Iterable[tuple[str, JsonValue]]) -> list[str]:
    """What is embedded of each option: its label, and its description where it has one."""
    return [label if text is None else f"{label}: {render(text)}" for label, text in options]


def as_vectors(found: ArrayLike, count: int) -> NDArray[np.float64]:
    """What an embedding function gave, as [count, width]. Raises ShortlistError if it is something else."""
    try:
        vectors = np.asarray(found, np.float64)
    except (TypeError, ValueError) as err:
        raise ShortlistError(f"the embedding function gave no vectors: {err}") from err
    if vectors.ndim != 2 or len(vectors) != count or vectors.shape[1] == 0:
        raise ShortlistError(
            f"the embedding function gave the shape {list(vectors.shape)} for {count} texts; it must be [texts, width]"
        )
    return vectors


def _unit(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each of length 1; one of zeros stays so, and a number that is not finite counts as 0."""
    vectors = np.nan_to_num(vectors, nan=0.0, posinf=0.0, neginf=0.0)
    # By the largest first: squares of very large numbers would not be finite, those of very small ones 0.
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    scaled = np.divide(vectors, largest, out=np.zeros_like(vectors), where=largest > 0)
    lengths = np.sqrt((scaled**2).sum(axis=1, keepdims=True))
    unit: NDArray[np.float64] = np.divide(scaled, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    return unit


class CacheInfo(NamedTuple):
    """`size` of at most `maxsize` texts are kept; how many were found, and how many had to be embedded."""

    size: int
    maxsize: int
    hits: int
    misses: int


class CachedEmbed:
    """An embedding function that remembers; see `cached_embed_fn`."""

    def __init__(self, embed: EmbedFn, maxsize: int) -> None:
        if maxsize < 1:
            raise ValueError(f"maxsize must be at least 1, not {maxsize}")
        self._embed, self._maxsize = embed, maxsize
        self._kept: OrderedDict[str, NDArray[np.float32 | np.float64]] = OrderedDict()
        self._hits = self._misses = 0
        self._lock = threading.Lock()

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """[texts, width]. Raises ShortlistError for a wrong shape, and what the function raises."""
        found: dict[str, NDArray[np.float32 | np.float64]] = {}
        distinct = list(dict.fromkeys(texts))
        with self._lock:
            for text in distinct:
                if (vector := self._kept.get(text)) is not None:
                    self._kept.move_to_end(text)
                    found[text] = vector
            self._hits += len(found)
            self._misses += len(distinct) - len(found)
        if missing := [text for text in distinct if text not in found]:
            given = self._embed(missing)
            vectors: NDArray[np.float32 | np.float64] = as_vectors(given, len(missing))
            if isinstance(given, np.ndarray) and given.dtype == np.float32:
                vectors = given  # as exact, in half the memory
            widths = {len(vector) for vector in found.values()} | {vectors.shape[1]}
            if len(widths) > 1:
                raise ShortlistError(f"the embedding function gave vectors of the widths {sorted(widths)}")
            # Copies: a row would keep its whole batch alive.
            fresh = {text: vector.copy() for text, vector in zip(missing, vectors, strict=True)}
            found |= fresh
            self._keep(fresh)
        return np.stack([found[text] for text in texts], dtype=np.float64) if texts else np.empty((0, 0))

    def cache_info(self) -> CacheInfo:
        """How full it is, and how well it served."""
        with self._lock:
            return CacheInfo(len(self._kept), self._maxsize, self._hits, self._misses)

    def cache_clear(self) -> None:
        """Forget everything, the counts too."""
        with self._lock:
            self._kept.clear()
            self._hits = self._misses = 0

    def _keep(self, fresh: Mapping[str, NDArray[np.float32 | np.float64]]) -> None:
        with self._lock:
            for text, vector in fresh.items():
                self._kept[text] = vector
                self._kept.move_to_end(text)
            while len(self._kept) > self._maxsize:
                self._kept.popitem(last=False)


def cached_embed_fn(embed: EmbedFn, maxsize: int = 4096) -> CachedEmbed:
    """`embed` with the `maxsize` last used texts kept, by the exact text. For several threads at once.

    What is missing is asked for in one call, each text once. A call that fails, or gives a wrong shape, leaves nothing
    behind. The lock is not held while `embed` works, so two threads may embed the same text.
    """
    return CachedEmbed(embed, maxsize)
