"""What a person reads, without what acts on their terminal: the one place that escapes.

Promise: control characters (C0, DEL, C1), what turns the direction of text or has no width, and lone surrogates come
out as `\\u009b`, which says what stands there and does nothing. Line feeds and tabs stay. What is printable is not
touched, of whatever script, and JSON stays the same JSON.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping

from ticketgate.codecs.values.exact import Exact

__all__ = ["json_text", "printable", "printable_json"]

# Wider than any one text needs, so that plain text costs one search. str.isprintable() has the last word.
_SUSPECT = re.compile(r"[^ -~\n\t]")
# Blanks of other widths: they stand between words and do nothing.
_SPACES = frozenset(
    "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
)


def printable(text: str) -> str:
    """`text` with every character escaped that does not show."""
    return _SUSPECT.sub(lambda found: found[0] if _shows(found[0]) else _as_python(found[0]), text)


def printable_json(text: str) -> str:
    """A JSON text, whose strings are escaped so that it reads back equal."""
    return _SUSPECT.sub(lambda found: found[0] if _shows(found[0]) else _as_json(found[0]), text)


def json_text(value: object, *, indent: int | None = None) -> str:
    """`value` as JSON that people can read."""
    exact, mark = list[str](), uuid.uuid4().hex
    text = json.dumps(_marked(value, exact, mark), ensure_ascii=False, indent=indent)
    if exact:
        text = re.sub(f'"{mark}([0-9]+)"', lambda found: exact[int(found[1])], text)
    return printable_json(text)


def _marked(value: object, exact: list[str], mark: str) -> object:
    """`value` with a mark in the place of each number that is kept as its text, which json would round: `mark`, which
    is new with each call and so no text that could stand there, and the number's place in `exact`."""
    if isinstance(value, Exact):
        exact.append(value.text)
        return f"{mark}{len(exact) - 1}"
    if isinstance(value, Mapping):
        return {name: _marked(each, exact, mark) for name, each in value.items()}
    return [_marked(each, exact, mark) for each in value] if isinstance(value, list | tuple) else value


def _shows(char: str) -> bool:
    return char.isprintable() or char in _SPACES


def _as_json(char: str) -> str:
    return json.dumps(char)[1:-1] if char != "\x7f" else "\\u007f"


def _as_python(char: str) -> str:
    return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"
