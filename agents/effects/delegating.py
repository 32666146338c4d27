"""A port that passes everything on to another: for who watches what passes."""

from ticketgate.agents.effects.port import (
    Command,
    EffectPort,
    ExecuteResult,
    Prepared,
    ReadBackResult,
    Refused,
)


class DelegatingPort:
    """As the port that is given. Subclasses look at what they care for, and change nothing."""

    def __init__(self, port: EffectPort) -> None:
        self._port = port

    @property
    def is_idempotent_by_key(self) -> bool:
        """As the provider declares itself."""
        return self._port.is_idempotent_by_key

    @property
    def settle_s(self) -> float:
        """As the provider declares itself."""
        return self._port.settle_s

    async def prepare(self, command: Command) -> Prepared | Refused:
        """Passed on."""
        return await self._port.prepare(command)

    async def execute(self, prepared: Prepared) -> ExecuteResult:
        """Passed on."""
        return await self._port.execute(prepared)

    async def read_back(self, key: str) -> ReadBackResult:
        """Passed on."""
        return await self._port.read_back(key)
