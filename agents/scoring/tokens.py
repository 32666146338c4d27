"""Texts to token ids, cut to the model's window and said so, and batches of even length.

Padding and truncation are ours: a tokenizer file that did either would do it unreported.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from ticketgate.agents.scoring.folder import ModelFolder
from tokenizers import Tokenizer

# One batch's activations grow with its padded tokens, not with its rows: 32 long tickets would take ten
# times the memory of 32 short ones. 2,048 keep attention below about 25 MB a layer.
MAX_PADDED_TOKENS = 2048

# Texts share a batch if their lengths fall into the same span of 16, so that less than 16 tokens a text
# are padding.
LENGTH_SPAN = 16


@dataclass(frozen=True, slots=True)
class Tokens:
    """One text as the model reads it. `is_truncated`: the window did not hold all of it."""

    ids: tuple[int, ...]
    is_truncated: bool


class Tokenization:
    """Reads texts by the folder's tokenizer. Safe to use from several threads at once."""

    def __init__(self, folder: ModelFolder) -> None:
        entry = folder.manifest.tokenizer
        try:
            self._tokenizer = Tokenizer.from_str(folder.content[entry.file].decode())
        except Exception as err:  # tokenizers raises bare Exception for a file it cannot read
            raise folder.refusal(f"tokenizers cannot read {entry.file}: {err}") from err
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._pad_id = entry.pad_id
        self._window = folder.manifest.limits.window
        self._ending = self._special_tokens_at_the_end()

    def read(self, text: str) -> Tokens:
        """The text's tokens. One that is too long loses its end, but keeps the closing special tokens."""
        ids = self._tokenizer.encode(text).ids
        if len(ids) <= self._window:
            return Tokens(tuple(ids), is_truncated=False)
        kept = self._window - len(self._ending)
        return Tokens((*ids[:kept], *self._ending), is_truncated=True)

    def pad(self, batch: Sequence[Tokens]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Ids and mask, each int64 [len(batch), longest]."""
        longest = max(len(tokens.ids) for tokens in batch)
        ids = np.full((len(batch), longest), self._pad_id, np.int64)
        mask = np.zeros((len(batch), longest), np.int64)
        for row, tokens in enumerate(batch):
            ids[row, : len(tokens.ids)] = tokens.ids
            mask[row, : len(tokens.ids)] = 1
        return ids, mask

    def _special_tokens_at_the_end(self) -> tuple[int, ...]:
        """What the tokenizer puts behind every text, such as [SEP]."""
        encoding = self._tokenizer.encode("a")
        flags: list[int] = encoding.special_tokens_mask
        count = 0
        while count < len(flags) and flags[-1 - count]:
            count += 1
        return tuple(encoding.ids[len(flags) - count :])


def even_batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Places of texts that go into one batch together: near in length, and few enough padded tokens.

    A text longer than MAX_PADDED_TOKENS is a batch of its own.
    """
    batch: list[int] = []
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        length = lengths[place]
        if batch and (
            length // LENGTH_SPAN != lengths[batch[0]] // LENGTH_SPAN
            or length * (len(batch) + 1) > MAX_PADDED_TOKENS
        ):
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch
