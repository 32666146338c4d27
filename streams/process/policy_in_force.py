"""What a worker judges by: the policy, kept for later, and the keys that settlements may be signed by. All are watched.

Promise: as reload.py, policy_keeping.py and keys_in_force.py say. One task looks at all files, and so does a hangup.
"""

from __future__ import annotations

from collections.abc import Callable

from ticketgate.agents.policy import Policy
from ticketgate.agents.settling.console_keys import ConsoleKeys
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.config.telemetry import Telemetry
from ticketgate.streams.process.policy_keeping import open_keeper
from ticketgate.streams.process.preflight import (
    require_keys_in_force,
    require_policy,
    require_policy_path,
)
from ticketgate.streams.process.reload import PolicyReload


class JudgedBy:
    """Of one worker process. Raises what reading the keys raises, where a role needs them."""

    def __init__(self, settings: Settings, telemetry: Telemetry) -> None:
        self._settings, self._telemetry = settings, telemetry
        self._keys = require_keys_in_force(settings) if "settle" in settings.roles else None
        self.keeper = open_keeper(settings, telemetry)

    def watch(self, policy: Policy, adopt: Callable[[Policy], None]) -> PolicyReload:
        """The watch of this policy's files, and of the keys'. It is to be kept, from now on, before it is judged by."""
        self.keeper.begin(policy)
        return PolicyReload(
            require_policy_path(self._settings),
            in_force=policy,
            adopt=adopt,
            before=self.keeper.put_in_force,
            beside=() if self._keys is None else (self._keys.look,),
            telemetry=self._telemetry,
            interval_s=self._settings.policy_poll.total_seconds(),
        )

    def keys(self) -> ConsoleKeys:
        """The keys in force; none where no role needs them."""
        return {} if self._keys is None else self._keys.keys

    def describe(self, reload: PolicyReload) -> dict[str, object]:
        """What is wrong with any of it, for /readyz."""
        return {
            "policy_error": reload.error,
            "policy_not_kept": self.keeper.error,
            **({} if self._keys is None else {"console_keys_error": self._keys.error}),
        }


class PolicyInForce:
    """The policy of a worker that asks no model: `policy` is the one to judge by now. Raises what reading it raises."""

    def __init__(self, settings: Settings, judged_by: JudgedBy, telemetry: Telemetry) -> None:
        self.policy = require_policy(settings)
        self._telemetry = telemetry
        self._judged_by = judged_by
        self._reload = judged_by.watch(self.policy, self._adopt)
        telemetry.policies.in_force(self.policy.ref)

    async def start(self) -> None:
        """Begin to watch the files."""
        self._reload.start()

    async def stop(self) -> None:
        """Watch no longer."""
        await self._reload.stop()

    def describe(self) -> dict[str, object]:
        """The policy in force, for /readyz."""
        return {
            "policy": self.policy.ref.to_json(),
            **self._judged_by.describe(self._reload),
        }

    def _adopt(self, policy: Policy) -> None:
        self.policy = policy
        self._telemetry.policies.in_force(policy.ref)
