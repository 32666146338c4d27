"""Raw batches are read as aiokafka reads them, and where that gives up, as far as they can be."""

from __future__ import annotations

import itertools

import pytest
from aiokafka.record.memory_records import MemoryRecords
from hypothesis import given, settings
from hypothesis import strategies as st
from ticketgate.streams.kafka.reading.rawbatches import BrokenBatch, RawBatch, RawBatches

from ...support.deployment import Sent
from ...support.raw_batches import BAD_NAME, CODECS, PLACEHOLDER, batch_bytes

names = st.text(max_size=8)
nullable = st.none() | st.binary(max_size=40)
records = st.lists(
    st.builds(Sent, value=nullable, key=nullable, headers=st.lists(st.tuples(names, nullable), max_size=3)),
    min_size=1,
    max_size=5,
)
codecs = st.sampled_from(sorted(CODECS))


def read(data: bytes) -> list[object]:
    return [
        (r.offset, r.timestamp, r.timestamp_type, r.key, r.value, tuple(r.headers)) for r in RawBatch(data)
    ]


def read_by_aiokafka(data: bytes) -> list[object]:
    return [
        (r.offset, r.timestamp, r.timestamp_type, r.key, r.value, tuple(r.headers))
        for r in MemoryRecords(data).next_batch() or ()
    ]


@given(records, codecs)
def test_a_batch_is_read_as_aiokafka_reads_it(sent: list[Sent], codec: str) -> None:
    data = batch_bytes(sent, codec=codec)

    assert RawBatch(data).validate_crc()
    assert read(data) == read_by_aiokafka(data)


@pytest.mark.parametrize("codec", CODECS)
def test_a_name_that_is_not_utf_8_keeps_its_bytes(codec: str) -> None:
    data = batch_bytes([Sent(b"1"), Sent(b"2", headers=[(PLACEHOLDER, b"x"), ("null", None)])], codec=codec)

    first, second = RawBatch(data)

    assert (first.value, second.value) == (b"1", b"2")
    (name, value), null = second.headers
    assert (name.encode("utf-8", "surrogateescape"), value, null) == (BAD_NAME, b"x", ("null", None))
    with pytest.raises(UnicodeDecodeError):
        read_by_aiokafka(data)


@given(records, codecs, st.data())
@settings(max_examples=300)
def test_a_damaged_batch_is_broken_or_reads_on_and_does_nothing_else(
    sent: list[Sent], codec: str, data: st.DataObject
) -> None:
    good = batch_bytes(sent, codec=codec)
    damaged = bytearray(good)
    for place in data.draw(st.lists(st.integers(0, len(good) - 1), min_size=1, max_size=3)):
        damaged[place] = data.draw(st.integers(0, 255))
    batches = RawBatches(bytes(damaged))

    while batches.has_next():
        try:
            batch = batches.next_batch()
            if isinstance(batch, RawBatch) and batch.base_offset >= 0 and bytes(damaged[21:]) != good[21:]:
                with pytest.raises(BrokenBatch, match="checksum"):
                    batch.validate_crc()
            # The checksum is passed over here, so that the parser sees what it would not let through.
            list(itertools.islice(batch, 100))
        except BrokenBatch:
            pass
        except Exception:  # noqa: BLE001 - of an old format, which aiokafka reads and the salvage takes as broken
            assert damaged[16] < 2


def test_what_stands_behind_a_cut_batch_is_left_out() -> None:
    one, two = batch_bytes([Sent(b"1")]), batch_bytes([Sent(b"2")])
    batches = RawBatches(one + two[:-1])

    assert [record.value for record in batches.next_batch()] == [b"1"]
    assert not batches.has_next()
    assert batches.following_offset() is None
