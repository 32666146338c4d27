"""The ids of topics: a topic that was deleted and made anew has another, whatever its name.

aiokafka asks for metadata in versions without ids, so this asks for itself. Source: Kafka's protocol, Metadata
version 12 (KIP-516), of every Apache Kafka from 3.0 on.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any

from aiokafka.errors import IncompatibleBrokerVersion, NodeNotReadyError
from aiokafka.protocol.abstract import AbstractType
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import (
    Boolean,
    CompactArray,
    CompactString,
    Int16,
    Int32,
    Schema,
    TaggedFields,
)

_NO_ID = uuid.UUID(int=0)


class _Uuid(AbstractType[uuid.UUID]):  # type: ignore[misc]  # aiokafka has no types
    @classmethod
    def encode(cls, value: uuid.UUID) -> bytes:
        return value.bytes

    @classmethod
    def decode(cls, data: BytesIO) -> uuid.UUID:
        return uuid.UUID(bytes=data.read(16))

    @classmethod
    def repr(cls, value: uuid.UUID) -> str:
        return str(value)


_PARTITION = (
    ("error_code", Int16),
    ("partition", Int32),
    ("leader", Int32),
    ("leader_epoch", Int32),
    ("replicas", CompactArray(Int32)),
    ("isr", CompactArray(Int32)),
    ("offline", CompactArray(Int32)),
    ("tags", TaggedFields),
)
_TOPIC = (
    ("error_code", Int16),
    ("name", CompactString("utf-8")),
    ("topic_id", _Uuid),
    ("is_internal", Boolean),
    ("partitions", CompactArray(*_PARTITION)),
    ("authorized_operations", Int32),
    ("tags", TaggedFields),
)
_BROKER = (
    ("node", Int32),
    ("host", CompactString("utf-8")),
    ("port", Int32),
    ("rack", CompactString("utf-8")),
    ("tags", TaggedFields),
)


class _Answer(Response):  # type: ignore[misc]  # aiokafka has no types
    API_KEY = 3  # pyright: ignore[reportIncompatibleMethodOverride, reportAssignmentType] - as aiokafka's own
    API_VERSION = 12  # pyright: ignore[reportIncompatibleMethodOverride, reportAssignmentType] - as aiokafka's own
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("brokers", CompactArray(*_BROKER)),
        ("cluster_id", CompactString("utf-8")),
        ("controller", Int32),
        ("topics", CompactArray(*_TOPIC)),
        ("tags", TaggedFields),
    )


class _Question(RequestStruct):  # type: ignore[misc]  # as above
    API_KEY = 3
    API_VERSION = 12
    FLEXIBLE_VERSION = True
    RESPONSE_TYPE = _Answer
    SCHEMA = Schema(
        (
            "topics",
            CompactArray(("topic_id", _Uuid), ("name", CompactString("utf-8")), ("tags", TaggedFields)),
        ),
        ("allow_auto_topic_creation", Boolean),
        ("include_authorized_operations", Boolean),
        ("tags", TaggedFields),
    )


class _TopicIds(Request[_Question]):  # type: ignore[misc]  # as above
    API_KEY = 3

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def build(self, request_struct_class: type[_Question]) -> _Question:
        topics: list[Any] = [(_NO_ID, name, {}) for name in self._names]
        return request_struct_class(topics, False, False, {})


async def topic_ids(client: Any, names: Sequence[str]) -> Mapping[str, str]:
    """The id of each topic that has one, asked by an AIOKafkaClient that is connected.

    Without those that are not there, and empty from a broker that knows no ids. Raises aiokafka's errors.
    """
    node = client.get_random_node()
    if node is None:
        raise NodeNotReadyError("no broker is known")
    try:
        answer = await client.send(node, _TopicIds(names))
    except (IncompatibleBrokerVersion, NotImplementedError):
        return {}
    return {
        name: str(topic_id)
        for error_code, name, topic_id, *_ in answer.topics
        if not error_code and topic_id != _NO_ID
    }
