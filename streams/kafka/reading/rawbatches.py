"""Kafka's record batches (format 2) read from their bytes, as tolerantly as they allow.

Promise: a batch gives all its records or raises `BrokenBatch`, never some of them. Header names that are not UTF-8
come out with surrogate escapes, which `name.encode("utf-8", "surrogateescape")` turns back into their bytes.
aiokafka's own reader raises for such a name and gives up all that it had fetched of the partition.
Relies on: nothing; the bytes may be anything. Batches older than format 2 are left to aiokafka, as they have no
headers. Source: https://kafka.apache.org/documentation/#recordbatch
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from aiokafka.record.legacy_records import LegacyRecordBatch
from aiokafka.record.util import calc_crc32c
from ticketgate.streams.kafka.unpacking import (
    UnpacksTooLarge,
    gzip_decode,
    lz4_decode,
    snappy_decode,
    zstd_decode,
)

# Base offset, length, leader epoch, format, checksum, attributes, last offset's delta, first and greatest timestamp,
# producer's id, epoch and sequence, number of records.
_HEAD = struct.Struct(">qiibIhiqqqhii")
# What stands before that which `length` counts, and before that which the checksum covers.
_LENGTH_END = struct.calcsize(">qi")
_CHECKSUM_END = struct.calcsize(">qiibI")
_FORMAT_AT = struct.calcsize(">qii")

_CODEC_MASK = 0x07
_LOG_APPEND_TIME = 0x08
_TRANSACTIONAL = 0x10
_CONTROL = 0x20
_CODECS: Mapping[int, Callable[[bytes], bytes]] = {
    0: bytes,
    1: gzip_decode,
    2: snappy_decode,
    3: lz4_decode,
    4: zstd_decode,
}


class BrokenBatch(Exception):
    """A batch's bytes are not what they should be; the message says what is wrong, as a part of a sentence."""


@dataclass(frozen=True, slots=True)
class RawRecord:
    """One record, in the shape that aiokafka's PartitionRecords takes. `headers` may hold surrogate escapes."""

    offset: int
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    checksum: None = None


class RawBatch:
    """One batch of format 2, in the shape that aiokafka's PartitionRecords takes. Raises `BrokenBatch`, and
    `UnpacksTooLarge`."""

    def __init__(self, data: bytes) -> None:
        if len(data) < _HEAD.size:
            raise BrokenBatch(f"it has {len(data)} bytes, fewer than a batch's head")
        self._data = data
        (
            self.base_offset,
            _,
            _,
            _,
            self._checksum,
            self._attributes,
            last_delta,
            self._first_timestamp,
            self._max_timestamp,
            self.producer_id,
            _,
            _,
            self.count,
        ) = _HEAD.unpack_from(data)
        self.next_offset: int = self.base_offset + last_delta + 1
        self._records: Iterator[RawRecord] | None = None

    @property
    def is_transactional(self) -> bool:
        """Whether it was written in a transaction, committed or not."""
        return bool(self._attributes & _TRANSACTIONAL)

    @property
    def is_control_batch(self) -> bool:
        """Whether it is the broker's own marker at a transaction's end."""
        return bool(self._attributes & _CONTROL)

    def validate_crc(self) -> bool:
        """True; raises `BrokenBatch` where the checksum does not match."""
        if calc_crc32c(self._data[_CHECKSUM_END:]) != self._checksum:
            raise BrokenBatch("its checksum does not match its bytes")
        return True

    def __iter__(self) -> Iterator[RawRecord]:
        return self

    def __next__(self) -> RawRecord:
        if self._records is None:
            # All at once: records before a broken one may be broken as well.
            self._records = iter(self._read())
        return next(self._records)

    def _read(self) -> list[RawRecord]:
        codec = self._attributes & _CODEC_MASK
        decompress = _CODECS.get(codec)
        if decompress is None:
            raise BrokenBatch(f"it is compressed by a codec that nobody knows ({codec})")
        try:
            data = decompress(self._data[_HEAD.size :])
        except (UnpacksTooLarge, MemoryError):
            raise
        except Exception as err:  # each codec has errors of its own
            raise BrokenBatch(f"it cannot be decompressed ({err})") from err
        reader = _Reader(data)
        records = [self._read_record(reader) for _ in range(self.count)]
        if reader.at != len(data):
            raise BrokenBatch(f"{len(data) - reader.at} bytes stand behind its last record")
        return records

    def _read_record(self, reader: _Reader) -> RawRecord:
        length = reader.number()
        end = reader.at + length
        reader.take(1)  # attributes, which no record has yet
        timestamp = self._first_timestamp + reader.number()
        offset = self.base_offset + reader.number()
        key, value = reader.nullable(), reader.nullable()
        headers = tuple(
            (reader.take(reader.number()).decode("utf-8", "surrogateescape"), reader.nullable())
            for _ in range(reader.number())
        )
        if reader.at != end:
            raise BrokenBatch(f"a record of {length} bytes ends after {reader.at - end + length}")
        is_append_time = bool(self._attributes & _LOG_APPEND_TIME)
        return RawRecord(
            offset=offset,
            timestamp=self._max_timestamp if is_append_time else timestamp,
            timestamp_type=int(is_append_time),
            key=key,
            value=value,
            headers=headers,
        )


class RawBatches:
    """The batches of one fetch, in the shape of aiokafka's MemoryRecords. A last one that is cut short is left out."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self.current = b""
        """The bytes of the batch that `next_batch` gave last."""
        self.may_give: int | None = None
        """How many more it gives for now; None for all."""

    def has_next(self) -> bool:
        """Whether one more is whole, and may be given."""
        return self.may_give != 0 and self._end(self._at) is not None

    def next_batch(self) -> Any:
        """The next one, a RawBatch or aiokafka's for older formats. Raises `BrokenBatch`."""
        if not self.has_next():
            return None
        self.current = self.head()
        self._at += len(self.current)
        if self.may_give is not None:
            self.may_give -= 1
        if len(self.current) <= _FORMAT_AT:
            raise BrokenBatch(f"it has {len(self.current)} bytes, fewer than a batch's head")
        magic = self.current[_FORMAT_AT]
        if magic < 2:
            return LegacyRecordBatch(self.current, magic)
        return RawBatch(self.current)

    def head(self) -> bytes:
        """The bytes of the batch that `next_batch` gives next; empty if there is none."""
        return self._data[self._at : self._end(self._at) or self._at]

    def following_offset(self, *, after: int = 0) -> int | None:
        """The offset at which the next whole batch, or the one `after` it, says that it begins."""
        start: int | None = self._at
        for _ in range(after):
            start = None if start is None else self._end(start)
        end = None if start is None else self._end(start)
        return None if end is None else base_offset(self._data[start:end])

    def _end(self, start: int) -> int | None:
        head = self._data[start : start + _LENGTH_END]
        if len(head) < _LENGTH_END:
            return None
        # A negative length would go back; its batch then has too few bytes.
        end = start + _LENGTH_END + max(0, int.from_bytes(head[8:], "big", signed=True))
        return end if end <= len(self._data) else None


def base_offset(data: bytes) -> int:
    """The offset at which a batch says that it begins."""
    return int.from_bytes(data[:8], "big", signed=True)


def stated_end(data: bytes) -> int | None:
    """One past the last offset that a batch of format 2 says it has, true or not; None if it does not say."""
    return RawBatch(data).next_offset if len(data) >= _HEAD.size and data[_FORMAT_AT] == 2 else None


def stated_count(data: bytes) -> int | None:
    """How many records a batch of format 2 says that it has; None if it does not say, or its checksum is wrong."""
    if len(data) < _HEAD.size or data[_FORMAT_AT] != 2:
        return None
    batch = RawBatch(data)
    try:
        batch.validate_crc()
    except BrokenBatch:
        return None
    return int(batch.count)


class _Reader:
    """Reads a batch's records from front to back. Raises `BrokenBatch` at the end of the bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def number(self) -> int:
        """A number of variable length, zigzag coded."""
        result = shift = 0
        while shift < 70:
            (byte,) = self.take(1)
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (result >> 1) ^ -(result & 1)
            shift += 7
        raise BrokenBatch("a number in a record has no end")

    def take(self, length: int) -> bytes:
        """The next `length` bytes."""
        end = self.at + length
        if length < 0 or end > len(self._data):
            raise BrokenBatch(f"a record wants {length} bytes where {len(self._data) - self.at} are left")
        found, self.at = self._data[self.at : end], end
        return found

    def nullable(self) -> bytes | None:
        """Bytes after their length; None for a length of -1."""
        length = self.number()
        return None if length < 0 else self.take(length)
