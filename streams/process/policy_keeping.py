"""Has each policy that a worker puts in force written to the topic of policies, before anything is decided by it.

Promise: while the topic is there and takes it, every committed decision's policy lies under its hash. Where it does
not, nothing is held up for longer than KEEP_TIMEOUT_S at a time: the worker goes on, says so once a reason in the log,
in /readyz (`policy_not_kept`) and in a metric, and tries again. Nothing of it takes part in a transaction.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from ticketgate.agents.policy import Policy
from ticketgate.store.conditions import ConditionFailed
from ticketgate.streams.config.setting_kinds import SettingsError
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.config.telemetry import Telemetry
from ticketgate.streams.config.usage import CommandError
from ticketgate.streams.kafka.broker import Unreachable
from ticketgate.streams.lane.taking.batch import BatchTaker
from ticketgate.streams.operations.policies import find_topic, keep

log = logging.getLogger(__name__)

# Reading the topic and writing two records take a fraction of a second.
KEEP_TIMEOUT_S = 10.0
# A broker that was away is asked again as soon as this; one that refuses, or a topic that is missing, is a person's to
# mend, and is looked at as often as all conditions are.
SOON_S = 2.0


class PolicyKeeper:
    """The policies of one worker process. write, find: to the topic, and its id."""

    def __init__(
        self,
        *,
        write: Callable[[Policy], Awaitable[None]],
        find: Callable[[], Awaitable[str | None]],
        telemetry: Telemetry,
        interval_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._write, self._find = write, find
        self._telemetry = telemetry
        self._interval_s = interval_s
        self._clock = clock
        self._in_force: Policy | None = None
        self._is_owed = False
        self._again_at = 0.0
        self._topic: str | None = None
        self._turn = asyncio.Lock()
        self.error: str | None = None

    def begin(self, policy: Policy) -> None:
        """This policy is to be written: at the start of `run`, or before the first batch is taken."""
        self._in_force, self._is_owed, self._again_at = policy, True, 0.0

    async def put_in_force(self, policy: Policy) -> None:
        """Have it written before it is decided by. Raises nothing."""
        self.begin(policy)
        await self.settle()

    async def settle(self) -> None:
        """Try again if something is owed and it is time. Raises nothing."""
        if not self._is_owed or self._clock() < self._again_at:
            return
        async with self._turn:
            if self._is_owed and self._in_force is not None and self._clock() >= self._again_at:
                await self._try(self._in_force)

    async def run(self) -> None:
        """Until cancelled: what is owed is tried again, and a topic that was made anew gets the policy in force."""
        await self.settle()
        while True:
            await asyncio.sleep(min(SOON_S, self._interval_s) if self._is_owed else self._interval_s)
            if not self._is_owed:
                await self._look()
            await self.settle()

    async def _try(self, policy: Policy) -> None:
        try:
            async with asyncio.timeout(KEEP_TIMEOUT_S):
                await self._write(policy)
                self._topic = await self._find()
        except Unreachable as err:
            self._failed(str(err), SOON_S)
        except TimeoutError:
            self._failed(f"the broker did not answer within {KEEP_TIMEOUT_S:.0f} s", self._interval_s)
        except (SettingsError, CommandError, ConditionFailed) as err:
            self._failed(str(err), self._interval_s)
        except Exception as err:  # nothing is known to raise here, and deciding must not end by it
            log.exception("keeping the policy in force failed")
            self._failed(type(err).__name__, self._interval_s)
        else:
            # Another may have been put in force meanwhile.
            self._is_owed = policy is not self._in_force
            self.error = None
            self._telemetry.policies.kept(not self._is_owed)

    def _failed(self, why: str, again_s: float) -> None:
        self._again_at = self._clock() + again_s
        self._telemetry.policies.kept(False)
        if why != self.error:
            log.warning("the policy in force cannot be kept for later: %s; trying again", why)
        self.error = why

    async def _look(self) -> None:
        try:
            async with asyncio.timeout(KEEP_TIMEOUT_S):
                found = await self._find()
        except (Unreachable, SettingsError, TimeoutError):
            return  # at the next look
        except CommandError:
            found = None  # said by the next try
        self._is_owed = found is None or found != self._topic


class KeptFirst:
    """A taker by whose policy nothing is taken before that is written, if it can be."""

    def __init__(self, taker: BatchTaker, keeper: PolicyKeeper) -> None:
        self._taker, self._keeper = taker, keeper

    async def take(self, *arguments: Any, **options: Any) -> int:
        """As the taker's."""
        await self._keeper.settle()
        return await self._taker.take(*arguments, **options)


def open_keeper(settings: Settings, telemetry: Telemetry) -> PolicyKeeper:
    """The keeper of a worker with these settings."""
    file = "" if settings.policy is None else Path(settings.policy).name
    host = socket.gethostname()

    async def write(policy: Policy) -> None:
        await keep(settings, policy, file=file, at=datetime.now(UTC), host=host)

    return PolicyKeeper(
        write=write,
        find=partial(find_topic, settings),
        telemetry=telemetry,
        interval_s=settings.condition_interval.total_seconds(),
    )
