"""Texts' vectors, and bounded stores of what is asked of texts again and again."""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from ticketgate.agents.scoring.scorer import TextCounts
from ticketgate.agents.scoring.tokens import Tokens

T = TypeVar("T")
_DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True)
class TextVector:
    """One text as the encoder sees it: float32 [width]; how many tokens were read, and whether that was all."""

    vector: NDArray[np.float32]
    tokens: int
    is_truncated: bool


def digest_of(text: str) -> bytes:
    """What a text is kept by where it may be long, or somebody's: 16 bytes of BLAKE2b."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).digest()


class TextCache(Generic[T]):
    """What was made of the most recently used texts; `key`: by what of a text it is kept. Safe to use from several
    threads at once.

    The lock is not held while texts are looked at, so two threads may look at the same text: that costs time
    once, where holding it would stop every lane for as long as the encoder takes.
    """

    def __init__(
        self,
        make: Callable[[Sequence[str]], Sequence[T]],
        *,
        size: int,
        key: Callable[[str], Hashable] = str,
    ) -> None:
        self._make, self._size, self._key = make, size, key
        self._kept: OrderedDict[Hashable, T] = OrderedDict()
        # Made for who asks again at once, and not yet asked for as a ticket's.
        self._ahead: set[Hashable] = set()
        self._repeated = self._read = 0
        self._lock = threading.Lock()

    @property
    def counts(self) -> TextCounts:
        """Up to now. A text that stands twice in one question counts as repeated once."""
        return TextCounts(repeated=self._repeated, read=self._read)

    def get(self, texts: Sequence[str]) -> list[T]:
        """One a text; what is not kept is made, of each distinct text once. Raises what making raises."""
        return self._get(texts, is_ahead=False)

    def ahead(self, texts: Sequence[str]) -> list[T]:
        """The same for who will `get` some of them next, and not counted: each of them counts then as if made there."""
        return self._get(texts, is_ahead=True)

    def _get(self, texts: Sequence[str], *, is_ahead: bool) -> list[T]:
        keys = [self._key(text) for text in texts]
        distinct = dict(zip(keys, texts, strict=True))
        found: dict[Hashable, T] = {}
        with self._lock:
            for key in distinct:
                if key in self._kept:
                    self._kept.move_to_end(key)
                    found[key] = self._kept[key]
        missing = {key: text for key, text in distinct.items() if key not in found}
        if missing:
            made = dict(zip(missing, self._make([*missing.values()]), strict=True))
            found |= made
            self._keep(made)
        with self._lock:
            if is_ahead:
                self._ahead |= missing.keys() & self._kept.keys()
            else:
                first = len(missing) + len(self._ahead & distinct.keys())
                self._ahead -= distinct.keys()
                self._read += first
                self._repeated += len(texts) - first
        return [found[key] for key in keys]

    def _keep(self, made: dict[Hashable, T]) -> None:
        with self._lock:
            self._kept |= made
            while len(self._kept) > self._size:
                self._ahead.discard(self._kept.popitem(last=False)[0])


VectorCache = TextCache[TextVector]


def stacked(read: Sequence[TextVector]) -> NDArray[np.float32]:
    """The vectors of some texts as [texts, width]."""
    return np.stack([each.vector for each in read]) if read else np.empty((0, 1), np.float32)


def joined(windows: Sequence[Tokens], vectors: Sequence[NDArray[np.float32]]) -> TextVector:
    """One text's vector: the mean of its windows' by their tokens, of length 1."""
    lengths = [len(window.ids) for window in windows]
    is_truncated = any(window.is_truncated for window in windows)
    if len(windows) == 1:
        # A copy: a row would keep the whole batch's array alive in the cache.
        return TextVector(vectors[0].copy(), tokens=lengths[0], is_truncated=is_truncated)
    total = np.einsum("w,wd->d", np.array(lengths, np.float32), np.stack(vectors))
    size = max(float(np.sqrt(np.einsum("d,d->", total, total))), 1e-9)
    return TextVector(total / np.float32(size), tokens=sum(lengths), is_truncated=is_truncated)
