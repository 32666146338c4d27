"""A Redis user that may do what the runbook lists, and no more, is enough; whatever is taken from it is named."""

from __future__ import annotations

import re
import secrets
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from redis.asyncio import Redis
from redis.exceptions import ResponseError
from ticketgate.agents.effects.rules import NO_ANSWER
from ticketgate.codecs.records.identity import Coordinate, Fingerprint, IdempotencyKey
from ticketgate.codecs.records.receipt import EffectState
from ticketgate.codecs.verdict import Stage, Status, Verdict
from ticketgate.store.attempts import AttemptHistory, WrittenAttempt, restore_attempts
from ticketgate.store.claims import Claim, Claims
from ticketgate.store.conditions import ConditionFailed, bind_identity, check_server, identity_of
from ticketgate.store.connect import ServerGuard, connect
from ticketgate.store.durability import Durability
from ticketgate.store.keys import Keys
from ticketgate.store.lane_state.marks import Position, lower_committed, raise_marks, read_marks
from ticketgate.store.lane_state.skips import Skips
from ticketgate.store.lane_state.underway import UnderWays, reading
from ticketgate.store.lane_state.voids import Voids
from ticketgate.store.ledger.entries import Entry, Settlement
from ticketgate.store.ledger.ledger import Ledger
from ticketgate.store.rebuild import Written, derived_keys, restore, standing_claim
from ticketgate.store.servers import Clocks, begin_rebuild, end_rebuild, lock, look, unlock
from ticketgate.store.tokens import LaneToken, take_token
from ticketgate.streams.lane.opening.claims_store import make_store
from ticketgate.streams.parts.valkey import Valkey

from ..support.effects import order
from ..support.standing import stand
from .test_attempts import CASE, attempt, upon

pytestmark = pytest.mark.redis

RUNBOOK = Path(__file__).resolve().parents[2] / "deploy" / "RUNBOOK.md"
DAY = timedelta(days=1)
# Sentinels' URLs apart, these serve settings that a server without replicas or with fsync cannot show.
REJECTED = Settlement(
    state=EffectState.REJECTED, verdict=Verdict(Status.REJECT, Stage.OUTCOME, ("refused",), "no")
)
SYNCED = Durability(replicas=0, syncs_itself=False, timeout=timedelta(seconds=5))


def listed(namespace: str) -> list[str]:
    """What the runbook gives the user `ticketgate`, in order."""
    (line,) = re.findall(r"^ACL SETUSER ticketgate (.*)$", RUNBOOK.read_text(), re.MULTILINE)
    return line.replace("NAMESPACE", namespace).replace("PASSWORD", "p").split()


def commands() -> list[str]:
    return [each for each in listed("x") if each.startswith("+")]


async def work(redis: Redis, keys: Keys) -> None:
    """All that workers and commands do with Redis."""
    await check_server(redis, fsync="always", replicas=0)
    await bind_identity(redis, keys, identity_of(cluster="c", group="g", topics=["tickets"]))
    await redis.hkeys(keys.identity)
    await stand(redis, keys)
    await make_store(redis, keys)
    found = await look(redis, keys, clocks=Clocks())
    await lock(redis, keys, found.id, "n")
    await unlock(redis, keys, "n")
    token = await take_token(redis, keys, "tickets", 0)
    await _claim(redis, keys, token)
    under_ways = UnderWays(redis, keys)
    await under_ways.begin(token, 6)
    await under_ways.note(token, reading(6))
    await under_ways.left("tickets", 0)
    await under_ways.forget(token, ["other"])
    skips = Skips(redis, keys)
    await skips.order(Coordinate("tickets", 0, 1))
    await skips.is_ordered("tickets", 0, range(2))
    await skips.done("tickets", 0)
    history = AttemptHistory(redis, keys, ttl=DAY, durability=SYNCED)
    revision = (await history.read([CASE]))[CASE].revision
    await history.record([upon(revision, attempt())], token=await take_token(redis, keys, "proposals", 0))
    for dry_run in (True, False):
        await restore_attempts(redis, keys, [WrittenAttempt(CASE, attempt(2), -1)], ttl=DAY, dry_run=dry_run)
    await _carry_out(redis, keys)
    closed = await begin_rebuild(redis, keys, "claims", "n")
    await restore(redis, keys, [Written(_a_claim("r", 9), -1)], ttl=DAY)
    await raise_marks(redis, keys, Position("tickets", 0, claimed=9, committed=9))
    await end_rebuild(redis, keys, closed, "claims")
    await lower_committed(redis, keys, "tickets", 0, 1)
    await read_marks(redis, keys, "tickets", 0)
    await standing_claim(redis, keys, IdempotencyKey("k"))
    await derived_keys(redis, keys, IdempotencyKey("k"))


def _a_claim(key: str, offset: int, says: str = "a") -> Claim:
    return Claim(IdempotencyKey(key), Coordinate("tickets", 0, offset), Fingerprint(says))


async def _claim(redis: Redis, keys: Keys, token: LaneToken) -> None:
    claims = Claims(redis, keys, ttl=DAY, durability=SYNCED)
    await claims.claim([_a_claim("k", 0), _a_claim("v", 1)], token=token, claimed=2)
    await claims.claim([_a_claim("k", 2), _a_claim("k", 3, "b")], token=token, claimed=4)
    await claims.mark_committed(token, 4)
    voids = Voids(redis, keys, SYNCED)
    await voids.journal(token, range(1, 2))
    await voids.journal(token, range(4, 4))
    await claims.claim([_a_claim("v", 5)], token=token, claimed=6)


async def _carry_out(redis: Redis, keys: Keys) -> None:
    ledger = Ledger(redis, keys, ttl=DAY, durability=SYNCED)
    token = await take_token(redis, keys, "dispatch", 0)
    # A key of its own each time: an effect is sent once.
    (entry,) = await ledger.prepare([order(secrets.token_hex(4))], token=token, claimed=1)
    assert isinstance(entry, Entry)
    sent = await ledger.begin_send(entry, verdict=NO_ANSWER, token=token, read_back_in_s=0)
    assert isinstance(sent, Entry)
    await ledger.take_due(5)
    await ledger.held(5)
    await ledger.count_open()
    unknown = Settlement(state=EffectState.UNKNOWN, verdict=NO_ANSWER)
    told = await ledger.settle(sent, unknown, token=None, read_back_in_s=60)
    assert isinstance(told, Entry)
    await ledger.tell(told)
    absent = await ledger.settle(
        told, Settlement(state=EffectState.ABSENT, verdict=NO_ANSWER), token=token, read_back_in_s=60
    )
    assert isinstance(absent, Entry)
    (other,) = await ledger.prepare([order(secrets.token_hex(4))], token=token, claimed=1)
    assert isinstance(other, Entry)
    await ledger.settle(other, REJECTED, token=token, read_back_in_s=60)


@pytest.fixture
async def limited(server: Valkey, redis: Redis, keys: Keys) -> AsyncIterator[Redis]:
    """The runbook's user, on a connection that asks for the server's identity first."""
    await redis.execute_command("ACL", "SETUSER", "ticketgate", "reset", *listed(keys.namespace))
    found = await look(redis, keys, clocks=Clocks())
    guard = ServerGuard(found.id)
    client = connect(
        server.url.replace("redis://", "redis://ticketgate:p@"), timeout=timedelta(seconds=5), guard=guard
    )
    yield client
    await client.aclose()
    await redis.acl_deluser("ticketgate")


async def test_what_the_runbook_lists_is_enough(limited: Redis, keys: Keys) -> None:
    await work(limited, keys)


@pytest.mark.parametrize("command", commands())
async def test_whatever_is_missing_is_named(redis: Redis, limited: Redis, keys: Keys, command: str) -> None:
    await redis.execute_command("ACL", "SETUSER", "ticketgate", command.replace("+", "-"))
    name = command[1:].replace("config|get", "CONFIG GET")

    with pytest.raises((ResponseError, ConditionFailed), match=f"(?i){re.escape(name)}"):
        await work(limited, keys)


async def test_another_namespace_is_out_of_its_reach(limited: Redis) -> None:
    with pytest.raises(ResponseError, match=r"(?i)no permissions to access"):
        await take_token(limited, Keys("other"), "tickets", 0)
