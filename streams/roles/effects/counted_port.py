"""An effect port whose read-backs are counted."""

from __future__ import annotations

from ticketgate.agents.effects.delegating import DelegatingPort
from ticketgate.agents.effects.port import EffectPort, Found, NotFound, ReadBackResult
from ticketgate.streams.config.telemetry import Telemetry


class CountedPort(DelegatingPort):
    """As the port itself."""

    def __init__(self, port: EffectPort, telemetry: Telemetry) -> None:
        super().__init__(port)
        self._telemetry = telemetry

    async def read_back(self, key: str) -> ReadBackResult:
        """Passed on, and counted."""
        found = await super().read_back(key)
        match found:
            case Found():
                self._telemetry.read_back("found")
            case NotFound():
                self._telemetry.read_back("not_found")
            case _:
                self._telemetry.read_back("unreadable")
        return found
