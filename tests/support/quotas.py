"""A quota on what producers may send, which aiokafka's admin client cannot set. Source: AlterClientQuotas version 0."""

from __future__ import annotations

import asyncio
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Array, Boolean, Float64, Int16, Int32, Schema, String

_ENTITY = Array(("type", String("utf-8")), ("name", String("utf-8")))


class _Answer(Response):
    API_KEY = 49  # pyright: ignore[reportIncompatibleMethodOverride, reportAssignmentType] - as aiokafka's own
    API_VERSION = 0  # pyright: ignore[reportIncompatibleMethodOverride, reportAssignmentType] - as aiokafka's own
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "entries",
            Array(("error_code", Int16), ("error_message", String("utf-8")), ("entity", _ENTITY)),
        ),
    )


class _Question(RequestStruct):
    API_KEY = 49
    API_VERSION = 0
    RESPONSE_TYPE = _Answer
    SCHEMA = Schema(
        (
            "entries",
            Array(
                ("entity", _ENTITY),
                ("ops", Array(("key", String("utf-8")), ("value", Float64), ("remove", Boolean))),
            ),
        ),
        ("validate_only", Boolean),
    )


class _SetQuota(Request[_Question]):
    API_KEY = 49

    def __init__(self, bytes_a_second: float) -> None:
        self._bytes_a_second = bytes_a_second

    def build(self, request_struct_class: type[_Question]) -> _Question:
        ops = [("producer_byte_rate", self._bytes_a_second, False)]
        return request_struct_class([([("client-id", None)], ops)], False)


def limit_producers(bootstrap: str, *, bytes_a_second: float) -> None:
    """Let every client produce so much and no more."""

    async def act() -> None:
        client = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await client.start()
        try:
            answer: Any = await client._send_request(_SetQuota(bytes_a_second))
            assert [each[0] for each in answer.entries] == [0], answer
        finally:
            await client.close()

    asyncio.run(act())
