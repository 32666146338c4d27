"""Texts to token ids, cut to the model's window and said so, and batches of even length.

Padding and truncation are ours: a tokenizer file that did either would do it unreported. What a ticket says is text:
"[SEP]" or "[MASK]" in it are words, not the special tokens of that name, with which it could rewrite its question.
A text of which too much is unknown to the model counts as truncated: other scripts, and words of over 100 characters,
are read as one unknown token each, and a decision on that would be one on text that was not read.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

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


# The share of a text's characters, blanks aside, that may be unknown to the model before the text counts as truncated.
# An emoji in a sentence is less; a line of Thai, or a ticket that is mostly one encoded string, is more.
MOST_UNKNOWN = 0.2


@dataclass(frozen=True, slots=True)
class Tokens:
    """One text as the model reads it. `is_truncated`: the window did not hold all of it, or too much is unknown.

    types: for each token which of two texts it belongs to; empty where there is one text.
    """

    ids: tuple[int, ...]
    is_truncated: bool
    types: tuple[int, ...] = ()


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
        self._tokenizer.encode_special_tokens = True
        self._pad_id = entry.pad_id
        self.window = folder.manifest.limits.window
        self._ending = self._special_tokens_at_the_end()
        self._unknown = self._unknown_id()

    def read(self, text: str) -> Tokens:
        """The text's tokens. One that is too long loses its end, but keeps the closing special tokens."""
        encoding = self._tokenizer.encode(text)
        ids = encoding.ids
        if len(ids) <= self.window:
            return Tokens(tuple(ids), is_truncated=self._is_unknown(encoding))
        kept = self.window - len(self._ending)
        return Tokens((*ids[:kept], *self._ending), is_truncated=True)

    def read_words(self, text: str) -> Tokens:
        """The text's tokens without special ones, however many."""
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        return Tokens(tuple(encoding.ids), is_truncated=self._is_unknown(encoding))

    def read_pair(self, first: str, second: str) -> Tokens:
        """Two texts as one sequence. If it is too long, `first` loses its end; if that is not enough, both do."""
        encoding = self._tokenizer.encode(first, second)
        is_truncated = self._is_unknown(encoding)
        if (excess := len(encoding.ids) - self.window) > 0:
            is_truncated = True
            # Which token belongs to which text, None for the special ones.
            sequences = encoding.sequence_ids
            drop = _last(sequences, 0, excess)
            drop |= _last(sequences, 1, excess - len(drop))
            kept = [place for place in range(len(sequences)) if place not in drop]
            return Tokens(
                tuple(encoding.ids[place] for place in kept),
                is_truncated,
                tuple(encoding.type_ids[place] for place in kept),
            )
        return Tokens(tuple(encoding.ids), is_truncated, tuple(encoding.type_ids))

    def token_id(self, token: str) -> int | None:
        """The id of a token of the vocabulary."""
        found: int | None = self._tokenizer.token_to_id(token)
        return found

    def pad(self, batch: Sequence[Tokens]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Ids and mask, each int64 [len(batch), longest]."""
        longest = max(len(tokens.ids) for tokens in batch)
        ids = np.full((len(batch), longest), self._pad_id, np.int64)
        mask = np.zeros((len(batch), longest), np.int64)
        for row, tokens in enumerate(batch):
            ids[row, : len(tokens.ids)] = tokens.ids
            mask[row, : len(tokens.ids)] = 1
        return ids, mask

    def _is_unknown(self, encoding: Any) -> bool:
        """Whether more of the text than MOST_UNKNOWN is unknown to the model."""
        if self._unknown is None or self._unknown not in encoding.ids:
            return False
        unknown = everything = 0
        for token, (start, end) in zip(encoding.ids, encoding.offsets, strict=True):
            everything += end - start
            unknown += end - start if token == self._unknown else 0
        return unknown > MOST_UNKNOWN * everything

    def _unknown_id(self) -> int | None:
        """The token that stands for what the vocabulary has not; a vocabulary of bytes needs none."""
        model = json.loads(self._tokenizer.to_str())["model"]
        if isinstance(token := model.get("unk_token"), str):
            return self.token_id(token)
        return model["unk_id"] if isinstance(model.get("unk_id"), int) else None

    def _special_tokens_at_the_end(self) -> tuple[int, ...]:
        """What the tokenizer puts behind every text, such as [SEP]."""
        encoding = self._tokenizer.encode("a")
        flags: list[int] = encoding.special_tokens_mask
        count = 0
        while count < len(flags) and flags[-1 - count]:
            count += 1
        return tuple(encoding.ids[len(flags) - count :])


def _last(sequences: Sequence[int | None], which: int, count: int) -> set[int]:
    """The places of the last `count` tokens of one text."""
    places = [place for place, sequence in enumerate(sequences) if sequence == which]
    return set(places[max(0, len(places) - count) :]) if count > 0 else set()


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
