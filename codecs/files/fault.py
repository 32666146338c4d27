"""Why a file cannot be used, worded once for every reader."""

from __future__ import annotations

import re

from ticketgate.codecs.values.malformed import Malformed

# What `codecs.values.scan` says of a place.
_PLACE = re.compile(r",? at line (\d+), column (\d+)")


class FileFault(ValueError):
    """A file cannot be used: `source`, `line` (from 1, None where none can be named), `what` is wrong, the `remedy`.

    is_unreadable: there was nothing to read, which may pass by itself.
    """

    def __init__(
        self, source: str, what: str, remedy: str, *, line: int | None = None, is_unreadable: bool = False
    ) -> None:
        where = source if line is None else f"{source}:{line}"
        super().__init__(f"{where}: {what}; {remedy}")
        self.source, self.line, self.what, self.remedy = source, line, what, remedy
        self.is_unreadable = is_unreadable


def of_malformed(found: Malformed, source: str, remedy: str, *, line: int | None = None) -> FileFault:
    """The fault of a JSON text. line: where the text stands in the file, if it is one line of it."""
    place = _PLACE.search(found.reason)
    what = _PLACE.sub(r" at column \2", found.reason)
    if line is None and place is not None:
        line = int(place[1])
    return FileFault(source, what, remedy, line=line)
