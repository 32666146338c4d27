"""The policy's files, watched: a change is taken over between two batches, and what cannot be used changes nothing.

Promise: the policy in force is always of whole files that parsed, its own and the schema that it names, read as at the
start (codecs/files/watched.py). A bad file keeps the policy that was in force and is told once a change in the log, for
as long as it lies there in /readyz (`policy_error`), and in a counter.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

from ticketgate.agents.policy import Policy, PolicyError
from ticketgate.agents.policy.load import load_policy
from ticketgate.codecs.files.watched import FilesWatch
from ticketgate.streams.config.telemetry import Telemetry

log = logging.getLogger(__name__)


class PolicyReload:
    """Looks at the policy file every `interval_s` and at SIGHUP; gives a changed policy to `adopt` on the loop."""

    def __init__(
        self,
        path: Path,
        *,
        in_force: Policy,
        adopt: Callable[[Policy], None],
        before: Callable[[Policy], Awaitable[None]] | None = None,
        beside: Iterable[Callable[[], Awaitable[None]]] = (),
        telemetry: Telemetry,
        interval_s: float,
    ) -> None:
        """before: awaited before a changed policy is adopted. beside: looks at other files, at the same times."""
        self._in_force = in_force
        self._adopt = adopt
        self._before = before
        self._telemetry = telemetry
        self._interval_s = interval_s
        self._files = FilesWatch(
            lambda files: load_policy(path, files=files),
            fault=PolicyError,
            take_over=self._take_over,
            keep_old=self._keep_old,
        )
        self._beside = tuple(beside)
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
        """Take the files over if they have changed and are a policy."""
        await self._files.look()

    async def _take_over(self, policy: Policy) -> None:
        self.error = None
        was, self._in_force = self._in_force, policy
        # Comments, layout and TOML or JSON are not the policy's: the same hash is the same policy.
        if policy.hash == was.hash:
            return
        if self._before is not None:
            await self._before(policy)
        self._adopt(policy)
        self._telemetry.policies.reloaded()
        log.info(
            "policy %s version %s (%s) is in force; it was %s version %s (%s)",
            *(policy.name, policy.version, policy.hash[:12]),
            *(was.name, was.version, was.hash[:12]),
        )

    def _keep_old(self, err: PolicyError) -> None:
        self.error = err.summary
        self._telemetry.policies.reload_failed()
        log.error(
            "the policy file was not taken over: %s; version %s (%s) stays in force",
            *(err.summary, self._in_force.version, self._in_force.hash[:12]),
        )

    async def _watch(self) -> None:
        while True:
            try:
                for look in (self.look, *self._beside):
                    await look()
            except Exception:
                # Nothing is known to raise here. If something does, watching must go on, and someone must hear of it.
                log.exception("looking at files that changed failed; trying again")
            try:
                async with asyncio.timeout(self._interval_s):
                    await self._wake.wait()
            except TimeoutError:
                continue
            self._wake.clear()
