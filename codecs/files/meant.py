"""What a person meant who wrote TOML that says something else: one table for many, many for one, a key below a table.

TOML's tables end only where the next begins, so a key that belongs to the top and stands below a header is the
table's. The message then says where the key must stand, and not that it is unknown.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ticketgate.codecs.files.positions import Path

Meant = tuple[str, str]

_WANTS_MANY = frozenset({"list_type", "tuple_type"})
_WANTS_ONE = frozenset({"dict_type", "model_type", "model_attributes_type", "dataclass_type", "mapping_type"})
_UNKNOWN = frozenset({"extra_forbidden", "unexpected_keyword_argument"})


def meant(
    kind: str, place: Path, document: Any, *, top: Collection[str], is_toml: bool = True
) -> Meant | None:
    """What is wrong at `place` and the remedy, where pydantic's `kind` of error has one of these causes; else None.

    top: the fields that belong to the document itself.
    """
    if not is_toml or not place:
        return None
    name = ".".join(str(part) for part in place if isinstance(part, str))
    value = value_at(document, place)
    if kind in _WANTS_MANY and isinstance(value, dict):
        one = str(place[-1]).removesuffix("s")
        return f"[{name}] is one table, where each {one} has its own", f"write [[{name}]]"
    if kind in _WANTS_ONE and isinstance(value, list) and value and isinstance(value[0], dict):
        return f"[[{name}]] is one of several tables, where there is but one", f"write [{name}]"
    if kind in _UNKNOWN and len(place) > 1 and place[-1] in top and not isinstance(value, dict | list):
        header = ".".join(str(part) for part in place[:-1] if isinstance(part, str))
        what = f'"{place[-1]}" stands in the table {header}, since it is below its header'
        return what, "move it above the first table"
    return None


def value_at(document: Any, place: Path) -> Any:
    """What stands at a place; None where there is nothing."""
    for part in place:
        if isinstance(document, dict):
            document = document.get(part)
        elif isinstance(document, list) and isinstance(part, int) and part < len(document):
            document = document[part]
        else:
            return None
    return document
