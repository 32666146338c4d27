"""Structured states and instructions as text that a model reads.

Promise: text stays as it is, in the one form of all texts that read the same (`codecs.values.texts`); objects and
arrays become one line a leaf, `path: value`. Values that have the same fingerprint read the same: keys are sorted, and
1.0 is written as 1. Not reversible, and not meant to be: two different values may read alike. No more than `most`
characters are written, however often a long key would stand in front of its leaves: 5 KB of ticket can mean 2 MB of
text, of which no model reads a thousandth.
"""

from collections.abc import Iterator
from itertools import repeat

import orjson
from ticketgate.codecs.values.exact import Exact
from ticketgate.codecs.values.strict import JsonValue
from ticketgate.codecs.values.texts import same

# Who names no bound reads no more than this. It is what the longest windows known (8,192 tokens) can read.
MOST_CHARS = 64 * 1024


def render(value: JsonValue, *, most: int = MOST_CHARS) -> str:
    """`value` as text; of an object or array the first `most` characters, where there are more.

    Text by itself is given back whole, for that costs nothing. Does not recurse; takes time in proportion to the
    value, and memory in proportion to what is written.
    """
    if isinstance(value, str):
        return same(value)
    written: list[str] = []
    room = most
    for pieces in _leaves(value):
        if written:
            pieces = ("\n", *pieces)
        for piece in pieces:
            written.append(piece[:room])
            room -= len(written[-1])
        if room <= 0:
            break
    return same("".join(written))


def _leaves(value: JsonValue) -> Iterator[tuple[str, ...]]:
    """The pieces of each leaf's line. The path stays in pieces: joined, it would be as long as all keys above it."""
    keys: list[str] = []
    # What is still to be read of each open object or array, and whether it put a key on the path.
    todo: list[tuple[Iterator[tuple[str | None, JsonValue]], bool]] = [(iter([(None, value)]), False)]
    while todo:
        entries, has_key = todo[-1]
        if has_key:
            keys.pop()
            todo[-1] = (entries, False)
        found = next(entries, None)
        if found is None:
            todo.pop()
            continue
        key, item = found
        # As ever: below an empty key the path begins anew.
        if key is not None:
            keys.append(key)
            todo[-1] = (entries, True)
        if isinstance(item, dict):
            names = sorted(item)
            todo.append((zip(names, map(item.__getitem__, names), strict=True), False))
        elif isinstance(item, list):
            todo.append((zip(repeat(None), item, strict=False), False))
        else:
            yield _line(keys, item)


def _line(keys: list[str], item: str | float | bool | None) -> tuple[str, ...]:
    begin = next((place for place, key in enumerate(keys) if key), len(keys))
    path = keys[begin:]
    if not path:
        return (_leaf(item),)
    pieces = [path[0]]
    for key in path[1:]:
        pieces += (".", key)
    return (*pieces, ": ", _leaf(item))


def _leaf(value: str | float | bool | None) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Exact):
        return str(value.normal())
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return orjson.dumps(value).decode()
