"""Batches are unpacked within a bound, by aiokafka's readers and by ours: the contract with both libraries."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from aiokafka.codec import gzip_encode, lz4_encode, snappy_encode, zstd_encode
from aiokafka.record.default_records import DefaultRecordBatch, _DefaultRecordBatchPy
from aiokafka.record.legacy_records import LegacyRecordBatch, LegacyRecordBatchBuilder, _LegacyRecordBatchPy
from hypothesis import given
from hypothesis import strategies as st
from ticketgate.streams.config.kafka_settings import MAX_UNPACKED_BYTES
from ticketgate.streams.kafka.reading.rawbatches import RawBatch
from ticketgate.streams.kafka.unpacking import (
    UnpacksTooLarge,
    gzip_decode,
    limit_unpacking,
    lz4_decode,
    snappy_decode,
    zstd_decode,
)

from ...support.deployment import Sent
from ...support.raw_batches import batch_bytes

LIMIT = 2**20

CODECS: dict[str, tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]] = {
    "gzip": (gzip_encode, gzip_decode),
    "snappy": (snappy_encode, snappy_decode),
    "bare snappy": (lambda data: snappy_encode(data, xerial_compatible=False), snappy_decode),
    "lz4": (lz4_encode, lz4_decode),
    "zstd": (zstd_encode, zstd_decode),
}
READERS = [DefaultRecordBatch, _DefaultRecordBatchPy, RawBatch]


@pytest.fixture(autouse=True)
def _limit() -> Iterator[None]:
    limit_unpacking(LIMIT)
    yield
    limit_unpacking(MAX_UNPACKED_BYTES)


@pytest.mark.parametrize("codec", CODECS)
@given(data=st.binary(max_size=5_000).map(lambda data: data * 3))
def test_what_fits_comes_out_as_it_went_in(codec: str, data: bytes) -> None:
    encode, decode = CODECS[codec]

    assert decode(encode(data)) == data


@pytest.mark.parametrize("codec", CODECS)
def test_the_limit_itself_fits_and_a_byte_more_does_not(codec: str) -> None:
    encode, decode = CODECS[codec]

    assert decode(encode(bytes(LIMIT))) == bytes(LIMIT)
    with pytest.raises(UnpacksTooLarge, match="TICKETGATE_MAX_UNPACKED_BYTES"):
        decode(encode(bytes(LIMIT + 1)))


@pytest.mark.parametrize("codec", CODECS)
@given(data=st.binary(min_size=50, max_size=500), cut=st.integers(1, 20))
def test_bytes_that_are_cut_short_are_an_error_and_not_too_large(codec: str, data: bytes, cut: int) -> None:
    encode, decode = CODECS[codec]
    packed = encode(data)

    try:
        found = decode(packed[:-cut])
    except UnpacksTooLarge:
        pytest.fail("cut short is not too large")
    except Exception:  # noqa: BLE001 - each codec has errors of its own
        return
    # Only an end mark or a checksum was cut.
    assert data.startswith(found)


def test_a_snappy_head_that_promises_more_than_memory_holds_is_refused() -> None:
    with pytest.raises(UnpacksTooLarge):
        snappy_decode(b"\xff\xff\xff\xff\x0f" + b"\x00" * 20)


def test_gzip_in_several_members_is_one_text_and_limited_as_one() -> None:
    assert gzip_decode(gzip.compress(b"one ") + gzip.compress(b"two") + b"\0\0") == b"one two"
    with pytest.raises(UnpacksTooLarge):
        gzip_decode(gzip.compress(bytes(LIMIT)) * 2)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_reader_of_batches_reads_within_the_limit(
    codec: str, reader: Callable[[bytes], object]
) -> None:
    fits = [Sent(b"value" * 100, key=b"key", headers=[("name", b"header")]) for _ in range(3)]
    bomb = batch_bytes([Sent(bytes(LIMIT))], codec=codec)

    records = list(reader(batch_bytes(fits, codec=codec)))  # type: ignore[call-overload]

    assert [(each.key, each.value, list(each.headers)) for each in records] == [
        (each.key, each.value, list(each.headers)) for each in fits
    ]
    if codec != "none":
        with pytest.raises(UnpacksTooLarge):
            list(reader(bomb))  # type: ignore[call-overload]


@pytest.mark.parametrize("reader", [LegacyRecordBatch, _LegacyRecordBatchPy])
@pytest.mark.parametrize("codec", [1, 2, 3])
def test_batches_of_the_older_format_are_read_within_the_limit(
    codec: int, reader: Callable[[bytes, int], object]
) -> None:
    def built(size: int) -> bytes:
        builder = LegacyRecordBatchBuilder(1, codec, 2**24)
        builder.append(0, timestamp=1, key=b"k", value=bytes(size))
        return bytes(builder.build())

    (record,) = list(reader(built(100), 1))  # type: ignore[call-overload]

    assert record.value == bytes(100)
    with pytest.raises(UnpacksTooLarge):
        list(reader(built(LIMIT), 1))  # type: ignore[call-overload]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_a_bomb_takes_little_memory(codec: str) -> None:
    """300 MiB of zeros, in a process that may have 64 MiB more than it has."""
    program = f"""
import resource
from tests.support.raw_batches import batch_bytes
from tests.support.deployment import Sent
from aiokafka.record.default_records import DefaultRecordBatch
from ticketgate.streams.kafka.unpacking import UnpacksTooLarge, limit_unpacking
bomb = batch_bytes([Sent(bytes(300 * 2**20))], codec={codec!r})
limit_unpacking(4 * 2**20)
pages = int(open("/proc/self/statm").read().split()[0])
most = pages * resource.getpagesize() + 64 * 2**20
resource.setrlimit(resource.RLIMIT_AS, (most, most))
try:
    list(DefaultRecordBatch(bomb))
except UnpacksTooLarge as err:
    print(err)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert done.stdout.startswith("it unpacks to more than 4194304 bytes"), done.stderr
