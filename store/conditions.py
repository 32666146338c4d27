"""What Redis must be for claims to hold: version, persistence, eviction, and whose namespace it is.

Promise: `check_server` and `bind_identity` return only where claims can be relied upon; otherwise they raise
`ConditionFailed` with the setting and the remedy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from redis.asyncio import Redis
from redis.exceptions import ReadOnlyError, ResponseError
from ticketgate.store.keys import Keys

# SET with NX and GET together came with 7.0, WAITAOF with 7.2. Valkey counts on from 7.2 and tells Redis' number.
LEAST_VERSION = (7, 0)
LEAST_VERSION_WITH_WAITAOF = (7, 2)
# Below this share of maxmemory left, Redis is about to refuse claims; better to say so while it still answers.
LEAST_HEADROOM = 0.05


CLUSTER = "Redis runs in cluster mode, which is not supported"
CLUSTER_REMEDY = "use one primary with replicas, and Sentinel to fail over"


class ConditionFailed(Exception):
    """Redis is not what the claims need. Nothing is emitted until a person mends it."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"{what}; {remedy}")
        self.what, self.remedy = what, remedy


async def check_server(redis: Redis, *, fsync: Literal["always", "everysec"], replicas: int) -> None:
    """Check version, persistence, eviction policy and memory. Raises `ConditionFailed`, or redis-py's errors."""
    info: Mapping[str, object] = await redis.info()
    version = tuple(int(part) for part in str(info["redis_version"]).split(".")[:2])
    least = LEAST_VERSION_WITH_WAITAOF if replicas or fsync == "everysec" else LEAST_VERSION
    if version < least:
        raise ConditionFailed(
            f"Redis {info['redis_version']} is older than {least[0]}.{least[1]}",
            "use a newer Redis, or Valkey",
        )
    if not int(str(info.get("aof_enabled", 0))):
        raise ConditionFailed(
            "Redis keeps no append-only file, so a restart would forget claims",
            "start it with `--appendonly yes`",
        )
    if int(str(info.get("cluster_enabled", 0))):
        raise ConditionFailed(CLUSTER, CLUSTER_REMEDY)
    if info.get("role") != "master":
        # It heals by itself when a failover ends, and so is not refused.
        raise ReadOnlyError(
            "this Redis is a replica; TICKETGATE_REDIS must lead to the primary, or name Sentinels"
        )
    if (online := _replicas_online(info)) < replicas:
        raise ConditionFailed(
            f"Redis has {online} replicas connected, and {replicas} must have each claim on disk",
            "bring them back, or lower TICKETGATE_REDIS_REPLICAS",
        )
    found = await _fsync(redis)
    if found not in {"always", fsync}:
        raise ConditionFailed(
            f"Redis has appendfsync {found}, and claims could be lost in a crash",
            "set appendfsync always"
            + (
                ", or TICKETGATE_REDIS_FSYNC=everysec to accept losing a second"
                if found == "everysec"
                else ""
            ),
        )
    policy = str(info.get("maxmemory_policy", "noeviction"))
    if policy != "noeviction":
        raise ConditionFailed(
            f"Redis has maxmemory-policy {policy}, which drops claims when memory runs short",
            "set it to noeviction",
        )
    most, used = int(str(info.get("maxmemory", 0))), int(str(info.get("used_memory", 0)))
    if most and used > most * (1 - LEAST_HEADROOM):
        raise ConditionFailed(
            f"Redis uses {used} of {most} bytes", "raise maxmemory, or shorten TICKETGATE_CLAIM_TTL"
        )


def _replicas_online(info: Mapping[str, object]) -> int:
    told = [each for name, each in info.items() if name.startswith("slave") and name[5:].isdigit()]
    return sum(isinstance(each, Mapping) and each.get("state") == "online" for each in told)


async def bind_identity(redis: Redis, keys: Keys, identity: Mapping[str, str]) -> None:
    """Bind the namespace to a cluster, group and topics at its first use, and refuse any others from then on.

    The same namespace with another group, or on another cluster, would read every ticket anew and emit it again.
    """
    async with redis.pipeline(transaction=True) as pipeline:
        for name, value in identity.items():
            pipeline.hsetnx(keys.identity, name, value)
        pipeline.hgetall(keys.identity)
        found = {name.decode(): value.decode() for name, value in (await pipeline.execute())[-1].items()}
    if fault := identity_fault(keys, found, identity):
        raise fault


def identity_fault(
    keys: Keys, found: Mapping[str, str], identity: Mapping[str, str]
) -> ConditionFailed | None:
    """Why the namespace is not this deployment's; what it is not bound to yet, it may be."""
    different = [name for name, value in identity.items() if found.get(name, value) != value]
    if not different:
        return None
    said = ", ".join(f"{name} {found[name]!r}, not {identity[name]!r}" for name in different)
    return ConditionFailed(
        f"namespace {keys.namespace!r} belongs to {said}",
        "set it back, or set TICKETGATE_NAMESPACE and TICKETGATE_GROUP to names never used (every ticket is then"
        " decided anew)",
    )


async def _fsync(redis: Redis) -> str:
    try:
        found = await redis.config_get("appendfsync")
    except ResponseError as err:
        raise ConditionFailed(
            f"Redis does not tell its appendfsync ({err})", "allow the worker's Redis user CONFIG GET"
        ) from err
    return str(found["appendfsync"])


def identity_of(*, cluster: str, group: str, topics: Sequence[str]) -> dict[str, str]:
    """What a namespace is bound to."""
    return {"cluster": cluster, "group": group, "topics": ",".join(sorted(topics))}
