"""Files that somebody packed: gzip is unpacked as it is read, within limits; another packing is named.

Promise: what a few bytes unpack to costs neither the memory nor the hours that it asks for: no line, and no file that
is read whole, is longer than the limit, and what unpacks to more than 500 times its size is refused. Relies on: gzip's
own sums, by which what was cut or changed on the way is noticed at its end, and not before.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from ticketgate.codecs.values.limits import MAX_FILE_BYTES

GZIP_MAGIC = b"\x1f\x8b"
# A line that was packed: many times what a record may have, and what every machine has.
MAX_LINE_BYTES = MAX_FILE_BYTES
# A log of tickets that are all alike packs to a three-hundredth; gzip itself can do no better than 1,030.
MOST_TIMES = 500
# So much is nothing, however small the file; as lines without a character it takes a second.
_LOOK_BYTES = 2**20

# What a file begins with that nothing here unpacks, or that is text in another encoding: no line of it can be read.
_OTHERS = {
    b"\x28\xb5\x2f\xfd": "zstd; unpack it: `zstd -dc FILE | ticketgate … -`",
    b"BZh": "bzip2; unpack it: `bunzip2 -c FILE | ticketgate … -`",
    b"\xfd7zXZ": "xz; unpack it: `xz -dc FILE | ticketgate … -`",
    b"PK\x03\x04": "a zip archive or a workbook; unpack it, or save it as CSV",
}
_ENCODINGS = {b"\xff\xfe": "UTF-16; save it as UTF-8", b"\xfe\xff": "UTF-16; save it as UTF-8"}


class InputFault(Exception):
    """What comes cannot be read, as a gzip that was cut: what, and the way out."""


def other_packing(begins: bytes) -> str | None:
    """What a file is that begins like this, and the way out; None if it may be text or gzip."""
    return _named(begins, _OTHERS)


def unreadable(begins: bytes) -> str | None:
    """As `other_packing`, and text in another encoding besides."""
    return _named(begins, {**_OTHERS, **_ENCODINGS})


def _named(begins: bytes, known: dict[bytes, str]) -> str | None:
    return next((what for magic, what in known.items() if begins.startswith(magic)), None)


class Unpacked:
    """What a gzip of one or more parts unpacks to. Each way of reading raises `InputFault`, and OSError."""

    def __init__(self, packed: IO[bytes] | io.RawIOBase) -> None:
        self._packed = _Counted(packed)
        self._file = gzip.GzipFile(fileobj=self._packed)
        self._given, self._look_at = 0, _LOOK_BYTES

    def lines(self) -> Iterator[bytes]:
        """Each line with its end."""
        with _told():
            while line := self._file.readline(MAX_LINE_BYTES + 1):
                if len(line) > MAX_LINE_BYTES:
                    raise InputFault(f"unpacks to more than the {MAX_LINE_BYTES} bytes that a line may have")
                self._count(len(line))
                yield line

    def some(self, size: int) -> bytes:
        """At most `size` bytes, as soon as there are any; nothing at the end of the file."""
        with _told():
            part = self._file.read1(size)
        self._count(len(part))
        return part

    def _count(self, size: int) -> None:
        self._given += size
        if self._given < self._look_at:
            return
        self._look_at = self._given + _LOOK_BYTES
        if self._given > MOST_TIMES * self._packed.count:
            raise InputFault(
                f"unpacks to more than {MOST_TIMES} times its size; if that is meant, unpack it and give that"
            )


def unpacked(file: io.BufferedReader) -> Unpacked | None:
    """What a file unpacks to that begins as a gzip does; None for another, of which nothing is read then."""
    return Unpacked(file) if file.peek(len(GZIP_MAGIC)).startswith(GZIP_MAGIC) else None


def unpack(content: bytes) -> bytes:
    """What a gzip unpacks to. Raises `InputFault`."""
    packed, parts, count = Unpacked(io.BytesIO(content)), list[bytes](), 0
    while part := packed.some(2**20):
        parts.append(part)
        count += len(part)
        if count > MAX_FILE_BYTES:
            raise InputFault(f"unpacks to more than the {MAX_FILE_BYTES} bytes that are read; give less")
    return b"".join(parts)


class _Counted(io.RawIOBase):
    """A file whose bytes are counted as they are read."""

    def __init__(self, file: IO[bytes] | io.RawIOBase) -> None:
        super().__init__()
        self._file, self.count = file, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # typeshed names a wider buffer
        part = self._file.read(len(buffer)) or b""
        buffer[: len(part)] = part
        self.count += len(part)
        return len(part)


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except EOFError:
        raise InputFault("the gzip ends before its end; it was cut short: get all of it") from None
    except gzip.BadGzipFile as err:
        if "Not a gzipped file" in str(err):
            raise InputFault("what follows the gzip is not gzip; give a file that is all gzip") from None
        raise InputFault("the gzip is corrupt: its sum does not fit; get it again") from None
    except zlib.error:
        raise InputFault("the gzip is corrupt; get it again") from None
