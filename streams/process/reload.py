"""The policy file, watched: a change is taken over between two batches, and what cannot be used changes nothing.

Promise: the policy in force is always one whole file that parsed. A bad file keeps the policy that was in force and is
told once a change in the log, for as long as it lies there in /readyz (`policy_error`), and in a counter.
The file is read anew each time, for it is small: times of a file that was replaced, restored or mounted can lie.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable
from pathlib import Path

from ticketgate.agents.policy import Policy, PolicyError, parse_policy
from ticketgate.agents.policy.load import read_policy_text
from ticketgate.streams.config.telemetry import Telemetry

log = logging.getLogger(__name__)

# The first half of a policy can be a policy with half of the rules. A file counts only if it reads the same again
# after this time; who replaces it by renaming another never shows a half.
SETTLE_S = 0.1


class PolicyReload:
    """Looks at the policy file every `interval_s` and at SIGHUP; gives a changed policy to `adopt` on the loop."""

    def __init__(
        self,
        path: Path,
        *,
        in_force: Policy,
        adopt: Callable[[Policy], None],
        telemetry: Telemetry,
        interval_s: float,
    ) -> None:
        self._path = path
        self._in_force = in_force
        self._adopt = adopt
        self._telemetry = telemetry
        self._interval_s = interval_s
        self._judged: str | None = None
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.error: str | None = None

    def start(self) -> None:
        """Begin to watch."""
        self._task = asyncio.create_task(self._watch(), name="policy reload")
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._wake.set)

    async def stop(self) -> None:
        """Watch no longer. A hangup is ignored from now on: it must not end a worker that drains."""
        if self._task is not None:
            asyncio.get_running_loop().remove_signal_handler(signal.SIGHUP)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            self._task.cancel()
            await asyncio.wait([self._task])

    async def look(self) -> None:
        """Take the file over if it has changed and is a policy."""
        try:
            text = await asyncio.to_thread(read_policy_text, self._path)
        except PolicyError as err:
            self._keep_old(err, judged=str(err))
            return
        if text == self._judged:
            return
        await asyncio.sleep(SETTLE_S)
        try:
            policy = await asyncio.to_thread(self._read_again, text)
        except PolicyError as err:
            self._keep_old(err, judged=text)
            return
        if policy is not None:
            self._judged, self.error = text, None
            self._take_over(policy)

    def _read_again(self, text: str) -> Policy | None:
        """The policy that the file writes, or None if it no longer writes what was read: the next look will see."""
        if read_policy_text(self._path) != text:
            return None
        return parse_policy(text, source=str(self._path))

    def _take_over(self, policy: Policy) -> None:
        was, self._in_force = self._in_force, policy
        # Comments, layout and TOML or JSON are not the policy's: the same hash is the same policy.
        if policy.hash == was.hash:
            return
        self._adopt(policy)
        self._telemetry.policy_reloaded()
        log.info(
            "policy %s version %s (%s) is in force; it was %s version %s (%s)",
            *(policy.name, policy.version, policy.hash[:12]),
            *(was.name, was.version, was.hash[:12]),
        )

    def _keep_old(self, err: PolicyError, *, judged: str) -> None:
        if judged == self._judged:
            return
        self._judged, self.error = judged, err.summary
        self._telemetry.policy_reload_failed()
        log.error(
            "the policy file was not taken over: %s; version %s (%s) stays in force",
            *(err.summary, self._in_force.version, self._in_force.hash[:12]),
        )

    async def _watch(self) -> None:
        while True:
            try:
                await self.look()
            except Exception:
                # Nothing is known to raise here. If something does, watching must go on, and someone must hear of it.
                log.exception("looking at the policy file failed; trying again")
            try:
                async with asyncio.timeout(self._interval_s):
                    await self._wake.wait()
            except TimeoutError:
                continue
            self._wake.clear()
