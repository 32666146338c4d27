"""Whether a partition still is what the marks in Redis were made from: the same topic, with its end.

Promise: `check` returns only if no topic id and no witness contradicts. What cannot be told (a broker without topic
ids, a record that retention took, a Redis that was rebuilt) contradicts nothing.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import OffsetOutOfRangeError
from redis.asyncio import Redis
from ticketgate.store.keys import Keys
from ticketgate.store.lane_state.witnesses import Witness, read_witnesses, write_witnesses
from ticketgate.store.tokens import LaneToken
from ticketgate.streams.kafka.faults import Action, Handling, LaneFault
from ticketgate.streams.kafka.internals import client_of
from ticketgate.streams.kafka.reading.salvage import UnreadableBatch, fetch
from ticketgate.streams.kafka.topic_ids import topic_ids

ASK_TIMEOUT_S = 15.0

_ANEW = (
    "take a new TICKETGATE_GROUP and TICKETGATE_NAMESPACE, in which all that is in the topic now is decided (copies of"
    " what was decided before as well)"
)


def anew_remedy(replay: str, has_claims: bool) -> str:
    """What to do about a topic that was made anew. Claims name offsets of the topic that is gone, and would take what
    lies there now for their own; the ledger does not."""
    return _ANEW if has_claims else f"stop the workers; {_go_on_at_cut(replay)}"


def _go_on_at_cut(replay: str) -> str:
    return f"`ticketgate {replay} --replay-from cut` goes on at the first record that nothing was done about"


class TopicMadeAnew(LaneFault):
    """The topic has another id than the one that the marks were made from."""

    def __init__(self, topic: str, *, was: str, found: str, remedy: str) -> None:
        super().__init__(
            f"topic {topic} was deleted and made anew (its id is {found}, and was {was}): what the group and Redis"
            " remember is of other records",
            Handling(Action.REFUSE, "topic_made_anew", remedy),
        )


class TopicCut(LaneFault):
    """The partition lost its end: a record that was taken is gone, or another lies in its place.

    if_made_anew: what to do if the topic may have been made anew, None where its id says that it was not.
    """

    def __init__(
        self,
        source: TopicPartition,
        witness: Witness,
        *,
        end: int,
        replay: str,
        if_made_anew: str | None,
    ) -> None:
        where = f"{source.topic}:{source.partition}"
        what = (
            f"{where}:{witness.offset} was read, and the partition ends at {end} now"
            if witness.offset >= end
            else f"another record lies at {where}:{witness.offset} than the one that was read there"
        )
        otherwise = "" if if_made_anew is None else f"; or, if the topic was made anew: {if_made_anew}"
        super().__init__(
            f"{what}: the broker lost the partition's end, and new records may lie where others were",
            Handling(
                Action.REFUSE, "input_truncated", f"stop the workers; {_go_on_at_cut(replay)}{otherwise}"
            ),
        )


async def require_topic_id(client: Any, topic: str, known: str | None, *, remedy: str) -> str | None:
    """The topic's id now, None where the broker tells none. Raises `TopicMadeAnew` and aiokafka's errors."""
    async with asyncio.timeout(ASK_TIMEOUT_S):
        found = (await topic_ids(client, [topic])).get(topic)
    if known is not None and found is not None and known != found:
        raise TopicMadeAnew(topic, was=known, found=found, remedy=remedy)
    return found


async def require_witness(
    consumer: AIOKafkaConsumer,
    source: TopicPartition,
    witness: Witness,
    *,
    replay: str,
    if_made_anew: str | None,
) -> None:
    """The record lies where it lay, or retention took it. Raises `TopicCut`, aiokafka's errors and TimeoutError."""
    try:
        found = await witness_at(consumer, source, witness.offset)
    except UnreadableBatch:
        return  # whatever ails it, it was read once and is behind
    except OffsetOutOfRangeError:
        found = None
    if found is not None and (found == witness or not witness.digest):
        return
    # A fetch tells what is there: not every broker answers rightly where a partition ends.
    async with asyncio.timeout(ASK_TIMEOUT_S):
        first = int((await consumer.beginning_offsets([source]))[source])
        end = int((await consumer.end_offsets([source]))[source])
    if first <= witness.offset:
        raise TopicCut(source, witness, end=end, replay=replay, if_made_anew=if_made_anew)


async def witness_at(consumer: AIOKafkaConsumer, source: TopicPartition, offset: int) -> Witness | None:
    """The record at an offset, None where none lies there.

    Nothing behind the record's own batch is unpacked: what comes next may be what ended a worker.
    Raises `UnreadableBatch`, aiokafka's errors and TimeoutError.
    """
    fetched = await fetch(consumer, source, offset)
    while fetched.has_next() and fetched.next_offset <= offset:
        for record in fetched.unpack_next():
            if record.offset == offset:
                return Witness.of(record)
    return None


class Origin:
    """Looks, at each opening of a lane. replay: the command that sets its group's offsets. has_claims: whether the
    lane claims records by where they lie."""

    def __init__(
        self,
        consumer: AIOKafkaConsumer,
        redis: Redis,
        keys: Keys,
        *,
        replay: str,
        has_claims: bool,
    ) -> None:
        self._consumer = consumer
        self._redis = redis
        self._keys = keys
        self._replay = replay
        self._anew = anew_remedy(replay, has_claims)
        self._topic_ids: dict[TopicPartition, str] = {}

    async def check(
        self, source: TopicPartition, token: LaneToken, *, committed: int | None, end: int
    ) -> Witness | None:
        """Raise where the partition is not what it was, and write down what it is. Returns its last known record.

        Raises `TopicMadeAnew`, `TopicCut`, `Superseded`, aiokafka's and redis-py's errors and TimeoutError.
        """
        self._topic_ids.pop(source, None)
        known = await read_witnesses(self._redis, self._keys, source.topic, source.partition)
        topic_id = await require_topic_id(
            client_of(self._consumer), source.topic, known.topic_id, remedy=self._anew
        )
        if topic_id is not None:
            self._topic_ids[source] = topic_id
        if committed is not None and committed > end:
            known = replace(known, committed=Witness(committed - 1, ""))
        if known.last is not None:
            await self._require(source, known.last)
        if topic_id is not None and topic_id != known.topic_id:
            await write_witnesses(self._redis, self._keys, token, {"topic": topic_id})
        return known.last

    async def verify(self, source: TopicPartition, last: Witness) -> None:
        """What `check` looks at, again: before a lane that was idle goes on."""
        known = self._topic_ids.get(source)
        await require_topic_id(client_of(self._consumer), source.topic, known, remedy=self._anew)
        await self._require(source, last)

    async def _require(self, source: TopicPartition, witness: Witness) -> None:
        if_made_anew = None if source in self._topic_ids else self._anew
        await require_witness(self._consumer, source, witness, replay=self._replay, if_made_anew=if_made_anew)
