"""Texts to token ids, cut to the model's window and said so.

Text is cut before it is tokenised: a tokenizer takes some hundred bytes a token, and of a long text the model reads
the first tokens alone. What was cut counts as truncated.
Padding and truncation are ours: a tokenizer file that did either would do it unreported. What a ticket says is text:
"[SEP]" or "[MASK]" in it are words, not the special tokens of that name, with which it could rewrite its question.
A text of which too much is unknown to the model counts as truncated: other scripts, and words of over 100 characters,
are read as one unknown token each, and a decision on that would be one on text that was not read.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ticketgate.agents.scoring.folder import ModelFolder
from tokenizers import Tokenizer

# Of a text so many characters a token of the window are tokenised, and four times as many as long as they do not fill
# it; text that has fewer tokens than one in 64 characters is blanks, or encoded.
FIRST_CHARS_A_TOKEN = 4
MOST_CHARS_A_TOKEN = 64
# A text is cut between words, so that those before the cut are read as ever; a longer word is cut within.
MOST_WORD_CHARS = 256

# The share of a text's characters, blanks aside, that may be unknown to the model before the text counts as truncated.
# An emoji in a sentence is less; a line of Thai, or a ticket that is mostly one encoded string, is more.
MOST_UNKNOWN = 0.2

# The share beyond which a model that names what it reads does not stand by its answers.
MOST_OUTSIDE = 0.5


@dataclass(frozen=True, slots=True)
class Tokens:
    """One text as the model reads it. `is_truncated`: the window did not hold all of it, or too much is unknown.

    types: for each token which of two texts it belongs to; empty where there is one text.
    """

    ids: tuple[int, ...]
    is_truncated: bool
    types: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Begun:
    """One text of a pair, tokenised and cut to the window. unknown_chars: those of its `chars` that the model does not
    know."""

    ids: tuple[int, ...]
    is_truncated: bool
    unknown_chars: int
    chars: int


@dataclass(frozen=True, slots=True)
class _PairLayout:
    """The special tokens around a pair, as [CLS] first [SEP] second [SEP], and the types of all."""

    before: tuple[int, ...]
    between: tuple[int, ...]
    after: tuple[int, ...]
    special_types: tuple[int, ...]
    text_types: tuple[int, int]

    def types(self, first: int, second: int) -> tuple[int, ...]:
        """For a pair of so many tokens."""
        begin, end = len(self.before), len(self.before) + len(self.between)
        special, (left, right) = self.special_types, self.text_types
        return (*special[:begin], *[left] * first, *special[begin:end], *[right] * second, *special[end:])


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
        # More of a text need not be written: one character beyond what is tokenised says that there was more.
        self._windows = folder.manifest.limits.windows
        self.most_chars = self.window * self._windows * MOST_CHARS_A_TOKEN + 1
        self._beginning, self._ending = self._special_tokens()
        self._unknown = self._unknown_id()

    def require_pairs(self, folder: ModelFolder) -> None:
        """Raises ScorerError if the tokenizer cannot read two texts as one sequence."""
        try:
            self._layout  # noqa: B018 - looked at for what it raises
        except ValueError as err:
            raise folder.refusal(f"{folder.manifest.tokenizer.file}: {err}") from err

    def read(self, text: str) -> Tokens:
        """The text's tokens. One that is too long loses its end, but keeps the closing special tokens."""
        encoding, is_cut = self._encode(text, has_special=True)
        ids = encoding.ids
        if len(ids) <= self.window:
            return Tokens(tuple(ids), is_truncated=is_cut or self._is_unknown(encoding))
        kept = self.window - len(self._ending)
        return Tokens((*ids[:kept], *self._ending), is_truncated=True)

    def windows(self, text: str) -> list[Tokens]:
        """The text's tokens in as many windows as it takes and the folder allows, one behind the other, each with the
        special tokens around it. The last one is truncated if there was more, or if too much is unknown."""
        encoding, is_cut = self._encode(text, has_special=True, windows=self._windows)
        ids = encoding.ids
        begin, end = len(self._beginning), len(ids) - len(self._ending)
        room = self.window - begin - len(self._ending)
        starts = range(begin, max(end, begin + 1), room)
        read = [
            Tokens((*self._beginning, *ids[at : min(at + room, end)], *self._ending), False) for at in starts
        ]
        is_truncated = is_cut or len(read) > self._windows or self._is_unknown(encoding)
        kept = read[: self._windows]
        return [*kept[:-1], replace(kept[-1], is_truncated=is_truncated)]

    def read_words(self, text: str) -> Tokens:
        """The text's tokens without special ones, as many as the window has."""
        encoding, is_cut = self._encode(text, has_special=False)
        ids = encoding.ids
        is_truncated = is_cut or len(ids) > self.window or self._is_unknown(encoding)
        return Tokens(tuple(ids[: self.window]), is_truncated)

    def begin(self, text: str) -> "Begun":
        """One text of a pair, read once for all pairs that it stands in."""
        encoding, is_cut = self._encode(text, has_special=False)
        ids = encoding.ids
        unknown, chars = self._unknown_chars(encoding)
        return Begun(tuple(ids[: self.window]), is_cut or len(ids) > self.window, unknown, chars)

    def pair(self, first: "Begun", second: "Begun") -> Tokens:
        """Two texts as one sequence. If it is too long, `first` loses its end; if that is not enough, both do."""
        layout = self._layout
        room = self.window - len(layout.before) - len(layout.between) - len(layout.after)
        kept = second.ids[: max(0, room)]
        begin = first.ids[: max(0, room - len(kept))]
        is_cut = len(begin) < len(first.ids) or len(kept) < len(second.ids)
        is_unknown = first.unknown_chars + second.unknown_chars > MOST_UNKNOWN * (first.chars + second.chars)
        return Tokens(
            (*layout.before, *begin, *layout.between, *kept, *layout.after),
            is_truncated=first.is_truncated or second.is_truncated or is_cut or is_unknown,
            types=layout.types(len(begin), len(kept)),
        )

    def is_outside(self, text: str) -> bool:
        """Whether most of the text is unknown to the model, or read letter by letter, as words in scripts are that it
        has not learnt."""
        encoding, _ = self._encode(text, has_special=False)
        words: dict[int | None, list[int]] = {}
        everything = outside = 0
        for token, word, (start, end) in zip(encoding.ids, encoding.word_ids, encoding.offsets, strict=True):
            everything += end - start
            if token == self._unknown:
                outside += end - start
            else:
                words.setdefault(word, []).append(end - start)
        outside += sum(len(spelt) for spelt in words.values() if len(spelt) > 1 and max(spelt) == 1)
        return outside > MOST_OUTSIDE * everything

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

    def _encode(self, text: str, *, has_special: bool, windows: int = 1) -> tuple[Any, bool]:
        """The encoding of as much of the text as so many windows can hold, and whether that is less than all of it."""
        window = self.window * windows
        most = window * FIRST_CHARS_A_TOKEN
        while True:
            part = _cut(text, most)
            encoding = self._tokenizer.encode(part, add_special_tokens=has_special)
            is_all = len(part) == len(text)
            if is_all or len(encoding.ids) > window or most >= window * MOST_CHARS_A_TOKEN:
                return encoding, not is_all
            most *= 4

    def _is_unknown(self, encoding: Any) -> bool:
        """Whether more of the text than MOST_UNKNOWN is unknown to the model."""
        if self._unknown is None or self._unknown not in encoding.ids:
            return False
        unknown, chars = self._unknown_chars(encoding)
        return unknown > MOST_UNKNOWN * chars

    def _unknown_chars(self, encoding: Any) -> tuple[int, int]:
        """How many of the text's characters, blanks aside, are unknown to the model, and how many there are."""
        unknown = chars = 0
        for token, (start, end) in zip(encoding.ids, encoding.offsets, strict=True):
            chars += end - start
            unknown += end - start if token == self._unknown else 0
        return unknown, chars

    @cached_property
    def _layout(self) -> _PairLayout:
        """How the tokenizer puts two texts together: seen by a pair, for it tells it in no other way."""
        encoding = self._tokenizer.encode("a", "a")
        ids, types, sequences = encoding.ids, encoding.type_ids, encoding.sequence_ids
        first = [place for place, sequence in enumerate(sequences) if sequence == 0]
        second = [place for place, sequence in enumerate(sequences) if sequence == 1]
        if not first or not second or first[-1] > second[0]:
            raise ValueError("the tokenizer puts no two texts one behind the other")
        special = [place for place, sequence in enumerate(sequences) if sequence is None]
        return _PairLayout(
            before=tuple(ids[: first[0]]),
            between=tuple(ids[first[-1] + 1 : second[0]]),
            after=tuple(ids[second[-1] + 1 :]),
            special_types=tuple(types[place] for place in special),
            text_types=(types[first[0]], types[second[0]]),
        )

    def _unknown_id(self) -> int | None:
        """The token that stands for what the vocabulary has not; a vocabulary of bytes needs none."""
        model = json.loads(self._tokenizer.to_str())["model"]
        if isinstance(token := model.get("unk_token"), str):
            return self.token_id(token)
        return model["unk_id"] if isinstance(model.get("unk_id"), int) else None

    def _special_tokens(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """What the tokenizer puts before and behind every text, such as [CLS] and [SEP]."""
        encoding = self._tokenizer.encode("a")
        texts = [place for place, is_special in enumerate(encoding.special_tokens_mask) if not is_special]
        return tuple(encoding.ids[: texts[0]]), tuple(encoding.ids[texts[-1] + 1 :])


def _cut(text: str, most: int) -> str:
    """The first `most` characters, less the word that would be cut in two."""
    if len(text) <= most:
        return text
    for place in range(most, max(0, most - MOST_WORD_CHARS), -1):
        if text[place].isspace():
            return text[:place]
    return text[:most]
