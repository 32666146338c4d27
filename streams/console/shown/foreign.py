"""Text from outside, in pieces that a template can mark: what does not show, and what looks like something else.

Promise: the pieces make up the text, but for what is escaped; nothing in them turns the direction of what is around
them. A page is never given more than MOST_SHOWN characters unless it asks for all.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from ticketgate.codecs.values.printable import printable

# A screen or two. A text of 200 kB would take a browser long, and a reader longer.
MOST_SHOWN = 4_000
# More pieces than this of a text are no help to anybody: then it is shown plain, but escaped.
MOST_PIECES = 400

_ESCAPED = re.compile(r"[^\n\t -~]")
_WORD = re.compile(r"[^\W\d_]+")
# Whose letters are taken for one another's.
_ALIKE = ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE")


@dataclass(frozen=True, slots=True)
class Piece:
    """kind: `plain`, `hidden` for what does not show and is escaped, `alike` for a word of several alphabets. told:
    what to say about it."""

    kind: str
    text: str
    told: str = ""


@dataclass(frozen=True, slots=True)
class Foreign:
    """A text as it is shown. left_out: how many characters follow. chars: how many there are."""

    pieces: tuple[Piece, ...]
    left_out: int
    chars: int


def foreign(text: str, *, most: int | None = MOST_SHOWN) -> Foreign:
    """A text, or its beginning."""
    shown = text if most is None or len(text) <= most else text[:most]
    return Foreign(tuple(_pieces(shown)), len(text) - len(shown), len(text))


def _pieces(text: str) -> list[Piece]:
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return [Piece("plain", text)] if text else []
    found: list[Piece] = []
    plain: list[str] = []

    def add(piece: Piece) -> None:
        if plain:
            found.append(Piece("plain", "".join(plain)))
            plain.clear()
        found.append(piece)

    for part in re.split(r"(\s+)", text):
        for word, escaped in _parted(part):
            if escaped:
                add(Piece("hidden", printable(word), _named(word)))
            elif alphabets := _alphabets(word):
                add(Piece("alike", word, f"letters of several alphabets: {', '.join(alphabets)}"))
            else:
                plain.append(word)
        if len(found) > MOST_PIECES:
            return [Piece("plain", printable(text))]
    if plain:
        found.append(Piece("plain", "".join(plain)))
    return found


def _parted(part: str) -> list[tuple[str, bool]]:
    """What shows, and what does not, in turn."""
    if part.isascii() and part.isprintable():
        return [(part, False)]
    found: list[tuple[str, bool]] = []
    start = 0
    for place, char in enumerate(part):
        if _ESCAPED.match(char) and printable(char) != char:
            if start < place:
                found.append((part[start:place], False))
            found.append((char, True))
            start = place + 1
    if start < len(part):
        found.append((part[start:], False))
    return found


def _alphabets(word: str) -> tuple[str, ...]:
    """The alphabets whose letters a word mixes; none where it has one."""
    if word.isascii():
        return ()
    for run in _WORD.findall(word):
        found = {alphabet for alphabet in map(_alphabet, run) if alphabet}
        if len(found) > 1:
            return tuple(sorted(found))
    return ()


@lru_cache(maxsize=4_096)
def _alphabet(char: str) -> str:
    name = unicodedata.name(char, "").partition(" ")[0]
    return name if name in _ALIKE else ""


def _named(char: str) -> str:
    return f"U+{ord(char):04X} {unicodedata.name(char, 'a control character').lower()}"
