"""Compressed batches unpacked within a bound, by aiokafka's reader and by ours.

aiokafka unpacks a batch to whatever size its bytes lead to: 30 KB of zstd become 300 MiB, and the process dies of it.
The functions below take the place of those that its record modules call, in every process that imports this one.

Promise: no batch takes more than the limit while it is unpacked, and the codec's own window; what would take more
raises `UnpacksTooLarge`. What fits comes out as aiokafka would give it. Relies on: `decompress_into` of cramjam, which
stops at the end of the room that it is given, and on how it says so (tests/streams/kafka/test_unpacking.py).
"""

from __future__ import annotations

import mmap
import struct
import sys
import zlib
from collections.abc import Callable, Sequence
from types import ModuleType

import cramjam
from aiokafka.record import default_records, legacy_records
from ticketgate.streams.config.kafka_settings import MAX_UNPACKED_BYTES

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEAD = len(_XERIAL_MAGIC) + struct.calcsize("!ii")
_GZIP = zlib.MAX_WBITS | 16
# How cramjam says that what it was given to write into is full.
_NO_ROOM = ("failed to write whole buffer", "output buffer (size")


class UnpacksTooLarge(Exception):
    """A batch would unpack to more than the limit. Nothing of it is given."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"it unpacks to more than {limit} bytes (TICKETGATE_MAX_UNPACKED_BYTES)")


class _Limit:
    bytes = MAX_UNPACKED_BYTES


def limit_unpacking(limit: int) -> None:
    """Let no batch that this process reads unpack to more than `limit` bytes."""
    _Limit.bytes = limit


def gzip_decode(data: bytes) -> bytes:
    """One or more gzip members."""
    limit, found, rest = _Limit.bytes, bytearray(), bytes(data)
    while rest.strip(b"\0"):
        member = zlib.decompressobj(_GZIP)
        found += member.decompress(rest, limit + 1 - len(found))
        if len(found) > limit:
            raise UnpacksTooLarge(limit)
        if not member.eof:
            raise EOFError("the compressed bytes end too early")
        rest = member.unused_data
    return bytes(found)


def snappy_decode(data: bytes) -> bytes:
    """Snappy as Kafka's clients in Java frame it, or bare."""
    data = bytes(data)
    if not data.startswith(_XERIAL_MAGIC):
        return _decompressed(cramjam.snappy.decompress_raw_into, data)
    blocks, at, room = bytearray(), _XERIAL_HEAD, _Limit.bytes
    while at < len(data):
        (length,) = struct.unpack_from("!i", data, at)
        if length < 0:
            raise ValueError(f"a block of {length} bytes")
        at += 4
        blocks += _decompressed(
            cramjam.snappy.decompress_raw_into, data[at : at + length], room - len(blocks)
        )
        at += length
    return bytes(blocks)


def lz4_decode(data: bytes) -> bytes:
    """LZ4 frames."""
    return _decompressed(cramjam.lz4.decompress_into, data)


def zstd_decode(data: bytes) -> bytes:
    """Zstandard frames."""
    return _decompressed(cramjam.zstd.decompress_into, data)


def _decompressed(
    decompress_into: Callable[[bytes, mmap.mmap], int], data: bytes, room: int | None = None
) -> bytes:
    limit = _Limit.bytes
    room = limit if room is None else room
    # Pages of a mapping that nothing was written to take no memory. One byte more, as an empty one cannot be.
    try:
        output = mmap.mmap(-1, room + 1)
    except OSError as err:
        raise MemoryError(f"no room to unpack a batch of up to {limit} bytes") from err
    with output:
        try:
            length = decompress_into(data, output)
            if length > room:
                raise UnpacksTooLarge(limit)
            return output[:length]
        except cramjam.DecompressionError as err:
            if any(said in str(err) for said in _NO_ROOM):
                raise UnpacksTooLarge(limit) from err
            raise


_DECODERS = (gzip_decode, snappy_decode, lz4_decode, zstd_decode)


def _put_in_place(modules: Sequence[ModuleType]) -> None:
    """In the place of the functions of these names that a record module imported. Raises AttributeError in an aiokafka
    that has them elsewhere: to read without a limit would be to promise what is not so."""
    for module in modules:
        for decode in _DECODERS:
            # Batches of the older format have no zstd.
            if module in _CURRENT or decode is not zstd_decode:
                getattr(module, decode.__name__)
                setattr(module, decode.__name__, decode)


_CURRENT = (default_records, sys.modules[default_records.DefaultRecordBatch.__module__])
_OLDER = (legacy_records, sys.modules[legacy_records.LegacyRecordBatch.__module__])
_put_in_place((*_CURRENT, *_OLDER))
