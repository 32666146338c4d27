"""Effects in a Redis hash, for an application that takes them from there, and for tests.

    {prefix}effects      hash     effect key -> {"id", "tool", "content", "state"}

Promise: one script sees to it that a key takes effect once; the same key with another content is a collision. What
stands is read from the same Redis, so it is authoritative at once. Relies on: a Redis that forgets nothing, as that of
the claims (store/conditions.py).
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from datetime import timedelta
from typing import cast

from redis.exceptions import RedisError
from ticketgate.agents.effects.port import (
    LATEST_START_S,
    CannotRead,
    Collision,
    Command,
    Executed,
    ExecuteResult,
    Found,
    NotFound,
    Prepared,
    ReadBackResult,
    Refused,
    TimedOut,
)
from ticketgate.agents.effects.states import NO_STATES, States
from ticketgate.codecs.values.limits import MAX_DEPTH
from ticketgate.codecs.values.strict import JsonValue, decode, encode, is_within_depth
from ticketgate.store.connect import connect
from ticketgate.store.script import Script

# Returns what stands afterwards.
_EXECUTE = Script(
    "execute an effect",
    """
redis.call('HSETNX', hash, effect_key, effect)
return redis.call('HGET', hash, effect_key)
""",
    keys=["hash"],
    arguments=["effect_key", "effect"],
)
MAX_EFFECT_BYTES = 2**20
# Of a tool whose states nobody declares, whatever has its content stands.
_UNDECLARED = States(done=("committed",))


class RedisPort:
    """A hash of effects. states: by tool, which of its states stand; what is written stands, and says so by the first
    of those that are done. Raises ValueError if `url` is no URL of a Redis or `prefix` is empty."""

    def __init__(
        self, *, url: str, prefix: str, timeout_s: float = 5.0, states: Mapping[str, States] = NO_STATES
    ) -> None:
        if not prefix:
            raise ValueError("prefix is empty; name what the hash's name begins with, such as 'payments:'")
        if not timeout_s > 0:
            raise ValueError(f"timeout_s is {timeout_s:g}; an answer takes more than no time")
        self._redis = connect(url, timeout=timedelta(seconds=timeout_s))
        self._name = f"{prefix}effects"
        self._timeout_s = timeout_s
        self._states = states

    @property
    def is_idempotent_by_key(self) -> bool:
        """The script sees to it."""
        return True

    @property
    def settle_s(self) -> float:
        """What the script has done is there; but it may run as late as it may start, and until its time is over."""
        return LATEST_START_S + self._timeout_s

    async def prepare(self, command: Command) -> Prepared | Refused:
        """Whether the effect can be written as JSON."""
        try:
            written = encode(self._value(command, provider_id=""))
        except ValueError as err:
            return Refused(f"the arguments cannot be written: {err}")
        if len(written) > MAX_EFFECT_BYTES:
            return Refused(
                f"the effect is {len(written)} bytes, more than the {MAX_EFFECT_BYTES} that are kept"
            )
        return Prepared(command)

    async def execute(self, prepared: Prepared) -> ExecuteResult:
        """Write the effect unless one stands under its key."""
        command = prepared.command
        mine = uuid.uuid4().hex
        value = encode(self._value(command, provider_id=mine))
        try:
            # Connecting and answering each have that long; the settle time counts on both together.
            async with asyncio.timeout(self._timeout_s):
                found = await _EXECUTE(self._redis, hash=self._name, effect_key=command.key, effect=value)
        except (RedisError, OSError):
            return TimedOut()
        standing = _read(cast("bytes", found))
        if standing is None:
            return TimedOut()
        provider_id, content, state = standing
        if content != command.content:
            return Collision()
        return Executed(provider_id, state, is_replay=provider_id != mine)

    async def read_back(self, key: str) -> ReadBackResult:
        """What stands under the key."""
        try:
            found = await self._redis.hget(self._name, key)
        except (RedisError, OSError):
            return CannotRead()
        if found is None:
            return NotFound()
        standing = _read(found.encode() if isinstance(found, str) else found)
        return CannotRead() if standing is None else Found(standing[0], standing[2])

    async def close(self) -> None:
        """Close the connections."""
        await self._redis.aclose()

    def _value(self, command: Command, *, provider_id: str) -> dict[str, JsonValue]:
        states = self._states.get(command.tool, _UNDECLARED)
        return {
            "id": provider_id,
            "tool": command.tool,
            "content": command.content,
            # An application that undoes it, or takes its time, says so in its place.
            "state": {states.field: states.done[0], **command.arguments},
        }


def _read(found: bytes) -> tuple[str, str, dict[str, JsonValue]] | None:
    """Id, content and state; None for what is not an effect of ours. An application may have changed the state."""
    value = decode(found, max_bytes=4 * MAX_EFFECT_BYTES, is_our_own=True)
    if not isinstance(value, dict):
        return None
    provider_id, content, state = value.get("id"), value.get("content"), value.get("state")
    if not isinstance(provider_id, str) or not isinstance(content, str) or not isinstance(state, dict):
        return None
    if not is_within_depth(state, MAX_DEPTH):
        return None
    return provider_id, content, state
