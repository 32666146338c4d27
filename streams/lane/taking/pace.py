"""How many records a lane takes at once: few at first, more while that is quick, fewer where it is slow or fails.

A piece is what one transaction takes. Whatever ends a lane in the middle of a piece, such as a rebalance, costs that
piece, so a piece should be short; but small pieces are slow, and some of a piece's time does not grow with it (a
provider that takes 5 s for one call or for eight at once). So it is not the whole time that is held below a target, but
the part that grows with the piece, as two pieces of different size tell it.

Promise: pure. A size is never below 1 nor above `most`; quick pieces reach `most` in log2(most) steps; a slow model's
pieces end near the target. tests/streams/lane/test_pace.py measures it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

# One record first: whatever the model, it is the shortest piece there is. Six quick pieces reach 64.
FIRST = 1
# A lane that is taken away has 8 s to hand over (assignment.py); half of it leaves room for a piece twice as long.
TARGET_S = 4.0
# Up to this a piece of twice the size is tried for want of knowledge: it may take twice as long, and hangs are told
# from slowness by TICKETGATE_SCORER_TIMEOUT, of 60 s unless it is set.
PROBE_S = 15.0
# A piece of twice the size must stay well below what is taken for a hang.
PART_OF_A_HANG = 4


@dataclass(frozen=True, slots=True)
class Piece:
    """One piece that was taken: how many records, and for how long."""

    count: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Pace:
    """The size of a lane's next piece. target_s: None lets pieces grow however long they take. `before`: the last piece
    of another size."""

    most: int
    target_s: float | None = TARGET_S
    probe_s: float = PROBE_S
    size: int = FIRST
    before: Piece | None = None

    def __post_init__(self) -> None:
        """Raises ValueError for a size that is none."""
        if not 1 <= self.size <= self.most:
            raise ValueError(f"a piece of {self.size} records, of at most {self.most}")

    def passed(self, count: int, seconds: float) -> Pace:
        """After a piece of `count` records was committed in `seconds`."""
        piece = Piece(count, seconds)
        if count < self.size and self._may_double(piece):
            return self  # there was no more to take, which tells nothing of the size
        if self._may_double(piece):
            return self._to(self.size * 2, piece)
        return self._to(count // 2, piece) if self._is_slow(piece) else self

    def failed(self, count: int) -> Pace:
        """After a piece of `count` records failed for what is in it, or for being too much: it may have needed any
        time."""
        return self._to(count // 2, Piece(count, math.inf))

    def _may_double(self, piece: Piece) -> bool:
        target_s = self.target_s
        if target_s is None or piece.seconds <= target_s / 2:
            return True
        each_s = self._seconds_a_record(piece)
        if each_s is None:
            return piece.seconds <= self.probe_s
        return each_s * piece.count * 2 <= target_s

    def _is_slow(self, piece: Piece) -> bool:
        if self.target_s is None or piece.seconds <= self.target_s:
            return False
        each_s = self._seconds_a_record(piece)
        return each_s is None or each_s * piece.count > self.target_s

    def _seconds_a_record(self, piece: Piece) -> float | None:
        """What one more record costs, between the least and the most that it can; None where nothing tells."""
        if self.before is None or self.before.count == piece.count:
            return None
        found = (piece.seconds - self.before.seconds) / (piece.count - self.before.count)
        return min(max(0.0, found), piece.seconds / piece.count)

    def _to(self, size: int, seen: Piece) -> Pace:
        size = max(1, min(self.most, size))
        # The only other size that a piece of the least, or of the most, can be compared with.
        before = seen if size != seen.count else self.before
        return replace(self, size=size, before=before)


def pace_for(most: int, *, hang_s: float | None) -> Pace:
    """A lane's pace at its start. hang_s: after how long a piece is taken for a hang; None where it never is."""
    if hang_s is None:
        return Pace(most, target_s=None)
    limit_s = hang_s / PART_OF_A_HANG
    return Pace(most, target_s=min(TARGET_S, limit_s), probe_s=min(PROBE_S, limit_s))
