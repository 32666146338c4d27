"""Reaching into a ticket's attributes by a dotted name: `attributes.customer.tier`.

A key that contains a dot cannot be reached, so that one name never has two readings. A name finds the key that reads
the same; where several do and hold different values, none of them is the attribute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ticketgate.codecs.values.strict import JsonValue
from ticketgate.codecs.values.texts import find

ROOT = "attributes"


@dataclass(frozen=True, slots=True)
class Missing:
    """The ticket has no such attribute. Unlike None, which an attribute may well be."""


MISSING: Final = Missing()


@dataclass(frozen=True, slots=True)
class AttributePath:
    """The keys from a ticket's `attributes` down to one value, at least one."""

    keys: tuple[str, ...]

    def __str__(self) -> str:
        """The name as a policy writes it below `attributes.`: `customer.tier`."""
        return ".".join(self.keys)

    def find(self, attributes: Mapping[str, JsonValue]) -> JsonValue | Missing:
        """The value, or MISSING where a key is absent or something on the way is no object."""
        found: JsonValue = attributes if isinstance(attributes, dict) else dict(attributes)
        for key in self.keys:
            if not isinstance(found, dict) or (entry := find(key, found)) is None:
                return MISSING
            _, found = entry
        return found

    def placed(self, value: JsonValue) -> dict[str, JsonValue]:
        """Attributes in which this path, and nothing else, leads to `value`."""
        for key in reversed(self.keys):
            value = {key: value}
        return value if isinstance(value, dict) else {}


def attribute_path(parts: Sequence[str]) -> AttributePath | None:
    """The path that dotted parts write, `["attributes", "vip"]`, or None if they write none."""
    if len(parts) < 2 or parts[0] != ROOT or not all(part and part == part.strip() for part in parts):
        return None
    return AttributePath(tuple(parts[1:]))
