"""The namespace handed over to another server of Redis: what happens when another one answers than lanes worked on.

It may be the same Redis restarted, a replica that was promoted, one that was restored from a copy, or one that was
emptied. Whether it has all that was acknowledged only the marks can tell, and only once nobody can commit any more on
claims that it forgot: between its claim and its EndTxn a lane asks Redis nothing.

    1 LOOK      which server answers, and which one the namespace stands on (store/servers.py); if they agree: done
    2 LOCK      one process hands over; the others find its lock and look again later
    3 COMPARE   the committed offsets with the claimed marks, of all partitions of all roles: what is lost already is
                refused before anybody is disturbed
    4 TOKENS    take every partition's token: no lane that opened before writes to Redis any more
    5 FENCE     start every partition's producer: no lane that opened before commits any more
    6 COMPARE   again, now that nothing moves
    7 WRITE     down what was committed, where the marks had lost it, then the server, if it and the lock are still the
                same; only now lanes open

Promise: lanes open only on the server that stands written, and each claim's script finds it there (servers.SOUND). A
server that has all its data is taken by itself; one that lost acknowledged claims is refused as `claims_lost` until
they are rebuilt. A crash between any two steps leaves what stood, and whoever comes next begins at 1; two that hand
over at once, because a lock ran out, only fence each other's lanes. Under at_least_once step 5 is left out.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

from aiokafka import TopicPartition
from redis.asyncio import Redis
from ticketgate.store.connect import ServerGuard
from ticketgate.store.keys import Keys
from ticketgate.store.lane_state.marks import raise_committed, read_all_marks
from ticketgate.store.server_scripts import GAPS
from ticketgate.store.servers import Clocks, Kind, Look, ServerId, lock, look, stand_on, unlock
from ticketgate.streams.config.role_terms import role_terms
from ticketgate.streams.config.setting_kinds import Role
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.kafka.connection import connection_of
from ticketgate.streams.kafka.faults import Action, Handling, LaneFault
from ticketgate.streams.kafka.group import committed_with_metadata
from ticketgate.streams.lane.opening.claims_store import (
    ClaimsStore,
    OtherStore,
    StoreId,
    make_store,
    read_store,
)
from ticketgate.streams.lane.opening.fencing import fence_all, sources_of
from ticketgate.streams.lane.opening.opening import LaneRefusal, require_claims

log = logging.getLogger(__name__)

# What looks take may not hold a lane back for ever; its steps have limits of their own.
HAND_OVER_TIMEOUT_S = 50.0


class HandedOverElsewhere(LaneFault):
    """Another process hands the namespace over, or Redis changed meanwhile. The lane looks again in a moment."""

    def __init__(self) -> None:
        super().__init__(
            "the namespace is being handed over to another server of Redis",
            Handling(Action.REOPEN, "redis_changed"),
        )


class HandOver:
    """One process' view of the server that its namespace stands on. `new_client` makes a client without a guard, for a
    look on a connection of its own: who asks on an old one learns what was."""

    def __init__(
        self, settings: Settings, *, guard: ServerGuard, store: ClaimsStore, new_client: Callable[[], Redis]
    ) -> None:
        self._settings = settings
        self._keys = Keys(settings.namespace)
        self._guard = guard
        self._store = store
        self._new_client = new_client
        self._clocks = Clocks()
        self._lock = asyncio.Lock()

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Redis]:
        """A connection to the server that answers now, whichever it is: to look, and for nothing that lanes rely on."""
        redis = self._new_client()
        try:
            yield redis
        finally:
            await redis.aclose()

    async def ensure(self, role: Role) -> None:
        """Return once the namespace stands on the server that answers, and what the role needs of it can be relied
        upon.

        Raises `LaneFault`, `ConditionFailed`, `Unreachable`, `LookAgain`, and errors of aiokafka and redis-py.
        """
        async with self._lock, self.client() as redis, asyncio.timeout(HAND_OVER_TIMEOUT_S):
            found = await self._look(redis)  # 1
            if found.known != found.id:
                refuse_rebuilding(found)
                await self._hand_over(redis, found, role)
                found = await self._look(redis)
            refuse_flaws(found, _kind(role))
            await self._require_store(redis)
            await self._guard.accept(found.id)

    async def _look(self, redis: Redis) -> Look:
        return await look(redis, self._keys, clocks=self._clocks)

    async def _hand_over(self, redis: Redis, found: Look, role: Role) -> None:
        settings, keys, nonce = self._settings, self._keys, secrets.token_hex(8)
        if not await lock(redis, keys, found.id, nonce):  # 2
            raise HandedOverElsewhere
        try:
            sources = await sources_of(settings, redis, keys)
            # The asking role first: the remedy that it names is its own.
            ordered: dict[Role, list[TopicPartition]] = {
                each: sources[each] for each in sorted(sources, key=lambda each: each != role)
            }
            await self._compare(redis, ordered)  # 3
            everything = [place for places in ordered.values() for place in places]
            await fence_all(settings, redis, keys, everything)  # 4, 5
            has_marks, committed = await self._compare(redis, ordered)  # 6
            # A partition's own lane would at its opening, and until then nothing would tell of an offset that is lost.
            await raise_committed(
                redis, keys, ((place.topic, place.partition, offset) for place, offset in committed.items())
            )  # 7
            await make_store(redis, keys, self._store.current)
            if not await stand_on(redis, keys, found, nonce, has_marks=has_marks):
                raise HandedOverElsewhere
        finally:
            await unlock(redis, keys, nonce)
        if found.known is not None:
            log.warning(
                "Redis is another server (%s, before %s): no acknowledged claim is missing, and %d partitions were"
                " handed over",
                _short(found.id),
                _short(found.known),
                len(everything),
            )

    async def _compare(
        self, redis: Redis, sources: Mapping[Role, Sequence[TopicPartition]]
    ) -> tuple[bool, dict[TopicPartition, int]]:
        """3 and 6. Returns whether there is any mark, and what is committed. Raises `LaneRefusal` and `OtherStore`."""
        has_marks = False
        committed: dict[TopicPartition, int] = {}
        here = await read_store(redis, self._keys) or self._store.current
        for role, places in sources.items():
            terms = role_terms(role, self._settings)
            found = await committed_with_metadata(connection_of(self._settings), terms.group, places)
            for _, telling in found.values():
                theirs = StoreId.read(telling)
                if theirs is not None and here is not None and theirs != here:
                    raise OtherStore(terms.group, here, theirs)
            offsets = {place: found[place][0] if place in found else None for place in places}
            # The offsets before the marks: a lane that commits in between has raised its marks before.
            marks = await read_all_marks(redis, self._keys, terms.source, [each.partition for each in places])
            require_claims(offsets, marks, terms)
            has_marks |= any(each.claimed is not None for each in marks.values())
            committed |= {place: offset for place, offset in offsets.items() if offset is not None}
        return has_marks, committed

    async def _require_store(self, redis: Redis) -> None:
        here = await read_store(redis, self._keys)
        if here is not None and self._store.current is not None and here != self._store.current:
            raise OtherStore(self._settings.group, here, self._store.current)


def refuse_rebuilding(found: Look) -> None:
    """Raises `LaneRefusal` while a rebuild keeps the lanes closed."""
    if GAPS in found.flaws.values():
        raise LaneRefusal(
            "rebuilding",
            "a rebuild ended with findings: the outputs cannot vouch for all that was committed",
            "do what it said, and run it again; with --accept-gaps it opens the lanes all the same",
        )
    if found.is_rebuilding:
        raise LaneRefusal(
            "rebuilding",
            "what Redis lost is being rebuilt",
            "wait for the `rebuild` that is at work; if none is, it was cut short: run it again",
        )


def refuse_flaws(found: Look, kind: Kind) -> None:
    """Raises `LaneRefusal` for what the server is known to have lost."""
    flaw = found.flaws.get(kind)
    if flaw is None:
        return
    what, remedy = {
        "evicted": (
            f"Redis evicted keys, and {_NAMES[kind]} may be among them",
            "set its maxmemory-policy to noeviction, then ",
        ),
        "clock": (f"Redis' clock jumped forward, and {_NAMES[kind]} may have ended early", ""),
    }.get(flaw, (f"a rebuild of {_NAMES[kind]} did not end well ({flaw})", ""))
    raise LaneRefusal(f"{kind}_lost", what, f"{remedy}run `ticketgate {kind} rebuild`")


_NAMES: Mapping[Kind, str] = {"claims": "claims", "ledger": "effects"}


def _kind(role: Role) -> Kind:
    return "ledger" if role == "effects" else "claims"


def _short(server: ServerId | str) -> str:
    return server[:8]
