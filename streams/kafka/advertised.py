"""Where the brokers tell their clients to come, and whether anybody is reached there.

A client asks a bootstrap server for the brokers' addresses (advertised.listeners) and uses those alone from then on, so
a broker that answers may lead nowhere. Promise: addresses are told as the broker gave them; nothing is sent to them.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from aiokafka import errors as kafka
from aiokafka.conn import AIOKafkaConnection, collect_hosts, create_conn
from aiokafka.protocol.metadata import MetadataRequest
from ticketgate.streams.kafka.connection import KafkaConnection

# What is there answers within milliseconds; a name that no resolver knows within a second or two.
PROBE_TIMEOUT_S = 3.0


@dataclass(frozen=True, slots=True)
class Advertised:
    """One broker's address. fault: why nobody is reached there, None if somebody is."""

    node: int
    host: str
    port: int
    fault: str | None

    def __str__(self) -> str:
        """`host:port`."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Asked:
    """What one bootstrap server said. fault: why it said nothing."""

    server: str
    brokers: tuple[Advertised, ...]
    fault: str | None


async def ask_each(connection: KafkaConnection) -> tuple[Asked, ...]:
    """What each bootstrap server says of where the brokers are. Raises `SettingsError`."""
    hosts = [(host, port) for host, port, _ in collect_hosts(str(connection))]
    access = connection.access()
    return tuple(await asyncio.gather(*(_ask(host, port, access) for host, port in sorted(hosts))))


async def find_dead(connection: KafkaConnection) -> tuple[str, Sequence[Advertised]] | None:
    """A bootstrap server that answers, and the brokers that it names, where none of those is reached; else None."""
    for each in await ask_each(connection):
        if each.brokers:
            return (each.server, each.brokers) if all(broker.fault for broker in each.brokers) else None
    return None


async def brokers_known_at(
    host: str, port: int, access: dict[str, Any], *, timeout_s: float
) -> list[tuple[int, str, int]]:
    """Node, host and port of each broker that the one at host:port names. Raises aiokafka's errors and OSError."""
    conn: AIOKafkaConnection = await create_conn(
        host, port, request_timeout_ms=round(timeout_s * 1000), **access
    )
    try:
        metadata: Any = await conn.send(MetadataRequest([]))
        return [(broker[0], broker[1], broker[2]) for broker in metadata.brokers]
    finally:
        conn.close()


async def _ask(host: str, port: int, access: dict[str, Any]) -> Asked:
    server = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        async with asyncio.timeout(PROBE_TIMEOUT_S):
            known = await brokers_known_at(host, port, access, timeout_s=PROBE_TIMEOUT_S)
    except (kafka.KafkaError, OSError, TimeoutError, ValueError, AssertionError) as err:
        return Asked(server, (), _said(err))
    return Asked(server, tuple(await asyncio.gather(*(_probe(*each) for each in sorted(known)))), None)


async def _probe(node: int, host: str, port: int) -> Advertised:
    try:
        async with asyncio.timeout(PROBE_TIMEOUT_S):
            _, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError, ValueError, OverflowError) as err:
        return Advertised(node, host, port, _said(err))
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return Advertised(node, host, port, None)


def _said(err: BaseException) -> str:
    if isinstance(err, TimeoutError):
        return f"no answer within {PROBE_TIMEOUT_S:g} s"
    if isinstance(err, OSError) and err.strerror:
        # asyncio repeats the address in its own words.
        return "connection refused" if isinstance(err, ConnectionRefusedError) else err.strerror
    return " ".join(str(err).split()) or type(err).__name__
