"""What the broker is: reached or not, which cluster, whether its transactions can be relied upon.

See ARCHITECTURE.md#delivery.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiokafka import errors as kafka
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from ticketgate.streams.config.setting_kinds import SettingsError
from ticketgate.streams.kafka.advertised import Advertised, find_dead
from ticketgate.streams.kafka.connection import KafkaConnection
from ticketgate.streams.kafka.internals import client_of_admin, told_versions
from ticketgate.streams.kafka.refusals import find_refusal

# A broker that is there answers in milliseconds; one that just starts, in seconds.
REACH_TIMEOUT_S = 10.0
REQUEST_TIMEOUT_MS = 10_000

# Kafka 4.0 took away what is older than Fetch version 4 (KIP-896), and is the first that applies transactional
# offsets before it lets a successor pass the fence. A broker tells its versions, not its release.
_FETCH_API = 1
_LEAST_FETCH_OF_KAFKA_4 = 4

# Kafka 4.3 brought version 5 of this request, and with it a fault (KAFKA-20734, in 4.3.0 to 4.4.0 at least): while a
# partition has no leader, the markers of a decided transaction are skipped there.
_DESCRIBE_LOG_DIRS_API = 35
_DESCRIBE_LOG_DIRS_OF_KAFKA_4_3 = 5

# What aiokafka and the system raise where nobody is there, or no longer.
_SILENCE = (
    OSError,
    TimeoutError,
    kafka.KafkaConnectionError,
    kafka.KafkaTimeoutError,
    kafka.NodeNotReadyError,
    kafka.NoBrokersAvailable,
    kafka.RequestTimedOutError,
)


class Unreachable(Exception):
    """A dependency does not answer. The message names the setting and the remedy; it may be there a moment later."""

    def __init__(self, setting: str, what: str, remedy: str) -> None:
        super().__init__(f"{setting}: {what}; {remedy}")
        self.setting, self.what, self.remedy = setting, what, remedy


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker that answered: its cluster's id, whether it is Apache Kafka 4.0 or newer, and whether it is one that may
    tear a transaction apart when all replicas of a partition are down (KAFKA-20734)."""

    cluster: str
    is_kafka_4: bool
    may_tear_transactions: bool


@asynccontextmanager
async def admin_client(connection: KafkaConnection) -> AsyncIterator[AIOKafkaAdminClient]:
    """A connected admin client. Raises `Unreachable` and `SettingsError`."""
    client = AIOKafkaAdminClient(request_timeout_ms=REQUEST_TIMEOUT_MS, **connection.arguments())
    try:
        try:
            async with asyncio.timeout(REACH_TIMEOUT_S):
                await client.start()
                # It has asked a bootstrap server so far; all else goes to where the brokers say they are.
                if not await _reaches_any(client):
                    raise kafka.NodeNotReadyError("none of the brokers is where they say")
        except (kafka.KafkaError, TimeoutError, OSError) as err:
            raise await why_not_reached(connection, err) from err
        yield client
    finally:
        await client.close()


async def _reaches_any(client: AIOKafkaAdminClient) -> bool:
    plain = client_of_admin(client)
    for each in plain.cluster.brokers():
        if await plain.ready(each.nodeId):
            return True
    return not plain.cluster.brokers()


async def why_not_reached(connection: KafkaConnection, err: BaseException) -> SettingsError | Unreachable:
    """What a broker's error says of reaching it, once it was asked why: it lets nobody in, or leads elsewhere."""
    if refused := await find_refusal(connection):
        return refused
    if isinstance(err, _SILENCE) and (dead := await find_dead(connection)):
        return misled(*dead)
    return unreachable(connection, err)


def misled(server: str, brokers: Sequence[Advertised]) -> Unreachable:
    """What is said where a broker sends its clients to addresses at which nobody is reached."""
    named = ", ".join(f"{each} ({each.fault})" for each in brokers if each.fault)
    return Unreachable(
        "TICKETGATE_KAFKA",
        f"the broker at {server} answers, and sends its clients to {named}, where nobody is reached",
        "set the broker's advertised.listeners to an address that this machine reaches, or name its other listener",
    )


def unreachable(connection: KafkaConnection, err: BaseException) -> Unreachable:
    """What a broker's error says of reaching it, in the same words whoever asked."""
    if not isinstance(err, _SILENCE):
        said = " ".join(str(err).split())
        what = f"the broker at {connection} does not answer as it should ({said})"
        return Unreachable("TICKETGATE_KAFKA", what, "see what ails it, and try again")
    return Unreachable(
        "TICKETGATE_KAFKA",
        f"no broker answers at {connection} by {connection.settings.kafka_security}",
        # A listener of another kind just cuts the connection.
        "start it, or set the address it listens on, and TICKETGATE_KAFKA_SECURITY as that listener is",
    )


async def broker_config(client: AIOKafkaAdminClient) -> dict[str, str]:
    """The configuration of one broker, such as tells it; empty from one that does not tell."""
    try:
        node = next(iter(client_of_admin(client).cluster.brokers())).nodeId
        (response,) = await client.describe_configs([ConfigResource(ConfigResourceType.BROKER, str(node))])
    except (kafka.KafkaError, StopIteration):
        return {}
    answered: Any = response
    return {entry[0]: entry[1] for each in answered.resources for entry in each[4] if entry[1] is not None}


async def describe_broker(connection: KafkaConnection) -> Broker:
    """Ask the broker what it is. Raises `Unreachable` and `SettingsError`."""
    async with admin_client(connection) as client:
        return await describe(client)


async def describe(client: AIOKafkaAdminClient) -> Broker:
    """As `describe_broker`, by a client that is connected. Raises aiokafka's errors."""
    cluster = await client.describe_cluster()
    told = told_versions(client)
    least_fetch = min((versions.get(_FETCH_API, (0, 0))[0] for versions in told), default=0)
    log_dirs = max((versions.get(_DESCRIBE_LOG_DIRS_API, (0, 0))[1] for versions in told), default=0)
    return Broker(
        cluster=str(cluster["cluster_id"] or ""),
        is_kafka_4=least_fetch >= _LEAST_FETCH_OF_KAFKA_4,
        may_tear_transactions=log_dirs >= _DESCRIBE_LOG_DIRS_OF_KAFKA_4_3,
    )
