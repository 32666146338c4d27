"""All that the doctor looks at, in the order in which a person would mend it; each within a bound of its own.

Promise: whatever is wrong with one thing, the others are looked at as well, and nothing is changed anywhere.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping

from ticketgate.codecs.systemone.questions import NoulQuestion, Question
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.process.doctor.finding import Finding
from ticketgate.streams.process.doctor.local import (
    look_at_console_keys,
    look_at_funnel,
    look_at_model,
    look_at_policy,
    look_at_port,
    look_at_processes,
    look_at_versions,
)
from ticketgate.streams.process.doctor.remote import look_at_broker, look_at_redis
from ticketgate.streams.process.preflight import needs_funnel, needs_policy

# What is asked of a model where no policy says what to ask.
PLAIN_QUESTION: Mapping[str, Question] = {"doctor": NoulQuestion(instructions="Is this about a printer?")}


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


async def examine(settings: Settings, *, now_ms: Callable[[], int] = _now_ms) -> list[Finding]:
    """Every finding. now_ms: this machine's clock, in ms since 1970."""
    found = look_at_versions()
    questions = PLAIN_QUESTION
    if "decide" in settings.roles:
        told, policy = look_at_policy(settings)
        found += told
        model = asyncio.to_thread(look_at_model, settings, questions if policy is None else policy.questions)
        found += await model
    elif needs_policy(settings):
        found += look_at_policy(settings)[0]
    if "settle" in settings.roles:
        found += look_at_console_keys(settings)
    if needs_funnel(settings):
        found += await look_at_funnel(settings)
    told, broker = await look_at_broker(settings)
    found += told
    found += await look_at_redis(settings, broker, now_ms=now_ms)
    found += look_at_processes(settings)
    found += await look_at_port(settings)
    return found
