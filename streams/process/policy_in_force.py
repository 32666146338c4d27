"""The policy in force in a worker that judges by it and asks no model, read anew when its file changes.

Promise: as reload.py; a worker that decides has the same of its own.
"""

from __future__ import annotations

from pathlib import Path

from ticketgate.agents.policy import Policy
from ticketgate.streams.config.telemetry import Telemetry
from ticketgate.streams.process.reload import PolicyReload


class PolicyInForce:
    """`policy` is the one to judge by now."""

    def __init__(self, path: Path, *, policy: Policy, telemetry: Telemetry, interval_s: float) -> None:
        self.policy = policy
        self._telemetry = telemetry
        self._reload = PolicyReload(
            path, in_force=policy, adopt=self._adopt, telemetry=telemetry, interval_s=interval_s
        )
        telemetry.policy(policy.ref)

    def start(self) -> None:
        """Begin to watch the file."""
        self._reload.start()

    async def stop(self) -> None:
        """Watch no longer."""
        await self._reload.stop()

    def describe(self) -> dict[str, object]:
        """The policy in force, for /readyz."""
        policy = self.policy.ref
        return {
            "policy": {"name": policy.name, "version": policy.version, "hash": policy.hash},
            "policy_error": self._reload.error,
        }

    def _adopt(self, policy: Policy) -> None:
        self.policy = policy
        self._telemetry.policy(policy.ref)
