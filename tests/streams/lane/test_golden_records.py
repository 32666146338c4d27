"""A ticket's record, byte for byte, from the bytes that came to those that go out: over many tickets, policies and
answers, as it was before anything was made faster.

`golden_records.txt` has a digest a case, so that a failure names the case; `python -m tests.streams.lane.golden` prints
what a case is made of. A change of the record that is meant is written anew by `python -m tests.streams.lane.golden
--write`.
"""

from __future__ import annotations

from .golden import FILE, digests


def test_records_are_what_they_were_byte_for_byte() -> None:
    expected = FILE.read_text().splitlines()

    assert digests() == expected
