"""Why a worker is not in its group: asked on a connection of our own.

aiokafka tells some reasons to whoever polls, and others to its log alone, while it tries again for ever. Whatever the
reason, /readyz names it with what to do about it, and the worker comes back by itself once it has passed.
"""

from __future__ import annotations

import asyncio
from typing import Any

from aiokafka import errors as kafka
from aiokafka.admin import AIOKafkaAdminClient
from ticketgate.streams.config.setting_kinds import SettingsError
from ticketgate.streams.kafka.broker import Unreachable, admin_client, unreachable
from ticketgate.streams.kafka.connection import KafkaConnection
from ticketgate.streams.kafka.faults import Action, Handling, LaneFault
from ticketgate.streams.lane.recovery import handling

# A coordinator that is there answers in milliseconds.
ASK_TIMEOUT_S = 5.0
_NOBODY_IN_CHARGE = (
    kafka.GroupCoordinatorNotAvailableError,
    kafka.GroupLoadInProgressError,
    kafka.NotCoordinatorForGroupError,
)
# Kafka's word for a group whose members are asked to join again.
_REBALANCING = "PreparingRebalance"


class Outside(LaneFault):
    """The group does not know this worker, and nobody says why."""

    def __init__(self, group: str, silent_s: float) -> None:
        super().__init__(
            f"group {group} has not known this worker for {silent_s:.0f} s",
            Handling(
                Action.REOPEN, "not_a_member", "it joins again by itself; the brokers' logs may tell more"
            ),
        )


class GroupWaits(LaneFault):
    """The group waits for other members, and with it this worker."""

    def __init__(self, group: str, members: int) -> None:
        super().__init__(
            f"group {group} waits for its {members} members to join again",
            Handling(
                Action.REOPEN,
                "rebalancing",
                "it goes on without those that stay away longer than their rebalance time-out, 30 s for a worker",
            ),
        )


class NoCoordinator(LaneFault):
    """The brokers answer, and none of them is in charge of the group."""

    def __init__(self, group: str, said: str) -> None:
        super().__init__(
            f"no broker coordinates group {group} ({said})",
            Handling(
                Action.REOPEN,
                "coordinator_moved",
                "see that as many brokers are up as __consumer_offsets has replicas"
                " (offsets.topic.replication.factor)",
            ),
        )


async def find_reason(connection: KafkaConnection, group: str) -> Exception | None:
    """What keeps a worker out of `group`, as the brokers tell it now; None if they know of nothing."""
    try:
        async with admin_client(connection) as client, asyncio.timeout(ASK_TIMEOUT_S):
            return await _ask(client, group)
    except (Unreachable, SettingsError, kafka.GroupAuthorizationFailedError) as err:
        return err
    except _NOBODY_IN_CHARGE as err:
        return NoCoordinator(group, type(err).__name__)
    except (kafka.KafkaError, OSError) as err:
        return unreachable(connection, err)


async def _ask(client: AIOKafkaAdminClient, group: str) -> Exception | None:
    coordinator = await client.find_coordinator(group)
    described: Any
    (described,) = await client.describe_consumer_groups([group], coordinator)
    for code, _, state, _, _, members, *_ in described.groups:
        if code:
            raise kafka.for_code(code)(group)
        if state == _REBALANCING:
            return GroupWaits(group, len(members))
    return None


def told(err: Exception, group: str) -> str:
    """An error that keeps a worker out, for /readyz and the log: cause, what, remedy."""
    how = handling(err)
    what, remedy = str(err) or repr(err), how.remedy
    if type(err).__module__ == kafka.__name__:
        # aiokafka's own words: they name neither the group nor what to do.
        what = what if group in what else f"group {group}: {what}"
        remedy = remedy or "see the brokers' logs; TICKETGATE_GROUP names the group"
    return f"{how.cause}: {what}" + (f"; {remedy}" if remedy else "")
