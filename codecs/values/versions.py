"""Which versions of a record this worker reads: N and N-1, every other refused by name.

Records grow by new versions, never by new fields in an old one, and workers are upgraded before producers
To add a version: write its reader, add it here, drop the one before the last, and keep a
recorded record of each in tests/codecs/recorded/.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from ticketgate.codecs.values.malformed import Malformed, quote
from ticketgate.codecs.values.strict import JsonValue
from ticketgate.codecs.verdict import Stage

__all__ = ["Versions"]

Record = TypeVar("Record")
Reader = Callable[[dict[str, JsonValue]], Record | Malformed]


class Versions(Generic[Record]):
    """The readers of one kind of record by version number: the newest, and at most the one before it."""

    def __init__(self, kind: str, readers: Mapping[int, Reader[Record]]) -> None:
        newest = max(readers, default=0)
        if newest < 1 or set(readers) not in ({newest}, {newest, newest - 1}):
            raise ValueError(
                f"{kind}: give readers of version N, and N-1 if there is one, not {sorted(readers)}"
            )
        self.kind = kind
        self.current = f"{kind}/{newest}"
        self.readable = tuple(f"{kind}/{version}" for version in sorted(readers))
        self._readers = {f"{kind}/{version}": reader for version, reader in readers.items()}

    def read(self, record: dict[str, JsonValue]) -> Record | Malformed:
        """The record, by the reader that its `schema` names; without one by the newest, which judges that itself.

        A `schema` that is not text is left to the newest reader too, so that it is named with all other faults.
        """
        named = record.get("schema", self.current)
        if not isinstance(named, str):
            named = self.current
        reader = self._readers.get(named)
        if reader is None:
            known = " and ".join(quote(name) for name in self.readable)
            return Malformed(
                Stage.SCHEMA, "unknown_schema", f"unknown schema {quote(named)}; this worker reads {known}"
            )
        return reader(record)
