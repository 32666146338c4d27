"""What lanes of this process that ended could not take back at once, since Redis was away.

Promise: a process that lives takes back whatever it wrote down as under way, once Redis is there again.
"""

from __future__ import annotations

import asyncio
import logging

from redis.exceptions import RedisError
from ticketgate.store.lane_state.underway import UnderWays

log = logging.getLogger(__name__)

EVERY_S = 5.0


async def withdraw_forever(under_ways: UnderWays) -> None:
    """Try again and again, until cancelled."""
    while True:
        await asyncio.sleep(EVERY_S)
        try:
            await under_ways.withdraw_rest()
        except (RedisError, OSError) as err:
            log.debug("what ended lanes had under way is taken back later (%r)", err)
