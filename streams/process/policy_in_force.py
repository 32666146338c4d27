"""The policy in force in a worker that judges by it and asks no model, read anew when its file changes.

Promise: as reload.py; a worker that decides has the same of its own.
"""

from __future__ import annotations

from pathlib import Path

from ticketgate.agents.policy import Policy
from ticketgate.streams.config.telemetry import Telemetry
from ticketgate.streams.process.policy_keeping import PolicyKeeper
from ticketgate.streams.process.reload import PolicyReload


class PolicyInForce:
    """`policy` is the one to judge by now."""

    def __init__(
        self, path: Path, *, policy: Policy, keeper: PolicyKeeper, telemetry: Telemetry, interval_s: float
    ) -> None:
        self.policy = policy
        self._telemetry = telemetry
        self._keeper = keeper
        keeper.begin(policy)
        self._reload = PolicyReload(
            path,
            in_force=policy,
            adopt=self._adopt,
            before=keeper.put_in_force,
            telemetry=telemetry,
            interval_s=interval_s,
        )
        telemetry.policies.in_force(policy.ref)

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
            "policy_not_kept": self._keeper.error,
        }

    def _adopt(self, policy: Policy) -> None:
        self.policy = policy
        self._telemetry.policies.in_force(policy.ref)
