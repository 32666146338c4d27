"""Which Redis server the claims stand on, and what is known against them.

A server is told by its run id and its replication id: one changes with each start of the process, the other with each
promotion. What the namespace stands on is written down in the namespace itself:

`server`      hash    id: the server that all partitions were handed over to (streams/lane/opening/handover.py), or
                      `rebuilding:` and a nonce while a rebuild is at work; evicted: its count of evicted keys then;
                      seen_ms: its clock at the last look; claims, ledger: why these cannot be relied upon until they
                      are rebuilt, absent where they can
`canary:N`    string  lives for CANARY_LIFETIME_MS * 4^N after the last look: gone before that, Redis' clock has jumped

Promise: no script of a lane writes on a server that the namespace was not handed over to, nor after a key was evicted,
nor where Redis' clock stands more than MOST_JUMP_MS from where it was last seen; such a script changes nothing and
raises `LookAgain`. What marks cannot show (claims that were evicted or outlived early) is remembered until a rebuild.
Relies on: a look every minute at least (streams/lane/watching.py), so that a clock that merely runs on is no jump.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Literal, NewType, cast

from redis.asyncio import Redis
from redis.exceptions import ResponseError
from ticketgate.store.clock import redis_now_ms
from ticketgate.store.conditions import ConditionFailed
from ticketgate.store.keys import Keys
from ticketgate.store.server_scripts import (
    BEGIN_REBUILD,
    GAPS,
    LOCK,
    LOOK,
    LOOK_AGAIN,
    MOST_JUMP_MS,
    REBUILDING,
    STAND_ON,
    UNLOCK,
)
from ticketgate.store.tokens import reply_of

ServerId = NewType("ServerId", str)
"""`run id/replication id`."""

Kind = Literal["claims", "ledger"]
"""What is rebuilt by a command of its own."""

# How long a hand-over may take before another process may try: hundreds of fences, each in a tenth of a second.
HANDOVER_LOCK_MS: Final = 60_000

_STEADY: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class LookAgain(Exception):
    """Redis is not where it was left: another server, evicted keys, a clock that jumped, or a rebuild. Nothing was
    written; the lane reopens, and what opens it looks."""


class Mistimed(ConditionFailed):
    """Redis' clock and this machine's are far apart, and lifetimes count by the first."""

    def __init__(self, ahead_ms: int) -> None:
        where = "ahead of" if ahead_ms > 0 else "behind"
        super().__init__(
            f"Redis' clock is {abs(ahead_ms) / 60_000:,.0f} minutes {where} this machine's",
            "set right whichever is wrong (NTP); if it was Redis', claims may have ended early, and lanes wait for"
            " `ticketgate claims rebuild`",
        )
        self.ahead_ms = ahead_ms


@dataclass(frozen=True, slots=True)
class Look:
    """A server as it was seen. known: the one that the namespace stands on, `rebuilding:` and a nonce, or None.
    flaws: why claims or ledger cannot be relied upon, one word each."""

    id: ServerId
    known: str | None
    clock_ms: int
    flaws: Mapping[Kind, str]

    @property
    def is_rebuilding(self) -> bool:
        """Whether a rebuild is at work, or died."""
        return self.known is not None and self.known.startswith(REBUILDING)


class Clocks:
    """Redis' clock beside one of this machine's that cannot be set, and that goes on while the machine sleeps."""

    def __init__(self) -> None:
        self._last: tuple[int, int] | None = None

    def has_jumped(self, clock_ms: int) -> bool:
        """Whether Redis' clock jumped forward since the last time."""
        steady_ms = round(time.clock_gettime(_STEADY) * 1000)
        last, self._last = self._last, (clock_ms, steady_ms)
        return last is not None and (clock_ms - last[0]) - (steady_ms - last[1]) > MOST_JUMP_MS


async def require_right_clock(redis: Redis) -> int:
    """Redis' clock in ms, if it is this machine's too. Raises `Mistimed` and redis-py's errors."""
    clock_ms = await redis_now_ms(redis)
    _require_right(clock_ms)
    return clock_ms


def _require_right(clock_ms: int) -> None:
    ahead_ms = clock_ms - round(time.time() * 1000)
    if abs(ahead_ms) > MOST_JUMP_MS:
        raise Mistimed(ahead_ms)


async def look(redis: Redis, keys: Keys, *, clocks: Clocks) -> Look:
    """See which server answers and what is known of it. Raises `Mistimed` and redis-py's errors.

    A jump that was seen is written down even where the clock is wrong still."""
    clock_ms = await redis_now_ms(redis)
    if clocks.has_jumped(clock_ms):
        await _run_look(redis, keys, has_jumped=True)
    _require_right(clock_ms)
    return await _run_look(redis, keys, has_jumped=False)


async def _run_look(redis: Redis, keys: Keys, *, has_jumped: bool) -> Look:
    reply = await LOOK(redis, server=keys.server, has_jumped=int(has_jumped))
    found = [each.decode() for each in cast("list[bytes]", reply)]
    flaws: dict[Kind, str] = {}
    if found[3]:
        flaws["claims"] = found[3]
    if found[4]:
        flaws["ledger"] = found[4]
    return Look(ServerId(found[0]), found[1] or None, int(found[2]), flaws)


async def lock(redis: Redis, keys: Keys, server: ServerId, nonce: str) -> bool:
    """Whether the hand-over to `server` is this caller's now, for HANDOVER_LOCK_MS. Raises `LookAgain`."""
    with look_again():
        got = await LOCK(
            redis,
            server=keys.server,
            handover=keys.handover,
            wanted_id=server,
            nonce=nonce,
            lifetime_ms=HANDOVER_LOCK_MS,
        )
    return bool(got)


async def unlock(redis: Redis, keys: Keys, nonce: str) -> None:
    """Let another one try."""
    await UNLOCK(redis, handover=keys.handover, nonce=nonce)


async def stand_on(redis: Redis, keys: Keys, look: Look, nonce: str, *, has_marks: bool = False) -> bool:
    """Write down that the namespace stands on this server. has_marks: it is not new. False, and nothing written, if the
    server, or what stood there, is no longer what was looked at, or the lock is no longer the caller's."""
    return await _stand_on(redis, keys, look, nonce, has_marks=has_marks) == 1


async def begin_rebuild(redis: Redis, keys: Keys, kind: Kind, nonce: str) -> Look:
    """Close all lanes of the namespace to this Redis, until `end_rebuild`, to which what this returns is given."""
    known = f"{REBUILDING}{nonce}"
    other = "ledger" if kind == "claims" else "claims"
    reply = await BEGIN_REBUILD(redis, server=keys.server, new_id=known, kind=kind, other_kind=other)
    return Look(ServerId(cast("bytes", reply).decode()), known, 0, {})


async def note_gaps(redis: Redis, keys: Keys, kind: Kind) -> None:
    """Remember that a rebuild ended without having restored all, for lanes to tell."""
    await redis.hset(keys.server, kind, GAPS)


async def end_rebuild(redis: Redis, keys: Keys, look: Look, kind: Kind) -> None:
    """Let lanes open again. Raises `ConditionFailed` where what was restored may be gone again, and lanes stay
    closed."""
    written = await _stand_on(redis, keys, look, "", rebuilt=kind)
    if written == 2:
        raise ConditionFailed(
            "Redis evicted keys while they were restored",
            "set its maxmemory-policy to noeviction, and run the rebuild again",
        )
    if written == 0:
        raise ConditionFailed(
            "Redis was restarted or replaced during the rebuild, or another rebuild began", "run it again"
        )


async def _stand_on(
    redis: Redis, keys: Keys, look: Look, nonce: str, *, rebuilt: str = "", has_marks: bool = False
) -> int:
    reply = await STAND_ON(
        redis,
        server=keys.server,
        handover=keys.handover,
        wanted_id=look.id,
        nonce=nonce,
        known_id=look.known or "",
        rebuilt_kind=rebuilt,
        has_marks=int(has_marks),
    )
    return cast("int", reply)


def server_id(info: Mapping[str, object]) -> ServerId:
    """The id in INFO's sections server and replication."""
    return ServerId(f"{info['run_id']}/{info['master_replid']}")


@contextmanager
def look_again() -> Iterator[None]:
    """Translate what SOUND and WHOLE reply into `LookAgain`."""
    try:
        yield
    except ResponseError as err:
        if (said := reply_of(err)).startswith(LOOK_AGAIN):
            raise LookAgain(said.removeprefix(LOOK_AGAIN).strip()) from err
        raise
