"""TOML that people write: a document of JSON values, refused by line and column where it is none.

Promise: `read_toml` gives a value or raises FileFault, for any text. What tomllib cannot bear is seen before it reads:
nesting that would exhaust its stack, keys of very many parts (it takes the square of them), integers that Python will
not convert. What JSON cannot carry is seen after: dates, infinities, integers beyond 64 bits.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from datetime import date, datetime, time
from typing import Any

from ticketgate.codecs.files.fault import FileFault
from ticketgate.codecs.files.positions import STRING, Path, line_of, locate
from ticketgate.codecs.files.toml_limits import MOST_KEY_PARTS, long_key_line
from ticketgate.codecs.values.limits import MAX_DEPTH, MAX_INTEGER, MAX_WHOLE_DIGITS, MIN_INTEGER
from ticketgate.codecs.values.strict import is_within_depth

_TOKEN = re.compile(
    rf"(?P<text>{STRING.pattern})|#[^\n]*+|(?P<open>[\[{{])|(?P<close>[\]}}])|(?P<digits>[0-9][0-9_]{{{MAX_WHOLE_DIGITS},}}+)",
    re.DOTALL,
)
# tomllib's words for a header that is there already.
_TWICE = re.compile(r"Cannot declare \(([^)]*)\) twice")
_TOO_DEEP = f"nested more than {MAX_DEPTH} levels deep"

# The place, what stands there, the remedy.
Foreign = tuple[Path, str, str]


def read_toml(text: str, *, source: str) -> dict[str, Any]:
    """The document, every value one that JSON can carry. Raises FileFault."""
    written = parse_toml(text, source=source)
    for place, what, remedy in foreign_values(written):
        raise FileFault(source, f"{dotted(place)} is {what}", remedy, line=line_of(locate(text), place))
    return written


def parse_toml(text: str, *, source: str) -> dict[str, Any]:
    """The document, which may still hold what `foreign_values` finds. Raises FileFault."""
    if (line := long_key_line(text)) is not None:
        what = f"a key with more than {MOST_KEY_PARTS} parts between dots"
        raise FileFault(source, what, "write shorter keys", line=line)
    _require_bearable(text, source)
    try:
        written = tomllib.loads(text)
    except ValueError as err:
        where = re.search(r"\(at line (\d+), column (\d+)\)", str(err))
        what = f"not TOML: {err}" if where is None else f"not TOML: {str(err)[: where.start()].strip()}"
        if twice := _TWICE.search(str(err)):
            name = ".".join(re.findall(r"'([^']*)'", twice[1]))
            what, remedy = f"[{name}] is declared twice", f"write [[{name}]] for each, if there are several"
            raise FileFault(source, what, remedy, line=None if where is None else int(where[1])) from None
        column = "" if where is None else f" near column {where[2]}"
        line = text.rstrip("\n").count("\n") + 1 if where is None else int(where[1])
        raise FileFault(source, what, f"mend the line{column}", line=line) from None
    if (place := _too_deep(written)) is not None:
        raise FileFault(source, _TOO_DEEP, "flatten the arrays and tables", line=line_of(locate(text), place))
    return written


def foreign_values(value: object, place: Path = ()) -> Iterator[Foreign]:
    """What TOML can write and a record cannot carry, in order. Relies on `parse_toml` for the depth."""
    if isinstance(value, datetime | date | time):
        yield place, "a TOML date or time", f'write it as text: "{value.isoformat()}"'
    elif isinstance(value, float) and not abs(value) < float("inf"):
        yield place, str(value), "write a finite number"
    elif isinstance(value, int) and not MIN_INTEGER <= value <= MAX_INTEGER:
        yield place, "an integer beyond 64 bits", "write it as text"
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from foreign_values(each, (*place, key))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from foreign_values(each, (*place, index))


def dotted(place: Path) -> str:
    """A place as people write it, elements counted from 1: `questions.urgent.criteria element 2`."""
    text = ""
    for part in place:
        text += f" element {part + 1}" if isinstance(part, int) else f".{part}" if text else part
    return text


def _require_bearable(text: str, source: str) -> None:
    """Raises FileFault for what would end tomllib by its stack, or by Python's limit on digits."""
    depth = 1
    for token in _TOKEN.finditer(text):
        if token["open"]:
            depth += 1
        elif token["close"]:
            depth -= 1
        elif token["digits"] is None:
            continue
        # A header's brackets are no nesting; those of an array of tables are two.
        if depth <= MAX_DEPTH + 2 and not token["digits"]:
            continue
        line = text.count("\n", 0, token.start()) + 1
        column = token.start() - text.rfind("\n", 0, token.start())
        if token["digits"]:
            raise FileFault(
                source, f"an integer beyond 64 bits, at column {column}", "write it as text", line=line
            )
        raise FileFault(
            source, f"{_TOO_DEEP}, at column {column}", "flatten the arrays and tables", line=line
        )


def _too_deep(document: dict[str, Any]) -> Path | None:
    """The place of the first that is nested too deeply, if there is one."""
    # Asked first: a path for each of a hundred thousand arrays would take more than they do.
    return None if is_within_depth(document, MAX_DEPTH) else _path_down(document, ())


def _path_down(value: Any, place: Path) -> Path | None:
    if len(place) == MAX_DEPTH:
        return place
    for key, each in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(each, dict | list) and (found := _path_down(each, (*place, key))) is not None:
            return found
    return None
