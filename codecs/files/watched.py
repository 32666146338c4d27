"""Files that belong together, each read once, and whether they still read as they did; and files that are watched.

Promise: what is watched and changed is read as at the start, and what cannot be used changes nothing. Only what reads
the same twice is judged, files that cannot be read too; each change is told once. The files are read anew each time,
for they are small: times of a file that was replaced, restored or mounted can lie.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Generic, TypeVar

from ticketgate.codecs.files.fault import FileFault
from ticketgate.codecs.files.reading import MAX_WRITTEN_BYTES, read_file

T = TypeVar("T")
E = TypeVar("E", bound=Exception)

# The first half of a file can be a whole one with half of what it says. Files count only if they read the same again
# after this time; who replaces one by renaming another never shows a half.
SETTLE_S = 0.1


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


class FilesWatch(Generic[T, E]):
    """Looks whether files have changed, once at each `look`. has_judged: whether a look came to an end."""

    def __init__(
        self,
        load: Callable[[Files], T],
        *,
        fault: type[E],
        take_over: Callable[[T], Awaitable[None]],
        keep_old: Callable[[E], None],
    ) -> None:
        """load: what the files say, filling `Files`; raises `fault`. take_over: of a change that can be used, keep_old:
        of one that cannot."""
        self._load, self._fault = load, fault
        self._take_over, self._keep_old = take_over, keep_old
        # As they were read and judged; nothing yet.
        self._judged = Files()
        self.has_judged = False

    async def look(self) -> None:
        """Take the files over if they have changed and can be used."""
        if await asyncio.to_thread(self._judged.is_unchanged):
            return
        files, found = await asyncio.to_thread(self._read)
        await asyncio.sleep(SETTLE_S)
        if not await asyncio.to_thread(files.is_unchanged):
            # Judged at the next look, for what was read is no longer there.
            return
        self._judged, self.has_judged = files, True
        if isinstance(found, self._fault):
            self._keep_old(found)
        else:
            await self._take_over(found)  # type: ignore[arg-type]  # `load` gives nothing else

    def _read(self) -> tuple[Files, T | E]:
        files = Files()
        try:
            return files, self._load(files)
        except self._fault as err:
            return files, err


def _read_or_fault(path: Path, kind: str, remedy: str) -> bytes | FileFault:
    try:
        return read_file(path, kind=kind, remedy=remedy, max_bytes=MAX_WRITTEN_BYTES)
    except FileFault as err:
        return err


def _same(one: bytes | FileFault, other: bytes | FileFault) -> bool:
    if isinstance(one, bytes) or isinstance(other, bytes):
        return one == other
    return one.is_unreadable == other.is_unreadable
