"""The conditions of a role, looked at again and again while its lanes serve: what held when a lane opened may end.

Promise: a breach closes the role's lanes within an interval, with its cause and remedy in /readyz, also where the
worker has no lane; they open by themselves once it is mended. What was emitted since the breach and before that look
was emitted without the condition: README.md says what that can cost.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection

from ticketgate.store.conditions import ConditionFailed
from ticketgate.streams.config.readiness import Readiness
from ticketgate.streams.lane.lane import REFUSAL_RETRY_S, Lane
from ticketgate.streams.lane.opening.conditions import Conditions
from ticketgate.streams.lane.opening.opening import LaneRefusal

log = logging.getLogger(__name__)


async def watch_conditions(
    conditions: Conditions,
    lanes: Callable[[], Collection[Lane]],
    *,
    readiness: Readiness,
    part: str,
    interval_s: float,
    look_now: asyncio.Event,
) -> None:
    """Look every `interval_s`, and whenever `look_now` is set, until cancelled. `part`: under which name /readyz tells
    of a breach beside the lanes."""
    pause_s = interval_s
    while True:
        with contextlib.suppress(TimeoutError):  # it is time
            async with asyncio.timeout(pause_s):
                await look_now.wait()
        look_now.clear()
        pause_s = interval_s
        try:
            await conditions.check()
        except (ConditionFailed, LaneRefusal) as err:
            refusal = err if isinstance(err, LaneRefusal) else LaneRefusal("conditions", err.what, err.remedy)
            readiness.wait(part, f"{refusal.handling.cause}: {refusal}; {refusal.remedy}")
            for lane in lanes():
                lane.interrupt(refusal)
            # As often as a lane that refuses.
            pause_s = min(interval_s, REFUSAL_RETRY_S)
        except Exception as err:  # noqa: BLE001 - away, and the lanes tell; a broken look must not end the looking
            log.debug("the conditions could not be looked at: %r", err)
        else:
            readiness.work(part)
