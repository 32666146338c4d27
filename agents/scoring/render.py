"""Structured states and instructions as text that a model reads.

Promise: text stays as it is; objects and arrays become one line a leaf, `path: value`. Values that have the
same fingerprint read the same: keys are sorted, and 1.0 is written as 1. Not reversible,
and not meant to be: two different values may read alike.
"""

import orjson
from ticketgate.codecs.values.strict import JsonValue


def render(value: JsonValue) -> str:
    """`value` as text. Costs time in proportion to the value, and does not recurse."""
    if isinstance(value, str):
        return value
    lines: list[str] = []
    todo: list[tuple[str, JsonValue]] = [("", value)]
    while todo:
        path, item = todo.pop()
        if isinstance(item, dict):
            # Last in, first out: pushed backwards, the first key is read first.
            todo.extend((f"{path}.{key}" if path else key, item[key]) for key in sorted(item, reverse=True))
        elif isinstance(item, list):
            todo.extend((path, entry) for entry in reversed(item))
        else:
            lines.append(f"{path}: {_leaf(item)}" if path else _leaf(item))
    return "\n".join(lines)


def _leaf(value: str | float | bool | None) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return orjson.dumps(value).decode()
