"""Who settled a ticket: a claim under a key derived from the ticket's own, for as long as the ticket's claim stands.

Promise: a ticket's settlement key maps to at most one settlement, and only while the ticket's own claim still names the
record that was reviewed. Both claims live equally long from then on, so that the ticket is not decided anew beside its
settlement. What a settlement claimed that then is not taken, its own lane lets go before it commits that: a journalled
void would not do, for a lane that opens anew takes back what was not committed, while another may already be about to
take the claim over (tests/streams/lane/model shows the two effects).
Relies on: as claims.py. A settlement that is not taken the first time may be the second time, when its lane's mark is
past it already, so that the mark cannot show the claim's loss: each write here waits for the disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import cast

from redis.asyncio import Redis
from ticketgate.codecs.records.identity import Coordinate
from ticketgate.store.claims import MOST_TAKE_OVERS, Claim, ClaimsContested
from ticketgate.store.durability import Durability
from ticketgate.store.keys import Keys
from ticketgate.store.lane_state.marks import raise_claimed_as
from ticketgate.store.lane_state.voids import Voids
from ticketgate.store.lane_state.witnesses import Witness, write_as
from ticketgate.store.script import Script
from ticketgate.store.server_scripts import SOUND
from ticketgate.store.tokens import GUARD, LaneToken

_ANEW, _OVER = "anew", "over"

# ticket: the ticket's claim, and ticket_value what it must be. claim, value: the settlement's. lifetime_ms: of both.
# Returns what stands for the settlement afterwards; where the ticket's claim is another or gone, that, and nothing of
# this settlement stands.
_SETTLE = Script(
    "settle a ticket",
    f"""
local owner = redis.call('GET', claim)
if owner and owner ~= value then return owner end
local stands = redis.call('GET', ticket)
if stands ~= ticket_value then
  if owner then redis.call('DEL', claim) end
  return stands and '{_ANEW}' or '{_OVER}'
end
if redis.call('PTTL', ticket) < tonumber(lifetime_ms) then redis.call('PEXPIRE', ticket, lifetime_ms) end
redis.call('SET', claim, value, 'PX', lifetime_ms)
return value
""",
    after=[GUARD, SOUND],
    keys=["ticket", "claim"],
    arguments=["ticket_value", "value", "lifetime_ms"],
)

# value: what is let go if it stands.
_LET_GO = Script(
    "let a settlement go",
    """
if redis.call('GET', claim) == value then redis.call('DEL', claim) end
return 0
""",
    after=[GUARD, SOUND],
    keys=["claim"],
    arguments=["value"],
)


@dataclass(frozen=True, slots=True)
class Settling:
    """A settlement that wants to take effect: its own claim, and the claim that the ticket must have."""

    claim: Claim
    ticket: Claim


@dataclass(frozen=True, slots=True)
class Taken:
    """The settlement is the ticket's; both claims stand for a whole lifetime."""


@dataclass(frozen=True, slots=True)
class SettledBefore:
    """Another settlement is the ticket's. is_same: it is this one, sent twice."""

    owner: Coordinate
    is_same: bool


@dataclass(frozen=True, slots=True)
class NotStanding:
    """The ticket's claim is over, or, `is_anew`, is another record's: it was decided anew."""

    is_anew: bool


SettlingResult = Taken | SettledBefore | NotStanding


class SettlementClaims:
    """The settlements' claims of one namespace; `ttl` and `durability` are those of all claims."""

    def __init__(self, redis: Redis, keys: Keys, *, ttl: timedelta, durability: Durability) -> None:
        self._redis, self._keys = redis, keys
        self._voids = Voids(redis, keys)
        self._ttl_ms = round(ttl.total_seconds() * 1000)
        self._durability = durability

    async def claim(
        self,
        settlings: Sequence[Settling],
        *,
        let_go: Sequence[Claim],
        token: LaneToken,
        claimed: int,
        witness: Witness | None = None,
    ) -> tuple[SettlingResult, ...]:
        """Claim a batch's settlements, in order, and let go of what its others claimed when they were taken before;
        then raise the lane's mark to `claimed`, one past the batch's last offset.

        Raises as `Claims.claim` does: nothing may be emitted then.
        """
        await self._let_go([(each, each.encode()) for each in let_go], token)
        results = await self._claim(settlings, token)
        for _ in range(MOST_TAKE_OVERS):
            void = [
                (each.claim, f"{result.owner}:{result.fingerprint}")
                for each, result in zip(settlings, results, strict=True)
                if isinstance(result, _Found) and await self._voids.is_void(result.owner)
            ]
            if not void:
                break
            await self._let_go(void, token)
            results = await self._claim(settlings, token)
        else:
            raise ClaimsContested
        async with self._redis.pipeline(transaction=False) as pipeline:
            if witness is not None:
                write_as(pipeline, token, self._keys, {"claimed": str(witness)})
            raise_claimed_as(pipeline, token, self._keys, claimed)
            await self._durability.execute(pipeline, self._keys, is_rare=True)
        return tuple(
            SettledBefore(result.owner, result.fingerprint == each.claim.fingerprint)
            if isinstance(result, _Found)
            else result
            for each, result in zip(settlings, results, strict=True)
        )

    async def _claim(
        self, settlings: Sequence[Settling], token: LaneToken
    ) -> list[Taken | NotStanding | _Found]:
        if not settlings:
            return []
        async with self._redis.pipeline(transaction=False) as pipeline:
            for each in settlings:
                _SETTLE.queue(
                    pipeline,
                    token=token.name,
                    own_token=token.value,
                    ticket=self._keys.claim(each.ticket.key),
                    ticket_value=each.ticket.encode(),
                    claim=self._keys.claim(each.claim.key),
                    value=each.claim.encode(),
                    lifetime_ms=self._ttl_ms,
                )
            found = cast("list[bytes]", await self._durability.execute(pipeline, self._keys, is_rare=True))
        return [_read(each.claim, value.decode()) for each, value in zip(settlings, found, strict=True)]

    async def _let_go(self, claims: Sequence[tuple[Claim, str]], token: LaneToken) -> None:
        if not claims:
            return
        async with self._redis.pipeline(transaction=False) as pipeline:
            for claim, value in claims:
                name = self._keys.claim(claim.key)
                _LET_GO.queue(pipeline, token=token.name, own_token=token.value, claim=name, value=value)
            await self._durability.execute(pipeline, self._keys, is_rare=True)


@dataclass(frozen=True, slots=True)
class _Found:
    owner: Coordinate
    fingerprint: str


def _read(claim: Claim, value: str) -> Taken | NotStanding | _Found:
    if value == claim.encode():
        return Taken()
    if value in (_ANEW, _OVER):
        return NotStanding(is_anew=value == _ANEW)
    coordinate, _, fingerprint = value.rpartition(":")
    return _Found(Coordinate.parse(coordinate), fingerprint)
