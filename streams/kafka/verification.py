"""Whether the brokers ask, for each record of a transaction, if its partition belongs to one.

Without that, a request that a network held for long enough, from before a fence, finds a partition that knows nothing
of the fence, and its records ride in the successor's transaction. Kafka does it unless
transaction.partition.verification.enable is false, which is said broker by broker and may change while it runs.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError, for_code
from ticketgate.store.conditions import ConditionFailed
from ticketgate.streams.kafka.internals import client_of_admin

SETTING = "transaction.partition.verification.enable"


async def check_verification(client: AIOKafkaAdminClient) -> None:
    """Raises `ConditionFailed` for a broker that does not verify transactions, or will not say; aiokafka's errors.

    Who will not say is refused as well: the setting is there for those who met its price, and nothing else would
    tell of it. A broker that may say and has no such setting knows no other way, and is let in.
    """
    brokers = [str(each.nodeId) for each in client_of_admin(client).cluster.brokers()]
    found = await asyncio.gather(*(_describe(client, each) for each in brokers), return_exceptions=True)
    answers = [each for each in found if not isinstance(each, BaseException)]
    for each in found:
        # One of several that is away is asked the next time; it takes no requests meanwhile.
        if isinstance(each, BaseException) and (not answers or not isinstance(each, KafkaError)):
            raise each
    for code, message, _, name, entries in itertools.chain.from_iterable(answers):
        if code != 0:
            raise ConditionFailed(
                f"broker {name} does not say whether it verifies transactions"
                f" ({message or for_code(code).__name__})",
                "grant the worker's user DescribeConfigs on the cluster, or set TICKETGATE_GUARANTEE=at_least_once",
            )
        if any(entry[0] == SETTING and entry[1] == "false" for entry in entries):
            raise ConditionFailed(
                f"broker {name} does not verify transactions ({SETTING} is false): a request that the network held"
                " would be taken for one of a later transaction",
                f"set {SETTING} to true on all brokers, or set TICKETGATE_GUARANTEE=at_least_once",
            )


async def _describe(client: AIOKafkaAdminClient, broker: str) -> Sequence[Any]:
    """What a broker answers of its setting: code, message, kind, name and entries of each resource."""
    resource = ConfigResource(ConfigResourceType.BROKER, broker, configs={SETTING: ""})
    answer: Any
    (answer,) = await client.describe_configs([resource])
    resources: Sequence[Any] = answer.resources
    return resources
