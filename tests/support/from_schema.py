"""Values that a JSON Schema allows, for the part of JSON Schema that our OpenAPI description uses.

A keyword that is not known here raises, so that what is published and what is generated cannot drift apart.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
# Extra room above a minimum; a maximum is hit by tests of its own.
_MORE = 4
_KNOWN = {
    "type", "const", "oneOf", "properties", "required", "additionalProperties", "propertyNames", "minProperties",
    "maxProperties", "items", "minItems", "maxItems", "description",
}  # fmt: skip


def from_schema(schema: Any) -> st.SearchStrategy[Any]:
    """A strategy for `schema`, which has no references."""
    if unknown := set(schema) - _KNOWN:
        raise NotImplementedError(f"keywords {sorted(unknown)}")
    if "const" in schema:
        return st.just(schema["const"])
    if "oneOf" in schema:
        return st.one_of([from_schema(each) for each in schema["oneOf"]])
    kinds = schema.get("type", [])
    return st.one_of([_of_kind(kind, schema) for kind in ([kinds] if isinstance(kinds, str) else kinds)])


def _of_kind(kind: str, schema: Any) -> st.SearchStrategy[Any]:
    match kind:
        case "null":
            return st.none()
        case "boolean":
            return st.booleans()
        case "string":
            return st.text(max_size=40)
        case "array":
            least = schema.get("minItems", 0)
            most = min(schema.get("maxItems", 1000), least + _MORE)
            items = from_schema(schema["items"]) if "items" in schema else ANYTHING
            return st.lists(items, min_size=least, max_size=most)
        case "object":
            return _object(schema)
        case _:
            raise NotImplementedError(f"type {kind}")


def _object(schema: Any) -> st.SearchStrategy[Any]:
    named = {name: from_schema(each) for name, each in schema.get("properties", {}).items()}
    needed = {name: each for name, each in named.items() if name in schema.get("required", [])}
    known = st.fixed_dictionaries(
        needed, optional={name: each for name, each in named.items() if name not in needed}
    )
    more = schema.get("additionalProperties", True)
    if more is False:
        return known
    keys = st.text(min_size=schema.get("propertyNames", {}).get("minLength", 0), max_size=12)
    least = schema.get("minProperties", 0)
    others = st.dictionaries(
        keys.filter(lambda key: key not in named),
        ANYTHING if more is True else from_schema(more),
        min_size=max(0, least - len(needed)),
        max_size=max(1, least) + (1 if named else _MORE),
    )
    return st.tuples(others, known).map(lambda parts: parts[0] | parts[1])
