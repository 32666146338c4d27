"""Files that belong together, each read once, and whether they still read as they did."""

from __future__ import annotations

from pathlib import Path

from ticketgate.codecs.files.fault import FileFault
from ticketgate.codecs.files.reading import MAX_WRITTEN_BYTES, read_file


class Files:
    """The files of one policy, or of one list of keys; a second is read from another `Files`."""

    def __init__(self) -> None:
        self._read: dict[Path, bytes | FileFault] = {}

    def read(self, path: Path, kind: str, *, remedy: str = "name a readable file") -> bytes:
        """The bytes of a file. Raises FileFault."""
        if path not in self._read:
            self._read[path] = _read_or_fault(path, kind, remedy)
        found = self._read[path]
        if isinstance(found, FileFault):
            raise found
        return found

    def is_unchanged(self) -> bool:
        """Whether every file still reads as it did, one that cannot be read too. Reads them all again."""
        return bool(self._read) and all(
            _same(found, _read_or_fault(path, "file", "")) for path, found in self._read.items()
        )


def _read_or_fault(path: Path, kind: str, remedy: str) -> bytes | FileFault:
    try:
        return read_file(path, kind=kind, remedy=remedy, max_bytes=MAX_WRITTEN_BYTES)
    except FileFault as err:
        return err


def _same(one: bytes | FileFault, other: bytes | FileFault) -> bool:
    if isinstance(one, bytes) or isinstance(other, bytes):
        return one == other
    return one.is_unreadable == other.is_unreadable
