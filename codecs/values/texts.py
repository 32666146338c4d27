"""When two texts are the same to whoever reads them, and how to show that two are not.

Promise: `same` gives one form for texts that are written alike: composed or decomposed letters, emoji with or without
their variation selector, text with characters that nobody sees. It is for comparing alone: what is recorded, sent on
and fingerprinted stays as it came. Letters that only look alike (a Cyrillic s, a Latin one) are two; `apart` names
them.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import TypeVar

from ticketgate.codecs.values.malformed import QUOTE_CHARS

T = TypeVar("T")

# Default_Ignorable_Code_Point of the Unicode Character Database, which a reader does not see. Two of them make other
# emoji of those around them, and stay there: the joiner behind an emoji (a family is not its members), and tags behind
# the black flag (Scotland is not Wales).
_UNSEEN = re.compile(
    "(?<![\u2190-\u2bff\U0001f000-\U0001faff])\u200d"
    "|(?<![\U0001f3f4\U000e0020-\U000e007f])[\U000e0020-\U000e007f]"
    "|[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200c\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e001f\U000e0080-\U000e0fff]"
)
# A variation selector between an emoji and its joiner would hide the emoji from the joiner.
_SELECTOR = re.compile("[\ufe0e\ufe0f]")

# What a reader takes for one another in ASCII.
_ALIKE = ("l1I|", "0O", "-_")
_NEIGHBOURS = 12


def same(text: str) -> str:
    """One form for every way to write what reads the same."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", _UNSEEN.sub("", _SELECTOR.sub("", text)))


def are_same(one: object, other: object) -> bool:
    """Whether two values are equal, type and all, texts by how they read."""
    if isinstance(one, str) and isinstance(other, str):
        return one == other or same(one) == same(other)
    return type(one) is type(other) and one == other


def find(text: str, among: Mapping[str, T]) -> tuple[str, T] | None:
    """The entry whose key reads as `text` does, before others the one that is spelled so.

    None if there is none; also if several read the same and hold different values, for nothing says which is meant.
    """
    if text.isascii() and all(map(str.isascii, among)):
        return (text, among[text]) if text in among else None
    wanted = same(text)
    found = [(key, value) for key, value in among.items() if key == text or same(key) == wanted]
    if not found or any(value != found[0][1] for _, value in found):
        return None
    return (text, among[text]) if text in among else found[0]


def spelled(text: str, known: Iterable[str]) -> str | None:
    """How `known` writes `text`, or None if it does not."""
    found = find(text, dict.fromkeys(known))  # all hold the same: the first that reads so
    return None if found is None else found[0]


def twins(texts: Iterable[str]) -> tuple[str, str] | None:
    """The first two that read the same, if there are any."""
    seen: dict[str, str] = {}
    for text in texts:
        if (first := seen.setdefault(same(text), text)) != text:
            return first, text
    return None


def apart(one: str, other: str, *, shown: int = QUOTE_CHARS) -> str:
    """Where two texts differ, if one could not see it: what stands there, with its code points; else nothing.

    shown: how many characters of each a message shows.
    """
    place = next(
        (index for index, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )
    first, second = one[place : place + 1], other[place : place + 1]
    if first == second or (place < shown and not _may_be_missed(first, second)):
        return ""
    where = f"the first difference is character {place + 1}: {_named(first)}, and not {_named(second)}"
    if place < shown - 1:
        return where
    begin = max(0, place - _NEIGHBOURS)
    end = place + _NEIGHBOURS
    return f"{where}, in {_quoted(one[begin:end])} and {_quoted(other[begin:end])}"


def alike(text: str, known: Iterable[str]) -> str:
    """`; "support" looks like it: the first difference is …`, for the known text that one could take `text` for; else
    nothing."""
    for each in difflib.get_close_matches(text, list(known), n=3, cutoff=0.6):
        if why := apart(text, each):
            return f"; {_quoted(each)} looks like it: {why}"
    return ""


def _may_be_missed(one: str, other: str) -> bool:
    """Whether a reader may not see that these two characters differ, or that one is missing."""
    if not one or not other:
        return not (one or other).isprintable() or (one or other).isspace()
    if not (one.isascii() and other.isascii()):
        return True
    return one.isspace() or other.isspace() or any(one in group and other in group for group in _ALIKE)


def _named(char: str) -> str:
    if not char:
        return "the end"
    name = unicodedata.name(char, "")
    return f"U+{ord(char):04X} {name}".rstrip()


def _quoted(text: str) -> str:
    return (
        '"'
        + "".join(char if char.isprintable() and char != '"' else f"\\u{ord(char):04x}" for char in text)
        + '"'
    )
