"""A settlement's signature: a compact JWS over all that it says, by a console's key.

Promise: what `refuse_signature` lets pass was signed, as it stands, by a key that may settle, and is in its time.
Without it whoever can write the topic could settle as anyone.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime, timedelta

import jwt
from jwt.api_jws import PyJWS
from ticketgate.agents.settling.console_keys import ConsoleKey, ConsoleKeys, ConsoleRole
from ticketgate.agents.settling.refusal import Code, Refusal
from ticketgate.codecs.records.settlement import Settlement
from ticketgate.codecs.values.malformed import quote

# Clocks of consoles and of Redis differ by so much at most.
CLOCK_SKEW = timedelta(minutes=5)


def sign(settlement: Settlement, key: ConsoleKey) -> Settlement:
    """The settlement, signed. Raises ValueError for a key that only verifies."""
    if key.signing is None:
        raise ValueError(f"key {key.id} only verifies: it has no private key here")
    signature = PyJWS().encode(
        settlement.said,
        key.signing,
        algorithm=key.algorithm,
        headers={"kid": key.id, "typ": "settlement+jws"},
        is_payload_detached=True,
    )
    return replace(settlement, signature=signature)


def refuse_signature(
    settlement: Settlement, keys: ConsoleKeys, *, at: datetime, not_by: Collection[str] = ()
) -> Refusal | None:
    """Why a settlement is not to be believed at this moment, or None. not_by: pseudonyms that may settle nothing."""
    key = keys.get(_key_id(settlement.signature))
    if key is None:
        return Refusal(Code.UNKNOWN_KEY, ("it names no key that is known here",))
    try:
        PyJWS(options={"enforce_minimum_key_length": True}).decode(
            settlement.signature, key.verifying, algorithms=[key.algorithm], detached_payload=settlement.said
        )
    except (jwt.PyJWTError, ValueError, TypeError):
        return Refusal(
            Code.BAD_SIGNATURE, (f"it was not signed, or not as it stands, by the key {quote(key.id)}",)
        )
    if ConsoleRole.SETTLE not in key.roles:
        return Refusal(Code.WRONG_ROLE, (f"the key {quote(key.id)} may not settle",))
    if settlement.by in not_by:
        return Refusal(Code.SAME_PERSON, ("who answers for the policy may not settle by it",))
    if at >= settlement.expires_at:
        return Refusal(Code.EXPIRED, ("it was to be taken earlier, and is not taken any more",))
    if settlement.at > at + CLOCK_SKEW:
        return Refusal(Code.NOT_YET, ("it is dated in the future; see to the console's clock",))
    return None


def _key_id(signature: str) -> str:
    try:
        found = PyJWS().get_unverified_header(signature).get("kid")
    except (jwt.PyJWTError, ValueError, TypeError):
        return ""
    return found if isinstance(found, str) else ""
