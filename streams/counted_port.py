"""An effect port whose read-backs are counted."""

from __future__ import annotations

from ticketgate.agents.effects.port import (
    Command,
    EffectPort,
    ExecuteResult,
    Found,
    NotFound,
    Prepared,
    ReadBackResult,
    Refused,
)
from ticketgate.streams.telemetry import Telemetry


class CountedPort:
    """As the port itself."""

    def __init__(self, port: EffectPort, telemetry: Telemetry) -> None:
        self._port = port
        self._telemetry = telemetry

    @property
    def is_idempotent_by_key(self) -> bool:
        """As the port's."""
        return self._port.is_idempotent_by_key

    @property
    def settle_s(self) -> float:
        """As the port's."""
        return self._port.settle_s

    async def prepare(self, command: Command) -> Prepared | Refused:
        """As the port's."""
        return await self._port.prepare(command)

    async def execute(self, prepared: Prepared) -> ExecuteResult:
        """As the port's."""
        return await self._port.execute(prepared)

    async def read_back(self, key: str) -> ReadBackResult:
        """As the port's, counted."""
        found = await self._port.read_back(key)
        match found:
            case Found():
                self._telemetry.read_back("found")
            case NotFound():
                self._telemetry.read_back("not_found")
            case _:
                self._telemetry.read_back("unreadable")
        return found
