"""What a contender's run came to, judged by coordinates: which input record has how many visible outputs.

Pure: `judge` gets what was read and says what it means. No contender but ticketgate promises to suppress a ticket that
was sent twice, so that is counted apart and is nobody else's fault.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Place = tuple[int, int]
"""Partition and offset of an input record."""
Content = tuple[str, str]
"""Id and text of a ticket."""


@dataclass(frozen=True, slots=True)
class Books:
    """Counts of one run. `duplicates`: visible outputs beyond the first of an input record. `lost`: input records that
    were committed over and have no output. `undecided`: input records at or past the committed offset without one, in
    `stuck_partitions`. `repeats_in`: input records that repeat an earlier ticket; `repeats_out`: how many of them
    have an output of their own all the same.
    """

    records_in: int
    outputs: int
    duplicates: int
    lost: int
    undecided: int
    stuck_partitions: int
    repeats_in: int
    repeats_out: int


def judge(
    inputs: Mapping[Place, Content],
    outputs: Sequence[Place],
    committed: Mapping[int, int],
    *,
    suppresses_repeats: bool,
) -> Books:
    """The books. `committed` has the group's offset by partition."""
    emitted = Counter(outputs)
    if unknown := emitted.keys() - inputs.keys():
        raise AssertionError(f"outputs of records that were never sent: {sorted(unknown)[:5]}")
    contents = {inputs[place] for place in emitted}
    without = [
        place
        for place, content in inputs.items()
        if place not in emitted and not (suppresses_repeats and content in contents)
    ]
    undecided = [
        (partition, offset) for partition, offset in without if offset >= committed.get(partition, 0)
    ]
    return Books(
        records_in=len(inputs),
        outputs=len(outputs),
        duplicates=len(outputs) - len(emitted),
        lost=len(without) - len(undecided),
        undecided=len(undecided),
        stuck_partitions=len({partition for partition, _ in undecided}),
        repeats_in=len(inputs) - len(set(inputs.values())),
        repeats_out=len(emitted) - len(contents),
    )
