"""Texts' vectors, and a bounded store of those that are asked for again and again."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from ticketgate.agents.scoring.tokens import Tokens


@dataclass(frozen=True, slots=True)
class TextVector:
    """One text as the encoder sees it: float32 [width]; how many tokens were read, and whether that was all."""

    vector: NDArray[np.float32]
    tokens: int
    is_truncated: bool


class VectorCache:
    """The most recently used vectors by text. Safe to use from several threads at once.

    The lock is not held while texts are encoded, so two threads may encode the same text: that costs time
    once, where holding it would stop every lane for as long as the encoder takes.
    """

    def __init__(self, encode: Callable[[Sequence[str]], Sequence[TextVector]], *, size: int) -> None:
        self._encode, self._size = encode, size
        self._kept: OrderedDict[str, TextVector] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, texts: Sequence[str]) -> list[TextVector]:
        """One vector a text; what is not kept is encoded, each distinct text once. Raises what encoding raises."""
        found: dict[str, TextVector] = {}
        with self._lock:
            for text in dict.fromkeys(texts):
                if text in self._kept:
                    self._kept.move_to_end(text)
                    found[text] = self._kept[text]
        missing = [text for text in dict.fromkeys(texts) if text not in found]
        if missing:
            encoded = dict(zip(missing, self._encode(missing), strict=True))
            found |= encoded
            self._keep(encoded)
        return [found[text] for text in texts]

    def _keep(self, encoded: dict[str, TextVector]) -> None:
        with self._lock:
            self._kept |= encoded
            while len(self._kept) > self._size:
                self._kept.popitem(last=False)


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
