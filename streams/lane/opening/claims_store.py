"""One claims store for all workers of a group: how a worker proves that it uses the same Redis and namespace as the
others.

A store is known by a random id that lies in it. It is written as the metadata of every offset that is committed on
claims of it, and stands in what a member tells its group:

    1  before joining: the store of every committed offset, and of every member that is there, is this worker's, or it
       does not join
    2  of members that join at the same moment the leader gives partitions to those of its own store alone; the others
       are told, and leave

Promise: two workers of one group that use two Redis servers, or two namespaces, never both hold partitions, also where
nothing was committed yet. Those of a version before this one tell of no store, and are taken for members of any.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata
from redis.asyncio import Redis
from redis.exceptions import RedisError
from ticketgate.store.keys import Keys
from ticketgate.streams.config.role_terms import RoleTerms
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.kafka.connection import connection_of
from ticketgate.streams.kafka.faults import Action, Handling, LaneFault
from ticketgate.streams.kafka.group import committed_with_metadata, tellings_of_members
from ticketgate.streams.lane.opening.fencing import partitions_of

_TELLING = re.compile(r"ticketgate claims store ([0-9a-f]{32}) of ([A-Za-z0-9._-]{1,64})")


@dataclass(frozen=True, slots=True)
class StoreId:
    """A claims store: its random id, and the namespace that it is of."""

    id: str
    namespace: str

    @classmethod
    def read(cls, telling: str | bytes | None) -> StoreId | None:
        """What an offset's metadata or a member's data tell of a store; None if nothing."""
        text = telling.decode(errors="replace") if isinstance(telling, bytes) else telling or ""
        found = _TELLING.fullmatch(text)
        return None if found is None else cls(found[1], found[2])

    def tell(self) -> str:
        """For `read`."""
        return f"ticketgate claims store {self.id} of {self.namespace}"


class OtherStore(LaneFault):
    """The group works with other claims. This worker must not take a record of it: each would know nothing of what the
    other has decided."""

    def __init__(self, group: str, ours: StoreId | None, theirs: StoreId) -> None:
        here = "this Redis has no claims store yet" if ours is None else f"this one uses {_short(ours)}"
        super().__init__(
            f"the workers of group {group!r} use claims store {_short(theirs)}, and {here}",
            Handling(
                Action.REFUSE,
                "other_claims_store",
                "set TICKETGATE_REDIS and TICKETGATE_NAMESPACE as for the group's other workers, or take a"
                " TICKETGATE_GROUP of its own; if Redis was emptied, run `ticketgate claims rebuild`",
            ),
        )


class ClaimsStore:
    """What this process knows of its store. `telling` is what it writes with each commit; empty before `prove`."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self.current: StoreId | None = None

    @property
    def telling(self) -> str:
        """For the metadata of commits and for the group."""
        return "" if self.current is None else self.current.tell()

    async def prove(self, settings: Settings, redis: Redis, terms: RoleTerms) -> StoreId:
        """1. Raises `OtherStore`, `Unreachable`, `SettingsError` and redis-py's errors.

        A Redis that has no store where offsets tell of one was emptied, or is another. While no member uses that one,
        it is taken for this worker's, whose lanes refuse for the marks that are gone.
        """
        connection, group = connection_of(settings), terms.group
        offsets = await committed_with_metadata(
            connection, group, await partitions_of(connection, terms.source)
        )
        committed = {each for _, telling in offsets.values() if (each := StoreId.read(telling))}
        members = {
            each for told in await tellings_of_members(connection, group) if (each := StoreId.read(told))
        }
        here = await self._here(redis)
        if here is None and not members:
            here = min(committed, key=StoreId.tell) if committed else await make_store(redis, self._keys)
        for theirs in sorted(committed | members, key=StoreId.tell):
            if theirs != here:
                raise OtherStore(group, here, theirs)
        if here is None:
            raise RuntimeError("a group without a store and with members of one was not refused")
        self.current = here
        return here

    async def _here(self, redis: Redis) -> StoreId | None:
        try:
            return await read_store(redis, self._keys) or self.current
        except RedisError:
            # A worker that was let in keeps its place while Redis is away; its lanes wait.
            if self.current is None:
                raise
            return self.current


async def read_store(redis: Redis, keys: Keys) -> StoreId | None:
    """The store that this Redis has of the namespace. Raises redis-py's errors."""
    found = cast("bytes | None", await redis.get(keys.store))
    return None if found is None else StoreId(found.decode(), keys.namespace)


async def make_store(redis: Redis, keys: Keys, store: StoreId | None = None) -> StoreId:
    """The store that this Redis has of the namespace, made if there is none: `store` if it is known already."""
    await redis.set(keys.store, uuid.uuid4().hex if store is None else store.id, nx=True)
    found = await read_store(redis, keys)
    if found is None:
        raise RuntimeError("Redis lost the claims store as soon as it was made")
    return found


def assignor_of(store: StoreId, on_refused: Callable[[StoreId], None]) -> type[RoundRobinPartitionAssignor]:
    """The group's assignor for a worker of that store: 2. It bears the name of aiokafka's own, so that workers of a
    version before can be in the group. `on_refused` is called when a leader of another store gave it nothing."""
    telling = store.tell().encode()

    class StoreAssignor(RoundRobinPartitionAssignor):  # type: ignore[misc]  # aiokafka has no types
        """Round robin among the members of one store."""

        @classmethod
        def metadata(cls, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
            return ConsumerProtocolMemberMetadata(cls.version, list(topics), telling)

        @classmethod
        def assign(
            cls, cluster: Any, members: Mapping[str, ConsumerProtocolMemberMetadata]
        ) -> dict[str, ConsumerProtocolMemberAssignment]:
            told = {name: StoreId.read(each.user_data) for name, each in members.items()}
            ours = {name: each for name, each in members.items() if told[name] in (None, store)}
            given = super().assign(cluster, ours)
            return {
                name: ConsumerProtocolMemberAssignment(
                    cls.version, given[name].assignment if name in given else [], telling
                )
                for name in members
            }

        @classmethod
        def on_assignment(cls, assignment: ConsumerProtocolMemberAssignment) -> None:
            leader = StoreId.read(assignment.user_data)
            if leader is not None and leader != store:
                on_refused(leader)

    return StoreAssignor


def _short(store: StoreId) -> str:
    return f"{store.id[:8]} of namespace {store.namespace!r}"
