"""The policy that people judge by: the file's, read anew when it changes.

Promise: a file that cannot be used takes nothing away but accepting: pages say why, and everything else goes on. It is
watched as a worker watches it (codecs/files/watched.py), at most once in LOOK_EVERY_S. What a worker judges by it reads
for itself; where the two differ, it refuses what was shown by another.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path

from ticketgate.agents.policy import Policy, PolicyError
from ticketgate.agents.policy.load import load_policy
from ticketgate.codecs.files.watched import FilesWatch

# As often as workers look, by their default.
LOOK_EVERY_S = 1.0


@dataclass(frozen=True, slots=True)
class Unusable:
    """Why there is no policy, for people."""

    why: str


class Policies:
    """The policy of a file; of None there is none."""

    def __init__(self, path: Path | None) -> None:
        self._found: Policy | Unusable = Unusable(
            "no policy is named: set TICKETGATE_POLICY to the file that the workers judge by"
            if path is None
            else f"{path} is being written: look again"
        )
        self._files = None
        if path is not None:
            self._files = FilesWatch(
                lambda files: load_policy(path, files=files),
                fault=PolicyError,
                take_over=self._take_over,
                keep_old=self._keep_none,
            )
        self._looked_at = float("-inf")
        self._turn = asyncio.Lock()

    async def now(self) -> Policy | Unusable:
        """The policy as the file has it, or why it cannot be used."""
        async with self._turn:
            if self._files is not None and time.monotonic() - self._looked_at > LOOK_EVERY_S:
                await self._files.look()
                self._looked_at = time.monotonic()
        return self._found

    async def _take_over(self, policy: Policy) -> None:
        self._found = policy

    def _keep_none(self, err: PolicyError) -> None:
        self._found = Unusable(str(err))
