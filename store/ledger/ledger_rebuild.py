"""Restore effects from their receipts, into a Redis that lost some or all of the ledger.

Promise: an entry that stands is never changed. What was prepared may have been sent, so it comes back as `unknown`: it
is read back, and never sent on the ground that nobody remembers sending it. Ages begin anew, by Redis' clock. What is
settled lives for what is left of its lifetime. Of two effects that one confirmation allowed, as may be where Redis
forgot between them, neither is sent again; and which was surely not sent yet, has to be confirmed anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, cast

from redis.asyncio import Redis
from ticketgate.codecs.records.receipt import EffectReceipt, EffectState
from ticketgate.codecs.values.strict import JsonValue
from ticketgate.codecs.verdict import Stage, Status, Verdict
from ticketgate.store.keys import Keys
from ticketgate.store.ledger.entries import Command, Order, Settlement, is_open, is_undone
from ticketgate.store.ledger.entry_fields import write_known, write_order
from ticketgate.store.ledger.scripts import NOW
from ticketgate.store.script import Script

# A lost ledger went some steps further than its receipts, and one of those steps may still be on its way to them, also
# from before an earlier rebuild. It must not count as newer than what is done from here on: the steps of what is open
# are counted on from the time in ms, and by that many where the clock stands behind the receipts.
STEPS_LOST_AT_MOST: Final = 8

NOBODY_KNOWS: Final = Verdict(
    Status.UNKNOWN,
    Stage.OUTCOME,
    ("timeout_and_no_readback",),
    "held until reading back settles it; nothing is sent again",
)

# due: what to look at again. open: what is open. used: the confirmation that it used up, where `is_used`. effect_key:
# the effect's name in these. prefix: what an effect's name begins with. receipt_ms: when its last receipt was written,
# from which its lifetime counts. fields: their names and values by turns. Returns 0 where an entry stands, 1 where it
# was restored, 2 where its time is over.
_RESTORE = Script(
    "restore an effect",
    """
if redis.call('EXISTS', effect) == 1 then return 0 end
-- A receipt from a clock that ran ahead must not outlive an entry.
local left = math.min(tonumber(lifetime_ms), tonumber(lifetime_ms) - (now - tonumber(receipt_ms)))
if is_open == '0' and left <= 0 then return 2 end
if is_dry_run == '1' then return 1 end
redis.call('HSET', effect, unpack(fields))
redis.call('HSET', effect, 'at', receipt_ms)
if is_open == '1' then
  local sequence = tonumber(redis.call('HGET', effect, 'sequence'))
  redis.call('HSET', effect, 'sent', now, 'sequence', string.format('%.0f', math.max(sequence, now)))
  redis.call('ZADD', due, now, effect_key)
  redis.call('ZADD', open, 'NX', math.min(now, tonumber(receipt_ms)), effect_key)
else
  redis.call('PEXPIRE', effect, string.format('%.0f', left))
end
if is_used == '0' then return 1 end
local holder = redis.call('GET', used)
local other = holder and prefix .. holder
local of = other and redis.call('HMGET', other, 'state', 'sends')
if of and of[1] == 'prepared' and of[2] == '0' then
  redis.call('HDEL', other, 'confirmation')
  redis.call('HSET', other, 'spent', effect_key)
  holder = false
end
if not holder then
  redis.call('SET', used, effect_key, 'PX', lifetime_ms)
elseif holder ~= effect_key then
  redis.call('HSET', effect, 'restored', 1)
  if of[1] then redis.call('HSET', other, 'restored', 1) end
end
return 1
""",
    after=[NOW],
    keys=["effect", "due", "open", "used"],
    arguments=["effect_key", "prefix", "is_open", "is_used", "lifetime_ms", "receipt_ms", "is_dry_run"],
    more_arguments="fields",
)


@dataclass(frozen=True, slots=True)
class Remembered:
    """The last receipt of an effect, when it was written (ms since 1970), and what its dispatched record says of it.

    is_whole: the record was there, so `proposal` is what its gates judge again, or None for a policy's effect.
    """

    receipt: EffectReceipt
    at_ms: int
    proposal: Mapping[str, JsonValue] | None = None
    is_whole: bool = False


@dataclass(frozen=True, slots=True)
class RestoredEffects:
    """What became of some effects: set anew, of these open, there already, over by age."""

    restored: int = 0
    open: int = 0
    present: int = 0
    expired: int = 0

    def __add__(self, other: RestoredEffects) -> RestoredEffects:
        return RestoredEffects(
            self.restored + other.restored,
            self.open + other.open,
            self.present + other.present,
            self.expired + other.expired,
        )


def is_still_open(receipt: EffectReceipt) -> bool:
    """Whether an effect with this last receipt comes back as open."""
    return receipt.effect_state is EffectState.PREPARED or is_open(receipt.effect_state, receipt.settled_by)


async def restore(
    redis: Redis, keys: Keys, remembered: Sequence[Remembered], *, ttl: timedelta, dry_run: bool = False
) -> RestoredEffects:
    """Restore a batch in one round trip; `dry_run` changes nothing and says what would become of each."""
    if not remembered:
        return RestoredEffects()
    ttl_ms = round(ttl.total_seconds() * 1000)
    async with redis.pipeline(transaction=False) as pipeline:
        for each in remembered:
            key, used = each.receipt.idempotency_key, _used(each.receipt)
            _RESTORE.queue(
                pipeline,
                effect=keys.effect(key),
                due=keys.effects_open,
                open=keys.effects_since,
                used=keys.confirmation(used or ""),
                is_used=int(used is not None),
                effect_key=key,
                prefix=keys.effect(""),
                is_open=int(is_still_open(each.receipt)),
                lifetime_ms=ttl_ms,
                receipt_ms=each.at_ms,
                is_dry_run=int(dry_run),
                fields=_fields(each),
            )
        outcomes = cast("list[int]", await pipeline.execute())
    return RestoredEffects(
        restored=outcomes.count(1),
        open=sum(
            outcome == 1 and is_still_open(each.receipt)
            for each, outcome in zip(remembered, outcomes, strict=True)
        ),
        present=outcomes.count(0),
        expired=outcomes.count(2),
    )


def _used(receipt: EffectReceipt) -> str | None:
    """The confirmation that an effect used up and that is no other's yet. What was prepared may have been sent."""
    was_prepared = receipt.effect_state is EffectState.PREPARED
    is_free = is_undone(receipt.effect_state, receipt.sends, receipt.verdict, receipt.settled_by)
    return receipt.confirmation if was_prepared or not is_free else None


def _fields(remembered: Remembered) -> list[str | bytes | int]:
    """The fields of the restored hash but for its times, as `entry_fields` has them."""
    receipt = remembered.receipt
    was_prepared = receipt.effect_state is EffectState.PREPARED
    order = Order(
        command=Command(receipt.tool, receipt.arguments, receipt.idempotency_key),
        provider=receipt.provider,
        subject=receipt.subject,
        source=receipt.source,
        proposal=remembered.proposal,
    )
    settlement = Settlement(
        state=EffectState.UNKNOWN if was_prepared else receipt.effect_state,
        verdict=receipt.verdict or NOBODY_KNOWS,
        status=receipt.status,
        provider_id=receipt.provider_id,
        observed=receipt.state or None,
        settled_by=receipt.settled_by,
        judged_again=receipt.judged_again,
    )
    lost = STEPS_LOST_AT_MOST if is_still_open(receipt) else 0
    confirmed = [] if receipt.confirmation is None else ["confirmation", receipt.confirmation]
    return [
        *confirmed,
        "undone",
        int(receipt.confirmation is not None and _used(receipt) is None),
        "order",
        write_order(order),
        "content",
        order.command.content,
        "state",
        str(settlement.state),
        "known",
        write_known(settlement),
        "sequence",
        receipt.sequence + lost,
        "sends",
        max(1, receipt.sends) if was_prepared else receipt.sends,
        "reads",
        0,
        "told",
        1,
        "restored",
        int(not remembered.is_whole),
    ]
