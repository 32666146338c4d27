"""What died lanes left under way, as the care that the next one takes: which offsets alone, which not at all any more.

Promise: pure. A record is given up only for deaths *while it was alone* in its process, and for a phase of its own: two
while it was decoded, two while it was decided, or one in which the scorer hung on it for its whole time, which is no
chance. What died with others, or while it only read, is taken alone, and blamed for nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ticketgate.agents.plural import counted
from ticketgate.store.lane_state.underway import Doing, Left

FATAL_TO_UNPACK = "several workers ended while they unpacked it"
# A kill from outside may meet a record in the milliseconds in which it is alone. Twice is no chance.
MOST_DEATHS: Mapping[Doing, int] = {
    Doing.UNPACKING: 2,
    Doing.DECODING: 2,
    Doing.DECIDING: 2,
    # A commit takes longer, so kills meet it more often, and what is committed was decided already.
    Doing.COMMITTING: 5,
    Doing.HUNG: 1,
}


@dataclass(frozen=True, slots=True)
class Care:
    """Offsets below `stop` are taken alone, for what lanes `left` that died there."""

    stop: int
    left: tuple[Left, ...] = ()

    def deaths(self, doing: Doing, first: int) -> int:
        """How many lanes died alone so, of what begins at this offset, if they are enough to give it up; else 0."""
        found = sum(
            each.under_way.is_alone
            and each.under_way.doing is doing
            and each.under_way.offsets.start == first
            for each in self.left
        )
        return found if found >= MOST_DEATHS[doing] else 0

    def is_fatal_to_unpack(self, offset: int) -> bool:
        """Whether the batch that holds this offset is not unpacked any more."""
        return any(
            offset in each.under_way.offsets and self.deaths(Doing.UNPACKING, each.under_way.offsets.start)
            for each in self.left
        )

    def objection(self, offset: int) -> str:
        """Why the record there is not decided any more; empty: it is."""
        if self.deaths(Doing.HUNG, offset):
            # Also when it was one of several, which alone would blame nobody.
            times = sum(
                each.under_way.doing is Doing.HUNG and offset in each.under_way.offsets for each in self.left
            )
            return f"the scorer hung on this ticket {counted(times, 'time')}"
        for doing in (Doing.DECIDING, Doing.COMMITTING):
            if deaths := self.deaths(doing, offset):
                return f"{doing} this record alone ended {counted(deaths, 'worker')}"
        return ""


def care_from(left: Sequence[Left], *, start: int, end: int, most: int) -> Care:
    """The care of a lane that begins at `start`, where its partition's records end at `end`.

    most: the records that a lane takes at once. One that died while it read had unpacked no more, and nothing at all
    where nothing is there.
    """
    stop = start
    for each in left:
        offsets = each.under_way.offsets
        is_reading = each.under_way.doing is Doing.READING
        stop = max(stop, min(end, offsets.start + most) if is_reading else offsets.stop)
    return Care(stop, tuple(left))
