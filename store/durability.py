"""What must be on which disks before a write counts, and the wait for it, in the writes' own round trip.

`replicas` must have every claim on disk. Where Redis syncs once a second (`syncs_itself` False), rare writes that no
mark would miss (a take-over, a derived claim, a void range) wait for the primary's own disk as well.
tests/streams/lane/model shows what goes wrong without it (`syncs_late_writes`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import cast

from redis.asyncio.client import Pipeline
from ticketgate.store.keys import Keys
from ticketgate.store.servers import look_again
from ticketgate.store.tokens import superseded


class ClaimsNotDurable(Exception):
    """Too few disks have the claims. Nothing may be emitted on them; the lane reopens and tries again."""

    def __init__(self, *, wanted: int, reached: int) -> None:
        super().__init__(
            f"claims reached the disk of {reached} of {wanted} replicas; check Redis replication"
        )
        self.wanted, self.reached = wanted, reached


@dataclass(frozen=True, slots=True)
class Durability:
    """The promise of one deployment; `timeout` bounds the wait."""

    replicas: int
    syncs_itself: bool
    timeout: timedelta

    async def execute(self, pipeline: Pipeline, keys: Keys, *, is_rare: bool = False) -> list[object]:
        """Execute a lane's writes and wait until they are where they must be; the writes' replies.

        Raises `Superseded`, `LookAgain`, `ClaimsNotDurable` and redis-py's errors.
        """
        local = int(bool(self.replicas) or (is_rare and not self.syncs_itself))
        if local:
            # WAITAOF waits for the last write of its own connection. A claim found as ours was written by another
            # one, so a write of this one goes after it in the replication stream.
            pipeline.set(f"{keys.prefix}fence", b"")
            pipeline.execute_command(
                "WAITAOF", local, self.replicas, round(self.timeout.total_seconds() * 1000)
            )
        with superseded(), look_again():
            replies: list[object] = await pipeline.execute()
        if not local:
            return replies
        synced, reached = cast("tuple[int, int]", replies[-1])
        if synced < local or reached < self.replicas:
            raise ClaimsNotDurable(wanted=self.replicas, reached=reached)
        return replies[:-2]
