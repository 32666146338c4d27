"""A model's text as a JSON value: read as strictly as a record, and mended where only its syntax is broken.

Promise of a mend: deterministic, and of commas, colons, brackets and a code fence alone. Every text, number, true,
false and null of the model's stands in the mended value as it was written and in its order, and nothing else does; what
a mend would have to guess is left to the proposer. It happens only where the catalogue says so, and is told of.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from importlib import metadata
from typing import Final

from ticketgate.codecs.values.strict import JsonValue, Malformed, decode, encode

# A mend looks at each character several times over.
MOST_CHARS: Final = 65_536
_FENCE = re.compile(r"\s*```(?:json)?[ \t]*\n(.*?)\n?\s*```\s*", re.DOTALL)
# What a value is made of, whole; whatever lies between such pieces is syntax or no JSON at all.
_PIECE = re.compile(
    r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"'
    r"|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![0-9A-Za-z_.+-])"
    r"|(?:true|false|null)(?![0-9A-Za-z_])"
)
_SYNTAX = re.compile(r"[\s,:{}\[\]]*")


@dataclass(frozen=True, slots=True)
class Written:
    """The document that a text writes, or why it is none. mended_by: what mended its syntax; None where nothing did."""

    document: JsonValue | Malformed
    mended_by: str | None = None


def read_text(text: str, *, may_mend: bool) -> Written:
    """What a model's text says."""
    document = decode(text.encode("utf-8", "surrogatepass"))
    if not (may_mend and isinstance(document, Malformed) and _breaks_grammar(text)):
        return Written(document)
    mended = _mended(text)
    return Written(document) if mended is None else Written(mended, f"json-repair {_version()}")


def _breaks_grammar(text: str) -> bool:
    """Whether a text is refused for JSON's grammar, and not for what it says (a name twice, a number too large)."""
    try:
        json.loads(text)
    except json.JSONDecodeError:
        return True
    except (ValueError, RecursionError):
        return False
    return False


def _mended(text: str) -> JsonValue | None:
    """The object with its syntax mended; None where more than that is broken."""
    if len(text) > MOST_CHARS:
        return None
    fenced = _FENCE.fullmatch(text)
    body = text if fenced is None else fenced[1]
    pieces = _pieces(body)
    if not pieces:
        return None
    # Loaded where it is needed: most texts are JSON.
    import json_repair

    try:
        written = json_repair.repair_json(body, ensure_ascii=False)
        found = decode(written.encode("utf-8", "surrogatepass"))
        kept = _pieces(written)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or kept is None or list(map(_read, kept)) != list(map(_read, pieces)):
        return None
    return found


def _pieces(text: str) -> list[str] | None:
    """The values and names of a text in their order; None where anything else stands in it than these and syntax."""
    found: list[str] = []
    at = 0
    while True:
        syntax = _SYNTAX.match(text, at)
        at = at if syntax is None else syntax.end()
        if at == len(text):
            return found
        piece = _PIECE.match(text, at)
        if piece is None:
            return None
        found.append(piece[0])
        at = piece.end()


def _read(piece: str) -> bytes:
    """A piece in one spelling, so that an escape and its character are the same."""
    value = decode(f"[{piece}]".encode("utf-8", "surrogatepass"))
    return piece.encode("utf-8", "surrogatepass") if isinstance(value, Malformed) else encode(value)


def _version() -> str:
    return metadata.version("json-repair")
