"""One claim as it stands, for who asks what became of a ticket."""

from __future__ import annotations

from ticketgate.codecs.records.identity import IdempotencyKey, settlement_key
from ticketgate.store.keys import Keys
from ticketgate.store.lane_state.voids import Voids
from ticketgate.store.rebuild import derived_keys, read_claims, standing_claim
from ticketgate.streams.config.settings import Settings
from ticketgate.streams.operations.command_redis import open_redis


async def look_up_claim(settings: Settings, key: IdempotencyKey) -> dict[str, object]:
    """The claim on a key as data: which input owns it, for how long, and which keys are derived from it; its `owner` is
    None if there is none. Raises `Unreachable`."""
    keys = Keys(settings.namespace)
    async with open_redis(settings) as redis:
        standing = await standing_claim(redis, keys, key)
        claims = await read_claims(redis, keys, await derived_keys(redis, keys, key))
        derived = [{"key": each.key, "owner": str(each.coordinate)} for each in claims if each is not None]
        if standing is None:
            return {"key": key, "owner": None, "derived_keys": derived}
        is_void = await Voids(redis, keys).is_void(standing.claim.coordinate)
    remaining = standing.remaining
    return {
        "key": key,
        "owner": str(standing.claim.coordinate),
        "owner_is_void": is_void,
        "fingerprint": standing.claim.fingerprint,
        "remaining_s": None if remaining is None else round(remaining.total_seconds(), 3),
        "derived_keys": derived,
        "key_of_a_settlement": settlement_key(key),
    }
