"""What lies behind an error that does not say it: a broker that is there and refuses us, a clock that is wrong."""

from __future__ import annotations

import time
from datetime import timedelta

from aiokafka.errors import InvalidTimestampError
from redis.asyncio import Redis
from redis.exceptions import RedisError
from ticketgate.store.clock import redis_now
from ticketgate.streams.config.setting_kinds import show_duration
from ticketgate.streams.kafka.connection import KafkaConnection
from ticketgate.streams.kafka.faults import LaneFault
from ticketgate.streams.kafka.refusals import find_refusal
from ticketgate.streams.lane.recovery import CLOCK, handling, may_hide_refusal

# Two machines whose clocks are set by NTP differ by less, and Redis needs a moment to answer.
SAME_S = 60.0


class ClockWrong(LaneFault):
    """The broker refuses outputs for their time, which is this machine's."""


class Diagnosis:
    """Asks the broker and Redis. Redis' clock, by which claims end, is what this machine's is compared with."""

    def __init__(self, kafka: KafkaConnection, redis: Redis) -> None:
        self._kafka = kafka
        self._redis = redis

    async def of(self, err: Exception) -> Exception:
        """What lies behind the error, or the error itself."""
        if isinstance(err, InvalidTimestampError):
            return ClockWrong(await self._say_clock(), CLOCK)
        if may_hide_refusal(handling(err)):
            return await find_refusal(self._kafka) or err
        return err

    async def _say_clock(self) -> str:
        refused = "the broker refuses outputs for their time, by this machine's clock"
        try:
            ahead_s = round(time.time() - (await redis_now(self._redis)).timestamp())
        except (RedisError, OSError) as err:
            return f"{refused} (which Redis does not confirm or deny: {err!r})"
        if abs(ahead_s) < SAME_S:
            return f"{refused}, which goes with Redis'"
        way = "ahead of" if ahead_s > 0 else "behind"
        return f"{refused}, which is {_rough(abs(ahead_s))} {way} Redis'"


def _rough(seconds: int) -> str:
    """To a minute, or to an hour where that is little."""
    unit = 60 if seconds < 10_000 else 3600
    return show_duration(timedelta(seconds=round(seconds / unit) * unit))
