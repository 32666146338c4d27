"""The policy that people judge by: the file's, read anew when it changes.

Promise: a file that cannot be used takes nothing away but accepting: pages say why, and everything else goes on. What a
worker judges by it reads for itself; where the two differ, it refuses what was shown by another.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path

from ticketgate.agents.policy import Policy, PolicyError
from ticketgate.agents.policy.load import load_policy
from ticketgate.codecs.files.watched import Files

# As often as workers look, by their default.
LOOK_EVERY_S = 1.0


@dataclass(frozen=True, slots=True)
class Unusable:
    """Why there is no policy, for people."""

    why: str


class Policies:
    """Reads the file at most once in LOOK_EVERY_S."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._found: Policy | Unusable = Unusable(
            "no policy is named: set TICKETGATE_POLICY to the file that the workers judge by"
        )
        self._read = Files()
        self._looked_at = float("-inf")
        self._turn = asyncio.Lock()

    async def now(self) -> Policy | Unusable:
        """The policy as the file has it, or why it cannot be used."""
        async with self._turn:
            if self._path is not None and time.monotonic() - self._looked_at > LOOK_EVERY_S:
                await asyncio.to_thread(self._look)
                self._looked_at = time.monotonic()
        return self._found

    def _look(self) -> None:
        if self._path is None or self._read.is_unchanged():
            return
        files = Files()
        try:
            self._found = load_policy(self._path, files=files)
        except PolicyError as err:
            self._found = Unusable(str(err))
        self._read = files
