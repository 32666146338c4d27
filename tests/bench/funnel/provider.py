"""The provider of one request's effects: the funnel's provider in memory, with the request's faults lined up.

Promise: `effects` is what was committed, in order, whoever asked and whatever answer was lost.
"""

from __future__ import annotations

from ticketgate.agents.effects.adapters.memory import MemoryProvider
from ticketgate.agents.effects.port import (
    Command,
    ExecuteResult,
    Prepared,
    ReadBackResult,
    Refused,
    TimedOut,
)

from .request_set import Asked
from .results import Done


class Provider:
    """An effect port that keeps count."""

    def __init__(self, asked: Asked) -> None:
        self._bank = MemoryProvider(is_idempotent_by_key=asked.is_idempotent)
        self._bank.fail_next(execute=asked.execute, read_back=asked.read_back)
        self.effects: list[Done] = []
        self.sends = self.read_backs = self.time_outs = 0

    @property
    def is_idempotent_by_key(self) -> bool:
        """As the request's provider is."""
        return self._bank.is_idempotent_by_key

    @property
    def settle_s(self) -> float:
        """Short enough that the reconciler's first look comes later."""
        return 1.0

    async def prepare(self, command: Command) -> Prepared | Refused:
        """Look at the command."""
        return await self._bank.prepare(command)

    async def execute(self, prepared: Prepared) -> ExecuteResult:
        """Ask for the effect."""
        before = self._bank.committed
        self.sends += 1
        answer = await self._bank.execute(prepared)
        self.time_outs += isinstance(answer, TimedOut)
        if self._bank.committed > before:
            arguments = {name: str(value) for name, value in prepared.command.arguments.items()}
            self.effects.append(Done("schedule", arguments))
        return answer

    async def read_back(self, key: str) -> ReadBackResult:
        """What stands."""
        self.read_backs += 1
        return await self._bank.read_back(key)
