"""What a broker lets its clients do with a group: denied and allowed again while workers are at it."""

from __future__ import annotations

import asyncio
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import for_code
from aiokafka.protocol.admin import CreateAclsRequest, DeleteAclsRequest

# Nobody is denied what no rule names.
PROPERTIES = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
# Kafka's numbers: a group, its name taken literally, Read, Deny.
_GROUP, _LITERAL, _READ, _DENY = 3, 3, 3, 2


def deny_read(bootstrap: str, group: str) -> None:
    """Deny everybody Read on a group."""
    asyncio.run(_send(bootstrap, CreateAclsRequest(*_rule(group))))


def allow_read(bootstrap: str, group: str) -> None:
    """Take the denial back."""
    asyncio.run(_send(bootstrap, DeleteAclsRequest(*_rule(group))))


def _rule(group: str) -> tuple[int, str, int, str, str, int, int]:
    return (_GROUP, group, _LITERAL, "User:ANONYMOUS", "*", _READ, _DENY)


async def _send(bootstrap: str, request: CreateAclsRequest | DeleteAclsRequest) -> None:
    client = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await client.start()
    try:
        response: Any = await client._send_to_controller(request)
    finally:
        await client.close()
    for code, message, *_ in getattr(response, "creation_responses", None) or response.filter_responses:
        if code:
            raise for_code(code)(message)
