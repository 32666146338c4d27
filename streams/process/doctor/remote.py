"""What has to be asked over the network: broker and topics, Redis and what it knows, clocks."""

from __future__ import annotations

import time
from collections.abc import Callable

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError
from redis.asyncio import Redis
from redis.exceptions import ReadOnlyError
from ticketgate.agents.plural import counted
from ticketgate.store.clock import redis_now_ms
from ticketgate.store.conditions import ConditionFailed, check_server, identity_fault
from ticketgate.store.keys import Keys
from ticketgate.store.server_scripts import MOST_JUMP_MS
from ticketgate.store.servers import Kind, Look, Mistimed, ServerId
from ticketgate.streams.config.role_terms import role_terms
from ticketgate.streams.config.setting_kinds import Role, SettingsError
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.config.usage import CommandError
from ticketgate.streams.kafka.advertised import Asked, ask_each
from ticketgate.streams.kafka.broker import (
    Broker,
    admin_client,
    describe,
    misled,
    unreachable,
)
from ticketgate.streams.kafka.broker_limits import require_within_limits
from ticketgate.streams.kafka.connection import KafkaConnection, connection_of
from ticketgate.streams.kafka.refusals import find_refusal
from ticketgate.streams.kafka.topics import partition_count
from ticketgate.streams.kafka.verification import check_verification
from ticketgate.streams.lane.opening.conditions import namespace_identity
from ticketgate.streams.lane.opening.handover import refuse_flaws, refuse_rebuilding
from ticketgate.streams.lane.opening.opening import LaneRefusal
from ticketgate.streams.lane.opening.topic_faults import TORN, broker_fault, topic_faults, vouching_faults
from ticketgate.streams.operations.command_redis import open_redis
from ticketgate.streams.operations.policies import find_topic
from ticketgate.streams.process.doctor.finding import MADE_FOR_PEOPLE, Finding, Status, fault_of
from ticketgate.streams.process.preflight import needs_policy, require_redis
from ticketgate.streams.process.supervising.cores import processes_of

# Lifetimes count by Redis' clock, and people read logs by this machine's: more than this is worth a word.
NOTABLE_MS = 5_000


async def look_at_broker(settings: Settings) -> tuple[list[Finding], Broker | None]:
    """Each bootstrap server, where its brokers say they are, and what they are; the topics of each role."""
    connection = connection_of(settings)
    found: list[Finding] = []
    try:
        found += await _addresses(connection)
        if any(each.status == "fault" for each in found):
            return found, None
        await require_within_limits(connection, settings)
        async with admin_client(connection) as client:
            try:
                broker = await describe(client)
                found += await _kind(client, broker, settings)
                for role in settings.roles:
                    found += await _topics(client, settings, role)
                if needs_policy(settings):
                    found += await _policies(settings)
            except KafkaError as err:
                raise unreachable(connection, err) from err
    except MADE_FOR_PEOPLE as err:
        return [*found, fault_of("broker", err)], None
    return found, broker


async def _addresses(connection: KafkaConnection) -> list[Finding]:
    asked = await ask_each(connection)
    answering = [each for each in asked if each.fault is None]
    if not answering and (refused := await find_refusal(connection)):
        return [fault_of("broker", refused)]
    found = [_silent(connection, each, is_fault=not answering) for each in asked if each.fault is not None]
    for each in answering[:1]:
        dead = [broker for broker in each.brokers if broker.fault is not None]
        if dead:
            found.append(fault_of("broker", misled(each.server, dead)))
        else:
            named = ", ".join(str(broker) for broker in each.brokers)
            found.append(
                Finding("broker", "ok", f"{each.server} answers; it advertises {named}, which is reached")
            )
    return found


def _silent(connection: KafkaConnection, asked: Asked, *, is_fault: bool) -> Finding:
    security = connection.settings.kafka_security
    return Finding(
        "broker",
        "fault" if is_fault else "warning",
        f"TICKETGATE_KAFKA: no broker answers at {asked.server} by {security} ({asked.fault})",
        "start it, or set the address it listens on, and TICKETGATE_KAFKA_SECURITY as that listener is",
    )


async def _kind(client: AIOKafkaAdminClient, broker: Broker, settings: Settings) -> list[Finding]:
    if fault := broker_fault(broker, settings):
        return [fault_of("broker", fault)]
    found: list[Finding] = []
    if settings.guarantee == "exactly_once":
        try:
            await check_verification(client)
        except ConditionFailed as err:
            found.append(fault_of("broker", err))
        if broker.may_tear_transactions:
            what, _, remedy = TORN.partition("; ")
            found.append(Finding("broker", "warning", what, remedy))
    if not any(each.status == "fault" for each in found):
        found.append(Finding("broker", "ok", f"it can keep {settings.guarantee} (cluster {broker.cluster})"))
    return found


async def _topics(client: AIOKafkaAdminClient, settings: Settings, role: Role) -> list[Finding]:
    terms = role_terms(role, settings)
    faults = await topic_faults(client, settings, terms)
    found = [fault_of("topics", each) for each in faults]
    idle: list[Finding] = []
    if not any(each.what.startswith("no topic") for each in faults):
        idle = idle_processes(terms.source, await partition_count(client, terms.source), settings)
        how: Status = "fault" if settings.guarantee == "exactly_once" else "warning"
        found += [
            Finding("topics", how, each.what, each.remedy)
            for each in await vouching_faults(client, settings, terms)
        ]
    if found:
        return [*found, *idle]
    return [Finding("topics", "ok", f"{role}: {terms.source} to {', '.join(terms.outputs)}"), *idle]


def idle_processes(source: str, partitions: int, settings: Settings) -> list[Finding]:
    """A warning if one command would start more workers than an input can be shared among."""
    processes = processes_of(settings)
    if processes <= max(1, partitions):
        return []
    what = (
        f"TICKETGATE_PROCESSES={settings.processes}: of {counted(processes, 'worker')} {processes - partitions} would"
        f" be given nothing of {source}, which has {counted(partitions, 'partition')}"
    )
    remedy = f"set it to {partitions} or less, or give the topic more partitions"
    return [Finding("topics", "warning", what, remedy)]


async def _policies(settings: Settings) -> list[Finding]:
    """A worker goes on without the topic, so it is no fault."""
    try:
        await find_topic(settings)
    except CommandError as err:
        what, _, remedy = str(err).partition("; ")
        return [Finding("topics", "warning", what, remedy)]
    return [Finding("topics", "ok", f"{settings.topic_policies} keeps every policy that was in force")]


async def look_at_redis(
    settings: Settings,
    broker: Broker | None,
    *,
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
) -> list[Finding]:
    """The server, what stands in the namespace, and its clock. broker: None where it was not reached."""
    try:
        await require_redis(settings)
        async with open_redis(settings) as redis:
            await _require_server(redis, settings)
            told = await _namespace(redis, settings, broker)
            return [*told, *_clock(await redis_now_ms(redis) - now_ms())]
    except MADE_FOR_PEOPLE as err:
        return [fault_of("redis", err)]


async def _require_server(redis: Redis, settings: Settings) -> None:
    try:
        await check_server(redis, fsync=settings.redis_fsync, replicas=settings.redis_replicas)
    except ReadOnlyError as err:
        what, remedy = str(err).split("; ", 1)
        raise SettingsError("TICKETGATE_REDIS", what, remedy) from err


async def _namespace(redis: Redis, settings: Settings, broker: Broker | None) -> list[Finding]:
    keys = Keys(settings.namespace)
    bound, state = await _hash(redis, keys.identity), await _hash(redis, keys.server)
    found: list[Finding] = []
    flaws: dict[Kind, str] = {}
    for kind in ("claims", "ledger"):
        if state.get(kind):
            flaws[kind] = state[kind]
    looked = Look(ServerId(""), state.get("id"), 0, flaws)
    for role in settings.roles:
        cluster = bound.get("cluster", "") if broker is None else broker.cluster
        fault = identity_fault(keys, bound, namespace_identity(settings, role, cluster=cluster))
        if fault is not None:
            return [fault_of("redis", fault)]
        try:
            refuse_rebuilding(looked)
            refuse_flaws(looked, "ledger" if role == "effects" else "claims")
        except LaneRefusal as err:
            return [Finding("redis", "fault", str(err), err.remedy)]
    known = "is in use" if bound else "is new"
    found.append(Finding("redis", "ok", f"it keeps what it is told; namespace {settings.namespace} {known}"))
    return found


async def _hash(redis: Redis, key: str) -> dict[str, str]:
    found: dict[bytes, bytes] = await redis.hgetall(key)  # type: ignore[assignment]  # nothing is decoded here
    return {name.decode(): value.decode() for name, value in found.items()}


def _clock(ahead_ms: int) -> list[Finding]:
    if abs(ahead_ms) > MOST_JUMP_MS:
        return [fault_of("clock", Mistimed(ahead_ms))]
    if abs(ahead_ms) > NOTABLE_MS:
        where = "ahead of" if ahead_ms > 0 else "behind"
        what = f"Redis' clock is {abs(ahead_ms) / 1000:,.0f} s {where} this machine's"
        return [Finding("clock", "warning", what, "set right whichever is wrong (NTP)")]
    return [Finding("clock", "ok", "Redis' clock and this machine's agree")]
